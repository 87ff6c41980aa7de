"""Pictures of what commands say: `--plot FILE`."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("vl_convert")

import ciphermill as cm
from ciphermill import plots

GRID = '[[grid]]\ncipher = "rc6"\non = "epic"\nbytes = 64\nset = { "issue.width" = [1, 2] }\n'


def test_files_are_what_their_names_say(cli, tmp_path):
    answer = cli("run", "rc6", "--on", "rv32", "--bytes", 256, "--plot", "x.svg")
    assert answer.code == 0 and "cycles a block" in answer.out
    svg = (tmp_path / "x.svg").read_text()
    assert svg.startswith("<svg") and "rc6/plain encrypt" in svg
    assert cli("explain", "rc6", "--on", "rv32", "--bytes", 256, "--plot", "y.png").code == 0
    assert (tmp_path / "y.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    # The picture is what was asked for, not the diagram.
    assert cli("trace", "rc6", "--on", "core2", "--count", 8, "--plot", "z.svg").out == ""
    assert "execute" in (tmp_path / "z.svg").read_text()


def test_a_sweep(cli, write, tmp_path):
    write("grid.toml", GRID)
    answer = cli("sweep", "grid.toml", "--plot", "s.svg", "--json")
    assert answer.code == 0 and len(json.loads(answer.out)["measurements"]) == 2
    assert "issue.width" in (tmp_path / "s.svg").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ("run", "rc6", "--on", "rv32"),
        ("explain", "rc6", "--on", "rv32"),
        ("trace", "rc6", "--on", "core2"),
        ("sweep", "g.toml"),
    ],
)
def test_what_cannot_be_drawn(refused, write, tmp_path, command):
    write("g.toml", GRID)
    message = refused(*command, "--plot", "x.pdf")
    assert message == "--plot x.pdf: the name of a drawing ends in .svg or .png"
    assert "there is no folder" in refused(*command, "--plot", "nowhere/x.svg")
    assert not list(tmp_path.glob("*.sqlite"))


def test_what_is_drawn():
    two = cm.run("rc6", ["rv32", "core2"], bytes=256)
    rows = plots.run(two)["data"]["values"]
    assert [(row["cycles"], row["bound"]) for row in rows] == [(m.cycles_per_block, m.bounds["lower"]) for m in two]
    explained = cm.explain("rc6", "rv32", bytes=256)
    drawn = plots.explain(explained.measurement, explained.document)["data"]["values"]
    assert sum(row["cycles"] for row in drawn) == pytest.approx(explained.stretches[0]["cycles"])
    # Where no cycle belongs to one instruction: what the cycles are.
    explained = cm.explain("rc6", "core2", bytes=256)
    drawn = plots.explain(explained.measurement, explained.document)["data"]["values"]
    assert sum(row["cycles"] for row in drawn) == pytest.approx(explained.measurement.cpi, abs=0.01)


def test_python_draws_what_the_commands_draw(write, tmp_path):
    """`plot()`: what a notebook shows, and the same in a file."""
    two = cm.run("rc6", ["rv32", "core2"], bytes=256)
    assert two.plot().spec == plots.run(two) and two[0].plot().spec == plots.run(two[:1])
    explained = cm.explain("rc6", "rv32", bytes=256)
    assert explained.plot().spec == plots.explain(explained.measurement, explained.document)
    swept = cm.sweep(str(write("grid.toml", GRID)))
    assert [row["along"] for row in swept.plot().spec["data"]["values"]] == [1, 2]
    picture = two.plot()
    assert picture._repr_svg_().startswith("<svg") and "Cycles" in repr(picture)
    picture.write(tmp_path / "two.png")
    assert (tmp_path / "two.png").read_bytes() == picture.png() != b""
    with pytest.raises(cm.InputError, match=r"plot .*x\.pdf: the name of a drawing ends in"):
        picture.write(tmp_path / "x.pdf")
