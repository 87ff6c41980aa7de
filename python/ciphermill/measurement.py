"""What one cipher did on one machine: a measurement, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class Measurement(Mapping):
    """One measurement. Every key of the JSON document is also an attribute.

    The keys and their units are described in ``docs/measurement.md``.
    """

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        object.__setattr__(self, "_data", data)

    def to_dict(self) -> dict[str, Any]:
        """A copy of what ``ciphermill run --json`` prints for this measurement."""
        import copy

        return copy.deepcopy(self._data)

    def to_polars(self):
        """A polars DataFrame of one row; nested values become columns such as ``bounds.lower``.

        Needs the extra ``ciphermill[tables]``, else raises InputError.
        """
        return Measurements([self]).to_polars()

    def to_pandas(self):
        """A pandas DataFrame of one row, with the columns of :meth:`to_polars`."""
        return Measurements([self]).to_pandas()

    def _repr_html_(self) -> str:
        from .html import measurement

        return measurement(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_data")[name]
        except KeyError:
            raise AttributeError(f"a measurement has no {name!r}; it has {', '.join(self._data)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a measurement cannot be changed")

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __reduce__(self) -> tuple:
        return (Measurement, (self._data,))

    def __repr__(self) -> str:
        state = "verified" if self.verified else "NOT VERIFIED"
        return (
            f"<Measurement {self.cipher}/{self.variant} {self.direction} on {self.machine}: "
            f"{self.cycles_per_block:.1f} cycles {'a key set-up' if self.direction == 'keysetup' else 'a block'}, {state}>"
        )


class Measurements(list):
    """Several measurements: a list that can become a table."""

    def to_dicts(self) -> list[dict[str, Any]]:
        return [m.to_dict() for m in self]

    def to_polars(self):
        """A polars DataFrame, a row for each measurement; needs ``ciphermill[tables]``."""
        from . import tables

        return tables.polars(self.to_dicts())

    def to_pandas(self):
        """A pandas DataFrame, a row for each measurement; needs ``ciphermill[tables]``."""
        from . import tables

        return tables.pandas(self.to_dicts())

    def _repr_html_(self) -> str:
        from .html import measurements

        return measurements(self)


class Entry(dict):
    """A cipher, machine or extension in a listing: a dict, with attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Listing(list):
    """What there is to choose from. ``"leon2" in cm.machines()`` asks by name."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(Entry(entry) for entry in entries)

    @property
    def names(self) -> list[str]:
        return [entry["name"] for entry in self]

    def __contains__(self, key: object) -> bool:
        return key in self.names if isinstance(key, str) else super().__contains__(key)
