"""A real browser on the console of a real platform: Debian's Chromium, and axe for accessibility.

Refuses what the console promises never to do: a request to another origin, an error in the
browser's console (a breach of the content policy is one), a dialog, and any accessibility violation
that axe finds.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.processes.platform import Platform

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "api" / "console" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 120_000
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
expect.set_options(timeout=PATIENCE_MS)


class Console:
    """A platform whose console is open in a browser."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.platform = Platform(folder, *options)
        self.password = ""
        self.url = ""
        self._playwright = sync_playwright()
        self._browser: Browser | None = None

    def __enter__(self) -> Self:
        self.platform.folder.mkdir(parents=True, exist_ok=True)
        place = ("--dir", str(self.platform.data), "--port", "0", "--detach")
        options = (*place, *self.platform.options)
        said = self.platform.cli("up", *options).stderr.decode()
        self.password = said.partition("shown only once: ")[2].split()[0]
        self.url = self.platform.profile().api_url
        started = self._playwright.start()
        self._browser = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._browser is not None:
            self._browser.close()
            self._playwright.__exit__(kind, error, trace)
        self.platform.stop()

    @contextmanager
    def page(self) -> Iterator[Page]:
        """A page of a new visitor; at the end nothing may have happened that must not."""
        assert self._browser is not None
        context: BrowserContext = self._browser.new_context(
            viewport={"width": 1280, "height": 800},
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        page = context.new_page()
        page.on("request", lambda sent: faults.append(sent.url) if self._strays(sent.url) else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on(
            "console", lambda said: faults.append(said.text) if "Content Sec" in said.text else None
        )
        try:
            yield page
            assert faults == []
        finally:
            context.close()

    def _strays(self, url: str) -> bool:
        return not url.startswith((self.url, "data:"))

    def sign_in(self, page: Page, path: str = "/console/topics") -> None:
        """As the administrator."""
        page.goto(self.url + path)
        page.fill("#secret", self.password)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Sign out").wait_for()


# What fades in has the colours of neither its beginning nor its end. What moves for ever, moves on.
AT_REST = """() => Promise.allSettled(document.getAnimations()
  .filter((each) => each.effect?.getComputedTiming().iterations !== Infinity)
  .map((each) => each.finished))"""


def violations(page: Page) -> list[str]:
    """What axe finds wrong with a page, once what moves in it has come to rest.

    What comes late, as a button that a loaded file enables, begins to fade while axe is looking:
    what is wrong is wrong at the second look too.
    """
    page.evaluate(AXE.read_text() + ";0")
    return _judged(page) and _judged(page)


def _judged(page: Page) -> list[str]:
    page.evaluate(AT_REST)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {json.dumps(each['nodes'][0]['html'])}" for each in found["violations"]]
