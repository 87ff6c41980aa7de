"""Microbenchmark sheets: tiny loops on a machine, beside what others have measured.

A sheet is a file in ``machines/sheets``: loops in the machine's own instructions,
each with the value that is expected and where that comes from. The core runs
them; what stands here is how a loop is put together and how far its figure is
from the expected one.

A loop's figure is its cycles a turn, or a count's, divided by the instructions
that are measured in it; with ``less`` it is what it takes beyond another loop for each
branch guessed wrong. A residual is the distance to the expected value, or to the nearer end
of an expected range. How far it may be off depends on what it is (:func:`allowed`): a
throughput of 1.00 for an expected 0.50 is wrong by half, not right to a cycle.

A machine file of a user's own has the sheet of the nearest machine that it inherits from, or one
of the user's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec

from . import _core, library, paths, tables
from .declared import Declared, Source
from .suggest import did_you_mean

SHEETS = paths.MACHINES / "sheets"


class Turn(Protocol):
    """What a turn of a loop came to on a real processor: cycles and wrong guesses, where they are known."""

    @property
    def cycles(self) -> float | None: ...
    @property
    def wrong(self) -> float | None: ...
    @property
    def unstable(self) -> str | None: ...


#: Runs the loops of a request on a real processor, for a machine.
Natively = Callable[[str, Mapping[str, Any]], Sequence[Turn]]

#: Throughputs (loops of the group of that name) may be off by this part of the expected value.
THROUGHPUT = 0.1
#: Everything else in cycles rounds to the expected value, or is within this part of it where that is more.
ROUNDING, LATENCY = 0.5, 0.05
#: Wrong guesses a turn may be off by so many.
GUESSES = 0.05
CRITERION = (
    "throughputs to a tenth, latencies and penalties to half a cycle or a twentieth, wrong guesses to 0.05 a turn"
)

#: Where to see how a sheet is written.
SHOWN = "; machines/sheets/boom.toml shows how a sheet is written"


#: Bytes, words or turns, as the core takes them.
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**32, description="it is a number from 0 to 4294967295")]
Many = Annotated[int, msgspec.Meta(ge=1, description="it is a number from 1 on")]


class Words(Declared, frozen=True):
    """Words in memory: a `pattern` of 0 and 1 again and again, or ``random``."""

    at: Number
    pattern: Annotated[str, msgspec.Meta(pattern="^([01]+|random)$", description="it is made of 0 and 1, or random")]
    count: Number


class Chase(Declared, frozen=True):
    """A circle of addresses in memory."""

    at: Number
    bytes: Number
    stride: Number
    ascending: bool = False


class Others(Declared, frozen=True):
    """One instruction, so many times."""

    instruction: str
    times: Many


class Loop(Declared, frozen=True, kw_only=True):
    name: str
    group: str
    setup: list[str] = msgspec.field(default_factory=list)
    body: list[str]
    #: What stands behind the body in each copy, and is none of the instructions that it counts as.
    others: Others | None = None
    copies: Many = 1
    #: Instructions that a copy counts as; left out: all of its body.
    each: Many | None = None
    turns: (
        Annotated[list[Number], msgspec.Meta(min_length=2, max_length=2, description="two numbers of turns")] | None
    ) = None
    words: Words | None = None
    chase: Chase | None = None
    #: The loop above it that is subtracted; the event that is counted.
    less: str | None = None
    count: str | None = None
    expected: Annotated[
        int | float | Annotated[list[int | float], msgspec.Meta(min_length=2, max_length=2)],
        msgspec.Meta(description="it is a number, or two for a range"),
    ]
    source: str | None = None
    note: str | None = None


class Head(Declared, frozen=True, kw_only=True):
    machine: str | None = None
    before: list[str] = msgspec.field(default_factory=list)
    start: list[str]
    end: list[str]
    source: str


class File(Declared, frozen=True):
    sheet: Annotated[Head, msgspec.Meta(description=f"a sheet has a table [sheet]{SHOWN}")]
    loop: Annotated[list[Loop], msgspec.Meta(description=f"a sheet has tables [[loop]]{SHOWN}")]


def names() -> list[str]:
    """Machines that have a sheet."""
    return sorted(path.stem for path in SHEETS.glob("*.toml"))


def run(machine: str, loops: str | None = None, silicon: Natively | None = None) -> dict[str, Any]:
    """A machine's sheet, filled in; ``machine`` is a name or a path, ``loops`` the path of a sheet.

    With ``silicon`` the loops are handed to it, too, to run them on this computer's processor.
    """
    path, of = (Path(loops), None) if loops else found(machine)
    head, tests = read(path)
    request = {
        "machine": library.request(machine, [], [], []),
        "loops": [asked(head, loop) for loop in tests],
    }
    turns = json.loads(_core.sheet(json.dumps(request)))
    # Other loops are named without their group, and stand before.
    done: dict[str, Mapping[str, Any]] = {}
    rows = []
    for loop, turn in zip(tests, turns, strict=True):
        rows.append(row(head, loop, turn, done))
        done[loop["name"]] = turn
    filled = {"machine": machine, "sheet": of or paths.shown(path), "criterion": CRITERION, "rows": rows}
    if silicon is not None:
        named = [asked(head, loop, f"loop_{n}") for n, loop in enumerate(tests)]
        native = silicon(machine, {**request, "loops": named})
        for r, more in zip(rows, beside(tests, turns, native), strict=True):
            r.update(more)
    return filled


def beside(
    tests: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]], native: Sequence[Turn]
) -> list[dict[str, Any]]:
    """For each loop its native figure, and why there is none or how it was made.

    Where the kernel counts no wrong guesses, a penalty is worked out with those of the simulation.
    """
    wrong = "branches_mispredicted"
    done: dict[str, tuple[Turn, float]] = {}
    found = []
    for loop, simulated, turn in zip(tests, turns, native, strict=True):
        figure, said = None, turn.unstable
        guesses = simulated["events"].get(wrong, 0.0) if turn.wrong is None else turn.wrong
        if turn.cycles is not None and "less" in loop:
            other, theirs = done[loop["less"]]
            if other.cycles is not None and guesses != theirs:
                figure = (turn.cycles - other.cycles) / (guesses - theirs)
                said = said or ("by the simulation's wrong guesses" if turn.wrong is None else None)
        elif "count" in loop:
            figure = turn.wrong if loop["count"] == wrong else None
            said = said if figure is not None else "the kernel does not count that here"
        elif turn.cycles is not None:
            figure = turn.cycles / (loop.get("copies", 1) * loop.get("each", len(loop["body"])))
        done[loop["name"]] = turn, guesses
        found.append({"silicon": None if figure is None else round(figure, 4), "silicon_note": said})
    return found


def found(machine: str) -> tuple[Path, str]:
    """The sheet of a machine, and the name of the machine that it was written for."""
    own, seen = machine.endswith(".toml"), set()
    name: str | None = machine
    if own:
        file: Path = library.machine_path(machine)
        name = library.headline(file, "machine").get("inherits")
    while isinstance(name, str) and name not in seen:
        seen.add(name)
        if name in names():
            return SHEETS / f"{name}.toml", name
        parents = [paths.MACHINES / f"{name}.toml"]
        if own:
            parents += [file.parent / f"{name}.toml", file.parent / name]
        parent = next((p for p in parents if paths.is_file(p)), None)
        name = library.headline(parent, "machine").get("inherits") if own and parent else None
    which = ", ".join(names())
    if own:
        raise _core.InputError(
            f"{machine}: no machine that it inherits from has a microbenchmark sheet ({which} have); give one with --loops FILE"
        )
    raise _core.InputError(
        f"no microbenchmark sheet for {machine!r}{did_you_mean(machine, names())}; there are {which}; "
        "your own machine is a path that ends in .toml, your own sheet --loops FILE"
    )


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Head and loops of a sheet."""
    source = Source.read(path)
    loops = source.checked(File).loop
    for i, loop in enumerate(loops):
        if loop.less is not None and loop.less not in (above := [each.name for each in loops[:i]]):
            raise source.wrong(
                ("loop", i, "less"), f"is {loop.less!r}{did_you_mean(loop.less, above)}; it names a loop above"
            )
    return source.table["sheet"], source.table["loop"]


def asked(head: Mapping[str, Any], loop: Mapping[str, Any], function: str = "f") -> dict[str, Any]:
    """What the core is asked for a loop."""
    others = loop.get("others", {"instruction": "", "times": 0})
    body = (loop["body"] + [others["instruction"]] * others["times"]) * loop.get("copies", 1)
    lines = [
        f"func {function} 0 0",
        *head.get("before", ()),
        *loop.get("setup", ()),
        *head["start"],
        "top:",
        *body,
        *head["end"],
    ]
    one: dict[str, Any] = {"name": loop["name"], "text": "\n".join(lines), "turns": loop.get("turns", [200, 600])}
    if "words" in loop:
        words = loop["words"]
        one["words"] = {"at": words["at"], "words": pattern(words["pattern"], words["count"])}
    if "chase" in loop:
        one["chase"] = loop["chase"]
    return one


def pattern(text: str, count: int) -> list[int]:
    """Words of 0 and 1: a pattern again and again, or a fixed random sequence."""
    if text == "random":
        dice = random.Random(1)
        return [dice.getrandbits(1) for _ in range(count)]
    return [int(text[i % len(text)]) for i in range(count)]


def row(
    head: Mapping[str, Any], loop: Mapping[str, Any], turn: Mapping[str, Any], done: Mapping[str, Any]
) -> dict[str, Any]:
    """A loop's figure beside the expected one."""
    wrong = "branches_mispredicted"
    if "less" in loop:
        other = done[loop["less"]]
        ours = (turn["cycles"] - other["cycles"]) / (turn["events"][wrong] - other["events"][wrong])
    elif "count" in loop:
        ours = turn["events"][loop["count"]]
    else:
        ours = turn["cycles"] / (loop.get("copies", 1) * loop.get("each", len(loop["body"])))
    expected = loop["expected"]
    low, high = expected if isinstance(expected, list) else (expected, expected)
    residual = ours - low if ours < low else ours - high if ours > high else 0.0
    near = low if ours < low else high
    return {
        "group": loop["group"],
        "loop": loop["name"],
        "unit": "wrong guesses a turn" if "count" in loop else "cycles",
        "expected": expected,
        "ours": round(ours, 4),
        "residual": round(residual, 4),
        "within": abs(residual) <= allowed(loop, near),
        "source": loop.get("source", head["source"]),
        "note": loop.get("note"),
    }


def allowed(loop: Mapping[str, Any], near: float) -> float:
    """How far a figure may be from the expected one, ``near``."""
    if "count" in loop:
        return GUESSES
    if "throughput" in loop["group"]:
        return THROUGHPUT * near
    return max(ROUNDING, LATENCY * near)


#: A loop is near silicon within this part of it.
NEAR = 0.03
NATIVE = ("what", "loop", "expected", "ours", "silicon", "ours/silicon", "silicon/expected", "")
HEAD = ("what", "loop", "expected", "ours", "residual", "within")


def text(filled: Mapping[str, Any]) -> str:
    """A sheet for a terminal, with how many residuals are within bounds first."""
    rows = filled["rows"]
    right = sum(r["within"] for r in rows)
    said = f"{filled['machine']}: {right} of {len(rows)} figures are as expected: {filled['criterion']}."
    if filled["sheet"] != filled["machine"]:
        said += f" Loops and expected values are those of {filled['sheet']}."
    wrong = [f"{r['group']} of {r['loop']}: {r['ours']:.2f}, not {shown(r)}" for r in rows if not r["within"]]
    said += "".join(f"\nNot so: {line}" for line in wrong)
    if "silicon" in rows[0]:
        said += f"\n{natively(rows)}"
        table = [(*cells(r)[:4], *native_cells(r)) for r in rows]
        return f"{said}\n\n{tables.text(NATIVE, table, right=(2, 3, 4, 5, 6))}"
    return f"{said}\n\n{tables.text(HEAD, [cells(r) for r in rows], right=(2, 3, 4))}"


def natively(rows: Sequence[Mapping[str, Any]]) -> str:
    """How far the model is from this computer's processor."""
    there = [r for r in rows if r["silicon"]]
    near = sum(abs(r["ours"] / r["silicon"] - 1) <= NEAR for r in there)
    return f"On this computer's processor {near} of {len(there)} are within {100 * NEAR:.0f} % of the model."


def native_cells(r: Mapping[str, Any]) -> tuple[str, ...]:
    silicon = r["silicon"]
    if not silicon:
        return "-", "-", "-", r["silicon_note"] or ""
    expected = r["expected"]
    low, high = expected if isinstance(expected, list) else (expected, expected)
    known = min(max(silicon, low), high)
    digits = 3 if silicon < 1 else 2
    return (
        f"{silicon:.{digits}f}", f"{r['ours'] / silicon:.3f}", f"{silicon / known:.3f}" if known else "-", r["silicon_note"] or "",
    )  # fmt: skip


def markdown(filled: Mapping[str, Any]) -> str:
    """A sheet as a section of a page."""
    lines = [f"## {filled['machine']}", "", f"| {' | '.join((*HEAD, 'source'))} |", "|---|---|---:|---:|---:|---|---|"]
    for r in filled["rows"]:
        source = r["source"] + (f". {r['note']}" if r["note"] else "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (*cells(r), source)) + " |")
    return "\n".join(lines)


def shown(r: Mapping[str, Any]) -> str:
    """The expected value, or its range."""
    expected = r["expected"]
    return f"{expected[0]:g} to {expected[1]:g}" if isinstance(expected, list) else f"{expected:g}"


def cells(r: Mapping[str, Any]) -> tuple[str, ...]:
    digits = 3 if r["ours"] < 1 else 2
    return (
        r["group"],
        r["loop"],
        shown(r),
        f"{r['ours']:.{digits}f}",
        f"{r['residual']:+.{digits}f}",
        "yes" if r["within"] else "NO",
    )


def page() -> str:
    """The page of all sheets."""
    intro = (
        "# Microbenchmarks\n\nTiny loops on the machines that schedule at run time, beside what others measured on the real "
        "ones, as `ciphermill sheet MACHINE` prints them. A figure is the cycles of an instruction (or of the pair, or the "
        "circle's step) in a loop of many; among the predictors, wrong guesses a turn. The residual is the distance to the "
        "expected value, or to the nearer end of an expected range. Within bounds are throughputs to a tenth of the expected "
        "value, latencies and penalties to half a cycle or a twentieth, and wrong guesses to 0.05 a turn; what is not says NO. "
        "Loops, values and their sources are files in `machines/sheets`."
    )
    return "\n\n".join([intro, *(markdown(run(name)) for name in names())]) + "\n"
