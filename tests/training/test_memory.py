import mmap
import sys

import psutil
import pytest
import torch

from engine.training import memory
from engine.training.memory import CudaPeak, ResidentNow, ResidentPeak, memory_probe

MIB = 2**20
CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_peak_of_a_phase_holds_what_was_freed_in_it_and_not_what_came_before():
    probe = memory_probe(CPU)
    assert isinstance(probe, ResidentPeak)

    def peak_of(mebibytes: int) -> float:
        before = psutil.Process().memory_info().rss
        probe.reset()
        # Straight from the system: an allocator may hold enough freed memory to answer without it.
        with mmap.mmap(-1, mebibytes * MIB) as pages:
            pages[:: mmap.PAGESIZE] = bytes(len(pages) // mmap.PAGESIZE)
        return (probe.peak() - before) / MIB

    assert peak_of(300) == pytest.approx(300, abs=20)
    assert peak_of(100) == pytest.approx(100, abs=20)


def test_where_the_peak_cannot_be_reset_the_resident_set_of_now_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "CLEAR_REFS", tmp_path / "no folder" / "clear_refs")
    probe = memory_probe(CPU)
    assert isinstance(probe, ResidentNow)
    probe.reset()
    held = torch.ones(100 * MIB // 4)
    assert probe.peak() >= held.nbytes
    assert probe.peak() == pytest.approx(psutil.Process().memory_info().rss, abs=MIB)


def test_where_the_peak_cannot_be_read_the_resident_set_of_now_is_taken(monkeypatch, tmp_path):
    for name, text in (("CLEAR_REFS", ""), ("STATUS", "Name:\tpython\n")):
        path = tmp_path / name
        path.write_text(text)
        monkeypatch.setattr(memory, name, path)
    assert isinstance(memory_probe(CPU), ResidentNow)


def test_on_a_gpu_the_allocator_is_asked_for_that_device(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: calls.append(("reset", device)))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: calls.append(("peak", device)) or 5 * MIB)
    device = torch.device("cuda", 1)
    probe = memory_probe(device)
    assert isinstance(probe, CudaPeak)
    probe.reset()
    assert probe.peak() == 5 * MIB
    assert calls == [("reset", device), ("peak", device)]
