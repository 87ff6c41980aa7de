"""Tables: as text in every width, and as data."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

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
    pytest.importorskip("polars")
    beside = cli("list", "machines", "--json", "--parquet", "machines.parquet")
    assert beside.code == 0 and json.loads(beside.out)
    assert (tmp_path / "machines.parquet").read_bytes()[:4] == b"PAR1"


def test_two_documents_do_not_fit_one_output(refused):
    assert "ask for one of them" in refused("list", "--json", "--csv")


def on_a_terminal(*arguments, columns, **environment):
    """What a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "ciphermill", *arguments], stdout=theirs, stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm", **environment},
    ) as process:  # fmt: skip
        os.close(theirs)
        out = b""
        try:
            while chunk := os.read(ours, 65536):
                out += chunk
        except OSError:  # the other side has been closed
            pass
    os.close(ours)
    assert process.returncode == 0
    return out.decode().replace("\r\n", "\n")


def test_a_terminal():
    narrow = on_a_terminal("list", "extensions", columns=60)
    assert "\x1b[" in narrow
    plain = on_a_terminal("list", "extensions", columns=60, NO_COLOR="1")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 60
