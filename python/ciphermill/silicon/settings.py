"""How programs are measured natively."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .._core import InputError

MOST_SAMPLES = 100_000


@dataclass(frozen=True)
class Settings:
    """How programs are measured natively."""

    #: Samples of each program, in how many processes.
    samples: int = 300
    rounds: int = 3
    cpu: int | None = None
    emulator: str | None = None

    def check(self) -> None:
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise InputError(f"--samples {self.samples}: from 1 to {MOST_SAMPLES}; some hundreds are usual")
        if not 1 <= self.rounds <= 100:
            raise InputError(f"--rounds {self.rounds}: from 1 to 100 processes a program; 3 are usual")
        there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
        if self.cpu is not None and self.cpu not in there:
            raise InputError(f"--cpu {self.cpu}: this process may run on {', '.join(map(str, there))}")

    @property
    def each(self) -> int:
        """Samples of a process."""
        return -(-self.samples // self.rounds)

    def pinned(self) -> int | None:
        """The processor to run on: the last one, since the first ones have the interrupts."""
        if self.cpu is not None or not hasattr(os, "sched_getaffinity"):
            return self.cpu
        return max(os.sched_getaffinity(0))


#: Where nothing is said.
USUAL = Settings()
