"""The bytes that torch allocates in a call, counted by its profiler."""

import json
from collections.abc import Callable
from pathlib import Path

from torch.profiler import ProfilerActivity, profile


def peak_of(call: Callable[[], object], trace: Path) -> int:
    """Return the most bytes that were allocated in `call` and not yet given back; `trace` is a file to write."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    profiled.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
