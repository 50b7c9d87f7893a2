"""Sampling with vLLM in the trainer's own process, its weights pushed over after each update."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.errors import GrpoLabError
from engine.rollout.protocol import SamplingParams
from engine.rollout.stops import DECODING, StopStrings, StopTable
from engine.types import Completion, FinishReason, FloatArray

# Read by vLLM when it is imported. Its engine in a process of its own could not be given the trainer's tensors; tracing
# small models costs more than it saves, and vLLM without a usage report needs no network.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_CONFIGURE_LOGGING": "1",
}
_ON_CPU = {"TORCHDYNAMO_DISABLE": "1"}
_DEEP_SLEEP = 2  # weights are dropped as well, since newer ones come before the next completion


class RolloutError(GrpoLabError):
    """vLLM is not there, cannot be started, or failed."""


class VllmEngine:
    """A rollout engine of vLLM beside the trainer's `model`, which it never changes and whose weights it samples with.

    Weights are pushed before the first completion after `weights_changed()` or `rest()`, once and whole, and what vLLM
    had kept of earlier prompts is forgotten then. On a CUDA device `rest()` gives its memory to the update: the
    weights come back first, then the newer ones, then the room for keys and values. On a CPU it does nothing.

    Equal prompts, parameters and seed give equal completions on one machine. CUDA has not been run.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        folder: Path | str,
        *,
        max_model_len: int,
        max_rows: int,
        dtype: str,
        gpu_memory_utilization: float = 0.4,
        cache_bytes: int | None = None,
        enforce_eager: bool = True,
        tensor_parallel_size: int = 1,
        seed: int = 0,
    ) -> None:
        """Start vLLM with the shape of the model in `folder`; its weights come from `model` before the first prompt.

        `cache_bytes` is the room for keys and values on a CPU, `gpu_memory_utilization` the share of a GPU's memory
        that vLLM takes in all, while it samples.

        Raises:
            RolloutError: if vLLM is not installed or does not start.
        """
        self._model, self._tokenizer = model, tokenizer
        self._on_gpu = model.device.type == "cuda"
        self._stops = StopTable(tokenizer, model.config.get_text_config().vocab_size)
        self._asleep, self._stale = False, True
        self.weight_version, self._newest = -1, 0  # none has arrived
        vllm, state = import_vllm(on_gpu=self._on_gpu), torch.get_rng_state()
        # A prompt computed in parts rewinds its request's generator, which a generator of the CPU refuses.
        memory: dict[str, Any] = {"kv_cache_memory_bytes": cache_bytes, "enable_chunked_prefill": False}
        if self._on_gpu:
            memory = {"gpu_memory_utilization": gpu_memory_utilization, "enable_sleep_mode": True}
        try:
            self._llm = vllm.LLM(
                model=str(folder),
                dtype=dtype,
                max_model_len=max_model_len,
                max_num_seqs=max_rows,
                enforce_eager=enforce_eager or not self._on_gpu,
                tensor_parallel_size=tensor_parallel_size,
                logprobs_mode="processed_logprobs",  # of what is drawn from, at its temperature
                disable_log_stats=True,
                seed=seed,
                **memory,
            )
        except Exception as error:  # whatever it is that keeps it from starting, the run ends with it
            raise RolloutError(f"rollout.engine=vllm does not start: {_line(error)}; {_WAYS_OUT}") from error
        torch.set_rng_state(state)  # which vLLM has seeded anew

    def generate(
        self, prompts: Sequence[Sequence[int]], *, n: int, sampling: SamplingParams, seed: int
    ) -> list[list[Completion]]:
        """Return `n` completions for each prompt (see RolloutEngine).

        Two log-probs are vLLM's: those of the first `min_tokens` tokens are renormalised over the tokens allowed, and
        greedy ones are those at temperature 1.

        Raises:
            RolloutError: if vLLM fails.
        """
        requests = [(prompt, row) for prompt in prompts for row in range(n)]
        seeds = np.random.SeedSequence(seed).generate_state(len(requests), np.uint32)
        try:
            self._wake_with_new_weights()
            outputs = self._llm.generate(
                [{"prompt_token_ids": list(prompt)} for prompt, _ in requests],
                [self._parameters(sampling, int(each)) for each in seeds],
                use_tqdm=False,
            )
        except Exception as error:  # an engine that has failed once is of no further use
            raise RolloutError(f"rollout.engine=vllm failed: {_line(error)}; {_WAYS_OUT}") from error
        stops = self._stops.of(sampling.stop_strings)
        found = [self._completion(output.outputs[0], stops) for output in outputs]
        return [found[index * n : (index + 1) * n] for index in range(len(prompts))]

    def weights_changed(self, version: int) -> None:
        """Say that the model's weights are those of `version`: they are pushed before the next completion."""
        self._stale, self._newest = True, version

    def rest(self) -> None:
        """Give memory back until the next completion is asked for."""
        if self._on_gpu and not self._asleep:
            self._llm.sleep(level=_DEEP_SLEEP)
            self._asleep = self._stale = True

    def _wake_with_new_weights(self) -> None:
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        if self._stale:
            # The state dict, not the parameters: a tied output layer is in the former alone.
            weights = iter(self._model.state_dict().items())
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
        if self._asleep:
            self._llm.wake_up(tags=["kv_cache"])
        if self._stale:
            self._llm.reset_prefix_cache()
            self.weight_version = self._newest
        self._asleep = self._stale = False

    def _parameters(self, sampling: SamplingParams, seed: int) -> Any:
        from vllm import SamplingParams as VllmSamplingParams

        return VllmSamplingParams(
            temperature=0.0 if sampling.greedy else sampling.temperature,
            max_tokens=sampling.max_tokens,
            min_tokens=sampling.min_tokens,
            stop=list(sampling.stop_strings),
            include_stop_str_in_output=True,
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            top_p=sampling.top_p,
            top_k=sampling.top_k or 0,
            min_p=sampling.min_p,
            repetition_penalty=sampling.repetition_penalty,
            logprobs=0,
            seed=seed,
        )

    def _completion(self, output: Any, stops: StopStrings) -> Completion:
        token_ids = tuple(output.token_ids)
        stop = output.stop_reason if isinstance(output.stop_reason, str) else None
        reason: FinishReason = "length" if output.finish_reason == "length" else "eos" if stop is None else "stop"
        shown = list(token_ids[:-1] if reason == "eos" else token_ids)
        text = str(self._tokenizer.decode(shown, **DECODING))
        return Completion(
            token_ids=token_ids,
            text=text if stop is None else stops.cut(token_ids, text, stop),
            sampler_log_probs=_log_probs(output, token_ids),
            finish_reason=reason,
            stop=stop,
        )


_WAYS_OUT = "choose rollout.engine=transformers, or see the run's log"


def _log_probs(output: Any, token_ids: Sequence[int]) -> FloatArray:
    values = [at_token[token].logprob for token, at_token in zip(token_ids, output.logprobs, strict=True)]
    return np.array(values, np.float32)


def import_vllm(*, on_gpu: bool) -> Any:
    """Return the package vllm, imported with what it reads from the environment.

    Raises:
        RolloutError: if it is not installed, or not whole.
    """
    if find_spec("vllm") is None:
        raise RolloutError("rollout.engine=vllm: vLLM is not installed; run `make vllm`, or use engine=transformers")
    for name, value in (_ENVIRONMENT if on_gpu else _ENVIRONMENT | _ON_CPU).items():
        os.environ.setdefault(name, value)
    try:
        import vllm
    except Exception as error:  # a half-installed package fails in ways of its own
        raise RolloutError(f"rollout.engine=vllm: vLLM cannot be imported: {_line(error)}; run `make vllm`") from error
    return vllm


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:500]
