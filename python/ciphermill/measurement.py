"""What one cipher did on one machine: a measurement, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import html, tables
from .measured import Measured

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

    from .plots import Picture


class Measurement(Measured):
    """One measurement. Every key of the JSON document is also an attribute.

    The keys and their units are described in ``docs/measurement.md``.
    """

    __slots__ = ()

    def to_polars(self) -> PolarsFrame:
        """A polars DataFrame of one row; nested values become columns such as ``bounds.lower``.

        Needs the extra ``ciphermill[tables]``, else raises InputError.
        """
        return Measurements([self]).to_polars()

    def to_pandas(self) -> PandasFrame:
        """A pandas DataFrame of one row, with the columns of :meth:`to_polars`."""
        return Measurements([self]).to_pandas()

    def plot(self) -> Picture:
        """Its cycles and their bound as a bar; of a trace, each micro-operation's way (``--plot``)."""
        from . import plots

        return plots.Picture(plots.trace(self) if self.get("pipeline") else plots.run([self]))

    def _repr_html_(self) -> str:
        return html.measurement(self)

    def __repr__(self) -> str:
        state = "verified" if self.verified else "NOT VERIFIED"
        return (
            f"<Measurement {self.cipher}/{self.variant} {self.direction} on {self.machine}: "
            f"{self.cycles_per_block:.1f} cycles {'a key set-up' if self.direction == 'keysetup' else 'a block'}, {state}>"
        )


class Measurements(list[Measurement]):
    """Several measurements: a list that can become a table."""

    def to_dicts(self) -> list[dict[str, Any]]:
        return [m.to_dict() for m in self]

    def to_polars(self) -> PolarsFrame:
        """A polars DataFrame, a row for each measurement; needs ``ciphermill[tables]``."""
        return tables.polars(self.to_dicts())

    def to_pandas(self) -> PandasFrame:
        """A pandas DataFrame, a row for each measurement; needs ``ciphermill[tables]``."""
        return tables.pandas(self.to_dicts())

    def plot(self) -> Picture:
        """Cycles and bounds, a bar each (``--plot``)."""
        from . import plots

        return plots.Picture(plots.run(self))

    def _repr_html_(self) -> str:
        return html.measurements(self)


class Entry(dict[str, Any]):
    """A cipher, machine or extension in a listing: a dict, with attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Listing(list[Entry]):
    """What there is to choose from. ``"leon2" in cm.machines()`` asks by name."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(Entry(entry) for entry in entries)

    @property
    def names(self) -> list[str]:
        return [entry["name"] for entry in self]

    def __contains__(self, key: object) -> bool:
        return key in self.names if isinstance(key, str) else super().__contains__(key)
