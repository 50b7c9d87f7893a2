import pytest

from engine.config import RunConfig, parse_config, remarks
from engine.errors import ConfigError


def messages(**settings) -> dict[str, str]:
    """The problems of a config, by field."""
    with pytest.raises(ConfigError) as caught:
        parse_config({name.replace("__", "."): value for name, value in settings.items()})
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_rollout_batch_that_is_no_multiple_of_the_group_names_the_nearest_two():
    assert messages(rollout_batch_size=100) == {
        "rollout.rollout_batch_size": "rollout_batch_size=100 is not a multiple of group_size=8; use 96 or 104"
    }


def test_a_rollout_batch_smaller_than_a_group_names_the_one_way_out():
    found = messages(rollout_batch_size=4, group_size=8)
    assert found["rollout.rollout_batch_size"].endswith("; use 8")


def test_a_group_of_one_is_refused_with_its_range():
    assert "2 to 1 024 completions" in messages(group_size=1)["rollout.group_size"]


def test_a_train_batch_must_divide_the_rollout_batch():
    assert messages(train_batch_size=48)["grpo.train_batch_size"] == (
        "train_batch_size=48 does not divide rollout_batch_size=128; use 32 or 64"
    )


def test_a_train_batch_above_the_rollout_batch_is_refused():
    assert "use at most 128" in messages(train_batch_size=256)["grpo.train_batch_size"]


def test_accumulation_must_divide_the_train_batch():
    assert messages(gradient_accumulation_steps=3)["grpo.gradient_accumulation_steps"] == (
        "gradient_accumulation_steps=3 does not divide train_batch_size=128; use 2 or 4"
    )


def test_every_broken_rule_is_named_at_once():
    found = messages(rollout_batch_size=100, warmup_steps=200, operands_min=5, operands_max=3)
    assert set(found) == {"rollout.rollout_batch_size", "optimizer.warmup_steps", "task.operands_min"} | (
        {"grpo.gradient_accumulation_steps"} & set(found)
    )


def test_raw_rewards_and_a_baseline_contradict_each_other():
    found = messages(loss_type="no_baseline", baseline="group_mean")
    assert "set baseline=none and scale=none" in found["grpo.loss_type"]


def test_reinforce_with_baseline_needs_one():
    assert "use baseline=group_mean" in messages(loss_type="reinforce_with_baseline", baseline="none")["grpo.baseline"]


def test_reinforce_takes_either_baseline():
    config = parse_config({"loss_type": "reinforce_with_baseline", "baseline": "leave_one_out", "scale": "none"})
    assert config.grpo.baseline == "leave_one_out"


def test_flat_groups_without_a_baseline_are_remarked_on_only_where_they_teach():
    def flat_groups_teach(scale):
        return any("flat groups" in remark for remark in remarks(parse_config({"baseline": "none", "scale": scale})))

    assert [flat_groups_teach(scale) for scale in ("none", "batch_std", "group_std")] == [True, True, False]


def test_a_kind_of_std_without_a_division_is_remarked_on():
    assert any("no effect" in remark for remark in remarks(parse_config({"std": "population", "scale": "none"})))


def test_a_dual_clip_without_a_clip_is_refused():
    message = messages(dual_clip=3, loss_type="cispo")["grpo.dual_clip"]
    assert message.startswith("dual_clip=3 is used by loss_type=grpo_clip only")
    assert "above 1 to 1 000" in messages(dual_clip=1)["grpo.dual_clip"]


def test_a_sequence_ratio_needs_a_loss_with_a_ratio():
    found = messages(ratio_level="sequence", loss_type="reinforce_with_baseline")
    assert found["grpo.ratio_level"].endswith("use ratio_level=token or loss_type=grpo_clip")


def test_the_words_of_other_programs_for_ratio_and_dual_clip_are_read():
    config = parse_config({"importance_sampling_level": "sequence", "delta": 4.0})
    assert (config.grpo.ratio_level, config.grpo.dual_clip) == ("sequence", 4.0)


def test_a_token_clip_on_a_sequence_ratio_is_remarked_on():
    def wide(**settings):
        return any("hardly ever binds" in remark for remark in remarks(parse_config(settings)))

    assert wide(ratio_level="sequence")
    assert not wide(ratio_level="sequence", clip_eps=3e-4, clip_eps_high=4e-4)
    assert not wide()


def test_what_cispo_does_not_do_is_remarked_on():
    found = remarks(parse_config({"loss_type": "cispo", "clip_eps_high": 4.0}))
    assert any("capped at 5 " in remark for remark in found)
    assert any("cap of cispo cannot act" in remark for remark in found)


def test_a_correction_where_sampler_and_trainer_are_one_is_remarked_on():
    config = parse_config({"vllm_importance_sampling_mode": "sequence_mask"})
    assert any("next to nothing to correct" in remark for remark in remarks(config))


def test_a_constant_without_its_aggregation_is_refused():
    assert "aggregation=constant only" in messages(normalize_constant=512)["grpo.aggregation_constant"]


def test_min_tokens_stay_below_max_tokens():
    assert "use at most 48" in messages(min_tokens=64)["rollout.min_tokens"]


def test_derived_sizes_follow_from_the_batch():
    config = parse_config({"train_batch_size": 32, "epochs_per_rollout_batch": 2, "gradient_accumulation_steps": 4})
    assert config.prompts_per_step == 16
    assert config.optimizer_steps_per_step == 8
    assert config.micro_batch_size == 8
    assert not config.on_policy


def test_the_default_is_on_policy_and_says_that_the_clip_cannot_act():
    assert RunConfig().on_policy
    assert any("clip cannot act" in remark for remark in remarks(RunConfig()))


def test_uncorrected_reuse_is_remarked_on():
    config = parse_config({"loss_type": "reinforce_with_baseline", "epochs_per_rollout_batch": 4})
    assert any("off-policy and uncorrected" in remark for remark in remarks(config))


def test_checkpoints_that_no_evaluation_meets_are_remarked_on():
    assert any("cannot be marked as the best" in remark for remark in remarks(parse_config({"checkpoints.every": 25})))
    assert not any("marked as the best" in remark for remark in remarks(RunConfig()))
