"""Execute packets as Python functions.

A packet becomes the text of a function `packet(R, t)`, compiled once: `R` is
the list of 64 registers, `t` the cycle. The function has three parts, which is
how the machine's "all reads before all writes" comes about: values are
computed from the registers as they are, loads among them; then stores change
memory, so that a load beside a store sees the old content; then results of one
cycle are written. Results that take longer are put into `ring[(t + n) % 8]`,
from where the core lands them at the beginning of that cycle.

The function returns the set of registers that it wrote, one bit each, and
`CLASH` if its two accesses met in a bank of data memory.
"""

from __future__ import annotations

import re
from types import CodeType

from .decode import Op
from .operands import name
from .semantics import CONSTANT_AMOUNTS, EXPRESSIONS, FITTING, PACKED_FIELD
from .table import ACCESS, NONALIGNED

CLASH = 1 << 64
SIGNED_LOADS = {"ldb": 0x80, "ldh": 0x8000}
WIDTHS = {"d": 32, "p": 32, "L": 40, "D": 64}
FIELDS = ("ext", "extu", "set", "clr")


def translate(ops: list[Op], banked: bool) -> CodeType:
    """A packet's function; `banked` asks for bank conflicts."""
    values, stores, commits = [], [], []
    always = 0
    written: dict[int, list[int]] = {}
    for index, op in enumerate(ops):
        condition, body = guarded(index, op)
        values += condition
        inside = []
        if op.memory:
            inside += address(index, op)
        if op.is_load:
            inside += load(index, op)
        elif op.is_store:
            stores += when(body, store(index, op))
        elif op.mnemonic == "idle":
            # Waits for an interrupt, of which there are none here.
            inside.append(f"stop({op.line}, 'idle: the program has come to a halt')")
        elif op.form.codes and op.mnemonic != "nop":
            inside += compute(index, op)
        values += when(body, inside, bool(op.predicate))
        for number, text in results(index, op):
            for other in written.get(number, []):
                both = " and ".join(f"c{each}" for each in (other, index) if ops[each].predicate)
                commits.insert(0, f"if {both}: stop({op.line}, 'two writes of {name(number)} in one cycle')")
            written.setdefault(number, []).append(index)
            line = [f"R[{number}] = {text}"]
            if body:
                commits += when(body, [*line, f"w |= {1 << number}"])
            else:
                commits += line
                always |= 1 << number
        if op.control and op.form.codes[1] == "C":
            commits += when(body, [f"control({op.line}, {op.control!r}, v{index}, t)"])
    lines = [f"w = {always}", *values, *bank(ops) * banked, *stores, *commits, "return w"]
    text = "def packet(R, t):\n" + "".join(f"    {line}\n" for line in lines)
    return compile(text, f"packet at line {ops[0].line}", "exec")


def when(condition: str, lines: list[str], counted: bool = False) -> list[str]:
    if not condition:
        return lines
    otherwise = ["else: annulled[0] += 1"] if counted else []
    return [f"if {condition}:", *(f"    {line}" for line in lines or ["pass"]), *otherwise]


def guarded(index: int, op: Op) -> tuple[list[str], str]:
    """Lines that set the condition of an instruction, and its name."""
    if not op.predicate:
        return [], ""
    number, negated = op.predicate
    return [f"c{index} = {'not ' if negated else ''}R[{number}]"], f"c{index}"


def address(index: int, op: Op) -> list[str]:
    """The address as `x`, and the changed base as `y`."""
    at = op.memory
    offset = str(at.offset) if at.register is None else f"(R[{at.register}] << {at.shift})"
    moved = f"R[{at.base}] {'-' if '-' in at.mode else '+'} {offset} & M32"
    if at.mode in ("r++", "r--"):
        lines = [f"x{index} = R[{at.base}]", f"y{index} = {moved}"]
    else:
        lines = [f"x{index} = {moved}"]
        if op.modifies is not None:
            lines.append(f"y{index} = x{index}")
    size = ACCESS[op.mnemonic]
    if size > 1 and op.mnemonic not in NONALIGNED:
        lines.append(f"if x{index} & {size - 1}: unaligned({op.line}, x{index}, {size})")
    return lines


def load(index: int, op: Op) -> list[str]:
    size = ACCESS[op.mnemonic]
    text = f"load({op.line}, x{index}, {size})"
    if top := SIGNED_LOADS.get(op.mnemonic):
        text = f"({text} ^ {top}) - {top} & M32"
    # Zero for the set of registers written: no cross-path stall after a load.
    return [f"v = {text}", *later(op, "v", marked=False)]


def store(index: int, op: Op) -> list[str]:
    size = ACCESS[op.mnemonic]
    number = op.values[0]
    text = f"R[{number}] | R[{number + 1}] << 32" if size == 8 else f"R[{number}]"
    if size < 4:
        text += f" & {(1 << 8 * size) - 1}"
    return [f"store({op.line}, x{index}, {size}, {text})"]


def later(op: Op, text: str, marked: bool) -> list[str]:
    """Puts a result that takes more than one cycle where it lands."""
    pair = len(op.writes) == 2
    port = op.side if op.form.unit == "m" else 0
    lines = [f"k = t + {op.form.latency} & 7"]
    for place, number in enumerate(op.writes):
        part = f"{text} >> 32" if place else f"{text} & M32" if pair else text
        mark = 1 << number if marked else 0
        lines.append(f"ring[k].append(({number}, {part}, {mark}, {port}, {op.line}))")
        lines.append(f"flying[k] |= {1 << number}")
    return lines


def compute(index: int, op: Op) -> list[str]:
    if op.mnemonic in ("b", "bnop"):
        target = op.values[0] if op.form.codes[0] == "a" else f"R[{op.values[0]}]"
        return [f"taken.append(({op.line}, {target}))"]
    if op.mnemonic in ("bdec", "bpos"):
        counter, go = op.values[1], f"taken.append(({op.line}, {op.values[0]}))"
        if op.mnemonic == "bpos":
            return [f"if R[{counter}] < {1 << 31}: {go}"]
        return [f"v{index} = R[{counter}]", f"if v{index} < {1 << 31}: v{index} = v{index} - 1 & M32; {go}"]
    if op.mnemonic == "addkpc":
        return [f"v{index} = {op.values[0]}"]
    if op.mnemonic == "mvc":
        return [f"v{index} = {f'G[{op.control!r}]' if op.form.codes[0] == 'C' else f'R[{op.values[0]}]'}"]
    lines = [f"early({op.line}, t)"] if op.mnemonic == "gmpy4" else []
    text = result(op)
    if op.form.latency > 1:
        return [*lines, f"v = {text}", *later(op, "v", marked=True)]
    return [*lines, f"v{index} = {text}"]


def result(op: Op) -> str:
    """The instruction's expression, its sources put in."""
    mode, text = EXPRESSIONS[op.mnemonic]
    codes = op.form.codes
    target = next(code for code in reversed(codes) if code in WIDTHS)
    signed = mode == "s" or (mode == "m" and target == "L")
    sources = {"d": f"R[{op.value('d')}]"}
    for letter, code, value in zip("abc", codes, op.values, strict=False):
        sources[letter] = source(code, value, signed)
    if op.mnemonic in FIELDS and codes[1] == "r":
        sources |= {key: form.replace("b", sources["b"]) for key, form in PACKED_FIELD.items()}
    elif op.mnemonic in CONSTANT_AMOUNTS and codes[1] == "u":
        text = CONSTANT_AMOUNTS[op.mnemonic]
    wide = 40 if "l" in codes else 32
    sources |= {"TOP": str((1 << wide - 1) - 1), "WIDTH": str(wide)}
    text = re.sub(r"(?<![\w'])(a|b|c|d|TOP|WIDTH)(?![\w'(])", lambda found: sources[found[1]], text)
    if op.mnemonic in FITTING and target == "d":
        return text
    return f"({text}) & {(1 << WIDTHS[target]) - 1}"


def source(code: str, value: int, signed: bool) -> str:
    if code == "l":
        text = f"(R[{value}] | (R[{value + 1}] & 0xFF) << 32)"
        return f"s40{text}" if signed else text
    if code in "rxp":
        return f"s32(R[{value}])" if signed else f"R[{value}]"
    return f"({value})" if signed else str(value & 0xFFFFFFFF)


def results(index: int, op: Op) -> list[tuple[int, str]]:
    """Registers written at the end of the cycle, and from what."""
    found = [] if op.modifies is None else [(op.modifies, f"y{index}")]
    if op.form.latency == 1:
        parts = [f"v{index}"] if len(op.writes) == 1 else [f"v{index} & M32", f"v{index} >> 32"]
        found += zip(op.writes, parts, strict=False)
    return found


def bank(ops: list[Op]) -> list[str]:
    accesses = [(index, op) for index, op in enumerate(ops) if op.memory]
    if len(accesses) < 2:
        return []
    conditions = [f"c{index}" for index, op in accesses if op.predicate]
    operands = ", ".join(f"x{index}, {ACCESS[op.mnemonic]}" for index, op in accesses)
    return [f"if {' and '.join([*conditions, f'clash({operands})'])}: w |= {CLASH}"]
