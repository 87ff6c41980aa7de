"""``new`` and ``audit``: a cipher's source, before it is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import CipherName, Compiler, Csv, Json, Limit, Parquet, Variant
from .output import check, emit, say


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cipher's name, and its folder's.")],
    kind: Annotated[str, typer.Option(help="block or stream.")] = "block",
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="The folder to write it into. Default: this one.")] = ".",
) -> None:
    """Write the skeleton of a cipher of your own, which runs as it is."""
    from pathlib import Path

    from .. import paths, skeleton

    folder = skeleton.write(name, kind, Path(into))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        say(f"wrote {paths.shown(path)}")
    say(f"next: ciphermill run {paths.shown(folder / 'cipher.toml')}")


def audit(
    cipher: CipherName,
    variant: Variant = None,
    key_bits: Annotated[
        int | None, typer.Option(help="Audit this key size alone, in bits. Default: all the cipher has; 128 for a .c or .wasm.")
    ] = None,
    limit: Limit = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when something depends on a secret.")] = False,
    cc: Compiler = "zig",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List the branches and memory addresses that depend on key or message, by source line."""
    from .. import audit as auditing
    from .. import manifest
    from ..progress import waiting

    check(json, csv, parquet)
    with waiting("following the secrets"):
        result = auditing.run(manifest.find(cipher), variant, cc, key_bits, limit=limit)
    if not emit(result, result["findings"], json, csv, parquet):
        say(auditing.text(result))
    raise typer.Exit(1 if strict and result["findings"] else 0)
