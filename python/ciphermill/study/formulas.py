"""The formulas that papers apply to their own cells.

Each takes the values of the cells it is given, a number for a single cell and
a list for a whole column, and the constants of the table's layout.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """A function of cells, and whether ours/paper means something for it."""

    function: Callable[..., float]
    comparable: bool = True

    def complaint(self, of: Sequence[str], constants: Mapping[str, float]) -> str | None:
        """What is wrong with the cells and constants given, if anything is."""
        parameters = inspect.signature(self.function).parameters.values()
        names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        cells = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            if not of:
                return "`of` must name the cells to work with"
        elif len(of) != len(cells):
            return f"`of` must name {len(cells)} cells: {', '.join(p.name for p in cells)}"
        if missing := [name for name in needed if name not in constants]:
            return f"`constants` must give {missing[0]}"
        if odd := [name for name in constants if name not in names]:
            return f"`constants`: the formula has no {odd[0]}"
        return None


def rate(cycles: float, *, bits: float, mhz: float) -> float:
    """Mbit/s from the cycles of a block of ``bits`` bits (Wollinger et al. 2000,
    section 4.1: 128 * 200 * 10^6 / cycles)."""
    return bits * mhz / cycles


def seconds(cycles: float, *, measured: float, bytes: float, mhz: float) -> float:
    """Time of a message of ``bytes`` when one of ``measured`` takes so many cycles
    (Hu and Martinez 2012, section 4.1, prints the time of one long message)."""
    return cycles / measured * bytes / (mhz * 1e6)


def mean(*values: float) -> float:
    """Arithmetic mean (Wollinger et al. 2000, section 4.1: encryption and decryption)."""
    return math.fsum(values) / len(values)


def quotient(dividend: float, divisor: float, *, times: float = 1) -> float:
    """One cell divided by another (Wollinger et al. 2000, Table 1, last column);
    ``times`` 100 for figures normalised to 100."""
    return times * dividend / divisor


def part(cycles: float, share: float, unit: float) -> float:
    """The part of a bar that a share of its cycles takes, where ``unit`` cycles
    are 100 (Fiskiran and Lee 2001, Figure 1: normalised to MARS = 100)."""
    return 100 * cycles * share / unit


def rest(cycles: float, share: float, unit: float) -> float:
    """What `part` leaves of the bar."""
    return 100 * cycles * (1 - share) / unit


def total(*values: float) -> float:
    """Sum of several cells (a bar of Fiskiran and Lee 2001, Figure 1)."""
    return math.fsum(values)


def largest(*values: float) -> float:
    """The largest of several cells (Fiskiran and Lee 2001, abstract: "exceeding 2x")."""
    return max(values)


def rank(value: float, column: Sequence[float]) -> float:
    """Place of a value when the largest comes first, 1 for the largest."""
    return 1 + sum(other > value for other in column)


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of two columns (Hu and Martinez 2012, Table 5)."""
    a, b = mean(*first), mean(*second)
    covariance = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    spread = math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second)
    return covariance / math.sqrt(spread)


ALL: dict[str, Formula] = {
    "rate": Formula(rate),
    "seconds": Formula(seconds),
    "mean": Formula(mean),
    "quotient": Formula(quotient),
    "part": Formula(part),
    "rest": Formula(rest),
    "total": Formula(total),
    "largest": Formula(largest),
    "rank": Formula(rank, comparable=False),
    "correlation": Formula(correlation, comparable=False),
}
