"""The documentation site: it builds, is whole, and fetches nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser

import pytest
from samples import ROOT

pytest.importorskip("mkdocs", reason="make docs installs it")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Fetched(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src") or "")
        if tag == "link" and given.get("rel") != "canonical":
            self.addresses.append(given.get("href") or "")


def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        parser = Fetched()
        parser.feed(page.read_text())
        assert [a for a in parser.addresses if re.match(r"(https?:)?//", a)] == [], page


def test_what_is_generated_is_there(site):
    commands = (site / "reference" / "commands.html").read_text()
    for name in ("run", "explain", "study", "host", "rtl", "audit"):
        assert f'id="{name}"' in commands
    keys = (site / "reference" / "schema.html").read_text()
    assert "machine.inherits" in keys and "timings.NAME.latency" in keys
    python = (site / "python.html").read_text()
    assert "ciphermill.api.run" in python and "to_polars" in python


def test_every_key_of_a_measurement_is_described():
    import ciphermill as cm

    text = (ROOT / "docs" / "measurement.md").read_text()
    described = set(re.findall(r"`(\w+)`", text))
    assert set(cm.run("rc6", on="rv32")) <= described


def test_the_tutorial_s_extension_does_what_it_says(cli, write):
    text = (ROOT / "docs" / "tutorial.md").read_text()
    (extension,) = re.findall(r"```toml\n(\[extension\].*?)```", text, re.DOTALL)
    assert tomllib.loads(extension)
    write("rotate.toml", extension)

    def cycles(*more):
        answer = cli("run", "chacha20", "--on", "rv32", "--json", *more)
        assert answer.code == 0, answer
        return json.loads(answer.out)["measurements"][0]["cycles_per_block"]

    assert cycles("--with", "./rotate.toml") < cycles()
