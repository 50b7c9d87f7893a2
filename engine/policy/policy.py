"""A policy: a causal language model and its tokenizer, loaded from and saved to a folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.errors import PolicyError as PolicyError
from engine.planner.catalogue import SMOLLM2

TINY_MATH = Path(__file__).parent / "tiny_math" / "weights"
_GENERIC_TOKENIZERS = ("TokenizersBackend", "PreTrainedTokenizerFast")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Policy:
    """A causal LM of transformers with its fast tokenizer, on one device."""

    model: Any
    tokenizer: Any

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        device: torch.device = self.model.device
        return device

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a rendered prompt, as the tokenizer makes them."""
        return encode_prompt(self.tokenizer, text)

    def encode_response(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a response as it follows a prompt, ended by the end token.

        Raises:
            PolicyError: if the tokenizer has no end token.
        """
        end = self.tokenizer.eos_token_id
        if end is None:
            raise PolicyError("the tokenizer has no end token, with which every response ends; set its eos_token")
        ids = tuple(self.tokenizer(text, add_special_tokens=False).input_ids)
        return ids if ids and ids[-1] == end else (*ids, end)


def load_policy(name: str, *, dtype: str = "float32", device: str = "auto") -> Policy:
    """Load `tiny-math`, `smollm2-135m`, a model in the local cache or on the hub, or a local folder.

    Only safetensors are read, and no code that comes with a model is run. A folder with an adapter gives the model
    that it was trained on, with the adapter added to its weights.

    Raises:
        PolicyError: if the model is not there, or the device does not exist.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    from engine.policy.adapter import has_adapter, load_merged
    from engine.policy.attention import use_attention

    disable_progress_bar()
    if has_adapter(Path(name)):
        return load_merged(Path(name), dtype=dtype, device=device)
    source = model_source(name)
    target = resolve_device(device)
    options: dict[str, Any] = {"dtype": _DTYPES[dtype], "use_safetensors": True, "attn_implementation": "sdpa"}
    tokenizer = load_tokenizer_of(name)
    try:
        model = AutoModelForCausalLM.from_pretrained(source, **options)
    except (OSError, ValueError) as error:
        raise _not_loadable(name, error) from error
    use_attention(model)
    return Policy(model=model.to(target).eval(), tokenizer=tokenizer)


def model_source(name: str) -> str:
    """Return the folder, or the name on the hub, that a model's name stands for.

    Raises:
        PolicyError: if it is smollm2-135m, which is not there and cannot be made.
    """
    from engine.policy.smollm2 import smollm2_folder

    if name == SMOLLM2:
        return str(smollm2_folder())
    return str(TINY_MATH) if name == "tiny-math" else name


def load_tokenizer_of(name: str) -> Any:
    """Load the tokenizer of the policy that `load_policy(name)` would give, without its weights.

    Raises:
        PolicyError: if it is not there.
    """
    from engine.policy.smollm2 import smollm2_tokenizer

    if name == SMOLLM2:
        return smollm2_tokenizer()
    try:
        return load_tokenizer(model_source(name))
    except (OSError, ValueError) as error:
        raise _not_loadable(name, error) from error


def encode_prompt(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Return the token ids of a rendered prompt, as the tokenizer makes them."""
    return tuple(tokenizer(text).input_ids)


def _not_loadable(name: str, error: Exception) -> PolicyError:
    return PolicyError(
        f"model.name={name} cannot be loaded: {error}; use tiny-math, smollm2-135m, a hub name that is in the cache or "
        "can be reached, or a folder with config.json, tokenizer.json and model.safetensors"
    )


def load_tokenizer(source: str) -> Any:
    """Load the tokenizer of a hub model or a local folder.

    A folder whose tokenizer.json says everything (as tiny-math's) is read as it stands: for every Qwen2 folder,
    AutoTokenizer would put Unicode composition before it, and text would not come back as it was.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    described = Path(source) / "tokenizer_config.json"
    generic = described.is_file() and json.loads(described.read_text()).get("tokenizer_class") in _GENERIC_TOKENIZERS
    return (PreTrainedTokenizerFast if generic else AutoTokenizer).from_pretrained(source)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write weights (safetensors), config and tokenizer, so that `load_policy(folder)` gives the policy back.

    Of a policy with an adapter the adapter alone is written: `load_adapter` puts it back beside its model.
    """
    from engine.policy.adapter import is_adapted, save_adapter

    if is_adapted(policy):
        save_adapter(policy, folder)
    else:
        policy.model.save_pretrained(folder, safe_serialization=True)
    policy.tokenizer.save_pretrained(folder)


def resolve_device(device: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` stands for.

    Raises:
        PolicyError: if `cuda` is asked for and there is no GPU.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise PolicyError("model.device=cuda, but torch finds no GPU here; use auto or cpu, or install a CUDA torch")
    return torch.device(device)
