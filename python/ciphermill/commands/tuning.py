"""``tune``: a long search for the schedules of a cipher's loops, kept for later runs."""

from __future__ import annotations

from typing import Annotated

import typer

from .._core import InputError
from ..progress import waiting
from .options import (
    Aligned, BlocksMode, CipherName, Compiler, Direction, Jam, Json, KeyBits, OneMachine, Set, Unrolled, Variant, With, Without, split,
)  # fmt: skip
from .output import print_json, say

#: Most that can be asked for: hours, for the largest loops.
MOST = 1_000


def tune(
    cipher: CipherName,
    on: OneMachine,
    times: Annotated[int, typer.Option(metavar="N", help="Search for so many times as long as a run does.")] = 20,
    rounds: Annotated[int, typer.Option(metavar="N", help="Search so often, each time from the best so far and other ways.")] = 1,
    first: Annotated[int, typer.Option(metavar="N", help="The first round's number: each number is another search.")] = 1,
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    cc: Compiler = "zig",
    json: Json = False,
) -> None:
    """Search for shorter schedules for minutes, and keep them for all later runs.

    For machines whose work is divided between clusters (c6201, c64x). What is found is
    written into schedules/MACHINE.json, or beside a machine file of your own.
    """
    from .. import engine, manifest, schedules
    from .. import tune as tuning

    if not 2 <= times <= MOST:
        raise InputError(f"--times {times}: it is 2 to {MOST}; a run itself searches once")
    if not 1 <= rounds <= MOST:
        raise InputError(f"--rounds {rounds}: it is 1 to {MOST}")
    if not 1 <= first <= MOST:
        raise InputError(f"--first {first}: it is 1 to {MOST}")
    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, jam=jam, unroll=unroll, aligned=aligned, with_=split(with_), without=split(without), set=set,
        cc=cc,
    )  # fmt: skip
    options.check()
    with waiting("searching"):
        outcome = tuning.tune(engine.module(manifest.find(cipher), variant, cc), on, options, times, range(first, first + rounds))
    if json:
        print_json({"schema": 1, **outcome.to_dict()})
    else:
        say(tuning.text(outcome, schedules.file(on)))
