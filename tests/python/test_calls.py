"""The calls beside `run`: the same data and text as the commands of their names."""

from __future__ import annotations

import json

import pytest

import ciphermill as cm


def same(answer, cli, *command) -> None:
    """Document, rows and text are the command's."""
    printed = cli(*command, "--json")
    assert json.loads(printed.out) == json.loads(json.dumps(answer.to_dict())), printed.err
    assert cli(*command).out == f"{answer}\n"


def test_audit(cli):
    answer = cm.audit("rijndael", variant="ttable", key_bits=128)
    assert not answer.clean and answer.claimed is not True and not answer.contradicted
    assert answer.rows() == answer.findings and answer.findings[0]["file"].startswith("ciphers/rijndael/")
    same(answer, cli, "audit", "rijndael", "--variant", "ttable", "--key-bits", 128)
    on = cm.audit("rijndael", ["rv32"], variant="ttable", bytes=64)
    assert {row["machine"] for row in on.findings} == {"rv32"}


def test_explain(cli):
    answer = cm.explain("rc6", "rv32", bytes=256)
    assert answer.measurement.verified and answer.stretches[0]["looped"]
    same(answer, cli, "explain", "rc6", "--on", "rv32", "--bytes", 256)
    hottest = [row for row in answer.lines if row["stretch"] == 0]
    # Every cycle of the pass belongs to a line, or to none of the source; so does every instruction.
    assert sum(row["cycles"] for row in hottest) == pytest.approx(answer.stretches[0]["cycles"])
    assert sum(row["instructions"] for row in hottest) == len(answer.stretches[0]["instructions"])
    assert any(row["file"] == "ciphers/rc6/rc6.c" and row["text"] for row in hottest)
    assert "By source line\n" in str(answer) and len(answer.rows()) == sum(
        len(s["instructions"]) for s in answer.stretches
    )


def test_a_stall_belongs_to_the_line_that_waited():
    from ciphermill import explaining

    instructions = [{"cycle": 0, "at": 1}, {"cycle": 0, "at": 2}, {"cycle": 4, "at": 2}, {"cycle": 5, "at": 0}]
    known = {1: {"file": "a.c", "line": 7, "text": "x"}, 2: {"file": "a.c", "line": 9, "text": "y"}}
    rows = explaining.by_line({"stretches": [{"cycles": 8, "instructions": instructions}]}, known)
    # From cycle 5 to the next pass's cycle 0 are 3 cycles, for two lines; then 4 for the second, and 1 for none.
    assert [(row["line"], row["cycles"], row["instructions"]) for row in rows] == [
        (9, 5.5, 2),
        (7, 1.5, 1),
        (None, 1, 1),
    ]
    assert explaining.by_line({"stretches": [{"cycles": 8, "instructions": instructions}]}, {}) == []


def test_rtl(cli, tmp_path):
    answer = cm.rtl("zbkb", verilog_only=True)
    assert answer.right and answer.machine == "rv32" and answer.instructions
    same(answer, cli, "rtl", "zbkb", "--verilog-only")
    answer.write(tmp_path / "v")
    assert {path.name for path in (tmp_path / "v").iterdir()} == set(answer.files)
    with pytest.raises(cm.InputError, match="no extension"):
        cm.rtl([])


def test_discover(tmp_path):
    found = cm.discover("rc6", "rv32", tries=1, bytes=64)
    assert (found.cipher, found.variant, found.machine) == ("rc6", "plain", "rv32")
    assert found.best is not None and found.rows()[found.best]["saved"] > 0
    found.write(tmp_path / "found.toml")
    assert cm.run("rc6", "rv32", with_=str(tmp_path / "found.toml"), bytes=64).cycles_per_block < found.cycles_per_block
    with pytest.raises(cm.InputError, match="--inputs 9"):
        cm.discover("rc6", "rv32", inputs=9)


def test_sheet(cli):
    answer = cm.sheet("boom")
    assert answer.machine == "boom" and answer.within == all(row["within"] for row in answer.loops)
    same(answer, cli, "sheet", "boom")


def test_asm(cli):
    assert cli("asm", "rc6", "--on", "rv32", "--no-unroll").out == cm.asm("rc6", "rv32", unroll=False).text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cm.audit("rijndael", blocks="single"), "say which with --on MACHINE"),
        (lambda: cm.audit("rijndael", key_bits=17), "17"),
        (lambda: cm.explain("rijndael", "leon9"), "no machine 'leon9'"),
        (lambda: cm.explain("rijndael", "rv32", jam="2"), "--jam '2'"),
        (lambda: cm.rtl("zbkbb"), "did you mean 'zbkb'"),
        (lambda: cm.sheet("leon2"), "no microbenchmark sheet"),
        (lambda: cm.asm("rijndael", "rv32", prefix="x_"), "--prefix"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(cm.InputError) as caught:
        call()
    assert message in str(caught.value)


def test_a_keyword_that_there_is_not():
    with pytest.raises(TypeError, match="rounds"):
        cm.explain("rijndael", "rv32", rounds=3)
