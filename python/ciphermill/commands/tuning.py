"""``tune``: a long search for the schedules of a cipher's loops, kept for later runs."""

from __future__ import annotations

from typing import Annotated

import typer

from .._core import InputError
from ..options import Options
from ..progress import waiting
from .options import CipherName, Json, OneMachine, Variant, taking
from .output import print_json, say

#: Most that can be asked for: hours, for the largest loops.
MOST = 1_000


@taking(only=("direction", "key_bits", "blocks", "jam", "unroll", "aligned", "with_", "without", "set", "cc"))
def tune(
    cipher: CipherName,
    on: OneMachine,
    times: Annotated[int, typer.Option(metavar="N", help="Search for so many times as long as a run does.")] = 20,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Search so often, each time from the best so far and other ways.")
    ] = 1,
    first: Annotated[
        int, typer.Option(metavar="N", help="The first round's number: each number is another search.")
    ] = 1,
    variant: Variant = None,
    options: Options = Options(),
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
    options.check()
    with waiting("searching"):
        outcome = tuning.tune(
            engine.module(manifest.find(cipher), variant, options.cc), on, options, times, range(first, first + rounds)
        )
    if json:
        print_json({"schema": 1, **outcome.to_dict()})
    else:
        say(tuning.text(outcome, schedules.file(on)))
