"""Today's measurements beside a baseline: what changed, and whether it got worse.

A baseline is a document that ``ciphermill run --json`` or ``ciphermill rtl
--json`` wrote earlier. Measurements are paired by everything that was asked
for (cipher, machine, settings), never by how they came out. Simulation is
deterministic, so the tolerance is 0 unless one is stated: a difference is a
change of the code, the compiler, the machine file or ciphermill, and the
hashes that travel with each measurement say which.

Here is what is compared and the verdict; ``ciphermill run`` decides the exit
code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import report, tables
from ._core import InputError
from .measured import Measured

#: What a measurement answers to. Length and mode are part of the question.
IDENTITY = ("cipher", "variant", "direction", "key_bits", "blocks", "bytes", "machine", "with", "without", "set")

#: What may get worse, by its name in ``--tolerance``; smaller is better for each.
METRICS = {
    "cycles": ("cycles_per_block", "cycles a block"),
    "code": ("code_bytes", "bytes of code"),
    "gates": ("gates", "gates"),
}

#: Parts of the provenance that explain a change, with the words for them.
CAUSES = {
    "module": "the compiled module",
    "machine": "the machine file",
    "settings": "the settings",
    "ciphermill": "ciphermill's version",
}


@dataclass(frozen=True)
class Change:
    """One metric of one measurement, then and now."""

    title: str
    metric: str
    before: float
    after: float
    tolerance: float
    #: What the figure is: cycles a block, or a key set-up.
    words: str
    #: What differs in the evidence: the compiled module, the machine file, ...
    causes: tuple[str, ...] = ()

    @property
    def relative(self) -> float:
        """(after - before) / before; infinite when there was nothing before."""
        if self.before:
            return (self.after - self.before) / self.before
        return 0.0 if self.after == self.before else float("inf")

    @property
    def worse(self) -> bool:
        # One part in 10^12 is the rounding of the division, not a change.
        return self.after > self.before and self.relative > self.tolerance + 1e-12

    def to_dict(self) -> dict[str, Any]:
        relative = self.relative if self.before else None
        return {
            "title": self.title, "metric": self.metric, "before": self.before, "after": self.after,
            "relative": relative, "tolerance": self.tolerance, "worse": self.worse, "causes": list(self.causes),
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """All metrics that both sides have, and what only one of them has."""

    baseline: str
    changes: tuple[Change, ...]
    new: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def worse(self) -> list[Change]:
        return [change for change in self.changes if change.worse]

    def to_dict(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "worse": len(self.worse),
            "changes": [change.to_dict() for change in self.changes],
            "new": list(self.new),
            "missing": list(self.missing),
        }


def tolerances(given: Iterable[str]) -> dict[str, float]:
    """``["1%", "code=64%"]`` as a fraction for each metric; what is not named gets the plain one, else 0.

    Raises InputError for what is no amount, and for a plain 5, which was hardly meant to be 500 %.
    """
    found = dict.fromkeys(METRICS, 0.0)
    named = {}
    for text in (part.strip() for value in given for part in value.split(",") if part.strip()):
        metric, separator, amount = text.rpartition("=")
        metric = metric.strip()
        if separator and metric not in METRICS:
            raise InputError(f"--tolerance {text}: no metric {metric!r}; there are {', '.join(METRICS)}")
        try:
            amount = amount.strip()
            value = float(amount.removesuffix("%")) / 100 if amount.endswith("%") else float(amount)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise InputError(f"--tolerance {text}: say how much worse is accepted, for instance 1% or cycles=0.5%")
        if value >= 1 and not amount.endswith("%"):
            raise InputError(f"--tolerance {text}: write {amount}%, or a fraction below 1")
        if separator:
            named[metric] = value
        else:
            found = dict.fromkeys(METRICS, value)
    return found | named


def wanted(baseline: str | None, given: Iterable[str]) -> None:
    """InputError for a tolerance where nothing is compared: it would pass whatever came out."""
    given = list(given)
    if given and baseline is None:
        raise InputError(f"--tolerance {','.join(given)}: nothing is compared; name a baseline with --compare FILE")


def read(path: str | Path, key: str) -> list[dict[str, Any]]:
    """The entries of a baseline document; ``key`` is ``measurements`` or ``instructions``."""
    again = "make one with --json, for instance: ciphermill run rijndael --json > baseline.json"
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"--compare {path}: {error.strerror}; {again}") from None
    except ValueError as error:
        raise InputError(f"--compare {path}: not JSON: {error}; {again}") from None
    entries = document.get(key) if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"--compare {path}: it has no list of {key}; {again}")
    if document.get("schema") != 1:
        raise InputError(f"--compare {path}: schema {document.get('schema')!r}, this version reads 1; {again}")
    return entries


def measurements(baseline: str | Path, now: Sequence[Mapping[str, Any]], tolerance: Mapping[str, float]) -> Comparison:
    """Compare measurements with those of a baseline document."""
    before = {}
    for entry in read(baseline, "measurements"):
        if lacking := [name for name in (*IDENTITY, "verified", "cycles_per_block") if name not in entry]:
            raise InputError(f"--compare {baseline}: a measurement has no {lacking[0]!r}; make the baseline again")
        if not entry["verified"]:
            raise InputError(f"--compare {baseline}: {_title(entry)} is not verified; make the baseline again")
        before[_identity(entry)] = entry
    return _compared(str(baseline), before, {_identity(m): m for m in now}, tolerance, _title, _causes)


def instructions(baseline: str | Path, now: Sequence[Mapping[str, Any]], tolerance: Mapping[str, float]) -> Comparison:
    """Compare the gate counts of hardware with those of a baseline document."""

    def named(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        return {row["name"]: row for row in rows if "name" in row and "gates" in row}

    before = named(read(baseline, "instructions"))
    return _compared(str(baseline), before, named(now), tolerance, lambda row: row["name"], lambda a, b: ())


def _compared(
    baseline: str,
    before: Mapping[str, Mapping[str, Any]],
    now: Mapping[str, Mapping[str, Any]],
    tolerance: Mapping[str, float],
    title: Callable[[Mapping[str, Any]], str],
    causes: Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[str, ...]],
) -> Comparison:
    changes = []
    for key, entry in now.items():
        if (old := before.get(key)) is None:
            continue
        for metric, (field, _) in METRICS.items():
            if _is_number(old.get(field)) and _is_number(entry.get(field)):
                why = causes(old, entry) if old[field] != entry[field] else ()
                changes.append(
                    Change(
                        title(entry), metric, old[field], entry[field], tolerance[metric], _words(metric, entry), why
                    )
                )
            elif _is_number(old.get(field)):
                raise InputError(
                    f"--compare {baseline}: {title(entry)} has {field} there and none now; "
                    "ask for it again (gates: --gates)"
                )
    if not changes:
        raise InputError(
            f"--compare {baseline}: nothing in it was measured now; compare the same cipher, machine and settings"
        )
    new = tuple(title(entry) for key, entry in now.items() if key not in before)
    missing = tuple(title(entry) for key, entry in before.items() if key not in now)
    return Comparison(baseline, tuple(changes), new, missing)


def _words(metric: str, entry: Mapping[str, Any]) -> str:
    return f"cycles {report.unit(entry)}" if metric == "cycles" else METRICS[metric][1]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _identity(entry: Mapping[str, Any]) -> str:
    # Documents from before there was a choice are of fast code.
    return json.dumps([*(entry[name] for name in IDENTITY), entry.get("optimise", "speed")])


def _title(entry: Mapping[str, Any]) -> str:
    return report.title(Measured(dict(entry)))


def _causes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """What is different in the evidence of two measurements."""
    old, new = before.get("provenance") or {}, after.get("provenance") or {}
    found = tuple(words for key, words in CAUSES.items() if old.get(key) != new.get(key))
    return found or ("ciphermill itself",)


def sentence(comparison: Comparison) -> str:
    """The verdict in words."""
    worse, count = comparison.worse, len(comparison.changes)
    better = [change for change in comparison.changes if change.after < change.before]
    if worse:
        most = max(worse, key=lambda change: change.relative)
        return (
            f"Worse than {comparison.baseline} in {len(worse)} of {count} figures, most of all "
            f"{most.words} of {most.title}: {_number(most.before)} to {_number(most.after)}, "
            f"{percent(most.relative)}."
        )
    changed = sum(change.after != change.before for change in comparison.changes)
    if not changed:
        return f"Nothing changed against {comparison.baseline}: {count} figures are the same."
    return (
        f"Nothing is worse than {comparison.baseline} beyond the tolerance: "
        f"of {count} figures {len(better)} got better, {changed - len(better)} worse within it."
    )


def rows(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of what changed, the worst first."""
    changed = [change for change in comparison.changes if change.after != change.before]
    changed.sort(key=lambda change: (not change.worse, -change.relative))
    head = ("", "what", "before", "now", "change", "accepted", "verdict", "because of")
    return head, [
        (
            change.title, change.words, _number(change.before), _number(change.after),
            percent(change.relative), percent(change.tolerance).lstrip("+"),
            "WORSE" if change.worse else "better" if change.after < change.before else "accepted",
            ", ".join(change.causes),
        )
        for change in changed
    ]  # fmt: skip


def text(comparison: Comparison) -> str:
    """The verdict, the table, and what could not be compared."""
    parts = [sentence(comparison)]
    head, lines = rows(comparison)
    if lines:
        parts.append(tables.text(head, lines, right=(2, 3, 4, 5)))
    notes = [f"not in the baseline: {title}" for title in comparison.new]
    if comparison.missing:
        notes.append(f"in the baseline and not measured now: {len(comparison.missing)}, first {comparison.missing[0]}")
    return "\n\n".join([*parts, "\n".join(notes)] if notes else parts)


def percent(fraction: float) -> str:
    return "new" if fraction == float("inf") else f"{100 * fraction:+.2f} %"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def benchmark(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What ``github-action-benchmark`` reads with ``tool: customSmallerIsBetter``.

    One entry for each metric of each measurement; ``extra`` holds what makes
    it again, ``range`` is absent because nothing varies.
    """
    out = []
    for entry in entries:
        for metric, (field, _) in METRICS.items():
            if _is_number(entry.get(field)):
                unit = _words(metric, entry)
                evidence = entry.get("provenance") or {}
                extra = "\n".join(f"{key}: {evidence[key]}" for key in CAUSES if key in evidence)
                out.append({"name": f"{_title(entry)}: {unit}", "unit": unit, "value": entry[field], "extra": extra})
    return out
