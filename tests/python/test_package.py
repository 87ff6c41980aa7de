"""The package as a wheel, away from any checkout."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tomllib
import zipfile

import pytest
from samples import ROOT

import ciphermill
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
    for folder in ("ciphers", "machines", "extensions", "studies", "schedules", "rtl"):
        here = {p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*") if p.is_file()}
        assert {f"ciphermill/data/{name}" for name in here} <= names


def test_the_wheel_is_for_every_python(wheel):
    """One wheel for all Pythons from 3.11 on, with its licences, and what needs no Rust to run."""
    assert "-cp311-abi3-" in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    assert {f"{info}/licenses/LICENSE-MIT", f"{info}/licenses/LICENSE-APACHE"} <= names
    # What type checkers read: that the package is typed, and what the compiled core has.
    assert {"ciphermill/py.typed", "ciphermill/_core.pyi"} <= names
    assert {"ciphermill/host/processors.toml", "ciphermill/host/callgrind.c"} <= names
    # The page that `serve` sends, whole.
    page = ROOT / "python" / "ciphermill" / "serving" / "page"
    assert {f"ciphermill/serving/page/{path.name}" for path in page.iterdir()} <= names
    assert not [name for name in names if name.endswith((".rs", ".pyc"))]


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
    assert any((home / ".cache" / "ciphermill").rglob("*.wasm.kept"))
    assert {p.name for p in home.iterdir()} == {".cache"}
    assert {p.name for p in (home / ".cache").iterdir()} == {"ciphermill"}


def test_the_citation_is_of_this_version():
    """Read without a YAML parser: it is flat but for the authors."""
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    facts = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith((" ", "-", "#")))
    assert facts["cff-version"] == "1.2.0" and facts["type"] == "software"
    assert facts["version"] == ciphermill.__version__
    assert facts["title"].strip('"') == "ciphermill" and "message" in facts
    assert any(line.startswith("authors:") for line in lines)
    # The format knows no "MIT OR Apache-2.0": a choice of licences is a list of their SPDX names.
    choice = lines[lines.index("license:") + 1 :]
    listed = [line.removeprefix("  - ") for line in itertools.takewhile(lambda line: line.startswith("  - "), choice)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert " OR ".join(listed) == project["license"]


def test_version(cli):
    answer = cli("--version")
    assert (answer.code, answer.out) == (0, f"ciphermill {ciphermill.__version__}\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run rijn", ["rijndael"]),
        ("run rijndael --on leo", ["leon2"]),
        ("run rijndael --on leon2,rv3", ["leon2,rv32"]),
        ("run rijndael --variant bit", ["bitsliced"]),
        ("run aes --with zkn", ["zknd", "zknd_rv64", "zkne", "zkne_rv64", "zknh", "zknh_rv64"]),
        ("expl", ["explain"]),
    ],
)
def test_completion(cli, words, expected):
    """What bash would be told, for a line that ends in the middle of a word."""
    line = f"ciphermill {words}"
    answer = cli(_CIPHERMILL_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(line.split()) - 1))
    assert answer.code == 0, answer
    assert answer.out.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_the_shell(cli, shell):
    answer = cli("--show-completion", shell)
    if answer.code != 0:
        # Without a shell above it that it knows, typer takes no name here but asks the process tree.
        answer = cli(_CIPHERMILL_COMPLETE=f"source_{shell}")
    assert answer.code == 0 and "_CIPHERMILL_COMPLETE" in answer.out, answer


#: Licences under which a wheel with the code in it may be passed on as MIT or Apache-2.0.
PERMISSIVE = {
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "ISC",
    "Zlib",
    "Unlicense",
    "Unicode-3.0",
    "BSD-3-Clause",
}


def test_what_is_linked_in_may_be_passed_on():
    """Every crate has a licence of these, or a choice with one of them."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cargo metadata: {done.stderr.splitlines()[-1]}")
    for package in json.loads(done.stdout)["packages"]:
        # "(MIT OR Apache-2.0) AND Unicode-3.0": of each group joined by AND one choice must do.
        groups = [group.strip(" ()") for group in package["license"].replace("/", " OR ").split(" AND ")]
        for group in groups:
            assert PERMISSIVE & {choice.strip() for choice in group.split(" OR ")}, (
                f"{package['name']}: {package['license']}"
            )
