"""A printed program as bytes at addresses, and the harness that runs it.

Both are made by the clang and the linker that come along (``ziglang``), so nothing else
need be installed. Programs lie where the code expects them: linear memory at 0, code at
0xE0000000, the system area at 0xF0000000 (`crates/program/src/asm.rs`).
"""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import cached, processes, scratch
from .._core import InputError, InternalError
from ..compile import SECONDS
from .processors import HERE, Isa

CODE, ENTER, SYSTEM, STACK_TOP = 0xE000_0000, 0xEF00_0000, 0xF000_0000, 0xFF00_0000
#: The harness itself: above all that is mapped, below what any Linux gives a program (2^38 on RISC-V).
HARNESS = 0x20_0000_0000

#: For code that stands by itself: no C library, nothing of the processor this runs on.
BARE = ("-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-sanitize=all", "-fPIE", "-O2", "-g0")

LAYOUT = """\
SECTIONS {{
  .cm_linear 0 : {{ *(.cm_linear) }}
  .text {code:#x} : {{ *(.text) }}
  .cm_enter {enter:#x} : {{ *(.cm_enter) }}
  .cm_system {system:#x} : {{ *(.cm_system) }}
}}
"""


class Refused(InputError):
    """The assembler does not take a program; ``lines`` are those it complains of, from 1."""

    def __init__(self, message: str, lines: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


@dataclass(frozen=True)
class Image:
    """A linked program."""

    #: Address, bytes, and whether it is code.
    parts: tuple[tuple[int, bytes, bool], ...]
    symbols: dict[str, int]


def program(isa: Isa, assembly: str, code: int = CODE) -> Image:
    """Assemble and link a printed program, with the trampoline ``cm_enter``.

    Raises Refused where the assembler does not take it: an instruction that the machine file
    made up is none of any processor.
    """
    # The assembler takes a comment's sign for text on no machine; symbols of globals are the program's own.
    globals_ = re.findall(r"\.set cm_global_(\w+), (\d+)", assembly)
    macro = ["\t.macro cm_globals", *(isa.set_register.format(register=r, value=v) for r, v in globals_), "\t.endm"]
    enter = "\n".join([f"\t.set CM_STACK_TOP, {STACK_TOP:#x}", *macro, isa.enter.read_text()])
    with scratch.folder() as folder:
        objects = [assembled(isa, folder / "program.s", assembly), assembled(isa, folder / "enter.s", enter)]
        layout = folder / "layout.ld"
        layout.write_text(LAYOUT.format(code=code, enter=ENTER + code - CODE, system=SYSTEM))
        linked = folder / "program"
        link([*objects, "-T", str(layout), "-e", "0"], linked)
        return image(linked.read_bytes())


def harness(isa: Isa) -> bytes:
    """The program that runs and times others, kept from the last time."""
    source = (HERE / "harness.c").read_bytes()
    digest = hashlib.sha256(isa.triple.encode() + b"\0" + "\0".join(BARE).encode() + b"\0" + source).hexdigest()[:40]
    kept = cached.place("silicon", digest)
    if (known := cached.read(kept)) is not None:
        return known
    with scratch.folder() as folder:
        made = folder / "harness"
        tool("cc", "-target", isa.triple, *BARE, "-c", str(HERE / "harness.c"), "-o", f"{made}.o")
        link([f"{made}.o", f"--image-base={HARNESS:#x}", "--strip-all"], made)
        content = made.read_bytes()
    cached.write(kept, content)
    return content


def assembled(isa: Isa, path: Path, text: str) -> str:
    """The object file of an assembly text."""
    path.write_text(text)
    made = str(path.with_suffix(".o"))
    tool("cc", "-target", isa.triple, *isa.flags, "-g0", "-c", str(path), "-o", made)
    return made


def link(what: list[str], out: Path) -> None:
    tool("ld.lld", "-static", *what, "-o", str(out))


def tool(*arguments: str) -> None:
    """Run the clang or the linker that comes along."""
    command = [sys.executable, "-m", "ziglang", *arguments]
    try:
        done = processes.run(command, SECONDS, cached.environment())
    except subprocess.TimeoutExpired:
        raise InputError(f"{arguments[0]} had not ended after {SECONDS} seconds and was stopped") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        errors = re.findall(r"program\.s:(\d+):\d+: error: (.*)", said)
        first = f"line {errors[0][0]}: {errors[0][1]}" if errors else said.splitlines()[0] if said else "no word"
        raise Refused(
            f"the assembler that comes along does not take the printed program ({first}); what a machine file made up runs in "
            "the simulation only, and what an assembler calls otherwise is an error of that file",
            tuple(int(line) for line, _ in errors),
        )


def image(elf: bytes) -> Image:
    """What a linked ELF file of 64 bits loads, and its symbols.

    The fields are those of the System V ABI, chapters 4 and 5.
    """
    if elf[:6] != b"\x7fELF\x02\x01":
        raise InternalError("the linker made no little-endian ELF file of 64 bits")
    sections_at, count = struct.unpack_from("<Q", elf, 40)[0], struct.unpack_from("<H", elf, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, sections_at + 64 * i) for i in range(count)]
    parts = []
    symbols: dict[str, int] = {}
    for _, kind, flags, address, offset, size, link, _, _, _ in sections:
        # SHT_PROGBITS with SHF_ALLOC; SHF_EXECINSTR.
        if kind == 1 and flags & 2 and size:
            parts.append((address, elf[offset : offset + size], bool(flags & 4)))
        if kind == 2:
            names = sections[link][4]
            for at in range(offset, offset + size, 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
                if section:
                    end = elf.index(b"\0", names + name)
                    symbols[elf[names + name : end].decode()] = value
    return Image(tuple(parts), symbols)
