"""From a harness's readings of the clock to cycles, and how far they are to be believed.

A sample is a shorter, a longer and a shorter run again, between two readings of how many
ticks a chain of dependent additions takes. Its slope is what the longer run takes beyond the
mean of the two shorter ones, over the blocks that it has more, in cycles of that chain. It is
quiet where the clock's two readings agree, and the two shorter runs do: what disturbed one of
them would have had to disturb the other just as long.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Additions of the chain, one a cycle (harness.c).
CHAIN = 2 * 64 * 128

#: A sample is quiet where the clock's readings, and the shorter runs, are within these parts of each other.
CLOCK, SHORTER = 0.004, 0.02
#: With fewer quiet samples than this the figure is unstable, whatever they say.
FEWEST = 10
#: And where the median of the quiet samples is above the least by more than this part of it.
UNSTABLE = 0.03


@dataclass(frozen=True)
class Sample:
    """Ticks: of the runs, and of the chain before and after them."""

    first: int
    longer: int
    last: int
    before: int
    after: int

    @property
    def quiet(self) -> bool:
        return near(self.before, self.after, CLOCK) and near(self.first, self.last, SHORTER)

    def slope(self, blocks: float) -> float:
        """Cycles of each of `blocks`."""
        ticks = self.longer - (self.first + self.last) / 2
        return ticks * 2 * CHAIN / (self.before + self.after) / blocks


def near(a: int, b: int, part: float) -> bool:
    return 0 < a <= b * (1 + part) and 0 < b <= a * (1 + part)


@dataclass(frozen=True)
class Figure:
    """What many samples come to; cycles are of a block, None where no sample was quiet."""

    median: float | None
    minimum: float | None
    #: The tenth, and the ninth tenth, of the quiet samples.
    low: float | None
    high: float | None
    samples: int
    tried: int
    clock_ghz: float | None
    #: Why it is not to be believed to the last digit; empty where it is.
    unstable: str


def figure(samples: Sequence[Sample], blocks: float, hz: float | None = None) -> Figure:
    """The figure of samples of so many blocks each; ``hz`` are the clock's ticks a second."""
    quiet = [s for s in samples if s.quiet]
    if not quiet:
        why = f"none of {len(samples)} samples was quiet: the processor is shared, or its clock moves"
        return Figure(None, None, None, None, 0, len(samples), None, why)
    slopes = sorted(s.slope(blocks) for s in quiet)
    median, least = statistics.median(slopes), slopes[0]
    why = ""
    if len(quiet) < FEWEST:
        why = f"only {len(quiet)} of {len(samples)} samples were quiet"
    elif median > least * (1 + UNSTABLE):
        why = f"the median is {100 * (median / least - 1):.1f} % above the least"
    ticks = statistics.median((s.before + s.after) / 2 for s in quiet)
    return Figure(
        median, least, slopes[len(slopes) // 10], slopes[len(slopes) * 9 // 10], len(quiet), len(samples),
        None if hz is None else CHAIN / ticks * hz / 1e9, why,
    )  # fmt: skip


def joined(rounds: Sequence[Figure]) -> Figure:
    """One figure of several processes': the least of their medians.

    What disturbs a whole process, a neighbour on the same core or where its memory lies, makes it
    slower and not faster. Another process has to bear the least one out.
    """
    there = sorted((r for r in rounds if r.median is not None), key=lambda r: r.median or 0.0)
    tried, quiet = sum(r.tried for r in rounds), sum(r.samples for r in rounds)
    if not there:
        return Figure(None, None, None, None, 0, tried, None, rounds[0].unstable if rounds else "nothing was measured")
    first, why = there[0], there[0].unstable
    medians = [r.median for r in there if r.median is not None]
    if not why and len(medians) > 1 and not near_enough(medians[0], medians[1]):
        why = f"no two processes agree: {medians[0]:.1f} and {medians[1]:.1f} cycles"
    return Figure(
        first.median, min(r.minimum for r in there if r.minimum is not None), first.low, first.high, quiet, tried,
        first.clock_ghz, why,
    )  # fmt: skip


def near_enough(least: float, other: float) -> bool:
    return other <= least * (1 + UNSTABLE)


def middle(values: Sequence[int]) -> float:
    """The median of counts."""
    return statistics.median(values)
