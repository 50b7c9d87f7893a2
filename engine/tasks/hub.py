"""Datasets of the Hugging Face hub: from the local cache without a request, else downloaded."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.errors import TaskError

PROBE_SECONDS = 10.0


def hub_rows(name: str, subset: str | None) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of every split of dataset `name`, under the hub's names of the splits.

    What is in the cache is taken as it is there, and nothing is asked of the hub: a run and its resume see the same.
    Raises TaskError, within seconds, where it is neither cached nor to be had.
    """
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    try:
        with _offline():
            loaded = load_dataset(name, subset)
    except (OSError, ValueError) as not_cached:
        _probe(name, subset, not_cached)
        try:
            loaded = load_dataset(name, subset)
        except (OSError, ValueError) as error:
            raise _refusal(name, subset, error) from error
    return {str(split): list(rows) for split, rows in loaded.items()}


def _probe(name: str, subset: str | None, not_cached: Exception) -> None:
    """Ask the hub once whether it has the dataset: `datasets` itself would go on trying for half a minute."""
    import datasets
    from huggingface_hub import HfApi

    if datasets.config.HF_HUB_OFFLINE:
        raise _refusal(name, subset, not_cached) from not_cached
    try:
        HfApi(endpoint=datasets.config.HF_ENDPOINT).dataset_info(name, timeout=PROBE_SECONDS)
    except Exception as error:  # of whichever HTTP library the hub's client uses
        raise _refusal(name, subset, error) from error


def _refusal(name: str, subset: str | None, error: Exception) -> TaskError:
    import datasets

    shown = f"{name}:{subset}" if subset else name
    reason = " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])
    return TaskError(
        f"task.path: dataset {shown} is not in the cache ({datasets.config.HF_DATASETS_CACHE}) and cannot be had from "
        f"the hub ({reason}); set task.path to a local file or folder of it, or fill the cache where there is a "
        "network and set HF_HOME to it."
    )


@contextmanager
def _offline() -> Iterator[None]:
    """Keep `datasets` from asking the hub."""
    import datasets

    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before
