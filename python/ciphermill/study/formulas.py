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


def enough(*cycles: float, within: float, factor: float = 1) -> float:
    """The least of settings 1, 2, 3 and so on (or 1, ``factor``, ``factor`` squared)
    than which none later takes fewer cycles by more than a part ``within``."""
    place = next(n for n, c in enumerate(cycles) if c <= min(cycles[n:]) * (1 + within))
    return factor**place if factor != 1 else 1 + place


def rise(*cycles: float) -> float:
    """The largest part, in per cent, by which a value exceeds the least before it:
    0 where a machine with more of something never takes more cycles."""
    return max([0, *(100 * (c / min(cycles[:n]) - 1) for n, c in enumerate(cycles) if n)])


def rank(value: float, column: Sequence[float]) -> float:
    """Place of a value when the largest comes first, 1 for the largest."""
    return 1 + sum(other > value for other in column)


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of two columns (Hu and Martinez 2012, Table 5)."""
    a, b = mean(*first), mean(*second)
    covariance = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    spread = math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second)
    return covariance / math.sqrt(spread)


def matrix_storage(*, rows: float, bits: float, operand: float = 1) -> float:
    """Stored bits of a multiplier by a matrix of ``rows`` squared constants of a
    field of 2^bits elements, each a bit matrix, and with ``operand`` of its
    input (Elbirt 2007, III-A)."""
    return rows * rows * bits * bits + operand * rows * bits


def matrix_and(*, rows: float, bits: float) -> float:
    """Two-input ANDs of it: one for each bit of the matrices (Elbirt 2007, III-A)."""
    return rows * rows * bits * bits


def matrix_xor(*, rows: float, bits: float) -> float:
    """Two-input XORs of it: trees over each row of a bit matrix, and over the
    matrices of a row (Elbirt 2007, III-A)."""
    return rows * rows * bits * (bits - 1) + rows * (rows - 1) * bits


def table_storage(*, rows: float, bits: float) -> float:
    """Stored bits where each constant is a look-up table instead (Elbirt 2007, III-A)."""
    return rows * rows * 2**bits * bits


def table_xor(*, rows: float, bits: float) -> float:
    """Two-input XORs that add the tables' entries (Elbirt 2007, III-A)."""
    return rows * (rows - 1) * bits


def unit_gates(storage: float, ands: float, xors: float, *, bit: float = 4) -> float:
    """Gate equivalents by the unit-gate model: an AND 1, an XOR 2, a stored bit
    4 (Elbirt 2007, III-A, after Tyagi 1993 and Xilinx)."""
    return bit * storage + ands + 2 * xors


def heavier(gates: float, flip_flops: float, *, more: float) -> float:
    """Gate equivalents with ``more`` gates for each flip-flop (Elbirt 2007, IV-A:
    the FPGA tool counts eight)."""
    return gates + more * flip_flops


def configuration(*, bits: float, word: float) -> float:
    """Instructions of a word each that load ``bits`` bits (Elbirt 2007, Table I)."""
    return bits / word


def reading(*, operand: float, word: float) -> float:
    """Instructions that hand over an operand and read the product, the last of
    them both (Elbirt 2007, Table I)."""
    return max(1, operand / word)


def added(*values: float) -> float:
    """The sum (Elbirt 2007, Table II: a multiplication and the configuration)."""
    return math.fsum(values)


def software(*, move: float, xor_memory: float, xor: float) -> float:
    """Cycles of a multiplication by look-up tables: for each of four bytes two
    loads, two XORs from memory and one of registers (Elbirt 2007, III-C)."""
    return 4 * (2 * move + 2 * xor_memory + xor)


ALL: dict[str, Formula] = {
    "rate": Formula(rate),
    "seconds": Formula(seconds),
    "mean": Formula(mean),
    "quotient": Formula(quotient),
    "part": Formula(part),
    "rest": Formula(rest),
    "total": Formula(total),
    "largest": Formula(largest),
    "enough": Formula(enough),
    "rise": Formula(rise),
    "matrix_storage": Formula(matrix_storage),
    "matrix_and": Formula(matrix_and),
    "matrix_xor": Formula(matrix_xor),
    "table_storage": Formula(table_storage),
    "table_xor": Formula(table_xor),
    "unit_gates": Formula(unit_gates),
    "heavier": Formula(heavier),
    "configuration": Formula(configuration),
    "reading": Formula(reading),
    "added": Formula(added),
    "software": Formula(software),
    "rank": Formula(rank, comparable=False),
    "correlation": Formula(correlation, comparable=False),
}
