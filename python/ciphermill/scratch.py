"""Files that are there only while something is made, and what an interrupt leaves: none of them.

Whatever is written under a passing name is entered here as long as it has one, so
that a process that is told to go (Ctrl-C, ``kill``) takes it along. What ``kill -9``
leaves behind are folders of this name in the system's folder for temporary files.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "ciphermill-"
_here: set[Path] = set()
#: Groups of processes that are at work for us.
_groups: set[int] = set()
_leaving = threading.Event()


@contextmanager
def passing(path: Path) -> Iterator[Path]:
    """A file or folder that is gone afterwards, if it is still there under this name."""
    _here.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _here.discard(path)


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder, removed with all that is in it."""
    with passing(Path(tempfile.mkdtemp(prefix=PREFIX))) as path:
        yield path


@contextmanager
def group(leader: int) -> Iterator[None]:
    """While a group of other processes works for us: an interrupt ends it."""
    _groups.add(leader)
    try:
        yield
    finally:
        _groups.discard(leader)
        if _leaving.is_set():
            # What it was ended for must not look like its end: there is nothing more to do here.
            threading.Event().wait()


def leave_clean() -> None:
    """From now on an interrupt ends the process at once, and nothing passing stays.

    Python runs a handler of its own only when the core has returned, which for a long
    message can be minutes. A thread that waits for the byte which the interpreter
    writes on a signal need not wait for that. Called from the main thread.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_leave, args=(read,), daemon=True).start()


def _leave(read: int) -> None:
    number = os.read(read, 1)[0]
    _leaving.set()
    for leader in list(_groups):
        with suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
    for path in list(_here):
        _remove(path)
    if os.isatty(2):
        # A bar may have hidden the cursor.
        os.write(2, b"\x1b[?25h\n")
    try:
        # Ended by the signal itself, as a shell wants to know it: Python lets only its main thread say so.
        # Only here: it takes as long to import as all else that the command begins with.
        import ctypes

        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        libc.signal(number, None)
        os.kill(os.getpid(), number)
    finally:
        os._exit(128 + number)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
