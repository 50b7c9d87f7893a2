import pytest

from engine.config import parse_config, remarks, to_yaml
from engine.errors import ConfigError
from engine.tasks.prompts import PROMPT_FOLDER


def messages(**settings) -> dict[str, str]:
    """The problems of a config, by field."""
    with pytest.raises(ConfigError) as caught:
        parse_config({name.replace("__", "."): value for name, value in settings.items()})
    return {problem.path: problem.message for problem in caught.value.problems}


def said(**settings) -> str:
    return "\n".join(remarks(parse_config({name.replace("__", "."): value for name, value in settings.items()})))


def test_a_name_may_bring_its_generator_or_its_path():
    gym = parse_config({"task.name": "reasoning_gym:chain_sum"}).task
    own = parse_config({"task.name": "jsonl:data/mine.jsonl"}).task
    assert (gym.name, gym.generator) == ("reasoning_gym", "chain_sum")
    assert (own.name, own.path) == ("jsonl", "data/mine.jsonl")


def test_a_config_with_such_a_name_reads_back_from_its_yaml():
    import yaml

    config = parse_config({"task.name": "jsonl:a:b.jsonl"})
    assert config.task.path == "a:b.jsonl"
    assert parse_config(yaml.safe_load(to_yaml(config))) == config


def test_a_name_and_a_field_that_say_different_things_are_refused():
    (message,) = messages(task__name="jsonl:a.jsonl", task__path="b.jsonl").values()
    assert "name=jsonl:a.jsonl and path=b.jsonl say different things; keep one" in message


def test_an_unknown_task_is_refused_with_those_that_there_are():
    for name in ("gsm9k", "gsm8k:main"):
        assert "arithmetic, gsm8k, math, finqa, reasoning_gym, jsonl" in messages(task__name=name)["task.name"]


@pytest.mark.parametrize(("name", "field"), [("jsonl", "path"), ("finqa", "path"), ("reasoning_gym", "generator")])
def test_a_task_that_cannot_go_without_a_field_asks_for_it(name, field):
    message = messages(task__name=name)[f"task.{field}"]
    assert message.startswith(f"{field} is empty, and task.name={name} needs one; give")


def test_gsm8k_and_math_need_nothing_but_their_name():
    assert parse_config({"task.name": "gsm8k"}).task.path is None
    assert parse_config({"task.name": "math"}).task.path is None


def test_a_prompt_of_ones_own_needs_a_text_and_a_reward():
    found = messages(prompt__name="custom")
    assert found["prompt.text"].startswith("text has {question} 0 times")
    assert "name the one that reads what your text asks for" in found["prompt.reward"]
    assert "2 times" in messages(prompt__name="custom", prompt__text="{question} {question}")["prompt.text"]


def test_a_text_or_stop_string_beside_a_named_prompt_is_refused():
    found = messages(prompt__text="{question}", prompt__stop_string="\n")
    assert found["prompt.text"].startswith("text is used by prompt.name=custom only, not by prompt.name=r1_zero")
    assert found["prompt.stop_string"].endswith("leave it empty or set prompt.name=custom")


def test_a_verifier_that_reads_tags_is_refused_behind_a_prompt_that_asks_for_none():
    message = messages(task__name="reasoning_gym:chain_sum", prompt__name="minimal")["prompt.name"]
    assert message.endswith("which reward=reasoning_gym reads; use r1_zero or reasoning")


def test_the_embedded_model_is_not_put_into_a_chat():
    for name in ("chat", "number_only"):
        assert "model.name=tiny-math has none" in messages(prompt__name=name)["prompt.name"]
    assert parse_config({"prompt.name": "chat", "model.name": "some/model"}).prompt.name == "chat"


def test_a_reward_that_is_not_the_prompts_is_remarked_on():
    assert "prompt.reward=boxed is not the reward of prompt.name=r1_zero, which is answer_tag" in said(
        prompt__reward="boxed"
    )
    assert "is not the reward" not in said(prompt__reward="answer_tag")
    gym = said(task__name="reasoning_gym:chain_sum", prompt__reward="answer_tag")
    assert "prompt.reward=answer_tag is not the reward of task.name=reasoning_gym, which is reasoning_gym" in gym


def test_fields_that_the_task_does_not_read_are_remarked_on():
    assert "task.path, task.operands_max without effect: task.name=reasoning_gym does not read it." in said(
        task__name="reasoning_gym:chain_sum", task__path="a.jsonl", task__operands_max=5
    )
    assert "without effect: task" not in said(task__operands_max=5)
    assert "context_rows=3 has no effect with context=gold" in said(
        task__name="finqa", task__path="data", task__context_rows=3
    )


def test_what_blurs_the_test_is_remarked_on():
    assert "no longer that of unseen problems" in said(task__name="gsm8k", task__validation_from="test")
    assert "trained on problems that it is then tested on" in said(task__name="gsm8k", task__overlap="keep")
    assert "unseen" not in said(task__name="gsm8k")


def test_a_reward_that_compares_exactly_is_remarked_on_where_gold_is_unrounded():
    assert "reward=answer_tag compares exactly" in said(task__name="finqa", task__path="data")
    assert "compares exactly" not in said(task__name="finqa", task__path="data", prompt__name="answer_line")
    assert "compares exactly" not in said(task__name="gsm8k")


def test_every_prompt_file_is_a_prompt_of_the_config():
    from engine.config.prompt_forms import PROMPT_FORMS

    assert {file.stem for file in PROMPT_FOLDER.glob("*.txt")} == set(PROMPT_FORMS)
    for name in PROMPT_FORMS:
        assert parse_config({"prompt.name": name, "model.name": "some/model"}).prompt.name == name
