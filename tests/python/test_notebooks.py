"""The notebooks run from their first cell to their last, and show what they say.

Cells are executed in order in one namespace, as a kernel would; the value of a cell's
last expression is what the notebook shows. Nothing of Jupyter is needed.
"""

from __future__ import annotations

import ast
import json

import pytest
from samples import ROOT

pytest.importorskip("polars")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def execute(source: str, namespace: dict) -> object:
    """Run a cell; the value of its last expression, or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    notebook = json.loads(request.param.read_text())
    assert notebook["nbformat"] == 4
    return notebook["cells"]


def test_it_runs(cells, capsys):
    namespace: dict = {"__name__": "notebook"}
    shown = 0
    for cell in (c for c in cells if c["cell_type"] == "code"):
        # Outputs are made by whoever runs it: kept ones would grow old.
        assert cell["outputs"] == [] and cell["execution_count"] is None
        value = execute("".join(cell["source"]), namespace)
        if value is not None:
            html = getattr(value, "_repr_html_", lambda value=value: repr(value))()
            assert html and "NOT VERIFIED" not in html
            shown += 1
    assert shown >= 6
    check = {"cipher": first, "CIPHER": second}
    next(judge for name, judge in check.items() if name in namespace)(namespace, capsys.readouterr().out)


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
