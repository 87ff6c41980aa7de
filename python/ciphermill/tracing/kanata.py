"""Kanata logs, version 0004: what Konata, the pipeline viewer, opens.

A line is a command, its fields set apart by tabs: ``C=`` and ``C`` say the
cycle, ``I`` begins a micro-operation, ``L`` labels it, ``S`` and ``E`` begin
and end a stage, ``R`` retires it (0) or throws it away (1). Source: the
format's description in Konata's repository, ``docs/kanata-log-format.md``.
"""

from __future__ import annotations

from . import Stages, end, spans, title

#: As Konata writes stages: short.
NAMES = {"fetch": "F", "decode": "Dc", "rename": "Rn", "wait": "Sc", "execute": "X", "done": "Cm"}


def text(rows: Stages) -> str:
    """The log of some micro-operations."""
    # By cycle; in a cycle what ends comes before what begins.
    commands: list[tuple[int, int, str]] = []
    # Numbers in the file go with the first cycle.
    rows = sorted(rows, key=lambda row: row["fetch"])
    retired = 0
    for n, row in enumerate(rows):
        number = row["instruction"] if row["instruction"] is not None else 0
        first = row["fetch"]
        port = f", port {row['port']}" if row["port"] else ""
        commands.append((first, 1, f"I\t{n}\t{number}\t0"))
        commands.append((first, 1, f"L\t{n}\t0\t{row['address']:#x}: {title(row)}"))
        commands.append((first, 1, f"L\t{n}\t1\tmicro-operation {row['micro_op']}, {row['kind']}{port}"))
        for name, start, stop in spans(row):
            commands.append((start, 2, f"S\t{n}\t0\t{NAMES[name]}"))
            commands.append((stop, 0, f"E\t{n}\t0\t{NAMES[name]}"))
        commands.append((end(row) + 1, 3, f"R\t{n}\t{retired}\t{int(row['squashed'])}"))
        retired += not row["squashed"]
    commands.sort(key=lambda c: c[:2])
    now = commands[0][0] if commands else 0
    lines = ["Kanata\t0004", f"C=\t{now}"]
    for cycle, _, command in commands:
        if cycle > now:
            lines.append(f"C\t{cycle - now}")
            now = cycle
        lines.append(command)
    return "\n".join(lines) + "\n"
