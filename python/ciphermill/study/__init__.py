"""Studies: what a paper did, laid out as its tables with ours beside.

A study is a folder in ``studies/``: the paper's figures as data
(``figures.toml``) and the layout of its tables (``study.toml``), which says for
each cell what to measure on which machine, or which formula to apply to which
cells (``docs/studies.md``). Adding a study is adding those two files.

    layout.py    reads and checks the files
    measure.py   makes the measurements that the cells ask for, or finds them kept
    formulas.py  the formulas that papers apply to their own cells; expressions.py reads and works them out
    results.py   puts paper and ours together
    text.py      prints it
"""

from __future__ import annotations

from typing import Any

from .. import paths
from .._core import InputError
from ..progress import Progress
from ..suggest import did_you_mean
from .layout import Study, load, names
from .measure import measure_all
from .results import Result, solve

__all__ = ["Result", "Study", "describe", "document", "find", "names", "records", "run"]


def find(name: str) -> Study:
    """A study by name. Raises InputError when there is none, or its files are wrong."""
    if name not in names():
        raise InputError(f"no study {name!r}{did_you_mean(name, names())}; there are {', '.join(names())}, and all")
    return load(paths.STUDIES / name)


def describe(name: str) -> dict[str, Any]:
    """Name, title and citation, as ``ciphermill list studies --json`` prints them."""
    study = find(name)
    return {"name": study.name, "title": study.title, "paper": study.paper, "tables": [t.name for t in study.tables]}


def run(studies: list[Study], progress: Progress = lambda items, total: items) -> list[Result]:
    """Every cell of every table, measured or with the reason why not.

    ``progress(results, total)`` passes the measurements on as they are made.
    """
    answers = measure_all([work for study in studies for work in study.work()], progress)
    return [solve(study, answers) for study in studies]


def document(results: list[Result]) -> dict[str, Any]:
    """The JSON document of ``ciphermill study --json``."""
    return {"schema": 1, "studies": [result.to_dict() for result in results]}


def records(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each cell of a document, with its study and table."""
    return [
        {"study": study["name"], "table": table["name"], **cell}
        for study in document["studies"]
        for table in study["tables"]
        for cell in table["rows"]
    ]
