"""The formulas that papers apply to their own cells: data of a study.

A formula has a name, names for the cells that it works on, and an expression (`expressions`). What
is neither a cell nor a function in that is a constant, which a column gives. Those of general use
stand in ``studies/formulas.toml``, a paper's own in its ``study.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from .. import toml
from ..declared import Declared
from ..suggest import did_you_mean
from . import expressions
from .expressions import Value

#: Numbers keep their kind: what is whole stays whole.
Number = int | float


class Formula(Declared, frozen=True):
    """An expression over cells, and whether ours/paper means something for it."""

    expression: str
    #: A name for each cell, or one name for all that are given, as a list.
    of: tuple[str, ...] | str = ()
    #: Constants that a column may leave out.
    defaults: dict[str, Number] = msgspec.field(default_factory=dict)
    comparable: bool = True

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.of,) if isinstance(self.of, str) else self.of

    def constants(self) -> list[str]:
        """Names of what a column gives."""
        return [name for name in expressions.names(self.expression) if name not in self.cells]

    def value(self, cells: Sequence[Value], constants: Mapping[str, Number]) -> float:
        """Of these cells; raises what `expressions.value` does."""
        given: Sequence[Value] = [expressions.flat(cells)] if isinstance(self.of, str) else cells
        return expressions.value(
            self.expression, {**self.defaults, **constants, **dict(zip(self.cells, given, strict=True))}
        )

    def fault(self) -> tuple[str, str] | None:
        """What is wrong with the formula itself, if anything is: at which key, and what."""
        try:
            there = expressions.names(self.expression)
        except ValueError as error:
            return "expression", f"is {toml.line(repr(self.expression), 120)}: {error}"
        for key, names in (("of", self.cells), ("defaults", self.defaults)):
            if odd := [name for name in names if name not in there]:
                return key, f"the expression has no {odd[0]}{did_you_mean(odd[0], there)}"
        return None

    def complaint(self, cells: Sequence[str], constants: Mapping[str, Number]) -> tuple[str, str] | None:
        """What is wrong with a column's references to cells and its constants, likewise."""
        if isinstance(self.of, str) and not cells:
            return "of", "must name the cells to work with"
        if not isinstance(self.of, str) and len(cells) != len(self.of):
            return (
                "of",
                f"must name a cell for each of {', '.join(self.of)}" if self.of else "the formula works on no cell",
            )
        if missing := [name for name in self.constants() if name not in constants and name not in self.defaults]:
            return "constants", f"must give {missing[0]}, for `{self.expression}`"
        if odd := [name for name in constants if name not in self.constants()]:
            return "constants", f"the formula has no {odd[0]}: `{self.expression}`"
        try:
            self.value([[1.0, 2.0] if "*" in cell else 1.0 for cell in cells], constants)
        except TypeError as error:
            return "formula", f"`{self.expression}`: {error}"
        except (ArithmeticError, ValueError):
            pass  # Of other cells it may have a value.
        return None
