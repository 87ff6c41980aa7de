"""Native and simulated cycles as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import tables

HEAD = ("program", "silicon", "model", "model/silicon", "instructions", "IPC", "samples", "")
#: Beyond this many programs only the table says which are unstable, not a line each.
FEW = 8


def text(document: Mapping[str, Any]) -> str:
    """The sentence that matters, the table, what disturbs it."""
    parts = [sentence(document), table(document), *failures(document), *notes(document)]
    return "\n\n".join(part for part in parts if part)


def sentence(document: Mapping[str, Any]) -> str:
    rows, machine = document["rows"], document["machine"]
    right = sum(row["verified"] for row in rows)
    if document["emulator"]:
        return (
            f"{right} of {len(rows)} programs for {machine} leave in memory what the reference interpreter leaves, under "
            f"{document['emulator']}. An emulator's time is not a processor's: there are no cycles."
        )
    done = [row for row in rows if row.get("silicon_cycles")]
    where = document["processor"]["model"]
    if len(done) == 1 and len(rows) == 1:
        row = done[0]
        unit = "a key set-up" if row["direction"] == "keysetup" else "a block"
        return (
            f"{row['program']} on this computer ({where}): {row['silicon_cycles']:.1f} core cycles {unit}; {machine} simulates "
            f"{row['simulated_cycles']:.1f}, {row['ratio']:.3f} times as many. The memory that it left is the reference's."
        )
    said = f"{len(done)} of {len(rows)} programs measured on this computer ({where}), beside {machine}. {errors(document['summary'])}"
    summary = document["summary"]
    if summary["programs"] > 1:
        said += "\nFurthest off: " + ", ".join(f"{w['program']} {w['ratio']:.3f}" for w in summary["worst"]) + "."
    for what, key in (("Held out", "held_out"), ("The others", "others")):
        if summary["held_out"]["programs"] and summary["others"]["programs"]:
            said += f"\n{what}: {errors(summary[key])}"
    return said


def errors(found: Mapping[str, Any]) -> str:
    if not found["programs"]:
        return "No program has a figure."
    return (
        f"{found['programs']} programs, model to silicon {found['geomean']:.3f} (geometric mean), error "
        f"{100 * found['mean_absolute_error']:.1f} % (mean), {100 * found['percentile_90']:.1f} % (90th percentile), "
        f"{100 * found['largest_error']:.1f} % (largest), {100 * found['within_5_percent']:.0f} % of them within 5 %."
    )


def table(document: Mapping[str, Any]) -> str:
    done = [cells(row) for row in document["rows"] if row["verified"]]
    return tables.text(HEAD, done, right=(1, 2, 3, 4, 5, 6), drop=(6, 5)) if done else ""


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    cycles = row.get("silicon_cycles")
    return (
        row["program"],
        f"{cycles:.1f}" if cycles else "-",
        f"{row['simulated_cycles']:.1f}",
        f"{row['ratio']:.3f}" if cycles else "-",
        f"{row['instructions']:.0f}",
        f"{row['instructions'] / cycles:.2f}" if cycles else "-",
        f"{row.get('samples', 0)}/{row.get('tried', 0)}",
        "unstable" if row.get("unstable") else "",
    )


def failures(document: Mapping[str, Any]) -> list[str]:
    return [f"{row['program']}: no figure: {row['failure']}" for row in document["rows"] if not row["verified"]]


def notes(document: Mapping[str, Any]) -> list[str]:
    rows = document["rows"]
    found: list[str] = []
    if document["emulator"]:
        return found
    shaky = [row for row in rows if row.get("unstable")]
    found += [f"{row['program']} is unstable: {row['unstable']}." for row in shaky[:FEW]]
    if len(shaky) > FEW:
        found.append(f"{len(shaky) - FEW} more programs are unstable; --json says why.")
    if loose := [row["program"] for row in rows if row.get("settled") is False]:
        found.append(
            f"The simulation of {', '.join(loose)} had not settled; --bytes with more may be nearer to a steady state."
        )
    if document["counters"]["available"]:
        found.append("Cycles are the processor's own count.")
    elif document["counters"]["why"]:
        found.append(
            f"No hardware counters here: {document['counters']['why']}. A cycle is what one of a chain of dependent additions "
            "takes, timed before and after each sample."
        )
    if document["processor"]["virtual"]:
        found.append(
            "This is a virtual machine; what its neighbours do makes some samples, and whole processes, slower."
        )
    return ["\n".join(found)] if found else []
