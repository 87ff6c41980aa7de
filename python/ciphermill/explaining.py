"""Where the cycles go, for people: the hottest loop as a table of cycles by
units, then instruction by instruction with what each waited for.

The core says what stands where and why; here it only becomes text.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from . import engine, lines, report, tables
from .engine import Module, Options
from .measurement import Measurement

WIDTH = 80
#: Source lines that are shown.
LINES = 12
#: Spaces between columns of a table.
GAP = 2


def explanation(module: Module, on: str, options: Options) -> dict[str, Any]:
    """What the core says of the program that would be measured, with source lines where they are known."""
    found = engine.explanation(module, on, options)
    known = lines.of(engine.suited(module, on, options), offsets(found), options.cc)
    return located(found, known) | {"lines": by_line(found, known)}


def by_line(explanation: Mapping[str, Any], known: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cycles of a pass of each stretch by source line, most first; what has none is under ``file`` None. Empty where
    no line is known.

    The cycles since the one before in which something issued are shared by all that issue together: so they sum to
    those of the pass, and a stall belongs to what waited.
    """
    if not known:
        return []
    rows: list[dict[str, Any]] = []
    for number, s in enumerate(explanation["stretches"]):
        issuing = Counter(one["cycle"] for one in s["instructions"])
        before = (
            dict(zip(sorted(issuing), [max(issuing) - s["cycles"], *sorted(issuing)], strict=False)) if issuing else {}
        )
        found: dict[tuple[str | None, int | None], dict[str, Any]] = {}
        for one in s["instructions"]:
            at = known.get(one["at"], {"file": None, "line": None, "text": None})
            row = found.setdefault(
                (at["file"], at["line"]), {"stretch": number, **at, "cycles": 0.0, "share": 0.0, "instructions": 0}
            )
            row["cycles"] += (one["cycle"] - before[one["cycle"]]) / issuing[one["cycle"]]
            row["instructions"] += 1
        for row in found.values():
            row["share"] = row["cycles"] / s["cycles"]
        rows += sorted(found.values(), key=lambda row: (-row["cycles"], row["file"] or "", row["line"] or 0))
    return rows


def source(explanation: Mapping[str, Any]) -> str:
    """The hottest stretch by source line; the lines with least cycles are only counted. Empty where none is known."""
    lines = [row for row in explanation.get("lines", ()) if row["stretch"] == 0]
    if not lines:
        return ""
    shown, others = lines[:LINES], lines[LINES:]
    rows = [(f"{row['cycles']:.1f}", f"{row['share']:.0%}".replace("%", " %"), str(row["instructions"]),
             "no line of the source" if row["file"] is None else f"{row['file']}:{row['line']}", row["text"] or "")
            for row in shown]  # fmt: skip
    if others:
        rows.append((f"{sum(row['cycles'] for row in others):.1f}", "", str(sum(row["instructions"] for row in others)),
                     f"{len(others)} other lines (--json has them)", ""))  # fmt: skip
    title = "By source line"
    heads = ("cycles", "", "uses", "where", "source")
    taken = sum(max(len(row[n]) for row in (heads, *rows)) + GAP for n in range(4))
    rows = [(*row[:4], shortened(row[4], WIDTH - taken)) for row in rows]
    table = tables.text(heads, rows, right=(0, 1, 2))
    return f"{title}\n{'-' * len(title)}\n{table}"


def shortened(line: str, width: int) -> str:
    """A source line, with its end left out where it has no room."""
    return line if len(line) <= width else f"{line[: max(width - 3, 0)].rstrip()}..."


def text(measurement: Measurement, explanation: Mapping[str, Any]) -> str:
    """What limits the cipher, then its hottest stretches of code."""
    stretches = explanation["stretches"]
    if explanation.get("passages"):
        whole = f"{report.sentence(measurement)} {no_loops(measurement)}".strip()
        parts = [wrapped(whole), bounds(measurement), stack(measurement), passages(explanation)]
        parts += [maps(explanation.get("maps", ())), unused(explanation.get("unused", ()))]
        return "\n\n".join(part for part in parts if part)
    if not stretches:
        return report.sentence(measurement)
    hottest = stretches[0]
    parts = [
        wrapped(f"{said(hottest)} {report.sentence(measurement)}"),
        bounds(measurement),
        rounds(hottest),
        source(explanation),
        heading(hottest),
        grid(hottest),
        listing(hottest),
    ]
    for other in stretches[1:]:
        parts += [f"{heading(other)}\n{wrapped(said(other))}", rounds(other)]
    parts += [maps(explanation.get("maps", ())), unused(explanation.get("unused", ()))]
    return "\n\n".join(part for part in parts if part)


def records(explanation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each instruction of each stretch, with the stretch's place."""
    return [
        {"stretch": i, "function": s.get("function"), "block": ",".join(map(str, s.get("blocks", ()))), **line}
        for i, s in enumerate(explanation["stretches"])
        for line in s["instructions"]
    ]


def bounds(m: Measurement) -> str:
    """Each bound a line, with what it is made of."""
    unit = report.unit(m)
    rows = [("bound", f"cycles {unit}", "")]
    if m.bounds["critical_path"]:
        rows.append(
            (
                "critical path",
                report.number(m.bounds["critical_path"]),
                f"one {unit.removeprefix('a ')} alone, unlimited width",
            )
        )
    memory = ", through memory" if m.bounds.get("rounds") else ""
    rows.append(
        ("recurrence", report.number(m.bounds["recurrence"]), f"from one {unit.removeprefix('a ')} to the next{memory}")
    )
    for c in m.bounds.get("classes", ()):
        what = f"{report.number(c['work'])} cycles of work"
        rows.append((" ".join(c["units"]), report.number(c["cycles"]), what))
    rows.append(("measured", report.number(m.cycles_per_block), ""))
    return report.columns(rows[0], rows[1:], right=(1,))


def said(s: Mapping[str, Any]) -> str:
    """What limits a stretch, and whether it is software-pipelined."""
    return f"{s['why']} {s.get('pipelining', '')}".strip()


def no_loops(m: Measurement) -> str:
    """Why no loop is software-pipelined, where that is the machine's doing."""
    reasons = [loop["why"] for loop in m.get("loops_not_pipelined") or () if loop["reason"] == "machine"]
    return f"Its loops are not software-pipelined, because {reasons[0]}." if reasons else ""


def rounds(s: Mapping[str, Any]) -> str:
    """The accesses to memory that hold a loop: those seen to meet, and those only kept in order. Empty without any."""
    lines = []
    if meetings := s.get("meetings"):
        lines.append("Seen to meet in memory, on the way round that takes longest:")
        lines += [
            f"- {quoted(m['store'])} ({place(m, 'store')}) stores what {quoted(m['load'])} ({place(m, 'load')}) loads"
            f" {after(m['passes'], 'pass', 'passes')}"
            for m in meetings
        ]
    if kept := ordered(s.get("round") or ()):
        lines.append("Kept in order because they cannot be told apart, on the way round that RecMII is:")
        lines += [
            f"- {a['name']} ({place(a)}) before {b['name']} ({place(b)}) {after(a['iterations'], 'iteration', 'iterations')}"
            for a, b in kept
        ]
    return "\n".join(map(wrapped, dict.fromkeys(lines)))


def quoted(text: str) -> str:
    return f"`{text.strip().replace(chr(9), ' ')}`"


def ordered(steps: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Of a way round, the accesses that only keep their order: each with the next."""
    return [(step, steps[(i + 1) % len(steps)]) for i, step in enumerate(steps) if step["memory"]]


def located(explanation: dict[str, Any], lines: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The explanation with the source lines of the accesses that hold loops, as ``source`` beside each offset."""
    for s in explanation["stretches"]:
        for step in s.get("round", ()):
            step["source"] = lines.get(step["at"])
        for m in s.get("meetings", ()):
            m["store_source"], m["load_source"] = lines.get(m["store_at"]), lines.get(m["load_at"])
    return explanation


def offsets(explanation: Mapping[str, Any]) -> set[int]:
    """The offsets in the module that `located` and `by_line` want lines of."""
    found = {step["at"] for s in explanation["stretches"] for step in (*s.get("round", ()), *s["instructions"])}
    return found | {
        m[name] for s in explanation["stretches"] for m in s.get("meetings", ()) for name in ("store_at", "load_at")
    }


def place(of: Mapping[str, Any], which: str = "") -> str:
    """A source line, or the offset in the module."""
    source, at = of.get(f"{which}_source" if which else "source"), of[f"{which}_at" if which else "at"]
    if source is None:
        return f"module offset {at:#x}" if at else "of the compiler's own"
    return f"{source['file']}:{source['line']}"


def after(n: int, one: str, many: str) -> str:
    return f"in the same {one}" if n == 0 else f"{n} {one if n == 1 else many} later"


def maps(found: Sequence[Mapping[str, Any]]) -> str:
    """Matrices over GF(2) and constant tables of the cipher, each with the
    instruction that computes it, or why none does; tables that none comes near
    are only counted."""
    if not found:
        return ""
    far = [m for m in found if m["kind"] == "table" and not m["instruction"] and not m["missed"].startswith("differs")]
    title = "Matrices and tables in the cipher"
    lines = [f"{title}\n{'-' * len(title)}"]
    for m in (m for m in found if m not in far):
        times = f", {m['places']} times" if m["places"] > 1 else ""
        verdict = f"`{m['instruction']}` does it" if m["instruction"] else m["missed"]
        lines.append(wrapped(f"{m['function']}{times}: {m['what']}. {verdict[0].upper()}{verdict[1:]}."))
    if far:
        lines.append(f"Constant tables looked up by a byte that no instruction has: {len(far)} (see --json).")
    return "\n".join(lines)


def unused(found: Sequence[Mapping[str, Any]]) -> str:
    """Instructions of the extensions that stand nowhere in the program, each with the reason."""
    if not found:
        return ""
    title = "Instructions of the extensions that are not used"
    # Those that have nothing in common with the program say so together.
    by_reason: dict[str, list[str]] = {}
    for u in found:
        by_reason.setdefault(u["why"], []).append(u["instruction"])
    lines = [wrapped(f"{', '.join(names)}: {why}.") for why, names in by_reason.items()]
    return "\n".join([f"{title}\n{'-' * len(title)}", *lines])


def stack(m: Measurement) -> str:
    """Cycles an instruction by cause; they sum to the last line."""
    causes = sorted(m.to_dict()["cpi_stack"].items(), key=lambda c: -c[1])
    rows = [(name, f"{cycles:.3f}") for name, cycles in causes if cycles >= 0.0005]
    return report.columns(("cause", "cycles an instruction"), [*rows, ("all", f"{m.cpi:.3f}")], right=(1,))


def passages(explanation: Mapping[str, Any]) -> str:
    """Micro-operations from the middle of the message, with the cycles of their way."""
    rows = [
        (p["text"].strip(), p["kind"] + (", wrong path" if p["wrong_path"] else ""),
         str(p["renamed"]), str(p["started"]), str(p["ended"]), str(p["retired"]))
        for p in explanation["passages"]
    ]  # fmt: skip
    return report.columns(("instruction", "micro-op", "renamed", "starts", "ends", "retires"), rows, right=(2, 3, 4, 5))


def heading(s: Mapping[str, Any]) -> str:
    blocks = ", ".join(map(str, s["blocks"]))
    kind = "Loop" if s["looped"] else "Code"
    title = (
        f"{kind} in {s['function'] or 'a function without a name'}, block{'s' if len(s['blocks']) > 1 else ''} {blocks}"
    )
    return f"{title}\n{'-' * len(title)}"


def grid(s: Mapping[str, Any]) -> str:
    """Cycles down, units across, in each field the instruction (of several units of
    a kind the first, and how many more); an ``x`` marks an operand from the other
    side. Empty where one instruction issues at a time, or the hardware chooses units."""
    units = [u["unit"] for u in s["units"] if not u["path"]]
    cycles = [line["cycle"] for line in s["instructions"]]
    if not units or len(cycles) == len({*cycles}):
        return ""
    crossing = {u["unit"] for u in s["units"] if u["path"] and u["unit"].startswith("x")}
    room = max(4, (tables.room(WIDTH) - 5) // len(units) - 2)
    fields: dict[int, dict[str, list[tuple[str, str]]]] = {cycle: {} for cycle in range(s["cycles"])}
    for line in s["instructions"]:
        if line["unit"] is not None:
            mark = "x" if crossing & set(line["paths"]) else ""
            name = line["text"].split()
            # A predicate stands before the name.
            short = next((word for word in name if word[0] not in "[("), line["name"])
            fields[line["cycle"]].setdefault(line["unit"], []).append((short, mark))

    def field(there: Sequence[tuple[str, str]]) -> str:
        if not there:
            return "."
        more = f" +{len(there) - 1}" if len(there) > 1 else ""
        short, mark = there[0]
        return f"{short[: room - len(more) - len(mark)]}{mark}{more}"

    share = {u["unit"]: u["cycles"] / u["count"] / s["cycles"] for u in s["units"]}
    rows = [(str(cycle), *(field(row.get(unit, ())) for unit in units)) for cycle, row in fields.items()]
    rows.append(("full", *(f"{share[unit]:.0%}".replace("%", " %") for unit in units)))
    return report.columns(("cycle", *units), rows, right=(0,))


def listing(s: Mapping[str, Any]) -> str:
    """Every instruction with its cycle and what fixed it."""
    rows = []
    last = None
    for line in s["instructions"]:
        cycle = "" if line["cycle"] == last else str(line["cycle"])
        last = line["cycle"]
        rows.append((cycle, line["text"].replace("\t", " "), waits(s, line)))
    return tables.text(("cycle", "instruction", "waits for"), rows, right=(0,))


def waits(s: Mapping[str, Any], line: Mapping[str, Any]) -> str:
    stood = f"{line['stalled']} stalled: " if line["stalled"] else ""
    match line["waits"]:
        case "operand":
            producer = s["instructions"][line["producer"]]
            return f"{stood}{line['register']} of cycle {producer['cycle']} ({producer['text'].split()[0]})"
        case "unit":
            return f"{stood}a unit" if stood else f"a unit, ready for {line['slack']}"
        case "order":
            return ""
        case _:
            return "" if line["slack"] is None else f"nothing, ready for {line['slack']}"


def wrapped(sentences: str) -> str:
    return textwrap.fill(sentences, tables.room(WIDTH))
