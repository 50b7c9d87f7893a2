import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.planner import ModelShape, find_shape, shape_of_config, shapes

SMALL = {
    "model_type": "llama",
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 10,
    "max_position_embeddings": 32,
    "tie_word_embeddings": True,
}


def small(**changes: object) -> ModelShape:
    shape = shape_of_config({**SMALL, **changes})
    assert shape is not None
    return shape


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("tiny-math", 824_320),
        ("Qwen/Qwen2.5-Math-1.5B", 1_543_714_304),
        ("Qwen/Qwen2.5-1.5B", 1_543_714_304),
        ("Qwen/Qwen2.5-0.5B", 494_032_768),
        ("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768),
        ("Qwen/Qwen2.5-3B", 3_085_938_688),
        ("Qwen/Qwen2.5-7B", 7_615_616_512),
        ("HuggingFaceTB/SmolLM2-135M", 134_515_008),
        ("smollm2-135m", 134_515_008),
    ],
)
def test_the_parameters_of_known_models_are_counted_from_their_shapes(name: str, parameters: int) -> None:
    shape = find_shape(name)
    assert shape is not None
    assert shape.parameters == parameters


def test_a_small_model_can_be_counted_by_hand() -> None:
    # Query and output 4·4, key and value 4·2, gate, up and down 4·6 each: 120. Norms 2·4, last norm 4, words 10·4.
    assert small().parameters == 120 + 8 + 4 + 40
    assert small(tie_word_embeddings=False).parameters == small().parameters + 40
    # Qwen2 has biases of query, key and value: 4 + 2 + 2.
    assert small(model_type="qwen2").parameters == small().parameters + 8
    # Qwen3 has a norm over the head, 2 wide, for queries and for keys.
    assert small(model_type="qwen3").parameters == small().parameters + 4
    assert small(attention_bias=True).parameters == small().parameters + 8 + 4
    assert small(mlp_bias=True).parameters == small().parameters + 6 + 6 + 4


def test_an_adapter_has_a_row_of_numbers_per_input_and_output_for_each_rank() -> None:
    # 4+4, 4+2, 4+2, 4+4, 4+6, 4+6, 6+4 inputs and outputs.
    assert small().adapter_parameters(3) == 3 * 58


def test_a_head_need_not_be_a_share_of_the_hidden_width() -> None:
    assert small().head_dim == 2
    assert small(head_dim=5).head_dim == 5
    assert small(num_key_value_heads=None).kv_heads == 2


def test_a_local_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert find_shape(str(tmp_path)) == small()


def test_a_model_in_the_cache_is_found_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_cache = tmp_path / "config.json"
    in_cache.write_text(json.dumps(SMALL))
    asked = []

    def look_up(repo_id: str, filename: str) -> str:
        asked.append((repo_id, filename))
        return str(in_cache)

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", look_up)
    assert find_shape("someone/model") == small()
    assert asked == [("someone/model", "config.json")]


def test_the_cache_is_asked_before_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_in_cache", lambda name: tmp_path / "config.json")
    assert find_shape("Qwen/Qwen2.5-0.5B") is not None
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert find_shape("Qwen/Qwen2.5-0.5B") == small()


@pytest.mark.parametrize("name", ["someone/unheard-of", "not a name", "..", "x" * 5000, "nul\0", "a//b"])
def test_of_a_model_that_nothing_here_describes_nothing_is_known(name: str) -> None:
    assert find_shape(name) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model_type": "gpt2"}', '{"model_type": "llama"}'])
def test_a_config_that_tells_no_shape_gives_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    assert find_shape(str(tmp_path)) is None


def test_numbers_that_make_no_sense_give_no_shape() -> None:
    assert shape_of_config({**SMALL, "num_attention_heads": 0}) is None
    assert shape_of_config({**SMALL, "hidden_size": "wide"}) is None


def test_planning_imports_no_torch() -> None:
    code = (
        "import sys; from engine.config import RunConfig; from engine.planner import find_shape, plan_memory\n"
        "find_shape('someone/unheard-of'); plan_memory(RunConfig(), find_shape('tiny-math'))\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
