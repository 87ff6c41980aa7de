"""Exact schedules for the pipelined loops of a program.

The core writes its loops out as problems, the solver of `ciphermill.optimal`
answers them, and the core takes the answers into account, for one and the same
form of the code. For each loop

* intervals from the lower bound on are asked of the *free* problem (work
  divided between the clusters in any way): each that has no schedule raises
  what is proved; one that has gives a division of the work to go on with;
* intervals below the one that was found are asked of the *divided* problem
  (work where the heuristic put it), downwards, as long as there is a schedule.

What the time limit leaves undecided is neither proved nor used. Problems too
large to be written as a model are not asked, nor loops that what is measured never
comes to. Every question and the word on it stand in the measurement's ``loops``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import optimal
from ._core import InputError

#: Solver time for one question, in the solver's deterministic seconds.
SECONDS = 20.0
#: Most decisions (operation, way to run it, cycle) of a model.
LARGEST = 150_000
#: Most intervals that are asked of one loop from below.
QUESTIONS = 12

#: The word on a problem that was not asked.
LARGE = "large"

#: Asks the core for a program's loops, given the answers so far.
Core = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def answers(core: Core, seconds: float = SECONDS) -> dict[str, Any]:
    """What a request says as ``exact``: the form of the code, an answer a loop.

    Raises InputError when the solver is missing.
    """
    if not optimal.available():
        raise InputError(
            "--optimal: exact scheduling needs OR-tools, which is not installed; pip install 'ciphermill[optimal]'"
        )
    first = core({"form": None, "answers": []})
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda loop: from_below(loop, seconds), first["loops"]))
    # Where a better division is known, the core writes the loop out for it.
    second = core({"form": first["form"], "answers": found}) if any("division" in a for a in found) else first
    with ThreadPoolExecutor() as pool:
        done = pool.map(lambda both: from_above(both[0], both[1], seconds), zip(second["loops"], found, strict=True))
        return {"form": first["form"], "answers": list(done)}


def from_below(loop: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Intervals that have no schedule; and the division of the first that may have one."""
    problem, first, found = loop["free"] or loop["divided"], loop["first"], loop["ii"]
    answer: dict[str, Any] = {"least": first, "asked": []}
    if not loop["runs"]:
        return answer
    for ii in range(first, min(found, first + QUESTIONS)):
        result = ask(problem, ii, seconds, answer, "any" if loop["free"] else "own")
        if result["status"] == optimal.PROVED_NONE:
            answer["least"] = ii + 1
            continue
        if result["status"] == optimal.FOUND and loop["free"]:
            own = [n for n, node in enumerate(problem["nodes"]) if not node["optional"]]
            answer["division"] = [result["alternative"][n] for n in own]
        break
    return answer


def from_above(loop: Mapping[str, Any], answer: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The shortest schedule of the division, below the interval that was found."""
    problem, answer = loop["divided"], {**answer, "asked": list(answer["asked"])}
    if not loop["runs"]:
        return answer
    least, best = answer["least"], None
    below = range(loop["ii"] - 1, least - 1, -1)
    # A division that is known to be good is tried where it is good.
    for ii in [least, *below] if "division" in answer else below:
        if ii >= loop["ii"]:
            break
        result = ask(problem, ii, seconds, answer, "own")
        if result["status"] == optimal.FOUND:
            best = {"ii": ii, "time": result["time"], "alternative": result["alternative"]}
        if (ii == least and best) or (result["status"] != optimal.FOUND and (ii != least or result["status"] == LARGE)):
            break
    if best:
        answer["schedule"] = best
    else:
        answer.pop("division", None)
    return answer


def ask(
    problem: Mapping[str, Any], ii: int, seconds: float, answer: dict[str, Any], division: str
) -> Mapping[str, Any]:
    """Is there a schedule of this interval? The question and the word are added to the `answer`."""
    if size(problem) * ii > LARGEST:
        result: Mapping[str, Any] = {"status": LARGE}
    else:
        result = optimal.kept({**problem, "ii": ii}, seconds)
    answer["asked"].append({"ii": ii, "division": division, "word": result["status"]})
    return result


def size(problem: Mapping[str, Any]) -> int:
    """Ways to run its operations."""
    return sum(len(node["alternatives"]) for node in problem["nodes"])
