"""Every pipelined loop of every cipher on the machines that schedule at compile time, as a table.

    .venv/bin/python benches/pipeline/loops.py                     writes benches/pipeline/loops.tsv
    .venv/bin/python benches/pipeline/loops.py --on c64x --cipher chacha20     prints rows of today's build
    .venv/bin/python benches/pipeline/loops.py --on c64x --into    puts a machine's rows into the table, in place of its old ones
    .venv/bin/python benches/pipeline/loops.py --compare old.tsv   the table beside another build's

Schedules are searched for, whatever is kept of them. A row is a loop that runs in what is measured: its II beside
ResMII and RecMII, its stages, cycles a block beside their lower bound, and the seconds of processor time that compiling
and measuring took. Of two tables the geometric means are compared, and each row whose cycles a block changed by more
than one in a hundred is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import multiprocessing
import sys
import time
from pathlib import Path

from ciphermill import engine, manifest

MACHINES = ("c6201", "c64x", "epic", "itanium2")
TABLE = Path(__file__).with_name("loops.tsv")
FIELDS = (
    "machine",
    "cipher",
    "variant",
    "cycles_per_block",
    "lower",
    "function",
    "ii",
    "res_mii",
    "rec_mii",
    "stages",
    "not_pipelined",
    "seconds",
)
#: A row is told of where its cycles changed by more.
TOLD = 0.01

Row = dict[str, str]


def measured(task: tuple[str, str, str]) -> list[Row]:
    """The rows of one cipher's variant on a machine; one without a loop where none is pipelined."""
    machine, cipher, variant = task
    started = time.process_time()
    module = engine.module(manifest.find(cipher), variant)
    run = engine.measure(module, machine, engine.Options(fresh=True))
    seconds = f"{time.process_time() - started:.1f}"
    said = {
        "machine": machine,
        "cipher": cipher,
        "variant": variant,
        "cycles_per_block": f"{run.cycles_per_block:.1f}",
        "lower": f"{run.bounds['lower']:.1f}",
        "not_pipelined": " ".join(sorted(loop["reason"] for loop in run.loops_not_pipelined)),
        "seconds": seconds,
    }
    names = ("function", "ii", "res_mii", "rec_mii", "stages")
    loops = [{name: str(loop[name]) for name in names} for loop in run.loops]
    return [{**said, **loop} for loop in loops or [dict.fromkeys(names, "")]]


def rows(machines: list[str], wanted: str | None, jobs: int) -> list[Row]:
    tasks = [
        (machine, cipher, variant)
        for machine in machines
        for cipher in sorted(manifest.names())
        if wanted in (None, cipher)
        for variant in manifest.find(cipher).variants
    ]
    # A process each: what one has compiled is no other's start.
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        return [row for found in pool.imap(measured, tasks) for row in found]


def program(row: Row) -> tuple[str, str, str]:
    return row["machine"], row["cipher"], row["variant"]


def of_programs(table: list[Row]) -> dict[tuple[str, str, str], Row]:
    return {program(row): row for row in table}


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def compare(new: list[Row], old: list[Row]) -> None:
    """Cycles of one table beside those of another, program by program, and their means by machine."""
    now, before = of_programs(new), of_programs(old)
    for machine in sorted({key[0] for key in now}):
        ratios, bounds = [], []
        for key in (key for key in now if key[0] == machine):
            cycles = float(now[key]["cycles_per_block"])
            bounds.append(cycles / float(now[key]["lower"]))
            if key in before:
                then = float(before[key]["cycles_per_block"])
                ratios.append(cycles / then)
                if abs(cycles / then - 1) > TOLD:
                    print(f"{cycles / then:.3f}  {' '.join(key)}: {then} -> {cycles}")
        changed = f", {mean(ratios):.4f} of what they were" if ratios else ""
        print(f"{machine}: cycles {mean(bounds):.3f} of their lower bounds (worst {max(bounds):.2f}){changed}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Pipelined loops of every cipher, and how far they are from their bounds."
    )
    parser.add_argument("--on", action="append", metavar="MACHINE", help=f"default: {', '.join(MACHINES)}")
    parser.add_argument("--cipher", help="one cipher's loops only")
    parser.add_argument("--jobs", type=int, default=2, help="programs that are compiled at the same time (default 2)")
    parser.add_argument("--into", action="store_true", help="rows replace those of the same programs in the table")
    parser.add_argument("--compare", metavar="TABLE", type=Path, help="the committed table beside this one")
    options = parser.parse_args()
    if options.compare:
        with TABLE.open(newline="") as new, options.compare.open(newline="") as old:
            compare(list(csv.DictReader(new, delimiter="\t")), list(csv.DictReader(old, delimiter="\t")))
        return 0
    found = rows(options.on or list(MACHINES), options.cipher, options.jobs)
    if options.into:
        programs = of_programs(found)
        with TABLE.open(newline="") as table:
            found += [row for row in csv.DictReader(table, delimiter="\t") if program(row) not in programs]
        # In the order of the machines and ciphers, the rest as it was.
        found.sort(key=lambda row: (MACHINES.index(row["machine"]), row["cipher"]))
    part = (options.on or options.cipher) and not options.into
    with contextlib.nullcontext(sys.stdout) if part else TABLE.open("w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    if not part:
        compare(found, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
