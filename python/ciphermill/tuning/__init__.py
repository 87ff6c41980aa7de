"""``ciphermill tune``: searches of minutes for schedules of loops, cell by cell, and what is kept of them.

    cells.py      what there is to tune: a cipher's variant, direction and mode on a machine
    journal.py    what has been done to a cell by this build of the core
    search.py     one cell: its measurements, a round of its search, what of that is kept
    course.py     which cell comes next, for how long, on how many cores
    standing.py   of each kept schedule whether a loop takes it, and if not, why
    text.py       all of it for people, and as JSON

Cells have nothing to do with each other: a search goes on from what is kept of its own cell
and from nothing else. So what is kept in the end is the same, byte for byte, in whatever order
cells are searched, by however many threads or processes, and however often the command was stopped.
"""

from __future__ import annotations
