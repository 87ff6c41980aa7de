"""Which machines a host can run programs of: by the instruction set that they inherit."""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import library
from .._core import InputError


@dataclass(frozen=True)
class Isa:
    """An instruction set that a host may have."""

    #: The machine file that machines of it inherit from, and how one is called in words.
    root: str
    title: str
    #: What Linux and clang call it.
    linux: str
    triple: str
    flags: tuple[str, ...]
    #: What gives a register a value; and the file of the trampoline into a printed program.
    set_register: str
    enter: Path


HERE = Path(__file__).parent

ISAS = (
    Isa("x86_64", "x86-64", "x86_64", "x86_64-linux-none", (), "\tmovl ${value}, %{register}", HERE / "enter_x86_64.s"),
    Isa(
        "rv64", "RISC-V of 64 bits", "riscv64", "riscv64-linux-none",
        ("-mcpu=baseline_rv64+m+zba+zbb+zbc+zbs+zbkb+zbkx+zknd+zkne+zknh+zksed+zksh-c",), "\tli {register}, {value}",
        HERE / "enter_riscv64.s",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Host:
    """What programs run on."""

    isa: Isa
    #: A user-mode emulator and its arguments; empty where the processor itself does.
    emulator: tuple[str, ...] = ()


def isa_of(machine: str) -> Isa | None:
    """The instruction set of a machine, by name or path; None where no host is known that has it."""
    line = library.lineage(machine)
    return next((isa for isa in ISAS if isa.root in line), None)


def host_for(machine: str, emulator: str | None = None) -> Host:
    """What runs this machine's programs here. Raises InputError where nothing does."""
    isa = isa_of(machine)
    known = " and ".join(isa.title for isa in ISAS)
    if isa is None:
        raise InputError(
            f"--on {machine}: no host runs its programs; machines of {known} (that inherit from "
            f"{' or '.join(isa.root for isa in ISAS)}) can be measured natively, `ciphermill run` simulates the others"
        )
    if not sys.platform.startswith("linux"):
        raise InputError(f"programs are mapped and timed on Linux only, and this is {sys.platform}")
    if emulator is not None:
        words = emulator.split()
        if not words or (path := shutil.which(words[0])) is None:
            raise InputError(
                f"--emulator {emulator}: no such program on the PATH; a user-mode emulator of {isa.title}, "
                f"for instance qemu-{isa.linux}"
            )
        return Host(isa, (path, *words[1:]))
    here = platform.machine()
    if here != isa.linux:
        raise InputError(
            f"--on {machine}: its programs are {isa.title}, and this host is {here}; choose a machine of the host's own "
            f"instruction set, or see the output verified with --emulator qemu-{isa.linux} (that gives no cycles)"
        )
    return Host(isa)
