"""What is measured, apart from which cipher and machine.

Each option of a measurement is a field of `Options` and said nowhere else: its name,
type and default, and in a `Said` how the command line spells and explains it. The
commands take their options from here (``commands/options.py``), and so does a
page that shows how to get its numbers again (`Options.asked`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, get_type_hints

from ._core import InputError

DIRECTIONS = (
    "encrypt", "decrypt", "keysetup", "keystream", "permute", "hash", "mac", "authenticate", "run",
)  # fmt: skip
BLOCKS = ("single", "multi")
GOALS = ("speed", "size")

#: The largest number that the core is given.
LARGEST = 2**32 - 1

#: The largest limit on a run's steps that the core is given.
MOST_STEPS = 2**63 - 1
#: Times that a search may be longer than usual: hours.
MOST_PATIENCE = 1000

#: Instructions of one trace: more than a viewer is opened for.
MOST_TRACED = 1_000_000


@dataclass(frozen=True)
class Said:
    """How an option stands on the command line."""

    help: str
    #: Its spelling where that is not the field's name.
    spelt: str | None = None
    metavar: str | None = None
    #: Of what its value is a name, which a shell can complete: ``extensions``.
    names: str | None = None
    #: Several values may stand in one, with commas between.
    commas: bool = False


class Traced(TypedDict):
    """Instructions of a trace: the ``first``, counted from 0 (None: from the middle), and how many."""

    first: int | None
    count: int


@dataclass(frozen=True)
class Options:
    """What is measured, apart from which cipher and machine. In the order in which ``--help`` lists them."""

    direction: Annotated[str | None, Said("encrypt, decrypt, keysetup or keystream.")] = None
    key_bits: Annotated[int | None, Said("Key size in bits. Default: 128.")] = None
    blocks: Annotated[str | None, Said("single (feedback mode) or multi (independent blocks). Default: multi.")] = None
    bytes: Annotated[int | None, Said("Message length. Default: 4096.", metavar="N")] = None
    limit: Annotated[
        int | None,
        Said("Give a run up after so many steps of the interpreter. Default: some seconds' worth.", metavar="N"),
    ] = None
    jam: Annotated[
        int | None, Said("Blocks carried through the code together. Default: what is fastest of a few.", metavar="N")
    ] = None
    unroll: Annotated[bool | None, Said("Rounds unrolled. Default: what is fastest.", spelt="--unroll/--no-unroll")] = (
        None
    )
    aligned: Annotated[
        bool,
        Said(
            "Buffers are read and written as words, as hand-written code for aligned buffers would.", spelt="--aligned"
        ),
    ] = False
    optimise: Annotated[
        str, Said("What code is to be: fast, or small (few bytes, whatever the cycles).", metavar="speed|size")
    ] = "speed"
    static: Annotated[
        bool,
        Said(
            "The context's address stands in the code, as a global variable's does; it takes no register.",
            spelt="--static",
        ),
    ] = False
    with_: Annotated[
        Sequence[str],
        Said(
            "Add instruction-set extensions to the machine.",
            spelt="--with",
            metavar="EXT[,EXT]",
            names="extensions",
            commas=True,
        ),
    ] = ()
    without: Annotated[
        Sequence[str], Said("Take instructions or extensions away.", metavar="NAME[,NAME]", commas=True)
    ] = ()
    set: Annotated[
        Sequence[str],
        Said("Change any number in the machine file, for instance machine.clock_mhz=50.", metavar="PATH=VALUE"),
    ] = ()
    repeat: Annotated[bool, Said("Measure twice and insist on the same result.", spelt="--repeat")] = False
    optimal: Annotated[bool, Said("Exact scheduling.", spelt="--optimal")] = False
    exact: Annotated[bool, Said("Simulate the whole message, never a sample of it.", spelt="--exact")] = False
    #: Schedules are searched for, not taken from those that are kept.
    fresh: Annotated[bool, Said("Search for schedules anew; take none that `tune` has kept.", spelt="--fresh")] = False
    patience: Annotated[int, Said("Search for good schedules with so many times the usual budget.", metavar="N")] = 1
    #: Instructions whose way through the pipeline is wanted. No option of most commands:
    #: `trace` has two of its own for it.
    trace: Traced | None = None
    cc: Annotated[str, Said("zig (the clang that comes along), system, or the path of a clang.", metavar="CC")] = "zig"

    def __post_init__(self) -> None:
        """What Python can read as a number or as yes or no, numpy's for instance, becomes one."""
        for name, (kind, _) in SAID.items():
            if kind in (int, int | None):
                object.__setattr__(self, name, _number(name, getattr(self, name)))
            elif kind in (bool, bool | None):
                object.__setattr__(self, name, _yes_or_no(name, getattr(self, name)))

    def check(self) -> None:
        """Raises InputError where an option's value is none that it can have."""
        if self.direction is not None and self.direction not in DIRECTIONS:
            raise InputError(f"--direction {self.direction}: it is one of {', '.join(DIRECTIONS)}")
        if self.blocks is not None and self.blocks not in BLOCKS:
            raise InputError(f"--blocks {self.blocks}: it is single (a feedback mode) or multi (independent blocks)")
        for option, number in (("--bytes", self.bytes), ("--jam", self.jam)):
            # The core says what is right of a number it can hold.
            if number is not None and not 0 <= number <= LARGEST:
                wrong = "a negative number" if number < 0 else "too large a number"
                raise InputError(f"{option} {number}: {wrong}; leave {option} out for the usual one")
        check_limit(self.limit)
        if not 1 <= self.patience <= MOST_PATIENCE:
            raise InputError(
                f"--patience {self.patience}: a search of so many times the usual length, 1 to {MOST_PATIENCE}"
            )
        if self.optimise not in GOALS:
            raise InputError(f"--optimise {self.optimise}: it is speed (few cycles) or size (few bytes of code)")
        if self.trace is not None:
            first, count = self.trace["first"], self.trace["count"]
            if first is not None and first < 0:
                raise InputError(f"--first {first}: instructions are numbered from 0")
            if not 1 <= count <= MOST_TRACED:
                raise InputError(f"--count {count}: a trace has 1 to {MOST_TRACED} instructions")

    def asked(self) -> dict[str, Any]:
        """What differs from the usual, by the names that options have (``with``, ``key_bits``)."""
        given = {name: getattr(self, name) for name in SAID}
        given = {name: list(value) if isinstance(value, list | tuple) else value for name, value in given.items()}
        return {name.rstrip("_"): value for name, value in given.items() if value != USUAL[name]}


def check_limit(limit: int | None) -> None:
    """Raises InputError for a limit that a run cannot have."""
    if limit is not None and not 1 <= limit <= MOST_STEPS:
        raise InputError(f"--limit {limit}: it is the number of steps after which a run is given up, 1 to {MOST_STEPS}")


def _number(name: str, value: Any) -> int | None:
    try:
        if value is None or not isinstance(value, bool):
            return None if value is None else operator.index(value)
    except TypeError:
        pass
    option = f"--{name.replace('_', '-')}"
    raise InputError(f"{option} {value!r}: not a whole number; leave {option} out for the usual one")


def _yes_or_no(name: str, value: Any) -> bool | None:
    # In numpy True and False are others, and equal to ours.
    for answer in (None, True, False):
        if value is answer or (not isinstance(value, (int, float)) and value == answer):
            return answer
    raise InputError(f"--{name} {value!r}: it is True or False")


def _said() -> dict[str, tuple[Any, Said]]:
    hints = get_type_hints(Options, include_extras=True)
    return {
        name: (hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items() if hasattr(hint, "__metadata__")
    }


#: The fields that are options of the command line: type, and what is said of them.
SAID: dict[str, tuple[Any, Said]] = _said()
#: What an option is where nothing is said.
USUAL: dict[str, Any] = {name: [] if getattr(Options, name) == () else getattr(Options, name) for name in SAID}
