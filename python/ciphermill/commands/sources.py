"""``new`` and ``audit``: a cipher's source, before it is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import completion, paths
from .._core import InputError
from ..progress import waiting
from .options import (
    Aligned, BlocksMode, CipherName, Compiler, Csv, Direction, Fresh, Jam, Json, Limit, Optimise, Parquet, Set, Static, Unrolled, Variant, With, Without,
    machines_of, split,
)  # fmt: skip
from .output import check, complain, emit, say


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cipher's name, and its folder's.")],
    kind: Annotated[str, typer.Option(help="block or stream.")] = "block",
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="The folder to write it into. Default: this one.")] = ".",
) -> None:
    """Write the skeleton of a cipher of your own, which runs as it is."""
    from .. import skeleton

    folder = skeleton.write(name, kind, Path(into))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        say(f"wrote {paths.shown(path)}")
    say(f"next: ciphermill run {paths.shown(folder / 'cipher.toml')}")


def audit(
    cipher: CipherName,
    on: Annotated[
        list[str],
        typer.Option(
            "--on", metavar="MACHINE", help="Look at the code that `run` measures on this machine; repeatable. Default: at the module alone.",
            autocompletion=completion.machines,
        ),
    ] = [],
    variant: Variant = None,
    key_bits: Annotated[
        int | None, typer.Option(help="Audit this key size alone, in bits. Default: all the cipher has, 128 for a .c or .wasm; with --on as `run`.")
    ] = None,
    limit: Limit = None,
    direction: Direction = None,
    blocks: BlocksMode = None,
    bytes: Annotated[int | None, typer.Option(metavar="N", help="With --on: the longest message. Default: 4096.")] = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    optimise: Optimise = "speed",
    static: Static = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when something depends on a secret.")] = False,
    fresh: Fresh = False,
    cc: Compiler = "zig",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List what depends on key or message, by source line: branches, memory addresses, times of instructions."""
    from .. import audit as auditing
    from .. import engine, manifest

    check(json, csv, parquet)
    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, jam=jam, unroll=unroll, aligned=aligned, optimise=optimise, static=static,
        with_=split(with_), without=split(without), set=tuple(set), fresh=fresh, cc=cc,
    )  # fmt: skip
    options.check()
    if not on and options != engine.Options(key_bits=key_bits, cc=cc, with_=[], without=[]):
        raise InputError("this option is about a machine's code; say which with --on MACHINE, or leave it out to audit the module")
    found = manifest.find(cipher)
    with waiting("following the secrets"):
        result = auditing.on_machines(found, variant, machines_of(on), options) if on else auditing.run(found, variant, cc, key_bits, limit=limit)
    findings = auditing.findings(result)
    if not emit(result, findings, json, csv, parquet):
        say(auditing.text(result))
    if result["contradicted"]:
        leaking = ", ".join(one["machine"] for one in result.get("audits", ()) if not one["clean"])
        complain(auditing.contradiction(found, variant, f" on {leaking}" if leaking else ""))
    raise typer.Exit(1 if result["contradicted"] or (strict and findings) else 0)
