"""What is kept below the cache folder, and is not trusted.

A disk forgets, a process is killed, somebody edits a file to see what happens. What is kept
decides what is measured, so each file begins with the SHA-256 of its name and its content,
and one that is not what it says is made anew, with a note. A folder that cannot be written
is told once and done without: nothing but time depends on the cache.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from . import paths, scratch

#: How a kept file begins.
MARK = b"ciphermill keeps, sha256 "
#: And how its name ends.
SUFFIX = ".kept"


def place(kind: str, name: str) -> Path:
    """Where something is kept under a name that says all that it depends on."""
    return paths.cache() / kind / f"{name}{SUFFIX}"


def read(path: Path) -> bytes | None:
    """What is kept there; None where nothing is, or nothing that can be believed."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head == MARK + digest(path, content):
        return content
    note(f"{paths.shown(path)} is damaged, and what it held is made anew")
    return None


def write(path: Path, content: bytes) -> None:
    """Keep something, if the folder lets us."""
    try:
        paths.write_atomically(path, MARK + digest(path, content) + b"\n" + content)
    except OSError as error:
        unwritable(error)


def digest(path: Path, content: bytes) -> bytes:
    # With the name, so that one file is not taken for another.
    return hashlib.sha256(path.name.encode() + b"\0" + content).hexdigest().encode()


@cache
def compilers() -> Path:
    """A folder for what the compiler itself keeps: one that can be written, or it would try for ever."""
    folder = paths.cache() / "zig"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        unwritable(error)
    context = scratch.folder()
    instead = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return instead


def environment() -> dict[str, str]:
    """The environment of a compiler that keeps things there."""
    folder = str(compilers())
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, "NO_COLOR": "1"}


def unwritable(error: OSError) -> None:
    _unwritable(str(paths.cache()), error.strerror or str(error))


@cache
def _unwritable(folder: str, why: str) -> None:
    note(
        f"the cache folder {folder} cannot be written ({why}), so nothing is kept; CIPHERMILL_CACHE=FOLDER names another"
    )


@cache
def note(text: str) -> None:
    """A line on standard error, once."""
    print(f"ciphermill: {text}", file=sys.stderr)
