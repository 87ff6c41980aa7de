"""Options of a measurement as the keywords of a call, and `Options` made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from .options import Options


class Asked(TypedDict, total=False):
    """Keywords that calls take beside their own, as `ciphermill.run` has them; what is left out is as usual there."""

    direction: str | None
    key_bits: int | None
    blocks: str | None
    bytes: int | None
    limit: int | None
    jam: int | None
    unroll: bool | None
    aligned: bool
    optimise: str
    static: bool
    with_: str | Iterable[str]
    without: str | Iterable[str]
    set: Mapping[str, object] | Iterable[str]
    fresh: bool
    patience: int
    cc: str


def options(asked: Mapping[str, Any]) -> Options:
    """`Options` of keywords; raises TypeError for one that there is not."""
    given = dict(asked)
    for name in ("with_", "without"):
        if name in given:
            given[name] = names(given[name])
    if "set" in given:
        given["set"] = settings(given["set"])
    return Options(**given)


def names(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def settings(value: Mapping[str, object] | Iterable[str]) -> list[str]:
    """``{"machine.clock_mhz": 50}`` as ``["machine.clock_mhz=50"]``."""
    return [f"{k}={toml(v)}" for k, v in value.items()] if isinstance(value, Mapping) else names(value)


def toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
