"""The measurements that the cells of studies ask for.

Each setting is measured once, on all cores. Measurements are kept by content
(`ciphermill.kept`), so that a study whose inputs have not changed prints at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import engine, kept, library, manifest, paths, synthesis
from .. import hardware as making
from .._core import InputError, InternalError
from ..measurement import Measurement
from ..progress import Progress


@dataclass(frozen=True)
class Missing:
    """Why there is no measurement; ``fault`` when that is an error of ours."""

    reason: str
    fault: bool = False


Answers = dict[str, Measurement | Missing]


def key(asked: Mapping[str, Any]) -> str:
    """The settings of a cell, as one string."""
    return json.dumps(asked, sort_keys=True)


def measure_all(work: list[dict[str, Any]], progress: Progress) -> Answers:
    """Measure every setting of the list; the answers by `key`."""
    # What has a cipher in common stands together: the core keeps the latest of what it makes of one.
    distinct = {key(asked): asked for asked in sorted(work, key=alike)}
    there = Shelf()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(progress(pool.map(lambda asked: answer(asked, there), distinct.values()), len(distinct)))
    return dict(zip(distinct, answers, strict=True))


def alike(asked: Mapping[str, Any]) -> list[str]:
    """What settings are sorted by, so that those stand together of which one program is made, or nearly."""
    first = ("cipher", "variant", "direction", "key_bits", "blocks", "on", "with", "without")
    return [str(asked.get(name)) for name in first]


class Shelf:
    """What there is to be measured, looked up once: the cells of a study share it."""

    def __init__(self) -> None:
        self.machines = frozenset(library.machine_names())
        self.ciphers = frozenset(manifest.names())
        self.extensions = frozenset(library.extension_names())
        #: Two threads that ask at once may both look: they find the same.
        self.module = cache(lambda cipher, variant: engine.module(manifest.find(cipher), variant))


def answer(asked: Mapping[str, Any], there: Shelf) -> Measurement | Missing:
    """One measurement, or why there is none."""
    if "hardware" in asked:
        return hardware(asked["hardware"])
    if (machine := of_machine(asked["on"], there)) is None:
        return Missing(f"machine {asked['on']} is not there")
    if asked["cipher"] not in there.ciphers:
        return Missing(f"cipher {asked['cipher']} is not there")
    for name in asked.get("with", ()):
        if name not in there.extensions:
            return Missing(f"extension {name} is not there")
    try:
        return kept.measurement(there.module(asked["cipher"], asked.get("variant")), machine, options(asked))
    except InputError as error:
        return Missing(str(error).splitlines()[0])
    except InternalError as error:
        return Missing(str(error).splitlines()[0], fault=True)


def of_machine(name: str, there: Shelf) -> str | None:
    """A machine that a cell names, as a measurement asks for it: one that comes with the package, or a study's own."""
    if name in there.machines:
        return name
    own = paths.DATA / name
    return str(own) if name.endswith(".toml") and own.is_file() else None


def hardware(name: str) -> Measurement | Missing:
    """What a unit of ``rtl/units.toml`` costs, by Yosys or as Yosys had it."""
    try:
        made = making.unit(making.entry(name), {}, making.Options(prove=False))
        provenance = {
            "kind": "synthesised",
            "yosys": synthesis.version(),
            "kept": not synthesis.installed(),
            "unit": name,
        }
        return Measurement({**made, "verified": True, "provenance": provenance})
    except InputError as error:
        return Missing(str(error).splitlines()[0])
    except InternalError as error:
        return Missing(str(error).splitlines()[0], fault=True)


def options(asked: Mapping[str, Any]) -> engine.Options:
    """The settings of a cell as options of a measurement."""
    names = {"with": "with_"}
    return engine.Options(**{names.get(k, k): v for k, v in asked.items() if k not in ("cipher", "on", "variant")})
