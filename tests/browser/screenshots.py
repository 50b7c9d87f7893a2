"""The images of the README, from real runs: `python -m tests.browser.screenshots`.

Starts a lab on a store of its own and trains three presets to their end and a fourth run that is still going on the
page Runs. `--steps` shortens them; `--out` chooses the folder.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page

from engine.presets import load_preset
from engine.store import queue
from engine.store.database import Database
from engine.store.reads import groups, steps_with_groups
from engine.store.status import ENDED
from tests.browser.chromium import NAMES, Scheme, find_chromium, open_browser, open_window
from tests.browser.lab import ROOT, Lab, open_lab
from tests.browser.visits import FIGURES, PATHS, settle, shoot

PRESETS = ("quick-start", "no-baseline", "low-learning-rate")
SIZES = {1440: 1000, 800: 1100}
# Pages with less on them.
HEIGHTS = {"runs": 440, "new-run": 900}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
MOST_BYTES = 300_000
# An hour each: this is no test, and a busy machine may take its time.
PATIENCE = 3600.0


def train(lab: Lab, steps: int) -> list[str]:
    """Train each preset to its end and return the ids of the runs."""
    run_ids = []
    for preset in PRESETS:
        run_id = launch(lab, preset, steps)
        print(f"{preset}: {steps} steps", end="", flush=True)
        run = lab.wait_for(run_id, lambda run: run.status in ENDED, PATIENCE)
        print(f", {run.status} after {run.seconds:.0f} s, accuracy {run.first_accuracy} → {run.last_accuracy}")
        assert run.status == "succeeded"
        run_ids.append(run_id)
    return run_ids


def launch(lab: Lab, preset: str, steps: int, seed: int = 0) -> str:
    """Queue a preset with so many steps and return the id of the run."""
    config = load_preset(preset, {"grpo.steps": steps, "seed": seed}).config
    return queue.enqueue(lab.db, config, name=preset, preset=preset)


def mixed_group(db: Database, run_id: str) -> tuple[int, int]:
    """Return step and index of a group that is about half right, from the first tenth of a run."""
    steps = steps_with_groups(db, run_id)
    step = steps[len(steps) // 10]
    best = min(groups(db, run_id, step), key=lambda group: abs(group.n_correct - group.size / 2))
    return step, best.index


def addresses(lab: Lab, run_ids: Sequence[str]) -> dict[str, str]:
    """Return the address of each page, by its name in the file."""
    step, index = mixed_group(lab.db, run_ids[0])
    queries = {
        "run": f"?run={run_ids[0]}",
        "groups": f"?run={run_ids[0]}&step={step}&group={index}",
        "compare": f"?runs={','.join(run_ids)}",
    }
    return {name: lab.at(path + queries.get(name, "")) for name, path in PATHS.items()}


def come_to_the_point(page: Page, name: str) -> None:
    """Show what the page is about: a changed field in the form, a group with its completions."""
    if name == "new-run":
        page.get_by_label("Learning rate", exact=True).fill("3e-4")
        page.locator('[data-testid="stDataFrame"] canvas').first.wait_for()
    if name == "groups":
        page.locator("h3").first.evaluate("(heading) => heading.scrollIntoView({ block: 'start' })")


def photograph(browser: Browser, lab: Lab, run_ids: Sequence[str], out: Path) -> None:
    """Keep a picture of every page at every size and in both schemes."""
    for name, address in addresses(lab, run_ids).items():
        for width, height in SIZES.items():
            with open_window(browser, width=width, height=HEIGHTS.get(name, height)) as (page, troubles):
                page.goto(address)
                for scheme in SCHEMES:
                    page.emulate_media(color_scheme=scheme)
                    settle(page, figures=FIGURES[name])
                    come_to_the_point(page, name)
                    # A table repaints its canvas in the new colours a moment after the page has changed.
                    page.wait_for_timeout(400)
                    path = shoot(page, name, width, scheme, out)
                    size = path.stat().st_size
                    print(f"{path.name}: {size:,} bytes")
                    assert size <= MOST_BYTES
                assert not troubles.errors, troubles.errors


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the images and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100, help="steps of each run (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder (default: docs/images)")
    given = parser.parse_args(arguments)
    executable = find_chromium()
    if executable is None:
        print(f"No Chromium on the path ({', '.join(NAMES)}); Debian: apt-get install chromium", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        open_lab(Path(folder), "screenshots") as lab,
        open_browser(executable) as browser,
    ):
        run_ids = train(lab, given.steps)
        going = launch(lab, "quick-start", given.steps, seed=1)
        lab.wait_for(going, lambda run: run.step >= 0.4 * given.steps, PATIENCE)
        photograph(browser, lab, run_ids, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
