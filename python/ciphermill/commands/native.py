"""``host``: the same C on this computer."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import completion
from ..options import Options
from ..progress import with_progress
from .options import Csv, Json, Parquet, Variant, taking
from .output import check, complain, emit, say


@taking(only=("direction", "key_bits", "blocks"))
def host(
    cipher: Annotated[
        str,
        typer.Argument(
            metavar="CIPHER", help="A built-in name, a .c, or a manifest.", autocompletion=completion.ciphers
        ),
    ],
    variant: Variant = None,
    options: Options = Options(),
    bytes: Annotated[int, typer.Option(metavar="N", help="Message length.")] = 16384,
    repeat: Annotated[int, typer.Option(metavar="N", help="Samples, of which the median is shown.")] = 51,
    native: Annotated[
        str | None, typer.Option("--cc", metavar="CC", help="gcc, clang, zig or a path. Default: gcc and a clang.")
    ] = None,
    with_engine: Annotated[
        str, typer.Option("--engine", help="perf (this computer's counters) or callgrind (instructions, exact).")
    ] = "perf",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Run the same C on this computer, under its own counters."""
    from .. import host as hosting
    from ..host import text

    check(json, csv, parquet)
    asked = hosting.Options(
        direction=options.direction,
        key_bits=options.key_bits,
        blocks=options.blocks,
        bytes=bytes,
        repeat=repeat,
        cc=native,
        engine=with_engine,
    )
    document = hosting.run(cipher, variant, asked, with_progress)
    if not emit(document, hosting.records(document), json, csv, parquet):
        say(text.text(document))
    wrong = [row for row in document["rows"] if not row["verified"]]
    for row in wrong:
        complain(f"{cipher}, {text.label(row)}: not verified: {row['failure']}")
    raise typer.Exit(1 if wrong else 0)
