"""Exact modulo scheduling: small loops by hand, and all schedules of random
tiny ones tried one by one by a judge that shares no code with the model."""

from __future__ import annotations

import itertools
import random

import pytest

from ciphermill import _core, optimal

needs_solver = pytest.mark.skipif(not optimal.available(), reason="OR-tools is not installed (ciphermill[optimal])")


def node(uses=("u",), latency=1, operands=(), result="a", reads=None, **more):
    reads = ["a"] * len(operands) if reads is None else reads
    way = {"uses": list(uses), "result": result, "reads": reads}
    return {"latency": latency, "operands": list(operands), "alternatives": [way], **more}


def of(n, distance=0):
    return [{"node": n, "distance": distance}]


def problem(nodes, ii, stages=2, units=None, files=None, edges=(), outside=0):
    return {
        "ii": ii, "stages": stages, "resources": units or {"u": 1}, "files": files or {"a": 16},
        "nodes": list(nodes), "edges": list(edges), "outside": outside,
    }  # fmt: skip


def lawful(p, result) -> str | None:
    """What is wrong with a schedule, by the definition in the module's text."""
    ii, nodes = p["ii"], p["nodes"]
    time, ways = result["time"], result["alternative"]
    runs = [t is not None for t in time]
    used: dict = {}
    last = [None] * len(nodes)
    held: dict = {f: set() for f in p["files"]}
    for n, x in enumerate(nodes):
        if not runs[n]:
            if not x.get("optional"):
                return f"{n} does not run"
            continue
        if not 0 <= time[n] < ii * p["stages"]:
            return f"{n} is out of time"
        way = x["alternatives"][ways[n]]
        for u in way["uses"]:
            used[u, time[n] % ii] = used.get((u, time[n] % ii), 0) + 1
        for o, sources in enumerate(x["operands"]):
            source = sources[result["sources"][n][o]]
            if "outside" in source:
                held[way["reads"][o]].add(source["outside"])
                continue
            q, read = source["node"], time[n] + ii * source["distance"]
            if not runs[q] or nodes[q]["alternatives"][ways[q]]["result"] != way["reads"][o]:
                return f"{n} reads {q} where it is not"
            if read < time[q] + nodes[q]["latency"]:
                return f"{n} reads {q} too early"
            last[q] = read if last[q] is None else max(last[q], read)
    if any(count > p["resources"][u] for (u, _), count in used.items()):
        return "a unit is taken twice"
    for e in p["edges"]:
        if runs[e["from"]] and runs[e["to"]] and time[e["to"]] + ii * e["distance"] < time[e["from"]] + e["latency"]:
            return "an order is broken"
    alive = {f: [len(held[f])] * ii for f in p["files"]}
    for q, x in enumerate(nodes):
        result_file = runs[q] and x["alternatives"][ways[q]]["result"]
        if result_file:
            lands = time[q] + x["latency"]
            end = lands if last[q] is None else last[q]
            if end - lands + 1 > ii:
                return f"{q} lives too long"
            for c in range(lands, end + 1):
                alive[result_file][c % ii] += 1
    if any(max(row) > p["files"][f] for f, row in alive.items()):
        return "registers run out"
    return None


@needs_solver
@pytest.mark.parametrize(
    ("ii", "status"),
    [(2, optimal.PROVED_NONE), (3, optimal.FOUND)],
)
def test_three_operations_on_one_unit(ii, status):
    assert optimal.solve(problem([node(), node(), node()], ii))["status"] == status


@needs_solver
def test_a_recurrence():
    # A load of 5 and an exclusive-or of 1, once round a pass.
    loop = [node(latency=5, operands=[of(1, 1)]), node(uses=["v"], operands=[of(0)])]
    at = lambda ii: problem(loop, ii, units={"u": 1, "v": 1})  # noqa: E731
    assert optimal.solve(at(5))["status"] == optimal.PROVED_NONE
    found = optimal.solve(at(6))
    assert found["status"] == optimal.FOUND and lawful(at(6), found) is None
    assert (found["time"][1] - found["time"][0]) % 6 == 5


@needs_solver
def test_registers():
    # Two loads of one cycle after each other, and a sum: with one register the
    # first value is in the second's way.
    nodes = [node(), node(), node(uses=[], operands=[of(0), of(1)], result=None)]
    assert optimal.solve(problem(nodes, 2, files={"a": 2}))["status"] == optimal.FOUND
    assert optimal.solve(problem(nodes, 2, files={"a": 1}))["status"] == optimal.PROVED_NONE
    # A value from outside takes a register all the time.
    nodes[2]["operands"].append([{"outside": 0}])
    nodes[2]["alternatives"][0]["reads"].append("a")
    assert optimal.solve(problem(nodes, 2, files={"a": 2}, outside=1))["status"] == optimal.PROVED_NONE
    assert optimal.solve(problem(nodes, 2, files={"a": 3}, outside=1))["status"] == optimal.FOUND


@needs_solver
def test_a_copy_between_files_runs_only_where_it_is_needed():
    def nodes(reads):
        copy = node(uses=["x"], operands=[of(0)], result="b", optional=True)
        reader = node(uses=["v"], operands=[[*of(0), *of(1)]], result=None, reads=[reads])
        return [node(), copy, reader]

    units, files = {"u": 1, "v": 1, "x": 1}, {"a": 4, "b": 4}
    across = problem(nodes("b"), 2, stages=3, units=units, files=files)
    found = optimal.solve(across)
    assert found["status"] == optimal.FOUND and lawful(across, found) is None
    assert found["time"][1] is not None and found["sources"][2] == [1]
    home = problem(nodes("a"), 2, stages=3, units={**units, "x": 0}, files=files)
    found = optimal.solve(home)
    assert found["time"][1] is None and found["sources"][1] is None and found["sources"][2] == [0]
    # No way across: nothing.
    assert optimal.solve({**across, "resources": {**units, "x": 0}})["status"] == optimal.PROVED_NONE


def tiny(rng: random.Random):
    """A loop of two or three operations on two units and two files."""
    count = rng.choice([2, 3])
    nodes = []
    for n in range(count):
        operands = []
        for _ in range(rng.choice([0, 1, 1])):
            p = rng.randrange(count)
            operands.append([{"node": p, "distance": rng.choice([1, 1, 2]) if p >= n else rng.choice([0, 0, 1])}])
        if rng.random() < 0.3:
            operands.append([{"outside": 0}])
        ways = [
            {"uses": [rng.choice("uv")], "result": rng.choice("ab"), "reads": [rng.choice("ab") for _ in operands]}
            for _ in range(rng.choice([1, 2, 2]))
        ]
        nodes.append({"latency": rng.choice([1, 1, 2, 3]), "operands": operands, "alternatives": ways})
    edges = (
        [{"from": 0, "to": count - 1, "latency": rng.choice([0, 1, 2]), "distance": 0}] if rng.random() < 0.5 else []
    )
    return problem(
        nodes, rng.choice([1, 2, 3]), rng.choice([1, 2]), {"u": 1, "v": 1}, {"a": rng.choice([1, 2]), "b": 2}, edges, 1
    )


def any_schedule(p) -> bool:
    """Try them all."""
    times = [range(p["ii"] * p["stages"])] * len(p["nodes"])
    ways = [range(len(x["alternatives"])) for x in p["nodes"]]
    sources = [[0] * len(x["operands"]) for x in p["nodes"]]
    return any(
        lawful(p, {"time": t, "alternative": w, "sources": sources}) is None
        for w in itertools.product(*ways)
        for t in itertools.product(*times)
    )


@needs_solver
def test_random_loops_against_all_schedules():
    rng = random.Random(2000)
    seen = []
    for _ in range(240):
        p = tiny(rng)
        found = optimal.solve(p)
        there = any_schedule(p)
        assert found["status"] == (optimal.FOUND if there else optimal.PROVED_NONE), p
        if there:
            assert lawful(p, found) is None, (p, found)
        seen.append(there)
    assert 30 < sum(seen) < 210  # Both answers are common.


@needs_solver
def test_the_least_interval(tmp_path, monkeypatch):
    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path))
    three = problem([node(), node(), node()], 0)
    answer = optimal.least(three, 1, 5)
    assert (answer["ii"], answer["proved"], answer["open"]) == (3, True, [])
    assert lawful({**three, "ii": 3}, answer["schedule"]) is None
    assert optimal.least(three, 1, 2) == {"ii": None, "schedule": None, "proved": True, "open": []}
    # What was not decided is not proved.
    solve = optimal.solve
    monkeypatch.setattr(optimal, "solve", lambda p, s: {"status": optimal.UNKNOWN} if p["ii"] == 4 else solve(p, s))
    six = problem([node() for _ in range(6)], 0)
    answer = optimal.least(six, 4, 8)
    assert (answer["ii"], answer["proved"], answer["open"]) == (6, False, [4])


@needs_solver
def test_a_real_loop_is_scheduled_lawfully():
    """Two columns of two lookups each, every one fed by both, on two sides with
    a cross path each. A lookup takes 1 + 5 + 1 cycles round; at 7 nothing has
    any slack, so all four extractions would meet in one cycle on two units."""
    units = dict.fromkeys(("s1", "s2", "d1", "d2", "x1", "x2", "l1", "l2"), 1)

    def ways(family, operands):
        home = [{"uses": [f"{family}{i + 1}"], "result": f, "reads": [f] * operands} for i, f in enumerate("ab")]
        crossing = [
            {"uses": [f"{family}{i + 1}", f"x{i + 1}"], "result": f, "reads": [g, *[f] * (operands - 1)]}
            for i, (f, g) in enumerate(("ab", "ba"))
        ]
        return home + (crossing if family != "d" and operands else [])

    def operation(family, latency, *operands):
        return {"latency": latency, "operands": list(operands), "alternatives": ways(family, len(operands))}

    nodes = []
    for column in range(2):
        last = 5 * (1 - column) + 4
        base = len(nodes)
        nodes += [operation("s", 1, of(last, 1)), operation("d", 5, of(base)), operation("s", 1, of(base + 4, 1))]
        nodes += [operation("d", 5, of(base + 2)), operation("l", 1, of(base + 1), of(base + 3))]
    loop = problem(nodes, 8, 2, units, {"a": 8, "b": 8})
    assert optimal.solve({**loop, "ii": 7})["status"] == optimal.PROVED_NONE
    found = optimal.solve(loop)
    assert found["status"] == optimal.FOUND and lawful(loop, found) is None


@needs_solver
def test_decided_problems_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path))
    first = optimal.kept(problem([node()], 1))
    monkeypatch.setattr(optimal, "solve", None)
    assert optimal.kept(problem([node()], 1)) == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ii": 0}, "`ii` and `stages` must be at least 1"),
        ({"resources": {}}, "node 0 uses a resource that is not listed"),
        ({"files": {}}, "node 0 names a file that is not listed"),
        ({"edges": [{"from": 0, "to": 9, "latency": 1, "distance": 0}]}, "an edge names a node that is not there"),
        ({"nodes": [{"latency": 1}]}, "'alternatives' is missing or malformed"),
    ],
)
def test_what_is_no_problem_is_refused(change, message):
    with pytest.raises(_core.InputError, match="scheduling problem: ") as error:
        optimal.check({**problem([node()], 1), **change})
    assert message in str(error.value)


def test_a_missing_solver_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(_core.InputError, match=r"pip install 'ciphermill\[optimal\]'"):
        optimal.solve(problem([node()], 1))
