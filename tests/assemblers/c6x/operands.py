"""Operands of C6000 instructions: registers, pairs, addresses, expressions.

A register is a number: file A has 0 to 31, file B 32 to 63, so that a set of
registers is the bits of one integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REGISTER = re.compile(r"([ab])(0|[12]?[0-9]|3[01])$")
PAIR = re.compile(r"([ab])(\d+):([ab])(\d+)$")
ADDRESS = re.compile(r"\*\s*(\+\+|--|\+|-)?\s*([ab]\d+)\s*(\+\+|--)?\s*(?:\[([^\]]*)\]|\(([^)]*)\))?$")
TERM = re.compile(r"\s*([+-]?)\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([.$A-Za-z_][\w.$]*))\s*")
CONTROLS = ("amr", "csr", "gfpgfr")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a line."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


class Illegal(Exception):
    """A program that breaks rules of the machine: all that were found."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = sorted(faults, key=lambda fault: fault.line)
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True)
class Register:
    number: int

    def __str__(self) -> str:
        return name(self.number)


@dataclass(frozen=True)
class Pair:
    """Two registers that hold 64 or 40 bits; `number` is the even one."""

    number: int

    def __str__(self) -> str:
        return f"{name(self.number + 1)}:{name(self.number)}"


@dataclass(frozen=True)
class Address:
    base: int
    #: `+`, `-`, `++r`, `--r`, `r++` or `r--`.
    mode: str
    #: A register or an expression; "0" or "1" where none is written.
    offset: Register | str
    #: The offset counts in units of the access, not in bytes.
    scaled: bool


@dataclass(frozen=True)
class Control:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Expression:
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Predicate:
    register: int
    negated: bool

    @classmethod
    def parse(cls, text: str, negated: bool) -> Predicate:
        if text.lower() not in ("a0", "a1", "a2", "b0", "b1", "b2"):
            raise ValueError(f"{text} cannot be a predicate: only a0 (C64x), a1, a2, b0, b1, b2")
        return cls(register(text.lower()), negated)


def name(number: int) -> str:
    return f"{'ab'[number >> 5]}{number & 31}"


def side(number: int) -> int:
    """1 for file A, 2 for file B."""
    return (number >> 5) + 1


def register(text: str) -> int | None:
    found = REGISTER.match(text)
    return None if not found else int(found[2]) + 32 * (found[1] == "b")


def operand(text: str, mnemonic: str) -> Register | Pair | Address | Control | Expression:
    low = text.lower()
    if not low:
        raise ValueError("an empty operand")
    if (number := register(low)) is not None:
        return Register(number)
    if found := PAIR.match(low):
        odd, even = register(found[1] + found[2]), register(found[3] + found[4])
        if odd is None or even is None or odd != even + 1 or even & 1:
            raise ValueError(f"{text} is no pair of an odd register and the even one below it")
        return Pair(even)
    if low.startswith("*"):
        return address(text, low)
    if mnemonic == "mvc" and low in CONTROLS:
        return Control(low)
    terms(text)
    return Expression(text)


def address(text: str, low: str) -> Address:
    found = ADDRESS.match(low)
    base = register(found[2]) if found else None
    if base is None or (found[1] and found[3]):
        raise ValueError(f"{text} is no address")
    before, after, bracket, paren = found[1], found[3], found[4], found[5]
    written = bracket if bracket is not None else paren
    if not before and not after and written is not None:
        raise ValueError(f"{text}: an offset needs + or -")
    if before in ("+", "-") and written is None:
        raise ValueError(f"{text}: + or - needs an offset")
    mode = f"{before}r" if before in ("++", "--") else f"r{after}" if after else before or "+"
    if written is None:
        return Address(base, mode, "1" if len(mode) > 1 else "0", True)
    offset = register(written.strip())
    if offset is None:
        # Case matters in names, so the expression is cut from the text.
        start = low.index("[" if bracket is not None else "(") + 1
        written = text[start:-1]
        terms(written)
    return Address(base, mode, written if offset is None else Register(offset), bracket is not None)


def terms(text: str) -> list[tuple[int, int | str]]:
    """Signs and numbers or names of a sum such as `table+4`."""
    found, at = [], 0
    while at < len(text):
        term = TERM.match(text, at)
        if not term or (found and not term[1]):
            break
        found.append((-1 if term[1] == "-" else 1, term[3] or number(term[2])))
        at = term.end()
    if not found or at < len(text):
        raise ValueError(f"{text!r} is no operand of the common subset")
    return found


def number(text: str) -> int:
    """A literal as GNU as reads it: a leading zero makes it octal."""
    return int(text, 8 if text.isdigit() and text.startswith("0") else 0)


def evaluate(text: str, symbols: dict[str, int]) -> int:
    total = 0
    for sign, term in terms(text):
        if isinstance(term, str):
            if term not in symbols:
                raise ValueError(f"{term} is not defined")
            term = symbols[term]
        total += sign * term
    return total
