"""The tokenizer of tiny-math: one token a byte, so that any text comes back exactly, and a few phrases.

The phrases are the tags, the sentences of the prompts and the openings that the corpus writes. A published
prompt so costs about twenty tokens, where bytes alone would cost four hundred.
"""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

END = "<|end|>"
PAD = "<|pad|>"
MAX_POSITIONS = 512

TAGS = ("<think>", "</think>", "<answer>", "</answer>", "\\boxed{")
PROMPT_PHRASES = (
    "A conversation between User and Assistant.",
    " The User asks a question, and the Assistant solves it.",
    " The Assistant first thinks about the reasoning process in the mind and then provides the User with the answer.",
    " The reasoning process is enclosed within <think> </think> and answer is enclosed within <answer> "
    "</answer> tags, respectively, i.e., <think> reasoning process here </think> <answer> answer here "
    "</answer>.",
    "\nUser: ",
    "\nAssistant: ",
    "What is ",
    " + ",
    " - ",
)
OPENINGS = (
    " Step by step:",
    " Let me see:",
    " Quickly:",
    " Easy.",
    " A guess:",
    " So",
    " The answer is",
)
PHRASES = TAGS + PROMPT_PHRASES + OPENINGS


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer: the end token, the pad token, 256 bytes, the phrases, in this order."""
    vocabulary = {token: index for index, token in enumerate([END, PAD, *sorted(ByteLevel.alphabet())])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in (END, PAD)])
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in PHRASES])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        unk_token=END,  # never drawn; left out, AutoTokenizer adds one beyond the vocabulary of the model
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
        padding_side="left",
    )


def save_tokenizer(folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`."""
    build_tokenizer().save_pretrained(folder)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer in `folder`, exact for any text.

    AutoTokenizer takes any Qwen2 folder for a Qwen2 vocabulary and composes Unicode (NFC) first: same ids
    for prompts and for all text that is composed already, but `e` + combining accent comes back as `é`.
    """
    return PreTrainedTokenizerFast.from_pretrained(folder)
