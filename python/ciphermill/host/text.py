"""Native measurements as text for people."""

from __future__ import annotations

from typing import Any

from .. import tables


def text(document: dict[str, Any]) -> str:
    """The sentence that matters, whether there were counters, the table, the warnings."""
    parts = [sentence(document)]
    if document["engine"] == "perf":
        parts.append(counters(document))
        parts.append(timing(document))
        if events := paper(document):
            parts.append(events)
    else:
        parts.append(instructions(document))
    parts += [f"{label(row)}: NOT VERIFIED: {row['failure']}" for row in document["rows"] if not row["verified"]]
    if notes := warnings(document):
        parts.append("\n".join(notes))
    parts.append(suggestion(document))
    return "\n\n".join(part for part in parts if part)


def sentence(document: dict[str, Any]) -> str:
    name = f"{document['cipher']}/{document['variant']} {document['direction']}, {document['key_bits']}-bit key"
    good = [row for row in document["rows"] if row["verified"]]
    where = document["processor"]["model"]
    if not good:
        return f"{name} on this computer ({where}): no figure, because no compiler's code is verified."
    unit = "a key set-up" if document["direction"] == "keysetup" else "a byte"
    key = "per_keysetup" if document["direction"] == "keysetup" else "per_byte"
    if document["engine"] == "callgrind":
        best = min(good, key=lambda row: row["instructions"])
        return f"{name} compiled for this computer ({where}): {figure(best[f'instructions_{key}'])} instructions {unit} with {label(best)}."
    best = min(good, key=lambda row: row["time_ns"]["median"])
    cycles, kind = clock(best, key)
    counted = f", {figure(cycles)} {kind}" if cycles is not None else ""
    return (
        f"{name} on this computer ({where}): {figure(best[f'time_ns_{key}'])} ns {unit}{counted}, with {label(best)}."
    )


def clock(row: dict[str, Any], key: str) -> tuple[float | None, str]:
    """Cycles by the best source there is, and which that is."""
    for name, kind in (
        ("cycles", "cycles"),
        ("estimated_cycles", "cycles by the estimated clock"),
        ("tsc_cycles", "ticks of the time-stamp counter"),
    ):
        if f"{name}_{key}" in row:
            return row[f"{name}_{key}"], kind
    return None, ""


def counters(document: dict[str, Any]) -> str:
    found = document["counters"]
    if not found["available"]:
        return f"No hardware counters here: {found['why']}. Time and the time-stamp counter are measured, the clock is estimated."
    lacking = sorted(found["refused"])
    return f"Counted: {', '.join(found['events'])}." + (f" Not given: {', '.join(lacking)}." if lacking else "")


def timing(document: dict[str, Any]) -> str:
    setup = document["direction"] == "keysetup"
    unit, key = ("key set-up", "per_keysetup") if setup else ("byte", "per_byte")
    head = (
        "compiler",
        "flags",
        f"ns/{unit}",
        "spread",
        f"cycles/{unit}",
        f"TSC/{unit}",
        f"est. cycles/{unit}",
        "est. GHz",
        "Mbit/s",
        "IPC",
        "verified",
    )
    rows = []
    for row in document["rows"]:
        good = row["verified"]
        metrics = row.get("metrics", {})
        rows.append((
            row["compiler"], row["flags"],
            figure(row.get(f"time_ns_{key}")), f"{100 * row['time_ns']['spread']:.1f} %" if good else "",
            figure(row.get(f"cycles_{key}")), figure(row.get(f"tsc_cycles_{key}")), figure(row.get(f"estimated_cycles_{key}")),
            f"{row['estimated_clock_hz'] / 1e9:.2f}" if "estimated_clock_hz" in row else "",
            f"{row['mbit_per_s']:.0f}" if "mbit_per_s" in row else "",
            f"{1 / metrics['cpi']:.2f}" if metrics.get("cpi") else "", verdict(row),
        ))  # fmt: skip
    kept = [i for i in range(len(head)) if i < 3 or any(row[i] for row in rows)]
    position = {old: new for new, old in enumerate(kept)}
    return tables.text(
        [head[i] for i in kept], [[row[i] for i in kept] for row in rows],
        right=[position[i] for i in range(2, 10) if i in position],
        drop=[position[i] for i in (8, 7, 5) if i in position],
    )  # fmt: skip


def paper(document: dict[str, Any]) -> str:
    """Events and metrics of the fastest row, per block; empty without counters."""
    rows = [row for row in document["rows"] if row.get("events")]
    if not rows:
        return ""
    best = min(rows, key=lambda row: row["time_ns"]["median"])
    per = "value_per_keysetup" if document["direction"] == "keysetup" else "value_per_block"
    unit = "a key set-up" if document["direction"] == "keysetup" else "a block"
    lines = [
        (name, figure(event[per]), "" if event["exact"] else f"near, not the same: {event['note']}")
        for name, event in best["events"].items()
    ]
    text = f"Events of {label(best)}:\n\n{tables.text(('event', unit, ''), lines, right=(1,))}"
    if best["metrics"]:
        rows_ = [(name, f"{value:.4f}") for name, value in best["metrics"].items()]
        text += f"\n\n{tables.text(('metric', 'value'), rows_, right=(1,))}"
    return text


def instructions(document: dict[str, Any]) -> str:
    setup = document["direction"] == "keysetup"
    head = ("compiler", "flags", "instructions", "a byte", "a block", "verified")
    rows = [
        (
            row["compiler"], row["flags"], str(row.get("instructions", "")), figure(row.get("instructions_per_byte")),
            figure(row.get("instructions_per_block")), verdict(row),
        )
        for row in document["rows"]
    ]  # fmt: skip
    kept = [0, 1, 2, 5] if setup else [0, 1, 2, 3, 4, 5]
    return tables.text(
        [head[i] for i in kept], [[row[i] for i in kept] for row in rows], right=(2,) if setup else (2, 3, 4)
    )


def verdict(row: dict[str, Any]) -> str:
    if not row["verified"]:
        return "NO"
    return f"yes, {row['vectors']} vector{'s' * (row['vectors'] != 1)}" if row["vectors"] else "yes"


def warnings(document: dict[str, Any]) -> list[str]:
    found = [f"unstable: {warning}" for warning in document["warnings"]]
    return found + [
        f"unstable: {label(row)}: {warning}" for row in document["rows"] for warning in row.get("warnings", ())
    ]


def suggestion(document: dict[str, Any]) -> str:
    nearest = document["processor"]["nearest_machine"]
    if nearest is None:
        return "No simulated machine is near to this processor; ciphermill list machines shows what there is."
    return f"The nearest simulated machine is {nearest}: ciphermill run {document['cipher']} --on {nearest}."


def label(row: dict[str, Any]) -> str:
    return f"{row['compiler']} {row['flags']}"


def figure(value: float | None) -> str:
    """Three digits that count, or more before the point."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
