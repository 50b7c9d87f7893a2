"""Bytes as a person says them."""

MIB, GIB = 2**20, 2**30


def size(n_bytes: float) -> str:
    """Return `0.4 MiB`, `41 MiB`, `2.9 GiB` or `1,694 GiB`."""
    scale, unit = (GIB, "GiB") if n_bytes >= GIB else (MIB, "MiB")
    number = n_bytes / scale
    return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
