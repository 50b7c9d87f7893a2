import shlex
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.launch import launch
from engine.config import fields, parse_assignment
from engine.store.database import Database
from engine.store.reads import get_run, list_runs
from tests.dashboard.open_page import filled, open_page


def field(at: AppTest, path: str):
    key = f"new_run:{path}"
    inputs = (*at.text_input, *at.text_area, *at.selectbox, *at.multiselect, *at.segmented_control)
    return next(each for each in inputs if each.key and (each.key == key or each.key.startswith(f"{key}:select:")))


def launch_button(at: AppTest):
    return next(each for each in at.button if each.label.startswith("Launch"))


def shown(at: AppTest) -> str:
    return "\n".join(each.value for each in (*at.markdown, *at.caption, *at.info, *at.warning))


def test_every_field_of_the_config_is_in_the_form_with_its_help(db: Database) -> None:
    at = open_page("new_run")
    field(at, "prompt.name").set_value("custom").run()
    for each in fields():
        assert each.sentence in field(at, each.path).help


def test_the_form_opens_on_the_quick_start_ready_to_launch(db: Database) -> None:
    at = open_page("new_run")
    assert not launch_button(at).disabled
    assert "tiny\\-math learns arithmetic" in shown(at)
    assert "no run like it yet" in shown(at)
    assert "**16** prompts per step" in shown(at)
    assert "The clip cannot act" in shown(at)
    assert "Nothing differs from quick\\-start" in shown(at)


def test_the_expected_time_comes_from_runs_like_it(db: Database) -> None:
    filled(db)
    at = open_page("new_run")
    field(at, "rollout.rollout_batch_size").set_value("16")
    field(at, "rollout.group_size").set_value("4").run()
    assert "the mean of 3 runs like it" in shown(at)


def test_a_problem_stands_under_its_field_and_keeps_the_launch_back(db: Database) -> None:
    at = open_page("new_run")
    field(at, "rollout.rollout_batch_size").set_value("100").run()
    said = [each.value for each in at.markdown if "is not a multiple of" in each.value]
    assert len(said) == 2, "once under the field, once beside the button"
    assert "use 96 or 104" in said[0]
    assert launch_button(at).disabled
    assert launch_button(at).help == "1 to correct first"
    field(at, "rollout.rollout_batch_size").set_value("96").run()
    assert not launch_button(at).disabled
    assert "**12** prompts per step" in shown(at)


def test_what_differs_is_shown_beside_the_command_and_the_yaml(db: Database) -> None:
    at = open_page("new_run")
    field(at, "optimizer.learning_rate").set_value("1e-3").run()
    assert at.dataframe[0].value.values.tolist() == [["optimizer.learning_rate", "1e-4", "0.001"]]
    terminal, yaml = (each.value for each in at.code)
    assert terminal == "grpo-lab launch quick-start \\\n  --set optimizer.learning_rate=0.001"
    assert "learning_rate: 0.001" in yaml


def test_what_a_cut_distribution_means_is_said_beside_the_launch(db: Database) -> None:
    at = open_page("new_run")
    assert "renormalised" not in shown(at)
    field(at, "rollout.top_p").set_value("0.9").run()
    (said,) = [each.value for each in at.caption if "renormalised" in each.value]
    assert said.startswith(":material/info: top")


def test_every_section_has_a_fold_with_its_title(db: Database) -> None:
    labels = [each.label for each in open_page("new_run").expander]
    titles = [label.partition(":")[0] for label in labels]
    assert {"Model", "LoRA", "Rollout", "Truncation", "GRPO", "KL", "Entropy", "Optimizer"} <= set(titles)
    assert max(map(len, labels)) < 80, "one line in a narrow window"


def test_another_preset_fills_the_form_anew(db: Database) -> None:
    at = open_page("new_run")
    field(at, "grpo.steps").set_value("7").run()
    field(at, "preset").set_value("no-baseline").run()
    assert field(at, "grpo.steps").value == "100"
    assert field(at, "grpo.baseline").value == "none"
    assert field(at, "name").value == "no-baseline"
    assert "Raw rewards instead of advantages" in shown(at)


def test_launching_queues_one_run_and_opens_its_page(db: Database) -> None:
    at = open_page("new_run")
    field(at, "optimizer.learning_rate").set_value("1e-3")
    field(at, "name").set_value("mine").run()
    launch_button(at).click().run()
    assert not at.exception
    (run,) = list_runs(db)
    assert (run.name, run.preset, run.run_config().optimizer.learning_rate) == ("mine", "quick-start", 1e-3)
    assert at.query_params["run"] == run.run_id


def test_a_double_click_launches_once(db: Database) -> None:
    at = open_page("new_run")
    draft = at.session_state["new_run_draft"]
    launch_button(at).click().run()
    # The second click carries the token that the form was opened with.
    assert launch(db, draft) == [run.run_id for run in list_runs(db)]
    assert len(list_runs(db)) == 1
    assert at.session_state["new_run_draft"].token != draft.token


def test_a_click_sent_again_for_a_button_that_is_gone_does_nothing(db: Database) -> None:
    at = open_page("new_run")
    key = launch_button(at).key
    launch_button(at).click().run()
    at.switch_page("views/new_run.py").run()
    assert key not in [each.key for each in at.button]
    assert len(list_runs(db)) == 1


def test_a_second_launch_from_the_same_form_is_a_second_run(db: Database) -> None:
    at = open_page("new_run")
    launch_button(at).click().run()
    at.switch_page("views/new_run.py").run()
    launch_button(at).click().run()
    assert len(list_runs(db)) == 2


def test_three_seeds_are_three_runs(db: Database) -> None:
    at = open_page("new_run")
    field(at, "seeds").set_value("3").run()
    assert launch_button(at).label == "Launch 3 runs"
    launch_button(at).click().run()
    runs = list_runs(db)
    assert sorted(run.seed for run in runs) == [0, 1, 2]
    assert len({run.arm for run in runs}) == 1
    assert at.query_params["run"] == next(run.run_id for run in runs if run.seed == 0)


def test_what_was_typed_survives_a_visit_to_another_page(db: Database) -> None:
    at = open_page("new_run")
    field(at, "grpo.steps").set_value("33").run()
    field(at, "grpo.loss_type").set_value("grpo_no_clip").run()
    at.switch_page("views/runs.py").run()
    at.switch_page("views/new_run.py").run()
    assert field(at, "grpo.steps").value == "33"
    assert field(at, "grpo.loss_type").value == "grpo_no_clip"


def test_a_fork_is_filled_from_its_parent_and_goes_on_from_its_checkpoint(db: Database) -> None:
    *_, failed = filled(db)
    at = open_page("new_run", fork=failed, step="10")
    assert "goes on from its checkpoint at step 10" in at.info[0].value
    assert "high \\<b\\>rate\\</b\\> \\$x\\$" in at.info[0].value
    assert field(at, "optimizer.learning_rate").value == "0.003"
    field(at, "optimizer.learning_rate").set_value("1e-4").run()
    assert at.code[0].value.startswith(f"grpo-lab fork {failed}@10")
    launch_button(at).click().run()
    assert not at.exception
    run = get_run(db, at.query_params["run"])
    assert run is not None
    assert (run.parent_run_id, run.parent_step, run.step) == (failed, 10, 10)


def test_a_fork_without_steps_left_is_refused_in_words(db: Database) -> None:
    succeeded, *_ = filled(db)
    at = open_page("new_run", fork=succeeded, step="20")
    assert launch_button(at).disabled
    assert any("use at least 21" in each.value for each in at.markdown)


def test_a_fork_can_be_left_for_a_preset(db: Database) -> None:
    *_, failed = filled(db)
    at = open_page("new_run", fork=failed)
    next(each for each in at.button if each.label == "Start from a preset instead").click().run()
    assert not at.exception
    assert not at.info
    assert field(at, "preset").value == "quick-start"
    assert "fork" not in at.query_params


def test_a_fork_of_a_run_that_does_not_exist_says_so(db: Database) -> None:
    at = open_page("new_run", fork="no*such")
    assert "No run has the id no\\*such" in at.warning[0].value
    assert not launch_button(at).disabled


def test_an_address_can_name_a_preset(db: Database) -> None:
    assert field(open_page("new_run", preset="off-policy"), "grpo.train_batch_size").value == "64"


def test_a_checkpoint_that_is_not_there_is_said_at_the_launch_and_nothing_is_queued(db: Database) -> None:
    at = open_page("new_run")
    field(at, "model.init_from").set_value("run:nothing@40").run()
    launch_button(at).click().run()
    assert not at.exception
    assert "run=nothing does not exist" in shown(at)
    assert list_runs(db) == []
    field(at, "model.init_from").set_value("run:nothing").run()
    assert launch_button(at).disabled
    assert "names no checkpoint; write run" in shown(at)


def test_the_columns_of_a_file_are_offered_with_their_first_values(db: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"prompt": "What is *1*?", "meta": {"result": 4}}\n')
    at = open_page("new_run")
    field(at, "task.name").set_value("jsonl").run()
    assert field(at, "task.question_column").key == "new_run:task.question_column"
    field(at, "task.path").set_value(f"{file}x").run()
    assert "there is no" in shown(at)
    assert not launch_button(at).disabled, "a worker elsewhere may have it"
    field(at, "task.path").set_value(str(file)).run()
    assert "there is no" not in shown(at)
    assert "The data has no column question; choose one" in shown(at)
    columns = field(at, "task.question_column")
    assert columns.options == ["empty", "prompt · What is *1*?", "meta.result · 4"]
    columns.set_value("prompt").run()
    field(at, "task.answer_column").set_value("meta.result").run()
    assert "In the first row: What is \\*1\\*?" in field(at, "task.question_column").help
    assert "has no column" not in shown(at)
    config = at.session_state["new_run_draft"].checked.config
    assert (config.task.question_column, config.task.answer_column) == ("prompt", "meta.result")


def test_a_column_that_the_data_lacks_stays_until_another_is_chosen(db: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("question,answer\na,1\n")
    at = open_page("new_run")
    field(at, "task.name").set_value("math").run()
    field(at, "task.question_column").set_value("other").run()
    field(at, "task.path").set_value(str(file)).run()
    columns = field(at, "task.question_column")
    assert columns.value == "other"
    assert columns.options[-1] == "other (not there)"
    assert "Reads `answer`" in shown(at)


def test_only_the_fields_of_the_chosen_task_stand_open(db: Database) -> None:
    at = open_page("new_run")
    hidden = next(each for each in at.expander if each.label == "Of other tasks")

    def keys() -> set[str]:
        return {each.key.removeprefix("new_run:") for each in (*hidden.text_input, *hidden.selectbox) if each.key}

    assert {"task.path", "task.generator", "task.context"} <= keys()
    assert "task.largest_operand" not in keys()
    field(at, "task.name").set_value("finqa").run()
    hidden = next(each for each in at.expander if each.label == "Of other tasks")
    assert {"task.largest_operand", "task.generator"} <= keys()
    assert not {"task.path", "task.context"} & keys()


def test_a_custom_prompt_is_typed_on_several_lines_and_read_by_a_reward_of_the_list(db: Database) -> None:
    at = open_page("new_run")
    assert "new_run:prompt.text" not in [each.key for each in at.text_area]
    field(at, "prompt.name").set_value("custom").run()
    assert "text has \\{question\\} 0 times" in shown(at)
    assert launch_button(at).disabled
    field(at, "prompt.text").set_value("Q: {question}\nA: \\boxed{").run()
    reward = field(at, "prompt.reward")
    assert {"boxed", "gsm8k", "answer_tag"} <= set(reward.options)
    reward.set_value("boxed").run()
    assert not launch_button(at).disabled
    command = at.code[0].value
    words = shlex.split(command.replace("\\\n", " "))
    changes = dict(parse_assignment(words[at + 1]) for at, word in enumerate(words) if word == "--set")
    assert changes["prompt.text"] == "Q: {question}\nA: \\boxed{"
    # Back to another prompt: the text has no place there, so it stays in sight until it is gone.
    field(at, "prompt.name").set_value("minimal").run()
    assert "text is used by prompt\\.name=custom only" in shown(at)
    field(at, "prompt.text").set_value("").run()
    assert not launch_button(at).disabled


def test_the_reward_is_made_a_placebo_by_one_click(db: Database) -> None:
    at = open_page("new_run")
    field(at, "reward.placebo").set_value("random").run()
    assert at.session_state["new_run_draft"].checked.config.reward.placebo == "random"
    assert "the reward says nothing of the answer" in shown(at)


def test_the_generators_that_are_installed_are_offered(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.components.field_input.generators", lambda: ("chain_sum", "gcd"))
    at = open_page("new_run")
    assert field(at, "task.generator").key == "new_run:task.generator"
    field(at, "task.name").set_value("reasoning_gym").run()
    assert field(at, "task.generator").options == ["empty", "chain_sum", "gcd"]
    field(at, "task.generator").set_value("gcd").run()
    assert at.session_state["new_run_draft"].checked.config.task.generator == "gcd"


def test_a_choice_stays_when_the_words_for_it_change(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.components.field_input.generators", lambda: ("chain_sum", "gcd"))
    at = open_page("new_run")
    assert field(at, "prompt.reward").options[0] == "the prompt's (answer_tag)"
    field(at, "task.name").set_value("reasoning_gym").run()
    field(at, "task.generator").set_value("chain_sum").run()
    assert field(at, "prompt.reward").options[0] == "the prompt's (reasoning_gym)"
    assert at.session_state["new_run_draft"].checked.config.prompt.reward is None
