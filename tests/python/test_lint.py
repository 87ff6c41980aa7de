"""`make lint` sees all the code, and the hooks of `.pre-commit-config.yaml` run what it runs."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from samples import ROOT

CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))
#: For tests only: it may unwrap.
TESTING = {"differential"}


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_a_crate_takes_the_lints(crate):
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    assert manifest.get("lints") == {"workspace": True}, "add `[lints] workspace = true`"
    if crate.name not in TESTING:
        warns = "#![cfg_attr(not(test), warn(clippy::unwrap_used))]"
        assert warns in (crate / "src" / "lib.rs").read_text(), f"add {warns}"


def test_hooks_run_what_make_lint_runs():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    made = [
        line.replace("$(BIN)", ".venv/bin") for line in recipe[1].split("\n\t") if not line.lstrip().startswith("@")
    ]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (repo,) = config["repos"]
    assert repo["repo"] == "local" and all(hook["language"] == "system" for hook in repo["hooks"])
    hooks = [hook["entry"].replace(" --force-exclude", "") for hook in repo["hooks"]]
    assert sorted(hooks) == sorted(line.strip() for line in made)


def test_one_version_of_a_package():
    """Whatever is installed first, the same stands in .venv."""
    pinned: dict[str, set[str]] = {}
    for file in (ROOT / "python").glob("requirements*.txt"):
        for line in file.read_text().splitlines():
            if line and not line.startswith("#"):
                name, version = line.split("==")
                pinned.setdefault(name.lower(), set()).add(version)
    assert {name: versions for name, versions in pinned.items() if len(versions) > 1} == {}
