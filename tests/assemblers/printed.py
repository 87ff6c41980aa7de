"""Printed programs under real assemblers and emulators.

A program that the code generator printed for a machine is assembled by GNU as or clang,
linked with a start-up file and a table of calls, and run under QEMU's user
emulation. Nothing of ours takes part in the run: it judges the instruction
selection, the register allocation, the calling convention and the printed
syntax at once.

Linear memory is linked at address 0 and the system area at 0xF0000000, where
the code expects them. Buffers stand in a section of their own 16 MiB up, and
the start-up files grow the memory to 32 MiB, as a host would, so that the
module's own checks (`memory.copy`) find them inside. Memory of a big-endian machine is word-invariant: every aligned word
has the value that a little-endian reader would see; so data is emitted as
words, and output turned back word by word.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

import c6x

HERE = Path(__file__).parent
BUFFERS = 0x0100_0000
ALIGN = 64


@dataclass(frozen=True)
class Target:
    """The tools for one machine."""

    assembler: tuple[str, ...]
    linker: tuple[str, ...]
    emulator: tuple[str, ...]
    start: str
    set_register: str
    big_endian: bool
    #: Code that the host itself may be able to run.
    native: bool = False
    #: No warnings either: an operand that is cut to fit is a wrong program.
    strict: str = "--fatal-warnings"

    def missing(self) -> list[str]:
        """The programs that are not installed."""
        tools = (self.assembler, self.linker, self.emulator)
        return [tool[0] for tool in tools if tool and shutil.which(tool[0]) is None]


def riscv(extensions: str = "", cpu: str = "rv32", bits: int = 32) -> Target:
    return Target(
        assembler=(
            "riscv64-linux-gnu-as",
            f"-march=rv{bits}im{extensions}",
            f"-mabi={'ilp32' if bits == 32 else 'lp64'}",
        ),
        linker=("riscv64-linux-gnu-ld", "-m", f"elf{bits}lriscv"),
        emulator=(f"qemu-riscv{bits}", "-cpu", cpu),
        start=f"start_riscv{bits}.s",
        set_register="li {register}, {value}",
        big_endian=False,
    )


SPARC = Target(
    assembler=("sparc64-linux-gnu-as", "-32", "-Av8"),
    linker=("sparc64-linux-gnu-ld", "-m", "elf32_sparc"),
    emulator=("qemu-sparc",),
    start="start_sparc.s",
    set_register="set {value}, %{register}",
    big_endian=True,
)


#: Code of the host's own kind. QEMU runs it everywhere; a host that is asked to
#: has to be an x86 and to let memory begin at address 0 (see `refused`).
IA32 = Target(
    assembler=("as", "--32"),
    linker=("ld", "-m", "elf_i386"),
    emulator=("qemu-i386",),
    start="start_ia32.s",
    set_register="movl ${value}, %{register}",
    big_endian=False,
    native=True,
)


#: The same in 64-bit mode, below 4 GiB.
X86_64 = Target(
    assembler=("as", "--64", "-mindex-reg"),
    linker=("ld", "-m", "elf_x86_64"),
    emulator=("qemu-x86_64",),
    start="start_x86_64.s",
    set_register="movl ${value}, %{register}",
    big_endian=False,
    native=True,
)


#: The clang that comes along, and its linker.
ZIG = (sys.executable, "-m", "ziglang")


def thumb(cpu: str) -> Target:
    """Thumb-2, by clang."""
    return Target(
        assembler=(*ZIG, "cc", "-target", "thumb-linux-musleabi", f"-mcpu={cpu}", "-c"),
        linker=(*ZIG, "ld.lld", "--image-base=0"),
        emulator=("qemu-arm",),
        start="start_thumb.s",
        set_register="ldr {register}, ={value}",
        big_endian=False,
        strict="-Wa,--fatal-warnings",
    )


#: No tools of others: the emulator in `c6x/`.
C6X = Target(assembler=(), linker=(), emulator=(), start="", set_register="", big_endian=False)

#: Where the system area begins: its first word is the number of pages.
SYSTEM = 0xF000_0000
PAGES = 512


def padded(length: int) -> int:
    return -(-length // 4) * 4


@dataclass
class Calls:
    """A table of calls, the buffers they use, and the output they write."""

    commands: list[tuple] = field(default_factory=list)
    data: list[tuple[int, bytes]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    top: int = BUFFERS

    def buffer(self, content: bytes | int) -> int:
        """Address of a new buffer: bytes, or so many zeros."""
        content = bytes(content) if isinstance(content, int) else content
        address = self.top
        self.data.append((address, content))
        self.top += -(-max(len(content), 1) // ALIGN) * ALIGN
        return address

    def call(self, function: str, *arguments: int, output: tuple[int, int] = (0, 0)) -> None:
        """Call an export; then write `output` = (address, length)."""
        address, length = output
        self.commands.append((function, *arguments, *[0] * (4 - len(arguments)), address, padded(length), 0))
        if length:
            self.outputs.append(length)

    def assembly(self) -> str:
        lines = ['\t.section .cm_buffers,"aw"']
        at = BUFFERS
        for address, content in self.data:
            lines.append(f"\t.skip {address - at}")
            at = address + padded(len(content))
            if not any(content):
                lines.append(f"\t.skip {padded(len(content))}")
                continue
            content = content.ljust(padded(len(content)), b"\0")
            words = [int.from_bytes(content[i : i + 4], "little") for i in range(0, len(content), 4)]
            lines += [f"\t.4byte {', '.join(map(str, words[i : i + 8]))}" for i in range(0, len(words), 8)]
        lines += ["\t.skip 64", "\t.data", "\t.balign 4", "\t.globl cm_commands", "cm_commands:"]
        lines += [f"\t.4byte {', '.join(map(str, command))}" for command in self.commands]
        lines += ["\t.4byte 0, 0, 0, 0, 0, 0, 0, 0", ""]
        return "\n".join(lines)


def tool(command: list[str], **options) -> bytes:
    """Run a program; its own words in the error if it fails."""
    done = subprocess.run(command, capture_output=True, **options)
    said = done.stderr.decode(errors="replace")
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {said[:2000]}"
    return done.stdout


class Assembled:
    """One printed program as an object file, to be run with many call tables."""

    def __init__(self, text: str, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder
        source = folder / "program.s"
        source.write_text(text)
        globals_ = re.findall(r"\.set cm_global_(\w+), (\d+)", text)
        lines = [f"\t{target.set_register.format(register=r, value=v)}\n" for r, v in globals_]
        (folder / "globals.s").write_text("".join(lines))
        self._assemble("program.s", target.strict)
        shutil.copy(HERE / target.start, folder)
        self._assemble(target.start)

    def _assemble(self, name: str, *flags: str) -> None:
        tool([*self.target.assembler, *flags, name, "-o", Path(name).with_suffix(".o").name], cwd=self.folder)

    def run(self, calls: Calls) -> list[bytes]:
        """Make the calls; the outputs in order."""
        self.link(calls)
        return self._outputs(calls, [*self.target.emulator, "./program"])

    def ways(self, calls: Calls) -> Iterator[list[bytes]]:
        """The outputs under the emulator and, if it can, from the host."""
        yield self.run(calls)
        if self.target.native and not refused(self.target):
            yield self._outputs(calls, ["./program"])

    def instructions(self, calls: Calls) -> int:
        """How many the host executes under callgrind for the calls and the start-up file."""
        self.link(calls)
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=counted", "./program"]
        tool(command, cwd=self.folder, timeout=120)
        return int(re.search(r"Collected : (\d+)", (self.folder / "counted").read_text())[1])

    def link(self, calls: Calls) -> None:
        """Make the executable that makes the calls."""
        (self.folder / "calls.s").write_text(calls.assembly())
        self._assemble("calls.s")
        objects = [Path(self.target.start).with_suffix(".o").name, "program.o", "calls.o"]
        places = [".text=0xE0000000", ".cm_linear=0", ".cm_system=0xF0000000", f".cm_buffers={BUFFERS:#x}"]
        sections = [f"--section-start={place}" for place in places]
        tool([*self.target.linker, "-static", *sections, *objects, "-o", "program"], cwd=self.folder)

    def _outputs(self, calls: Calls, command: list[str]) -> list[bytes]:
        written = tool(command, cwd=self.folder, timeout=120)
        if self.target.big_endian:
            written = b"".join(written[i : i + 4][::-1] for i in range(0, len(written), 4))
        outputs = []
        for length in calls.outputs:
            outputs.append(written[:length])
            written = written[padded(length) :]
        assert not written, f"{len(written)} bytes more than were asked for"
        return outputs


#: A program that does nothing but be there.
NOTHING = """
	.text
	.section .cm_linear,"aw"
	.long 0
	.section .cm_system,"aw"
	.globl cm_system_start
cm_system_start:
	.long 0
"""


@cache
def refused(target: Target) -> str | None:
    """Why the host does not run such programs itself, if it does not."""
    with TemporaryDirectory() as folder:
        program = Assembled(NOTHING, target, Path(folder))
        calls = Calls()
        calls.call("cm_nothing")
        program.link(calls)
        try:
            done = subprocess.run(["./program"], cwd=folder, capture_output=True)
        except OSError as error:
            return f"the host does not run {target.start}: {error.strerror}"
        return f"the host stops {target.start} (memory at address 0?): {done.returncode}" if done.returncode else None


class Emulated:
    """One printed program for the C6000, to be run with many call tables."""

    def __init__(self, text: str, machine: str) -> None:
        self.program = c6x.load(text, machine)

    def run(self, calls: Calls) -> list[bytes]:
        """Make the calls; the outputs in order."""
        memory = self.program.memory()
        memory.store(SYSTEM, 4, PAGES)
        buffers = memory.add(BUFFERS, calls.top - BUFFERS + ALIGN)
        for address, content in calls.data:
            buffers[address - BUFFERS : address - BUFFERS + len(content)] = content
        if "cm_start" in self.program.symbols:
            self.program.call("cm_start", memory=memory)
        outputs, lengths = [], iter(calls.outputs)
        for function, *arguments, address, written, _ in calls.commands:
            self.program.call(function, *arguments, memory=memory)
            if written:
                at = address - BUFFERS
                outputs.append(bytes(buffers[at : at + next(lengths)]))
        return outputs

    def ways(self, calls: Calls) -> Iterator[list[bytes]]:
        """As `Assembled.ways`: there is one."""
        yield self.run(calls)
