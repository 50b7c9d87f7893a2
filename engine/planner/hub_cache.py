"""The local cache of the Hugging Face hub, looked into without a request."""

from pathlib import Path


def cached_file(name: str, filename: str) -> Path | None:
    """Return a file of a hub model in the local cache; None where it is not there, or `name` is no name of the hub."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(name, filename)
    except HFValidationError:
        return None
    return Path(path) if isinstance(path, str) else None


def is_hub_name(name: str) -> bool:
    """Return whether the hub may have a model of this name."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True
