"""Figures over many programs: how far a model is from silicon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..ratios import geomean, mean_error, percentile_error, within

#: Programs within this part of silicon are counted.
CLOSE = 0.05
#: The worst programs that are named.
WORST = 5


def of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Over all programs with a ratio, and of those held out and the others apart."""
    rows = [row for row in rows if row.get("ratio")]
    out = errors([row["ratio"] for row in rows])
    worst = sorted(rows, key=lambda row: (-abs(row["ratio"] - 1), row["program"]))[:WORST]
    return {
        **out,
        "worst": [{"program": row["program"], "ratio": row["ratio"]} for row in worst],
        "unstable": [row["program"] for row in rows if row.get("unstable")],
        "held_out": errors([row["ratio"] for row in rows if row["held_out"]]),
        "others": errors([row["ratio"] for row in rows if not row["held_out"]]),
    }


def errors(ratios: Sequence[float]) -> dict[str, Any]:
    """What ratios of model to silicon come to, as parts: 0.05 is 5 %. None where there are none."""
    if not ratios:
        return {"programs": 0, "geomean": None, "mean_absolute_error": None, "percentile_90": None,
                "within_5_percent": None, "largest_error": None}  # fmt: skip
    return {
        "programs": len(ratios),
        "geomean": geomean(ratios),
        "mean_absolute_error": mean_error(ratios),
        "percentile_90": percentile_error(ratios, 0.9),
        "within_5_percent": within(ratios, CLOSE),
        "largest_error": percentile_error(ratios, 1),
    }
