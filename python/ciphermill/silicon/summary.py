"""Figures over many programs: how far a model is from silicon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    far = sorted(abs(ratio - 1) for ratio in ratios)
    return {
        "programs": len(far),
        "geomean": math.exp(math.fsum(map(math.log, ratios)) / len(ratios)),
        "mean_absolute_error": math.fsum(far) / len(far),
        # The nearest rank: so many programs and no fewer are that close.
        "percentile_90": far[math.ceil(0.9 * len(far)) - 1],
        "within_5_percent": sum(one <= CLOSE for one in far) / len(far),
        "largest_error": far[-1],
    }
