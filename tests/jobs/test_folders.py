from pathlib import Path

from engine.jobs.folders import log_tail, runs_folder


def test_runs_lie_beside_the_database_file() -> None:
    assert runs_folder("sqlite:////data/lab/runs.db", {}) == Path("/data/lab/runs")


def test_a_server_database_leaves_them_in_the_working_folder() -> None:
    assert runs_folder("postgresql://user@server/lab", {}) == Path.cwd() / "runs"


def test_the_variable_overrules() -> None:
    assert runs_folder("sqlite:////data/runs.db", {"GRPO_LAB_RUNS_DIR": "/big/disk"}) == Path("/big/disk")


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "attempt-1.log"
    assert log_tail(log) == ""
    log.write_text("".join(f"line {number}\n" for number in range(10_000)) + "caf\xe9")
    assert log_tail(log, lines=3) == "line 9998\nline 9999\ncaf\xe9"
