"""What many ratios of ours to theirs come to: how far a model is from what was measured.

An error is a ratio's distance from 1, as a part: 0.05 for 0.95 and for 1.05.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: 1.05 is 0.05 from 1, whatever is lost in the last digit.
ROUNDING = 1e-12


def geomean(ratios: Sequence[float]) -> float:
    """Geometric mean. Raises ValueError for a ratio of 0 and below."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def errors(ratios: Sequence[float]) -> list[float]:
    return [abs(ratio - 1) for ratio in ratios]


def mean_error(ratios: Sequence[float]) -> float:
    return math.fsum(errors(ratios)) / len(ratios)


def percentile_error(ratios: Sequence[float], part: float) -> float:
    """The least error that no more than a `part` of all ratios stay within, by nearest rank."""
    return sorted(errors(ratios))[max(math.ceil(part * len(ratios)), 1) - 1]


def near(values: Sequence[float], keys: Sequence[float], part: float) -> list[float]:
    """The values whose key, a ratio too, is no further than `part` from 1. Raises ValueError where there is none."""
    found = [value for value, error in zip(values, errors(keys), strict=True) if error <= part + ROUNDING]
    if not found:
        raise ValueError(f"no key is within {part:g} of 1")
    return found


def within(ratios: Sequence[float], part: float) -> float:
    """Which part of them is no further than `part` from 1."""
    return sum(error <= part + ROUNDING for error in errors(ratios)) / len(ratios)
