import pytest

from engine.config import RunConfig, diff, parse_assignment, parse_config, to_yaml
from engine.errors import ConfigError

CS336 = {
    "n_grpo_steps": 200,
    "learning_rate": 1e-5,
    "advantage_eps": 1e-6,
    "rollout_batch_size": 256,
    "group_size": 8,
    "sampling_temperature": 1.0,
    "sampling_min_tokens": 4,
    "sampling_max_tokens": 1024,
    "epochs_per_rollout_batch": 1,
    "train_batch_size": 256,
    "gradient_accumulation_steps": 128,
    "loss_type": "reinforce_with_baseline",
    "use_std_normalization": True,
    "cliprange": 0.2,
    "normalize_mode": "constant",
    "normalize_constant": 1024,
}


def test_the_flat_words_of_cs336_are_accepted():
    config = parse_config(CS336)
    assert config.grpo.steps == 200
    assert config.optimizer.learning_rate == 1e-5
    assert config.rollout.max_tokens == 1024
    assert config.rollout.min_tokens == 4
    assert config.grpo.clip_eps == 0.2
    assert config.grpo.aggregation == "constant"
    assert config.aggregation_constant == 1024
    assert config.micro_batch_size == 2


@pytest.mark.parametrize("mode", ["mean", "constant", "microbatch"])
def test_every_normalize_mode_of_the_second_study_is_known(mode):
    assert parse_config({"normalize_mode": mode}).grpo.aggregation == mode


def test_the_words_of_trl_are_accepted():
    config = parse_config({"num_generations": 4, "max_completion_length": 64, "epsilon": 0.1, "epsilon_high": 0.3})
    assert (config.rollout.group_size, config.rollout.max_tokens) == (4, 64)
    assert (config.grpo.clip_eps, config.clip_eps_high) == (0.1, 0.3)


def test_no_baseline_alone_switches_baseline_and_std_off():
    config = parse_config({"loss_type": "no_baseline"})
    assert config.grpo.baseline == "none"
    assert config.grpo.scale == "none"


@pytest.mark.parametrize(
    ("word", "value", "scale"),
    [
        ("use_std_normalization", True, "group_std"),
        ("use_std_normalization", False, "none"),
        ("grpo.use_std_normalization", "false", "none"),
        ("scale_rewards", "batch", "batch_std"),
        ("scale_rewards", "group", "group_std"),
        ("scale_rewards", "none", "none"),
        ("scale", "batch_std", "batch_std"),
    ],
)
def test_the_switches_of_other_programs_are_read_as_a_scale(word, value, scale):
    assert parse_config({word: value}).grpo.scale == scale
    assert parse_config(dict([parse_assignment(f"{word}={value}")])).grpo.scale == scale


def test_a_switch_and_a_scale_that_say_the_same_may_stand_together():
    assert parse_config({"use_std_normalization": False, "grpo": {"scale": "none"}}).grpo.scale == "none"
    with pytest.raises(ConfigError, match=r"given twice: use_std_normalization=true, grpo\.scale=none; keep one"):
        parse_config({"use_std_normalization": True, "grpo": {"scale": "none"}})


def test_another_word_for_a_scale_names_the_choices():
    with pytest.raises(ConfigError, match=r"grpo\.scale=range.*one of none, group_std, batch_std"):
        parse_config({"scale": "range"})


def test_an_unknown_field_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"rollout\.groupsize=3 is not a field; did you mean rollout\.group_size"):
        parse_config({"rollout": {"groupsize": 3}})


def test_a_word_is_read_before_a_bare_name_that_two_sections_share():
    config = parse_config({"steps": 7, "learning_rate": 1e-5, "sft.steps": 3, "sft.learning_rate": 1e-3})
    assert (config.grpo.steps, config.optimizer.learning_rate) == (7, 1e-5)
    assert (config.sft.steps, config.sft.learning_rate) == (3, 1e-3)


def test_a_bare_name_that_two_sections_share_is_refused():
    with pytest.raises(ConfigError, match=r"temperature=1 is not a field; did you mean rollout\.temperature"):
        parse_config({"temperature": 1})


def test_one_field_under_two_words_with_two_values_is_refused():
    with pytest.raises(ConfigError, match=r"given twice: cliprange=0\.1, grpo\.clip_eps=0\.2; keep one"):
        parse_config({"cliprange": 0.1, "grpo": {"clip_eps": 0.2}})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0, 2, "fast"])
def test_a_value_out_of_range_names_field_value_and_range(value):
    with pytest.raises(ConfigError, match=r"optimizer\.learning_rate=.*above 0 to 1"):
        parse_config({"learning_rate": value})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optimizer.learning_rate=3e-4", ("optimizer.learning_rate", 3e-4)),
        ("use_std_normalization=false", ("use_std_normalization", False)),
        ("train_batch_size=null", ("train_batch_size", None)),
        ("model.name=org/model=1", ("model.name", "org/model=1")),
        ("task.operators=[+, -]", ("task.operators", ["+", "-"])),
    ],
)
def test_an_assignment_is_read_as_yaml_with_scientific_notation(text, expected):
    assert parse_assignment(text) == expected


def test_an_assignment_without_a_value_is_refused():
    with pytest.raises(ConfigError, match="write --set seed=VALUE"):
        parse_assignment("seed")


def test_yaml_gives_the_config_back():
    import yaml

    config = parse_config(CS336 | {"seed": 3})
    assert parse_config(yaml.safe_load(to_yaml(config))) == config


def test_a_difference_names_both_values():
    before, after = RunConfig(), parse_config({"learning_rate": 1e-5, "seed": 1})
    assert diff(before, after) == {"optimizer.learning_rate": (1e-4, 1e-5), "seed": (0, 1)}


def test_runs_that_differ_in_the_seed_alone_are_one_arm():
    one, two = parse_config({"seed": 1}), parse_config({"seed": 2})
    assert one.arm_digest() == two.arm_digest()
    assert one.digest() != two.digest()
    assert one.arm_digest() != parse_config({"learning_rate": 1e-5}).arm_digest()


def test_a_config_cannot_be_changed():
    with pytest.raises(Exception, match="frozen"):
        RunConfig().rollout.group_size = 4  # type: ignore[misc]


@pytest.mark.parametrize("text", ["Q: {question}: {", "a: b: c", "[open", "@at"])
def test_an_assigned_value_that_is_no_yaml_is_the_text_it_is(text: str) -> None:
    assert parse_assignment(f"prompt.text={text}") == ("prompt.text", text)
