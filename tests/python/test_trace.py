"""Micro-operations on their way through an out-of-order core, and the forms they are shown in."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

import ciphermill as cm
from ciphermill import tracing
from ciphermill.tracing import diagram, kanata, perfetto


@pytest.fixture(scope="module")
def rows():
    return cm.trace("sosemanuk", on="core2", variant="branching", first=2000, count=400).pipeline


def test_stages_follow_each_other(rows):
    retired = [row for row in rows if not row["squashed"]]
    squashed = [row for row in rows if row["squashed"]]
    assert squashed and any(row["issue"] is None for row in squashed)
    for row in retired:
        assert row["fetch"] <= row["decode"] < row["rename"] <= row["issue"] <= row["complete"] <= row["retire"]
        assert row["squash"] is None and (row["port"] is None) == (row["kind"] == "nothing")
    for row in squashed:
        assert row["fetch"] <= row["decode"] < row["rename"] < row["squash"]
        assert row["retire"] is None and row["instruction"] is None
        assert row["issue"] is None or row["rename"] <= row["issue"] < row["squash"]
    # In order, four a cycle at most where the machine says so; a fused pair is one place.
    assert [row["instruction"] for row in retired] == sorted(row["instruction"] for row in retired)
    assert (retired[0]["instruction"], retired[-1]["instruction"]) in {(2000, 2398), (2000, 2399)}
    for stage in ("rename", "retire"):
        cycles = [row[stage] for row in retired]
        assert cycles == sorted(cycles)
        assert max(cycles.count(c) for c in cycles) <= 8
    # A port starts one micro-operation a cycle.
    starts = [(row["port"], row["issue"]) for row in rows if row["port"] and row["issue"] is not None]
    assert len(starts) == len(set(starts))
    # What follows a wrong path is fetched when fetch has left that; what was renamed goes later.
    for wrong, right in pairwise(rows):
        if wrong["squashed"] and not right["squashed"]:
            assert right["fetch"] > wrong["rename"]


def test_kanata(rows):
    text = kanata.text(rows)
    head, start, *lines = text.splitlines()
    assert head == "Kanata\t0004" and re.fullmatch(r"C=\t\d+", start)
    now, begun, open_stage, ended = int(start[3:]), {}, {}, {}
    seen: dict[int, list[tuple[str, int]]] = {}
    for line in lines:
        command, *fields = line.split("\t")
        if command == "C":
            assert int(fields[0]) > 0
            now += int(fields[0])
            continue
        number = int(fields[0])
        if command == "I":
            assert number == len(begun)
            begun[number] = now
        assert number in begun and number not in ended
        if command == "S":
            assert number not in open_stage
            open_stage[number] = fields[2]
            seen.setdefault(number, []).append((fields[2], now))
        if command == "E":
            assert open_stage.pop(number) == fields[2]
        if command == "R":
            assert number not in open_stage
            ended[number] = (now, fields[2] == "1")
    assert set(begun) == set(ended) == set(range(len(rows)))
    by_fetch = sorted(rows, key=lambda row: row["fetch"])
    for number, row in enumerate(by_fetch):
        assert ended[number] == (tracing.end(row) + 1, row["squashed"])
        assert begun[number] == row["fetch"] and dict(seen[number]).get("X") == row["issue"]


def test_perfetto(rows):
    document = json.loads(json.dumps(perfetto.document(rows, "a run")))
    events = document["traceEvents"]
    assert {e["ph"] for e in events} == {"X", "M"}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    whole = [e for e in events if e["ph"] == "X" and e["pid"] == perfetto.WINDOW and e["cat"] != "stage"]
    assert len(whole) == len(rows) and {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} == named
    lanes: dict[int, int] = {}
    for e in whole:
        # In a lane nothing overlaps.
        assert e["dur"] > 0 and e["ts"] >= lanes.get(e["tid"], 0)
        lanes[e["tid"]] = e["ts"] + e["dur"]
    stages = [e for e in events if e.get("cat") == "stage"]
    assert {e["name"] for e in stages} == {"fetch", "decode", "rename", "wait", "execute", "done"}
    assert all(
        any(w["tid"] == e["tid"] and w["ts"] <= e["ts"] and e["ts"] + e["dur"] <= w["ts"] + w["dur"] for w in whole)
        for e in stages[:50]
    )


ROW = {
    "text": "add eax, ebx", "address": 16, "instruction": 0, "micro_op": 0, "kind": "compute", "fetch": 10, "decode": 12,
    "rename": 13, "issue": 16, "complete": 18, "retire": 20, "squashed": False, "squash": None, "port": "p0",
}  # fmt: skip


def test_the_diagram_by_hand():
    wrong = {**ROW, "text": "mov ecx, [esp + 8]", "kind": "load", "fetch": 11, "issue": None, "complete": None}
    wrong |= {"retire": None, "instruction": None, "squashed": True, "squash": 17, "port": None}
    far = {**ROW, "fetch": 400, "decode": 402, "rename": 403, "issue": 700, "complete": 701, "retire": 702}
    assert (
        diagram.text([ROW, wrong, far])
        == """\
                                cycle 10
add eax, ebx              p0    F.DN..X=C.R
> mov ecx, [esp + 8]             FDN...*

                                cycle 400, 7 a column
add eax, ebx              p0    N.........................................XR

F fetched, D decoded, N renamed, X starts, = runs, C result there, R retires; >
wrong path, * thrown away."""
    )


def test_spans_by_hand():
    assert list(tracing.spans(ROW)) == [
        ("fetch", 10, 12), ("decode", 12, 13), ("rename", 13, 14), ("wait", 14, 16), ("execute", 16, 18), ("done", 18, 21),
    ]  # fmt: skip
    # A copy that renaming does: there with its operand, through no port.
    copy = {**ROW, "kind": "nothing", "port": None, "issue": 13, "complete": 13, "retire": 15}
    assert list(tracing.spans(copy)) == [("fetch", 10, 12), ("decode", 12, 13), ("done", 13, 16)]


def test_the_command(cli, tmp_path):
    answer = cli("trace", "rc6", "--on", "core2", "--count", "12")
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert answer.out.startswith("rc6/plain encrypt, 128-bit key, on core2: instructions ")
    answer = cli("trace", "rc6", "--on", "boom", "--count", "5", "--json", "--kanata", "k.log", "--perfetto", "p.json")
    (measurement,) = json.loads(answer.out)["measurements"]
    assert measurement["verified"] and len({row["instruction"] for row in measurement["pipeline"]} - {None}) == 5
    assert (tmp_path / "k.log").read_text().startswith("Kanata\t0004\n")
    assert json.loads((tmp_path / "p.json").read_text())["traceEvents"]


@pytest.mark.parametrize("machine", ["core2", "pentiumpro"])
@pytest.mark.parametrize(("cipher", "variant"), [("sosemanuk", "bytewise"), ("rijndael", "ttable"), ("des", "tables")])
def test_a_run_with_a_log_takes_the_cycles_of_one_that_is_recalled(machine, cipher, variant):
    """Of stretches that the core has done before a run recalls the cycles; one with a log works all of them out. The core
    compares the two. A load and its user in one instruction once counted as a read of what that user's register had before."""
    assert cm.trace(cipher, on=machine, variant=variant, count=1).verified


def test_refused(refused):
    assert "rv32 has no out-of-order core" in refused("trace", "rc6", "--on", "rv32")
    assert refused("trace", "rc6", "--on", "core2", "--first", "999999999").startswith(
        "--first 999999999: the run retires"
    )
    assert refused("trace", "rc6", "--on", "core2", "--count", "0").startswith("--count 0: a trace has 1 to")
