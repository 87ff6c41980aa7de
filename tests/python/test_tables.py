"""Tables: as text in every width, and as data."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest
import terminal

import ciphermill as cm
from ciphermill import InputError, tables
from ciphermill.measurement import Measurement, Measurements

HEAD = ("cipher", "direction", "machine", "cycles")
ROWS = [("rijndael/ttable", "encrypt", "rv32", "1039.0"), ("rijndael/ttable", "encrypt", "c64x", "116.0")]


def drawn(width, drop=()):
    return tables.drawn(HEAD, ROWS, (3,), drop, width, colour=False)


def test_all_columns_where_they_fit():
    assert drawn(80).splitlines()[0].split() == list(HEAD)


def test_what_is_the_same_moves_above():
    lines = drawn(30).splitlines()
    assert lines[0] == "In every row cipher:"
    assert [line.split() for line in lines[-2:]] == [["encrypt", "rv32", "1039.0"], ["encrypt", "c64x", "116.0"]]


def test_what_matters_least_goes():
    lines = tables.drawn(HEAD, [*ROWS, ("rc6", "decrypt", "rv32", "1.0")], (3,), (1,), 34, colour=False).splitlines()
    assert " ".join(lines[:2]).startswith("A wider window also shows: direction.")
    assert "encrypt" not in "".join(lines)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_window(width):
    rows = [("a name that goes on and on " * 4, "encrypt", "rv32", "1039.0"), *ROWS]
    assert max(map(len, tables.drawn(HEAD, rows, (3,), (1, 2), width, colour=False).splitlines())) <= width


def test_colour_only_when_asked():
    assert "\x1b" in tables.drawn(("a",), [("NO",)], (), (), 80, colour=True)
    assert "\x1b" not in tables.drawn(("a",), [("NO",)], (), (), 80, colour=False)


def test_flat():
    record = {"a": {"b": {"c": 1}}, "names": ["x", "y"], "loops": [{"ii": 3}], "none": None}
    assert tables.flat(record) == {"a.b.c": 1, "names": "x,y", "loops": '[{"ii": 3}]', "none": None}


def test_csv_quotes_and_fills_in():
    text = tables.csv([{"a": 'say "x", y', "ok": True}, {"b": 2.5}])
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"a": 'say "x", y', "ok": "true", "b": ""}, {"a": "", "ok": "", "b": "2.5"}
    ]  # fmt: skip


def test_a_missing_package_says_how_to_get_it():
    with pytest.raises(InputError, match=r"pip install 'ciphermill\[tables\]'"):
        tables.needed("a_package_nobody_has")


@pytest.fixture(scope="module")
def several():
    return cm.run("rc6", on=["rv32", "leon2"])


def test_polars(several, tmp_path):
    polars = pytest.importorskip("polars")
    frame = several.to_polars()
    assert frame["machine"].to_list() == ["rv32", "leon2"]
    assert frame["bounds.lower"].to_list() == [m.bounds["lower"] for m in several]
    assert several[0].to_polars().height == 1
    tables.parquet(several.to_dicts(), tmp_path / "m.parquet")
    assert polars.read_parquet(tmp_path / "m.parquet").equals(frame)
    with pytest.raises(InputError, match="--parquet"):
        tables.parquet(several.to_dicts(), tmp_path / "no" / "m.parquet")


def test_pandas(several):
    pytest.importorskip("pandas")
    assert several.to_pandas()["cycles"].tolist() == [m.cycles for m in several]
    assert several[1].to_pandas().shape[0] == 1


def test_html(several):
    one = several[0]._repr_html_()
    assert one.startswith("<p>rc6/plain encrypt") and "<td>" in one
    both = several._repr_html_()
    assert both.startswith("<p>All 2 measurements are verified") and both.count("<tr") == 3
    bad = Measurement({**several[0].to_dict(), "verified": False, "failure": "<b>"})
    assert "NOT VERIFIED: &lt;b&gt;" in bad._repr_html_()
    assert Measurements()._repr_html_() == "<p>No measurements.</p>"


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_every_command_that_makes_tables(cli, xor_cipher, tmp_path):
    run = rows(cli("run", xor_cipher, "--on", "rv32,leon2", "--csv").out)
    assert [r["machine"] for r in run] == ["rv32", "leon2"]
    listed = rows(cli("list", "--csv").out)
    assert {r["what"] for r in listed} == {"cipher", "machine", "extension", "study"}
    explained = rows(cli("explain", xor_cipher, "--on", "rv32", "--csv").out)
    assert explained[0]["stretch"] == "0" and all(r["text"] for r in explained)
    made = rows(cli("rtl", "zbb", "--verilog-only", "--csv").out)
    assert {"kind", "name", "semantics"} <= set(made[0])
    audited = rows(cli("audit", "rijndael", "--csv").out)
    assert {r["kind"] for r in audited} == {"address"}
    shown = rows(cli("show", "rv32", "--csv").out)
    assert {"add", "lw"} <= {r["name"] for r in shown} and all(r["source"] for r in shown)
    pytest.importorskip("polars")
    beside = cli("list", "machines", "--json", "--parquet", "machines.parquet")
    assert beside.code == 0 and json.loads(beside.out)
    assert (tmp_path / "machines.parquet").read_bytes()[:4] == b"PAR1"


#: Commands that yield tables, each with what it needs to be called with.
TABULAR = (("run", "rc6"), ("explain", "rc6", "--on", "rv32"), ("trace", "rc6", "--on", "core2"), ("show", "rv32"), ("list",), ("study",), ("sweep", "g.toml"),
           ("audit", "rc6"), ("rtl", "zbb"), ("host", "rc6"), ("sheet", "core2"), ("silicon", "rc6"), ("discover", "rc6", "--on", "rv32"))  # fmt: skip


@pytest.mark.parametrize("words", TABULAR, ids=lambda words: words[0])
def test_what_cannot_be_written_is_said_before_the_work(refused, words):
    assert "ask for one of them" in refused(*words, "--json", "--csv")
    pytest.importorskip("polars")
    assert "there is no folder no" in refused(*words, "--parquet", "no/m.parquet")


def test_every_command_with_json_has_the_other_forms():
    import typer.main

    from ciphermill.cli import app

    commands = typer.main.get_command(app).commands
    options = {name: {o for p in c.params for o in p.opts} for name, c in commands.items()}
    # The report is a page, not a table: its document says where it is. What was tuned is one thing.
    have = {name for name, found in options.items() if "--json" in found} - {"report", "tune"}
    assert have == {words[0] for words in TABULAR}
    assert all({"--csv", "--parquet"} <= options[name] for name in have)
    assert all(p.is_flag for c in commands.values() for p in c.params if "--csv" in p.opts)


def on_a_terminal(*arguments, columns, **environment):
    """What a command writes to a terminal of so many columns."""
    return terminal.written([sys.executable, "-m", "ciphermill", *arguments], "stdout", columns, **environment)


def test_long_lines_break_between_words():
    assert tables.folded("  name       one two three four", 28) == "  name       one two three\n             four"
    assert tables.folded("one two three", 8) == "one two\nthree"
    assert tables.folded("short\n\n  kept  as it is", 30) == "short\n\n  kept  as it is"


def test_a_terminal():
    narrow = on_a_terminal("list", "extensions", columns=60)
    assert "\x1b[" in narrow
    plain = on_a_terminal("list", "extensions", columns=60, NO_COLOR="1")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 60
