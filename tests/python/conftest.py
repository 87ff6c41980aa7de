"""What every test here uses: the command, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from samples import XOR_CIPHER


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(tmp_path):
    """Run ``ciphermill`` with arguments, in a folder of the test's own."""

    def run(*arguments: object, cwd: Path = tmp_path, **environment: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "ciphermill", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=300,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **environment},
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def refused(cli):
    """Run a command that must be refused: exit code 2, one message, no traceback."""

    def run(*arguments: object, **environment: str) -> str:
        answer = cli(*arguments, **environment)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert answer.err.startswith("ciphermill: ")
        assert answer.err.count("ciphermill: ") == 1
        assert "Traceback" not in answer.err and "panicked" not in answer.err
        return answer.err.removeprefix("ciphermill: ").rstrip("\n")

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file into the test's folder."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


@pytest.fixture
def xor_cipher(write):
    """A block cipher of the user's own, as C."""
    return write("mine.c", XOR_CIPHER)
