"""Measurements as text for people.

Plain text in aligned columns, the same whether it goes to a terminal, a file
or a test; the terminal gets colour for the one thing that must not be
overlooked, a result that was not verified.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from typing import TYPE_CHECKING, Any

from . import tables
from .leaks import counted
from .measured import Measured
from .tables import columns as columns

if TYPE_CHECKING:
    from .measured_types import Bounds, Loop


def title(m: Measured) -> str:
    """``rijndael/ttable encrypt, 128-bit key, on leon2``."""
    extras = "".join(f" --with {name}" for name in m["with"])
    extras += "".join(f" --without {name}" for name in m["without"])
    extras += "".join(f" --set {setting}" for setting in m["set"])
    mode = ", feedback" if feedback(m) else ""
    small = ", small" if m.get("optimise") == "size" else ""
    key = f", {m.key_bits}-bit key" if m.key_bits else ""
    return f"{m.cipher}/{m.variant} {m.direction}{key}{mode}{small}, on {m.machine}{extras}"


def feedback(m: Mapping[str, Any]) -> bool:
    """Is it a mode that was chosen? The blocks of a message that ends with a tag, and calls of a kernel, have no other."""
    return m["blocks"] == "single" and m["direction"] != "run" and "messages" not in m


def unit(m: Mapping[str, Any]) -> str:
    """What `cycles_per_block` and the bounds are of."""
    return "a key set-up" if m["direction"] == "keysetup" else "a block"


def units(measurements: Iterable[Mapping[str, Any]]) -> str:
    """The same at the head of a column."""
    found = {unit(m).split(" ", 1)[1] for m in measurements}
    return f"cycles/{found.pop()}" if len(found) == 1 else "cycles"


def sentence(m: Measured) -> str:
    """What it costs and what limits it, in words."""
    return f"{title(m)}: {number(m.cycles_per_block)} cycles {unit(m)}{kept(m)}. {m.why}{unfinished(m)}"


def kept(m: Measured) -> str:
    """That schedules were found by an earlier, longer search (`tune`), and of how many of its pipelined loops."""
    loops = m.get("loops") or ()
    recorded = sum(loop["recorded"] for loop in loops)
    if not recorded:
        return ""
    if recorded == len(loops) == 1:
        return " with a kept schedule for its main loop"
    return f" with {'a kept schedule' if recorded == 1 else 'kept schedules'} for {recorded} of its {len(loops)} pipelined loops"


def unfinished(m: Measured) -> str:
    """That the search for good schedules was not over when its budget was spent, and how to go on."""
    search = m.get("search") or {}
    if not search.get("spent"):
        return ""
    more = 10 * search["patience"]
    return f" The search for schedules was not over when its budget was spent; --patience {more} searches longer, for what may be faster."


def details(m: Measured) -> str:
    """Everything about one measurement, a line a fact."""
    bounds = m.bounds
    rows = [
        *costs(m),
        (
            "lower bound",
            f"{number(bounds['lower'])} cycles {unit(m)}"
            f"  (resources {number(bounds['resource'])}, recurrence {number(bounds['recurrence'])}"
            f"{critical(bounds)})",
        ),
        ("instructions", f"{m.instructions}, {m.cpi:.3f} cycles each"),
    ]
    # Nothing counted, and nothing to count, are the same to a reader.
    rows += [
        (METRICS.get(key, key.replace("_", " ")), metric(key, value)) for key, value in m["metrics"].items() if value
    ]
    rows += [("pipelined loop", pipelined(loop)) for loop in m.get("loops") or ()]
    rows += [
        *memory(m),
        ("limited by", m.bottleneck),
        ("verified", verdict(m)),
    ]
    if (timing := constant_time(m)) is not None:
        rows.append(("constant time", timing))
    if wrong := m.get("misaligned"):
        rows.append(("alignment", misaligned(wrong)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def memory(m: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the direction takes, each other, and all together; of the stack, what the run touched and whose frames it is."""
    of = m.get("sizes") or ()
    own = next((each["stack"] for each in of if each["direction"] == m["direction"]), ())
    named = [f"{frame['function']} {frame['bytes']}" for frame in own if frame["bytes"]]
    # One that was touched as a whole says nothing more.
    plain = len(named) <= 1 and sum(frame["bytes"] for frame in own) == m["stack_bytes"]
    frames = "" if plain or not own else f" (frames: {', '.join(named)})"
    rows = [
        (
            "memory",
            f"{m['code_bytes']} bytes of code, {m['table_bytes']} of tables, {m['stack_bytes']} of stack{frames}",
        )
    ]
    for each in of:
        if each["direction"] != m["direction"]:
            stack = sum(frame["bytes"] for frame in each["stack"])
            said = f"{each['code_bytes']} bytes of code, {each['table_bytes']} of tables, {stack} of frames"
            rows.append((f"  {DIRECTIONS.get(each['direction'], each['direction'])}", said))
    if of:
        said = f"{m['code_bytes_total']} bytes of code, {m['cipher_table_bytes']} of tables, {m['context_bytes']} of context"
        rows.append(("  all together", said))
    return rows


#: Where a direction's name is no word.
DIRECTIONS = {"keysetup": "key set-up"}


def critical(bounds: Bounds) -> str:
    """The critical path, where any result depends on the block."""
    return f", critical path {number(bounds['critical_path'])}" if bounds["critical_path"] else ""


def rows(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Measurements as rows of a table, in which no key set-up stands under the name of a block or a message."""
    of_blocks = ("cycles_per_block", "cycles_per_byte", "mbit_per_s", "ns_per_byte", "nj_per_byte")
    return [{k: v for k, v in m.items() if m["direction"] != "keysetup" or k not in of_blocks} for m in documents]


def costs(m: Measured) -> list[tuple[str, str]]:
    """Cycles, and the rate of what makes bytes."""
    if m.direction == "keysetup":
        return [("cycles a key set-up", f"{number(m.cycles_per_block)}  ({number(m.cycles)} for the first)")]
    return [
        ("cycles a block", f"{number(m.cycles_per_block)}  ({number(m.cycles)} for {m.bytes} bytes)"),
        ("cycles a byte", f"{m.cycles_per_byte:.2f}"),
        *short(m),
        ("rate", f"{m.mbit_per_s:.2f} Mbit/s at {m.clock_mhz:g} MHz{a_byte(m)}"),
        *setup(m),
    ]


def a_byte(m: Mapping[str, Any]) -> str:
    """The time of a byte, and its energy where the machine file says the power."""
    if "ns_per_byte" not in m:
        return ""
    energy = m.get("nj_per_byte")
    return f", {rounded(m['ns_per_byte'])} ns a byte" + (f", {rounded(energy)} nJ" if energy else "")


def setup(m: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The cycles of the key set-up, of what has one."""
    cycles = m.get("keysetup_cycles")
    return [("key set-up", f"{number(cycles)} cycles")] if cycles and m["key_bits"] else []


def short(m: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Short messages as wholes, where they were measured."""
    said = ", ".join(f"{number(message['cycles'])} for {message['bytes']}" for message in m.get("messages", ()))
    return [("short messages", f"cycles: {said} bytes")] if said else []


def misaligned(wrong: Mapping[str, Any]) -> str:
    """What the module states of alignment and is not so, and what that costs."""
    if wrong["accesses"] is None:
        return "not as the module states it: every access of which nothing else is known is made of bytes here"
    first, many = wrong["first"], wrong["accesses"] != 1
    return (
        f"{wrong['accesses']} access{'es are' if many else ' is'} less aligned than the module states"
        f" ({'the first ' if many else ''}in {first['function']} at offset {first['offset']:#x}), and made of smaller ones here"
    )


def metric(key: str, value: float) -> str:
    """A fraction in percent; misses per thousand instructions as they are."""
    return f"{value:.2f}" if key.endswith("_mpki") else f"{100 * value:.1f} %"


def pipelined(loop: Loop) -> str:
    """An initiation interval, and how far it is from the least."""
    stages = "1 stage" if loop["stages"] == 1 else f"{loop['stages']} stages"
    if loop["recorded"]:
        stages += ", a kept schedule"
    if loop["proved_optimal"]:
        return f"II {loop['ii']} in {stages}: no schedule is shorter"
    return (
        f"II {loop['ii']} in {stages}; none below {loop['least']} is possible, what lies between is open{solver(loop)}"
    )


def solver(loop: Loop) -> str:
    """What the exact scheduler left open, and why."""
    words = {
        "unknown": "not decided by the exact scheduler in its time",
        "large": "too large a question for it",
    }
    found = {word: sorted({q["ii"] for q in loop["asked"] if q["word"] == word}) for word in words}
    told = [f"{', '.join(map(str, iis))} {words[word]}" for word, iis in found.items() if iis]
    return f" ({'; '.join(told)})" if told else ""


METRICS = {
    "lookup_share": "table lookups",
    "lookup_slot_share": "slots for lookups",
    "lookup_cycle_share": "cycles for lookups",
    "l1d_mpki": "data cache misses in 1000 instructions",
    "l2_mpki": "L2 misses in 1000 instructions",
    "branch_mpki": "mispredictions in 1000 instructions",
    "overhead_share": "spills and moves",
    "load_share": "loads",
    "store_share": "stores",
    "stall_ratio": "stalled",
    "branch_ratio": "branches",
    "l1d_hit": "data cache hits",
    "l1i_hit": "instruction cache hits",
}


def verdict(m: Measured) -> str:
    if not m.verified:
        return emphasised(f"NO: {m.get('failure') or 'see the JSON'}")
    cases = m.provenance.get("vectors") or 0
    vectors = f"{cases or 'no'} official vector{'s' * (cases != 1)}"
    compared = m.get("verified_bytes", m.bytes)
    part = "" if compared == m.bytes else f" after the first {compared} bytes, the rest was not compared"
    return f"yes: output and memory equal the reference interpreter's{part}; {vectors}"


def constant_time(m: Measured) -> str | None:
    """Does its time depend on secrets? None where nobody looked."""
    leaks = m.get("leaks")
    if leaks is None:
        return None
    if leaks["places"]:
        return f"no: key or message decide {counted(leaks['kinds'])} of the machine code"
    if m.constant_time is None:
        return f"not known: {leaks['unknown']}"
    return f"yes: no branch, address or time of an instruction depends on key or message in {leaks['bytes']} bytes"


def summary(measurements: Sequence[Measured]) -> str:
    """What a long table says, in a sentence."""
    wrong = [m for m in measurements if not m.verified]
    messages = [m for m in measurements if m.direction != "keysetup"]
    verified = (
        emphasised(f"{len(wrong)} of {len(measurements)} measurements are NOT verified")
        if wrong
        else f"All {len(measurements)} measurements are verified"
    )
    if not messages:
        fastest = min(measurements, key=lambda m: m.cycles_per_block)
        return (
            f"{verified}; the fewest cycles a key set-up are {number(fastest.cycles_per_block)}, of {title(fastest)}."
        )
    fastest = min(messages, key=lambda m: m.cycles_per_byte)
    return f"{verified}; the fewest cycles a byte are {fastest.cycles_per_byte:.2f}, of {title(fastest)}."


def table(measurements: Sequence[Measured]) -> str:
    """Several measurements, a line each; with the memory they take where only the machines differ."""
    if len({(m.cipher, m.variant, m.direction, m.key_bits, m.blocks) for m in measurements}) == 1:
        return of_machines(measurements)
    head = (
        "cipher",
        "direction",
        "key",
        "machine",
        units(measurements),
        "cycles/byte",
        "Mbit/s",
        "bound",
        "limited by",
        "verified",
    )
    rows = [
        (
            f"{m.cipher}/{m.variant}",
            m.direction + (" (feedback)" if feedback(m) else ""),
            str(m.key_bits or ""),
            m.machine + "".join(f"+{name}" for name in m["with"]),
            f"{m.cycles_per_block:.1f}",
            # A key is not a message.
            "" if m.direction == "keysetup" else f"{m.cycles_per_byte:.2f}",
            "" if m.direction == "keysetup" else f"{m.mbit_per_s:.2f}",
            f"{m.bounds['lower']:.1f}",
            m.bottleneck,
            "yes" if m.verified else "NO",
        )
        for m in measurements
    ]
    return tables.text(head, rows, right=(2, 4, 5, 6, 7), drop=(6, 7, 8, 5))


def of_machines(measurements: Sequence[Measured]) -> str:
    """One program on several machines: a line each with its cycles, and bytes of code (all functions), tables, context and stack."""
    head = (
        "machine",
        units(measurements),
        "cycles/byte",
        "Mbit/s",
        "key set-up",
        "code",
        "tables",
        "context",
        "stack",
        "bound",
        "limited by",
        "verified",
    )
    rows = [
        (
            m.machine + "".join(f"+{name}" for name in m["with"]),
            f"{m.cycles_per_block:.1f}",
            "" if m.direction == "keysetup" else f"{m.cycles_per_byte:.2f}",
            "" if m.direction == "keysetup" else f"{m.mbit_per_s:.2f}",
            f"{m.keysetup_cycles:.0f}",
            str(m.code_bytes_total),
            str(m.cipher_table_bytes),
            str(m.context_bytes),
            str(m.stack_bytes),
            f"{m.bounds['lower']:.1f}",
            m.bottleneck,
            "yes" if m.verified else "NO",
        )
        for m in measurements
    ]
    return f"{tables.text(head, rows, right=range(1, 10), drop=(3, 10, 9, 8, 7, 6))}\n\n{UNITS}"


#: Of the columns whose heads do not say it.
UNITS = "Key set-up and bound in cycles; code of all functions, tables, context and stack in bytes."


def rounded(value: float, digits: int = 4) -> str:
    """So many digits at least that say something, and never an exponent."""
    before = floor(log10(value)) + 1 if value > 0 else digits
    return f"{value:.{max(0, digits - before)}f}"


def number(value: float) -> str:
    """At most one decimal, and none when there is none."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def emphasised(text: str) -> str:
    """Red on a terminal that wants colour."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return f"\x1b[1;31m{text}\x1b[0m"
    return text


def document(measurements: Sequence[Measured]) -> dict[str, Any]:
    """The JSON document of ``ciphermill run --json``."""
    return {"schema": 1, "measurements": [m.to_dict() for m in measurements]}
