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


def test_a_group_of_one_is_refused_with_the_reason_and_its_range():
    message = messages(group_size=1)["rollout.group_size"]
    assert "a group of one has nothing to compare its completion with" in message
    assert "2 to 1 024 completions" in message


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


def test_a_kl_target_needs_a_beta_to_start_from():
    assert "target=0.1 cannot be reached from beta=0" in messages(kl__target=0.1)["kl.target"]


def test_a_reference_that_is_never_renewed_is_refused():
    assert "use at most 20" in messages(kl__beta=0.1, kl__reference="copy", steps=20)["kl.copy_every"]


def test_an_entropy_bonus_needs_the_entropy_of_every_completion():
    assert "set entropy_share=1" in messages(entropy__bonus=0.01, entropy_share=0.5)["logging.entropy_share"]


def test_an_overlong_buffer_lies_within_the_length_limit():
    assert "use at most 47" in messages(overlong_buffer=48)["truncation.overlong_buffer"]


def test_dynamic_sampling_without_a_baseline_is_refused():
    found = messages(dynamic_sampling=True, loss_type="no_baseline")
    assert "which do teach under baseline=none" in found["rollout.dynamic_sampling"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"top_p": 0.9}, "top_p=0.9"), ({"top_k": 20}, "top_k=20"), ({"min_p": 0.05}, "min_p=0.05")],
)
def test_a_sampler_that_cuts_the_distribution_is_said_to_bias_the_ratio(settings, name):
    found = remarks(parse_config(settings))
    assert any(remark.startswith(name) and "ratio of policy to sampler is biased" in remark for remark in found)
    assert any("takes these completions for the policy's own" in remark for remark in found)


def test_a_repetition_penalty_is_said_to_bias_the_ratio():
    found = remarks(parse_config({"repetition_penalty": 1.1}))
    assert any(remark.startswith("repetition_penalty=1.1") and "biased" in remark for remark in found)
    assert not any("biased" in remark for remark in remarks(RunConfig()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kl.beta": 0.1, "kl.estimator": "k1"}, "k1 as a term of the loss pulls nowhere"),
        ({"kl.beta": 0.1, "kl.placement": "reward"}, "only k1 gives that of the KL divergence"),
        ({"kl.beta": 0.1}, "also acts on flat groups"),
        ({"kl.estimator": "k2"}, "kl.estimator without effect"),
        ({"stopping.min_gain": 0.1}, "no effect without patience"),
        ({"entropy.change": 0.1}, "no effect without entropy.target"),
        ({"truncation.completions": "mask", "overlong_buffer": 8}, "reaches no cut completion"),
        ({"dtype": "bfloat16", "learning_rate": 1e-6}, "lost to rounding"),
    ],
)
def test_settings_without_or_with_an_unusual_effect_are_remarked_on(settings, words):
    assert any(words in remark for remark in remarks(parse_config(settings)))
    assert not any(words in remark for remark in remarks(RunConfig()))


def test_the_words_of_other_programs_for_truncation_and_kl_are_read():
    config = parse_config({"mask_truncated_completions": True, "kl_loss_coef": 0.001, "kl_loss_type": "low_var_kl"})
    assert config.truncation.completions == "mask"
    assert (config.kl.beta, config.kl.estimator) == (0.001, "k3")


def test_a_run_is_sft_or_grpo_or_both_and_its_length_is_their_sum():
    assert parse_config({"sft.steps": 20, "grpo.steps": 0}).total_steps == 20
    assert parse_config({"sft.steps": 20, "grpo.steps": 60}).total_steps == 80
    assert parse_config({"grpo.steps": 0}).total_steps == 0


def test_a_reward_that_pays_for_nothing_is_refused():
    assert messages(reward__answer=0) == {
        "reward.answer": "answer=0, and so are format, length and repetition: no completion would earn anything; "
        "set answer=1"
    }
    assert parse_config({"reward.answer": 0, "reward.format": 0.5}).reward.format == 0.5


def test_a_placebo_is_refused_where_verdicts_alone_decide():
    expert = {"grpo__loss_type": "no_baseline", "grpo__baseline": "none", "grpo__scale": "none"}
    assert messages(reward__placebo="random", grpo__learn_from="correct", **expert) == {
        "reward.placebo": "placebo=random changes rewards, and learn_from=correct goes by verdicts; set "
        "placebo=none or learn_from=all"
    }


def test_grpo_counts_its_own_steps_from_the_end_of_sft():
    config = parse_config({"sft.steps": 20})
    assert [config.grpo_step(step) for step in (21, 25)] == [1, 5]
    assert [RunConfig().grpo_step(step) for step in (1, 5)] == [1, 5]


def test_the_learning_rate_of_sft_is_the_optimizers_unless_it_has_one():
    assert parse_config({"learning_rate": 2e-4}).sft_learning_rate == 2e-4
    assert parse_config({"learning_rate": 2e-4, "sft.learning_rate": 1e-3}).sft_learning_rate == 1e-3


def test_a_warm_up_fits_into_each_phase_that_there_is():
    found = messages(warmup_steps=8, sft__steps=5)
    assert found["optimizer.warmup_steps"] == "warmup_steps=8 is above sft.steps=5; use at most 5"
    assert messages(warmup_steps=200)["optimizer.warmup_steps"].endswith("above grpo.steps=100; use at most 100")
    assert parse_config({"warmup_steps": 8, "sft.steps": 10, "grpo.steps": 0}).optimizer.warmup_steps == 8


def test_a_reference_policy_is_kept_only_where_there_is_grpo():
    assert parse_config({"kl.beta": 0.1, "sft.steps": 5}).has_reference
    pure = parse_config({"kl.beta": 0.1, "sft.steps": 5, "grpo.steps": 0})
    assert not pure.has_reference
    assert any("SFT alone, which has neither term" in remark for remark in remarks(pure))


def test_settings_of_grpo_are_not_remarked_on_where_there_is_none():
    assert remarks(parse_config({"sft.steps": 5, "grpo.steps": 0})) == ()


def test_settings_of_an_sft_that_is_not_there_are_remarked_on():
    found = remarks(parse_config({"sft.batch_size": 8, "sft.loss": "sequence"}))
    assert "sft.batch_size, sft.loss without effect: with sft.steps=0 there is no SFT." in found
    assert not any(
        "without effect" in remark for remark in remarks(parse_config({"sft.steps": 5, "sft.batch_size": 8}))
    )


@pytest.mark.parametrize("start", ["run:abc", "run:@4", "run:abc@", "run:abc@four"])
def test_a_start_that_names_no_checkpoint_is_refused(start):
    assert "write run:<id>@<step>" in messages(init_from=start)["model.init_from"]
    assert parse_config({"model.init_from": "run:abc@4"}).model.init_from == "run:abc@4"
    assert parse_config({"model.init_from": "some/folder"}).model.init_from == "some/folder"


EXPERT = {"learn_from": "correct", "loss_type": "no_baseline"}


def test_learning_from_the_correct_ones_compares_nothing():
    assert parse_config(EXPERT).grpo.baseline == "none"
    assert messages(learn_from="correct")["grpo.learn_from"] == (
        "learn_from=correct learns from every correct completion alike, with an advantage of 1, but "
        "loss_type=grpo_clip, baseline=group_mean and scale=group_std make it depend on the others of its group; "
        "set loss_type=no_baseline, baseline=none and scale=none, or learn_from=all"
    )
    assert "grpo.learn_from" in messages(**EXPERT, scale="batch_std")


def test_a_kl_term_in_the_reward_has_no_place_where_every_advantage_is_1():
    message = messages(**EXPERT, kl__beta=0.1, kl__placement="reward")["kl.placement"]
    assert message.endswith("set placement=loss or beta=0")


def test_reuse_is_what_expert_iteration_does_and_is_not_remarked_on():
    def uncorrected(**settings):
        found = remarks(parse_config({"epochs_per_rollout_batch": 4, "loss_type": "no_baseline"} | settings))
        return any("off-policy and uncorrected" in remark for remark in found)

    assert uncorrected()
    assert not uncorrected(learn_from="correct")
    found = remarks(parse_config(EXPERT | {"overlong_buffer": 8}))
    assert any("overlong_penalty changes no gradient" in remark for remark in found)


def test_settings_of_training_are_not_remarked_on_where_nothing_is_trained():
    settings = {"checkpoints.every": 3, "stopping.min_gain": 0.1, "entropy.change": 0.1, "evaluation.split": "test"}
    assert len(remarks(parse_config(settings))) > 3
    assert remarks(parse_config(settings | {"grpo.steps": 0})) == ()
    (said,) = remarks(parse_config({"grpo.steps": 0, "kl.measure": True}))
    assert said == "kl and entropy have no effect: with grpo.steps=0 nothing is trained."
