"""What a page may ask for: a text, machines and extensions by name, and a few options. No path of a file."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .. import library
from .._core import InputError
from ..options import Options
from ..suggest import did_you_mean

#: More machines than there are need not be named.
MOST_MACHINES = 100


class Asked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A run: a block or stream cipher, a hash function and so on in one C file, and where it is measured."""

    source: str
    machines: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MOST_MACHINES)]
    extensions: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_MACHINES)] = ()
    direction: str | None = None
    blocks: Literal["single", "multi"] | None = None
    key_bits: Annotated[int, msgspec.Meta(ge=0, le=4096)] | None = None
    optimise: Literal["speed", "size"] = "speed"

    def options(self) -> Options:
        """The same as options of a measurement."""
        return Options(
            direction=self.direction,
            blocks=self.blocks,
            key_bits=self.key_bits,
            optimise=self.optimise,
            with_=self.extensions,
        )


def read(body: bytes) -> Asked:
    """A request from its JSON. Raises InputError where it is none."""
    try:
        asked = msgspec.json.decode(body, type=Asked)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the request: {error}") from None
    if not asked.source.strip():
        raise InputError("there is no C; paste a cipher, or take the example")
    if "\0" in asked.source:
        raise InputError("the C has a byte 0 in it; paste text")
    # A name, never a path: the file of another would be read.
    _known("machine", asked.machines, library.machine_names())
    _known("extension", asked.extensions, library.extension_names())
    asked.options().check()
    return asked


def _known(kind: str, names: tuple[str, ...], there: list[str]) -> None:
    for name in names:
        if name not in there:
            raise InputError(f"no {kind} {name}{did_you_mean(name, there)}")
