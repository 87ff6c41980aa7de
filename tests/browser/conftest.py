"""A real browser, when there is one: Debian's Chromium driven by Playwright.

`.ci/run` installs both; elsewhere ``make test-browser`` installs what pip has.
``CIPHERMILL_CHROMIUM`` names another browser of the family.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))


@pytest.fixture(scope="session")
def chromium():
    """A headless browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make test-browser)")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CIPHERMILL_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The address of a small report on disk."""
    for name in ("altair", "vl_convert", "jinja2"):
        pytest.importorskip(name, reason=f"{name} is not installed (pip install 'ciphermill[report]')")
    import small_page

    from ciphermill.webreport import page

    root = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        text = page.render(small_page.content(root, patch))
    (root / "index.html").write_text(text)
    return (root / "index.html").as_uri()


@pytest.fixture
def opened(chromium, report):
    """Open the report in a window of a kind; whatever it complains of fails the test."""
    contexts, complaints = [], []

    def open_(width: int = 1280, height: int = 900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(report)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
