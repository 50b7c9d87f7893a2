from pathlib import Path

import pytest

from engine.errors import GrpoLabError
from engine.jobs import resources
from engine.jobs.resources import Gpu, Resources, find_resources, parse_gpus, pick_gpu


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(resources, "available_cores", lambda: 16)
    monkeypatch.setattr(resources, "list_gpus", lambda _environment: ())
    return monkeypatch


@pytest.mark.parametrize(
    ("cores", "expected"), [(1, Resources(1, 1)), (2, Resources(1, 2)), (5, Resources(2, 2)), (16, Resources(4, 4))]
)
def test_each_run_gets_two_cores_or_more_and_there_are_at_most_four(
    machine: pytest.MonkeyPatch, cores: int, expected: Resources
) -> None:
    machine.setattr(resources, "available_cores", lambda: cores)
    assert find_resources({}) == expected


def test_the_variable_overrules_and_the_cores_are_divided_anew(machine: pytest.MonkeyPatch) -> None:
    assert find_resources({"GRPO_LAB_MAX_RUNS": "8"}) == Resources(8, 2)


@pytest.mark.parametrize("text", ["0", "-1", "two"])
def test_a_bad_variable_is_refused_with_the_way_out(machine: pytest.MonkeyPatch, text: str) -> None:
    with pytest.raises(GrpoLabError, match=f"GRPO_LAB_MAX_RUNS={text} must be a whole number above 0; set it to 1"):
        find_resources({"GRPO_LAB_MAX_RUNS": text})


def test_with_gpus_there_is_one_run_for_each(machine: pytest.MonkeyPatch) -> None:
    listed = parse_gpus("0, GPU-a, NVIDIA H200, 143771, 142000\n1, GPU-b, NVIDIA H200, 143771, 7168\nno devices\n")
    machine.setattr(resources, "list_gpus", lambda _environment: listed)
    assert listed[1] == Gpu("1", "GPU-b", "NVIDIA H200", 143771 << 20, 7 << 30)
    assert find_resources({}) == Resources(2, 8, ("0", "1"))


def test_the_gpu_with_the_fewest_runs_is_picked() -> None:
    assert pick_gpu(("0", "1"), ["0"]) == "1"
    assert pick_gpu(("0", "1"), ["0", "1"]) == "0"
    assert pick_gpu((), []) is None


@pytest.mark.parametrize(
    ("visible", "indices"), [(None, ["0", "1"]), ("1", ["1"]), ("GPU-a", ["0"]), ("0,GPU-b", ["0", "1"]), ("", [])]
)
def test_only_the_gpus_that_the_worker_may_see_are_shared_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, visible: str | None, indices: list[str]
) -> None:
    driver = tmp_path / "nvidia-smi"
    lines = [f"echo '{index}, GPU-{uuid}, NVIDIA H200, 143771, 9'" for index, uuid in enumerate("ab")]
    driver.write_text("\n".join(["#!/bin/sh", *lines]))
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(resources, "_torch_is_cpu_only", lambda: False)
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert [gpu.index for gpu in resources.list_gpus(environment)] == indices


@pytest.mark.parametrize(("text", "cores"), [("150000 100000\n", 2), ("400000 100000", 4), ("max 100000", 1 << 16)])
def test_a_container_quota_is_read(tmp_path: Path, text: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert resources._quota_cores(tmp_path / "cpu.max") == cores
