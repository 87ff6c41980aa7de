"""The data of one measurement: what stands in the JSON document, read by name.

What is printed of it (`ciphermill.report`, `ciphermill.html`) needs no more than this;
`ciphermill.measurement` adds what the user can turn it into.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measured_types import Fields
else:
    # Types, and nothing else: to make them takes longer than all else here, and start-up is part of every run.
    Fields = object


class Measured(Mapping[str, Any], Fields):
    """One measurement. Every key of the JSON document is also an attribute, with its type.

    The keys and their units are described in ``docs/measurement.md``.
    """

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        object.__setattr__(self, "_data", data)

    def to_dict(self) -> dict[str, Any]:
        """A copy of what ``ciphermill run --json`` prints for this measurement."""
        return copy.deepcopy(self._data)

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

    def __reduce__(self) -> tuple[type[Measured], tuple[dict[str, Any]]]:
        return (type(self), (self._data,))
