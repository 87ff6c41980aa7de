"""Options that several commands share, each said once: name, help, completion.

What an option means is not decided here but where it is used; what is right of it
is checked there too.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import completion
from .._core import InputError

Machine = Annotated[
    list[str], typer.Option(
        "--on", metavar="MACHINE", help="A machine by name, or your own .toml; repeatable. Default: all.",
        autocompletion=completion.machines,
    ),
]  # fmt: skip
With = Annotated[
    list[str],
    typer.Option(
        "--with", metavar="EXT[,EXT]", help="Add instruction-set extensions to the machine.", autocompletion=completion.extensions
    ),
]
Without = Annotated[
    list[str], typer.Option("--without", metavar="NAME[,NAME]", help="Take instructions or extensions away.")
]
Set = Annotated[
    list[str], typer.Option("--set", metavar="PATH=VALUE", help="Change any number in the machine file, for instance machine.clock_mhz=50.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of text: a row for each result.")]
Parquet = Annotated[str | None, typer.Option("--parquet", metavar="FILE", help="Write the rows there too, as Parquet (needs polars).")]
Baseline = Annotated[
    str | None, typer.Option("--compare", metavar="FILE", help="A document --json wrote earlier: exit with 1 when something got worse.")
]
Tolerance = Annotated[
    list[str],
    typer.Option("--tolerance", metavar="[METRIC=]AMOUNT", help="How much worse is accepted, for instance 1% or cycles=0.5%; metrics: cycles, code, gates. Default: 0."),
]
Compiler = Annotated[
    str, typer.Option("--cc", metavar="CC", help="zig (the clang that comes along), system, or the path of a clang.")
]
Direction = Annotated[str | None, typer.Option(help="encrypt, decrypt, keysetup or keystream.")]
KeyBits = Annotated[int | None, typer.Option(help="Key size in bits. Default: 128.")]
BlocksMode = Annotated[
    str | None, typer.Option(help="single (feedback mode) or multi (independent blocks). Default: multi.")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Give a run up after so many steps of the interpreter. Default: some seconds' worth."),
]
Jam = Annotated[
    int | None, typer.Option(metavar="N", help="Blocks carried through the code together. Default: what is fastest of a few.")
]
Unrolled = Annotated[
    bool | None, typer.Option("--unroll/--no-unroll", help="Rounds unrolled. Default: what is fastest.")
]
Aligned = Annotated[
    bool, typer.Option("--aligned", help="Buffers are read and written as words, as hand-written code for aligned buffers would.")
]
Optimise = Annotated[
    str, typer.Option("--optimise", metavar="speed|size", help="What code is to be: fast, or small (few bytes, whatever the cycles).")
]
Static = Annotated[
    bool, typer.Option("--static", help="The context's address stands in the code, as a global variable's does; it takes no register.")
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Search for schedules anew; take none that `tune` has kept.")
]
Patience = Annotated[
    int, typer.Option("--patience", metavar="N", help="Search for good schedules with so many times the usual budget.")
]
CipherName = Annotated[
    str,
    typer.Argument(metavar="CIPHER", help="A built-in name, a .c, a .wasm, or a manifest.", autocompletion=completion.ciphers),
]
OneMachine = Annotated[
    str, typer.Option("--on", metavar="MACHINE", help="A machine by name, or your own .toml.", autocompletion=completion.machines)
]
Variant = Annotated[
    str | None,
    typer.Option(help="Which of the cipher's variants. Default: the manifest's.", autocompletion=completion.variants),
]


def machines_of(on: list[str]) -> list[str]:
    """The machines that ``--on`` names; all of them where it was not given."""
    from .. import library

    if on and not split(on):
        raise InputError("--on is given and empty; name a machine, or leave --on out to have all of them")
    return split(on) or library.machine_names()


def split(values: list[str]) -> list[str]:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
