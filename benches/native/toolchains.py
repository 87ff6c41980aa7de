"""Compilers and counters for each instruction set, and which of them are here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from counting import Run, ToolError, call, callgrind, qemu_riscv32

from ciphermill import paths

HERE = Path(__file__).resolve().parent

#: Given to both compilers. Nothing here asks for speed beyond -O2; the rest
#: takes away what only hosted programs need. -fomit-frame-pointer is -O2's own
#: default, but not that of the clang in ziglang. Functions get sections of
#: their own so that the linker can leave out what a message does not run.
FLAGS = (
    "-std=c11", "-O2", "-ffreestanding", "-fno-pie", "-fomit-frame-pointer",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-ffunction-sections",
)  # fmt: skip

ZIG = (sys.executable, "-m", "ziglang", "cc")

#: zig keeps what it compiles; here, where ciphermill's own compilations go.
ENVIRONMENT = {
    **os.environ,
    "ZIG_GLOBAL_CACHE_DIR": str(paths.cache() / "zig"),
    "ZIG_LOCAL_CACHE_DIR": str(paths.cache() / "zig"),
    "NO_COLOR": "1",
}


@dataclass(frozen=True)
class Target:
    """An instruction set and the tools for it."""

    name: str
    title: str
    #: Ours that is measured beside it.
    machine: str
    start: str
    gcc: tuple[str, ...]
    #: Without the command itself, which is always ziglang's.
    clang: tuple[str, ...]
    counter: Callable[[Path, list[str]], Run]
    counter_command: str
    packages: str

    def missing(self, scratch: Path) -> str | None:
        """Why this target cannot be measured; None when it can."""
        for command in (self.gcc[0], self.counter_command):
            if shutil.which(command) is None:
                return f"{command} was not found (Debian: {self.packages})"
        # A compiler that knows the target may still lack assembler or linker for it.
        probe = scratch / f"{self.name}-probe.c"
        probe.write_text("#include <stdint.h>\nint harness_main(const uintptr_t *s) { return s[0] != 1; }\n")
        try:
            objects = [self.start_object(scratch), *self.compile("gcc", [probe], (), scratch)]
            program = self.link(objects, scratch / f"{self.name}-probe")
            self.counter(program, [])
        except ToolError as error:
            said = str(error).replace(f"{scratch}/", "").splitlines()
            return f"a trial program could not be made or counted: {' '.join(said)}"
        return None

    def compilers(self) -> list[str]:
        return ["gcc", "clang"] if importlib.util.find_spec("ziglang") else ["gcc"]

    def command(self, compiler: str) -> list[str]:
        return [*self.gcc] if compiler == "gcc" else [*ZIG, *self.clang, "-fno-sanitize=all"]

    def versions(self) -> str:
        first = call([self.gcc[0], "-dumpfullversion"]).stdout.decode().strip()
        text = f"gcc {first} (`{' '.join(self.gcc)}`)"
        if "clang" in self.compilers():
            words = call([*ZIG, "--version"], env=ENVIRONMENT).stdout.decode().split()
            clang = words[words.index("version") + 1]
            text += f", clang {clang} (`zig cc {' '.join(self.clang)}`)"
        return text

    def compile(self, compiler: str, sources: list[Path], flags: tuple[str, ...], scratch: Path) -> list[Path]:
        """One object for each source."""
        objects = []
        for source in sources:
            object_ = scratch / f"{self.name}-{compiler}-{source.stem}.o"
            call([*self.command(compiler), *FLAGS, *flags, "-c", str(source), "-o", str(object_)], env=ENVIRONMENT)
            objects.append(object_)
        return objects

    def start_object(self, scratch: Path) -> Path:
        object_ = scratch / f"{self.name}-start.o"
        call([*self.gcc, "-c", str(HERE / self.start), "-o", str(object_)])
        return object_

    def link(self, objects: list[Path], program: Path, entry: str = "_start") -> Path:
        """A static program of what can be reached from its entry."""
        flags = ["-nostdlib", "-static", "-no-pie", "-Wl,--gc-sections", "-Wl,--build-id=none", f"-Wl,--entry={entry}"]
        call([*self.gcc, *flags, *map(str, objects), "-o", str(program)])
        return program


TARGETS = (
    Target(
        name="rv32",
        title="RV32IM",
        machine="rv32",
        start="start_riscv32.s",
        gcc=("riscv64-linux-gnu-gcc", "-march=rv32im", "-mabi=ilp32"),
        clang=("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-mrelax"),
        counter=qemu_riscv32,
        counter_command="qemu-riscv32",
        packages="gcc-riscv64-linux-gnu, qemu-user",
    ),
    Target(
        name="x86-64",
        title="x86-64",
        machine="zen5",
        start="start_x86_64.s",
        gcc=("gcc", "-m64", "-mgeneral-regs-only"),
        clang=("-target", "x86_64-linux-musl", "-mgeneral-regs-only"),
        counter=callgrind,
        counter_command="valgrind",
        packages="gcc, valgrind",
    ),
    Target(
        name="m32",
        title="32-bit x86",
        machine="core2",
        start="start_i386.s",
        gcc=("gcc", "-m32", "-mgeneral-regs-only"),
        clang=("-target", "x86-linux-musl", "-mgeneral-regs-only"),
        counter=callgrind,
        counter_command="valgrind",
        packages="gcc, valgrind",
    ),
)
