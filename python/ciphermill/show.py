"""A machine as a person wants to read it.

What the machine is in a few lines; then its instructions by timing class,
because that is what a reader compares with a manual: what a class costs, whose
number that is, and which instructions are in it with their meaning.
"""

from __future__ import annotations

import textwrap
from typing import Any

from .tables import room

#: Columns where there is no terminal to ask.
WIDTH = 80


def text(machine: dict[str, Any]) -> str:
    parts = [headline(machine), facts(machine), *classes(machine), compounds(machine), sources(machine)]
    return "\n\n".join(part for part in parts if part)


def headline(machine: dict[str, Any]) -> str:
    title = f"{machine['name']}: {machine['title']}"
    if machine["extensions"]:
        title += f", with {', '.join(machine['extensions'])}"
    width = count(machine["issue"]["width"], "instruction")
    title += f"; {width} a cycle at {machine['clock_mhz']:g} MHz, {len(machine['instructions'])} to choose from."
    described = filled(" ".join(machine["description"].split()))
    return filled(title) + (f"\n\n{described}" if described else "")


def facts(machine: dict[str, Any]) -> str:
    issue, memory = machine["issue"], machine["memory"]
    pipeline = (
        "waits for operands" if issue["interlock"] else "is exposed: code that reads too early gets the old value"
    )
    rows = [
        ("word", f"{machine['word_bits']} bits, {machine['endian']}-endian"),
        ("clock", f"{machine['clock_mhz']:g} MHz"),
        ("issue", f"{count(issue['width'], 'instruction')} a cycle; the pipeline {pipeline}"),
        ("units", ", ".join(f"{unit['count']} {unit['name']}" for unit in machine["units"])),
    ]
    for file in machine["registers"]:
        names = file["registers"]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        zero = f", {file['zero']} is always zero" if file["zero"] else ""
        rows.append(
            (f"registers {file['name']}", f"{span}: {count(len(names), 'register')} of {file['bits']} bits{zero}")
        )
    abi = machine["abi"]
    rows.append(("for the compiler", f"{len(abi['allocatable'])} registers, {len(abi['args'])} of them for arguments"))
    if windows := abi["windows"]:
        rows.append(
            (
                "windows",
                f"{windows['count']}; an overflow costs {windows['overflow_cycles']} cycles, "
                f"an underflow {windows['underflow_cycles']}",
            )
        )
    rows.append(("branches", branches(machine["branch"])))
    rows.append(("unaligned access", "allowed" if memory["unaligned"] else "not allowed"))
    if banks := memory["banks"]:
        rows.append(
            (
                "memory banks",
                f"{count(banks['blocks'], 'block')} of {banks['block_bytes']} bytes, each of {count(banks['banks'], 'bank')} "
                f"{banks['bank_bytes']} bytes wide: two accesses of one cycle to one bank cost a cycle",
            )
        )
    rows.append(("instruction cache", cache(memory["icache"])))
    rows.append(("data cache", cache(memory["dcache"])))
    width = max(len(name) for name, _ in rows)
    return "\n".join(filled(f"{name:<{width}}  {value}", after=width + 2) for name, value in rows)


def branches(model: dict[str, Any]) -> str:
    """How branches are guessed, and what is special about their targets."""
    said = {"none": "no prediction", "backward_taken": "backward branches are guessed taken"}
    text = said.get(model["predictor"]) or (
        f"guessed by what they did before: {count(model['btb_entries'], 'target')}, {model['bht_entries']} counters of "
        f"{count(model['bht_bits'], 'bit')}, {count(model['return_stack'], 'return')}"
    )
    if more := model.get("split_target_cycles"):
        text += f"; {count(more, 'cycle')} more to an instruction in two pieces of {model['fetch_bytes']} bytes"
    return text


def cache(model: dict[str, Any] | None) -> str:
    if model is None:
        return "none modelled: every access hits"
    return (
        f"{model['bytes']} bytes, {count(model['ways'], 'way')}, lines of {model['line_bytes']} bytes, "
        f"{model['replacement']}, write-{model['write']}, {model['miss_cycles']} cycles a miss"
    )


def classes(machine: dict[str, Any]) -> list[str]:
    """The instructions, by timing class in the file's order."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for instruction in machine["instructions"]:
        groups.setdefault(instruction["timing"], []).append(instruction)
    return [timing_class(name, members) for name, members in groups.items()]


def timing_class(name: str, members: list[dict[str, Any]]) -> str:
    first = members[0]
    costs = [f"result after {count(first['latency'], 'cycle')}"]
    costs += [
        f"{register} after {count(n, 'cycle')}"
        for register, n in first["dest_latency"].items()
        if n != first["latency"]
    ]
    if first["issue_cycles"] > 1:
        costs.append(f"holds the pipeline {first['issue_cycles']} cycles")
    costs += [f"{n} before {timing}" for timing, n in first.get("issue_before", {}).items()]
    early = {o: n for m in members for o, n in m.get("early", {}).items()}
    costs += [f"{operand} ready {count(n, 'cycle')} before" for operand, n in early.items()]
    if first["unit_cycles"] > max(1, first["issue_cycles"]):
        costs.append(f"keeps its unit {first['unit_cycles']} cycles")
    if any(m["kind"] == "Branch" for m in members):
        costs.append(f"{first['taken_cycles']} cycles more when taken, {first['untaken_cycles']} when not")
    varies = [name for m in members for name in m["varies_with"]]
    if varies:
        costs.append(f"hardware takes a time that depends on {', '.join(dict.fromkeys(varies))}")
    if first["units"]:
        costs.append(f"on {' or '.join(first['units'])}")
    head = filled(f"{name}: {'; '.join(costs)}", after=4)
    source = filled(f"  [{first['source'] or ''}]", after=3)
    width = min(30, max(len(assembly(m)) for m in members))
    lines = [instruction(m, width) for m in members]
    return "\n".join([head, source, *lines])


def assembly(instruction: dict[str, Any]) -> str:
    form: str = instruction["asm"]
    return form.replace("{name}", instruction["name"]).replace("{", "").replace("}", "")


def instruction(entry: dict[str, Any], width: int) -> str:
    notes = [entry["extension"]] if entry["extension"] else []
    if entry["delay_slots"]:
        notes.append(count(entry["delay_slots"], "delay slot"))
    if entry["annul"]:
        notes.append("annulled when not taken")
    note = f"  ({', '.join(notes)})" if notes else ""
    meaning = " ".join(entry["semantics"].split())
    line = f"  {assembly(entry):<{width}}  {meaning}{note}".rstrip()
    return filled(line, after=width + 6)


def compounds(machine: dict[str, Any]) -> str:
    if not machine["compounds"]:
        return ""
    rows = [(" ".join(c["semantics"].split()), "; ".join(c["parts"])) for c in machine["compounds"]]
    width = min(36, max(len(meaning) for meaning, _ in rows))
    lines = [filled(f"  {meaning:<{width}}  {parts}", after=width + 4) for meaning, parts in rows]
    return "\n".join(["What takes several instructions:", *lines])


def sources(machine: dict[str, Any]) -> str:
    """Sources not shown above already, each once with the paths it covers."""
    paths: dict[str, list[str]] = {}
    for path, source in machine["sources"].items():
        if not path.startswith("timings"):
            paths.setdefault(source, []).append(path)
    lines = [filled(f"  {', '.join(covered)}: {source}", after=4) for source, covered in paths.items()]
    return "\n".join(["Where the numbers come from:", *lines])


def filled(text: str, after: int = 0) -> str:
    """A line as wide as the terminal, or 80 columns; what follows it stands ``after`` columns in."""
    gap = len(text) - len(text.lstrip())
    # The spaces that align columns are kept: only the words behind them are wrapped.
    return textwrap.fill(
        text.strip(), room(WIDTH), initial_indent=" " * gap, subsequent_indent=" " * after, replace_whitespace=False,
        break_on_hyphens=False,
    )  # fmt: skip


def count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
