"""Where everything lies: addresses of packets, labels and data.

Code is cut into execute packets. On the C62x a packet may not reach over the
boundary of a 32-byte fetch packet; GNU as then adds NOPs in parallel with
earlier packets until it begins at the boundary, and does the same for
alignments. They cost bytes and no cycles. Which packets get them does not
matter here; the emulator counts them before the packet that needs them. On
the C64x packets may cross, and only alignments are padded. A section of code
ends at a multiple of 32 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .operands import Fault, evaluate
from .syntax import Align, Data, Instruction, Section, Source

FETCH = 32
#: Where sections lie unless the caller says otherwise; others follow `REST`.
PLACES = {".text": 0xE000_0000, ".cm_linear": 0, ".cm_system": 0xF000_0000}
REST = 0x1000_0000


@dataclass
class Packet:
    """Instructions that are issued together."""

    address: int
    items: list[Instruction] = field(default_factory=list)

    @property
    def line(self) -> int:
        return self.items[0].line


@dataclass
class Layout:
    packets: list[Packet] = field(default_factory=list)
    #: Bytes of data by address of the section and name.
    data: dict[str, tuple[int, bytearray]] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    code_bytes: int = 0
    padding_nops: int = 0


def lay_out(source: Source, machine: str, places: dict[str, int]) -> Layout:
    layout = Layout()
    faults = source.faults
    for name, (text, line) in source.constants.items():
        try:
            layout.symbols[name] = evaluate(text, layout.symbols)
        except ValueError as error:
            faults.append(Fault(line, str(error)))
    rest, gaps = REST, []
    for section in source.sections.values():
        base = places.get(section.name, PLACES.get(section.name, rest))
        if section.code:
            size, starts = code(section, base, machine, layout, faults)
        else:
            size, starts = data(section, base, layout, gaps)
        if base == rest:
            rest += -(-max(size, 1) // 0x1_0000) * 0x1_0000
        for label, at, line in section.labels:
            if label in layout.symbols:
                faults.append(Fault(line, f"{label} is defined twice"))
            layout.symbols[label] = starts[at]
    for fill in gaps:
        fill(layout.symbols, faults)
    return layout


def code(section: Section, base: int, machine: str, layout: Layout, faults: list[Fault]) -> tuple[int, list[int]]:
    """Bytes of the section, and the address of each item."""
    at, starts = base, []
    items = section.items
    for index, item in enumerate(items):
        if isinstance(item, Align):
            at = pad(layout, at, -at % item.bytes)
        elif isinstance(item, Instruction):
            if not item.parallel:
                length = 1
                while index + length < len(items) and getattr(items[index + length], "parallel", False):
                    length += 1
                if length > 8:
                    faults.append(Fault(item.line, f"{length} instructions in one execute packet"))
                if machine == "c6201" and at % FETCH + 4 * length > FETCH:
                    at = pad(layout, at, -at % FETCH)
                layout.packets.append(Packet(at))
            layout.packets[-1].items.append(item)
        starts.append(layout.packets[-1].address if getattr(item, "parallel", False) else at)
        if isinstance(item, Instruction):
            at += 4
    size = -(-(at - base) // FETCH) * FETCH
    layout.code_bytes += size
    return size, [*starts, at]


def pad(layout: Layout, at: int, size: int) -> int:
    layout.padding_nops += size // 4
    return at + size


def data(section: Section, base: int, layout: Layout, gaps: list) -> tuple[int, list[int]]:
    content, starts = bytearray(), []
    for item in section.items:
        if isinstance(item, Align):
            content += bytes(-(base + len(content)) % item.bytes)
        starts.append(base + len(content))
        if isinstance(item, Data):
            if item.values:
                gaps.append(filler(content, len(content), item))
            content += bytes(item.gap + item.width * len(item.values))
    layout.data[section.name] = (base, content)
    return len(content), [*starts, base + len(content)]


def filler(content: bytearray, at: int, item: Data):
    """Writes one line of data, once all symbols are known."""

    def fill(symbols: dict[str, int], faults: list[Fault]) -> None:
        for index, text in enumerate(item.values):
            try:
                value = evaluate(text, symbols)
                if not -(1 << 8 * item.width - 1) <= value < 1 << 8 * item.width:
                    raise ValueError(f"{text} does not fit {item.width} bytes")
                where = at + index * item.width
                content[where : where + item.width] = (value % (1 << 8 * item.width)).to_bytes(item.width, "little")
            except ValueError as error:
                faults.append(Fault(item.line, str(error)))

    return fill
