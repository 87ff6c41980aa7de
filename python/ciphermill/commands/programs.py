"""``explain`` and ``asm``: the program that was made of a cipher, to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from .._core import InputError
from ..progress import waiting
from .options import (
    Aligned, BlocksMode, CipherName, Compiler, Csv, Direction, Fresh, Jam, Json, KeyBits, Limit, OneMachine, Optimise, Parquet, Patience, Set, Static, Unrolled, Variant,
    With, Without, split,
)  # fmt: skip
from .output import check, emit, say, unverified, writable


def explain(
    cipher: CipherName,
    on: OneMachine,
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    bytes: Annotated[int | None, typer.Option(metavar="N", help="Message length. Default: 4096.")] = None,
    limit: Limit = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    optimise: Optimise = "speed",
    static: Static = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    fresh: Fresh = False,
    patience: Patience = 1,
    cc: Compiler = "zig",
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the schedule there too, as a page to look at.")] = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show where the cycles go: bounds, and the hottest loop cycle by cycle."""
    from .. import engine, lines, manifest
    from .. import explain as explaining

    check(json, csv, parquet)
    writable(html, "--html")
    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, limit=limit, jam=jam, unroll=unroll, aligned=aligned, optimise=optimise, static=static, with_=split(with_),
        without=split(without), set=set, fresh=fresh, patience=patience, cc=cc,
    )  # fmt: skip
    with waiting("measuring"):
        module = engine.module(manifest.find(cipher), variant, cc)
        measurement = engine.measure(module, on, options)
        explanation = engine.explanation(module, on, options)
        explaining.located(explanation, lines.of(engine.suited(module, on, options), explaining.offsets(explanation), cc))
    if html is not None:

        from .. import webreport

        asked = {
            "cipher": cipher, "on": on, "variant": variant, "direction": direction, "key_bits": key_bits, "blocks": blocks, "bytes": bytes,
            "jam": jam, "unroll": unroll, "aligned": aligned, "optimise": optimise, "static": static, "with": with_, "without": without,
            "set": set, "fresh": fresh, "cc": cc,
        }  # fmt: skip
        webreport.write_schedule(Path(html), measurement, explanation, asked)
    document = {"schema": 1, "measurement": measurement.to_dict(), **explanation}
    if not emit(document, explaining.records(explanation), json, csv, parquet):
        say(explaining.text(measurement, explanation))
    if not measurement.verified:
        unverified(f"{measurement.cipher} on {on}", measurement.failure)
        raise typer.Exit(1)


def asm(
    cipher: CipherName,
    on: OneMachine,
    out: Annotated[str | None, typer.Option("-o", metavar="FILE", help="Write there instead of to standard output.")] = None,
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    optimise: Optimise = "speed",
    static: Static = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    fresh: Fresh = False,
    patience: Patience = 1,
    cc: Compiler = "zig",
) -> None:
    """Print the whole program as assembly for the machine's own assembler.

    It is the program that `run` measures with the same options: on machines
    without interlock, loops are written for the direction and mode measured.
    """
    from .. import engine, manifest

    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, jam=jam, unroll=unroll, aligned=aligned, optimise=optimise, static=static, with_=split(with_),
        without=split(without), set=set, fresh=fresh, patience=patience,
    )  # fmt: skip
    writable(out, "-o")
    with waiting("compiling"):
        text = engine.assembly(engine.module(manifest.find(cipher), variant, cc), on, options)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        paths.write_atomically(Path(out), text.encode())
    except OSError as error:

        raise InputError(f"-o {out}: {error.strerror}") from None
