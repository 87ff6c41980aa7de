"""The text of a C6000 program, as GNU as for tic6x and this emulator read it.

This is the common subset: whatever is written below is accepted by both, with
the same meaning; what is not written here is an error in the emulator, even
where GNU as knows it.

Lines
    A line holds any number of labels (`name:`), then one instruction or one
    directive, or nothing. `;` starts a comment anywhere, `#` or `*` only in
    the first column (elsewhere GNU as takes them for operators). Mnemonics,
    units and registers may be in either case; print them in lower case.

Instructions
    [||] [predicate] mnemonic [.unit] [operand, operand, ...]

    `||`         The instruction is in the same execute packet as the one
                 before it. A label may not stand before it.
    predicate    `[a1]` or `[!a1]`: a1 a2 b0 b1 b2, and a0 on the C64x.
                 Not on `nop`.
    .unit        `.l1 .l2 .s1 .s2 .m1 .m2 .d1 .d2`, always printed except for
                 `nop`, which has none. `x` behind it (`.s2x`) says that the
                 operand which may cross (see `table.py`) comes from the other
                 file, and must be printed exactly then. A load or store has
                 the data path instead: `.d1t2` takes the address from file A
                 and the data to or from file B; GNU as insists on the path.
    nop n        1 to 9 cycles; plain `nop` is one.

Operands, in TI's order: sources, then the destination
    a5, b14              a register: 16 in each file on the C62x, 32 on the C64x
    a5:a4                a pair, odd register first: 64 bits, or the 40 bits of
                         a long
    -7, 0x1f, name, name+4, name-4
                         a constant; `mvkl`, `mvkh`, `mvklh` and data take
                         addresses. `mvkl` and `mvkh` choose the half
                         themselves; `mvk` takes only -32768 to 32767.
    *a4  *+a4[3]  *-a4[3]  *+a4(12)  *+a4[a5]  *-a4[a5]
    *++a4 *--a4 *a4++ *a4--, each also with [3], (12) or [a5]
                         an address. What is in brackets counts in units of
                         the access; what is in parentheses counts in bytes
                         and must be a multiple of the access. Five bits, in
                         units; fifteen for `*+b14[n]` and `*+b15[n]` on .d2.
                         No offset with ++ or -- means one unit. `ldndw` and
                         `stndw` also take a register in parentheses, and any
                         number of bytes up to 31.
    gfpgfr, amr, csr     control registers, in `mvc` only

    Branches name a label (`b .s1 loop`) or a register (`b .s2 b3`).

Directives
    .text  .data  .bss  .section name[, "flags"[, @type]]
    .globl .global name      .type name, @function      .size  .file  .ident
    .set name, constant  (also .equ)
    .balign n  .p2align n    in code only up to 32: larger ones are not met
                             by NOPs in parallel, as smaller ones are
    .byte  .short .hword .2byte  .4byte .word .int .long   expressions
    .skip n  .space n  .zero n
    Not in code: data between instructions. GNU as then no longer pads the
    section (see `layout.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .operands import Fault, Predicate, operand

WIDTHS = {".byte": 1, ".short": 2, ".hword": 2, ".2byte": 2, ".4byte": 4, ".word": 4, ".int": 4, ".long": 4}
SKIPS = (".skip", ".space", ".zero")
IGNORED = (".globl", ".global", ".type", ".size", ".file", ".ident", ".local")
LABEL = re.compile(r"\s*([.$A-Za-z_][\w.$]*):")
PREDICATE = re.compile(r"\[\s*(!?)\s*(\w+)\s*\]\s*")
UNIT = re.compile(r"\.([lsmd])([12])(?:(x)|t([12]))?$")


@dataclass
class Instruction:
    """One line of code, its operands not yet held against the instruction set."""

    line: int
    mnemonic: str
    parallel: bool = False
    predicate: Predicate | None = None
    unit: str = ""
    side: int = 0
    cross: bool = False
    path: int = 0
    operands: list = field(default_factory=list)


@dataclass
class Align:
    line: int
    bytes: int


@dataclass
class Data:
    """Bytes of a data section: expressions of `width` bytes each, or a gap."""

    line: int
    width: int
    values: list[str]
    gap: int = 0


@dataclass
class Section:
    name: str
    items: list = field(default_factory=list)
    #: Label, the item before which it stands, and its line.
    labels: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def code(self) -> bool:
        return any(isinstance(item, Instruction) for item in self.items)


@dataclass
class Source:
    sections: dict[str, Section] = field(default_factory=dict)
    constants: dict[str, tuple[str, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def read(text: str) -> Source:
    """Reads a program; what cannot be read is in `faults`."""
    source = Source()
    current = source.sections.setdefault(".text", Section(".text"))
    for number, raw in enumerate(text.splitlines(), 1):
        line = "" if raw[:1] in ("#", "*") else raw.split(";", 1)[0]
        while label := LABEL.match(line):
            current.labels.append((label[1], len(current.items), number))
            line = line[label.end() :]
        line = line.strip()
        try:
            if line.startswith("."):
                current = directive(source, current, line, number)
            elif line:
                item = instruction(line, number)
                if item.parallel and not preceded(current):
                    raise ValueError("`||` with no instruction before it")
                if item.parallel and any(at == len(current.items) for _, at, _ in current.labels):
                    raise ValueError("a label in the middle of an execute packet")
                current.items.append(item)
        except ValueError as error:
            source.faults.append(Fault(number, str(error)))
    for section in source.sections.values():
        for item in section.items:
            if isinstance(item, Data) and section.code:
                source.faults.append(Fault(item.line, f"data among the code of {section.name}"))
    return source


def preceded(section: Section) -> bool:
    return bool(section.items) and isinstance(section.items[-1], Instruction)


def directive(source: Source, current: Section, line: str, number: int) -> Section:
    """Carries one out; the section that is current after it."""
    name, _, rest = line.partition(" ")
    if "\t" in name:
        name, _, rest = line.partition("\t")
    name, parts = name.lower(), [part.strip() for part in rest.split(",")]
    if name in (".text", ".data", ".bss"):
        return source.sections.setdefault(name, Section(name))
    if name == ".section":
        return source.sections.setdefault(parts[0], Section(parts[0]))
    if name in WIDTHS:
        current.items.append(Data(number, WIDTHS[name], parts))
    elif name in SKIPS:
        if len(parts) > 1 and int(parts[1], 0) != 0:
            raise ValueError(f"{name} that fills with something else than zeros")
        current.items.append(Data(number, 1, [], int(parts[0], 0)))
    elif name in (".balign", ".p2align"):
        size = int(parts[0], 0) if name == ".balign" else 1 << int(parts[0], 0)
        if size & (size - 1):
            raise ValueError("an alignment that is no power of two")
        current.items.append(Align(number, size))
    elif name in (".set", ".equ"):
        source.constants[parts[0]] = (parts[1], number)
    elif name not in IGNORED:
        raise ValueError(f"directive {name} is not in the common subset")
    return current


def instruction(line: str, number: int) -> Instruction:
    parallel = line.startswith("||")
    line = line.removeprefix("||").lstrip()
    predicate = None
    if found := PREDICATE.match(line):
        predicate = Predicate.parse(found[2], found[1] == "!")
        line = line[found.end() :]
    if not line:
        raise ValueError("no instruction behind `||` or a predicate")
    mnemonic, _, rest = re.sub(r"\s+", " ", line).partition(" ")
    item = Instruction(number, mnemonic.lower(), parallel, predicate)
    rest = rest.strip()
    if rest.startswith("."):
        unit, _, rest = rest.partition(" ")
        found = UNIT.match(unit.lower())
        if not found:
            raise ValueError(f"{unit} is no unit")
        if found[4] and found[1] != "d":
            raise ValueError(f"{unit}: only .d1 and .d2 have a data path")
        item.unit, item.side = found[1], int(found[2])
        item.cross, item.path = bool(found[3]), int(found[4] or 0)
    item.operands = [operand(part, item.mnemonic) for part in split(rest)]
    return item


def split(text: str) -> list[str]:
    """Operands at the commas; no operand has a comma of its own."""
    return [part.strip() for part in text.split(",")] if text.strip() else []
