"""Printed programs for AVR under simavr, whose cycle counter is exact: the same memory, and the same cycles.

clang assembles and links the program, `simavr.c` makes the calls. The cycles of a message, without its calls, are those
that the simulator says of the same message. Arguments beyond four stand in the system area.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import forms
import pytest
from printed import ZIG, tool

from ciphermill import engine, library
from ciphermill._core import InputError
from ciphermill.manifest import find, names

HERE = Path(__file__).parent
#: By machine, what simavr and clang call its part.
PARTS = {"avr": "atmega328p", "atmega1284p": "atmega1284p"}
#: Bytes of flash of these parts.
FLASH = {"atmega328p": 32768, "atmega1284p": 131072}
#: Where data memory begins in an AVR's ELF file.
DATA = 0x80_0000
#: What is no fault: too little memory, and a kernel that makes no blocks.
NOT_HERE = ("memory", "a call is always one")
#: Arguments of 32 bits that travel in registers.
ARGUMENTS = 4


def programs() -> Iterator[tuple[str, str, str | None, str]]:
    """Every variant on the larger machine, some with tables in flash, and on the smaller one those of which some fit."""
    for name in names():
        yield from (("atmega1284p", name, variant, "ram") for variant in find(name).variants)
    yield from (("avr", name, None, "ram") for name in ("rijndael", "present", "chacha20"))
    for name in ("rijndael", "present", "sm4", "des", "sha256", "aes-gcm"):
        yield from (("atmega1284p", name, variant, "flash") for variant in find(name).variants)
    # RAM has no room for its tables.
    yield "avr", "rijndael", "ttable", ""


PROGRAMS = list(programs())


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or not Path("/usr/include/simavr").is_dir():
        pytest.skip("not installed: gcc, libsimavr-dev")
    built = tmp_path_factory.mktemp("simavr") / "judge"
    tool(["gcc", "-O1", "-o", str(built), str(HERE / "simavr.c"), "-lsimavr"])
    return built


def sections(elf: bytes) -> dict[str, tuple[int, bytes]]:
    """Address and content of the sections of a little-endian 32-bit ELF file."""
    table, entry, count, strings = struct.unpack_from("<I10xHHH", elf, 32)
    headers = [struct.unpack_from("<10I", elf, table + k * entry) for k in range(count)]
    text = headers[strings][4]
    found = {}
    for name, kind, _, address, offset, size, *_ in headers:
        label = elf[text + name : elf.index(b"\0", text + name)].decode()
        found[label] = address, elf[offset : offset + size] if kind == 1 else b""
    return found


class Program:
    """One printed program, linked for a part."""

    def __init__(self, native: dict, machine: str, folder: Path, judge: Path) -> None:
        part, text = PARTS[machine], native["assembly"]
        ram = library.ram(machine)
        assert ram is not None
        own = ram[1] - (ram[1] - ram[0]) // 8
        # What linear memory holds is put there by hand, and so is no part of the image.
        (folder / "program.s").write_text(text.replace('.cm_linear,"aw"', '.cm_linear,""'))
        cpu = ["-target", "avr-freestanding-eabi", f"-mcpu={part}", f"-mmcu={part}"]
        tool([*ZIG, "cc", *cpu, "-c", "program.s", "-o", "program.o"], cwd=folder)
        places = [".text=0", f".cm_system={DATA + own:#x}"]
        if said := re.search(r"Link .cm_flash, tables in flash, at (0x[0-9a-f]+)", text):
            places.append(f".cm_flash={said[1]}")
        starts = [f"--section-start={place}" for place in places]
        tool(
            [*ZIG, "ld.lld", "--image-base=0", "--no-check-sections", "-e", "0", *starts, "program.o", "-o", "program"],
            cwd=folder,
        )
        self.overflow = own + native["arg_overflow"]
        self.command = [str(judge), part, str(folder / "program")]
        self.lines: list[str] = []
        found = sections((folder / "program").read_bytes())
        if len(found[".text"][1]) > FLASH[part]:
            pytest.skip(f"{len(found['.text'][1])} bytes of code, and the part has {FLASH[part]} of flash")
        if ".cm_flash" in found:
            self.write(*found[".cm_flash"], "flash")
        for section in (".cm_linear", ".cm_system"):
            address, content = found[section]
            at = address - DATA if section == ".cm_system" else 0
            content = content[: ram[1] - at].rstrip(b"\0") if section == ".cm_linear" else content
            low = max(0, ram[0] - at)
            self.write(at + low, content[low:])

    def write(self, address: int, content: bytes, command: str = "write") -> None:
        # A line has room for so many.
        for k in range(0, len(content), 1024):
            self.lines.append(f"{command} {address + k} {content[k : k + 1024].hex()}")

    def call(self, symbol: str, args: list[int]) -> None:
        self.write(self.overflow, struct.pack(f"<{len(args[ARGUMENTS:])}I", *args[ARGUMENTS:]))
        self.lines.append(f"call {symbol} {' '.join(map(str, args))}")

    def run(self) -> list[str]:
        done = subprocess.run(
            self.command, input="\n".join([*self.lines, ""]), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[:1000]
        return [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]


@pytest.mark.parametrize(("machine", "cipher", "variant", "tables"), PROGRAMS)
def test_same_memory_and_cycles(machine, cipher, variant, tables, tmp_path, judge):
    """Of the programs one in `forms.SHARE` is the fastest of several forms, the others are made in one."""
    module = engine.module(find(cipher), variant)
    unit = 64 if module.kind == "stream" else module.interface["block_bytes"]
    for number, way in enumerate(module.directions, PROGRAMS.index((machine, cipher, variant, tables))):
        make = engine if forms.usual(number) else forms
        settings = (f"memory.tables={tables}",) if tables else ()
        # Unrolled code and tables together are more than a small part's flash.
        unroll = None if tables else False
        options = engine.Options(direction=way, bytes=2 * unit, set=settings, unroll=unroll)
        try:
            native = make.native(module, machine, options, (unit, 2 * unit))
            measured = make.measure(module, machine, options)
        except InputError as error:
            if not tables or not any(reason in str(error) for reason in NOT_HERE):
                raise
            pytest.skip(str(error))
        if tables != "ram":
            assert (".cm_flash" in native["assembly"]) == (measured.cipher_table_bytes > 0)
        folder = tmp_path / way
        folder.mkdir()
        program = Program(native, machine, folder, judge)
        for address, content in native["writes"]:
            program.write(address, bytes.fromhex(content))
        for call in native["setup"] + native["longer"]:
            program.call(call["symbol"], call["args"])
        for _, start, end in native["buffers"]:
            program.lines.append(f"read {start} {end - start}")
        said = program.run()
        calls = len(native["setup"]) + len(native["longer"])
        cycles = sum(map(int, said[len(native["setup"]) : calls]))
        expected = dict(native["expected"])
        for (name, start, end), found in zip(native["buffers"], said[calls:], strict=True):
            wanted = bytearray(end - start)
            for at, page in expected.items():
                page = bytes.fromhex(page)
                low, high = max(at, start), min(at + len(page), end)
                if low < high:
                    wanted[low - start : high - start] = page[low - at : high - at]
            assert found == wanted.hex(), f"{way}: {name}"
        assert cycles == measured.cycles, way
