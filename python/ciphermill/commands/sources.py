"""``new`` and ``audit``: a cipher's source, before it is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .. import completion, paths
from ..options import Options
from ..progress import waiting
from .options import CipherName, Csv, Json, Limit, Parquet, Variant, machines_of, taking
from .output import check, complain, emit, say


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cipher's name, and its folder's.")],
    kind: Annotated[str, typer.Option(help="block, stream, permutation, hash, mac, aead or kernel.")] = "block",
    into: Annotated[
        str, typer.Option("--into", metavar="DIR", help="The folder to write it into. Default: this one.")
    ] = ".",
) -> None:
    """Write the skeleton of a cipher of your own, which runs as it is."""
    from .. import skeleton

    folder = skeleton.write(name, kind, Path(into))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        say(f"wrote {paths.shown(path)}")
    say(f"next: ciphermill run {paths.shown(folder / 'cipher.toml')}")


@taking(
    but=("key_bits", "limit", "repeat", "optimal", "exact", "patience"),
    help={"bytes": "With --on: the longest message. Default: 4096."}, before={"strict": "fresh"},
)  # fmt: skip
def audit(
    cipher: CipherName,
    on: Annotated[
        list[str],
        typer.Option(
            "--on",
            metavar="MACHINE",
            help="Look at the code that `run` measures on this machine; repeatable. Default: at the module alone.",
            autocompletion=completion.machines,
        ),
    ] = [],
    variant: Variant = None,
    key_bits: Annotated[
        int | None,
        typer.Option(
            help="Audit this key size alone, in bits. Default: all the cipher has, 128 for a .c or .wasm; with --on as `run`."
        ),
    ] = None,
    limit: Limit = None,
    options: Options = Options(),
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when something depends on a secret.")] = False,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List what depends on key or message, by source line: branches, memory addresses, times of instructions."""
    from .. import auditing, calls, manifest

    check(json, csv, parquet)
    options = replace(options, key_bits=key_bits, limit=limit)
    machines = machines_of(on) if on else None
    with waiting("following the secrets"):
        result = calls.audit(cipher, machines, variant=variant, **calls.keywords(options))
    if not emit(result.to_dict(), result.rows(), json, csv, parquet):
        say(str(result))
    if result.contradicted:
        leaking = ", ".join(one["machine"] for one in result.document.get("audits", ()) if not one["clean"])
        complain(auditing.contradiction(manifest.find(cipher), variant, f" on {leaking}" if leaking else ""))
    raise typer.Exit(1 if result.contradicted or (strict and result.findings) else 0)
