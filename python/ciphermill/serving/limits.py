"""What a run may take, and how many there are at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one run may take, and the server altogether."""

    #: Wall time of a run, its compilation included. Half of the machines take a second each for most ciphers, the slowest
    #: half a minute.
    seconds: float = 120
    #: Address space of each process: thrice what the compiler was seen to take.
    memory: int = 4 << 30
    #: The largest file that is written; what the compiler keeps of one source is less than a megabyte.
    file_bytes: int = 64 << 20
    #: Of what is sent: the largest cipher here has 100 KB of tables.
    request_bytes: int = 512 << 10
    #: Of what is answered: an explanation has some hundred KB.
    answer_bytes: int = 16 << 20
    #: Runs at a time: each is busy on one core, most of the time.
    at_once: int = 2 if (os.cpu_count() or 1) > 2 else 1
    #: Those that may wait for their turn.
    waiting: int = 8
    #: Seconds in which a request must have come.
    patience: float = 20
