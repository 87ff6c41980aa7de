"""The page put together: what was measured, in the shape its templates want.

Everything a reader sees first is written into the HTML here; the page's script
only adds what moves. Nothing is measured here and nothing read but templates.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
from markupsafe import Markup, escape

from .. import _core, library, manifest
from ..measurement import Measurement
from ..study.layout import Table, cells_of
from ..study.measure import Missing
from ..study.results import Cell, Place, Result
from ..study.text import sentence
from . import colours, drawing, figures, kernels, numbers, pipelines
from .commentary import Commentary, spoken
from .evidence import Book, is_kept
from .figures import Figure
from .words import NEAR


@dataclass
class Content:
    """What the page is made of."""

    survey: Sequence[tuple[Mapping[str, Any], Measurement | Missing]]
    studies: list[tuple[Result, Commentary]]
    #: Settings, with the core's explanation of the program they name.
    kernels: Sequence[tuple[Mapping[str, Any], dict[str, Any]]] = field(default_factory=list)
    #: Settings, with the measurement that has the pipeline they ask for.
    pipelines: Sequence[tuple[Mapping[str, Any], dict[str, Any]]] = field(default_factory=list)


def render(content: Content) -> str:
    """The whole page as one HTML document."""
    loader = jinja2.PackageLoader("ciphermill.webreport", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"figure": numbers.figure, "digits": numbers.digits, "ratio": numbers.ratio}
    book = Book()
    cells: list[dict[str, Any]] = []
    start = overview(content.survey, book) if content.survey else None
    studies = [study(result, comment, book, cells) for result, comment in content.studies]
    data = {"evidence": book.records, "cells": cells}
    shown = [found.get("measured") for _, found in content.kernels] + [found for _, found in content.pipelines]
    counted = [(r["verified"], r["vectors"]) for r in book.records if r["verified"] is not None]
    counted += [(m["verified"], m["provenance"].get("vectors")) for m in shown if m and not m.get("missing")]
    return environment.get_template("page.html").render(
        version=_core.version(),
        about=about(counted, bool(studies), bool(book.records)),
        start=start,
        studies=studies,
        kernels=[kernels.view(asked, found, f"kernel-{i}") for i, (asked, found) in enumerate(content.kernels)],
        classes=kernels.CLASSES,
        pipelines=[pipelines.view(asked, found, f"pipeline-{i}") for i, (asked, found) in enumerate(content.pipelines)],
        stages=pipelines.STAGES,
        script_json=script_json,
        data=script_json(data),
        # A page of one program shows it at once.
        alone=not start and not studies,
        vega=drawing.vega() if start or studies else "",
        themes=script_json(
            {"light": drawing.config("#1b1f24", "#c4cad1"), "dark": drawing.config("#e6e9ee", "#454c57")}
        ),
    )


def about(counted: Sequence[tuple[bool, int | None]], papers: bool, records: bool) -> list[str]:
    """What stands behind the page's measurements, each given as whether it is verified and how many official
    vectors its module passed; whether there are papers to compare with, and numbers that can be chosen."""
    said, of = [], len(counted)
    wrong = sum(not verified for verified, _ in counted)
    right = [vectors or 0 for verified, vectors in counted if verified]
    if of:
        equal = (
            "a simulated run whose output and memory equalled those of an independent interpreter of the same module"
        )
        if not wrong:
            said.append(f"Each cycle count is from {equal}.")
        elif right:
            said.append(f"{wrong} of {of} measurements are not verified; every other is from {equal}.")
        else:
            said.append("The cycle counts are not verified: the run failed, its output differed, or a test vector did.")
    if right:
        without = sum(not vectors for vectors in right)
        if without == len(right):
            said.append("No official test vectors were there to judge the module by.")
        elif without:
            said.append(
                f"{len(right) - without} of these {len(right)} modules pass official test vectors; for the others there were none."
            )
        else:
            said.append("Each of these modules passes official test vectors of its cipher.")
    if papers:
        said.append(
            "Where ours differs from a paper's, both stand here with their ratio; none of ours was scaled to fit."
        )
    if records:
        said.append("Choose any number for the command that measures it again.")
    return said


def script_json(value: Any) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")


# --------------------------------------------------------------------------- start page


def overview(survey: Sequence[tuple[Mapping[str, Any], Measurement | Missing]], book: Book) -> dict[str, Any]:
    """The heat map of ciphers on machines."""
    machines = list(dict.fromkeys(asked["on"] for asked, _ in survey))
    good = [m.cycles_per_byte for _, m in survey if isinstance(m, Measurement) and m.verified]
    least, most = (min(good), max(good)) if good else (1.0, 1.0)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for asked, m in survey:
        name = (asked["cipher"], asked["variant"])
        if name not in rows:
            cipher = manifest.find(asked["cipher"])
            variant = cipher.variant(asked["variant"])
            rows[name] = {
                "cipher": cipher.name, "title": cipher.title, "variant": variant.name,
                "kind": cipher.of(variant.name).kind, "key_bits": asked["key_bits"],
                "default": variant.name == cipher.default_variant,
                "trades": variant.trades or "", "cells": [],
            }  # fmt: skip
        cell: dict[str, Any] = {"machine": asked["on"], "value": None, "missing": None}
        if isinstance(m, Missing):
            cell["missing"] = m.reason
        elif not m.verified:
            cell["missing"] = f"not verified: {m.failure}"
        else:
            ground, ink = colours.heat(m.cycles_per_byte, least, most)
            cell |= {"kept": is_kept(m)}
            cell |= {"value": m.cycles_per_byte, "ground": ground, "ink": ink, "limit": m.bottleneck, "evidence": book.add(asked, m),
                     "constant_time": m.get("constant_time") is True}  # fmt: skip
        rows[name]["cells"].append(cell)
    for row in rows.values():
        cells = {cell["machine"]: cell for cell in row["cells"]}
        row["cells"] = [cells.get(m) or left_out(row, m) for m in machines]
    points = [(f"{a['cipher']}/{a['variant']}", m) for a, m in survey if isinstance(m, Measurement) and m.verified]
    shown = [figures.roof("start-roof", points)]
    best = [min(there, key=lambda pair: pair[1])[0] for machine in machines if (there := [
        (name, m.cycles_per_byte) for name, m in points if m.machine == machine])]  # fmt: skip
    first, times = Counter(best).most_common(1)[0] if best else ("", 0)
    heads = [library.headline(library.machine_path(m), "machine") for m in machines]
    return {
        "machines": [{"name": h["name"], "title": h["title"]} for h in heads],
        "rows": list(rows.values()),
        "limits": sorted({c["limit"] for r in rows.values() for c in r["cells"] if c.get("limit")}),
        "legend": [{"ground": g, "value": least * (most / least) ** (i / (len(colours.CIVIDIS) - 1)), "ink": colours.text_on(g)}
                   for i, g in enumerate(colours.CIVIDIS)],
        "fastest": {"name": first, "machines": times, "of": len(best)},
        "kept": any(c.get("kept") for r in rows.values() for c in r["cells"]),
        "count": len(good),
        "asked": len(survey),
        "figures": drawn(shown),
    }  # fmt: skip


def left_out(row: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """A cell that the survey does not ask for, with the command that does."""
    command = f"ciphermill run {row['cipher']} --variant {row['variant']} --on {machine}"
    return {
        "machine": machine,
        "value": None,
        "missing": f"not measured for this page, which it would make slow; {command}",
    }


# --------------------------------------------------------------------------- studies


def study(result: Result, comment: Commentary, book: Book, cells: list[dict[str, Any]]) -> dict[str, Any]:
    """A study's tables, figures and words."""
    places: dict[Place, int] = {}
    tables = [table(result, t, book, cells, places) for t in result.study.tables]
    link(result, cells, places)
    measured = figures.labelled(result)
    shown: list[Figure | None] = [*figures.chosen(result, comment)]
    shown += [
        figures.roof(f"{result.study.name}-roof", measured),
        figures.stacks(f"{result.study.name}-stacks", measured),
    ]
    for front in comment.pareto:
        axes = [front.place(axis) for axis in (front.x, front.y)]
        by_name = {t.name: t for t in result.study.tables}
        points = []
        for row in by_name[front.table].rows:
            there = [result.cells.get((t, row.key, c)) for t, c in axes]
            x, y = (None if cell is None else cell.ours for cell in there)
            if x is not None and y is not None:
                points.append({"label": row.label, "x": x, "y": y})
        columns = [next(column for column in by_name[t].columns if column.key == c) for t, c in axes]
        across, up = (f"{column.label}, {column.unit}" for column in columns)
        shown.append(figures.pareto(f"{result.study.name}-{front.table}-pareto", front.title, points, across, up))
    return {
        "name": result.study.name,
        "title": result.study.title,
        "paper": result.study.paper,
        "note": " ".join(result.study.note.split()),
        "sentence": sentence(result).removeprefix(f"{result.study.name}: "),
        "comment": {name: marked(text) for name, text in spoken(comment, result).items()},
        "tables": tables,
        "figures": drawn(shown),
    }


def marked(text: str) -> str:
    """A text in which what stands between backquotes is code, as markup."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def table(
    result: Result, t: Table, book: Book, cells: list[dict[str, Any]], places: dict[Place, int]
) -> dict[str, Any]:
    """A table as rows of triples: paper, ours, ratio."""
    by_place = {(c.row.key, c.column.key): c for c in result.of(t)}
    rows = []
    for row in t.rows:
        line: list[dict[str, Any] | None] = []
        for column in t.columns:
            cell = by_place.get((row.key, column.key))
            if cell is None:
                line.append(None)
                continue
            places[t.name, row.key, column.key] = len(cells)
            line.append({"number": len(cells), "paper": cell.paper, "ours": cell.ours, "ratio": cell.ratio,
                         "kind": cell.paper_kind, "missing": cell.missing, "near": near(cell)})  # fmt: skip
            cells.append(record(result, t, cell, book))
        rows.append({"label": row.label, "cells": line})
    reasons: dict[str, list[str]] = {}
    for cell in by_place.values():
        if cell.ours is None and cell.missing:
            labels = reasons.setdefault(cell.missing, [])
            if cell.column.label not in labels:
                labels.append(cell.column.label)
    means = result.summary(t)
    # Where the paper has no figure in a whole column, ours stands alone.
    compared = {c.column.key for c in by_place.values() if c.paper is not None}
    return {
        "compared": [c.key in compared for c in t.columns],
        "name": t.name, "title": t.title, "note": " ".join(t.note.split()), "columns": t.columns, "rows": rows,
        "means": [means.get(c.key) for c in t.columns] if means else None,
        "reasons": [(", ".join(labels), reason) for reason, labels in reasons.items()],
        "figures": drawn([figures.beside(result, t), figures.ratios(result, t)]),
    }  # fmt: skip


def near(cell: Cell) -> str:
    """How far off a cell is, as a class of the style sheet."""
    if cell.ratio is None:
        return ""
    if cell.ratio <= 0:
        return "far"
    off = max(cell.ratio, 1 / cell.ratio) - 1
    return "near" if off <= NEAR else "off" if off <= 3 * NEAR else "far"


def record(result: Result, t: Table, cell: Cell, book: Book) -> dict[str, Any]:
    """What is shown when a cell is chosen."""
    figure = None
    if cell.paper_kind in ("published", "quoted") and cell.row.figures is not None:
        place = ".".join(part for part in (cell.row.figures, cell.column.figure) if part)
        figure = result.study.place(place)
    found: dict[str, Any] = {
        "label": f"{cell.row.label}, {cell.column.label}", "table": t.title, "unit": cell.column.unit, "paper": cell.paper,
        "paper_kind": cell.paper_kind, "paper_place": figure, "citation": result.study.paper, "ours": cell.ours, "ratio": cell.ratio,
        "missing": cell.missing, "study": f"ciphermill study {result.study.name} --json",
    }  # fmt: skip
    if cell.measurement is not None and cell.asked is not None and "cipher" in cell.asked:
        found["evidence"] = book.add(cell.asked, cell.measurement)
        found["measure"] = cell.row.measure or cell.column.measure
        if cell.column.times != 1:
            found["times"] = cell.column.times
    elif cell.column.formula:
        found["formula"] = {
            "name": cell.column.formula,
            "constants": dict(cell.column.constants),
            "quoted": cell.provenance.get("quoted", []),
        }
    elif cell.provenance:
        found["provenance"] = cell.provenance
        found["settings"] = dict(cell.asked or cell.settings)
        found["measure"] = cell.row.measure or cell.column.measure
    return found


def link(result: Result, cells: list[dict[str, Any]], places: Mapping[Place, int]) -> None:
    """Give each derived cell's record the numbers of the cells it came from."""
    for t in result.study.tables:
        for row, column in t.cells():
            if column.formula:
                inputs = [place for reference in column.of for place in cells_of(result.study, t, row, reference)]
                cells[places[t.name, row.key, column.key]]["formula"]["of"] = [
                    places[a.name, b.key, c.key] for a, b, c in inputs
                ]


def drawn(shown: Sequence[Figure | None]) -> list[dict[str, Any]]:
    """Figures with their drawings; those that had nothing to show left out."""
    return [
        {"key": f.key, "title": f.title, "alt": f.alt, "svg": drawing.svg(f.spec, f.key), "spec": script_json(f.spec)}
        for f in shown
        if f is not None
    ]
