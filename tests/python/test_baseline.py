"""Measurements beside a baseline: what counts as worse, and what it does to the exit code."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import typer
from samples import ROOT

from ciphermill import InputError, compare
from ciphermill.cli import app

ASKED = {
    "cipher": "x", "variant": "plain", "direction": "encrypt", "key_bits": 128, "blocks": "multi", "bytes": 4096,
    "machine": "rv32", "with": [], "without": [], "set": [], "verified": True,
}  # fmt: skip


def entry(cycles=1000.0, code=500, **more):
    evidence = {"module": "a", "machine": "b", "settings": "c", "ciphermill": "1"}
    return {**ASKED, "cycles_per_block": cycles, "code_bytes": code, "provenance": evidence} | more


@pytest.fixture
def baseline(write):
    def put(*entries, **more):
        return write("baseline.json", json.dumps({"schema": 1, "measurements": entries} | more))

    return put


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], (0, 0, 0)),
        (["1%"], (0.01, 0.01, 0.01)),
        (["cycles=0.5%, code=0.02"], (0.005, 0.02, 0)),
        (["cycles=3%", "1%"], (0.03, 0.01, 0.01)),
    ],
)
def test_tolerances(given, expected):
    assert tuple(compare.tolerances(given).values()) == pytest.approx(expected)


@pytest.mark.parametrize("given", ["much", "-1%", "1%%", "inf", "nan", "cycles="])
def test_a_tolerance_that_says_nothing(given):
    with pytest.raises(InputError, match="say how much worse"):
        compare.tolerances([given])


def test_an_amount_without_its_percent():
    with pytest.raises(InputError, match="--tolerance cycles=5: write 5%, or a fraction below 1"):
        compare.tolerances(["cycles=5"])
    assert compare.tolerances(["500%"])["cycles"] == 5


def test_an_unknown_metric():
    with pytest.raises(InputError, match="no metric 'time'; there are cycles, code, gates"):
        compare.tolerances(["time=1%"])


@pytest.mark.parametrize(
    ("now", "tolerance", "worse"),
    [
        (entry(), "0", []),
        (entry(cycles=1000.5), "0", ["cycles"]),
        (entry(cycles=1010.0), "1%", []),
        (entry(cycles=1010.5), "1%", ["cycles"]),
        (entry(cycles=900.0, code=501), "0", ["code"]),
        (entry(cycles=900.0, code=501), "code=1%", []),
        (entry(cycles=1100.0, code=600), "5%", ["cycles", "code"]),
    ],
)
def test_what_is_worse(baseline, now, tolerance, worse):
    result = compare.measurements(baseline(entry()), [now], compare.tolerances([tolerance]))
    assert [change.metric for change in result.worse] == worse


def test_gates_and_no_gates_before(baseline):
    result = compare.measurements(
        baseline(entry(code=0, gates=100)), [entry(code=8, gates=103)], compare.tolerances(["2%"])
    )
    assert [(c.metric, c.relative) for c in result.worse] == [("code", float("inf")), ("gates", pytest.approx(0.03))]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["worse"] == 2


def test_the_text_says_what_and_why(baseline):
    now = entry(cycles=1100.0, code=400, provenance={"module": "z", "machine": "b", "settings": "c", "ciphermill": "1"})
    new = entry(machine="leon2")
    path = baseline(entry(), entry(machine="c64x"))
    text = compare.text(compare.measurements(path, [now, new], compare.tolerances([])))
    first, *rest = text.splitlines()
    assert first == (
        f"Worse than {path} in 1 of 2 figures, most of all cycles a block of "
        "x/plain encrypt, 128-bit key, on rv32: 1000 to 1100, +10.00 %."
    )
    table = [line.split("  ") for line in rest if "128-bit key, on rv32" in line]
    assert [[cell.strip() for cell in line if cell.strip()][1:] for line in table] == [
        ["cycles a block", "1000", "1100", "+10.00 %", "0.00 %", "WORSE", "the compiled module"],
        ["bytes of code", "500", "400", "-20.00 %", "0.00 %", "better", "the compiled module"],
    ]
    assert "not in the baseline: x/plain encrypt, 128-bit key, on leon2" in rest
    assert "in the baseline and not measured now: 1, first x/plain encrypt, 128-bit key, on c64x" in rest


def test_rows_of_hardware(write):
    path = write(
        "gates.json",
        json.dumps({"schema": 1, "instructions": [{"name": "a", "gates": 10.0}, {"name": "r", "refused": "no"}]}),
    )
    result = compare.instructions(
        path, [{"name": "a", "gates": 12.0}, {"name": "b", "gates": 1.0}], compare.tolerances([])
    )
    assert [(c.title, c.before, c.after) for c in result.worse] == [("a", 10.0, 12.0)]
    assert result.new == ("b",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no list of measurements"),
        ('{"schema": 1, "measurements": [3]}', "no list of measurements"),
        ('{"schema": 2, "measurements": []}', "schema 2"),
        ('{"schema": 1, "measurements": [{}]}', "has no 'cipher'"),
        ('{"schema": 1, "measurements": []}', "nothing in it was measured now"),
        (json.dumps({"schema": 1, "measurements": [entry(verified=False)]}), "is not verified"),
        (json.dumps({"schema": 1, "measurements": [entry(gates=3)]}), "has gates there and none now"),
    ],
)
def test_a_baseline_that_cannot_be_used(write, content, message):
    with pytest.raises(InputError, match=message):
        compare.measurements(write("b.json", content), [entry()], compare.tolerances([]))


def test_the_command(cli, xor_cipher, tmp_path):
    now = cli("run", xor_cipher, "--on", "rv32", "--json", "--benchmark-json", "bench.json")
    assert now.code == 0
    (tmp_path / "base.json").write_text(now.out)
    same = cli("run", xor_cipher, "--on", "rv32", "--compare", "base.json")
    assert same.code == 0
    assert same.out.startswith("Nothing changed against base.json: 2 figures are the same.\n")

    document = json.loads(now.out)
    (m,) = document["measurements"]
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert [(f["unit"], f["value"]) for f in figures] == [
        ("cycles a block", m["cycles_per_block"]), ("bytes of code", m["code_bytes"])
    ]  # fmt: skip
    assert len({f["name"] for f in figures}) == 2 and m["provenance"]["module"] in figures[0]["extra"]

    m["cycles_per_block"] *= 0.9
    (tmp_path / "base.json").write_text(json.dumps(document))
    worse = cli("run", xor_cipher, "--on", "rv32", "--compare", "base.json", "--tolerance", "5%")
    assert worse.code == 1 and worse.out.startswith("Worse than base.json in 1 of 2 figures")
    assert worse.err == ""
    data = cli("run", xor_cipher, "--on", "rv32", "--compare", "base.json", "--tolerance", "5%", "--json")
    assert data.code == 1 and json.loads(data.out)["comparison"]["worse"] == 1
    assert data.err.startswith("ciphermill: Worse than base.json")
    accepted = cli("run", xor_cipher, "--on", "rv32", "--compare", "base.json", "--tolerance", "cycles=12%")
    assert accepted.code == 0 and "1 worse within it" in accepted.out


def test_a_key_set_up_has_no_blocks(baseline):
    setup = entry(direction="keysetup", bytes=0)
    found = compare.measurements(baseline(setup), [setup | {"cycles_per_block": 1200.0}], compare.tolerances([]))
    assert "cycles a key set-up of" in compare.sentence(found) and "a block" not in compare.text(found)
    assert compare.benchmark([setup])[0]["unit"] == "cycles a key set-up"


def test_a_missing_baseline_is_said_before_the_work(refused):
    assert "No such file" in refused("run", "rijndael", "--on", "rv32", "--compare", "none.json")
    assert "nothing was added with --with" in refused("run", "rijndael", "--on", "rv32", "--gates")


def test_the_workflow_to_copy_asks_for_what_there_is():
    text = (ROOT / "docs" / "examples" / "cipher-speed.yml").read_text()
    (command,) = re.findall(r"run: >\n((?: {10}.*\n)+)", text)
    values = {"$CIPHER": "c", "$MACHINES": "rv32", "$BASELINE": "b.json"}
    program, name, *arguments = [values.get(word, word) for word in shlex.split(command)]
    assert program == "ciphermill"
    # Parsed, not run: an option that does not exist would be an error here.
    typer.main.get_command(app).commands[name].make_context(name, arguments)
