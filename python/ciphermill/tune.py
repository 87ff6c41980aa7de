"""``ciphermill tune``: a search of minutes, and what it gains.

The same measurement is made twice, once with a run's own search and once with the schedules
that are kept then. What a run would not take, or would be slower with, is not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import _core, engine, manifest, paths, report, schedules
from ._core import InputError
from .measurement import Measurement


@dataclass(frozen=True)
class Outcome:
    """What a search led to: the measurement without and with what is kept, and the loops that are new there."""

    before: Measurement
    after: Measurement
    #: ``ii``, and ``instead``: the interval of what was kept of that loop so far, or null.
    kept: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        return {"before": self.before.to_dict(), "after": self.after.to_dict(), "kept": self.kept}


def tune(module: engine.Module, machine: str, options: engine.Options, times: int, rounds: Iterable[int]) -> Outcome:
    """Search, and keep what is shorter. Raises InputError where there is nothing to search.

    Each of the ``rounds``, numbers from 1 on, goes on from what is kept by then, other ways than the others.
    """
    before = engine.measure(module, machine, replace(options, fresh=True))
    path = schedules.file(machine)
    so_far = path.read_bytes() if path.is_file() else None
    best: dict[str, tuple[int, int | None]] = {}
    for k in rounds:
        found = search(module, machine, options, times, k)
        if not found:
            raise InputError(
                f"{report.title(before)}: no loop whose schedule takes a search; that is for machines that divide work"
                " between clusters, such as c6201 and c64x"
            )
        for entry, replaced in schedules.keep(machine, found, note(before, options)):
            # What was kept before the first round.
            old = [best.pop(other["loop"], (0, other["ii"]))[1] for other in replaced]
            best[entry["loop"]] = entry["ii"], min((ii for ii in old if ii is not None), default=None)
    after = engine.measure(module, machine, options)
    taken = any(loop["recorded"] for loop in after.loops)
    if best and not (taken and after.cycles_per_block <= before.cycles_per_block):
        restore(path, so_far)
        after, best = engine.measure(module, machine, options), {}
    return Outcome(before, after, [{"ii": ii, "instead": instead} for ii, instead in best.values()])


def search(
    module: engine.Module, machine: str, options: engine.Options, times: int, which: int
) -> list[dict[str, Any]]:
    """The schedules of the measured function's longest loops, from a search of so many times as long as a run's."""
    asked = engine.request(module, machine, options, judged=False, search={"times": times, "round": which})
    found: list[dict[str, Any]] = json.loads(_core.records(module.wasm, asked))
    return found


#: How a choice about loops is named where it was made.
UNROLLED = {True: "unrolled", False: "not unrolled"}


def note(m: Measurement, options: engine.Options) -> str:
    """What was measured, for readers of the file and for `settings`."""
    parts = [f"{m.cipher}/{m.variant} {m.direction}", f"{m.key_bits} bits", m.blocks]
    parts += [f"jam {options.jam}"] if options.jam is not None else []
    parts += [UNROLLED[options.unroll]] if options.unroll is not None else []
    parts += ["aligned"] if options.aligned else []
    parts += (
        [f"with {name}" for name in m["with"]]
        + [f"without {name}" for name in m.without]
        + [f"set {change}" for change in m["set"]]
    )
    return ", ".join(parts)


def settings(entry: Mapping[str, Any]) -> tuple[str, str, engine.Options]:
    """Cipher, variant and options of an entry's `note`."""
    first, bits, blocks, *others = entry[schedules.NOTE].split(", ")
    cipher, direction = first.split(" ")

    def all_of(word: str) -> list[str]:
        return [other.removeprefix(f"{word} ") for other in others if other.startswith(f"{word} ")]

    options = engine.Options(
        direction=direction, key_bits=int(bits.split(" ")[0]), blocks=blocks,
        jam=next(map(int, all_of("jam")), None), unroll=next((asked for asked, word in UNROLLED.items() if word in others), None),
        aligned="aligned" in others, with_=all_of("with"), without=all_of("without"), set=all_of("set"),
    )  # fmt: skip
    return *cipher.split("/"), options


def taken(machine: str, entry: Mapping[str, Any]) -> bool:
    """Does a loop of what an entry's `note` names still take it? `machine` is a name or a file."""
    cipher, variant, options = settings(entry)
    m = engine.measure(engine.module(manifest.find(cipher), variant), machine, options)
    return any(loop["recorded"] and loop["ii"] == entry["ii"] for loop in m.loops)


def again(times: int = 20, rounds: int = 4) -> None:
    """A line for each schedule in ``schedules/``: a loop takes it, or it is searched anew."""
    for path in sorted(paths.SCHEDULES.glob("*.json")):
        for entry in schedules.read(path):
            what = f"{path.stem}, {entry[schedules.NOTE]}"
            if taken(path.stem, entry):
                print(f"{what}: taken, II {entry['ii']}", flush=True)
                continue
            print(f"{what}: no loop takes it any more; searching anew", flush=True)
            cipher, variant, options = settings(entry)
            module = engine.module(manifest.find(cipher), variant)
            others = [other for other in schedules.read(path) if other["loop"] != entry["loop"]]
            schedules.write(path, path.stem, others)
            print(text(tune(module, path.stem, options, times, range(1, rounds + 1)), path), flush=True)


def restore(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
    else:
        paths.write_atomically(path, content)


def text(outcome: Outcome, path: Path) -> str:
    before, after = outcome.before, outcome.after
    lines = [
        f"{report.title(after)}: {report.number(after.cycles_per_block)} cycles {report.unit(after)},"
        f" {report.number(before.cycles_per_block)} after the search of a run; the lower bound is {report.number(after.bounds['lower'])}."
    ]
    for loop in outcome.kept:
        instead = "" if loop["instead"] is None else f" instead of one of {loop['instead']}"
        lines.append(f"  a loop of {loop['ii']} cycles{instead}: kept in {paths.shown(path)}")
    if not outcome.kept:
        lines.append("  nothing shorter was found than what is there: nothing is kept")
    return "\n".join(lines)
