import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import parse_config
from engine.config.prompt_forms import PROMPT_FORMS
from engine.errors import TaskError
from engine.policy.policy import TINY_MATH, load_tokenizer
from engine.tasks import prompts
from engine.tasks.prompts import load_prompt, prompt_of

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_r1_zero_is_the_published_text_and_leaves_the_reasoning_open():
    assert load_prompt("r1_zero").render("What is 1 + 1?") == (
        "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. "
        "The Assistant first thinks about the reasoning process in the mind and then provides the User with "
        "the answer. The reasoning process is enclosed within <think> </think> and answer is enclosed within "
        "<answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> <answer> answer "
        "here </answer>.\nUser: What is 1 + 1?\nAssistant: <think>"
    )


def test_question_only_is_the_question_alone():
    assert load_prompt("question_only").render("What is 1 + 1?") == "What is 1 + 1?"


def test_each_prompt_brings_its_reward_and_its_stop_strings():
    assert (load_prompt("r1_zero").reward, load_prompt("r1_zero").stop_strings) == ("answer_tag", ("</answer>",))
    assert (load_prompt("question_only").reward, load_prompt("question_only").stop_strings) == ("boxed", ())


@pytest.mark.parametrize("name", sorted(PROMPT_FORMS))
def test_a_prompt_asks_for_what_its_reward_reads_and_stops_where_that_ends(name):
    asks_for = {
        "answer_tag": "</think> <answer>",
        "boxed": "\\boxed{}",
        "gsm8k": "\n#### ",
        "finqa": "\nAnswer: ",
        "plain": "a number only",
    }
    prompt = load_prompt(name)
    assert asks_for[prompt.reward] in prompt.text or name == "question_only"
    assert prompt.stop_strings == (("</answer>",) if prompt.reward == "answer_tag" else ())


def test_where_tags_are_asked_for_the_reasoning_is_left_open():
    assert load_prompt("reasoning").render("Why?").endswith("Problem: Why?\n\nSolution: <think>")


def test_a_run_takes_its_prompt_with_its_reward():
    prompt = prompt_of(parse_config({"prompt.name": "minimal"}))
    assert (prompt.name, prompt.reward, prompt.stop_strings) == ("minimal", "boxed", ())
    assert prompt.render("What is 1 + 1?") == "What is 1 + 1?\nPut the final answer in \\boxed{}.\n"


def test_a_reward_that_the_config_names_takes_the_place_of_the_prompts():
    prompt = prompt_of(parse_config({"prompt.name": "r1_zero", "prompt.reward": "boxed"}))
    assert (prompt.reward, prompt.stop_strings) == ("boxed", ("</answer>",))


def test_problems_with_a_verifier_bring_its_reward():
    config = parse_config({"task.name": "reasoning_gym:chain_sum", "prompt.name": "reasoning"})
    assert prompt_of(config).reward == "reasoning_gym"


def test_a_prompt_of_ones_own_is_used_as_it_is_written():
    text = "Frage: {question}\nAntwort: {"
    config = parse_config(
        {"prompt.name": "custom", "prompt.text": text, "prompt.reward": "boxed", "prompt.stop_string": "\n\n"}
    )
    prompt = prompt_of(config)
    assert prompt.render("1 + 1?") == "Frage: 1 + 1?\nAntwort: {"
    assert (prompt.reward, prompt.stop_strings) == ("boxed", ("\n\n",))


def test_a_chat_prompt_is_put_into_the_models_template_with_the_assistants_turn_opened():
    tokenizer = load_tokenizer(str(TINY_MATH))
    tokenizer.chat_template = CHAT_TEMPLATE
    prompt = load_prompt("chat").in_chat(tokenizer)
    assert prompt.render("What is {x}?") == (
        "<|user|>What is {x}?\n\nReason step by step, and put the final answer in \\boxed{}.<|end|><|assistant|>"
    )
    assert (prompt.reward, prompt.stop_strings, prompt.chat) == ("boxed", (), False)


def test_number_only_is_the_question_and_one_sentence_in_the_models_template():
    tokenizer = load_tokenizer(str(TINY_MATH))
    tokenizer.chat_template = CHAT_TEMPLATE
    prompt = load_prompt("number_only").in_chat(tokenizer)
    assert prompt.render("What is 3 + 4?") == "<|user|>What is 3 + 4? Answer with a number only.<|end|><|assistant|>"
    assert (prompt.reward, prompt.stop_strings) == ("plain", ())


def test_a_start_token_of_the_template_is_left_to_the_tokenizer():
    class Tokenizer:
        chat_template = "…"
        bos_token = "<s>"
        bos_token_id = 1

        def apply_chat_template(self, conversation, *, tokenize, add_generation_prompt):
            return f"<s>[INST]{conversation[0]['content']}[/INST]"

        def __call__(self, text):
            return type("Encoded", (), {"input_ids": [1, *map(ord, text)]})

    class WithoutStart(Tokenizer):
        def __call__(self, text):
            return type("Encoded", (), {"input_ids": list(map(ord, text))})

    assert load_prompt("chat").in_chat(Tokenizer()).text.startswith("[INST]")
    assert load_prompt("chat").in_chat(WithoutStart()).text.startswith("<s>[INST]")


def test_a_tokenizer_without_a_chat_template_is_refused():
    with pytest.raises(TaskError, match=r"^prompt\.name=chat: the tokenizer of this model has no chat template"):
        load_prompt("chat").in_chat(load_tokenizer(str(TINY_MATH)))


def test_a_chat_template_that_drops_the_message_is_refused():
    tokenizer = load_tokenizer(str(TINY_MATH))
    tokenizer.chat_template = "Hello."
    with pytest.raises(TaskError, match="the chat template holds the message 0 times"):
        load_prompt("chat").in_chat(tokenizer)


def test_a_chat_prompt_is_not_rendered_without_its_template_but_its_message_can_be_read():
    with pytest.raises(TaskError, match="put it into a model's template"):
        load_prompt("chat").render("Why?")
    assert load_prompt("chat").message("Why?").startswith("Why?\n\nReason step by step")


def test_other_prompts_need_no_template():
    assert load_prompt("r1_zero").in_chat(object()) == load_prompt("r1_zero")


@given(st.text())
def test_a_question_with_braces_comes_through_unchanged(question):
    assert load_prompt("question_only").render(question) == question
    assert f"\nUser: {question}\nAssistant: <think>" in load_prompt("r1_zero").render(question)


def test_a_question_that_holds_the_placeholder_is_not_filled_again():
    assert load_prompt("question_only").render("Write {question} and {0}.") == "Write {question} and {0}."


def test_an_unknown_prompt_is_refused_with_the_known_ones():
    with pytest.raises(TaskError, match=r"^prompt: 'r2_zero' .* question_only, r1_zero"):
        load_prompt("r2_zero")


def test_a_prompt_file_without_a_place_for_the_question_is_refused(tmp_path, monkeypatch):
    (tmp_path / "r1_zero.txt").write_text("Solve it.")
    monkeypatch.setattr(prompts, "PROMPT_FOLDER", tmp_path)
    with pytest.raises(TaskError, match=r"holds \{question\} 0 times"):
        load_prompt("r1_zero")
