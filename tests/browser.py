"""Debian's chromium on the served page: every request, script error and policy violation is kept,
so that each test can end with `visit.check()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    sync_playwright,
)

EXECUTABLE = "/usr/bin/chromium"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
TIMEOUT_MS = 20_000
_WATCH_POLICY = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


@dataclass
class Visit:
    """A page of one browser context. `expected` are beginnings of console errors that a test
    brings about on purpose."""

    page: Page
    origin: str
    addresses: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    accepts_dialogs: bool = False

    def open(self, path: str = "/") -> None:
        self.page.goto(self.origin + path)

    def check(self) -> None:
        """Nothing went to another origin, no script failed, no policy was violated."""
        foreign = [address for address in self.addresses if not self._is_ours(address)]
        assert foreign == []
        unexpected = [error for error in self.errors if not error.startswith(self.expected or "\0")]
        assert unexpected == []

    def has_no_sideways_scroll(self) -> bool:
        wide, seen = self.page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        return bool(wide <= seen)

    def _is_ours(self, address: str) -> bool:
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}" == self.origin or parts.scheme in {"blob", "data"}


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Browser, origin: str, **options: Any) -> Iterator[Visit]:
    """A fresh context (no cookies) with one page; `options` as of `browser.new_context`."""
    context: BrowserContext = browser.new_context(**{"viewport": DESKTOP, **options})
    context.set_default_timeout(TIMEOUT_MS)
    context.add_init_script(_WATCH_POLICY)
    page = context.new_page()
    visit = Visit(page, origin)
    context.on("request", lambda request: visit.addresses.append(request.url))

    def hear(line: ConsoleMessage) -> None:
        if line.type == "error":
            visit.errors.append(line.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))

    def answer(dialog: Any) -> None:
        visit.dialogs.append(dialog.message)
        if visit.accepts_dialogs:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    yield visit
    context.close()
