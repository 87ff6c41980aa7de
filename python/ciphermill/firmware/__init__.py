"""A cipher's program for somebody else's firmware: relocatable assembly, an object file, a header.

The program is the one that `ciphermill asm` prints, with what a linker wants to decide left to
the linker. Pointers that a caller gives are addresses of WebAssembly as they are, since the
program's memory begins at address 0; what is left are the addresses of its own tables. The module is
linked at two places (`relocate.py`), and what has moved with it in the program is such an address.

    targets.py    the machines whose functions C can call, and how addresses stand in their code
    relocate.py   which numbers of a program are addresses
    text.py       the printed program as sections with symbols
    header.py     the C declarations
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .. import engine, scratch
from .._core import InputError
from ..engine import Module, Options
from ..manifest import Cipher
from ..silicon.build import Refused, tool
from . import header, relocate, targets, text
from .relocate import Place


@dataclass(frozen=True)
class Firmware:
    """A program as sections with symbols."""

    #: Before the names of all functions.
    prefix: str
    #: For the GNU assembler or clang.
    assembly: str
    #: Functions that C can call, by the names that they have there.
    functions: tuple[str, ...]
    #: Bytes of tables that are linked with the code, and on which boundary they begin.
    data_bytes: int
    data_align: int
    module: Module
    target: targets.Target

    def header(self) -> str:
        """The C declarations. Raises InputError for a kernel, whose parameters only its own source declares."""
        return header.text(self.prefix, self.functions, self.module)

    def object(self) -> bytes:
        """The ELF object file, by the clang that comes along. Raises InputError where it does not take the program."""
        refused: Refused | None = None
        with scratch.folder() as folder:
            source, made = folder / "program.s", folder / "program.o"
            source.write_text(self.assembly)
            for cpu in self.target.cpus:
                try:
                    tool("cc", "-target", self.target.triple, f"-mcpu={cpu}", "-g0", "-c", str(source), "-o", str(made))
                    return made.read_bytes()
                except Refused as error:
                    refused = error
        raise refused or InputError(f"no processor of {self.target.triple} is known")


def prefix_of(cipher: Cipher, prefix: str | None) -> str:
    """What stands before the functions' names: as asked, or the cipher's name. Raises InputError for what is none in C."""
    if prefix is None:
        return re.sub(
            r"\W", "_", f"_{cipher.name}_" if cipher.name[:1].isdecimal() else f"{cipher.name}_", flags=re.ASCII
        )
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII):
        raise InputError(f"--prefix {prefix}: C's names begin so: letters, digits and _, no digit first")
    return prefix


def make(
    cipher: Cipher, machine: str, variant: str | None = None, options: Options = Options(), prefix: str | None = None
) -> Firmware:
    """The program that `engine.assembly` prints, for a linker.

    Raises InputError for a machine whose functions C cannot call, and for a program that needs memory of
    its own beside the caller's, the machine's stack, and tables.
    """
    target = targets.of(machine)
    if options.static:
        raise InputError(
            "--static: the context's address stands in the code, and only the caller knows it; leave --static out"
        )
    called = prefix_of(cipher, prefix)
    module = engine.module(cipher, variant, options.cc)
    if module.variant.sources[0].suffix == ".wasm":
        raise InputError(
            f"{cipher.name}: a .wasm says nothing of which of its numbers are addresses; give the C that it was made of"
        )
    for align, first, second in PLACES:
        if align < target.align:
            continue
        one, other = (
            engine.movable(module.relinked(linked=(place.stack, place.data)), machine, options)
            for place in (first, second)
        )
        refuse(one, machine)
        try:
            found = relocate.relocated(one["assembly"], other["assembly"], (first, second), target)
        except relocate.OnStack:
            raise InputError(f"--on {machine}: this program cannot be linked into another: {ON_STACK}") from None
        if found is None:
            # Its code knows more of the address than such a boundary says.
            continue
        printed = text.Printed(found, called, first.data, align, one)
        size = printed.data_bytes
        return Firmware(called, printed.text(), printed.functions(), size, align if size else 1, module, target)
    raise InputError(
        f"{cipher.name} on {machine}: the program is another one where its tables lie at another place, so none can be made "
        "that a linker may move; take another variant, or --optimise speed without --jam"
    )


ON_STACK = "it keeps arrays on C's own stack, which has no place there; take a variant without, or --unroll"

#: Where C's stack and static data are linked to see what moves with it, with the boundary that both places share: no less than
#: what C's own types need, at most the pages of RISC-V's `lui`. No number here is shorter to write than its
#: neighbours on any machine: more than 16 bits, and more than 8 from the first to the last that is set. They are
#: small, because memory up to there is simulated.
PLACES = (
    (64, Place(0x12D040, 0x16D040), Place(0x15A980, 0x1BA980)),
    (4096, Place(0x12D000, 0x16D000), Place(0x15A000, 0x1BA000)),
)


def refuse(program: dict[str, object], machine: str) -> None:
    """Raises InputError for a program that has memory of its own where nobody gives it any."""
    reason = None
    if program["global_registers"]:
        reason = ON_STACK
    elif program["system"]:
        reason = (
            "it needs memory at a fixed address: for the pointer to C's own stack, for arguments beyond the registers, for "
            "copies and fills whose size is not constant, or for calls by pointer"
        )
    if reason is not None:
        raise InputError(f"--on {machine}: this program cannot be linked into another: {reason}")
