"""Pages over a filled store: reading, frame, figures and the whole script, beside the same rows read by plain sqlite3.

Compare shows 6 runs of 2,000 steps in 8 charts, Run all charts of one of them, Groups a step of 32 groups and one
group of 8 completions out of 200 such steps. A page is what Streamlit's AppTest runs of it, server side: a session of
its own each time (`opened`), and again in the same session with nothing new in the store (`refreshed`). The browser's
work is not in it. CPU milliseconds (user and system) hardly depend on what else the machine does; pages also have
theirs on the wall. The floor says how far a page is from reading alone; it is no page.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from streamlit.testing.v1 import AppTest

from benchmarks.entry import ROOT, Entry, run_alone, say
from benchmarks.filled_store import Filled, Size, fill
from dashboard.components.charts import CHARTS
from dashboard.components.completions import completion_table
from dashboard.figures.advantages import advantages_figure
from dashboard.figures.overlay import RunLine, overlay_figure
from dashboard.frames.axes import with_x
from dashboard.frames.groups import group_table
from dashboard.frames.metrics import tidy
from engine.store.database import Database, file_url, open_database
from engine.store.reads import completions, groups, metrics, steps_with_groups

REPETITIONS = 7
CHARTED = (
    *("reward", "entropy", "completions/mean_length", "loss"),
    *("grad_norm", "groups/mixed", "step_time", "memory/rss"),
)
ADDRESS = "GRPO_LAB_DATABASE_URL"
FLOOR, OPENED, REFRESHED = "floor", "opened", "refreshed"
POINTS = "SELECT run_id, name, step, value, kind FROM metric WHERE run_id = ?"
OF_STEP = 'SELECT * FROM "group" JOIN problem USING (problem_key) WHERE run_id = ? AND step = ?'

Parts = Mapping[str, Callable[[], object]]


def measure(size: Size | None = None, *, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return CPU milliseconds of each part of each page, medians over `repetitions`.

    Raises:
        RuntimeError: if a page shows an error, or fewer figures than it should.
    """
    size = size or Size()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        db = open_database(file_url(path))
        began = time.monotonic()
        filled = fill(db, size)
        say(f"pages: store of {path.stat().st_size / 2**20:.0f} MiB filled in {time.monotonic() - began:.0f} s")
        with address(db.url), closing(sqlite3.connect(path)) as plain:
            pages = {
                f"compare {size.runs}x{size.steps}x{len(CHARTED)}": compare_parts(db, plain, filled),
                f"run {size.steps} steps": run_parts(db, plain, filled),
                f"groups {size.steps_with_groups}x{size.groups}": groups_parts(db, plain, filled, size),
            }
            entries = [entry for name, parts in pages.items() for entry in timed_page(name, parts, repetitions)]
        db.close()
    return entries


@contextmanager
def address(url: str) -> Iterator[None]:
    """Let pages open the store at `url` meanwhile."""
    before = os.environ.get(ADDRESS)
    os.environ[ADDRESS] = url
    try:
        yield
    finally:
        if before is None:
            del os.environ[ADDRESS]
        else:
            os.environ[ADDRESS] = before


def timed_page(name: str, parts: Parts, repetitions: int) -> list[Entry]:
    """Return the entries of one page: each part in turn, after one round that is not counted."""
    times: dict[str, list[tuple[float, float]]] = {part: [] for part in parts}
    for number in range(repetitions + 1):
        for part, action in parts.items():
            cpu, wall = time.process_time(), time.perf_counter()
            action()
            if number:
                times[part].append((1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)))
    cpu_ms, wall_ms = ({part: median(time[kind] for time in found) for part, found in times.items()} for kind in (0, 1))
    say(f"pages: {name}: {', '.join(f'{part} {spent:.3g} ms' for part, spent in cpu_ms.items())}")

    def entry(part: str, unit: str, spent: Mapping[str, float], how: str = "") -> Entry:
        return Entry(f"pages/{name}: {part}{how}", spent[part], spent[FLOOR], "sqlite3, its rows", unit, repetitions)

    of_cpu = [entry(part, "CPU ms", cpu_ms) for part in parts if part != FLOOR]
    return of_cpu + [entry(part, "wall ms", wall_ms, ", by the wall") for part in (OPENED, REFRESHED)]


def compare_parts(db: Database, plain: sqlite3.Connection, filled: Filled) -> Parts:
    """Return the parts of the page Compare with every run with curves on it."""
    table = metrics(db, filled.curves, CHARTED)
    frame = tidy(table)
    lines = [RunLine(run_id, f"run {place}", place) for place, run_id in enumerate(filled.curves, 1)]

    def floor() -> None:
        for run_id in filled.curves:
            for name in CHARTED:
                plain.execute(f"{POINTS} AND name = ? ORDER BY step", (run_id, name)).fetchall()

    def figures() -> None:
        for name in CHARTED:
            overlay_figure(with_x(frame[frame["name"] == name], "step"), lines, name).to_json()

    shown = {"runs": ",".join(filled.curves)}
    return {
        FLOOR: floor,
        "read": lambda: metrics(db, filled.curves, CHARTED),
        "frame": lambda: tidy(table),
        "figures": figures,
        **whole("compare", shown, figures=len(CHARTED), state={"compare_metrics": list(CHARTED)}),
    }


def run_parts(db: Database, plain: sqlite3.Connection, filled: Filled) -> Parts:
    """Return the parts of the page Run with one run with curves on it."""
    run_id = filled.curves[0]
    table = metrics(db, [run_id], None)
    frame, logged = tidy(table), set(table.names)
    charts = [chart for chart in CHARTS if not chart.needs or chart.needs in logged]

    def figures() -> None:
        for chart in charts:
            chart.draw(frame).to_json()

    return {
        FLOOR: lambda: plain.execute(POINTS, (run_id,)).fetchall(),
        "read": lambda: metrics(db, [run_id], None),
        "frame": lambda: tidy(table),
        "figures": figures,
        **whole("run", {"run": run_id}, figures=len(charts)),
    }


def groups_parts(db: Database, plain: sqlite3.Connection, filled: Filled, size: Size) -> Parts:
    """Return the parts of the page Groups with the step in the middle of the run on it."""
    run_id, step = filled.groups, size.steps_with_groups // 2 + 1
    of_step = groups(db, run_id, step)
    members = completions(db, of_step[0].group_id)

    def floor() -> None:
        plain.execute('SELECT DISTINCT step FROM "group" WHERE run_id = ?', (run_id,)).fetchall()
        plain.execute(OF_STEP, (run_id, step)).fetchall()
        plain.execute("SELECT * FROM completion WHERE group_id = ?", (of_step[0].group_id,)).fetchall()

    def read() -> None:
        steps_with_groups(db, run_id)
        completions(db, groups(db, run_id, step)[0].group_id)

    def frame() -> None:
        group_table(of_step)
        completion_table(members)

    labels = [f"#{each.index}" for each in members]
    return {
        FLOOR: floor,
        "read": read,
        "frame": frame,
        "figures": lambda: advantages_figure([each.advantage for each in members], labels).to_json(),
        **whole("groups", {"run": run_id, "step": str(step)}, figures=1),
    }


def whole(page: str, shown: Mapping[str, str], *, figures: int, state: Mapping[str, object] | None = None) -> Parts:
    """Return the script of a page in a session of its own, and again in that session."""
    sessions: list[AppTest] = []

    def opened() -> None:
        at = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=120)
        at.switch_page(f"views/{page}.py")
        for name, value in shown.items():
            at.query_params[name] = value
        for name, kept in (state or {}).items():
            at.session_state[name] = kept
        check_page(at.run(), page, figures)
        sessions[:] = [at]

    return {OPENED: opened, REFRESHED: lambda: check_page(sessions[0].run(), page, figures)}


def check_page(at: AppTest, page: str, figures: int) -> None:
    """Check that a page shows what it should.

    Raises:
        RuntimeError: if it shows an error, or another number of figures.
    """
    if at.exception:
        raise RuntimeError(f"the page {page} shows an error: {at.exception[0].value}")
    drawn = sum('"figure"' in element.proto.json for element in at.get("bidi_component") if element.proto.json)
    if drawn != figures:
        raise RuntimeError(f"the page {page} shows {drawn} figures, not {figures}")


if __name__ == "__main__":
    run_alone("pages", __doc__, measure, REPETITIONS)
