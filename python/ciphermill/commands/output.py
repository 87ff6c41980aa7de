"""What a command leaves behind: data on standard output or in files, complaints on
standard error, and the exit code that an error means.

Results as data take one of three forms, in every command that has them:
``--json`` (the whole document) and ``--csv`` (a row for each result) stand on
standard output instead of the text, ``--parquet FILE`` writes the rows beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import paths
from .._core import InputError


def check(json: bool, csv: bool, parquet: str | None) -> None:
    """Refuse forms that cannot be had, before the work is done and not after it."""
    if json and csv:
        raise InputError("--json and --csv both go to standard output; ask for one of them")
    if parquet is not None:
        from .. import tables

        tables.needed("polars")
        writable(parquet, "--parquet")


def writable(path: str | None, option: str) -> None:
    """Refuse a file that cannot be written, before the work is done and not after it."""
    if path is not None:
        paths.check_writable(Path(path), option)


def emit(document: object, records: Iterable[Mapping[str, Any]], json: bool, csv: bool, parquet: str | None) -> bool:
    """Results as data, in the forms asked for; False when text is wanted on standard output."""
    if csv or parquet is not None:
        from .. import tables

        if parquet is not None:
            tables.parquet(records, parquet)
        if csv:
            sys.stdout.write(tables.csv(records))
    if json:
        print_json(document)
    return json or csv


def say(text: str) -> None:
    """Print an answer: as it is into a pipe; on a terminal with long lines broken between words."""
    if sys.stdout.isatty():
        from .. import tables

        text = tables.folded(text, tables.room(80))
    print(text)


def write_json(value: object, path: str, option: str) -> None:
    try:
        paths.write_atomically(Path(path), json.dumps(value, indent=2).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror}") from None


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def complain(message: str) -> None:
    print(f"ciphermill: {message}", file=sys.stderr)


OUR_FAULT = "This is an error in ciphermill, not in what you gave it."


#: A vector is run on the module alone: what it says is no matter of compiling for a machine.
DISAGREED = (
    "The C and the vector disagree, on any machine: one of the two is wrong. Look at the order of the key's and the "
    "block's bytes first; python -c 'import ciphermill as cm; print(cm.cipher(\"cipher.toml\").encrypt(key, block).hex())' "
    "shows what the C makes of it."
)


def unverified(title: str, failure: str | None) -> None:
    """Complain of a measurement that ran and is not verified, and say whose fault that is."""
    whose = DISAGREED if ": vector " in (failure or "") else OUR_FAULT
    complain(f"{title}: not verified: {failure}\n{whose}")


def exit_code(error: Exception) -> int:
    return 2 if isinstance(error, InputError) else 1
