"""The very program that is simulated, on the processor this runs on.

``ciphermill silicon`` compiles a cipher for a machine as ``run`` does, prints it, assembles and
links it, and runs it natively where the code expects to lie, in a process of its own. What it
leaves in memory is compared with what the reference interpreter leaves; then it is timed, and
stands beside the simulation.

    settings.py    how often, and on which processor
    processors.py  instruction sets of hosts; which machines' programs run here
    programs.py    the programs that are named; which are held out
    build.py       the printed program as bytes at addresses, and the harness
    harness.c      maps, calls, compares and times; enter_*.s call into a program
    job.py         what the harness is told and answers
    loops.py       the loops of a sheet
    samples.py     from ticks to cycles
    summary.py     figures over many programs
    record.py      a host's figures as a file
    text.py        the answer for people; plot.py draws it
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .. import engine, kept, library
from .._core import InputError, InternalError
from ..host import processor
from ..progress import Progress
from . import build, job, processors, programs, samples, summary
from .job import Crash, Wrong
from .processors import Host
from .programs import Program
from .settings import USUAL, Settings


def run(
    names: list[str],
    machine: str,
    options: engine.Options,
    settings: Settings = USUAL,
    progress: Progress = lambda items, total: items,
) -> dict[str, Any]:
    """Programs measured natively and simulated, as ``--json`` prints them.

    A program that fails has a row with its ``failure`` and no figures. Raises InputError
    where this host runs no programs of the machine, or none of them can be simulated.
    """
    options.check()
    settings.check()
    host = processors.host_for(machine, settings.emulator)
    wanted = programs.chosen(names, options)
    # All are compiled and simulated before the first is timed: the processor is to be quiet then.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = progress(pool.map(lambda one: Attempt(one, machine, host, settings), wanted), len(wanted))
        attempts = list(made)
    if (first := attempts[0].error) is not None and all(attempt.error for attempt in attempts):
        raise first
    # What disturbs lasts for seconds: a program's processes are as far apart as they can be.
    rounds = 1 if host.emulator else settings.rounds
    for attempt in progress(attempts * rounds, rounds * len(attempts)):
        attempt.measure(host)
    rows = [attempt.row() for attempt in attempts]
    here = processor.this()
    return {
        "schema": 1,
        "machine": machine,
        "isa": host.isa.title,
        "emulator": " ".join(host.emulator) or None,
        "processor": here.to_dict(library.machine_names()),
        "method": method(settings),
        "counters": counters(rows),
        "rows": rows,
        "summary": summary.of(rows),
    }


def nearest() -> str:
    """The machine nearest to this processor. Raises InputError where its programs do not run here."""
    here = processor.this()
    name = here.nearest(library.machine_names())
    if name is None:
        raise InputError(
            f"no machine is known to be near this processor ({here.model}); name one with --on, zen5 for instance"
        )
    if processors.isa_of(name) is None:
        raise InputError(f"{name} is nearest to this processor, and no host runs its programs; name another with --on")
    return name


def method(settings: Settings) -> dict[str, Any]:
    return {
        "samples": settings.samples, "rounds": settings.rounds, "cpu": settings.pinned(),
        "cycles": "least of the processes' medians of the quiet samples' slopes between two message lengths, in cycles of a "
        "chain of dependent additions",
    }  # fmt: skip


class Attempt:
    """A program on its way: simulated, printed, built, measured some times, told."""

    def __init__(self, program: Program, machine: str, host: Host, settings: Settings) -> None:
        self.program = program
        self.answers: list[job.Answer] = []
        self.simulated: dict[str, Any] | None = None
        #: What was raised before anything could be run.
        self.error: InputError | InternalError | None = None
        #: Why there is no figure, and whether that is an error of ours.
        self.failure: tuple[str, bool] | None = None
        try:
            self.simulated = kept.measurement(program.module, machine, program.options).to_dict()
            # Messages of the same lengths as in the simulation's steady state.
            lengths = self.simulated["steady"]["shorter"], self.simulated["steady"]["longer"]
            self.native = engine.native(program.module, machine, program.options, lengths)
            self.job = job_of(self.native, host, settings)
        except (InputError, InternalError) as error:
            self.error = error
            self.failure = str(error), isinstance(error, InternalError)
        if self.simulated is not None and not self.simulated["verified"]:
            self.failure = f"the simulation: {self.simulated['failure']}", True

    def measure(self, host: Host) -> None:
        """Run it in a process of its own, compare, and time. Raises InputError where the kernel lets no program run."""
        if self.failure is not None:
            return
        try:
            answer = job.run(host, self.job)
        except Crash as error:
            self.failure = f"the native run {error}", False
        except Wrong as error:
            self.failure = place(self.native, error), True
        else:
            self.answers.append(answer)
            if not answer.same:
                raise InternalError("the harness compared nothing")

    def row(self) -> dict[str, Any]:
        """What it came to on the host and in the simulation."""
        program, simulated = self.program, self.simulated
        about: dict[str, Any] = {
            "program": program.name, "cipher": program.module.cipher.name, "variant": program.module.variant.name,
            "direction": program.direction, "blocks": program.blocks, "held_out": programs.held_out(program.name),
        }  # fmt: skip
        if simulated is not None:
            about |= {name: simulated[name] for name in ("key_bits", "block_bytes", "jam", "unroll")}
            about |= {
                "instructions": round(per_block(simulated["instructions"], simulated), 1),
                "simulated_cycles": simulated["cycles_per_block"],
                "shorter": simulated["steady"]["shorter"],
                "longer": simulated["steady"]["longer"],
                "settled": simulated["steady"]["settled"],
            }
        if self.failure is not None or simulated is None:
            failure, fault = self.failure or ("", True)
            return about | {"verified": False, "failure": failure, "fault": fault}
        about |= {"verified": True, "failure": None, "fault": False}
        return about | figures(self.answers, self.native, simulated)


def job_of(native: dict[str, Any], host: Host, settings: Settings) -> job.Job:
    """What the harness is to do with a program."""
    image = build.program(host.isa, native["assembly"])
    calls = [[(0, call["symbol"], call["args"]) for call in native[which]] for which in ("setup", "shorter", "longer")]
    samples_, cpu = (0, None) if host.emulator else (settings.each, settings.pinned())
    return job.Job(
        [image],
        native["memory_bytes"],
        native["writes"],
        calls,
        native["expected"],
        samples_,
        cpu,
        native["arg_overflow"],
    )


def figures(answers: list[job.Answer], native: dict[str, Any], simulated: dict[str, Any]) -> dict[str, Any]:
    """The native figures of a row; none where nothing was timed."""
    if not any(a.samples for a in answers):
        return {"silicon_cycles": None, "ratio": None}
    rounds = [samples.figure(a.samples, native["blocks"] * a.calls, a.hz) for a in answers]
    found = samples.joined(rounds)
    cycles = found.median
    ours = simulated["cycles_per_block"]
    counts: dict[str, float] = {}
    for a in answers:
        for name, values in a.counts.items():
            counts.setdefault(name, samples.middle(values) / native["blocks"] / a.calls)
    if "cycles" in counts:
        cycles = counts["cycles"]
    return {
        "silicon_cycles": cycles, "ratio": ours / cycles if cycles else None,
        "by": "counter" if "cycles" in counts else "chain",
        "minimum": found.minimum, "median": found.median, "low": found.low, "high": found.high,
        "rounds": [r.median for r in rounds],
        "samples": found.samples, "tried": found.tried, "clock_ghz": found.clock_ghz,
        "unstable": found.unstable or None, "counts": counts, "uncounted": next((a.uncounted for a in answers), None),
    }  # fmt: skip


def per_block(count: float, simulated: dict[str, Any]) -> float:
    bytes_of_block, bytes_of_all = int(simulated["block_bytes"]), int(simulated["bytes"])
    return count * bytes_of_block / bytes_of_all


def place(native: dict[str, Any], wrong: Wrong) -> str:
    """Where memory is not as it should be."""
    at = next((f"byte {wrong.at - start} of the {name}" for name, start, end in native["buffers"]
               if start <= wrong.at < end), f"the module's own data at address {wrong.at:#x}")  # fmt: skip
    return f"{at} is {wrong.ours:#04x} on this processor, the reference's {wrong.theirs:#04x}"


def counters(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Whether the kernel counted, and in a line why not."""
    rows = list(rows)
    counted = any(row.get("counts") for row in rows)
    why = next((row["uncounted"] for row in rows if row.get("uncounted")), None)
    return {"available": counted, "why": None if counted else why}


__all__ = ["Settings", "nearest", "run"]
