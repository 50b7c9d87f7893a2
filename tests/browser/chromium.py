"""Headless Chromium, and a page that remembers what went wrong in it."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

Scheme = Literal["light", "dark"]

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(slots=True)
class Troubles:
    """Errors in the console, exceptions nobody caught, and dialogs, as they came."""

    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


def find_chromium() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextlib.contextmanager
def open_browser(executable: str) -> Iterator[Browser]:
    """Start a headless browser, and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_window(
    browser: Browser, *, width: int = 1440, height: int = 1000, scheme: Scheme = "light"
) -> Iterator[tuple[Page, Troubles]]:
    """Open an empty page in a session of its own; return it with the list of its troubles, which grows."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    troubles = Troubles()

    def said(message: ConsoleMessage) -> None:
        where = str(message.location.get("url", ""))
        # At a deep link Streamlit asks for its own files beneath the page's path first, and takes "not found" well.
        if message.type == "error" and "/_stcore/" not in where:
            troubles.errors.append(f"{message.text} ({where})")

    def asked(dialog: Dialog) -> None:
        troubles.dialogs.append(dialog.message)
        dialog.dismiss()

    page = context.new_page()
    page.on("console", said)
    page.on("pageerror", lambda error: troubles.errors.append(str(error)))
    page.on("dialog", asked)
    page.set_default_timeout(30_000)
    try:
        yield page, troubles
    finally:
        context.close()
