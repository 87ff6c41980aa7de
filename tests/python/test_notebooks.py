"""The notebooks run from their first cell to their last, are kept with what they show now, and show what they say."""

from __future__ import annotations

import json

import pytest
from notebooks import NOTEBOOKS, executed, varies

pytest.importorskip("polars")
pytest.importorskip("vl_convert")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    notebook = json.loads(request.param.read_text())
    assert notebook["nbformat"] == 4
    return notebook["cells"]


def test_it_runs_and_is_kept_as_it_runs(cells):
    namespace: dict = {"__name__": "notebook"}
    now = executed(cells, namespace)
    shown = [output for cell in now for output in cell.get("outputs", [])]
    assert "NOT VERIFIED" not in json.dumps(shown) and len(shown) >= 6
    assert any("image/svg+xml" in output.get("data", {}) for output in shown), "a notebook without a picture"
    for before, after in zip(cells, now, strict=True):
        if not varies(before):
            assert before == after, "make notebooks writes what it shows now"
        elif before["cell_type"] == "code":
            assert before["outputs"] and before["execution_count"] == after["execution_count"]
    printed = "".join("".join(output["text"]) for output in shown if output["output_type"] == "stream")
    check = {"cipher": first, "CIPHER": second}
    next(judge for name, judge in check.items() if name in namespace)(namespace, printed)


def first(namespace, printed):
    """What the text of the first notebook claims."""
    assert printed.count("\n") == 3 and "feedback" in printed
    loads = list(namespace["loads"].values())
    assert loads == sorted(loads) and loads[-1] > loads[0]
    assert namespace["gains"]["xtea"] == pytest.approx(1, abs=0.05) and namespace["gains"]["chacha20"] > 1.2
    mine, rijndael = namespace["findings"].values()
    assert mine == 0 and rijndael > 0
    rv32, leon2 = namespace["rv32"], namespace["leon2"]
    assert namespace["wide"].cycles_per_block < namespace["feedback"].cycles_per_block < rv32.cycles_per_block
    assert rv32.bounds["critical_path"] < 0.65 * rv32.cycles_per_block
    assert leon2.bounds["resource"] == pytest.approx(leon2.cycles_per_block, rel=0.02)


def second(namespace, printed):
    """What the text of the second notebook claims."""
    assert "module op_" in printed
    loads = namespace["loads"]
    # 160 lookups a block, which neither leaves.
    assert all(loads["none"] - loads[choice] >= 160 for choice in ("zkne", "aes_v1"))
    none, v1, zkne = namespace["verdicts"]
    assert none["area_time"] == 1 and zkne["area_time"] < v1["area_time"] < 1
    assert zkne["gates"] < v1["gates"] / 2 and zkne["cycles"] < v1["cycles"] < none["cycles"]


def test_both_are_there():
    assert [path.stem for path in NOTEBOOKS] == ["how-fast-is-my-cipher", "is-this-instruction-worth-its-gates"]
