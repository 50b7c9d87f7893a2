"""What this machine has to give: cores and GPUs, and how they are shared out among runs."""

import math
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.errors import GrpoLabError

CORES_PER_RUN = 2
MOST_RUNS = 4
MAX_RUNS_VARIABLE = "GRPO_LAB_MAX_RUNS"
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the driver lists it; memory in bytes."""

    index: str
    uuid: str
    name: str
    memory_total: int
    memory_free: int


@dataclass(frozen=True, slots=True)
class Resources:
    """How many runs at once, threads for each, and the indices of the GPUs they take turns on."""

    max_runs: int
    threads: int
    gpus: tuple[str, ...] = ()

    def __str__(self) -> str:
        gpus = f"GPU {', '.join(self.gpus)}" if self.gpus else "no GPU"
        return f"at most {self.max_runs} run(s) at once, {self.threads} CPU thread(s) each, {gpus}"


def find_resources(environment: Mapping[str, str] = os.environ) -> Resources:
    """Return what this machine can run at once.

    Without a GPU that is one run per two cores, at most four; with GPUs one run each. GRPO_LAB_MAX_RUNS overrules
    both. The cores are divided evenly, because OpenMP with more threads than cores is many times slower.

    Raises:
        GrpoLabError: if GRPO_LAB_MAX_RUNS is not a whole number above zero.
    """
    cores, gpus = available_cores(), tuple(gpu.index for gpu in list_gpus(environment))
    wanted = _max_runs(environment)
    max_runs = wanted or len(gpus) or max(1, min(MOST_RUNS, cores // CORES_PER_RUN))
    return Resources(max_runs, max(1, cores // max_runs), gpus)


def pick_gpu(gpus: Iterable[str], in_use: Iterable[str]) -> str | None:
    """Return the GPU with the fewest runs on it, the first of equals; None if there is no GPU."""
    taken = list(in_use)
    return min(gpus, key=taken.count, default=None)


def available_cores() -> int:
    """Return the cores this process may use: its affinity, or a container's quota if that is less."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota_cores()))


def list_gpus(environment: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the GPUs that the driver lists and CUDA_VISIBLE_DEVICES allows; none if torch is built for CPUs only."""
    program = shutil.which("nvidia-smi")
    if program is None or _torch_is_cpu_only():
        return ()
    query = [program, "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()  # a driver that does not answer offers nothing to run on
    visible = environment.get(VISIBLE_GPUS)
    allowed = None if visible is None else {part.strip() for part in visible.split(",")}
    return tuple(gpu for gpu in parse_gpus(answer) if allowed is None or {gpu.index, gpu.uuid} & allowed)


def parse_gpus(answer: str) -> tuple[Gpu, ...]:
    """Read nvidia-smi's lines `index, uuid, name, MiB in all, MiB free`; lines that are not such are passed over."""
    gpus = []
    for line in answer.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 5 and parts[3].isdigit() and parts[4].isdigit():
            gpus.append(Gpu(parts[0], parts[1], parts[2], int(parts[3]) << 20, int(parts[4]) << 20))
    return tuple(gpus)


def _max_runs(environment: Mapping[str, str]) -> int | None:
    text = environment.get(MAX_RUNS_VARIABLE, "")
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise GrpoLabError(f"{MAX_RUNS_VARIABLE}={text} must be a whole number above 0; set it to 1 or unset it")
    return int(text)


def _quota_cores(path: Path = _CGROUP_QUOTA) -> int:
    """Cores of the container's CPU quota, rounded up; a very large number where there is none."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
        return 1 << 16


def _torch_is_cpu_only() -> bool:
    try:
        return version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return True
