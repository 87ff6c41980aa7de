"""C as other libraries write it, on the machines that schedule at compile time, as a table.

    .venv/bin/python benches/foreign.py                        writes benches/foreign.tsv
    .venv/bin/python benches/foreign.py --on c64x --only lea   prints rows of today's build
    .venv/bin/python benches/foreign.py --compare old.tsv      the table beside another build's

The programs are those of tests/python/foreign; nothing was tuned to them. A row is a program on a machine: cycles a
block beside their lower bound, the seconds of processor time that compiling and measuring took, the loops that are
pipelined, each as its II, stages, ResMII and RecMII, and why others are not. Schedules are searched for, whatever is
kept of them. What takes longer than a minute of processor time is stopped, and its row says so. Of two
tables the geometric means are compared, and each row whose cycles a block changed by more than one in a hundred is
printed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path

from ciphermill import engine, manifest

MACHINES = ("c6201", "c64x", "epic", "itanium2")
PROGRAMS = Path(__file__).parents[1] / "tests/python/foreign"
TABLE = Path(__file__).with_name("foreign.tsv")
FIELDS = ("machine", "program", "direction", "cycles_per_block", "lower", "ratio", "seconds", "loops", "not_pipelined")
#: What is measured of a program is what it does with a block; of these also the other way, as it is another algorithm.
INVERSES = frozenset({"mlkem"})
#: Bytes of message: enough for a steady state, and for the longest block. The others have blocks that do not divide it.
MESSAGE = 4096
MESSAGES = {"speck48": 4098, "xoodoo": 4128, "xxtea": 4100}
#: Seconds of processor time after which a program is stopped.
LIMIT = 60
#: A row is told of where its cycles changed by more.
TOLD = 0.01

Row = dict[str, str]


def sources() -> dict[str, Path]:
    """By name the manifest, or the C file of a program that has none."""
    return {path.stem: path for suffix in (".c", ".toml") for path in sorted(PROGRAMS.glob(f"*{suffix}"))}


def measured(machine: str, program: str, direction: str | None) -> Row:
    """The row of a program; it ends this process where it takes too long."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
    started = time.process_time()
    module = engine.module(manifest.find(str(sources()[program])))
    options = engine.Options(bytes=MESSAGES.get(program, MESSAGE), direction=direction, fresh=True)
    run = engine.measure(module, machine, options)
    if not run.verified:
        raise SystemExit(f"{program} on {machine}: what was measured is not verified")
    lower = run.bounds["lower"]
    loops = [f"{loop['ii']}/{loop['stages']}/{loop['res_mii']}/{loop['rec_mii']}" for loop in run.loops]
    return {
        "machine": machine,
        "program": program,
        "direction": run.direction,
        "cycles_per_block": f"{run.cycles_per_block:.1f}",
        "lower": f"{lower:.1f}",
        "ratio": f"{run.cycles_per_block / lower:.3f}",
        "seconds": f"{time.process_time() - started:.1f}",
        "loops": " ".join(loops),
        "not_pipelined": " ".join(sorted(loop["reason"] for loop in run.loops_not_pipelined)),
    }


def apart(task: tuple[str, str, str]) -> Row:
    """The row of a program, in a process of its own: what one has compiled is no other's start."""
    machine, program, direction = task
    child = subprocess.run([sys.executable, __file__, "--row", *task], capture_output=True, text=True, check=False)
    if child.returncode == -signal.SIGXCPU:
        stopped = {"seconds": f">{LIMIT}", "not_pipelined": "stopped"}
        return {**dict.fromkeys(FIELDS, ""), "machine": machine, "program": program, "direction": direction, **stopped}
    if child.returncode:
        # Not an exit: a pool that loses a thread waits for ever.
        raise RuntimeError(f"{program} on {machine}: {child.stderr}")
    row: Row = json.loads(child.stdout)
    return row


def rows(machines: list[str], wanted: str | None, jobs: int) -> Iterator[Row]:
    """One after another, as they are found."""
    programs = [name for name in sorted(sources()) if wanted in (None, name)]
    directions = [(name, way) for name in programs for way in ("", "decrypt") if not way or name in INVERSES]
    tasks = [(machine, *program) for machine in machines for program in directions]
    with ThreadPool(jobs) as pool:
        yield from pool.imap(apart, tasks)


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def compare(new: list[Row], old: list[Row]) -> None:
    """Cycles of one table beside those of another, program by program, and their means by machine."""
    before = {(row["machine"], row["program"], row["direction"]): row for row in old}
    for machine in dict.fromkeys(row["machine"] for row in new):
        done = [row for row in new if row["machine"] == machine and row["ratio"]]
        changes = []
        for row in done:
            then = before.get((machine, row["program"], row["direction"]), {}).get("cycles_per_block")
            if then:
                changes.append(float(row["cycles_per_block"]) / float(then))
                if abs(changes[-1] - 1) > TOLD:
                    now = row["cycles_per_block"]
                    print(f"{changes[-1]:.3f}  {machine} {row['program']} {row['direction']}: {then} -> {now}")
        bounds, seconds = [float(row["ratio"]) for row in done], [float(row["seconds"]) for row in done]
        changed = f", {mean(changes):.4f} of what they were" if changes else ""
        print(
            f"{machine}: cycles {mean(bounds):.3f} of their lower bounds (worst {max(bounds):.2f}){changed}; "
            f"{mean(seconds):.1f} s of processor time each (longest {max(seconds):.0f})"
        )
        for row in new:
            if row["machine"] == machine and not row["ratio"]:
                print(f"{machine} {row['program']}: stopped after {LIMIT} s of processor time")


def main() -> int:
    parser = argparse.ArgumentParser(description="What code of other libraries comes to, beside its lower bounds.")
    parser.add_argument("--on", action="append", metavar="MACHINE", help=f"default: {', '.join(MACHINES)}")
    parser.add_argument("--only", metavar="PROGRAM", help="one program's rows only")
    parser.add_argument("--jobs", type=int, default=2, help="programs that are compiled at the same time (default 2)")
    parser.add_argument("--compare", metavar="TABLE", type=Path, help="the committed table beside this one")
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        machine, program, direction = options.row
        print(json.dumps(measured(machine, program, direction or None)))
        return 0
    if options.compare:
        with TABLE.open(newline="") as new, options.compare.open(newline="") as old:
            compare(list(csv.DictReader(new, delimiter="\t")), list(csv.DictReader(old, delimiter="\t")))
        return 0
    part = options.on or options.only
    found = []
    with contextlib.nullcontext(sys.stdout) if part else TABLE.open("w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for row in rows(options.on or list(MACHINES), options.only, options.jobs):
            writer.writerow(row)
            out.flush()
            found.append(row)
    if not part:
        compare(found, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
