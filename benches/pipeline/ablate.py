"""What each part of the search for schedules is worth: the loops without it, beside the loops with all.

    .venv/bin/python benches/pipeline/ablate.py                        every part, a sample of loops
    .venv/bin/python benches/pipeline/ablate.py --without pushes --on c64x --cipher rc6

A part is left out of the whole search (`PARTS` in `crates/pipeline/src/search/params.rs`). For each the geometric mean of
cycles a block is printed, and of seconds of processor time, relative to a search with all parts; and the row that loses
most. A search draws random numbers: less than a hundredth says nothing, and so the usual search is made with other
numbers as well (`other numbers`: as for a schedule that is to be kept, and so without `rerolls` and `respills`). All
schedules are searched for, whatever is kept. `ablation.tsv` is what it printed last.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time

from ciphermill import _core, engine, manifest

PARTS = (
    "pushes",
    "exchanges",
    "crossings",
    "aims",
    "lists",
    "iterates",
    "spreads",
    "races",
    "hopeless",
    "narrows",
    "divides",
    "rerolls",
    "bases",
    "respills",
)
#: Short of registers, of units, of both; blocks, streams, one block at a time; small bodies and large.
SAMPLE = (
    ("c6201", "rijndael", "ttable"),
    ("c6201", "square", "ttable"),
    ("c6201", "misty1", "plain"),
    ("c6201", "rabbit", "halves"),
    ("c64x", "rc6", "plain"),
    ("c64x", "twofish", "full-keying"),
    ("c64x", "chacha20", "r8"),
    ("c64x", "square", "compact"),
)
OTHER = "other numbers"

Cell = tuple[str, str, str]


def measured(task: tuple[Cell, str]) -> tuple[float, float]:
    """Cycles a block, and the seconds that compiling and measuring took."""
    (machine, cipher, variant), part = task
    started = time.process_time()
    module = engine.module(manifest.find(cipher), variant)
    search: dict[str, object] | None = None
    if part == OTHER:
        search = {"times": 1, "round": 1}
    elif part:
        search = {"times": 1, "round": 0, "without": [part]}
    asked = engine.request(module, machine, engine.Options(fresh=True), search=search)
    answer = json.loads(_core.measure(module.wasm, asked))
    return answer["cycles_per_block"], time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", action="append", choices=PARTS, help="a part that is left out; all by default")
    parser.add_argument("--on", help="machine, of those of the sample")
    parser.add_argument("--cipher", help="cipher, of those of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    cells = [c for c in SAMPLE if asked.on in (None, c[0]) and asked.cipher in (None, c[1])]
    if not cells:
        parser.error("the sample has no such row")
    parts = ["", OTHER, *(asked.without or PARTS)]
    tasks = [(cell, part) for part in parts for cell in cells]
    with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
        found = dict(zip(tasks, pool.imap(measured, tasks), strict=True))
    print("left out\tcycles\tseconds\tmost")
    for part in parts[1:]:
        ratios = [(found[cell, part][0] / found[cell, ""][0], "/".join(cell)) for cell in cells]
        seconds = [found[cell, part][1] / found[cell, ""][1] for cell in cells]
        most = max(ratios)
        print(f"{part}\t{mean([r[0] for r in ratios]):.3f}\t{mean(seconds):.2f}\t{most[0]:.2f} {most[1]}", flush=True)


def mean(ratios: list[float]) -> float:
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


if __name__ == "__main__":
    main()
