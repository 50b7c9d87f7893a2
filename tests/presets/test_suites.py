from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.config import diff
from engine.config.prompt_forms import reward_name
from engine.errors import ConfigError
from engine.presets import load_preset
from engine.presets.suites import load_suite, suite_names

CLIP = """
question: "Does a clip help?"
base: quick-start
baseline: clip
seeds: 2
common: {grpo: {epochs_per_rollout_batch: 4, steps: 7}}
arms:
  clip: {}
  no-clip: {grpo: {loss_type: grpo_no_clip, steps: 9}}
  dapo: {extends: dapo}
"""
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the suite above with some of its text replaced, and return its path."""

    def to_file(*changes: tuple[str, str]) -> str:
        text = CLIP
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "clips.yaml").write_text(text)
        return str(tmp_path / "clips.yaml")

    return to_file


def configs(path: str, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    return {arm.name: arm.config for arm in load_suite(path, overrides).arms}


class TestTheSuitesThatComeAlong:
    @pytest.mark.parametrize("name", suite_names())
    def test_every_suite_is_valid_and_asks_a_question(self, name: str):
        suite = load_suite(name)
        assert suite.name == name
        assert suite.question.endswith("?")
        assert len(suite.arms) > 1
        assert suite.seeds >= 3

    def test_the_recipes_are_the_presets_of_their_names_and_nothing_else(self):
        arms = load_suite("recipes").arms
        assert [arm.name for arm in arms] == ["grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo"]
        assert [arm.preset for arm in arms] == [arm.name for arm in arms]
        assert [arm.config for arm in arms] == [load_preset(arm.name).config for arm in arms]
        assert len({(arm.config.grpo.steps, arm.config.rollout) for arm in arms}) == 1

    def test_kl_or_clip_differs_in_clip_and_kl_alone(self):
        clip, *others = load_suite("kl-or-clip").arms
        assert clip.config.optimizer_steps_per_step == 4
        assert [arm.name for arm in others] == ["no-clip", "fixed-kl", "adaptive-kl", "adaptive-kl-per-step"]
        changed = [{path: new for path, (_, new) in diff(clip.config, arm.config).items()} for arm in others]
        assert [set(fields) for fields in changed] == [
            {"grpo.loss_type"},
            {"grpo.loss_type", "kl.beta"},
            {"grpo.loss_type", "kl.beta", "kl.target", "kl.gain"},
            {"grpo.loss_type", "kl.beta", "kl.target", "kl.gain", "kl.reference", "kl.copy_every"},
        ]
        assert {fields["grpo.loss_type"] for fields in changed} == {"grpo_no_clip"}
        assert all(arm.config.kl.measure for arm in (clip, *others))

    def test_finqa_contexts_differ_in_what_stands_beside_the_question_alone(self):
        gold, *others = load_suite("finqa-contexts").arms
        assert gold.config.task.context == "gold"
        changed = [{path: new for path, (_, new) in diff(gold.config, arm.config).items()} for arm in others]
        assert changed == [
            {"task.context": "retrieved"},
            {"task.context": "retrieved", "task.context_rows": 10},
            {"task.context": "none"},
        ]
        assert reward_name(gold.config.prompt, gold.config.task) == "finqa"

    def test_placebo_lays_each_placebo_beside_the_quick_start(self):
        grpo, *others = load_suite("placebo").arms
        assert diff(load_preset("quick-start").config, grpo.config) == {"grpo.steps": (100, 60)}
        assert {arm.name: diff(grpo.config, arm.config) for arm in others} == {
            "random": {"reward.placebo": ("none", "random")},
            "always-one": {"reward.placebo": ("none", "always_one")},
            "format-only": {"reward.placebo": ("none", "format_only")},
        }

    def test_sft_ceiling_gives_every_arm_as_much_grpo_behind_more_or_less_sft(self):
        grpo, *others = load_suite("sft-ceiling").arms
        assert {arm.config.grpo.steps for arm in (grpo, *others)} == {60}
        changed = {arm.name: {path: new for path, (_, new) in diff(grpo.config, arm.config).items()} for arm in others}
        assert [changed.pop(f"sft-{name}") for name in ("early", "middle", "late")] == [
            {"sft.steps": steps} for steps in (5, 20, 80)
        ]
        expert = {path: new for path, (_, new) in diff(load_preset("quick-start").config, others[-1].config).items()}
        assert changed.keys() == {"expert-iteration"}
        assert changed["expert-iteration"] == {path: new for path, new in expert.items() if path != "grpo.steps"}


class TestArms:
    def test_an_arm_is_its_preset_then_what_is_common_then_its_own(self, write: Write):
        suite = load_suite(write())
        assert (suite.name, suite.question, suite.baseline, suite.seeds) == ("clips", "Does a clip help?", "clip", 2)
        assert [(arm.name, arm.preset) for arm in suite.arms] == [
            ("clip", "quick-start"),
            ("no-clip", "quick-start"),
            ("dapo", "dapo"),
        ]
        clip, no_clip, dapo = (arm.config.grpo for arm in suite.arms)
        assert (clip.loss_type, clip.steps, clip.epochs_per_rollout_batch) == ("grpo_clip", 7, 4)
        assert (no_clip.loss_type, no_clip.steps, no_clip.epochs_per_rollout_batch) == ("grpo_no_clip", 9, 4)
        assert (dapo.aggregation, dapo.clip_eps_high, dapo.steps) == ("token", 0.28, 7)

    def test_overrides_are_laid_over_every_arm_last_in_any_program_s_words(self, write: Write):
        found = configs(write(), {"n_grpo_steps": 3, "optimizer.learning_rate": 1e-6})
        assert {(config.grpo.steps, config.optimizer.learning_rate) for config in found.values()} == {(3, 1e-6)}
        assert found["no-clip"].grpo.loss_type == "grpo_no_clip"

    def test_runs_of_an_arm_differ_in_the_seed_alone(self, write: Write):
        arm = load_suite(write()).arms[1]
        assert diff(arm.with_seed(0), arm.with_seed(5)) == {"seed": (0, 5)}
        assert arm.with_seed(0).arm_digest() == arm.with_seed(5).arm_digest() == arm.config.arm_digest()

    def test_a_base_is_not_needed_where_every_arm_extends(self, write: Write):
        path = write(
            ("base: quick-start\n", ""), ("clip: {}", "clip: {extends: grpo}"), ("no-clip: {", "x: {extends: rloo, ")
        )
        assert [arm.preset for arm in load_suite(path).arms] == ["grpo", "rloo", "dapo"]

    def test_suites_are_found_in_a_folder_by_name(self, write: Write, tmp_path: Path):
        write()
        assert suite_names(tmp_path) == ("clips",)
        assert load_suite("clips", folder=tmp_path) == load_suite(str(tmp_path / "clips.yaml"))


class TestFaults:
    @pytest.mark.parametrize(
        ("change", "path", "message"),
        [
            (
                ("baseline: clip", "baseline: klip"),
                "baseline",
                "baseline=klip is not an arm; use one of clip, no-clip, dapo",
            ),
            (
                ("dapo: {extends: dapo}", "same: {grpo: {loss_type: grpo_clip}}"),
                "arms.same",
                "arms.same has the same config as arms.clip; change a field of one, or leave it out",
            ),
            (
                ("clip: {}", "clip: {seed: 4}"),
                "seed",
                "seed=4 is given, but every arm has the seeds 0, 1, 2, …; set their number (seeds) (arm clip)",
            ),
            (
                ("seeds: 2", "seedz: 2\nseeds: 2"),
                "seedz",
                "seedz=2 is not a key of a suite; use one of question, base, baseline, seeds, common, arms",
            ),
            (
                ("seeds: 2\n", ""),
                "seeds",
                "seeds is missing; a suite has question, base, baseline, seeds, common, arms, "
                "of which base and common may be left out",
            ),
            (("seeds: 2", "seeds: 0"), "seeds", "seeds=0: input should be greater than or equal to 1"),
            (("seeds: 2", "seeds: true"), "seeds", "seeds=True: input should be a valid integer"),
            (("clip: {}", "clip:"), "arms.clip", "arms.clip=None: input should be a valid dictionary"),
            (
                ("no-clip: {", "no: {"),
                "arms",
                "arms: False is no name; use letters, digits and . _ + -, and quote numbers, yes and no",
            ),
            (
                ("no-clip: {", "no/clip: {"),
                "arms",
                "arms: no/clip is no name; use letters, digits and . _ + -, and quote numbers, yes and no",
            ),
            (
                ("base: quick-start\n", ""),
                "base",
                "base is missing, and nothing else says what to start from; give a base, or the arm an extends "
                "(arm clip, no-clip)",
            ),
            (
                ("steps: 9", "stepz: 9"),
                "grpo.stepz",
                "grpo.stepz=9 is not a field; did you mean grpo.steps or grpo.std? (arm no-clip)",
            ),
            (
                ("steps: 7", "steps: -1"),
                "grpo.steps",
                "grpo.steps=-1: input should be greater than or equal to 0 (0 to 1 000 000 steps) (arm clip, dapo)",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) and " " not in value else "",
    )
    def test_a_fault_is_named_with_its_place_and_a_way_out(
        self, write: Write, change: tuple[str, str], path: str, message: str
    ):
        with pytest.raises(ConfigError) as caught:
            load_suite(write(change))
        assert [(problem.path, problem.message) for problem in caught.value.problems] == [(path, message)]

    def test_without_arms_there_is_nothing_to_run(self, tmp_path: Path):
        (tmp_path / "empty.yaml").write_text(CLIP[: CLIP.index("arms:")] + "arms: {}\n")
        with pytest.raises(ConfigError, match=r"^arms has no arm; write one a line, such as clip: \{\}$"):
            load_suite("empty", folder=tmp_path)

    def test_an_arm_that_is_there_twice_is_refused_and_not_lost(self, write: Write):
        with pytest.raises(ConfigError, match=r"suite=.*clips.yaml is not readable as YAML: clip is there twice"):
            load_suite(write(("no-clip: {", "clip: {")))

    def test_every_arm_s_faults_are_told_at_once(self, write: Write):
        path = write(("steps: 9", "clip_eps: -1"), ("extends: dapo", "extends: dappo"))
        with pytest.raises(ConfigError) as caught:
            load_suite(path)
        assert [problem.path for problem in caught.value.problems] == ["grpo.clip_eps", "preset"]

    def test_overrides_can_make_arms_equal_and_are_then_refused(self, write: Write):
        with pytest.raises(ConfigError, match=r"arms.no-clip has the same config as arms.clip"):
            load_suite(
                write(
                    (
                        "no-clip: {grpo: {loss_type: grpo_no_clip, steps: 9}}",
                        "no-clip: {grpo: {loss_type: grpo_no_clip}}",
                    )
                ),
                {"grpo.loss_type": "grpo_clip"},
            )

    def test_overrides_do_not_set_the_seed(self, write: Write):
        with pytest.raises(ConfigError, match=r"seed=3 is given.*\(arm clip, no-clip, dapo\)"):
            load_suite(write(), {"seed": 3})

    def test_an_unknown_field_of_the_overrides_is_told_once(self, write: Write):
        with pytest.raises(ConfigError, match=r"^grpo\.stepz=3 is not a field") as caught:
            load_suite(write(), {"grpo.stepz": 3})
        assert len(caught.value.problems) == 1

    def test_an_unknown_suite_names_the_known_ones(self):
        with pytest.raises(
            ConfigError,
            match=r"^suite=clips does not exist; use one of finqa-contexts, kl-or-clip, .*sft-ceiling, or the",
        ):
            load_suite("clips")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("- a\n", "must be a mapping of names to values"),
            ("a: [\n", "is not readable as YAML"),
            ("a: \xff", "is not readable as YAML"),
        ],
    )
    def test_a_file_that_is_no_mapping_is_refused(self, tmp_path: Path, text: str, message: str):
        (tmp_path / "odd.yaml").write_text(text, encoding="latin-1")
        with pytest.raises(ConfigError, match=message):
            load_suite("odd", folder=tmp_path)


def test_dapo_in_full_is_dapo_with_its_sampling_and_its_penalty_on_length():
    changes = diff(load_preset("dapo").config, load_preset("dapo_full").config)
    assert {path: value for path, (_, value) in changes.items()} == {
        "rollout.dynamic_sampling": True,
        "truncation.overlong_buffer": 12,
    }
    assert load_preset("dapo_full").config.rollout.dynamic_sampling_max_draws == 4
