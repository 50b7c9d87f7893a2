"""Going to a page, and knowing when it is drawn."""

from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.chromium import Scheme
from tests.browser.lab import ARTEFACTS
from tests.browser.plots import wait_for_figures

# The least number of figures on each page once it is drawn.
FIGURES = {"runs": 0, "new-run": 0, "run": 9, "groups": 1, "compare": 4}
PATHS = {"runs": "", "new-run": "new_run", "run": "run", "groups": "groups", "compare": "compare"}
BACKGROUNDS: Mapping[Scheme, str] = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
_IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
_NOTHING_PENDING = """() => document.fonts.status === 'loaded'
  && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]')
  && [...document.querySelectorAll('[data-testid="stDataFrame"]')].every((table) => table.querySelector('canvas'))
"""


def settle(page: Page, *, figures: int = 0, title: bool = True) -> None:
    """Wait until the page's script has ended, its title and so many figures are drawn, and nothing is stale."""
    if title:
        page.locator("h1").first.wait_for()
    page.locator(_IDLE).wait_for()
    wait_for_figures(page, figures)
    page.wait_for_function(_NOTHING_PENDING, polling=100)


def metric(page: Page, label: str) -> str:
    """Return the value of a figure with a label, such as Status."""
    return (
        page.locator('[data-testid="stMetric"]', has_text=label).locator('[data-testid="stMetricValue"]').inner_text()
    )


def shoot(page: Page, name: str, width: int, scheme: Scheme, folder: Path = ARTEFACTS / "screenshots") -> Path:
    """Keep a picture of the window and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{width}-{scheme}.png"
    page.screenshot(path=path, animations="disabled")
    return path
