"""Exact modulo scheduling: at a given initiation interval, a schedule or the
proof that there is none.

A pure function from a problem to a result, both plain JSON; it knows neither
machines nor programs. The solver is OR-tools' CP-SAT, an optional dependency
(``pip install 'ciphermill[optimal]'``).

A problem:

``ii``
    the initiation interval, in cycles
``stages``
    iterations that may be under way at once: times are below ``ii * stages``
``resources``
    name to how many there are: units, paths between clusters and to memory
``files``
    name to how many registers there are to be had
``outside``
    how many values come from outside the loop (they are numbered from 0); one
    that is read in a file takes a register of it all the time
``nodes``
    operations, each with

    ``before_end``
        it issues so many cycles before the end of the first stage, that is in
        cycle ``ii - before_end``; anywhere when left out
    ``optional``
        it need not run (a copy between files); false when left out
    ``latency``
        cycles from issue until the result is in its register
    ``operands``
        for each, the sources it may be read from: ``{"node": n, "distance": d}``
        (the result of ``d`` iterations ago) or ``{"outside": v}``; one is chosen
    ``alternatives``
        the ways to run it: ``uses`` (names of resources taken in its cycle),
        ``result`` (the file its result goes to, or null) and ``reads`` (for
        each operand the file it is read from)
``edges``
    orders that are not through registers: ``from``, ``to``, ``latency``, ``distance``

A schedule starts every operation at a time such that: an operand has landed
when it is read, in the file from which the alternative reads it; in no cycle
modulo ``ii`` more of a resource is taken than there is; a value stays in its
one register from the cycle it lands in until its last reader issues, and that
is no longer than ``ii`` cycles, after which the next iteration's value lands
in the same register; and in no cycle modulo ``ii`` more values are alive in a
file than it has registers. That last condition is necessary, not sufficient:
arcs on a circle may need more colours than overlap at any point. A proof that
there is no schedule stands; whoever takes a schedule must colour it.

The model is of the kind of Eichenberger and Davidson (PLDI 1997): an operation
is assigned a cycle modulo ``ii``, which decides resources, and a stage.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from . import cached
from ._core import InputError

#: What a result says of the problem.
FOUND, PROVED_NONE, UNKNOWN = "found", "none", "unknown"

VERSION = 1


def available() -> bool:
    """Is the solver installed?"""
    return find_spec("ortools") is not None


def solve(problem: Mapping[str, Any], seconds: float = 60.0) -> dict[str, Any]:
    """Find a schedule, or prove that there is none, within a time limit.

    The result has ``status`` (``found``, ``none`` or ``unknown``), ``seconds``,
    and for a schedule ``time``, ``alternative`` and ``sources`` by node: the
    issue cycle of iteration 0, the number of the chosen alternative, and for
    each operand the number of the chosen source; null for an optional
    operation that does not run. Raises InputError when the solver is missing.
    """
    # Optional, and a second to import.
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(
            "--optimal: exact scheduling needs OR-tools, which is not installed; pip install 'ciphermill[optimal]'"
        ) from None
    check(problem)
    start = time.monotonic()
    model = Model(cp_model, problem)
    solver = cp_model.CpSolver()
    # One worker with one seed: the same problem gives the same schedule. Without
    # linear relaxations, which say nothing about modulo resources, it decides a
    # round of Rijndael in seconds that the default takes minutes over.
    solver.parameters.random_seed = 1
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 0
    # Time as the solver counts it, not as the clock does: the same problem is
    # given up at the same point on any machine.
    solver.parameters.max_deterministic_time = seconds
    status = solver.solve(model.cp)
    took = round(time.monotonic() - start, 3)
    if status == cp_model.INFEASIBLE:
        return {"status": PROVED_NONE, "seconds": took}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return {"status": UNKNOWN, "seconds": took}
    return {"status": FOUND, "seconds": took, **model.read(solver)}


def kept(problem: Mapping[str, Any], seconds: float = 60.0) -> dict[str, Any]:
    """As `solve`, with results kept below the cache folder."""
    text = json.dumps(problem, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{VERSION}\0{seconds}\0{text}".encode()).hexdigest()[:40]
    path = cached.place("schedules", f"{digest}.json")
    if (known := cached.read(path)) is not None:
        before: dict[str, Any] = json.loads(known)
        return before
    result = solve(problem, seconds)
    cached.write(path, json.dumps(result).encode())
    return result


def least(problem: Mapping[str, Any], first: int, last: int, seconds: float = 60.0) -> dict[str, Any]:
    """The least initiation interval from ``first`` to ``last`` with a schedule.

    The result has ``ii`` and ``schedule`` (both null when there is none up to
    ``last``), ``proved`` (every smaller interval from ``first`` on was proved
    impossible) and ``open``, the intervals that the time limit, which holds for
    each, left undecided. The problem's own ``ii`` is not looked at.
    """
    undecided: list[int] = []
    for ii in range(first, last + 1):
        result = kept({**problem, "ii": ii}, seconds)
        if result["status"] == FOUND:
            return {"ii": ii, "schedule": result, "proved": not undecided, "open": undecided}
        if result["status"] == UNKNOWN:
            undecided.append(ii)
    return {"ii": None, "schedule": None, "proved": not undecided, "open": undecided}


def check(problem: Mapping[str, Any]) -> None:
    """Raise InputError for a problem that is none; names what is wrong."""

    def need(condition: bool, what: str) -> None:
        if not condition:
            raise InputError(f"scheduling problem: {what}")

    try:
        nodes = problem["nodes"]
        need(problem["ii"] >= 1 and problem["stages"] >= 1, "`ii` and `stages` must be at least 1")
        for n, node in enumerate(nodes):
            need(bool(node["alternatives"]), f"node {n} has no alternatives")
            for a in node["alternatives"]:
                need(all(u in problem["resources"] for u in a["uses"]), f"node {n} uses a resource that is not listed")
                files = [*a["reads"], *([a["result"]] if a["result"] is not None else [])]
                need(all(f in problem["files"] for f in files), f"node {n} names a file that is not listed")
                need(
                    len(a["reads"]) == len(node["operands"]),
                    f"node {n}: an alternative must say where each operand is read",
                )
            for sources in node["operands"]:
                need(bool(sources), f"node {n} has an operand without sources")
                for s in sources:
                    need("outside" in s or 0 <= s["node"] < len(nodes), f"node {n} reads a node that is not there")
        need(
            all(0 <= e[k] < len(nodes) for e in problem["edges"] for k in ("from", "to")),
            "an edge names a node that is not there",
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"scheduling problem: {error} is missing or malformed") from None


class Model:
    """The problem as constraints."""

    def __init__(self, cp_model: Any, problem: Mapping[str, Any]) -> None:
        self.cp = cp_model.CpModel()
        self.problem = problem
        self.ii: int = problem["ii"]
        self.horizon: int = problem["ii"] * problem["stages"]
        self.nodes = problem["nodes"]
        self._issue()
        self._resources()
        self._operands()
        for e in problem["edges"]:
            order = self.time[e["to"]] + self.ii * e["distance"] >= self.time[e["from"]] + e["latency"]
            self.cp.add(order).only_enforce_if([self.runs[e["from"]], self.runs[e["to"]]])
        self._registers()

    def _issue(self) -> None:
        """Each operation runs at most once: in one alternative and one cycle
        modulo ``ii`` (``at``), in some stage."""
        cp, ii = self.cp, self.ii
        self.at, self.alternative, self.slot, self.time, self.runs = [], [], [], [], []
        for n, node in enumerate(self.nodes):
            count = len(node["alternatives"])
            at = [[cp.new_bool_var(f"at {n} {a} {s}") for s in range(ii)] for a in range(count)]
            runs = cp.new_bool_var(f"runs {n}")
            cp.add(sum(x for row in at for x in row) == runs)
            if not node.get("optional", False):
                cp.add(runs == 1)
            chosen = [cp.new_bool_var(f"alternative {n} {a}") for a in range(count)]
            for a in range(count):
                cp.add(sum(at[a]) == chosen[a])
            slot = [cp.new_bool_var(f"slot {n} {s}") for s in range(ii)]
            for s in range(ii):
                cp.add(sum(at[a][s] for a in range(count)) == slot[s])
            stage = cp.new_int_var(0, self.problem["stages"] - 1, f"stage {n}")
            when = cp.new_int_var(0, self.horizon - 1, f"time {n}")
            cp.add(when == ii * stage + sum(s * x for s, x in enumerate(slot)))
            if node.get("before_end") is not None:
                cp.add(when == ii - node["before_end"])
            self.at.append(at)
            self.alternative.append(chosen)
            self.slot.append(slot)
            self.time.append(when)
            self.runs.append(runs)

    def _resources(self) -> None:
        users: dict[str, list[Any]] = {name: [] for name in self.problem["resources"]}
        for n, node in enumerate(self.nodes):
            for a, alternative in enumerate(node["alternatives"]):
                for name in alternative["uses"]:
                    users[name].append(self.at[n][a])
        for name, rows in users.items():
            for s in range(self.ii):
                if len(rows) > self.problem["resources"][name]:
                    self.cp.add(sum(row[s] for row in rows) <= self.problem["resources"][name])

    def _operands(self) -> None:
        """One source for each operand, landed, and in the file it is read from."""
        cp = self.cp
        #: (node, file): does its result go there?
        self.result = {}
        for n, node in enumerate(self.nodes):
            for f in self.problem["files"]:
                ways = [self.alternative[n][a] for a, x in enumerate(node["alternatives"]) if x["result"] == f]
                self.result[n, f] = sum(ways) if ways else 0
        #: node: (is it read?, last cycle in which it is read, counted in its own iteration)
        self.uses: dict[int, list[tuple[Any, Any]]] = {n: [] for n in range(len(self.nodes))}
        #: (value from outside, file): the choices that need it there.
        self.needs: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
        self.source: list[list[list[Any]]] = []
        for n, node in enumerate(self.nodes):
            chosen_sources = []
            for o, sources in enumerate(node["operands"]):
                chosen = [cp.new_bool_var(f"source {n} {o} {k}") for k in range(len(sources))]
                cp.add(sum(chosen) == self.runs[n])
                chosen_sources.append(chosen)
                for k, source in enumerate(sources):
                    if "outside" in source:
                        for a, alternative in enumerate(node["alternatives"]):
                            need = self.needs.setdefault((source["outside"], alternative["reads"][o]), [])
                            need.append((chosen[k], self.alternative[n][a]))
                        continue
                    p, distance = source["node"], source.get("distance", 0)
                    cp.add_implication(chosen[k], self.runs[p])
                    read = self.time[n] + self.ii * distance
                    cp.add(read >= self.time[p] + self.nodes[p]["latency"]).only_enforce_if(chosen[k])
                    self.uses[p].append((chosen[k], read))
                    for a, alternative in enumerate(node["alternatives"]):
                        there = self.result[p, alternative["reads"][o]]
                        cp.add(there == 1).only_enforce_if([chosen[k], self.alternative[n][a]])
            self.source.append(chosen_sources)

    def _registers(self) -> None:
        """In no cycle modulo ``ii`` more values alive than registers.

        A life begins below ``ii`` and is at most ``ii`` long. Together with its
        copy ``ii`` later it covers the cycles from ``ii`` to ``2 ii`` as the
        lives of all iterations do.
        """
        cp, ii = self.cp, self.ii
        lives: dict[str, list[Any]] = {f: [] for f in self.problem["files"]}
        for n, node in enumerate(self.nodes):
            files = [f for f in self.problem["files"] if not isinstance(self.result[n, f], int)]
            if not files:
                continue
            length = cp.new_int_var(1, ii, f"life {n}")
            for chosen, read in self.uses[n]:
                cp.add(length >= read - self.time[n] - node["latency"] + 1).only_enforce_if(chosen)
            begin = cp.new_int_var(0, ii - 1, f"lands {n}")
            lands = ((s + node["latency"]) % ii for s in range(ii))
            cp.add(begin == sum(b * x for b, x in zip(lands, self.slot[n], strict=True))).only_enforce_if(self.runs[n])
            for f in files:
                here = cp.new_bool_var(f"{n} in {f}")
                cp.add(here == self.result[n, f])
                for copy in (0, ii):
                    end = cp.new_int_var(1, 3 * ii, "")
                    lives[f].append(
                        cp.new_optional_interval_var(begin + copy, length, end, here, f"{n} in {f} + {copy}")
                    )
        for f, count in self.problem["files"].items():
            held = []
            for (v, where), needs in self.needs.items():
                if where == f:
                    held.append(cp.new_bool_var(f"outside {v} in {f}"))
                    for both in needs:
                        cp.add_bool_or([held[-1], *(x.negated() for x in both)])
            free = cp.new_int_var(0, count, f"free in {f}")
            cp.add(free == count - sum(held))
            cp.add_cumulative(lives[f], [1] * len(lives[f]), free)

    def read(self, solver: Any) -> dict[str, Any]:
        """The schedule that was found, from the cycle 0 on."""

        def first(literals: Iterable[Any]) -> int | None:
            return next((i for i, x in enumerate(literals) if solver.value(x)), None)

        runs = [bool(solver.value(x)) for x in self.runs]
        return {
            "time": [solver.value(t) if ran else None for t, ran in zip(self.time, runs, strict=True)],
            "alternative": [first(x) for x in self.alternative],
            "sources": [[first(x) for x in s] if ran else None for s, ran in zip(self.source, runs, strict=True)],
        }
