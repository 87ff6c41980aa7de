"""Trace-event JSON: what ui.perfetto.dev and chrome://tracing open.

A cycle is written as a microsecond. One process has the ports, with what
executes on each; the other has the micro-operations, each in the first lane
that is free, with its stages inside it. Source: Google's *Trace Event
Format*, complete events (``ph = "X"``) and metadata (``"M"``).
"""

from __future__ import annotations

from typing import Any

from . import Stages, end, spans, title

PORTS, WINDOW = 1, 2


def document(rows: Stages, about: str) -> dict[str, Any]:
    """The trace of some micro-operations; ``about`` says of what."""
    events: list[dict[str, Any]] = [
        _name("process_name", PORTS, 0, "ports"),
        _name("process_name", WINDOW, 0, "micro-operations"),
    ]
    ports = sorted({row["port"] for row in rows if row["port"]})
    events += [_name("thread_name", PORTS, i, port) for i, port in enumerate(ports)]
    free: list[int] = []
    for row in rows:
        start, stop = row["fetch"], end(row) + 1
        lane = next((i for i, cycle in enumerate(free) if cycle <= start), len(free))
        if lane == len(free):
            free.append(0)
            events.append(_name("thread_name", WINDOW, lane, f"lane {lane}"))
        free[lane] = stop
        known = {key: row[key] for key in ("instruction", "micro_op", "kind", "port", "squashed")}
        known["address"] = f"{row['address']:#x}"
        kind = "wrong path" if row["squashed"] else "retired"
        events.append(_event(WINDOW, lane, title(row), kind, start, stop, known))
        events += [_event(WINDOW, lane, name, "stage", a, b, {}) for name, a, b in spans(row)]
        if row["port"]:
            # A port takes the next in the cycle after, however long this one runs.
            events.append(
                _event(PORTS, ports.index(row["port"]), title(row), kind, row["issue"], row["issue"] + 1, known)
            )
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"of": about, "unit": "a microsecond is a cycle"},
    }


def _event(pid: int, tid: int, name: str, kind: str, start: int, stop: int, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": name,
        "cat": kind,
        "ts": start,
        "dur": stop - start,
        "args": args,
    }


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}
