import pytest

from engine.config import diff
from engine.errors import ConfigError
from engine.presets import load_preset, preset_names
from engine.tasks.task import load_task


def test_the_quick_start_comes_first():
    assert preset_names()[0] == "quick-start"


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_says_what_it_is(name):
    preset = load_preset(name)
    assert preset.sentence.endswith((".", "?"))
    assert preset.name == name


@pytest.mark.parametrize("name", [name for name in preset_names() if load_preset(name).extends])
def test_a_preset_differs_from_its_parent(name):
    preset = load_preset(name)
    assert preset.extends is not None
    assert diff(load_preset(preset.extends).config, preset.config)


def test_no_two_presets_are_the_same():
    digests = [load_preset(name).config.digest() for name in preset_names()]
    assert len(set(digests)) == len(digests)


RECIPES = {
    "grpo": {},
    "dr_grpo": {"grpo.scale": "none", "grpo.aggregation": "constant"},
    "dapo": {"grpo.aggregation": "token", "grpo.clip_eps_high": 0.28},
    "gspo": {"grpo.ratio_level": "sequence", "grpo.clip_eps": 3e-4, "grpo.clip_eps_high": 4e-4},
    "cispo": {"grpo.loss_type": "cispo", "grpo.aggregation": "token", "grpo.clip_eps_high": 4.0},
    "rloo": {"grpo.baseline": "leave_one_out", "grpo.scale": "none", "grpo.aggregation": "constant"},
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_grpo_with_the_fields_of_its_paper(name):
    changes = diff(load_preset("grpo").config, load_preset(name).config)
    assert {path: value for path, (_, value) in changes.items()} == RECIPES[name]


def test_the_recipes_share_one_budget_and_are_off_policy_so_that_ratio_and_clip_act():
    configs = [load_preset(name).config for name in RECIPES]
    assert {config.optimizer_steps_per_step for config in configs} == {4}
    assert len({config.rollout for config in configs}) == len({config.optimizer for config in configs}) == 1


def test_overrides_win_over_the_preset():
    config = load_preset("low-learning-rate", {"learning_rate": 1e-6, "seed": 5}).config
    assert config.optimizer.learning_rate == 1e-6
    assert config.seed == 5


def test_a_preset_may_extend_one_that_extends_another(tmp_path):
    (tmp_path / "a.yaml").write_text("about: A.\nrollout: {group_size: 4}\n")
    (tmp_path / "b.yaml").write_text("extends: a\nrollout: {rollout_batch_size: 64}\n")
    (tmp_path / "c.yaml").write_text("extends: b\nn_grpo_steps: 7\n")
    config = load_preset("c", folder=tmp_path).config
    assert (config.rollout.group_size, config.rollout.rollout_batch_size, config.grpo.steps) == (4, 64, 7)


def test_a_circle_of_presets_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: b\n")
    (tmp_path / "b.yaml").write_text("extends: a\n")
    with pytest.raises(ConfigError, match="runs in a circle: a → b"):
        load_preset("a", folder=tmp_path)


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"preset=fast does not exist; use one of quick-start"):
        load_preset("fast")


def test_a_file_may_extend_a_preset_by_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: quick-start\nseed: 9\n")
    assert load_preset(str(path)).config.seed == 9


def test_a_name_with_a_dot_stays_whole_and_a_path_gives_its_stem(tmp_path):
    assert load_preset("gsm8k-1.5b-24gb").name == "gsm8k-1.5b-24gb"
    path = tmp_path / "mine-1.5b.yaml"
    path.write_text("extends: gsm8k-1.5b-24gb\nseed: 9\n")
    assert load_preset(str(path)).name == "mine-1.5b"


def test_the_presets_of_sft_differ_from_the_quick_start_in_their_phases_alone():
    def changes(name):
        found = diff(load_preset("quick-start").config, load_preset(name).config)
        return {path: value for path, (_, value) in found.items()}

    assert changes("sft-then-grpo") == {"sft.steps": 20, "grpo.steps": 80}
    assert changes("sft") == {
        "sft.steps": 40,
        "sft.learning_rate": 3e-4,
        "grpo.steps": 0,
        "evaluation.every": 5,
    }
    assert changes("expert-iteration") == {
        "grpo.learn_from": "correct",
        "grpo.loss_type": "no_baseline",
        "grpo.baseline": "none",
        "grpo.scale": "none",
        "grpo.aggregation": "token",
        "grpo.epochs_per_rollout_batch": 4,
    }


def test_smollm2_learns_harder_products_on_more_of_them():
    sums, products = load_preset("smollm2-sums-cpu").config, load_preset("smollm2-products-cpu").config
    assert {path: value for path, (_, value) in diff(sums, products).items()} == {
        "task.operators": ("*",),
        "task.largest_operand": 12,
        "rollout.rollout_batch_size": 64,
        "grpo.steps": 60,
        "evaluation.every": 15,
        "evaluation.size": 22,
    }
    for config in (sums, products):
        assert (config.model.name, config.prompt.name, config.rollout.group_size) == ("smollm2-135m", "number_only", 8)
        report = load_task(config.task).report
        assert report is not None
        assert report.problems["validation"] == config.evaluation.size
