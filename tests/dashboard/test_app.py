import subprocess
import sys
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.components.navigation import COMPARE, GROUPS, NEW_RUN, RUN, RUNS
from dashboard.components.swatch import swatch
from dashboard.figures.colours import COLOURS, DASHES, run_colour, run_dash
from engine.store.database import Database
from tests.dashboard.open_page import APP, filled

ROOT = Path(__file__).parents[2]


def test_the_shell_opens_on_the_runs(db: Database) -> None:
    at = AppTest.from_file(APP, default_timeout=60).run()
    assert not at.exception
    assert at.title[0].value == "Runs"


def test_every_page_of_the_menu_has_its_file() -> None:
    for path in (RUNS, NEW_RUN, RUN, GROUPS, COMPARE):
        assert (ROOT / "dashboard" / path).is_file()


def test_the_web_process_never_imports_torch() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "dashboard").rglob("*.py")]
    imported = [name for name in modules if not name.startswith(("dashboard.views.", "dashboard.app"))]
    script = (
        f"import importlib, sys\nfor name in {imported!r}: importlib.import_module(name)\n"
        "print([name for name in ('torch', 'transformers', 'engine.training', 'engine.jobs') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_script_run_of_every_page_leaves_torch_out(db: Database, tmp_path: Path) -> None:
    filled(db)
    script = (
        "import sys\nfrom streamlit.testing.v1 import AppTest\n"
        f"for name in ('runs', 'new_run', 'run', 'groups', 'compare'):\n"
        f"    at = AppTest.from_file({APP!r}, default_timeout=60).switch_page(f'views/{{name}}.py').run()\n"
        "    assert not at.exception, at.exception\n"
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_ten_runs_have_ten_colours_and_the_eleventh_another_dash() -> None:
    assert len({run_colour(ordinal) for ordinal in range(1, 11)}) == len(COLOURS) == 10
    assert run_colour(1) == run_colour(11)
    assert [run_dash(ordinal) for ordinal in (1, 10, 11, 21)] == ["solid", "solid", DASHES[1], DASHES[2]]
    assert swatch(1) != swatch(11)


def test_every_colour_stands_out_on_white_and_on_the_dark_background() -> None:
    for colour in COLOURS:
        assert _contrast(colour, "#ffffff") > 2.5
        assert _contrast(colour, "#14171a") > 3.0


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
