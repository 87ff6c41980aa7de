"""Whose turn it is, and a run as a process of its own: started, read, ended.

What comes out is lines of JSON, as the child wrote them or about it: `waiting` with how many are
before, `error` with why there is no more, `done` at the end. A run ends when it is done, when its time
is over, and when the one who asked is gone; its processes and its folder are gone with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from .. import processes, scratch
from .._core import InputError
from .asked import Asked
from .limits import Limits

#: Seconds between two looks at whether anybody still waits.
PAUSE = 0.2
#: Of what a process complains, the last bytes are looked at.
TAIL = 4000

Gone = Callable[[], bool]


class Full(Exception):
    """As many are waiting as may."""


class Turns:
    """Who has come, in this order: the first so many are served, the others wait."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self.at_once, self.most = at_once, at_once + waiting
        self._line: list[object] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self) -> Iterator[object]:
        """A place in the line. Raises Full."""
        ticket = object()
        with self._changed:
            if len(self._line) >= self.most:
                raise Full
            self._line.append(ticket)
        try:
            yield ticket
        finally:
            with self._changed:
                self._line.remove(ticket)
                self._changed.notify_all()

    def before(self, ticket: object) -> int:
        """How many must have been served before it is this one's turn."""
        with self._changed:
            return max(0, self._line.index(ticket) - self.at_once + 1)

    def wait(self) -> None:
        """Until the line changes, or a moment."""
        with self._changed:
            self._changed.wait(PAUSE)


class Desk:
    """Where runs are asked for."""

    def __init__(self, limits: Limits, confined: bool) -> None:
        self.limits, self.confined = limits, confined
        self.turns = Turns(limits.at_once, limits.waiting)

    def answers(self, asked: Asked, ticket: object, gone: Gone) -> Iterator[bytes]:
        """The lines of an answer, from the wait for its turn on."""
        told = 0
        while before := self.turns.before(ticket):
            if before != told:
                yield line({"waiting": before})
                told = before
            if gone():
                return
            self.turns.wait()
        yield from self._run(asked, gone)

    def probe(self) -> str | None:
        """Why runs cannot be confined here; None where they can."""
        with scratch.folder() as folder:
            done = subprocess.run(
                [*COMMAND, "probe"], env=environment(folder), cwd=folder, capture_output=True, text=True, check=False
            )
        return None if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()[-TAIL:]

    def _run(self, asked: Asked, gone: Gone) -> Iterator[bytes]:
        given = {"asked": msgspec.to_builtins(asked), "confined": self.confined, **self._limited()}
        with scratch.folder() as folder:
            (folder / "asked").write_text(json.dumps(given))
            with (folder / "asked").open("rb") as text, (folder / "complaints").open("wb") as complaints:
                child = subprocess.Popen(
                    COMMAND, stdin=text, stdout=subprocess.PIPE, stderr=complaints,
                    cwd=folder, env=environment(folder), process_group=0,
                )  # fmt: skip
            with child, scratch.group(child.pid):
                try:
                    whole, wrong = False, None
                    for answer in self._lines(child, gone):
                        if isinstance(answer, str):
                            wrong = answer
                        else:
                            whole = answer == line({"done": True})
                            yield answer
                    if wrong is None and not whole:
                        wrong = self._ended(child, folder)
                finally:
                    processes.end(child.pid)
            if wrong:
                yield line({"error": wrong})

    def _limited(self) -> dict[str, Any]:
        return {"seconds": self.limits.seconds, "memory": self.limits.memory, "file_bytes": self.limits.file_bytes}

    def _lines(self, child: subprocess.Popen[bytes], gone: Gone) -> Iterator[bytes | str]:
        """Whole lines as the child writes them; at last a text where it had to be stopped."""
        until = time.monotonic() + self.limits.seconds
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        rest, taken = b"", 0
        while time.monotonic() < until:
            if gone():
                yield "nobody waited for the answer"
                return
            processes.readable(child.stdout.fileno(), PAUSE)
            part = child.stdout.read(1 << 16)
            if part is None:
                continue
            if not part:
                return
            taken += len(part)
            if taken > self.limits.answer_bytes:
                yield f"the answer has more than {self.limits.answer_bytes >> 20} MB; choose fewer machines"
                return
            *whole, rest = (rest + part).split(b"\n")
            for one in whole:
                yield one + b"\n"
        yield (
            f"the run was stopped after {self.limits.seconds:g} seconds; choose fewer machines, or a smaller cipher. "
            "ciphermill run has no such limit"
        )

    def _ended(self, child: subprocess.Popen[bytes], folder: Path) -> str:
        """Why a run ended by itself before it was done."""
        try:
            code = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        said = (folder / "complaints").read_bytes()[-TAIL:].decode(errors="replace").strip()
        if "memory allocation of" in said or "MemoryError" in said:
            return f"the run wanted more than {self.limits.memory >> 30} GB of memory and was stopped"
        print(f"ciphermill: serve: a run ended with {code}: {said}", file=sys.stderr)
        return "the run ended before it was done, which is an error in ciphermill; the server's terminal says more"


#: Without the folder it is started in: a file pasted there must not be taken for a module.
COMMAND = [sys.executable, "-P", "-m", "ciphermill.serving.child"]


def environment(folder: Path) -> dict[str, str]:
    """The environment of a run: its folder for all that is written, and nothing of ours that says who we are."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    own = {name: str(folder) for name in ("HOME", "TMPDIR")}
    own |= {"CIPHERMILL_CACHE": str(folder / "kept"), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    return {**kept, **own, "LC_ALL": "C.UTF-8"}


def line(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def check_confined(desk: Desk) -> None:
    """InputError where runs cannot be confined here."""
    if (why := desk.probe()) is not None:
        raise InputError(
            f"serve: what is pasted cannot be kept from reading files here: {why}; "
            "with --unconfined the page is served all the same, for C that you trust"
        )
