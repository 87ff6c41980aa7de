"""Instructions found in ciphers, as extensions that work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ciphermill as cm
from ciphermill import discovering as discover
from ciphermill import engine, manifest, synthesis


def found(cipher: str, variant: str | None, on: str = "rv32", tries: int = 2, **limits) -> dict:
    module = engine.module(manifest.find(cipher), variant)
    return discover.discover(module, on, engine.Options(), discover.Limits(tries=tries, **limits))


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
    [
        ({"inputs": 0}, "--inputs 0"),
        ({"outputs": 4}, "--outputs 4"),
        ({"gates": -1}, "--gates -1"),
        ({"tries": 0}, "--tries 0"),
    ],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(cm.InputError, match=message):
        discover.Limits(**limits).check()


def test_nothing_found_is_not_written(tmp_path):
    with pytest.raises(cm.InputError, match="nothing was found"):
        discover.write({"best": None, "candidates": []}, tmp_path / "f.toml")


def test_two_results_of_one_instruction(cli, tmp_path):
    document = found("twofish", "full-keying", outputs=2)
    rows = [row for row in document["candidates"] if row["outputs"] == 2]
    assert rows and all("rd2 = " in row["semantics"] and row["saved"] > 0 for row in rows)
    path = tmp_path / "found.toml"
    discover.write({"candidates": rows, "best": 0}, path)
    measured = cm.run("twofish", "rv32", variant="full-keying", with_=str(path))
    assert measured.verified and measured.cycles_per_block == rows[0]["cycles_per_block"]
    # Both results of one and the same instruction are used.
    listing = cli("asm", "twofish", "--variant", "full-keying", "--on", "rv32", "--with", path).out
    uses = re.findall(r"found (\w+), (\w+),", listing)
    assert uses and all(first != second for first, second in uses)


def test_constants_that_the_machine_complements_are_recognised():
    """LEON-2 takes 0x01010101 as the complement of another mask."""
    document = found("rijndael", "compact", on="leon2", tries=1)
    cones = [row for row in document["candidates"] if row["kind"] == "cone"]
    assert cones and cones[0]["places"] == 4


def test_the_sums_of_ascon_are_one_instruction(monkeypatch, tmp_path):
    """Five sums of a word and two of its rotates, on a machine that has no rotates."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    document = found("ascon", None, on="rv64", tries=1)
    best = document["candidates"][document["best"]]
    assert (best["semantics"], best["places"]) == ("rd = (rotl(rs1, imm) ^ rotl(rs1, imm2)) ^ rs1", 5)
    # The specification has rotations to the right, by 19 and 28 and so on.
    right = [(19, 28), (61, 39), (1, 6), (10, 17), (7, 41)]
    for operand, amounts in zip(("imm", "imm2"), zip(*right, strict=True), strict=True):
        values = re.search(rf"\b{operand} = {{ values = \[(.*?)\]", best["extension"])[1]
        assert {64 - int(v) for v in values.split(", ")} <= {amount for pair in right for amount in pair}, amounts
    path = tmp_path / "found.toml"
    discover.write(document, path)
    measured = cm.run("ascon", "rv64", with_=str(path))
    assert measured.verified and measured.cycles_per_block == best["cycles_per_block"]


def test_the_mix_of_threefish_is_one_instruction(cli, monkeypatch, tmp_path):
    """A sum of two words, and the rotated second added to it, by 29 amounts in 288 places."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    path = Path(__file__).parent / "foreign" / "threefish.c"
    # The Skein submission's NIST package: no key, no tweak, no plaintext.
    assert cm.cipher(path).encrypt(bytes(64), bytes(64)).hex().startswith("b1a2bbc6ef6025bc40eb3822161f36e3")
    document = found(path, None, on="rv64", tries=1, outputs=2)
    best = document["candidates"][document["best"]]
    assert best["semantics"] == "let part0 = (rs1 + rs2); rd = part0; rd2 = rotl(rs1, imm) ^ part0"
    assert best["places"] == 72 * 4
    written = tmp_path / "found.toml"
    discover.write(document, written)
    measured = cm.run(path, "rv64", with_=str(written))
    assert measured.verified and measured.cycles_per_block == best["cycles_per_block"]
    listing = cli("asm", path, "--on", "rv64", "--with", written).out
    assert len(re.findall(r"found \w+, \w+,", listing)) >= 72 * 4


@pytest.mark.parametrize("machine", ["rv64", "zen5"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_round_table_on_words_of_64_bits(machine, inputs, monkeypatch, tmp_path):
    """Four tables that are one, rotated by the byte they belong to, are an S-box and a matrix; what
    is looked up is added to another word, if there may be one."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    document = found("rijndael", "ttable", on=machine, tries=1, inputs=inputs)
    best = document["candidates"][document["best"]]
    assert (best["kind"], best["places"]) == ("tables", 16)
    assert f"linear(spread, lookup[(rs{inputs} >>u (bs << 3))[7:0]])" in best["semantics"]
    assert ("rd = rs1 ^ " in best["semantics"]) == (inputs == 2)
    path = tmp_path / "found.toml"
    discover.write(document, path)
    measured = cm.run("rijndael", machine, variant="ttable", with_=str(path))
    assert measured.verified and measured.cycles_per_block == best["cycles_per_block"]


def test_machines_of_clusters():
    assert discover.encoding("c64x") == {"timing": "lsd", "registers": "r", "crossing": "src2"}
    assert discover.encoding("core2") == {"timing": "alu"}
    with pytest.raises(cm.InputError, match="one result only"):
        found("rijndael", "compact", on="c6201", outputs=2)


@pytest.mark.parametrize("cipher", ["mars", "twofish", "serpent", "rabbit", "sosemanuk"])
def test_something_is_found_in_every_cipher(cipher, monkeypatch):
    """Priced in unit gates, as where Yosys is not installed."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    document = found(cipher, None, inputs=3, outputs=2, tries=1)
    assert document["gates_by"].startswith("unit gates")
    best = document["candidates"][document["best"]]
    assert best["saved"] > 0 and best["gates"] > 0 and best["semantics"] in discover.text(document)
    assert not [row for row in document["others"] if row["refused"]]
