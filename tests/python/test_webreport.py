"""The HTML report: one file, nothing from elsewhere, evidence for every number."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import html
import html.parser
import json
import re
import shlex
from itertools import pairwise

import pytest
import small_page

from ciphermill import _core, kept, paths, report
from ciphermill.measurement import Measurement
from ciphermill.study import layout, measure
from ciphermill.webreport import colours, commentary, evidence, kernels, numbers, page, pipelines, survey

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


def test_the_filter_for_constant_time_goes_by_the_machine_code(content):
    """Not by what a manifest says: a cell has the verdict on the code that was measured there."""
    (asked, rc6), *others = content.survey
    leaking = {**rc6.to_dict(), "constant_time": False, "leaks": {"places": 1, "kinds": {"branch": 1}, "bytes": 64}}
    changed = dataclasses.replace(content, survey=[(asked, Measurement(leaking)), *others])
    for shown, constant in ((content, [True, True, False, True, True]), (changed, [False, True, False, True, True])):
        reader = Reader(page.render(shown))
        cells = [a for t, a in reader.tags if t == "td" and "data-value" in a]
        assert ["data-constant" in a for a in cells] == constant
        assert not any(t == "tr" and "data-constant" in a for t, a in reader.tags)
    said = json.loads(reader.scripts["data"])["evidence"]
    assert any(e["timing"] == "no: key or message decide 1 branch of the machine code" for e in said)


def test_the_command_gets_the_number_again(content, cli):
    (result, _) = content.studies[0]
    cell = result.cells["t", "b", "cycles"]
    words = evidence.command(cell.asked).split()
    assert words[0] == "ciphermill"
    again = json.loads(cli(*words[1:], "--json").out)["measurements"][0]
    assert again["cycles_per_block"] == cell.ours and again["provenance"] == cell.measurement.provenance


def test_a_command_has_all_that_was_asked():
    asked = {
        "cipher": "rc6",
        "on": "c6201",
        "key_bits": 128,
        "unroll": False,
        "with": ["a", "b"],
        "set": ["x.y=1"],
        "jam": None,
        "aligned": True,
        "optimal": False,
    }
    words = "ciphermill run rc6 --on c6201 --key-bits 128 --no-unroll --with a --with b --set x.y=1 --aligned"
    assert evidence.command(asked) == words


@pytest.mark.parametrize(
    ("ours", "word"), [(100, "near"), (120, "off"), (80, "off"), (200, "far"), (0, "far"), (None, "")]
)
def test_how_far_off_is_said_in_both_directions(content, ours, word):
    cell = content.studies[0][0].cells["t", "a", "cycles"]
    cell.ours = ours
    assert page.near(cell) == word
    assert page.render(content)


def test_a_circuit_is_no_measurement_of_a_program(content):
    """A cell of gates, as `hardware` gives it: no cycles, no machine."""
    cell = content.studies[0][0].cells["t", "a", "cycles"]
    cell.asked, cell.measurement = (
        {"hardware": "mixcol4"},
        Measurement({"gates": 7, "verified": True, "provenance": {"kind": "synthesised"}}),
    )
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
            assert (
                latency + slack == instruction["cycle"] - said["instructions"][maker]["cycle"] + passes * said["cycles"]
            )
    assert kernels.CLASSES[drawn["lines"][0][3]] == said["instructions"][0]["class"]
    assert said["why"] in " ".join(reader.words)


def test_a_pipeline_is_packed_whole(content):
    ((_, found),) = content.pipelines
    rows = found["pipeline"]
    drawn = pipelines.packed(rows)
    assert len(drawn["lines"]) == len(rows) > 24
    names = [stage[0] for stage in pipelines.STAGES]
    for line, row in zip(drawn["lines"], rows, strict=True):
        # The stages cover every cycle from fetching to the end, once each.
        assert line[5][0] == [0, row["fetch"] - drawn["first"], line[5][0][2]]
        for (_, start, cycles), (_, following, _) in pairwise(line[5]):
            assert start + cycles == following
        stage, cycle, _ = line[5][-1]
        end = row["squash"] if row["squashed"] else row["retire"]
        assert (names[stage], cycle) == ("squash" if row["squashed"] else "retire", end - drawn["first"])
        if row["issue"] is not None:
            assert [names.index("execute"), row["issue"] - drawn["first"]] in [span[:2] for span in line[5]]
    text = page.render(content)
    assert "ciphermill trace rc6 --on core2 --bytes 256 --count 24" in text and 'id="pipeline-0"' in text


def test_what_was_waited_for_is_read_off_the_others():
    def row(text, rename, issue, complete, retire, port="p0"):
        return {"text": text, "instruction": 1, "rename": rename, "issue": issue, "complete": complete, "retire": retire, "port": port,
                "squashed": False, "squash": None}  # fmt: skip

    maker = row("addl $1, %eax", 1, 2, 9, 10)
    user = row("movl %eax, %ebx", 1, 9, 10, 11, "p1")
    other = row("xorl %ecx, %edx", 1, 3, 4, 11)
    rows = [maker, user, other]
    assert pipelines.waits(rows, 0) == []
    assert pipelines.waits(rows, 1) == [
        "7 cycles between renaming and starting: it starts in the cycle in which the result of addl $1, %eax (1) is there"
    ]
    assert pipelines.waits(rows, 2) == [
        "1 cycle between renaming and starting: in the cycle before, port p0 was taken by addl $1, %eax (1)",
        "7 cycles from its result to retiring, behind movl %eax, %ebx (1), whose result came in cycle 10",
    ]


def test_a_machine_without_such_a_core_says_so(content):
    asked = {"cipher": "rc6", "on": "rv32"}
    found = pipelines.trace(asked)
    assert found["missing"] and not found["pipeline"]
    content.pipelines = [(asked, found)]
    assert found["missing"] in html.unescape(page.render(content))


def test_figures_are_valid_vega_lite(content, monkeypatch):
    specs = []
    monkeypatch.setattr(page.drawing, "svg", lambda spec, name: specs.append(spec) or "<svg></svg>")
    page.render(content)
    # Beside and ratios of the table, its Pareto front, two times bounds, stacks.
    assert len(specs) == 6
    for spec in specs:
        (
            altair.VConcatChart if "vconcat" in spec else altair.LayerChart if "layer" in spec else altair.Chart
        ).from_dict(spec)


def test_a_bar_is_one_measurement(content):
    """Two programs in one row of a table are two bars, not one of both lengths."""
    from ciphermill.webreport import figures

    result, _ = content.studies[0]
    row, (_, size) = result.study.tables[0].rows[0].key, [c.key for c in result.study.tables[0].columns[:2]]
    other = result.cells["t", row, size]
    result.cells["t", row, size] = dataclasses.replace(
        other, measurement=Measurement({**other.measurement.to_dict(), "cycles_per_byte": 7.0})
    )
    points = figures.labelled(result)
    assert [label for label, _ in points] == ["First, speed", "First, size", "Second"]
    spec = figures.stacks("k", points).spec
    drawn: dict[str, float] = {}
    for part in spec["datasets"][spec["data"]["name"]]:
        drawn[part["what"]] = drawn.get(part["what"], 0.0) + part["cycles"]
    assert drawn == {label: pytest.approx(m.cycles_per_byte) for label, m in points}


def test_where_the_paper_has_no_figure_ours_stands_alone(content):
    text = page.render(content)
    assert text.count('<th scope="colgroup" colspan="3">') == 4
    result, _ = content.studies[0]
    for cell in result.cells.values():
        cell.paper = None if cell.column.key in ("size", "rate") else cell.paper
    text = page.render(content)
    assert text.count('<th scope="colgroup" colspan="3">') == 2 and text.count('<th scope="colgroup">') == 2


def test_more_bars_than_can_be_read_are_said_to_be_some(content):
    from ciphermill.webreport import figures

    (label, m), *_ = figures.labelled(content.studies[0][0])
    shown = figures.stacks("k", [(f"{label} {i}", m) for i in range(figures.MOST + 3)])
    assert shown.title == f"Where the cycles go, the first {figures.MOST} of {figures.MOST + 3} measurements"


def test_code_in_a_text_is_marked():
    assert page.marked("<b> and `--set a<b`.") == "&lt;b&gt; and <code>--set a&lt;b</code>."


def test_headings_of_programs_differ_as_the_programs_do():
    plain = {"cipher": "rc6", "on": "epic", "direction": "encrypt"}
    assert evidence.program(plain) == "rc6 encrypt on epic"
    more = {
        **plain,
        "variant": "plain",
        "blocks": "single",
        "with": ["addr-scaled"],
        "set": ["issue.width=8", "units.mem=2"],
    }
    assert (
        evidence.program(more)
        == "rc6/plain encrypt on epic in feedback mode, with addr-scaled, where issue.width=8, units.mem=2"
    )


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

    def values(spec):
        return spec["datasets"][spec["data"]["name"]]

    drawn = {(v["row"], v["who"]): v["value"] for v in values(bars.spec)}
    for row in table.rows:
        cell = result.cells[table.name, row.key, column]
        assert drawn.get((row.label, "ours")) == cell.ours and drawn.get((row.label, "paper")) == cell.paper
    assert [v["value"] for v in values(curves.spec)] == [
        result.cells[table.name, r.key, column].ours for r in table.rows
    ]


def test_the_front_is_what_nothing_beats():
    from ciphermill.webreport import figures

    points = [
        {"label": n, "x": x, "y": y} for n, x, y in (("a", 1, 9), ("b", 2, 5), ("c", 3, 6), ("d", 4, 5), ("e", 5, 1))
    ]
    shown = figures.pareto("k", "t", points, "x", "y")
    assert "3 on the Pareto front: a, b, e" in shown.alt


@pytest.mark.parametrize("ground", [*colours.CIVIDIS, *colours.CATEGORIES])
def test_text_on_any_ground_can_be_read(ground):
    light, ink = colours.luminance(ground), colours.luminance(colours.text_on(ground))
    assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("agree = 'x'", "report.toml:1: agree: unknown key (did you mean 'agrees'?)"),
        ("[[kernel]]\ncipher = 'rc6'", "report.toml:1: kernel[0].on: missing; add it (a string)"),
        ("[[kernel]]\ncipher = 'rc6'\non = 'm'\ncount = 3", "report.toml:4: kernel[0].count: unknown key"),
        ("[[pareto]]\ntitle = 'x'\ntable = 'u'\nx = 'a'\ny = 'b'", "report.toml:3: pareto[0].table: the study has no table 'u'; it has t"),
        ("[[pareto]]\ntitle = 'x'\ntable = 't'\nx = 'size'\ny = 'b'", "report.toml:5: pareto[0].y: table 't' has no column 'b'; it has cycles"),
        ("[[bars]]\ntitle = 'x'\ntable = 't'\nparts = ['b']", "report.toml:4: bars[0].parts[0]: table 't' has no column 'b'; it has cycles"),
        ("[[curves]]\ntitle = 'x'\nx = 'w'\ncolumns = ['cycles']\nlines = ['t']", "report.toml:5: curves[0].lines[0]: is 't', must be a list; it is a pair"),
        ("[[curves]]\ntitle = 'x'\nx = 'w'\ncolumns = ['cycles']\nlines = [['t']]", "report.toml:5: curves[0].lines[0]: is a list; it is a pair"),
    ],
)  # fmt: skip
def test_a_wrong_commentary_is_refused(commented, report, message):
    with pytest.raises(_core.InputError, match=re.escape(message)):
        commented(report)


def unmeasured(name):
    """A study with no figure of ours that needs a measurement."""
    from ciphermill import study
    from ciphermill.study import results

    found = study.find(name)
    return results.solve(found, {measure.key(asked): measure.Missing("not measured here") for asked in found.work()})


@pytest.mark.parametrize("name", layout.names())
def test_what_a_study_says_holds_whatever_is_measured(name):
    """All of its sentences, and none that needs a figure, without an error."""
    result = unmeasured(name)
    comment = commentary.load(result.study)
    bare = commentary.spoken(comment, result)
    assert all(bare[text] for text in ("why",))
    heard = []
    for ratio in (0.2, 0.95, 1.0, 1.3, 6.0):
        for cell in result.cells.values():
            cell.ours = ratio * (cell.paper or 100)
        heard.append(commentary.spoken(comment, result))
        assert all("None" not in text and "{" not in text for text in heard[-1].values())
        assert heard[-1]["agrees"] or heard[-1]["differs"]
    # Where all is the paper's, what agrees is not what agrees where all is six times that.
    assert heard[2]["agrees"] != heard[-1]["agrees"] and heard[2]["differs"] != heard[-1]["differs"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ ours('t/a/cycle') }}", "report.toml: agrees: the study has no cell 't/a/cycle'"),
        ("{{ ours('t/*/cycles') }}", "'t/*/cycles' names 2 cells where one is asked for"),
        ("{{ our('t/a/cycles') }}", "report.toml: agrees: 'our' is undefined"),
        ("{% if %}", "report.toml: agrees: Expected an expression"),
        ("{{ cells.__globals__ }}", "report.toml: agrees: "),
    ],
)
def test_a_text_that_asks_for_what_is_not_there_is_refused(content, text, message):
    result, _ = content.studies[0]
    content.studies = [(result, commentary.Commentary(agrees=text))]
    with pytest.raises(_core.InputError, match=re.escape(message)):
        page.render(content)


def test_a_text_follows_its_figures(content):
    result, _ = content.studies[0]
    text = "{{ ours('t/a/cycles')|figure }}{% if above(compared('t/*/cycles')) %} above: {{ above(compared('t/*/cycles'))|names }}{% endif %}"
    content.studies = [(result, commentary.Commentary(differs=text))]
    cells = [result.cells["t", row, "cycles"] for row in "ab"]
    for ours, said in (
        ((100, 400), "100"),
        ((150, 400), "150 above: First"),
        ((150, 900), "150 above: First and Second"),
    ):
        cells[0].ours, cells[1].ours = ours
        assert f"<strong>What does not.</strong> {said}</p>" in page.render(content)


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
        with pytest.raises(_core.InputError, match=r"^no$"):
            kept.measurement(module, "rv32", options)
    assert len(calls) == 1
    other = engine.Options(bytes=128)
    assert [kept.measurement(module, "rv32", other).verified for _ in range(4)] == [False, False, True, True]
    assert len(calls) == 4


def test_a_folder_is_refused_before_the_work(refused, tmp_path):
    assert refused("report", "-o", tmp_path) == f"-o {tmp_path}: a folder; name a file in it"


def about(text: str) -> str:
    """What a page says of its own numbers."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text.split('id="about"')[1].split("</section>")[0])).split())


def commands(text: str) -> list[str]:
    return [html.unescape(c) for c in re.findall(r"The same as text: <code>(.*?)</code>", text)]


def test_the_page_of_a_file_says_what_is_so_and_how_to_get_it_again(cli, write, xor_cipher, tmp_path):
    """Without official vectors nothing is said of any; the command is ready to be pasted, spaces and options and all."""
    source = write("my ciphers/the xor.c", xor_cipher.read_text())
    options = (
        "--blocks",
        "single",
        "--key-bits",
        "128",
        "--no-unroll",
        "--bytes",
        "256",
        "--patience",
        "2",
        "--set",
        "machine.clock_mhz=50",
        "--set",
        "timings.load.latency=3",
    )
    made = cli("explain", source, "--on", "rv32", *options, "--html", "page.html")
    assert made.code == 0, made.err
    text = (tmp_path / "page.html").read_text()
    assert "passes" not in about(text) and "No official test vectors were there" in about(text)
    assert "cividis" not in about(text) and "Choose any number" not in about(text)
    # The hottest code is shown, the rest on demand.
    assert text.count(' class="stretch" open>') == 1
    (command,) = commands(text)
    words = shlex.split(command)
    assert words[:3] == ["ciphermill", "explain", str(source)] and sorted(words[5:]) == sorted(options)
    again = cli(*words[1:])
    assert (again.code, again.out) == (0, made.out)
    assert "the xor.c" not in text.split("<h3")[1].split("</h3>")[0]


def test_a_page_of_what_is_not_verified_says_so(cli, write, xor_cipher, tmp_path):
    write("xor.c", xor_cipher.read_text())
    write("xor.toml", 'name = "xor"\ntitle = "Xor"\nkind = "block"\nblock_bytes = 16\nkey_bits = [128]\ndefault_variant = "plain"\n[variants.plain]\n'
          'sources = ["xor.c"]\ntrades = "nothing"\nconstant_time = true\n[[vectors]]\nfile = "v.json"\nsource = "made up"\n')  # fmt: skip
    vector = {"id": "1", "key": "00" * 16, "plaintext": "00" * 16, "ciphertext": "ff" * 16}
    write("v.json", json.dumps({"source": "made up", "kind": "block", "vectors": [vector]}))
    made = cli("explain", "xor.toml", "--on", "rv32", "--html", "page.html")
    assert made.code == 1, (made.out, made.err)
    text = (tmp_path / "page.html").read_text()
    assert "The cycle counts are not verified" in about(text) and "Each of these modules passes" not in about(text)
    assert "Not verified: " in text and "vector " in text


def test_what_is_said_of_all_numbers_holds_for_each():
    said = page.about
    assert said([], False, False) == []
    assert (
        "Each cycle count" in said([(True, 5)], False, False)[0]
        and "passes official" in said([(True, 5)], False, False)[1]
    )
    mixed = said([(True, 5), (True, None), (False, 5)], True, True)
    assert mixed[0].startswith("1 of 3 measurements are not verified") and mixed[1].startswith(
        "1 of these 2 modules pass"
    )
    assert "paper" in mixed[2] and mixed[3].startswith("Choose any")
    assert said([(False, 5)], False, False) == [
        "The cycle counts are not verified: the run failed, its output differed, or a test vector did."
    ]


def test_a_machine_that_schedules_at_run_time_has_no_schedule_to_show(cli, tmp_path):
    made = cli("explain", "rc6", "--on", "core2", "--html", "page.html")
    assert made.code == 0, made.err
    text = (tmp_path / "page.html").read_text()
    assert "no cycle belongs to one instruction" in text and "Point at an instruction" not in text
    assert "passes official test vectors" in about(text)


def test_a_kept_schedule_is_marked(content):
    """On the page as in the evidence; a measurement without one says nothing of it."""
    (asked, m), *rest = content.survey
    loop = {
        "ii": 9,
        "res_mii": 5,
        "rec_mii": 3,
        "stages": 2,
        "proved_optimal": False,
        "least": 5,
        "recorded": True,
        "asked": [],
    }
    tuned = Measurement({**m.to_dict(), "loops": [loop]})
    text = page.render(dataclasses.replace(content, survey=[(asked, tuned), *rest]))
    assert f"{numbers.digits(m.cycles_per_byte)}*</button>" in text and "kept from a longer search" in text
    data = json.loads(Reader(text).scripts["data"])
    told = [e["schedule"] for e in data["evidence"] if e["schedule"]]
    assert told == [
        "a kept schedule for its main loop, from an earlier, longer search; with --fresh a run searches itself"
    ]
    assert "with a kept schedule for its main loop. " in report.sentence(tuned) and "kept" not in report.sentence(m)
    plain = page.render(content)
    assert "kept from a longer search" not in plain


def test_the_start_page_leaves_out_what_would_be_searched_for(content):
    """On a machine for which schedules are kept, a cipher of which there are none; the page says how it is measured."""
    asked = {(work["cipher"], work["on"]) for work in survey.work()}
    assert ("rc6", "c6201") in asked and ("salsa20", "c6201") not in asked
    # Where none are kept nothing is left out.
    assert ("salsa20", "leon2") in asked
    (of_first, m), *rest = content.survey
    fewer = dataclasses.replace(content, survey=[(of_first, m), *rest[1:]])
    assert (
        f"ciphermill run {rest[0][0]['cipher']} --variant {rest[0][0]['variant']} --on {rest[0][0]['on']}"
        in page.render(fewer)
    )
