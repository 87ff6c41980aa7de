"""The page of ``ciphermill serve`` in a browser: it runs what is pasted, leads to the lines that messages name,
keeps other pages out, and axe-core finds nothing serious."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from samples import XOR_CIPHER

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
#: Milliseconds: a run compiles and measures.
PATIENCE = 240_000


@pytest.fixture(scope="module")
def served():
    """A server in this process."""
    from ciphermill.serving import desk, server
    from ciphermill.serving.limits import Limits

    confined = desk.Desk(Limits(), True).probe() is None
    made = server.opened(0, Limits(), confined)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def opened(chromium, served):
    """Open the page in a window of a kind; whatever it complains of fails the test."""
    contexts, complaints = [], []

    def open_(width: int = 1280, height: int = 900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(served.address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def run(page, source: str = XOR_CIPHER):
    page.locator("#source").fill(source)
    page.locator("#source").press("Control+Enter")
    page.locator("#state", has_text=re.compile(r"^(Done|It does not compile)\.$")).wait_for(timeout=PATIENCE)
    return page


def test_it_measures_what_is_pasted(opened):
    page = opened()
    assert "CM_BLOCK_CIPHER" in page.locator("#source").input_value()
    page.get_by_role("checkbox", name="cortex-m4").uncheck()
    page.get_by_role("checkbox", name="leon2").check()
    run(page)
    assert page.locator("#heads th").all_inner_texts()[:2] == ["machine", "cycles a block"]
    rows = page.locator("#rows tr").all_inner_texts()
    assert sorted(row.split()[0] for row in rows) == ["leon2", "rv32"] and all("yes" in row for row in rows)
    told = page.locator(".told[data-machine=rv32]")
    assert "lower bound" in told.locator("pre").first.inner_text()
    assert "critical path" in told.inner_text()
    # It is what a second run begins with, and is still there when the page is loaded anew.
    page.reload()
    assert page.locator("#source").input_value() == XOR_CIPHER


def test_a_message_leads_to_its_line(opened):
    page = run(opened(), XOR_CIPHER.replace("out[i] = in[i]", "out[i] = inn[i]"))
    assert page.locator("#numbers .bad").all_inner_texts() == ["7"]
    page.locator("#message button", has_text="cipher.c:7").first.click()
    chosen = page.evaluate("(s => s.value.slice(s.selectionStart, s.selectionEnd))(document.querySelector('#source'))")
    assert "inn[i]" in chosen and "\n" not in chosen


def test_what_is_pasted_is_shown_as_text(opened):
    page = run(opened(), f"<img src=x onerror=alert(1)>\n{XOR_CIPHER}")
    assert "<img" in page.locator("#message").inner_text() and page.locator("#message img").count() == 0


def test_examples_and_no_machine(opened):
    page = opened()
    page.locator("#example").select_option("skeleton: stream")
    assert "CM_STREAM_CIPHER" in page.locator("#source").input_value()
    for box in page.locator("#machines input").all():
        box.uncheck()
    page.locator("#run").click()
    assert "no machine is chosen" in page.locator("#message").inner_text()


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, size, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed (make test-browser)"
    )
    page = run(opened(*WIDTHS[size], color_scheme=scheme))
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    if size == "phone":
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_page_of_another_site_can_ask_for_nothing(chromium, served):
    """What it sends is refused, and what is answered it cannot read."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title>")

        def log_message(self, *_: object) -> None:
            pass

    asked: list[int] = []
    original = served.desk.answers
    served.desk.answers = lambda *given: asked.append(1) or original(*given)
    other = HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        attempt = """async ([url, token, mode]) => {
          const headers = mode === "cors" ? {"Content-Type": "application/json", "X-Ciphermill-Token": token} : {};
          try { const a = await fetch(url, {method: "POST", mode, headers, body: "{}"}); return a.type + (await a.text()); }
          catch (error) { return String(error); }
        }"""
        run_at = f"{served.address}run"
        assert "Failed to fetch" in page.evaluate(attempt, [run_at, served.token, "cors"])
        # This one is sent, and refused there.
        assert "Failed to fetch" in page.evaluate(attempt, [run_at, served.token, "no-cors"])
        read = (
            "async (url) => { try { return await (await fetch(url)).text(); } catch (error) { return String(error); } }"
        )
        assert "Failed to fetch" in page.evaluate(read, served.address)
    finally:
        context.close()
        other.shutdown()
        other.server_close()
        del served.desk.answers
    assert asked == []
