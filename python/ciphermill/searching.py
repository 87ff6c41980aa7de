"""How the schedule of each pipelined loop was found, for people: phases, moves, and a curve.

The core counts what a search does; here it only becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import report

#: Columns and rows of a curve.
WIDTH, HEIGHT = 60, 10
#: The phase whose intervals are not the loop's.
REROLL = "reroll"
#: What the phases do, in the order in which they come.
PHASES = {
    REROLL: "one of its rounds as a loop: intervals are the round's",
    "kept": "a kept schedule, to go on from",
    "list": "operations placed one by one, registers counted",
    "ascend": "starts at longer and longer intervals",
    "race": "many starts at a shorter interval, the better part goes on",
    "narrow": "rows taken out",
    "compare": "rows taken out of several schedules, the better part goes on",
}
KINDS = {
    "shifts": "to another cycle",
    "exchanges": "in exchange",
    "pushes": "with others",
    "crossings": "across",
    "spills": "to the frame or back",
}


def text(loops: Sequence[Mapping[str, Any]]) -> str:
    """A part for each loop: what its search had and came to, its phases, its moves by kind, and the II over them."""
    if not loops:
        return "No loop is software-pipelined, so no schedule was searched for."
    return "\n\n".join(of_loop(loop) for loop in loops)


def of_loop(loop: Mapping[str, Any]) -> str:
    where = f"The loop in block {loop['block']} of {loop['function']}: II {loop['ii']}, at least {loop['least']}."
    search = loop["search"]
    if search is None:
        return f"{where} Its schedule is a kept one; --fresh searches for one."
    spent = search["budget"] - search["left"]
    forms, divisions = counted(search["forms"], "form"), counted(search["divisions"], "division")
    said = f"{where} {forms}, {divisions}; {spent:,} of {search['budget']:,} moves spent."
    parts = [said, phases(search["phases"]), moves(search["moves"])]
    if len(steps := curve(search["phases"])) > 1:
        parts.append(plot(steps, loop["least"]))
    return "\n\n".join(parts)


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def phases(found: Sequence[Mapping[str, Any]]) -> str:
    """A line for each phase: the II that it was after, the one that it came to, what it tried and cost, and its end."""
    rows = []
    for phase in found:
        to = "none" if phase["to"] is None else str(phase["to"])
        end = f"{phase['broken']} broken" if phase["end"] == "broken" else phase["end"]
        rows.append(
            (
                phase["phase"],
                str(phase["from"]),
                to,
                str(phase["tried"]),
                f"{phase['work']:,}",
                end,
                PHASES[phase["phase"]],
            )
        )
    head = ("phase", "from", "to", "tried", "moves", "end", "what it does")
    return report.columns(head, rows, right=(1, 2, 3, 4))


def moves(found: Mapping[str, Any]) -> str:
    """A line for each kind of move: how many were tried and taken."""
    rows = []
    for kind, what in KINDS.items():
        tried, taken = found[kind]["tried"], found[kind]["taken"]
        rows.append((what, f"{tried:,}", f"{taken:,}", f"{taken / tried:.1%}" if tried else ""))
    return report.columns(("moves", "tried", "taken", "share"), rows, right=(1, 2, 3))


def curve(found: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Moves spent and the least II so far, behind each phase that came to a schedule."""
    steps: list[tuple[int, int]] = []
    spent, least = 0, None
    for phase in found:
        spent += phase["work"]
        if phase["to"] is not None and phase["phase"] != REROLL:
            least = phase["to"] if least is None else min(least, phase["to"])
        if least is not None:
            steps.append((spent, least))
    return steps


def plot(steps: Sequence[tuple[int, int]], bound: int) -> str:
    """The II over the moves spent, as stairs of characters; the lowest line is the bound."""
    first, last = steps[0], steps[-1]
    high = max(first[1], bound + 1)
    lines = [[" "] * WIDTH for _ in range(HEIGHT)]
    at = 0
    for column in range(WIDTH):
        moves = last[0] * (column + 1) / WIDTH
        while at + 1 < len(steps) and steps[at + 1][0] <= moves:
            at += 1
        if steps[at][0] <= moves:
            row = round((HEIGHT - 1) * (high - steps[at][1]) / (high - bound))
            lines[min(row, HEIGHT - 1)][column] = "*"
    width = max(len(str(high)), len(str(bound)))
    labels = [str(high), *[""] * (HEIGHT - 2), str(bound)]
    drawn = [f"{label:>{width}} |{''.join(line)}".rstrip() for label, line in zip(labels, lines, strict=True)]
    axis = f"{'':>{width}} +{'-' * WIDTH}"
    foot = f"{'':>{width}}  0{f'{last[0]:,} moves':>{WIDTH - 1}}"
    return "\n".join(["II", *drawn, axis, foot])
