"""``tune``: long searches for the schedules of ciphers' loops, kept for later runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .. import completion
from .._core import InputError, InternalError
from ..options import Options
from ..progress import waiting
from .options import Json, Machine, split, taking
from .output import OUR_FAULT, complain, print_json, say

if TYPE_CHECKING:
    from ..tuning import course, search

#: What `all` stands for where a cipher can be named.
ALL = "all"


@taking(
    only=("direction", "key_bits", "blocks", "jam", "unroll", "aligned", "with_", "without", "set", "cc"),
    help={
        "direction": "encrypt, decrypt, keysetup or keystream. Default: each that the cipher has.",
        "blocks": "single (feedback mode) or multi (independent blocks). Default: both.",
    },
)
def tune(
    cipher: Annotated[
        str,
        typer.Argument(
            metavar="[CIPHER]",
            help="A built-in name, a .c, a .wasm, a manifest; or all, for every built-in cipher.",
            autocompletion=completion.ciphers,
        ),
    ] = ALL,
    on: Machine = [],
    variant: Annotated[
        str | None,
        typer.Option(help="Which of the cipher's variants. Default: all.", autocompletion=completion.variants),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="All that a study measures on such machines, and nothing else."),
    ] = None,
    times: Annotated[int, typer.Option(metavar="N", help="Search for so many times as long as a run does.")] = 20,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Search so often, each time from the best so far and other ways. Default: 1; with --minutes, until they are over.",
        ),
    ] = None,
    first: Annotated[
        int, typer.Option(metavar="N", help="The first round's number: each number is another search.")
    ] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", help="Begin no round that would end later. Rounds are short at first, then longer."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="How many cells at once. Default: the cores.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say which kept schedules no loop takes any more, and why; 1 if there are.")
    ] = False,
    mend: Annotated[
        bool, typer.Option("--mend", help="Take these out, and search only for what they were for.")
    ] = False,
    options: Options = Options(),
    json: Json = False,
) -> None:
    """Search for shorter schedules for minutes or hours, and keep them for all later runs.

    For machines that schedule at compile time (c6201, c64x, epic, itanium2). What is found for
    a built-in cipher is written into schedules/MACHINE.json, or beside a machine file of your
    own; for a cipher of your own beside that. Stop it at any time: the same command goes on.
    """
    from ..tuning import cells, course, mending, standing, text

    wrong_numbers(times, rounds, first, minutes, jobs, course.MOST)
    options.check()
    if check and mend:
        raise InputError("--check and --mend: --mend says what --check says, and mends it; ask for one of them")
    if (check or mend) and (said := [name for name in options.asked() if name != "cc"]):
        option = f"--{said[0].replace('_', '-')}"
        raise InputError(f"{option}: --check and --mend look at all that is kept of a cipher; leave {option} out")
    if study is not None and (more := also(cipher, on, variant, check or mend, options)):
        raise InputError(f"{more}: --study says all that is searched; leave {more} out")
    ciphers = cells.named([] if cipher == ALL else [cipher])
    machines, without = chosen(on, options)
    if check or mend:
        machines += [] if on else cells.of_studies()
    document: dict[str, object] = {"schema": 1}
    # Minutes are those of the whole command.
    clock = course.Clock(minutes)
    if check or mend:
        found = []
        for each in standing.of(ciphers, variant, machines, options.cc, jobs):
            found.append(each)
            line = text.standing(each)
            if line is not None and not json:
                print(line, flush=True)
        document["schedules"] = [each.to_dict() for each in found]
        if not json:
            say(text.standings(found))
        if check:
            if json:
                print_json(document)
            raise typer.Exit(0 if all(each.taken for each in found) else 1)
        wanted = mending.lost(found)
    elif study is not None:
        wanted = [(cell, []) for cell in cells.of_study(study, options.cc)]
    else:
        wanted = [(cell, []) for cell in cells.of(ciphers, variant, machines, options)]
    with waiting("looking at what is done"):
        way = course.Course(wanted, course.efforts(times, rounds, first, minutes), clock, jobs)
    if way.seats:
        print(text.plan(way, without), file=sys.stderr if json else sys.stdout, flush=True)

    def told(seat: course.Seat, step: search.Step | None) -> None:
        if seat.error is not None:
            complain(f"{seat.cell.title}: {seat.error}")
        line = text.line(seat, step)
        if line is not None and not json:
            print(line, flush=True)

    way.run(told)
    if json:
        print_json({**document, **text.document(way)})
    elif way.seats:
        say(text.summary(way))
    raise typer.Exit(status(way.seats))


def chosen(on: list[str], options: Options) -> tuple[list[str], list[str]]:
    """Machines for which schedules are kept, and those that schedule at compile time and have none kept.

    Raises InputError where a machine was named that is not one of the first.
    """
    from ..tuning import cells

    named = split(on)
    if on and not named:
        raise InputError("--on is given and empty; name a machine, or leave --on out to have all of them")
    machines = list(dict.fromkeys(named)) or cells.explicit(options)
    keeping = [machine for machine in machines if cells.keeps(machine, options)]
    without = [machine for machine in machines if machine not in keeping]
    if without and named:
        raise InputError(
            f"--on {without[0]}: no schedule is kept for it; that is for machines that schedule at compile time, such as"
            " c6201 and epic"
        )
    return keeping, without


def also(cipher: str, on: list[str], variant: str | None, looks: bool, options: Options) -> str | None:
    """What is said beside a study that says where to search, as on the command line; None where that is nothing."""
    said = [f"--{name.replace('_', '-').strip('-')}" for name in options.asked() if name != "cc"]
    given = {"--on": bool(on), "--variant": variant is not None, "--check or --mend": looks, cipher: cipher != ALL}
    return next(iter([*said, *(name for name, there in given.items() if there)]), None)


def status(seats: list[course.Seat]) -> int:
    """The exit code: a fault of ours goes before one of the input."""
    errors = [seat.error for seat in seats if seat.error is not None]
    if any(isinstance(error, InternalError) for error in errors):
        complain(OUR_FAULT)
        return 1
    return 2 if errors else 0


def wrong_numbers(
    times: int, rounds: int | None, first: int, minutes: float | None, jobs: int | None, most: int
) -> None:
    """Raise InputError for numbers that cannot be had."""
    if not 2 <= times <= most:
        raise InputError(f"--times {times}: it is 2 to {most}; a run itself searches once")
    if rounds is not None and not 1 <= rounds <= most:
        raise InputError(f"--rounds {rounds}: it is 1 to {most}")
    if not 1 <= first <= most:
        raise InputError(f"--first {first}: it is 1 to {most}")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise InputError(f"--minutes {minutes:g}: it is more than 0; leave --minutes out to have all rounds made")
    if jobs is not None and not 1 <= jobs <= most:
        raise InputError(f"--jobs {jobs}: it is 1 to {most}")
