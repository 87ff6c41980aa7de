"""Machines whose functions C can call as they are: by the instruction set that they inherit.

Their files have the registers of the C convention, and pointers as wide as WebAssembly's (on RV64
those of its lower 2 GiB). How an address stands in code is said by the instruction set's ELF
supplement: RISC-V ELF psABI, 8.4 (R_RISCV_HI20); ELF for the Arm Architecture, 5.6.1 (R_ARM_THM_MOVW_ABS_NC).
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import library
from .._core import InputError


@dataclass(frozen=True)
class Target:
    """An instruction set with its tools."""

    #: The machine file that machines of it inherit from, and how the set is called in words.
    root: str
    title: str
    #: What clang calls it; processors in the order in which they are tried, as an object says which it is for.
    triple: str
    cpus: tuple[str, ...]
    #: The smallest boundary of static data for which numbers of its code can be relocated: `lui` gives an
    #: address's upper 20 bits, and the lower ones stand in the instructions that use it.
    align: int
    #: Code's addresses are given by two instructions, `movw` and `movt`.
    halves: bool = False


#: All scalar extensions whose instructions assemblers know.
SCALAR = "zba+zbb+zbc+zbs+zbkb+zbkc+zbkx+zknd+zkne+zknh+zksed+zksh"

TARGETS = (
    Target("rv64", "RISC-V of 64 bits", "riscv64-freestanding-none",
           ("generic_rv64+m", f"generic_rv64+m+{SCALAR}"), 4096),
    Target("rv32", "RISC-V of 32 bits", "riscv32-freestanding-none",
           ("generic_rv32+m", f"generic_rv32+m+{SCALAR}"), 4096),
    Target("cortex-m4", "Thumb-2", "thumb-freestanding-eabi", ("cortex_m4", "cortex_m33"), 64, halves=True),
    Target("cortex-m0plus", "ARMv6-M", "thumb-freestanding-eabi", ("cortex_m0plus",), 64),
)  # fmt: skip


def of(machine: str) -> Target:
    """The instruction set of a machine, by name or path. Raises InputError where C cannot call its functions."""
    line = library.lineage(machine)
    found = next((target for target in TARGETS if target.root in line), None)
    if found is None:
        raise InputError(
            f"--on {machine}: no object is made for it; it can be for machines that inherit from "
            f"{', '.join(target.root for target in TARGETS)}, whose functions C calls. `ciphermill asm` without "
            "--object, --relocatable and --header prints its program for fixed addresses"
        )
    return found
