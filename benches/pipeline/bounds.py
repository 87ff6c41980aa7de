"""What is proved of every pipelined loop on the machines that schedule at compile time, as a table.

    .venv/bin/python benches/pipeline/bounds.py                     writes benches/pipeline/bounds.tsv
    .venv/bin/python benches/pipeline/bounds.py --on c64x --cipher rc6     prints rows of today's build
    .venv/bin/python benches/pipeline/bounds.py --on c64x --into    puts a machine's rows into the table, in place of its old ones
    .venv/bin/python benches/pipeline/bounds.py --told              the shares of the committed table

A row is a loop that runs in what is measured: its II, the bound of each kind of certificate (empty where that kind proves
nothing), the greatest that holds for every schedule and its kind, whether the II is proved the least, the bound that
holds where every value stays in a register, and the greatest for the operations that were scheduled, on their
clusters. Of a program's loops the one that most cycles go to is its main loop; the
shares of these that are at a proved optimum are printed. Kept schedules are taken, unless --fresh.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ciphermill import engine, manifest

MACHINES = ("c6201", "c64x", "epic", "itanium2")
TABLE = Path(__file__).with_name("bounds.tsv")
#: Kinds of certificates of bounds that hold for every schedule.
KINDS = ("resources", "circuit", "joint", "relaxation")
FIELDS = (
    "machine",
    "cipher",
    "variant",
    "function",
    "block",
    "main",
    "ii",
    *KINDS,
    "least",
    "certificate",
    "optimal",
    "with_registers",
    "divided",
    "divided_by",
    "seconds",
)
#: Share of main loops at a proved optimum that is wanted.
WANTED = 0.6

Row = dict[str, str]


def proved(task: tuple[str, str, str, bool]) -> list[Row]:
    """The rows of one cipher's variant on a machine."""
    machine, cipher, variant, fresh = task
    started = time.process_time()
    options = engine.Options(fresh=fresh)
    told = engine.explanation(engine.module(manifest.find(cipher), variant), machine, options)
    seconds = f"{time.process_time() - started:.1f}"
    main = main_loop(told)
    return [
        {
            "machine": machine,
            "cipher": cipher,
            "variant": variant,
            "main": "yes" if loop is main else "",
            "seconds": seconds,
            **of_loop(loop),
        }
        for loop in told["loops"]
    ]


def main_loop(told: Any) -> Any:
    """The pipelined loop of the stretch that most cycles go to; the first where no stretch is one."""
    for stretch in told["stretches"]:
        for loop in told["loops"]:
            if loop["function"] == stretch["function"] and loop["block"] in stretch["blocks"]:
                return loop
    return next(iter(told["loops"]), None)


def of_loop(loop: dict[str, Any]) -> Row:
    """What is proved of one loop."""

    def most(bounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return max(bounds, key=lambda b: b["least"], default={"least": "", "certificate": ""})

    always, registers, division = (
        [b for b in loop["bounds"] if b["holds"] == holds] for holds in ("always", "registers", "division")
    )
    kinds = {kind: most([b for b in always if b["certificate"] == kind])["least"] for kind in KINDS}
    return {
        "function": loop["function"],
        "block": str(loop["block"]),
        "ii": str(loop["ii"]),
        **{kind: str(least) for kind, least in kinds.items()},
        "least": str(loop["least"]),
        "certificate": most(always)["certificate"],
        "optimal": "yes" if loop["ii"] <= loop["least"] else "",
        "with_registers": str(most(registers)["least"]),
        "divided": str(most(division)["least"]),
        "divided_by": most(division)["certificate"],
    }


def rows(machines: list[str], wanted: str | None, jobs: int, fresh: bool) -> list[Row]:
    tasks = [
        (machine, cipher, variant, fresh)
        for machine in machines
        for cipher in sorted(manifest.names())
        if wanted in (None, cipher)
        for variant in manifest.find(cipher).variants
    ]
    # A process each: what one has compiled is no other's start.
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        return [row for found in pool.imap(proved, tasks) for row in found]


def program(row: Row) -> tuple[str, str, str]:
    return row["machine"], row["cipher"], row["variant"]


def told(table: list[Row]) -> None:
    """By machine: how many loops are at a proved optimum, and which bounds are the greatest."""
    for machine in [*dict.fromkeys(row["machine"] for row in table), None]:
        mine = [row for row in table if machine in (None, row["machine"])]
        main = [row for row in mine if row["main"]]
        kinds = {kind: sum(row["certificate"] == kind for row in mine) for kind in KINDS}
        named = ", ".join(f"{kind} {n}" for kind, n in kinds.items() if n)
        print(
            f"{machine or 'all'}: {share(mine)} of all loops and {share(main)} of the main loops are at a proved optimum"
        )
        print(f"    the greatest bound: {named}; with every value in a register {risen(mine)} rise")
        print(
            f"    for the operations that were scheduled, on their clusters: {divided(mine)}, main loops {divided(main)}"
        )
    print(f"wanted: {WANTED:.0%} of the main loops".replace("%", " %"))


def share(table: list[Row]) -> str:
    return part_of(sum(bool(row["optimal"]) for row in table), len(table))


def divided(table: list[Row]) -> str:
    """Loops whose division has no shorter schedule."""
    bounds = [(int(row["ii"]), int(row["divided"] or 0), row["optimal"]) for row in table]
    return part_of(sum(bool(optimal) or ii <= least for ii, least, optimal in bounds), len(table))


def part_of(n: int, of: int) -> str:
    return f"{n} of {of} ({n / max(1, of):.0%})".replace("%", " %")


def risen(table: list[Row]) -> int:
    return sum(bool(row["with_registers"]) and int(row["with_registers"]) > int(row["least"]) for row in table)


def main() -> int:
    parser = argparse.ArgumentParser(description="Proved bounds of the pipelined loops of every cipher.")
    parser.add_argument("--on", action="append", metavar="MACHINE", help=f"default: {', '.join(MACHINES)}")
    parser.add_argument("--cipher", help="one cipher's loops only")
    parser.add_argument("--fresh", action="store_true", help="schedules are searched for, whatever is kept of them")
    parser.add_argument("--jobs", type=int, default=2, help="programs that are compiled at the same time (default 2)")
    parser.add_argument("--into", action="store_true", help="rows replace those of the same programs in the table")
    parser.add_argument("--told", action="store_true", help="the shares of the committed table")
    options = parser.parse_args()
    if options.told:
        with TABLE.open(newline="") as table:
            told(list(csv.DictReader(table, delimiter="\t")))
        return 0
    found = rows(options.on or list(MACHINES), options.cipher, options.jobs, options.fresh)
    if options.into:
        programs = {program(row) for row in found}
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
        told(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
