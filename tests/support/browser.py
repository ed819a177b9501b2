"""A headless Chromium that is on this machine already; a test that needs one is skipped without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A browser that hangs is given up; a busy machine may take long for each step.
WAIT_MS = 300_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def headless() -> Iterator[Browser]:
    """The browser, closed behind it."""
    path = find_browser()
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is in PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root may not use the sandbox; the pages are our own.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=WAIT_MS
        )
        try:
            yield browser
        finally:
            browser.close()


def axe_source() -> str:
    """axe-core, as its package brings it."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
