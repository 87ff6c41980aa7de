"""The notebooks as they are kept: run from their first cell to their last, with what each cell shows.

    .venv/bin/python tests/python/notebooks.py     # make notebooks: runs them and writes what they show into them

Cells are executed in order in one namespace, as a kernel would; the value of a cell's last expression is what the
notebook shows. Nothing of Jupyter is needed.
"""

from __future__ import annotations

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from samples import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
#: The tag of a cell that shows another thing elsewhere: a version, or gates where there is no Yosys.
VARIES = "varies"
#: What a value can be shown as, besides its text.
SHOWN = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def executed(cells: list[dict[str, Any]], namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """The same cells with what they show now."""
    run, count = [], 0
    for cell in cells:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": outputs("".join(cell["source"]), namespace, count)}
        run.append(cell)
    return run


def outputs(source: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell: what it prints, and what the value of its last expression is shown as."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    shown: list[dict[str, Any]] = []
    if text := printed.getvalue():
        shown.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        data |= {
            kind: getattr(value, way)().splitlines(keepends=True) for kind, way in SHOWN.items() if hasattr(value, way)
        }
        shown.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return shown


def varies(cell: dict[str, Any]) -> bool:
    return VARIES in cell["metadata"].get("tags", [])


def write(path: Path) -> None:
    notebook = json.loads(path.read_text())
    notebook["cells"] = executed(notebook["cells"], {"__name__": "notebook"})
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        write(each)
