"""Numbers as text, with their unit."""

import math

from engine.metrics import metric_of


def share(value: float | None) -> str:
    """Return `74.6 %`; a dash where there is no value."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def number(value: float | None, unit: str = "") -> str:
    """Return a value in its unit; a dash for None, and `NaN` or `∞` as they are."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if unit == "share":
        return share(value)
    if unit == "bytes":
        return f"{value / 2**20:,.0f} MiB"
    text = f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def metric_value(name: str, value: float | None) -> str:
    """Return the value of a metric in the metric's own unit."""
    return number(value, metric_of(name).unit)
