"""Which numbers of a printed program are addresses of its static data.

A compiler leaves no mark on them: `table + 4` may be one number, split over two instructions or
partly in the offset of a load. So the module is linked at two places and compiled for both.
Where the two texts differ in nothing but numbers, and each of these by as much as the data has
moved, the numbers are addresses, and all others are not. C's own stack is moved by another
distance, so what uses it shows. Whatever else the code knows of an address would show as another
difference; but for the low bits that both places share, which the boundary of the section keeps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._core import InternalError
from .targets import Target

NUMBER = re.compile(r"-?\b\d+\b")
UPPER = re.compile(r"(\tlui [\w]+, %hi\()(-?\d+)(\))")
WORD = re.compile(r"(\t\.4byte )(\d+)()")
HALF = re.compile(r"\t(movw|movt) (\w+), #(\d+)")
#: An instruction that begins a block, or ends one.
LABEL = re.compile(r"^[\w.]+:")


@dataclass(frozen=True)
class Address:
    """A place of a line where an address belongs: what stands before and behind it, and the distance from the data's start."""

    before: str
    offset: int
    behind: str


Line = str | Address


@dataclass(frozen=True)
class Place:
    """Where a module is linked: C's stack below the one address, static data from the other on."""

    stack: int
    data: int


class OnStack(Exception):
    """A number is an address of C's own stack, which has no place in another program."""


def code_of(assembly: str) -> list[str]:
    """The lines of the code, behind the head and before the memory."""
    lines = assembly.splitlines()
    try:
        return lines[lines.index("\t.text") + 1 : lines.index('\t.section .cm_linear,"aw"')]
    except ValueError:
        raise InternalError("the printed program has not the sections that it always had") from None


def relocated(one: str, other: str, places: tuple[Place, Place], target: Target) -> list[Line] | None:
    """The code of `one`, linked at the first of the `places`, with addresses of its data as such; None where
    they are not all found by comparing it with `other`. Raises OnStack."""
    ours, theirs = code_of(one), code_of(other)
    if len(ours) != len(theirs):
        return None
    done: list[Line] = list(ours)
    #: Lines of halves that have moved and have no other half yet.
    alone: set[int] = set()
    for n, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        if mine == its:
            continue
        if NUMBER.sub("#", mine) != NUMBER.sub("#", its):
            return None
        if target.halves and (half := HALF.fullmatch(mine)) and half[1] == "movt":
            low = lower_half(ours, n, half[2])
            if low is None or low not in alone:
                return None
            offset = distance(value_of(ours[low], mine), value_of(theirs[low], its), places)
            if offset is None:
                return None
            alone.remove(low)
            done[low] = Address(f"\tmovw {half[2]}, #:lower16:", offset, "")
            done[n] = Address(f"\tmovt {half[2]}, #:upper16:", offset, "")
            continue
        if target.halves and HALF.fullmatch(mine):
            alone.add(n)
            continue
        found = whole(mine, its, places)
        if found is None:
            return None
        done[n] = found
    return None if alone else done


def distance(mine: int, its: int, places: tuple[Place, Place]) -> int | None:
    """How far an address is from the data's start, if it has moved with the data. Raises OnStack."""
    first, second = places
    moved = (its - mine) % 2**32
    if moved == second.stack - first.stack:
        raise OnStack
    return mine - first.data if moved == second.data - first.data else None


def whole(mine: str, its: str, places: tuple[Place, Place]) -> Address | None:
    """An address in one place, if that is what has moved."""
    for form in (UPPER, WORD):
        a, b = form.fullmatch(mine), form.fullmatch(its)
        if a and b and (offset := distance(int(a[2]), int(b[2]), places)) is not None:
            return Address(a[1], offset, a[3])
    return None


def lower_half(lines: list[str], at: int, register: str) -> int | None:
    """The line before `at`, in the same block, whose `movw` gives the register the half that a `movt` completes."""
    writes = re.compile(rf"\t\S+ {register}\b(?!\])")
    for n in range(at - 1, -1, -1):
        if LABEL.match(lines[n]):
            return None
        if writes.match(lines[n]):
            half = HALF.fullmatch(lines[n])
            return n if half and half[1] == "movw" else None
    return None


def value_of(low: str, high: str) -> int:
    """The number that `movw` and `movt` give together."""
    halves = [HALF.fullmatch(line) for line in (low, high)]
    first, second = (int(half[3]) if half else 0 for half in halves)
    return second << 16 | first
