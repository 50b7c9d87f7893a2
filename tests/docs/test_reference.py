import re
from pathlib import Path

import pytest

from engine.metrics import METRICS
from engine.reference import DOCS, config_page, metrics_page

ROOT = DOCS.parent
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def test_the_config_page_is_made_from_the_config():
    assert (DOCS / "config.md").read_text() == config_page(), "run: python -m engine.reference"


def test_the_metrics_page_is_made_from_the_metrics():
    assert (DOCS / "metrics.md").read_text() == metrics_page(), "run: python -m engine.reference"


def test_every_metric_is_defined_in_one_sentence():
    assert [metric.name for metric in METRICS.values() if not metric.sentence.endswith(".")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path):
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_the_repository_that_a_page_names_exists(page: Path):
    named = re.findall(r"`((?:engine|dashboard|tests|docs|benchmarks)/[\w./-]+)`", page.read_text())
    missing = [name for name in named if "<" not in name and not (ROOT / name).exists()]
    assert missing == []
