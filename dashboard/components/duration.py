"""Durations in words."""

import math


def duration(seconds: float | None) -> str:
    """Return `8 s`, `2 min 05 s`, `3 h 07 min` or `2 d 4 h`; nothing for None, and never less than 0 s."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(whole / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(whole / 3600)
    return f"{hours // 24} d {hours % 24} h"
