"""The second judge: GNU binutils for tic6x-elf.

A printed program is assembled for the C62x or the C64x and linked at the
addresses that the emulator uses; then it is disassembled, and what comes out
is held against what was printed, packet by packet: predicate, mnemonic, unit
with its cross or path mark, operands, parallel bars. What GNU as may add are
NOPs in parallel, where a fetch packet's boundary or an alignment asks for
them, and NOPs after the last packet. No symbol may be left undefined.

So an operand that is cut to fit, a label that ended elsewhere, a packet torn
apart, are found by tools that share nothing with the compiler. The reading of
a line (`syntax.py`) is shared with the emulator.

The tools are looked for in `$CIPHERMILL_TIC6X/bin` and on the path;
`build_tic6x.sh` builds them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .encoded import encoded
from .layout import PLACES, lay_out
from .operands import Illegal
from .syntax import Instruction, Source, instruction, read

ARCHITECTURES = {"c6201": "c62x", "c64x": "c64x"}
TOOLS = ("tic6x-elf-as", "tic6x-elf-ld", "tic6x-elf-objdump", "tic6x-elf-nm")
WORD = re.compile(r"\s*([0-9a-f]+):\t([0-9a-f]{8}) \t(.*)$")
TARGET = re.compile(r"\b([0-9a-f]+) <[^>]*>")
NOP = ("", "nop", "", ("1",))


class Missing(Exception):
    """The tools are not installed."""


class Disagreement(Exception):
    """What GNU as made of a program is not what was printed."""

    def __init__(self, differences: list[str]) -> None:
        self.differences = differences
        super().__init__("\n".join(differences[:20]))


def tool(name: str) -> str:
    """Path of a tool; Missing says how to get it."""
    folder = os.environ.get("CIPHERMILL_TIC6X")
    found = shutil.which(name, path=f"{folder}/bin") if folder else None
    found = found or shutil.which(name)
    if not found:
        raise Missing(f"{name} is neither in $CIPHERMILL_TIC6X/bin nor on the path; build it with c6x/build_tic6x.sh")
    return found


def missing() -> str:
    """Why the tools cannot be used, or nothing."""
    try:
        for name in TOOLS:
            tool(name)
    except Missing as error:
        return str(error)
    return ""


@dataclass
class Listing:
    """An assembled and linked program."""

    elf: Path
    #: Packets in order: address, and the instructions of each.
    packets: list[tuple[int, list[Instruction]]] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)

    @property
    def code_bytes(self) -> int:
        return 4 * sum(len(items) for _, items in self.packets)


def assemble(text: str, machine: str, folder: Path, places: dict[str, int] | None = None) -> Listing:
    """Assembles, links and disassembles; Disagreement if a tool complains."""
    source, made, elf = folder / "program.s", folder / "program.o", folder / "program.elf"
    source.write_text(text)
    run("tic6x-elf-as", f"-march={ARCHITECTURES[machine]}", "--fatal-warnings", source, "-o", made)
    undefined = run("tic6x-elf-nm", "-u", made).split()
    if undefined:
        raise Disagreement([f"{name} is not defined" for name in undefined if name != "U"])
    sections = PLACES | (places or {})
    starts = [f"--section-start={name}={address:#x}" for name, address in sections.items()]
    run("tic6x-elf-ld", "-e", f"{sections['.text']:#x}", *starts, made, "-o", elf)
    listing = Listing(elf)
    for line in run("tic6x-elf-nm", elf).splitlines():
        words = line.split()
        if len(words) == 3:
            listing.symbols[words[2]] = int(words[0], 16)
    for line in run("tic6x-elf-objdump", "-d", "-z", elf).splitlines():
        if found := WORD.match(line):
            # Targets of branches are printed in hexadecimal without 0x.
            words = TARGET.sub(lambda target: f"0x{target[1]}", found[3])
            item = instruction(words, 0)
            if not item.parallel:
                listing.packets.append((int(found[1], 16), []))
            listing.packets[-1][1].append(item)
    return listing


def run(name: str, *arguments) -> str:
    done = subprocess.run([tool(name), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise Disagreement([f"{name}: {line}" for line in done.stderr.splitlines()])
    return done.stdout


def judge(text: str, machine: str, folder: Path, places: dict[str, int] | None = None) -> Listing:
    """Assembles a program and compares the outcome with the text."""
    source = read(text)
    if source.faults:
        raise Illegal(source.faults)
    listing = assemble(text, machine, folder, places)
    printed = packets(source)
    symbols = lay_out(source, machine, places or {}).symbols
    differences = []
    for label, index in code_labels(source):
        if index < len(listing.packets):
            symbols[label] = listing.packets[index][0]
        if listing.symbols.get(label, symbols[label]) != symbols[label]:
            differences.append(f"{label} is at {listing.symbols[label]:#x} instead of {symbols[label]:#x}")
    for index, wanted in enumerate(printed):
        if index >= len(listing.packets):
            differences.append(f"line {wanted[0].line}: the packet is missing")
            break
        differences += compare(wanted, *listing.packets[index], machine, symbols)
    for address, items in listing.packets[len(printed) :]:
        if any(encoded(item, machine, symbols) != NOP for item in items):
            differences.append(f"{address:#x}: a packet that was not printed")
    if differences:
        raise Disagreement(differences)
    return listing


def packets(source: Source) -> list[list[Instruction]]:
    found: list[list[Instruction]] = []
    for section in source.sections.values():
        for item in section.items:
            if isinstance(item, Instruction):
                if not item.parallel:
                    found.append([])
                found[-1].append(item)
    return found


def code_labels(source: Source):
    """Labels of code, each with the number of the packet that it names."""
    index = 0
    for section in source.sections.values():
        if not section.code:
            continue
        starts = []
        for item in section.items:
            starts.append(index)
            index += isinstance(item, Instruction) and not getattr(item, "parallel", True)
        for label, at, _ in section.labels:
            yield label, [*starts, index][at]


def compare(wanted: list[Instruction], address: int, got: list[Instruction], machine: str, symbols) -> list[str]:
    """Differences of one packet."""
    found = []
    for place, item in enumerate(wanted):
        if place >= len(got):
            found.append(f"line {item.line}: not in the packet at {address:#x}")
            continue
        meant = encoded(item, machine, symbols)
        # The disassembler's own words need no symbols and no undoing of macros,
        # except that it too writes some instructions as others.
        made = encoded(got[place], machine, {})
        if meant != made:
            found.append(f"line {item.line}: {show(meant)} became {show(made)} at {address + 4 * place:#x}")
    for place, item in enumerate(got[len(wanted) :], len(wanted)):
        if encoded(item, machine, {}) != NOP:
            found.append(f"{address + 4 * place:#x}: {show(encoded(item, machine, {}))} was not printed")
    return found


def show(parts: tuple) -> str:
    predicate, mnemonic, unit, operands = parts
    words = [f"[{predicate}]"] if predicate else []
    words += [mnemonic, f".{unit}"] if unit else [mnemonic]
    return f"{' '.join(words)} {', '.join(operands)}".rstrip()
