"""One browser for these tests, and labs that start when a test asks for them."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import NAMES, Troubles, find_chromium, open_browser, open_window
from tests.browser.lab import Lab, open_lab
from tests.store.filled import fill_demo_store

# The package is their scope: while the browser is open, an event loop runs in this thread, in the way of other tests.


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        reason = f"no Chromium on the path ({', '.join(NAMES)}); Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with open_browser(executable) as opened:
        yield opened


@pytest.fixture
def window(browser: Browser) -> Iterator[tuple[Page, Troubles]]:
    with open_window(browser) as opened:
        yield opened


@pytest.fixture
def page(window: tuple[Page, Troubles]) -> Page:
    return window[0]


@pytest.fixture(scope="module")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """An empty store with a worker. Chromium is asked for first: without it nothing is started."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    with open_lab(tmp_path_factory.mktemp(name), name) as started:
        yield started


@pytest.fixture(scope="package")
def demo_lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The demo runs, and nobody who would touch them."""
    with open_lab(tmp_path_factory.mktemp("demo"), "demo", worker=False, fill=fill_demo_store) as started:
        yield started


@pytest.fixture(scope="module")
def empty_lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory.mktemp("empty"), "empty", worker=False) as started:
        yield started
