"""CPU seconds, user and system: what a measurement costs however busy the machine is. For either side's environment."""

import resource
import time

import psutil


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children, those that have ended and those that live."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_of, psutil.Process().children(recursive=True)))
    )


def _of(child: psutil.Process) -> float:
    try:
        times = child.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
