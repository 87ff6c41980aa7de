"""Microbenchmarks of the out-of-order machines, beside published values."""

from __future__ import annotations

import json

import pytest
from ciphermill import sheet


@pytest.mark.parametrize("machine", sheet.names())
def test_every_residual_is_within_bounds(machine):
    filled = sheet.run(machine)
    assert [row for row in filled["rows"] if not row["within"]] == []
    assert all(row["source"] for row in filled["rows"])
    names = [(row["group"], row["loop"]) for row in filled["rows"]]
    assert len(names) == len(set(names))


def test_a_residual_by_hand():
    head = {"source": "somewhere"}
    loop = {"name": "x", "group": "latency", "body": ["a", "b"], "copies": 5, "expected": [2, 3]}
    turn = {"cycles": 45.0, "events": {"branches_mispredicted": 0.5}}
    row = sheet.row(head, loop, turn, {})
    assert (row["ours"], row["residual"], row["within"], row["source"]) == (4.5, 1.5, False, "somewhere")
    assert sheet.row(head, {**loop, "each": 1}, turn, {})["ours"] == 9
    assert sheet.row(head, {**loop, "expected": 5.2}, turn, {})["within"]
    # Ten cycles more than the other loop, for a quarter of a wrong guess more.
    other = {"cycles": 35.0, "events": {"branches_mispredicted": 0.25}}
    assert sheet.row(head, {**loop, "less": "y"}, turn, {"y": other})["ours"] == 40
    assert not sheet.row(head, {**loop, "count": "branches_mispredicted", "expected": 0.4}, turn, {})["within"]


def test_the_command(cli):
    answer = cli("sheet", "boom", "--json")
    assert answer.code == 0
    rows = json.loads(answer.out)["rows"]
    assert {"latency", "throughput", "load latency", "predictors", "misprediction"} == {row["group"] for row in rows}
    text = cli("sheet", "boom").out
    assert text.startswith(f"boom: {len(rows)} of {len(rows)} figures are within one cycle or a tenth of the expected ones.\n")


def test_refused(refused):
    assert refused("sheet", "leon2").startswith("no microbenchmark sheet for 'leon2'; there are boom, core2, pentiumpro, zen5")


def test_the_page():
    page = sheet.page()
    assert all(f"\n## {machine}\n" in page for machine in sheet.names()) and "| NO |" not in page
