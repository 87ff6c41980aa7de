"""The HTML report: one file, nothing from elsewhere, evidence for every number."""

from __future__ import annotations

import base64
import gzip
import html.parser
import json
import re

import pytest
import small_page

from ciphermill import _core, kept, paths
from ciphermill.measurement import Measurement
from ciphermill.study import layout
from ciphermill.webreport import colours, commentary, evidence, kernels, page

altair = pytest.importorskip("altair", reason="altair is not installed (pip install 'ciphermill[report]')")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed (pip install 'ciphermill[report]')")
pytest.importorskip("jinja2", reason="jinja2 is not installed (pip install 'ciphermill[report]')")

@pytest.fixture
def commented(monkeypatch, tmp_path):
    """Read the small study with another commentary."""

    def make(report: str) -> commentary.Commentary:
        place = small_page.folder(tmp_path, report)
        monkeypatch.setattr(paths, "STUDIES", place.parent)
        return commentary.load(layout.load(place))

    return make


@pytest.fixture
def content(tmp_path, monkeypatch):
    """What a page is made of: a study of two ciphers, and a small start page."""
    return small_page.content(tmp_path, monkeypatch)


class Reader(html.parser.HTMLParser):
    """What the tests ask of a page: its elements, its texts, its embedded data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open = [*self.open, tag] if tag in ("script", "style") else self.open

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.open.pop()

    def handle_data(self, text):
        if not self.open:
            self.words.append(text)
        elif self.open[-1] == "script":
            attributes = next(a for t, a in reversed(self.tags) if t == "script")
            name = attributes.get("id") or attributes.get("class", "")
            # Of those with only a class, the first.
            self.scripts.setdefault(name, text)


def test_the_page_stands_alone_and_its_tables_need_no_script(content):
    text = page.render(content)
    reader = Reader(text)
    assert page.render(content) == text
    for tag, attributes in reader.tags:
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:")), (tag, name, value)
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    words = " ".join(reader.words)
    assert "A study <of> two" in words and "P & Q" in words
    rc6 = content.studies[0][0].cells["t", "a", "cycles"]
    for shown in ("100", f"{rc6.ratio:.2f}", "machine nowhere is not there", "What agrees.", "Much.", "geometric mean"):
        assert shown in words
    assert len(text) < 3_000_000
    ids = [a["id"] for _, a in reader.tags if "id" in a]
    assert len(ids) == len({*ids})


def test_every_number_has_its_evidence(content):
    reader = Reader(page.render(content))
    data = json.loads(reader.scripts["data"])
    chosen = [a for _, a in reader.tags if "data-cell" in a]
    assert {int(a["data-cell"]) for a in chosen} == {*range(len(data["cells"]))}
    (result, _) = content.studies[0]
    for cell, record in zip(result.cells.values(), data["cells"], strict=True):
        assert record["ours"] == cell.ours and record["paper"] == cell.paper
        if cell.measurement is not None:
            found = data["evidence"][record["evidence"]]
            assert found["machine"] == {"file": "machines/rv32.toml", "hash": cell.measurement.provenance["machine"]}
            assert found["module"]["hash"] == cell.measurement.provenance["module"]
            assert found["bounds"]["lower"] == cell.measurement.bounds["lower"]
            assert record["paper_place"].endswith(f"figures.toml: t.{cell.row.key}.{cell.column.key}")
    rate = next(c for c in data["cells"] if c["label"] == "Second, rate")
    assert [data["cells"][i]["label"] for i in rate["formula"]["of"]] == ["Second, speed"]
    buttons = [a for t, a in reader.tags if t == "button" and "data-evidence" in a]
    assert len(buttons) == 5 and all(int(a["data-evidence"]) < len(data["evidence"]) for a in buttons)


def test_the_command_gets_the_number_again(content, cli):
    (result, _) = content.studies[0]
    cell = result.cells["t", "b", "cycles"]
    words = evidence.command(cell.asked).split()
    assert words[0] == "ciphermill"
    again = json.loads(cli(*words[1:], "--json").out)["measurements"][0]
    assert again["cycles_per_block"] == cell.ours and again["provenance"] == cell.measurement.provenance


def test_a_command_has_all_that_was_asked():
    asked = {"cipher": "rc6", "on": "c6201", "key_bits": 128, "unroll": False, "with": ["a", "b"], "set": ["x.y=1"], "jam": None, "aligned": True, "optimal": False}
    words = "ciphermill run rc6 --on c6201 --key-bits 128 --no-unroll --with a --with b --set x.y=1 --aligned"
    assert evidence.command(asked) == words


@pytest.mark.parametrize(("ours", "word"), [(100, "near"), (120, "off"), (80, "off"), (200, "far"), (0, "far"), (None, "")])
def test_how_far_off_is_said_in_both_directions(content, ours, word):
    cell = content.studies[0][0].cells["t", "a", "cycles"]
    cell.ours = ours
    assert page.near(cell) == word
    assert page.render(content)


def test_a_circuit_is_no_measurement_of_a_program(content):
    """A cell of gates, as `hardware` gives it: no cycles, no machine."""
    cell = content.studies[0][0].cells["t", "a", "cycles"]
    cell.asked, cell.measurement = {"hardware": "mixcol4"}, Measurement({"gates": 7, "verified": True, "provenance": {"kind": "synthesised"}})
    cell.provenance = {"kind": "synthesised"}
    data = json.loads(Reader(page.render(content)).scripts["data"])
    assert "evidence" not in data["cells"][0] and data["cells"][0]["settings"] == {"hardware": "mixcol4"}


def test_a_loop_is_packed_whole(content):
    reader = Reader(page.render(content))
    ((_, explanation),) = content.kernels
    said = explanation["stretches"][0]
    drawn = json.loads(gzip.decompress(base64.b64decode(reader.scripts["packed"])))
    assert drawn["cycles"] == said["cycles"] and len(drawn["lines"]) == len(said["instructions"])
    for line, instruction in zip(drawn["lines"], said["instructions"], strict=True):
        assert (line[0], line[2]) == (instruction["cycle"], instruction["text"].replace("\t", " "))
        for (maker, register, latency, slack, passes), need in zip(line[-1], instruction["needs"], strict=True):
            assert need == {"from": maker, "register": register, "latency": latency, "slack": slack, "passes": passes}
            assert latency + slack == instruction["cycle"] - said["instructions"][maker]["cycle"] + passes * said["cycles"]
    assert kernels.CLASSES[drawn["lines"][0][3]] == said["instructions"][0]["class"]
    assert said["why"] in " ".join(reader.words)


def test_figures_are_valid_vega_lite(content, monkeypatch):
    specs = []
    monkeypatch.setattr(page.drawing, "svg", lambda spec, name: specs.append(spec) or "<svg></svg>")
    page.render(content)
    # Beside and ratios of the table, its Pareto front, two times bounds, stacks.
    assert len(specs) == 6
    for spec in specs:
        (altair.VConcatChart if "vconcat" in spec else altair.LayerChart if "layer" in spec else altair.Chart).from_dict(spec)


def test_bars_and_curves_are_what_the_commentary_asks_for(content):
    from ciphermill.webreport import figures

    result, _ = content.studies[0]
    table = result.study.tables[0]
    column = table.columns[0].key
    comment = commentary.Commentary(
        bars=(commentary.Bars("b", table.name, (column,)),),
        curves=(commentary.Curves("c", ((table.name, "ours"),), (column,), "x"),),
    )
    bars, curves = figures.chosen(result, comment)
    altair.Chart.from_dict(bars.spec)
    altair.FacetChart.from_dict(curves.spec)
    drawn = {(v["row"], v["who"]): v["value"] for v in bars.spec["data"]["values"]}
    for row in table.rows:
        cell = result.cells[table.name, row.key, column]
        assert drawn.get((row.label, "ours")) == cell.ours and drawn.get((row.label, "paper")) == cell.paper
    assert [v["value"] for v in curves.spec["data"]["values"]] == [result.cells[table.name, r.key, column].ours for r in table.rows]


def test_the_front_is_what_nothing_beats():
    from ciphermill.webreport import figures

    points = [{"label": n, "x": x, "y": y} for n, x, y in (("a", 1, 9), ("b", 2, 5), ("c", 3, 6), ("d", 4, 5), ("e", 5, 1))]
    shown = figures.pareto("k", "t", points, "x", "y")
    assert "3 on the Pareto front: a, b, e" in shown.alt


@pytest.mark.parametrize("ground", [*colours.CIVIDIS, *colours.CATEGORIES])
def test_text_on_any_ground_can_be_read(ground):
    light, ink = colours.luminance(ground), colours.luminance(colours.text_on(ground))
    assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("agree = 'x'", "report.toml: the file: no key 'agree' here (did you mean 'agrees'?)"),
        ("[[kernel]]\ncipher = 'rc6'", "report.toml: kernel 1: 'on' is missing"),
        ("[[pareto]]\ntitle = 'x'\ntable = 'u'\nx = 'a'\ny = 'b'", "report.toml: pareto 1: the study has no table 'u'; it has t"),
        ("[[pareto]]\ntitle = 'x'\ntable = 't'\nx = 'size'\ny = 'b'", "pareto 1: table 't' has no column 'b'; it has cycles"),
        ("[[bars]]\ntitle = 'x'\ntable = 't'\nparts = ['b']", "bars 1: table 't' has no column 'b'; it has cycles"),
        ("[[curves]]\ntitle = 'x'\nx = 'w'\ncolumns = ['cycles']\nlines = ['t']", "curves 1: lines: a list of pairs"),
    ],
)
def test_a_wrong_commentary_is_refused(commented, report, message):
    with pytest.raises(_core.InputError, match=re.escape(message)):
        commented(report)


def test_refusals_are_kept_and_unverified_measurements_are_not(monkeypatch, tmp_path):
    from ciphermill import engine, manifest

    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path))
    module, options = engine.module(manifest.find("rc6")), engine.Options(bytes=64)
    calls = []

    def measured(*_):
        calls.append(1)
        if len(calls) == 1:
            raise _core.InputError("no")
        return Measurement({"verified": len(calls) > 3, "failure": "x"})

    monkeypatch.setattr(engine, "measure", measured)
    for _ in range(2):
        with pytest.raises(_core.InputError, match="^no$"):
            kept.measurement(module, "rv32", options)
    assert len(calls) == 1
    other = engine.Options(bytes=128)
    assert [kept.measurement(module, "rv32", other).verified for _ in range(4)] == [False, False, True, True]
    assert len(calls) == 4


def test_a_folder_is_refused_before_the_work(refused, tmp_path):
    assert refused("report", "-o", tmp_path) == f"-o {tmp_path}: a folder; name a file, for instance {tmp_path / 'index.html'}"
