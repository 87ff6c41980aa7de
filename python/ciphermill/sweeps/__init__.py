"""Sweeps: many points (cipher, machine, settings) measured, kept and tabulated.

    grid.py     which points there are
    work.py     what is asked of the core for each, and the answers
    store.py    where results are kept, so that nothing is measured twice
    cluster.py  the same work on a Dask cluster
    frame.py    the results as a table
    text.py     the results as text
    monotone.py whether more of something is never slower

A sweep can be ended at any moment and started again: it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..measurement import Measurement
from ..progress import Progress
from ..tables import parquet
from . import cluster as clusters
from . import work
from .frame import frame, row
from .grid import Grid, flat, load
from .monotone import Verdict, monotone
from .store import Store

if TYPE_CHECKING:
    from ..plots import Picture

__all__ = ["Grid", "Sweep", "Verdict", "load", "monotone", "run"]

#: A point, and what was measured there.
Result = tuple[dict[str, Any], Measurement | None]


@dataclass(frozen=True)
class Sweep(Sequence[Result]):
    """The results of a sweep, in the order of its grid.

    A sequence of (point, Measurement or None) pairs.
    """

    grid: Grid
    results: tuple[Result, ...]
    failures: dict[int, str]
    #: Points measured now; the others were in the store, or nowhere.
    measured: int
    #: Failures that are errors of ours.
    faults: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...

    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self.results[index]

    @property
    def measurements(self) -> list[Measurement]:
        """The measurements there are."""
        return [m for _, m in self.results if m is not None]

    def rows(self) -> list[dict[str, Any]]:
        """One flat mapping a point: settings, then numbers."""
        settings = list(dict.fromkeys(name for point, _ in self.results for name in flat(point)))
        return [row(point, m, self.failures.get(n), settings) for n, (point, m) in enumerate(self.results)]

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return frame(self.rows())

    def monotone(self, along: Iterable[str]) -> Verdict:
        """Points that take more cycles than one with less of a setting, and points below their bound."""
        return monotone(self.rows(), along)

    def plot(self) -> Picture:
        """The points against a setting (``--plot``)."""
        from .. import plots

        return plots.Picture(plots.sweep(self.grid.axes(), [(flat(point), m) for point, m in self.results]))

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet."""
        parquet(self.rows(), path)


def run(
    grid: str | Path | Mapping[str, Any] | Grid,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    limit: int | None = None,
    progress: Progress = lambda answers, total: answers,
) -> Sweep:
    """Measure every point that the store does not have yet.

    ``store`` is an SQLite file; by default the grid file's own, and none (in
    memory) for a grid that is no file. ``cluster`` is the address of a Dask
    scheduler, or ``local`` to start one here with ``workers`` processes. With a ``limit`` on the steps of
    each run, points that failed before are tried again.
    """
    grid = grid if isinstance(grid, Grid) else load(grid)
    where = Path(store) if store is not None else grid.store
    tasks = work.prepare(grid, limit)
    with Store(where) if where is not None else Store(Path(":memory:")) as kept:
        known = kept.find(task.key for task in tasks)
        if limit is not None:
            known = {key: found for key, found in known.items() if found[1] is None}
        todo = list({task.key: task for task in tasks if task.key not in known}.values())
        points = {task.key: task.point for task in todo}
        faults = []
        for answer in progress(answers(todo, workers, cluster), len(todo)):
            if answer.fault:
                faults.append(f"{title(points[answer.key])}: {answer.failure}")
            else:
                kept.add(answer.key, points[answer.key], answer.measurement, answer.failure, answer.seconds)
            known[answer.key] = (None if answer.fault else answer.measurement, answer.failure)
    found = [known.get(task.key, (None, "not measured")) for task in tasks]
    results = tuple(
        (task.point, None if m is None else Measurement(m)) for task, (m, _) in zip(tasks, found, strict=True)
    )
    failures = {n: failure for n, (_, failure) in enumerate(found) if failure is not None}
    return Sweep(grid, results, failures, len(todo), tuple(faults))


def answers(todo: Sequence[work.Task], workers: int | None, cluster: str | None) -> Iterator[work.Answer]:
    if not todo:
        return
    if cluster is None:
        yield from work.local(todo, workers)
        return
    with clusters.connected(cluster, workers) as client:
        yield from clusters.remote(todo, client)


def title(point: Mapping[str, Any]) -> str:
    """A point in one line."""
    return " ".join(f"{name}={value}" for name, value in flat(point).items())
