"""Printed programs for the MSP430: the same memory under mspdebug's simulator, and the same cycles.

clang assembles and links the program. mspdebug (driver `sim`) runs its machine code: memory is compared, and its count of
cycles (MCLK of its tracer). That count is not TI's: it takes constants of the constant generator for operands in memory.
So `msp430.py` runs the same code beside it, by TI's tables; its cycles have to be ours, and with the constants' they have
to be mspdebug's.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import forms
import pytest
from msp430 import PC, SP, Cpu
from printed import ZIG, tool

from ciphermill import engine, library
from ciphermill._core import InputError
from ciphermill.manifest import find, names

#: Flash of the MSP430F1611, its vectors left out: code is put there.
CODE, END = 0x4000, 0xFFE0
#: Where a call returns to: no instruction is there.
BACK = 0xFFFE
#: The most cycles of a call.
MOST = 20_000_000
#: Registers of arguments, which are values of 32 bits in two.
ARGUMENTS = ((12, 13), (14, 15), (8, 9), (10, 11))


def programs() -> Iterator[tuple[str, str]]:
    """Every variant: tables stand in flash where RAM has no room for them."""
    for name in names():
        yield from ((name, variant) for variant in find(name).variants)


PROGRAMS = list(programs())


class Program:
    """One printed program, linked for the part, and the calls of its memory."""

    def __init__(self, native: dict, machine: str, folder: Path) -> None:
        text, ram = native["assembly"], library.ram(machine)
        assert ram is not None
        self.folder, self.ram, self.memory = folder, ram, bytearray(65536)
        own = ram[1] - (ram[1] - ram[0]) // 8
        # What linear memory holds is put there by hand, and so is no part of the image.
        (folder / "program.s").write_text(text.replace('.cm_linear,"aw"', '.cm_linear,""'))
        tool([*ZIG, "cc", "-target", "msp430-freestanding", "-c", "program.s", "-o", "program.o"], cwd=folder)
        places = [f".text={CODE:#x}", f".cm_system={own:#x}"]
        if said := re.search(r"Link .cm_flash, tables in flash, at (0x[0-9a-f]+)", text):
            places.append(f".cm_flash={said[1]}")
        self.overflow = own + native["arg_overflow"]
        starts = [f"--section-start={place}" for place in places]
        tool(
            [*ZIG, "ld.lld", "--image-base=0", "--no-check-sections", "-e", "0", *starts, "program.o", "-o", "program"],
            cwd=folder,
        )
        elf = (folder / "program").read_bytes()
        table, entry, count, strings = struct.unpack_from("<I10xHHH", elf, 32)
        headers = [struct.unpack_from("<10I", elf, table + k * entry) for k in range(count)]

        def named(section: tuple[int, ...], at: int) -> str:
            return elf[section[4] + at : elf.index(b"\0", section[4] + at)].decode()

        self.symbols: dict[str, int] = {}
        # Linear memory is all of memory: what else is there stands in its place.
        for header in sorted(headers, key=lambda h: named(headers[strings], h[0]) == ".cm_system"):
            name = named(headers[strings], header[0])
            content = elf[header[4] : header[4] + header[5]]
            if header[1] == 2:
                for k in range(0, len(content), 16):
                    symbol, value = struct.unpack_from("<II", content, k)
                    self.symbols[named(headers[header[6]], symbol)] = value
            elif name == ".text":
                if CODE + len(content) > END:
                    pytest.skip(f"{len(content)} bytes of code, and the part has {END - CODE} of flash")
                self.memory[CODE : CODE + len(content)] = content
            elif name == ".cm_flash":
                self.memory[header[3] : header[3] + len(content)] = content
            elif name in (".cm_linear", ".cm_system"):
                low, high = max(header[3], ram[0]), min(header[3] + len(content), ram[1])
                self.memory[low:high] = content[low - header[3] : high - header[3]]

    def begin(self, symbol: str, args: list[int]) -> list[tuple[int, int]]:
        """What registers hold at the start of a call; the return address is on the stack."""
        pairs = zip(args, ARGUMENTS, strict=False)
        given = [(r, a >> (16 * k) & 0xFFFF) for a, regs in pairs for k, r in enumerate(regs)]
        return [*given, (PC, self.symbols[symbol]), (SP, self.ram[1] - 2)]

    def more(self, args: list[int]) -> bytes:
        """Arguments beyond those in registers, which stand in the system area."""
        rest = args[len(ARGUMENTS) :]
        return struct.pack(f"<{len(rest)}I", *rest)

    def by_the_tables(self, calls: list[dict]) -> tuple[Cpu, list[int]]:
        """The calls one after the other, and the cycles of each."""
        cpu = Cpu()
        cpu.memory[:] = self.memory
        cycles = []
        for call in calls:
            for register, value in self.begin(call["symbol"], call["args"]):
                cpu.regs[register] = value
            more = self.more(call["args"])
            cpu.memory[self.overflow : self.overflow + len(more)] = more
            cpu.write(self.ram[1] - 2, BACK, False)
            cycles.append(cpu.run(BACK, MOST))
        return cpu, cycles

    def by_mspdebug(self, calls: list[dict]) -> tuple[bytes, int]:
        """Memory after the calls, and MCLK of all of them."""
        (self.folder / "before").write_bytes(self.memory[0x200:])
        lines = ["simio add hwmult multiplier", "simio add tracer tracer", "load_raw before 0x200"]
        lines += [f"setbreak {BACK:#x}", "simio config tracer clear"]
        for call in calls:
            if more := self.more(call["args"]):
                lines.append(f"mw {self.overflow:#x} {' '.join(map(hex, more))}")
            lines.append(f"mw {self.ram[1] - 2:#x} {BACK & 0xFF:#x} {BACK >> 8:#x}")
            lines += [f"set {r} {value:#x}" for r, value in [*self.begin(call["symbol"], call["args"]), (2, 0)]]
            lines.append("run")
        lines += ["simio info tracer", f"save_raw {self.ram[0]:#x} {self.ram[1] - self.ram[0]:#x} after", "exit", ""]
        (self.folder / "commands").write_text("\n".join(lines))
        said = tool(["mspdebug", "-q", "sim", "read commands"], cwd=self.folder, timeout=120).decode(errors="replace")
        counted = re.search(r"MCLK: +(\d+)", said)
        assert counted, said[-1000:]
        return (self.folder / "after").read_bytes(), int(counted[1])


@pytest.mark.parametrize(("cipher", "variant"), PROGRAMS)
def test_same_memory_and_cycles(cipher, variant, tmp_path):
    """Of the programs one in `forms.SHARE` is the fastest of several forms, the others have rounds as loops."""
    if shutil.which("mspdebug") is None:
        pytest.skip("not installed: mspdebug")
    module = engine.module(find(cipher), variant)
    unit = 64 if module.kind == "stream" else module.interface["block_bytes"]
    for number, way in enumerate(module.directions, PROGRAMS.index((cipher, variant))):
        options = engine.Options(direction=way, bytes=2 * unit)
        make = engine if forms.usual(number) else forms
        try:
            native = make.native(module, "msp430", options, (unit, 2 * unit))
            measured = make.measure(module, "msp430", options)
        except InputError as error:
            pytest.skip(str(error))
        folder = tmp_path / way
        folder.mkdir()
        program = Program(native, "msp430", folder)
        for address, content in native["writes"]:
            content = bytes.fromhex(content)
            program.memory[address : address + len(content)] = content
        calls = native["setup"] + native["longer"]
        cpu, cycles = program.by_the_tables(calls)
        after, mclk = program.by_mspdebug(calls)
        assert mclk == cpu.cycles + cpu.constants, way
        assert sum(cycles[len(native["setup"]) :]) == measured.cycles, way
        expected = dict(native["expected"])
        low_end = program.ram[0]
        for name, start, end in native["buffers"]:
            wanted = bytearray(end - start)
            for at, page in expected.items():
                page = bytes.fromhex(page)
                low, high = max(at, start), min(at + len(page), end)
                if low < high:
                    wanted[low - start : high - start] = page[low - at : high - at]
            assert after[start - low_end : end - low_end] == wanted, f"{way}: {name} under mspdebug"
            assert cpu.memory[start:end] == wanted, f"{way}: {name}"
