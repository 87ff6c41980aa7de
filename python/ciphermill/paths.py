"""Where things are: the data that comes with the package, and the cache.

In an installed package the folders ``ciphers``, ``machines``, ``extensions``,
``schedules``, ``studies`` and ``rtl`` are real folders below ``ciphermill/data``. In a checkout the
same names are links to the folders at the root, so an edit there is seen at
once. Nothing else in the package asks which of the two it is, except the
cache: a checkout keeps it in its own ``build`` folder, so that removing the
checkout removes everything; an installed package uses the user's cache folder.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path

from . import scratch
from ._core import InputError

DATA = Path(__file__).parent / "data"
CIPHERS = DATA / "ciphers"
#: The few standard headers that foreign C asks for; there is no library behind them.
LIBC = CIPHERS / "libc"
MACHINES = DATA / "machines"
EXTENSIONS = DATA / "extensions"
STUDIES = DATA / "studies"
#: Schedules that long searches have found.
SCHEDULES = DATA / "schedules"
#: Hand-written Verilog, the gate library and the units made of them.
RTL = DATA / "rtl"

#: How the user's files are read: in UTF-8, which editors of Windows begin with a mark.
TEXT = "utf-8-sig"


@functools.cache
def checkout() -> Path | None:
    """The root of the checkout this package runs from, if it does."""
    root = CIPHERS.resolve().parent
    return root if (root / "Cargo.toml").is_file() else None


def cache() -> Path:
    """The folder for what can be made again: compiled modules, check results.

    ``CIPHERMILL_CACHE`` overrules it. The folder need not exist yet.
    """
    if override := os.environ.get("CIPHERMILL_CACHE"):
        return Path(override)
    if root := checkout():
        return root / "build" / "cache"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ciphermill"


def shown(path: Path) -> str:
    """A path as a message should show it: relative to here when it is below."""
    path = Path(path)
    # Resolved first: the data of a checkout is reached through links.
    for candidate in (_resolved(path), path):
        for base in (Path.cwd(), checkout()):
            if base is not None and candidate.is_absolute() and candidate.is_relative_to(base):
                return str(candidate.relative_to(base))
    return str(path)


def _resolved(path: Path) -> Path:
    """Without links; a link that leads back to itself stays as it is."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that can be read as they stand, sorted: no folders, pipes or devices, no links to nowhere."""
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def is_file(path: Path, where: str | None = None) -> bool:
    """Whether a path that the user gave is a file; `where` names it in a message."""
    return _asked(path.is_file, where or str(path))


def is_dir(path: Path, where: str | None = None) -> bool:
    """Whether it is a folder."""
    return _asked(path.is_dir, where or str(path))


def _asked(question: Callable[[], bool], where: str) -> bool:
    """An answer, or why there is none: a folder that may not be searched, a name that is too long."""
    try:
        return question()
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None


def check_writable(path: Path, option: str) -> None:
    """Refuse a file that an option names and that cannot be written, before the work is done and not after it.

    No folder is made for it: a name that was mistyped would become one.
    """
    where = f"{option} {path}"
    if is_dir(path, where):
        raise InputError(f"{where}: a folder; name a file in it")
    if path.exists() and not path.is_file():
        # A device or a pipe; whether it takes anything is seen when it is written to.
        return
    _check_place(path.parent, where)


def check_folder(path: Path, option: str) -> None:
    """The same for a folder that an option names, which is made if it is the last of its path that is missing."""
    where = f"{option} {path}"
    there = is_dir(path, where)
    if path.exists() and not there:
        raise InputError(f"{where}: a file; name a folder")
    _check_place(path if there else path.parent, where)


def _check_place(folder: Path, where: str) -> None:
    if not is_dir(folder, where):
        raise InputError(f"{where}: there is no folder {folder}; make it first, or name another")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{where}: the folder {folder} is not to be written to; name another")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none of it.

    Two processes that write the same file at once both succeed; one of them
    is last.
    """
    if path.exists() and not path.is_file():
        # A device or a pipe is written to, not replaced by a file.
        path.write_bytes(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by `tempfile`, whose files nobody else may read.
    name = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with scratch.passing(name):
        name.write_bytes(content)
        os.replace(name, path)
