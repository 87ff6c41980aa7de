"""Is a machine with more of something never slower? A check of finished points.

What a machine with fewer issue slots or fewer memory ports can do, one with more
can do too: its least cycles are no more. What a compiler's heuristics find need
not keep to that. Points that agree in all settings but one are a line; along it,
each point is compared with the best of those that have less. A point that takes
more cycles is a violation, and the gap between its cycles and its lower bound
says how far from the least the scheduler may be there. A point below its own
bound would be an error of the simulator or of the bound.

The table is what `Sweep.rows` gives, or the polars frame made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core import InputError

#: Cycles a block are slopes of whole numbers: exact but for the division.
EXACT = 1e-9


@dataclass(frozen=True)
class Violation:
    """A point that takes more cycles than one with less of ``axis``."""

    #: All settings of the point, by name.
    settings: dict[str, Any]
    axis: str
    #: The smaller value along the axis.
    less: Any
    #: Cycles a block: of the point, of the one with less, and the point's bound.
    cycles: float
    fewer: float
    bound: float

    @property
    def excess(self) -> float:
        """By what part it is slower than with less."""
        return self.cycles / self.fewer - 1

    @property
    def gap(self) -> float:
        """By what part it is above its lower bound: all that a better schedule could give."""
        return self.cycles / self.bound - 1

    def __str__(self) -> str:
        where = " ".join(f"{name}={value}" for name, value in self.settings.items() if value not in ("", None))
        return (
            f"{where}: {self.cycles:.1f} cycles a block, {self.fewer:.1f} with {self.axis}={self.less} "
            f"({100 * self.excess:.2f} % more; {100 * self.gap:.1f} % above its bound)"
        )


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    along: tuple[str, ...]
    #: Points that were compared with one that has less.
    compared: int
    #: Worst first.
    violations: tuple[Violation, ...]
    #: Settings of points with fewer cycles than their bound.
    below: tuple[dict[str, Any], ...]

    @property
    def beyond(self) -> tuple[Violation, ...]:
        """Violations that the gap to the bound does not cover."""
        return tuple(v for v in self.violations if v.excess > v.gap)

    def __str__(self) -> str:
        said = f"Along {' and '.join(self.along)}: {self.compared} comparisons with less, {len(self.violations)} of them slower with more"
        said += f", {len(self.beyond)} by more than the gap to the bound" if self.violations else ""
        said += f"; {len(self.below)} points below their bound."
        return f"{said} The worst: {self.violations[0]}." if self.violations else said


def monotone(
    table: Any, along: Iterable[str], cycles: str = "cycles_per_block", bound: str = "bounds.lower"
) -> Verdict:
    """Compare the points of a table along some of its settings.

    ``table`` is a polars DataFrame or a sequence of rows, as a sweep makes them:
    the settings stand before the column ``failure``. ``along`` names settings of
    which more is never worse, as ``issue.width``. Points without a measurement
    are left out. Raises InputError for a name that the table lacks.
    """
    rows: Sequence[Mapping[str, Any]] = table.to_dicts() if hasattr(table, "to_dicts") else list(table)
    along = tuple(along)
    settings = names(rows)
    for axis in along:
        if axis not in settings:
            raise InputError(f"{axis}: not a setting of these points; there are {', '.join(settings)}")
    rows = [row for row in rows if row.get(cycles) is not None]
    compared, found = 0, []
    for axis in along:
        lines: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in rows:
            if row.get(axis) is not None:
                lines.setdefault(tuple(row.get(name) for name in settings if name != axis), []).append(row)
        for line in lines.values():
            line.sort(key=lambda row: row[axis])
            best = line[0]
            for row in line[1:]:
                compared += 1
                if row[cycles] > best[cycles] * (1 + EXACT):
                    own = {name: row.get(name) for name in settings}
                    found.append(Violation(own, axis, best[axis], row[cycles], best[cycles], row[bound]))
                elif row[cycles] < best[cycles]:
                    best = row
    found.sort(key=lambda v: -v.excess)
    below = [row for row in rows if row[cycles] < row[bound] * (1 - EXACT)]
    return Verdict(along, compared, tuple(found), tuple({name: row.get(name) for name in settings} for row in below))


def names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings of rows: the columns before ``failure``, in any row."""
    found: dict[str, None] = {}
    for row in rows:
        for name in row:
            if name == "failure":
                break
            found[name] = None
    return list(found)
