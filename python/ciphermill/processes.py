"""Other programs, run for at most so long, with all that they start."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence

from . import scratch

#: The group that a program is started in: 0 for one of its own, None for that of this process.
_group: int | None = 0


def together() -> None:
    """From now on what is started stays in this process's group, for whoever ends all of it at once."""
    global _group
    _group = None


def run(
    command: Sequence[str], seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that reads nothing, and take what it writes.

    Raises subprocess.TimeoutExpired after so many seconds, when nothing of it runs any more,
    and OSError when it cannot be started. It is a group of processes of its own: an
    interrupt of ours ends it, too.
    """
    started = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, process_group=_group
    )
    with started, scratch.group(started.pid):
        try:
            out, err = started.communicate(timeout=seconds)
        except BaseException:
            end(started.pid)
            raise
        return subprocess.CompletedProcess(command, started.returncode, out, err)


def end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def readable(file: int, seconds: float) -> bool:
    """Whether there is something to be read, or nothing any more; waits for it at most so long."""
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(1000 * seconds))
