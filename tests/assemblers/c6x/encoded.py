"""What GNU as makes of a printed instruction, in the words of its disassembler.

A third of TI's mnemonics are other instructions in disguise: `mv` is an `or`
with 0 or an `add` of 0, `not` an `xor` with -1. This module says which, so that a
printed line and a disassembled one can be compared as tuples of predicate,
mnemonic, unit and operands.
"""

from __future__ import annotations

from .operands import Address, Expression, Pair, Register, evaluate, name, side
from .syntax import Instruction
from .table import ACCESS

#: Instructions that are another one with its sources exchanged.
EXCHANGED = {
    "cmplt2": "cmpgt2",
    "cmpltu4": "cmpgtu4",
    "mpyus4": "mpysu4",
    "mpyih": "mpyhi",
    "mpyil": "mpyli",
    "mpyihr": "mpyhir",
    "mpyilr": "mpylir",
    "dotpus4": "dotpsu4",
}
OPPOSITE = {"cmpgt": "cmplt", "cmplt": "cmpgt"}


def encoded(item: Instruction, machine: str, symbols: dict[str, int]) -> tuple:
    """Predicate, mnemonic, unit and operands as they are encoded."""
    mnemonic, operands = disguised(item, machine, symbols)
    unit = f"{item.unit}{item.side}" if item.unit else ""
    unit += "x" * item.cross + (f"t{item.path}" if item.path else "")
    shown = tuple(operand if isinstance(operand, str) else plain(operand, mnemonic, symbols) for operand in operands)
    predicate = f"{'!' * item.predicate.negated}{name(item.predicate.register)}" if item.predicate else ""
    return predicate, mnemonic, unit, shown


def disguised(item: Instruction, machine: str, symbols: dict[str, int]) -> tuple[str, list]:
    mnemonic, operands = item.mnemonic, item.operands
    if mnemonic == "nop" and not operands:
        return "nop", [Expression("1")]
    if mnemonic == "not":
        return "xor", [Expression("-1"), *operands]
    if mnemonic == "neg":
        return "sub", [Expression("0"), *operands]
    if mnemonic == "mv":
        if isinstance(operands[0], Pair):
            return "add", [Expression("0"), *operands]
        if item.unit == "d" and machine == "c6201":
            return "add", [operands[0], Expression("0"), operands[1]]
        return "or", [Expression("0"), *operands]
    if mnemonic == "zero":
        if item.unit == "s" or (machine == "c64x" and not isinstance(operands[0], Pair)):
            return "mvk", [Expression("0"), *operands]
        unused = Register(32 * (item.side - 1))
        return "sub", [unused, unused, *operands]
    if mnemonic == "sub" and item.unit in "ls" and isinstance(operands[1], Expression):
        return "add", [str(-evaluate(operands[1].text, symbols) & 0xFFFF_FFFF), operands[0], operands[2]]
    if mnemonic == "swap2":
        return "packlh2", [operands[0], *operands]
    if mnemonic in EXCHANGED:
        return EXCHANGED[mnemonic], [operands[1], operands[0], operands[2]]
    if mnemonic in OPPOSITE and exchanged(item):
        return OPPOSITE[mnemonic], [operands[1], operands[0], operands[2]]
    if mnemonic in ("mvkl", "mvkh", "mvklh"):
        value = evaluate(operands[0].text, symbols)
        if mnemonic == "mvkl":
            return "mvk", [str(((value & 0xFFFF) ^ 0x8000) - 0x8000 & 0xFFFF_FFFF), operands[1]]
        return "mvkh", [str((value << 16 if mnemonic == "mvklh" else value) & 0xFFFF_0000), operands[1]]
    return mnemonic, operands


def exchanged(item: Instruction) -> bool:
    """Whether a comparison is encoded as its opposite: constants and longs
    stand in one place only, and what crosses is the second register."""
    first, second = item.operands[:2]
    if isinstance(second, Expression) or isinstance(first, Pair):
        return True
    crossing = item.cross and isinstance(first, Register) and isinstance(second, Register)
    return crossing and side(first.number) != item.side


def plain(operand, mnemonic: str, symbols: dict[str, int]) -> str:
    if isinstance(operand, Expression):
        return str(evaluate(operand.text, symbols) & 0xFFFF_FFFF)
    if not isinstance(operand, Address):
        return str(operand)
    if isinstance(operand.offset, Register):
        offset = f"[{operand.offset}]" if operand.scaled else f"({operand.offset})"
    else:
        count = evaluate(operand.offset, symbols) * (ACCESS[mnemonic] if operand.scaled else 1)
        if count == 0 and operand.mode == "+":
            return f"*{name(operand.base)}"
        offset = f"({count})"
    mode = operand.mode if len(operand.mode) > 1 else f"{operand.mode}r"
    return f"*{mode.replace('r', name(operand.base))}{offset}"
