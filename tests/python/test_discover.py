"""Instructions found in ciphers, as extensions that work."""

from __future__ import annotations



import pytest

import ciphermill as cm
from ciphermill import discover, engine, manifest


def found(cipher: str, variant: str, **limits) -> dict:
    module = engine.module(manifest.find(cipher), variant)
    return discover.discover(module, "rv32", engine.Options(), discover.Limits(tries=2, **limits))


def test_a_round_table_is_an_instruction(tmp_path):
    document = found("rijndael", "ttable")
    best = document["candidates"][document["best"]]
    assert (best["kind"], best["places"]) == ("tables", 16)
    path = tmp_path / "found.toml"
    discover.write(document, path)
    plain = cm.run("rijndael", "rv32", variant="ttable")
    with_it = cm.run("rijndael", "rv32", variant="ttable", with_=str(path))
    assert with_it.verified
    assert with_it.cycles_per_block == best["cycles_per_block"] == plain.cycles_per_block - best["saved"]
    # One instruction for a lookup, its rotation and its sum, as the ratified one.
    ratified = cm.run("rijndael", "rv32", variant="ttable", with_="zkne", without="aes32esi")
    assert with_it.cycles_per_block <= ratified.cycles_per_block
    assert discover.text(document).count("*") >= 1


def test_mixcolumns_is_a_matrix():
    document = found("rijndael", "compact")
    matrices = [row for row in document["candidates"] if row["kind"] == "matrix"]
    # Row 0 of MixColumns: bits 7, 8, 15, 16 and 24 of the column.
    assert any('"01018180"' in row["extension"] for row in matrices), [row["extension"] for row in matrices]
    assert all(row["saved"] > 0 and row["gates"] >= 0 for row in document["candidates"])


def test_the_gates_allowed_decide_what_is_best():
    document = found("rijndael", "compact", gates=300)
    best = document["candidates"][document["best"]]
    assert best["gates"] <= 300 and best["kind"] != "tables"
    ratios = [row["saved_per_gate"] for row in document["candidates"]]
    assert ratios == sorted(ratios, reverse=True)


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"inputs": 0}, "--inputs 0"), ({"outputs": 2}, "--outputs 2"), ({"gates": -1}, "--gates -1"), ({"tries": 0}, "--tries 0")],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(cm.InputError, match=message):
        discover.Limits(**limits).check()


def test_nothing_found_is_not_written(tmp_path):
    with pytest.raises(cm.InputError, match="nothing was found"):
        discover.write({"best": None, "candidates": []}, tmp_path / "f.toml")

