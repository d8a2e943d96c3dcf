"""A real browser for the tests of pages: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.support import TIME_LIMIT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def open_browser() -> Iterator["Browser"]:
    """Start the browser; without one the test is skipped with the reason, or fails where one is required."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _refuse("the package playwright is not installed")
    if program is None:
        _refuse("chromium is not installed")
    sandbox = () if os.geteuid() else ("--no-sandbox",)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*FLAGS, *sandbox])
        try:
            yield browser
        finally:
            browser.close()


def _refuse(why: str) -> NoReturn:
    if os.environ.get("GUARD_TESTS_REQUIRE_BROWSER"):
        pytest.fail(why)
    pytest.skip(why)


class Tab:
    """A page, with all that its console said and every dialog that a script opened."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.trouble: list[str] = []
        page.set_default_timeout(TIME_LIMIT * 1000)
        page.on("console", lambda said: self.trouble.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("request", self._look_at)
        page.on("dialog", self._refuse_dialog)

    def _look_at(self, request: "Request") -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            self.trouble.append(f"request: {request.url}")

    def _refuse_dialog(self, dialog: "Dialog") -> None:
        self.trouble.append("dialog: a script ran")
        dialog.dismiss()

    def open(self, address: str) -> None:
        self.page.goto(address)
        # The policy of the pages forbids what Playwright would wait for a function by.
        if self.page.locator("#state").count():
            self.page.wait_for_selector("#state.on")

    def fits(self) -> bool:
        """Tell whether nothing has to be scrolled sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
