"""Studies: files in, tables out, and messages for files that are wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest

import ciphermill as cm
from ciphermill import _core, paths, study
from ciphermill.measurement import Measurement
from ciphermill.options import SAID
from ciphermill.study import layout, measure, results, text
from ciphermill.sweeps import grid

STUDY = """\
[study]
title = "T"
paper = "P"
settings = { on = "rv32", bytes = 64 }

[[table]]
name = "t"
title = "A table"
columns = [
  { key = "cycles", label = "speed", unit = "cycles", figure = "cycles", measure = "cycles_per_block", summary = true },
  { key = "rate", label = "rate", unit = "Mbit/s", formula = "rate", of = ["cycles"], constants = { bits = 128, mhz = 200 } },
  { key = "rank", label = "place", unit = "rank", formula = "rank", of = ["rate", "*/rate"] },
  { key = "other", label = "elsewhere", unit = "cycles", figure = "other", quoted = true, measure = "cycles_per_block", settings = { on = "nowhere" } },
  { key = "gain", label = "gain", unit = "times", formula = "quotient", of = ["other", "cycles"] },
]
rows = [
  { key = "a", label = "First", figures = "t.a", settings = { cipher = "rc6" } },
  { key = "b", label = "Second", figures = "t.b", settings = { cipher = "rijndael" } },
]
"""
FIGURES = """\
[t]
a = { cycles = 100, other = 50 }
b = { cycles = 400, other = 70 }
"""


@pytest.fixture
def folder(write):
    def make(study_text: str = STUDY, figures: str = FIGURES):
        write("s/figures.toml", figures)
        return write("s/study.toml", study_text).parent

    layout.load.cache_clear()
    return make


def measured(cycles: float, **more) -> Measurement:
    return Measurement(
        {"cycles_per_block": cycles, "verified": True, "jam": 2, "provenance": {"kind": "simulated"}, **more}
    )


def solved(folder, **cycles) -> results.Result:
    """A study with these cycles for its ciphers, and no machine `nowhere`."""
    loaded = layout.load(folder)

    def answer(asked):
        if asked["on"] == "nowhere":
            return measure.Missing("machine nowhere is not there")
        # A message of two blocks, with 101 instructions in each.
        return measured(cycles[asked["cipher"]], instructions=202, bytes=32, block_bytes=16)

    return results.solve(loaded, {measure.key(asked): answer(asked) for asked in loaded.work()})


def test_cells(folder):
    result = solved(folder(), rc6=160.0, rijndael=200.0)
    cells = {(c["row"], c["column"]): c for c in result.to_dict()["tables"][0]["rows"]}
    cycles = cells["a", "cycles"]
    assert (cycles["paper"], cycles["ours"], cycles["ratio"], cycles["unit"]) == (100, 160.0, 1.6, "cycles")
    assert (cycles["label"], cycles["paper_provenance"], cycles["settings"]["jam"]) == ("First, speed", "published", 2)
    rate = cells["a", "rate"]
    assert (rate["paper"], rate["ours"], rate["paper_provenance"]) == (256.0, 160.0, "derived")
    assert rate["settings"] == cycles["settings"]
    assert rate["provenance"]["kind"] == "derived"
    # Ranks are no quantities.
    assert [(cells[r, "rank"]["paper"], cells[r, "rank"]["ours"], cells[r, "rank"]["ratio"]) for r in "ab"] == [
        (1, 1, None),
        (2, 2, None),
    ]
    # What cannot be measured says why, and the paper's quotation stands in for it.
    other = cells["b", "other"]
    assert (other["paper"], other["ours"], other["missing"]) == (70, None, "machine nowhere is not there")
    assert other["provenance"] == {"kind": "quoted"}
    assert cells["b", "gain"]["ours"] == 70 / 200
    assert cells["b", "gain"]["provenance"]["quoted"] == ["elsewhere"]
    assert result.to_dict()["tables"][0]["geometric_mean"]["cycles"] == pytest.approx((1.6 * 0.5) ** 0.5)
    assert result.faults() == []


def test_text(folder):
    assert (
        text.text(solved(folder(), rc6=160.0, rijndael=200.5))
        == """\
s: 0 of 6 figures of ours are within 10 % of the paper's; ours over the paper's
is between 0.50 (Second, speed) and 2.00 (Second, gain); 2 figures of the paper
have none of ours beside them, each says why.

T
P

A table
=======

                speed, cycles       rate, Mbit/s        place, rank
                paper   ours   o/p  paper   ours   o/p  paper  ours  o/p
--------------  ------------------  ------------------  ----------------
First             100    160  1.60    256    160  0.62      1     1
Second            400  200.5  0.50     64  127.7  2.00      2     2
geometric mean                0.90

        elsewhere, cycles  gain, times
        paper  ours  o/p   paper  ours   o/p
------  -----------------  -----------------
First      50     ?         0.50  0.31  0.62
Second     70     ?         0.17  0.35  2.00

? elsewhere: machine nowhere is not there
Blocks carried through the code together: First 2, Second 2."""
    )


def test_text_fits_the_screen(folder):
    printed = text.text(solved(folder(), rc6=160.0, rijndael=200.5))
    assert max(map(len, printed.splitlines())) <= 80


def test_an_unverified_measurement_is_our_fault(folder):
    loaded = layout.load(folder())
    bad = measured(
        1.0, verified=False, failure="byte 3", cipher="rc6", variant="plain", direction="encrypt", machine="rv32"
    )
    result = results.solve(loaded, {measure.key(asked): bad for asked in loaded.work()})
    assert all(cell.ours is None for cell in result.cells.values() if cell.column.key == "cycles")
    assert result.faults() == ["rc6/plain encrypt on rv32: not verified: byte 3"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "Mbit/s", ', 'units = "Mbit/s", ', ":11: table['t'].columns['rate'].units: unknown key (did you mean 'unit'?)"),
        ('formula = "rate"', 'formula = "rates"', ":11: table['t'].columns['rate'].formula: is 'rates' (did you mean 'rate'?); there are rate, quotient"),
        ("mhz = 200", "khz = 200", ":11: table['t'].columns['rate'].constants: must give mhz, for `bits * mhz / cycles`"),
        ("mhz = 200", "mhz = 200, khz = 1", ":11: table['t'].columns['rate'].constants: the formula has no khz"),
        ("mhz = 200", "mhz = 'x'", ":11: table['t'].columns['rate'].constants.mhz: is 'x', must be a number"),
        ('of = ["cycles"]', 'of = ["cycle"]', ":11: table['t'].columns['rate'].of[0]: is 'cycle', and there is no such cell for row 'a'"),
        ('of = ["cycles"]', "of = []", ":11: table['t'].columns['rate'].of: must name a cell for each of cycles"),
        ('of = ["cycles"]', 'of = ["*/cycles"]', ":11: table['t'].columns['rate'].formula: `bits * mhz / cycles`: `cycles` is several cells where a number is wanted"),
        ('figures = "t.b"', 'figures = "t.c"', ":18: table['t'].rows['b'].figures: s/figures.toml has no figure 't.c.cycles', which column 'cycles' has"),
        ('cipher = "rc6"', 'blocks = "multi"', ":17: table['t'].rows['a']: nothing says which cipher column 'cycles' has; add it to `settings`"),
        ("bytes = 64", 'bytes = "64"', ":4: study.settings.bytes: is '64', must be a whole number"),
        ('key = "b", label', 'key = "a", label', ":18: table['t'].rows['a'].key: is 'a', and so is another's; rename one"),
        ('label = "Second"', 'label = "Second", columns = ["cycle"]', ":18: table['t'].rows['b'].columns[0]: is 'cycle' (did you mean 'cycles'?); the table has cycles, rate"),
        ('measure = "cycles_per_block", summary = true', "label2 = 1", ":10: table['t'].columns['cycles'].label2: unknown key (did you mean 'label'?)"),
        ('measure = "cycles_per_block", summary = true', "summary = true", ":10: table['t'].columns['cycles']: needs either `measure` or `formula`"),
        ('title = "T"', 'title = "T', ": not TOML"),
    ],
)  # fmt: skip
def test_messages(folder, monkeypatch, old, new, message):
    assert old in STUDY
    made = folder(STUDY.replace(old, new, 1))
    monkeypatch.chdir(made.parent)
    with pytest.raises(_core.InputError) as error:
        layout.load(made)
    assert str(error.value).startswith(f"s/study.toml{message}")


def test_a_cell_must_not_be_derived_from_itself(folder):
    made = folder(
        STUDY.replace('of = ["cycles"]', 'of = ["gain"]').replace('of = ["other", "cycles"]', 'of = ["other", "rate"]')
    )
    with pytest.raises(_core.InputError, match="derived from itself"):
        solved(made, rc6=1.0, rijndael=1.0)


def test_formulas():
    known = study.find("gf-multiplier-on-leon2").formulas
    assert known["rate"].value([184], {"bits": 128, "mhz": 200}) == pytest.approx(139.13, abs=0.01)
    assert known["mean"].value([128.0, 116.4], {}) == pytest.approx(122.2)
    assert known["rank"].value([3, [1, 3, 5, 3]], {}) == 2
    assert known["correlation"].value([[1, 2, 3], [2, 4, 6]], {}) == pytest.approx(1)
    assert known["correlation"].value([[1, 2, 3], [3, 1, -1]], {}) == pytest.approx(-1)
    assert known["quotient"].value([3, 2], {}) == 1.5 and known["quotient"].value([3, 2], {"times": 100}) == 150
    # Whole numbers stay whole, those of several columns count one by one.
    stored = known["matrix_storage"].value([], {"rows": 4, "bits": 8})
    assert stored == 1056 and isinstance(stored, int)
    assert known["largest"].value([1, [5, 2]], {}) == 5
    own = study.find("addressing-modes-on-epic").formulas
    assert own["enough"].value([9, 5, 5.04, 5], {"within": 0.01}) == 2
    assert own["enough"].value([9, 5, 4, 4], {"within": 0.01, "factor": 2}) == 4
    assert own["rise"].value([9, 5, 6], {}) == pytest.approx(20) and own["rise"].value([9, 5, 5], {}) == 0


OWN = '[formulas]\nloss = { of = ["cycles"], expression = "EXPRESSION", defaults = { part = 2 } }\n[[table]]\n'


def own_formula(expression: str) -> str:
    """The study with a formula of its own, in place of `rate`."""
    text = STUDY.replace("[[table]]\n", OWN.replace("EXPRESSION", expression), 1)
    return text.replace('formula = "rate"', 'formula = "loss"').replace("bits = 128, mhz = 200", "base = 10")


def test_a_formula_of_the_study_s_own(folder):
    result = solved(
        folder(own_formula("max(base, cycles) - base if cycles > part ** 2 else -1")), rc6=160.0, rijndael=3.0
    )
    rates = {row: cell for (_, row, column), cell in result.cells.items() if column == "rate"}
    assert [(rates[r].paper, rates[r].ours) for r in "ab"] == [(90, 150.0), (390, -1)]
    assert rates["a"].provenance == {"kind": "derived", "formula": "loss", "of": ["cycles"], "constants": {"base": 10}}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cycles ^ base * part", "`cycles ^ base * part` cannot stand in it; it is made of numbers, names, + - * / **"),
        ("cycles +* base", "no expression (invalid syntax); it is made of"),
        ("", "no expression (invalid syntax"),
        ("median(cycles)", "no function 'median' (did you mean 'mean'?); there are sum, min, max"),
        ("cycles.real", "`cycles.real` cannot stand in it"),
        ("[c for c in base]", "`[c for c in base]` cannot stand in it"),
        ("__import__('os').system(base)", "`__import__('os').system(base)` cannot stand in it"),
        ("(lambda: part)()", "`(lambda: part)()` cannot stand in it"),
        ("'a' * part", "`'a'` cannot stand in it"),
        ("True + part", "`True` cannot stand in it"),
        ("1 < part < 3", "`1 < part < 3` cannot stand in it"),
        ("min(part, key=base)", "`min(part, key=base)` cannot stand in it"),
        ("+" * 400 + "part", "longer than 300 characters"),
        ("(" * 250 + "part" + ")" * 40, "no expression ("),
    ],
)
def test_an_expression_that_is_none(folder, monkeypatch, expression, message):
    made = folder(own_formula(expression))
    monkeypatch.chdir(made.parent)
    with pytest.raises(_core.InputError) as error:
        layout.load(made)
    said = str(error.value)
    assert said.startswith(f"s/study.toml:7: formulas.loss.expression: is {expression!r}"[:80]) and message in said


HOSTS = """\
[study]
title = "T"
paper = "P"
settings = { on = "rv32" }

[[table]]
name = "errors"
title = "Errors, {each}"
for_each = "hosts"
columns = [
  { key = "many", label = "programs", unit = "programs", formula = "how_many", of = ["{row}-{each}/*/cycles:ratio"] },
  { key = "geomean", label = "mean", unit = "ratio", formula = "geometric", of = ["{row}-{each}/*/cycles:ratio"] },
  { key = "error", label = "error", unit = "part", formula = "mean_error", of = ["{row}-{each}/*/cycles:ratio"] },
  { key = "close", label = "close", unit = "part", formula = "close", of = ["{row}-{each}/*/cycles:ratio"], constants = { part = 0.05 } },
  { key = "same", label = "same", unit = "part", formula = "mean_error_near", of = ["{row}-{each}/*/cycles:ratio", "{row}-{each}/*/insts:ratio"], constants = { near = 0.02 } },
]
rows = [{ key = "seen", label = "seen" }]

[[table]]
name = "seen"
title = "Seen, {each}"
for_each = "hosts"
rows_from = "programs"
where = { held_out = false }
columns = [
  { key = "cycles", label = "cycles", unit = "cycles", figure = "cycles", measure = "cycles_per_block" },
  { key = "insts", label = "insts", unit = "insts", figure = "insts", measure = "instructions", per_block = true },
]
"""
HOST = """\
[programs.a]
settings = { cipher = "rc6" }
cycles = 200
insts = 150
held_out = false
[programs.b]
settings = { cipher = "rijndael" }
cycles = 100
insts = 100
held_out = false
[programs.c]
settings = { cipher = "mars" }
cycles = 100
insts = 100
held_out = true
"""


def test_tables_and_rows_from_files_of_figures(folder, write):
    """Ratios of 0.5 and 1.05, worked out by hand; what is held out is no row."""
    made = folder(HOSTS, "")
    write("s/hosts/one.toml", HOST)
    write("s/hosts/two.toml", HOST.replace("200", "100"))
    result = solved(made, rc6=100.0, rijndael=105.0)
    assert [table.name for table in result.study.tables] == ["errors-one", "errors-two", "seen-one", "seen-two"]
    cell = result.cells["seen-one", "a", "cycles"]
    assert (cell.paper, cell.ours, cell.ratio) == (200, 100.0, 0.5)
    errors = {c: result.cells["errors-one", "seen", c] for c in ("many", "geomean", "error", "close")}
    assert errors["many"].ours == 2 and errors["close"].ours == 0.5
    assert errors["geomean"].ours == pytest.approx((0.5 * 1.05) ** 0.5)
    assert errors["error"].ours == pytest.approx((0.5 + 0.05) / 2)
    # Only the second is the program that was measured: 101 instructions for 100, and not for 150.
    insts = [result.cells["seen-one", program, "insts"].ours for program in "ab"]
    assert insts == [101, 101] and result.cells["errors-one", "seen", "same"].ours == pytest.approx(0.05)
    assert all(cell.paper is None and cell.ratio is None for cell in errors.values())
    assert result.cells["errors-two", "seen", "error"].ours == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('for_each = "hosts"', 'for_each = "boats"', "table['errors'].for_each: is 'boats': the study has no such folder"),
        ('rows_from = "programs"', 'rows_from = "program"', "the figures have no table 'hosts.one.program'"),
        ("where = { held_out = false }", 'where = { held_out = "no" }', "leaves no entry of 'hosts.one.programs'"),
        ('rows_from = "programs"\n', "", "needs either `rows` or `rows_from`"),
        ('figure = "cycles"', 'figure = "time"', "has no figure 'hosts.one.programs.a.time'"),
    ],
)  # fmt: skip
def test_figures_of_folders_that_are_wrong(folder, write, old, new, message):
    assert old in HOSTS
    made = folder(HOSTS.replace(old, new, 1), "")
    write("s/hosts/one.toml", HOST)
    with pytest.raises(cm.InputError) as error:
        layout.load(made)
    assert message in str(error.value)


def test_settings_are_options():
    """By the same names, and of the same types, so that an option that is renamed is seen."""
    for declared in (layout.Settings, grid.Skip):
        for field in msgspec.structs.fields(declared):
            if field.encode_name in ("cipher", "variant", "on", "hardware", "set"):
                continue
            kind, _ = SAID[field.name]
            wanted = str | list[str] if declared is grid.Skip else list[str]
            assert field.type == ((wanted if kind == Sequence[str] else kind) | None), (declared, field.name)
    axes = {field.encode_name for field in msgspec.structs.fields(grid.Axes)}
    assert axes == {field.encode_name for field in msgspec.structs.fields(grid.Skip)} | {"skip"}


def test_a_default_of_no_constant_and_a_call_with_too_much(folder):
    with pytest.raises(
        _core.InputError, match=r"formulas\.loss\.of: the expression has no cycles \(did you mean 'cycle'\?\)"
    ):
        layout.load(folder(own_formula("cycle + base * part")))
    with pytest.raises(_core.InputError, match=r"formulas\.loss\.defaults: the expression has no part"):
        layout.load(folder(own_formula("cycles + base")))
    with pytest.raises(_core.InputError, match="takes exactly one argument"):
        layout.load(folder(own_formula("sqrt(cycles, base, part)")))


@pytest.mark.parametrize(
    "expression",
    [
        "cycles / (base - 10 * part / 2)",
        "sqrt(part - cycles * base)",
        "9 ** 9 ** 9 ** part * base + cycles",
        "(-cycles) ** (part / base)",
    ],
)
def test_an_expression_without_a_value_here(folder, expression):
    result = solved(folder(own_formula(expression)), rc6=160.0, rijndael=3.0)
    cell = result.cells["t", "a", "rate"]
    assert (cell.ours, cell.missing) == (None, "the formula has no value here")


def test_a_machine_of_the_study_s_own():
    on = "studies/aes-finalists-on-dsp/machines/c6201-32.toml"
    asked = {"cipher": "rc6", "direction": "encrypt", "blocks": "multi"}
    there = measure.Shelf()
    found = measure.answer({**asked, "on": on}, there)
    assert (found.machine, found.verified) == ("c6201-32", True)
    # Registers are all that RC6 lacks on the C6201.
    assert found.cycles_per_block <= 1.1 * found.bounds["lower"]
    for odd in ("studies/aes-finalists-on-dsp/machines/c6201-33.toml", "c6201-32", "studies/aes-finalists-on-dsp"):
        missing = measure.answer({**asked, "on": odd}, there)
        assert isinstance(missing, measure.Missing) and missing.reason == f"machine {odd} is not there"


def test_every_study_is_well_formed():
    for name in study.names():
        loaded = study.find(name)
        assert loaded.work() and (paths.STUDIES / name / "figures.toml").is_file()


def test_the_paper_s_own_rates_follow_its_formula():
    """Printed rates, means and quotients are those of its cycles, to the digits it prints."""
    loaded = study.find("aes-finalists-on-dsp")
    nothing = {measure.key(asked): measure.Missing("not asked") for asked in loaded.work()}
    result = results.solve(loaded, nothing)
    for name in ("table1", "table3"):
        for row in next(t for t in loaded.tables if t.name == name).rows:
            paper = {key[2]: cell.paper for key, cell in result.cells.items() if key[:2] == (name, row.key)}
            for mode in ("multi", "single"):
                assert paper[f"{mode}-rate"] == pytest.approx(25600 / paper[mode], abs=0.06)
    ranks = {key[1]: cell.paper for key, cell in result.cells.items() if key[0] == "ranking" and key[2] == "multi-rank"}
    assert ranks == {"twofish": 1, "rc6": 2, "rijndael": 3, "mars": 4, "serpent": 5}


@pytest.mark.parametrize(
    ("cipher", "direction", "cycles"),
    [
        ("rijndael", "encrypt", 71),
        ("rijndael", "decrypt", 71),
        ("rc6", "encrypt", 181),
        ("rc6", "decrypt", 161),
        ("twofish", "decrypt", 162),
        # Clapp: 162 and 214 for both directions, at most 526 and 436.
        ("twofish", "encrypt", 154),
        ("mars", "encrypt", 215),
        ("serpent", "encrypt", 506),
        ("serpent", "decrypt", 401),
    ],
)
@pytest.mark.parametrize("blocks", ["multi", "single"])
def test_critical_paths_are_clapp_s(cipher, direction, blocks, cycles):
    m = cm.run(cipher, on="clapp", direction=direction, blocks=blocks, bytes=32)
    assert m.bounds["critical_path"] == cycles


def test_command(cli, refused, tmp_path):
    assert "aes-finalists-on-dsp" in [entry["name"] for entry in json.loads(cli("list", "studies", "--json").out)]
    message = refused("study", "aes-finalist-on-dsp")
    assert message.startswith("no study 'aes-finalist-on-dsp' (did you mean 'aes-finalists-on-dsp'?)")


def test_a_measurement_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path))
    asked = {"cipher": "rc6", "on": "rv32", "bytes": 64}
    first = measure.answer(asked, measure.Shelf())
    monkeypatch.setattr(_core, "measure", None)
    there = measure.Shelf()
    assert measure.answer(asked, there) == first and first.cycles_per_block > 0
    assert measure.answer({**asked, "on": "nowhere"}, there) == measure.Missing("machine nowhere is not there")
