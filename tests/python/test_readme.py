"""What the README shows is what the programs print.

``make readme`` writes today's output into it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from samples import ROOT

README = ROOT / "README.md"
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(README.read_text()) if kind == language]


def output(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    assert program == "ciphermill"
    done = subprocess.run(
        [sys.executable, "-m", "ciphermill", *arguments],
        capture_output=True, text=True, cwd=folder, check=True, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    return done.stdout


def filled(body: str, folder: Path) -> str:
    """A console block with the output of its commands."""
    (folder / "my_cipher.c").write_text(blocks("c")[0])
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(f"$ {command}\n{output(command, folder)}" for command in commands)


def test_consoles(tmp_path):
    for body in blocks("console"):
        assert body == filled(body, tmp_path), "the README shows other output: run make readme"


def test_python(tmp_path):
    for body in blocks("python"):
        subprocess.run([sys.executable, "-c", body], cwd=tmp_path, check=True, capture_output=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = README.read_text()
        for body in blocks("console"):
            text = text.replace(f"```console\n{body}```", f"```console\n{filled(body, Path(folder))}```")
    README.write_text(text)
