"""Progress on standard error, once something takes longer than a second.

Nothing is shown when standard error is not a terminal, so logs and pipes stay
clean. A number of steps gives a bar with the time left, a single step a
spinner with the time gone. Rich is imported where it draws: without a terminal
nothing waits for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich import progress as drawing

T = TypeVar("T")


class Progress(Protocol):
    """Passes results on as they are made, and may show how many of the total there are."""

    def __call__(self, results: Iterable[T], total: int, /) -> Iterable[T]: ...


#: Seconds before anything is shown.
PATIENCE = 1.0


def with_progress(results: Iterable[T], total: int, label: str = "measuring") -> Iterator[T]:
    """Yield results; a bar with the time left once it takes longer than a second."""
    if not sys.stderr.isatty():
        yield from results
        return
    bar = _bar()
    task = bar.add_task(label, total=total)
    with _after_a_while(bar):
        for result in results:
            bar.advance(task)
            yield result


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A spinner with the time gone, for one step of unknown length."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(label, total=None)
    with _after_a_while(bar):
        yield


@contextmanager
def _after_a_while(bar: drawing.Progress) -> Iterator[None]:
    """Show a bar once the patience is over, also while the first step is under way."""
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _bar() -> drawing.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("left"), console=Console(stderr=True), transient=True,
    )  # fmt: skip
