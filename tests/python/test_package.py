"""The package as a wheel, away from any checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import pytest
from samples import ROOT

from ciphermill import paths

pytestmark = pytest.mark.skipif(paths.checkout() is None, reason="runs from a checkout only")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of what is installed here: the core is built already."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_the_wheel_carries_its_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("ciphers", "machines", "extensions"):
        here = {p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*") if p.is_file()}
        assert {f"ciphermill/data/{name}" for name in here} <= names


def test_it_works_from_anywhere(wheel, tmp_path):
    home = tmp_path / "home"
    site = tmp_path / "site"
    home.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    environment = {k: v for k, v in os.environ.items() if k not in ("CIPHERMILL_CACHE", "XDG_CACHE_HOME")}
    script = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import ciphermill; "
        "assert ciphermill.__file__.startswith(sys.path[0]); from ciphermill.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, site, "run", "rijndael", "--on", "rv32", "--json"],
        capture_output=True, text=True, cwd=tmp_path, check=False, env={**environment, "HOME": str(home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measurements"][0]["verified"] is True
    assert any((home / ".cache" / "ciphermill").rglob("*.wasm"))
    assert {p.name for p in home.iterdir()} == {".cache"}
    assert {p.name for p in (home / ".cache").iterdir()} == {"ciphermill"}
