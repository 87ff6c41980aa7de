"""A measurement and an explanation as the lines that the page shows: those of `run` and `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import explaining, report
from .._core import InputError
from ..measurement import Measurement


def answer(m: Measurement, explanation: Mapping[str, Any]) -> dict[str, Any]:
    """One machine: a row of the table, the text of `run`, and that of `explain`."""
    return {
        "row": row(m),
        "verified": m.verified,
        "sentence": report.sentence(m),
        "details": report.details(m),
        "explanation": explaining.text(m, explanation),
    }


def row(m: Measurement) -> dict[str, str]:
    """The figures by which machines are compared, by their headings."""
    return {
        f"cycles {report.unit(m)}": report.number(m.cycles_per_block),
        # A key is not a message.
        "cycles a byte": "" if m.direction == "keysetup" else f"{m.cycles_per_byte:.2f}",
        "lower bound": report.number(m.bounds["lower"]),
        "limited by": m.bottleneck,
        "bytes of code": str(m.code_bytes_total),
        "verified": "yes" if m.verified else "NO",
    }


def message(error: Exception, folder: Path) -> str:
    """What is wrong, with the names of files as they are known to the one who pasted them."""
    text = str(error)
    for place in dict.fromkeys((folder.resolve(), folder)):
        text = text.replace(f"{place}/", "")
    return (
        text if isinstance(error, InputError) else f"{text}\nThis is an error in ciphermill, not in what you gave it."
    )
