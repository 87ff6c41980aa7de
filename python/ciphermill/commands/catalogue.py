"""``list``, ``show`` and ``schema``: what there is to choose from, and how a machine is described."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import _core, completion
from .._core import InputError
from ..options import Options
from ..suggest import did_you_mean
from .options import Csv, Json, Parquet, taking
from .output import check, emit, say

MEASURE = "measure with ciphermill run CIPHER --on MACHINE [--with EXTENSION]"


@taking(only=("with_", "without", "set"))
def show(
    machine: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE", help="A machine by name, or your own .toml.", autocompletion=completion.machines
        ),
    ],
    options: Options = Options(),
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Print a machine: registers, units, instructions, and where its numbers come from."""
    from .. import engine
    from ..show import text

    check(json, csv, parquet)
    described = engine.show_machine(machine, options)
    # As rows: the instructions, since everything else of a machine is no table.
    if not emit(described, described["instructions"], json, csv, parquet):
        say(text(described))


def list_(
    what: Annotated[
        str, typer.Argument(metavar="[ciphers|machines|extensions|studies]", help="Default: all of them.")
    ] = "all",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List what there is to choose from."""
    from .. import api, tables

    check(json, csv, parquet)
    kinds = {"ciphers": api.ciphers, "machines": api.machines, "extensions": api.extensions, "studies": api.studies}
    if what != "all" and what not in kinds:
        raise InputError(f"no list of {what!r}{did_you_mean(what, kinds)}; there are {', '.join(kinds)}")
    chosen = kinds if what == "all" else {what: kinds[what]}
    counted = {"studies": "study", "ciphers": "cipher", "machines": "machine", "extensions": "extension"}
    found = {kind: entries() for kind, entries in chosen.items()}
    records = [{"what": counted[kind], **entry} for kind, entries in found.items() for entry in entries]
    if emit(found if what == "all" else found[what], records, json, csv, parquet):
        return
    there = ", ".join(
        f"{len(entries)} {kind if len(entries) != 1 else counted[kind]}" for kind, entries in found.items()
    )
    parts = [f"{there}; {'reproduce with ciphermill study NAME' if what == 'studies' else MEASURE}."]
    for kind, entries in found.items():
        if kind == "ciphers":
            rows: list[tuple[str, ...]] = [
                (c["name"], c["title"], ", ".join(map(str, c["key_bits"])), ", ".join(v["name"] for v in c["variants"]))
                for c in entries
            ]
            parts.append(tables.text(("cipher", "", "key bits", "variants"), rows))
        else:
            rows = [(e["name"], e.get("title", "")) for e in entries]
            parts.append(tables.text((counted[kind], ""), rows))
    say("\n\n".join(parts))


def schema() -> None:
    """Print the JSON schema of machine files, for completion in editors."""
    print(_core.machine_schema())
