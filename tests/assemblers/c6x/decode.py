"""One instruction held against the table: which form it is, what it touches.

Every form of the mnemonic is tried; where none fits, the complaint is that of
the form which came furthest, and one about a value or a register file before
one that a register was wanted and a constant written: "16 is out of range" is
not to be hidden by a form for pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .operands import Address, Control, Expression, Pair, Register, evaluate, name, side
from .syntax import Instruction
from .table import ACCESS, FORMS, LOADS, MACHINES, SIDE_B, Form

RANGES = {
    "k": (-16, 15),
    "g": (-15, 16),
    "u": (0, 31),
    "w": (0, 15),
    "3": (0, 7),
    "9": (1, 9),
    "c": (-(1 << 15), (1 << 15) - 1),
    "v": (-(1 << 31), (1 << 32) - 1),
    "h": (-(1 << 31), (1 << 32) - 1),
    "a": (0, (1 << 32) - 1),
}
#: Bits of the signed distance to a label, in words from the fetch packet.
DISTANCES = {"b": 21, "bnop": 12, "bdec": 10, "bpos": 10, "addkpc": 7}
PAIRS = {"l": 40, "L": 40, "D": 64, "y": 64}


class WrongKind(ValueError):
    """A register where a constant is wanted, and the like."""


@dataclass
class Place:
    """The address of a load or store: base, offset in bytes or a register."""

    base: int
    mode: str
    offset: int
    register: int | None
    shift: int


@dataclass
class Op:
    """An instruction, its form known."""

    line: int
    form: Form
    side: int
    path: int
    predicate: tuple[int, bool] | None
    #: Numbers in the order of `form.codes`: registers or constants.
    values: list
    memory: Place | None = None
    #: Registers read, once for each read port; the predicate is not among them.
    reads: list[int] = field(default_factory=list)
    #: Registers written after the form's latency, and after one cycle.
    writes: list[int] = field(default_factory=list)
    #: Reads that only the encoding makes: they need a port and change nothing.
    idle_reads: list[int] = field(default_factory=list)
    modifies: int | None = None
    crossed: int | None = None
    control: str | None = None

    @property
    def mnemonic(self) -> str:
        return self.form.mnemonic

    @property
    def unit(self) -> str:
        return f"{self.form.unit}{self.side}" if self.form.unit else ""

    @property
    def is_load(self) -> bool:
        return self.mnemonic in LOADS

    @property
    def is_store(self) -> bool:
        return self.memory is not None and not self.is_load

    @property
    def cycles(self) -> int:
        """Cycles that the packet takes because of this instruction."""
        if self.mnemonic == "nop":
            return self.values[0] if self.values else 1
        return 1 + self.values[-1] if self.mnemonic in ("bnop", "addkpc") else 1

    def value(self, code: str) -> int | None:
        return next((v for c, v in zip(self.form.codes, self.values, strict=False) if c == code), None)


def decode(item: Instruction, machine: str, symbols: dict[str, int]) -> Op:
    """The form of an instruction; ValueError says why there is none."""
    isa = MACHINES[machine]
    known = FORMS.get(item.mnemonic)
    if not known:
        raise ValueError(f"{item.mnemonic} is not known")
    there = [form for form in known if form.isa <= isa]
    if not there:
        raise ValueError(f"{item.mnemonic} is not an instruction of the {machine}")
    if any(form.unit for form in there) and not item.unit:
        raise ValueError(f"{item.mnemonic} needs a unit")
    fitting = [form for form in there if form.unit == item.unit]
    if not fitting:
        raise ValueError(f"{item.mnemonic} does not run on .{item.unit} of the {machine}")
    check_marks(item, isa)
    best: tuple[tuple[bool, int], str] = ((False, -1), "")
    for form in fitting:
        op = Op(item.line, form, item.side, item.path, None, [])
        reached = 0
        try:
            if len(form.codes) != len(item.operands):
                raise ValueError(f"{item.mnemonic} does not take {len(item.operands)} operands")
            for code, operand in zip(form.codes, item.operands, strict=True):
                reached += 1
                take(op, item, code, operand, isa, symbols)
            if item.cross and not form.crosses:
                raise ValueError(f"no operand of this form of {item.mnemonic} can cross")
            finish(op, item, isa)
            return op
        except ValueError as error:
            rank = (reached > 0 and not isinstance(error, WrongKind), reached)
            if rank > best[0]:
                best = (rank, str(error))
    raise ValueError(best[1])


def check_marks(item: Instruction, isa: int) -> None:
    if item.mnemonic in ACCESS:
        if not item.path:
            raise ValueError(f"{item.mnemonic} needs a data path, .d{item.side}t1 or .d{item.side}t2")
    elif item.path:
        raise ValueError(f"{item.mnemonic} has no data path")
    if item.mnemonic in SIDE_B and item.side != 2:
        raise ValueError(f"{item.mnemonic} runs only on .s2")
    if item.predicate:
        if item.mnemonic == "nop":
            raise ValueError("nop cannot have a predicate")
        if item.predicate.register == 0 and isa < 64:
            raise ValueError("a0 is no predicate of the C62x")


def take(op: Op, item: Instruction, code: str, operand, isa: int, symbols: dict[str, int]) -> None:
    """Holds one operand against its code, and notes what it reads and writes."""
    if code in "mn":
        if not isinstance(operand, Address):
            raise WrongKind(f"an address was wanted, not {operand}")
        op.memory = memory(op, item, operand, isa, symbols, code == "n")
        op.values.append(None)
    elif code == "C":
        if not isinstance(operand, Control):
            raise WrongKind(f"a control register was wanted, not {operand}")
        if operand.name == "gfpgfr" and isa < 64:
            raise ValueError("gfpgfr is a register of the C64x only")
        op.control = operand.name
        op.values.append(None)
    elif code in RANGES:
        if not isinstance(operand, Expression):
            raise WrongKind(f"a constant was wanted, not {operand}")
        value, (low, high) = evaluate(operand.text, symbols), RANGES[code]
        if not low <= value <= high:
            raise ValueError(f"{operand.text} is out of range: {low} to {high}")
        op.values.append(value)
    else:
        op.values.append(in_file(op, item, code, operand, isa))


def in_file(op: Op, item: Instruction, code: str, operand, isa: int) -> int:
    kind = Pair if code in PAIRS else Register
    if not isinstance(operand, kind):
        raise WrongKind(f"a {kind.__name__.lower()} was wanted, not {operand}")
    check_number(operand.number + (kind is Pair), isa)
    wanted = item.path if code in "ty" else 3 - op.side if code == "x" and item.cross else op.side
    if side(operand.number) != wanted:
        what = f"{item.mnemonic} .{item.unit}{item.side}{'x' if item.cross else ''}"
        raise ValueError(f"{operand} is in the wrong register file for {what}{f't{item.path}' if item.path else ''}")
    registers = [operand.number, operand.number + 1] if kind is Pair else [operand.number]
    if code in "dLDp" or (code in "ty" and item.mnemonic in LOADS):
        op.writes += registers
    if code in "rxlp" or (code in "ty" and item.mnemonic not in LOADS):
        op.reads += registers
    if code == "x" and item.cross:
        op.crossed = operand.number
    return operand.number


def check_number(number: int, isa: int) -> None:
    if isa < 64 and number & 31 > 15:
        raise ValueError(f"{name(number)} is no register of the C62x")


def memory(op: Op, item: Instruction, address: Address, isa: int, symbols: dict[str, int], bytewise: bool) -> Place:
    check_number(address.base, isa)
    if side(address.base) != op.side:
        raise ValueError(f"the address register {name(address.base)} is not in the file of .d{op.side}")
    size = ACCESS[item.mnemonic]
    shift = size.bit_length() - 1 if address.scaled else 0
    op.reads.append(address.base)
    if len(address.mode) > 1:
        op.modifies = address.base
    if isinstance(address.offset, Register):
        offset = address.offset.number
        check_number(offset, isa)
        if side(offset) != op.side:
            raise ValueError(f"the offset register {name(offset)} is not in the file of .d{op.side}")
        if not address.scaled and not bytewise:
            raise ValueError("a register offset in parentheses: only ldndw and stndw take one")
        op.reads.append(offset)
        return Place(address.base, address.mode, 0, offset, shift)
    offset = evaluate(address.offset, symbols)
    if not address.scaled and not bytewise:
        if offset % size:
            raise ValueError(f"offset {offset} is no multiple of {size}")
        offset //= size
        shift = size.bit_length() - 1
    # Fifteen bits, for the stack and the data page: stack pointers on B only.
    long = address.mode == "+" and address.base in (46, 47) and op.side == 2 and size <= 4 and item.mnemonic[2:] != "nw"
    if not 0 <= offset <= (32767 if long else 31):
        raise ValueError(f"offset {offset} is out of range: 0 to {32767 if long else 31}")
    return Place(address.base, address.mode, offset << shift, None, shift)


def finish(op: Op, item: Instruction, isa: int) -> None:
    """What follows from the operands together."""
    if op.mnemonic in ("b", "bnop") and op.form.codes[0] == "x" and op.side != 2:
        raise ValueError("a branch to a register runs only on .s2")
    if op.mnemonic == "swap2":
        # Encoded as packlh2 of the register with itself.
        op.idle_reads = [*op.reads]
    elif op.mnemonic == "zero" and (item.unit == "l" or item.unit == "d") and (isa < 64 or "L" in op.form.codes):
        # Encoded as register 0 less itself where there is no mvk.
        op.idle_reads = [32 * (op.side - 1)] * 2
    if op.mnemonic in ("addk", "mvkh", "mvklh"):
        op.reads += op.writes
    if item.predicate:
        op.predicate = (item.predicate.register, item.predicate.negated)
