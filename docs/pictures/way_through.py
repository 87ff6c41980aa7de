"""The picture of the way through, from a cipher and a machine to a measurement.

    python docs/pictures/way_through.py

writes ``way-through.svg`` beside this file. The bytes depend on this file alone: no
date, no fonts of this computer, no other package. A test makes the picture anew and
compares. Boxes bring their own background, and lines are of a grey that can be seen on
white and on black, so the picture suits pages of either kind.
"""

from __future__ import annotations

import itertools
from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("way-through.svg")

WIDTH, HEIGHT = 904, 760
#: Left and right edge of the three columns: the judge, the compiler, the machine.
LEFT, MIDDLE, RIGHT = (16, 196), (276, 620), (704, 888)

#: Fill and border by what a box is.
DATA, STAGE, JUDGE = ("#fff3d6", "#b7791f"), ("#e3edfb", "#2f5d9b"), ("#e2f4e6", "#2f7d46")
INK, QUIET, LINE = "#1b1f24", "#424a53", "#7b828b"

#: What stands in the middle column, from above: top, kind, name, crates or contents.
STEPS = [
    (16, DATA, "Cipher", "C sources, cipher.toml, official vectors"),
    (84, DATA, "WebAssembly module", "made by clang"),
    (152, STAGE, "Read, make SSA, optimise", "load, opt (data: ir)"),
    (220, STAGE, "Recognise tables, matrices, fields", "recognise"),
    (288, STAGE, "Legalise and select instructions", "select, patterns (data: vcode)"),
    (356, STAGE, "Pipeline loops, schedule the rest", "pipeline, schedule"),
    (424, STAGE, "Allocate registers", "regalloc"),
    (492, STAGE, "Frames, layout, bundles", "codegen (data: program)"),
    (560, STAGE, "Simulate, cycle by cycle", "sim, ooo"),
    (628, JUDGE, "Compare output and memory", "byte by byte (measure)"),
    (696, DATA, "Measurement", "cycles, bounds, bottleneck, evidence"),
]
BOX = 48


def text(
    x: float, y: float, words: str, size: int, colour: str, weight: str = "normal", family: str = "sans-serif"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size}" font-weight="{weight}" '
        f'fill="{colour}" text-anchor="middle">{escape(words)}</text>'
    )


def box(column: tuple[int, int], top: int, kind: tuple[str, str], name: str, *lines: str, height: int = BOX) -> str:
    """A box with a name and smaller lines below it, all in its middle."""
    (left, right), (fill, border) = column, kind
    middle, first = (left + right) / 2, top + height / 2 - 7 * len(lines) + 5
    parts = [
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{height}" rx="6" fill="{fill}" stroke="{border}" stroke-width="1.5"/>',
        text(middle, first, name, 15, INK, "bold"),
    ]
    parts += [text(middle, first + 17 + 15 * i, line, 12, QUIET) for i, line in enumerate(lines)]
    return "\n".join(parts)


def arrow(*points: tuple[float, float]) -> str:
    way = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{way}" fill="none" stroke="{LINE}" stroke-width="2" marker-end="url(#head)"/>'


def down(column: tuple[int, int], top: float, bottom: float) -> str:
    x = sum(column) / 2
    return arrow((x, top), (x, bottom - 2))


def drawn() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="From a cipher and a machine file to a measurement">',
        "<title>From a cipher and a machine file to a measurement</title>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L10,5 L0,10 z" fill="{LINE}"/></marker></defs>',
    ]
    for (top, *_), (following, *_) in itertools.pairwise(STEPS):
        parts.append(down(MIDDLE, top + BOX, following))
    parts += [box(MIDDLE, top, kind, name, below) for top, kind, name, below in STEPS]

    # The judge: the module again, on an interpreter that shares no code with us.
    module, simulate, compare = (STEPS[i][0] + BOX / 2 for i in (1, 8, 9))
    judge = int(simulate) - 32
    x = LEFT[0] + 20
    parts.append(arrow((MIDDLE[0], module), (x, module), (x, judge - 2)))
    parts.append(
        box(
            LEFT,
            judge,
            JUDGE,
            "Reference run",
            "wasmi, which shares",
            "no code with the rest",
            "(reference)",
            height=80,
        )
    )
    parts.append(arrow((x, judge + 80), (x, compare), (MIDDLE[0] - 2, compare)))

    # The machine: one file, read once, asked by every stage from recognition on.
    first, last = STEPS[3][0], STEPS[8][0]
    parts.append(box(RIGHT, STEPS[0][0], DATA, "Machine file", "with extensions, rules.toml"))
    parts.append(down(RIGHT, STEPS[0][0] + BOX, first))
    parts.append(
        box(
            RIGHT,
            first,
            STAGE,
            "Machine",
            "each instruction",
            "as a line of semantics,",
            "units, latencies,",
            "registers, caches",
            "(machine)",
            height=last + BOX - first,
        )
    )
    for top, kind, *_ in STEPS:
        if kind is STAGE and top >= first:
            parts.append(arrow((RIGHT[0], top + BOX / 2), (MIDDLE[1] + 2, top + BOX / 2)))

    # The check of schedules, beside the stages that make them.
    check, ends = STEPS[5][0], STEPS[7][0] + BOX
    narrow = (LEFT[0] + 40, LEFT[1] + 20)
    parts.append(
        box(
            narrow,
            check,
            JUDGE,
            "Check",
            "every schedule, run",
            "symbolically right",
            "before it is used",
            "(verify)",
            height=ends - check,
        )
    )
    for y in (check + BOX / 2, ends - BOX / 2):
        parts.append(arrow((MIDDLE[0], y), (narrow[1] + 2, y)))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8", newline="\n")
