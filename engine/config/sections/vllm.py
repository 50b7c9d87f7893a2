"""How vLLM samples, where it does."""

from typing import Literal

from engine.config.sections.section import Section, about


class VllmConfig(Section):
    """vLLM in the trainer's process, where `rollout.engine` is vllm (needs vllm)."""

    sampler_dtype: Literal["model", "float32", "bfloat16"] = about(
        "model", "Number format of vLLM's copy of the weights; `model` takes model.dtype."
    )
    max_model_len: int | None = about(
        None,
        "Longest prompt and completion together; empty allows prompts of 1,024 tokens, or what the model has.",
        unit="tokens",
        ge=16,
        le=1_000_000,
        words=("vllm_max_model_length", "vllm_max_model_len"),
    )
    gpu_memory_utilization: float = about(
        0.4,
        "Share of a GPU's memory that vLLM takes in all while it samples; it gives it back for the update.",
        gt=0.0,
        lt=1.0,
        words=("vllm_gpu_memory_utilization",),
    )
    cpu_cache: int = about(1024, "Room for keys and values where vLLM runs on a CPU.", unit="MiB", ge=16, le=1_000_000)
    enforce_eager: bool = about(True, "Run without captured graphs: slower on a GPU, and starts in seconds.")
    tensor_parallel_size: int = about(
        1, "GPUs that vLLM splits the model over.", unit="GPUs", ge=1, le=64, words=("vllm_tensor_parallel_size",)
    )
