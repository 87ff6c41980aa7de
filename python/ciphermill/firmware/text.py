"""A program as sections with symbols, from the lines that `relocate.py` has looked through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .relocate import Address, Line

#: Bytes of data to a line.
WIDE = 16
GLOBAL = re.compile(r"\t\.globl (\w+)")
LABEL = re.compile(r"(\w+):")
START = "\t.balign 16"


@dataclass(frozen=True)
class Printed:
    """The parts of an assembly text."""

    code: list[Line]
    prefix: str
    #: Where in linear memory the static data begins that the code knows, and its boundary.
    start: int
    align: int
    #: What the core says of the program (`_core.object`).
    program: dict[str, Any]

    @cached_property
    def names(self) -> dict[str, str]:
        """The functions that were exported, each with its name now."""
        found = [match[1] for line in self.code if isinstance(line, str) and (match := GLOBAL.fullmatch(line))]
        return {name: self.prefix + name.removeprefix("cm_") for name in found}

    def functions(self) -> tuple[str, ...]:
        return tuple(self.names)

    @property
    def data_bytes(self) -> int:
        """How much static data there is."""
        size: int = self.program["data_end"] - self.start
        return size

    @property
    def data(self) -> str:
        """The symbol of the static data, which only this text knows."""
        return f"{self.prefix}tables"

    def text(self) -> str:
        parts = [*self.head(), *self.functions_in_sections(), *self.data_section()]
        return "\n".join(parts) + "\n"

    def head(self) -> list[str]:
        """The first line says what it is; what the machine file wants at the head follows."""
        lines: list[str] = self.program["assembly"].splitlines()
        options = [
            line for line in lines[: lines.index("\t.text")] if line.startswith("\t.") and "cm_global_" not in line
        ]
        comment = lines[0].split(" ", 1)[0]
        calls = f"{comment} Functions are called as C calls them; tables lie wherever they are linked."
        return [lines[0], calls, *options]

    def functions_in_sections(self) -> list[str]:
        """Each function in a section of its own, so that a linker can leave out what is not called, with its size."""
        out: list[str] = []
        chunks: list[list[Line]] = []
        for line in self.code:
            if line == START:
                chunks.append([])
            elif chunks:
                chunks[-1].append(line)
        for chunk in chunks:
            labels = [match[1] for line in chunk if isinstance(line, str) and (match := LABEL.fullmatch(line))]
            called = [self.names.get(label, label) for label in labels]
            out += ["", f'\t.section .text.{called[0]},"ax",%progbits', START]
            out += [self.line(line) for line in chunk if line != ""]
            out += [f"\t.size {name}, . - {name}" for name in called]
        return out

    def line(self, line: Line) -> str:
        if isinstance(line, Address):
            if "16:" in line.before:
                # Where an offset has 16 bits in the object, it is in a symbol of its own.
                return f"{line.before}{self.symbol(line.offset)}{line.behind}"
            more = f"{line.offset:+d}" if line.offset else ""
            return f"{line.before}{self.data}{more}{line.behind}"
        # Not in mnemonics: the operands of calls, labels, and directives.
        first, tab, rest = line.rpartition(" ") if line.startswith("\t") else ("", "", line)
        for old, new in self.names.items():
            if old in line:
                rest = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, rest)
                first = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, first) if "\t.type" in first else first
        return f"{first}{tab}{rest}"

    def symbol(self, offset: int) -> str:
        return f"{self.data}_{offset}".replace("-", "minus")

    def data_section(self) -> list[str]:
        """The static data, all in one section: addresses in the code are distances from its start."""
        size = self.data_bytes
        if not size:
            return []
        image = bytearray(size)
        for at, content in self.program["data"]:
            held = bytes.fromhex(content)
            image[at - self.start : at - self.start + len(held)] = held
        kind, flags = (".rodata", "a") if self.program["readonly"] else (".data", "aw")
        out = ["", f'\t.section {kind}.{self.data},"{flags}",%progbits', f"\t.balign {self.align}"]
        out += [f"\t.type {self.data}, %object", f"{self.data}:"]
        offsets = {line.offset for line in self.code if isinstance(line, Address) and "16:" in line.before}
        out += [f"\t.set {self.symbol(offset)}, {self.data}{offset:+d}" for offset in sorted(offsets)]
        for at in range(0, size, WIDE):
            out.append(f"\t.byte {','.join(str(byte) for byte in image[at : at + WIDE])}")
        return [*out, f"\t.size {self.data}, {size}"]
