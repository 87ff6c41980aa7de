"""What the harness is told, and what it answers.

Its language is described at the head of ``harness.c``.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import processes, scratch
from .._core import InputError, InternalError
from ..host import events as counting
from . import build
from .build import Image
from .processors import Host
from .samples import Sample

PAGE = 4096
STACK = 1 << 20
#: Seconds after which a native run is taken to go on for ever.
PATIENCE = 120
#: Core cycles of a sample's shorter run, at least: long beside what reading the clock takes, short
#: beside the time that another process is given.
SPAN = 60_000

#: Events that are counted where the kernel counts: the numbers of linux/perf_event.h.
EVENTS = {"cycles": (0, 0), "instructions": (0, 1), "branch_misses": (0, 5)}


class Crash(Exception):
    """The program did not come to its end; the message says how."""


class Wrong(Exception):
    """It did, and memory is not what it should be: the address, our byte and the right one."""

    def __init__(self, at: int, ours: int, theirs: int) -> None:
        super().__init__(at, ours, theirs)
        self.at, self.ours, self.theirs = at, ours, theirs


@dataclass
class Answer:
    """What the harness measured."""

    #: Memory was compared and is right.
    same: bool = False
    calls: int = 1
    samples: list[Sample] = field(default_factory=list)
    #: Ticks a second.
    hz: float | None = None
    #: Counts of the longer runs beyond the shorter ones, by event; why there are none.
    counts: dict[str, list[int]] = field(default_factory=dict)
    uncounted: str | None = None


@dataclass
class Job:
    """Programs in memory and the calls of a measurement."""

    images: Sequence[Image]
    memory_bytes: int
    writes: Iterable[tuple[int, str]] = ()
    #: Calls (image, symbol, arguments) of the set-up, of the shorter and of the longer run.
    calls: Sequence[Sequence[tuple[int, str, Sequence[int]]]] = ((), (), ())
    #: What must stand in linear memory after set-up and longer run, by address; None: nothing is compared.
    expected: Iterable[tuple[int, str]] | None = None
    samples: int = 0
    cpu: int | None = None
    #: Where the first image takes arguments beyond those in registers: an offset into the system area.
    overflow: int = 0
    events: Sequence[str] = tuple(EVENTS)

    def text(self) -> str:
        """The job as the harness reads it."""
        lines = [] if self.cpu is None else [f"cpu {self.cpu:x}"]
        spans = [(0, pages(self.memory_bytes)), (build.SYSTEM, PAGE), (build.STACK_TOP - STACK, STACK)]
        parts = [part for image in self.images for part in image.parts]
        spans += [(at, pages(len(data))) for at, data, _ in parts if at]
        # An image begins on a page of its own, and two that share the linear memory have it once.
        lines += [f"map {at:x} {size:x}" for at, size in dict(sorted(spans)).items()]
        lines += [f"put {at:x} {data.hex()}" for at, data, _ in parts]
        # Its first word is the size of memory, in pages of WebAssembly.
        lines += [f"put {build.SYSTEM:x} {(self.memory_bytes >> 16).to_bytes(4, 'little').hex()}"]
        lines += [f"put {at:x} {data}" for at, data in self.writes]
        lines += [f"code {at:x} {pages(len(data)):x}" for at, data, code in parts if code]
        for image in self.images[:1]:
            if "cm_start" in image.symbols:
                lines.append(self.call(0, 0, "cm_start", ()))
        for which, calls in enumerate(self.calls):
            lines += [self.call(which, *one) for one in calls]
        if self.expected is not None:
            lines.append(f"linear {self.memory_bytes:x}")
            lines += [f"expect {at:x} {data}" for at, data in self.expected]
        lines += [f"event {kind:x} {config:x}" for kind, config in (EVENTS[name] for name in self.events)]
        lines.append(f"samples {self.samples:x} {SPAN:x}")
        return "\n".join(lines) + "\n"

    def call(self, which: int, image: int, symbol: str, arguments: Sequence[int]) -> str:
        symbols = self.images[image].symbols
        if symbol not in symbols:
            raise InternalError(f"the printed program has no symbol {symbol}")
        over = build.SYSTEM + self.overflow
        words = [which, symbols["cm_enter"], symbols[symbol], over, len(arguments), *arguments]
        return f"call {' '.join(f'{word:x}' for word in words)}"


def pages(size: int) -> int:
    return -(-max(size, 1) // PAGE) * PAGE


def run(host: Host, job: Job) -> Answer:
    """Run a job in a process of its own.

    Raises InputError where the kernel does not let it, Crash and Wrong where the program is at fault.
    """
    with scratch.folder() as folder:
        harness, text = folder / "harness", folder / "job"
        harness.write_bytes(build.harness(host.isa))
        harness.chmod(0o700)
        text.write_text(job.text())
        try:
            done = processes.run([*host.emulator, str(harness), str(text)], PATIENCE)
        except subprocess.TimeoutExpired:
            raise Crash(f"had not ended after {PATIENCE} seconds and was stopped") from None
        except OSError as error:
            raise InputError(f"the harness could not be started ({error.strerror}): {folder} must be a folder in which "
                             "programs may be run; TMPDIR=FOLDER names another") from None  # fmt: skip
    if done.returncode:
        how = f"signal {name_of(-done.returncode)}" if done.returncode < 0 else f"exit status {done.returncode}"
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Crash(f"ended with {how}{f': {said[-1]}' if said else ''}")
    return answer(done.stdout.decode(), job.events)


def answer(text: str, events: Sequence[str] = tuple(EVENTS)) -> Answer:
    """What the harness's answer says."""
    found = Answer()
    lines = [line.split() for line in text.splitlines()]
    if not lines or lines[-1][0] not in ("done", "differs", "fault", "refused"):
        raise Crash("ended before its answer did")
    for word, *rest in lines:
        numbers = [int(one) for one in rest if one.isdecimal()]
        match word:
            case "refused":
                raise refusal(rest[0], *numbers)
            case "differs":
                raise Wrong(*numbers)
            case "fault":
                raise Crash(fault(*numbers))
            case "same":
                found.same = True
            case "calls":
                found.calls = numbers[0]
            case "sample":
                found.samples.append(Sample(*numbers))
            case "elapsed":
                found.hz = numbers[0] * 1e9 / numbers[1] if numbers[1] else None
            case "count":
                found.counts.setdefault(events[numbers[0]], []).append(numbers[2] - numbers[1])
            case "uncounted":
                found.uncounted = counting.refused(numbers[0], os.strerror(numbers[0]))
    return found


def refusal(what: str, at: int, error: int) -> Exception:
    """Why the kernel did not let the harness do something, with the mend."""
    said = os.strerror(error)
    if what == "map" and at == 0 and error in (errno.EPERM, errno.EACCES):
        return InputError(
            "programs have their memory from address 0 on, which the kernel keeps from them here (vm.mmap_min_addr is "
            f"{lowest()}); run as root, or as root: sysctl -w vm.mmap_min_addr=0"
        )
    if what == "map":
        mend = (
            "close other programs"
            if error == errno.ENOMEM
            else "another program's loader or a limit (ulimit -v) is in the way"
        )
        return InputError(f"no memory at address {at:#x} ({said}), where the program has to lie; {mend}")
    if what == "cpu":
        return InputError(f"--cpu {at}: there is no such processor for this process ({said}); leave --cpu out")
    return InternalError(f"the harness did not understand its job ({what} {at}, {said})")


def lowest() -> str:
    try:
        return Path("/proc/sys/vm/mmap_min_addr").read_text().strip()
    except OSError:
        return "not 0"


#: What a signal means here.
MEANS = {
    signal.SIGILL: "the processor does not have an instruction of it: the machine describes another processor",
    signal.SIGTRAP: "it stopped itself, as programs do that trap",
    signal.SIGFPE: "a division by zero",
    signal.SIGSEGV: "an access to memory that is not there",
    signal.SIGBUS: "an access to memory that is not there",
}


def fault(number: int, at: int, pc: int) -> str:
    meaning = MEANS.get(signal.Signals(number), "it crashed")
    return f"stopped with {name_of(number)} at instruction {pc:#x} (address {at:#x}): {meaning}"


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
