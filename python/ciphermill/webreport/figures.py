"""The figures of the page, as Vega-Lite by way of Altair.

Each function looks at data and gives a `Figure`, or None when the data has
nothing to show that way. Colours of text and lines are left to
`ciphermill.webreport.drawing`, which knows on what ground they stand.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt

from ..measurement import Measurement
from ..study.layout import Table
from ..study.results import Cell, Result
from . import colours
from .commentary import Bars, Commentary, Curves

WIDTH = 560
#: Height of a row's band.
STEP = 22
#: Bars and points with more rows than this are unreadable on one figure.
MOST = 60


@dataclass(frozen=True)
class Figure:
    key: str
    title: str
    #: What it shows, for those who cannot see it.
    alt: str
    spec: dict[str, Any]


def figure(key: str, title: str, text: str, chart: alt.TopLevelMixin | dict[str, Any]) -> Figure:
    # A test validates them against Vega-Lite's schema; here that would take most of the time.
    spec = chart if isinstance(chart, dict) else chart.to_dict(validate=False)
    used = {name for name in _rows if f'"{name}"' in json.dumps(spec)}
    spec["datasets"] = {name: _rows[name] for name in sorted(used)}
    _rows.clear()
    return Figure(key, title, text, spec)


#: Rows of the figure under way, by name. Altair copies a chart, data and all, with
#: each thing said of it; so the data is only named until the chart is done.
_rows: dict[str, list[dict[str, Any]]] = {}


def data(rows: Sequence[dict[str, Any]]) -> alt.NamedData:
    """Rows for a chart of the next `figure`."""
    name = f"rows-{len(_rows)}"
    _rows[name] = list(rows)
    return alt.NamedData(name=name)


def comparable(result: Result, table: Table) -> list[Cell]:
    """Cells that can be set against the paper's: the measured ones, since a
    rate worked out of them says nothing new; in a table of derived ones, those."""
    cells = [c for c in result.of(table) if (c.ratio or 0) > 0 and c.paper_kind in ("published", "quoted")]
    return [c for c in cells if c.column.formula is None] or cells


def beside(result: Result, table: Table) -> Figure | None:
    """Paper and ours for each row, a strip for each column that the paper has."""
    shown = comparable(result, table)
    if len(shown) < 2:
        return None
    rows: list[dict[str, Any]] = []
    for cell in shown:
        strip = f"{cell.column.label}, {cell.column.unit}"
        common = {"row": cell.row.label, "strip": strip, "ratio": round(cell.ratio or 0, 3)}
        rows += [{**common, "who": "paper", "value": cell.paper}, {**common, "who": "ours", "value": cell.ours}]
    order = list(dict.fromkeys(cell.row.label for cell in shown))
    strips = list(dict.fromkeys(r["strip"] for r in rows))
    parts = []
    for strip in strips:
        part = [r for r in rows if r["strip"] == strip]
        parts.append(filled(strip, part, [label for label in order if any(r["row"] == label for r in part)]))
    text = f"Points for {len(order)} rows of {table.title}: the paper's figure and ours, joined by a line."
    return figure(f"{result.study.name}-{table.name}-beside", "Paper and ours", text, stacked(parts))


@cache
def strip() -> str:
    """A strip of `beside` as Vega-Lite, without what differs between strips. Made
    once: Altair takes a tenth of a second for one, and a page has hundreds."""
    base = alt.Chart(alt.NamedData(name="")).encode(
        y=alt.Y("row:N", sort=[], title=None, axis=alt.Axis(labelLimit=200)),
        x=alt.X("value:Q", title="", scale=alt.Scale(zero=True)),
    )
    line = base.mark_rule(opacity=0.5, strokeWidth=2).encode(
        x=alt.X("min(value):Q", title=""), x2="max(value):Q", color=alt.value("#888888")
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.Color(
            "who:N", title=None, scale=alt.Scale(domain=["paper", "ours"], range=[colours.PAPER, colours.OURS])
        ),
        shape=alt.Shape("who:N", title=None, scale=alt.Scale(domain=["paper", "ours"], range=["diamond", "circle"])),
        tooltip=[
            alt.Tooltip("row:N", title=" "),
            "who:N",
            alt.Tooltip("value:Q", format=".4~g"),
            alt.Tooltip("ratio:Q", title="ours/paper"),
        ],
    )
    return json.dumps((line + points).properties(width=WIDTH).to_dict(validate=False))


def filled(title: str, rows: Sequence[dict[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """The strip with its data, its title and its rows in order."""
    spec: dict[str, Any] = json.loads(strip())
    spec |= {"data": {"name": data(rows).name}, "height": STEP * len(order)}
    for layer in spec["layer"]:
        layer["encoding"]["x"]["title"] = title
        layer["encoding"]["y"]["sort"] = list(order)
    return spec


def stacked(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Charts one above the other; what they have in common stands at the top."""
    if len(parts) == 1:
        return parts[0]
    common = ("$schema", "config")
    inner = [{name: value for name, value in part.items() if name not in common} for part in parts]
    return {**{name: parts[0][name] for name in common}, "vconcat": inner}


def ratios(result: Result, table: Table) -> Figure | None:
    """ours/paper of every cell that has one, around a line at 1."""
    shown = comparable(result, table)
    if len(shown) < 2:
        return None
    order = list(dict.fromkeys(cell.row.label for cell in shown))
    series = list(dict.fromkeys(f"{c.column.label}, {c.column.unit}" for c in shown))
    rows = [{"row": c.row.label, "series": f"{c.column.label}, {c.column.unit}", "ratio": c.ratio} for c in shown]
    scale = alt.Scale(type="log", nice=True)
    points = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            y=alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=200)),
            x=alt.X(
                "ratio:Q", scale=scale, title="ours / paper (logarithmic)", axis=alt.Axis(format=".2~f", tickCount=6)
            ),
            color=alt.Color("series:N", sort=series, title=None, scale=alt.Scale(domain=series, range=palette(series))),
            shape=alt.Shape("series:N", sort=series, title=None, scale=alt.Scale(domain=series)),
            tooltip=[
                alt.Tooltip("row:N", title=" "),
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("ratio:Q", format=".3f", title="ours/paper"),
            ],
        )
    )
    rule = alt.Chart(data([{"ratio": 1}])).mark_rule(strokeDash=[4, 3], color="#888888").encode(x="ratio:Q")
    ratios = [c.ratio or 1 for c in shown]
    text = f"ours divided by paper for the rows of {table.title}, between {min(ratios):.2f} and {max(ratios):.2f}."
    chart = (rule + points).properties(width=WIDTH, height=STEP * len(order))
    return figure(f"{result.study.name}-{table.name}-ratios", "Ratio of ours to the paper's", text, chart)


def palette(series: Sequence[str]) -> list[str]:
    return [colours.CATEGORIES[i % len(colours.CATEGORIES)] for i in range(len(series))]


def measurements(cells: Iterable[Cell]) -> list[tuple[Cell, Measurement]]:
    """A program's measurements (not a circuit's), each once, with the cells that show them."""
    found: dict[int, tuple[Cell, Measurement]] = {}
    for cell in cells:
        m = cell.measurement
        if m is not None and m.verified and "cycles_per_block" in m:
            found.setdefault(id(m), (cell, m))
    return list(found.values())


def labelled(result: Result) -> list[tuple[str, Any]]:
    """A study's measurements by labels of which no two are the same: the row, the machine
    where there are several, and as much of column, table and direction as tells them apart."""
    tables = {id(cell): table.title.split(":")[0] for table in result.study.tables for cell in result.of(table)}
    shown = measurements(result.cells.values())
    several = len({m.machine for _, m in shown}) > 1

    def words(cell: Cell, m: Measurement, more: int) -> str:
        common = [cell.row.label, m.machine if several else "", "feedback" if m.blocks == "single" else ""]
        return ", ".join(filter(None, [*common, *[cell.column.label, tables[id(cell)], m.direction][:more]]))

    labels = [words(*both, 0) for both in shown]
    for more in (1, 2, 3):
        there = Counter(labels)
        labels = [words(*both, more) if there[label] > 1 else label for both, label in zip(shown, labels, strict=True)]
    there = Counter(labels)
    numbers = Counter[str]()
    for i, label in enumerate(labels):
        numbers[label] += 1
        if there[label] > 1:
            labels[i] = f"{label} ({numbers[label]})"
    return [(label, m) for label, (_, m) in zip(labels, shown, strict=True)]


def roof(key: str, points: Sequence[tuple[str, Any]]) -> Figure | None:
    """Achieved cycles a byte against the lower bound, for (label, measurement):
    on the line nothing is left to win, above it the gap is."""
    rows = [
        {
            "what": label, "machine": m.machine, "bound": m.bounds["lower"] * m.cycles_per_byte / m.cycles_per_block,
            "achieved": m.cycles_per_byte, "limited by": m.bottleneck, "gap": m.cycles_per_block / m.bounds["lower"],
        }
        for label, m in points
        if m.bounds.get("lower")
    ]  # fmt: skip
    if len(rows) < 2:
        return None
    kinds = sorted({r["limited by"] for r in rows})
    low, high = min(r["bound"] for r in rows) * 0.8, max(r["achieved"] for r in rows) * 1.25
    axis = alt.Scale(type="log", domain=[low, high], nice=False)
    line = (
        alt.Chart(data([{"a": low}, {"a": high}]))
        .mark_line(color="#888888", strokeDash=[4, 3])
        .encode(x="a:Q", y="a:Q")
    )
    marks = alt.Chart(data(rows)).mark_point(filled=True, size=60, opacity=0.85).encode(
        x=alt.X("bound:Q", title="lower bound, cycles a byte", scale=axis, axis=alt.Axis(format="~g", tickCount=6)),
        y=alt.Y("achieved:Q", title="achieved, cycles a byte", scale=axis, axis=alt.Axis(format="~g", tickCount=6)),
        color=alt.Color("limited by:N", scale=alt.Scale(domain=kinds, range=palette(kinds)), title="limited by"),
        shape=alt.Shape("limited by:N", scale=alt.Scale(domain=kinds), title="limited by"),
        tooltip=[alt.Tooltip("what:N", title=" "), "machine:N", alt.Tooltip("bound:Q", format=".2f"),
                 alt.Tooltip("achieved:Q", format=".2f"), alt.Tooltip("gap:Q", format=".2f", title="achieved/bound"), "limited by:N"],
    )  # fmt: skip
    worst = max(rows, key=lambda r: r["gap"])
    text = (
        f"{len(rows)} measurements against their lower bounds; "
        f"the largest gap is {worst['gap']:.2f} times, {worst['what']} on {worst['machine']}."
    )
    chart = (line + marks).properties(width=WIDTH, height=340)
    return figure(key, "Achieved against the lower bound", text, chart)


#: Where the time of a machine that issues in order goes, in words.
CAUSES = {
    "issue": "issuing", "load_wait": "waiting for loads", "operand_wait": "waiting for operands", "unit": "units taken",
    "branch": "branches", "icache": "instruction cache", "dcache": "data cache", "window": "register windows",
    "bank": "memory banks", "cross": "cross paths",
}  # fmt: skip

#: Causes too small for a colour of their own.
OTHERS = "all others"


def stacks(key: str, points: Sequence[tuple[str, Any]]) -> Figure | None:
    """Cycles a byte, split by what they were spent on: a bar for each of the first `MOST` (label, measurement)."""
    shares: list[tuple[str, Any, dict[str, float]]] = []
    weight: dict[str, float] = {}
    for label, m in points[:MOST]:
        parts = {
            CAUSES.get(name, name.replace("_", " ")): n
            for name, n in (m.get("cpi_stack") or m.get("breakdown") or {}).items()
            if n
        }
        total = sum(parts.values())
        if total > 0:
            shares.append((label, m, {cause: n / total for cause, n in parts.items()}))
        for cause, n in parts.items():
            weight[cause] = weight.get(cause, 0.0) + n / total
    if not shares:
        return None
    # As many as there are colours that can be told apart; the others count together.
    causes = sorted(weight, key=lambda cause: -weight[cause])
    if len(causes) > len(colours.CATEGORIES):
        causes = [*causes[: len(colours.CATEGORIES) - 1], OTHERS]
    rows: list[dict[str, Any]] = []
    for label, m, parts in shares:
        for place, cause in enumerate(causes):
            alone = parts.get(cause, 0.0)
            share = alone if cause != OTHERS else sum(n for other, n in parts.items() if other not in causes)
            if share:
                rows.append(
                    {"what": label, "cause": cause, "cycles": m.cycles_per_byte * share, "share": share, "place": place}
                )
    order = list(dict.fromkeys(r["what"] for r in rows))
    bars = alt.Chart(data(rows)).mark_bar(stroke="#888888", strokeWidth=0.5).encode(
        y=alt.Y("what:N", sort=order, title=None, axis=alt.Axis(labelLimit=230)),
        x=alt.X("cycles:Q", stack="zero", title="cycles a byte"),
        color=alt.Color("cause:N", sort=causes, title=None, scale=alt.Scale(domain=causes, range=palette(causes))),
        order=alt.Order("place:Q"),
        tooltip=[alt.Tooltip("what:N", title=" "), alt.Tooltip("cause:N", title=" "), alt.Tooltip("cycles:Q", format=".2f"),
                 alt.Tooltip("share:Q", format=".0%")],
    )  # fmt: skip
    some = (
        f"{len(order)} measurements" if len(points) <= MOST else f"the first {len(order)} of {len(points)} measurements"
    )
    text = f"Stacked bars for {some}; most of the time goes to {causes[0]}."
    title = "Where the cycles go" if len(points) <= MOST else f"Where the cycles go, {some}"
    return figure(key, title, text, bars.properties(width=WIDTH, height=STEP * len(order)))


def bars(result: Result, asked: Bars) -> Figure | None:
    """The paper's bars and ours for each row, one above the other, stacked from columns."""
    table = next(t for t in result.study.tables if t.name == asked.table)
    labels = {column.key: column.label for column in table.columns}
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        cells = [result.cells.get((table.name, row.key, part)) for part in asked.parts]
        for who, value in (("paper", "paper"), ("ours", "ours")):
            values = [None if cell is None else getattr(cell, value) for cell in cells]
            if all(v is not None for v in values):
                rows += [
                    {"row": row.label, "who": who, "part": labels[part], "value": v, "place": place}
                    for place, (part, v) in enumerate(zip(asked.parts, values, strict=True))
                ]
    if not rows:
        return None
    parts, order = [labels[p] for p in asked.parts], list(dict.fromkeys(r["row"] for r in rows))
    unit = next(column.unit for column in table.columns if column.key == asked.parts[0])
    drawn = alt.Chart(data(rows)).mark_bar(stroke="#888888", strokeWidth=0.5).encode(
        y=alt.Y("who:N", sort=["paper", "ours"], title=None),
        x=alt.X("value:Q", stack="zero", title=unit),
        color=alt.Color("part:N", sort=parts, title=None, scale=alt.Scale(domain=parts, range=palette(parts))),
        order=alt.Order("place:Q"),
        row=alt.Row("row:N", sort=order, title=None, header=alt.Header(labelAngle=0, labelAlign="left", labelColor="#888888")),
        tooltip=[alt.Tooltip("row:N", title=" "), "who:N", alt.Tooltip("part:N", title=" "), alt.Tooltip("value:Q", format=".3~g")],
    )  # fmt: skip
    text = f"Bars of {len(order)} rows of {table.title}, the paper's above ours, each of {' and '.join(parts)}."
    chart = drawn.properties(width=WIDTH - 140, height=2 * STEP)
    return figure(f"{result.study.name}-{table.name}-bars", asked.title, text, chart)


def curves(result: Result, asked: Curves, number: int) -> Figure | None:
    """A strip for each row, a line for each table over some of its columns."""
    tables = {t.name: t for t in result.study.tables}
    heads = {column.key: column.label for column in tables[asked.lines[0][0]].columns}
    rows: list[dict[str, Any]] = []
    for name, label in asked.lines:
        for row in tables[name].rows:
            for place, key in enumerate(asked.columns):
                cell = result.cells.get((name, row.key, key))
                if cell is not None and cell.ours is not None:
                    rows.append(
                        {
                            "row": row.label,
                            "line": label,
                            "at": heads[key].rsplit(" ", 1)[-1],
                            "value": cell.ours,
                            "place": place,
                        }
                    )
    if not rows:
        return None
    order = list(dict.fromkeys(r["row"] for r in rows))
    lines = [label for _, label in asked.lines if any(r["line"] == label for r in rows)]
    points = [heads[key].rsplit(" ", 1)[-1] for key in asked.columns]
    unit = next(column.unit for column in tables[asked.lines[0][0]].columns if column.key == asked.columns[0])
    drawn = alt.Chart(data(rows)).mark_line(point=alt.OverlayMarkDef(size=40)).encode(
        x=alt.X("at:O", sort=points, title=asked.x, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False)),
        color=alt.Color("line:N", sort=lines, title=None, scale=alt.Scale(domain=lines, range=palette(lines))),
        shape=alt.Shape("line:N", sort=lines, title=None, scale=alt.Scale(domain=lines)),
        tooltip=[alt.Tooltip("row:N", title=" "), alt.Tooltip("line:N", title=" "), alt.Tooltip("at:O", title=asked.x),
                 alt.Tooltip("value:Q", format=".3f", title=unit)],
    )  # fmt: skip
    facets = drawn.properties(width=150, height=150).facet(
        facet=alt.Facet("row:N", sort=order, title=None, header=alt.Header(labelColor="#888888")), columns=3
    )
    best = max(rows, key=lambda r: r["value"])
    text = (
        f"Lines of {', '.join(lines)} for {', '.join(order)}; "
        f"the highest is {best['value']:.2f}: {best['row']}, {best['line']}, {asked.x} {best['at']}."
    )
    return figure(f"{result.study.name}-curves-{number}", asked.title, text, facets.resolve_scale(y="independent"))


def chosen(result: Result, comment: Commentary) -> list[Figure]:
    """The bars and curves that a study's own commentary asks for."""
    shown = [bars(result, asked) for asked in comment.bars]
    shown += [curves(result, asked, number) for number, asked in enumerate(comment.curves, 1)]
    return [f for f in shown if f is not None]


def pareto(key: str, title: str, points: Sequence[dict[str, Any]], x: str, y: str) -> Figure | None:
    """Two costs against each other, and the front of those that nothing beats in both."""
    if len(points) < 2:
        return None
    front, best = [], float("inf")
    for p in sorted(points, key=lambda p: (p["x"], p["y"])):
        if p["y"] < best:
            front.append(p)
            best = p["y"]
    for p in points:
        p["front"] = "on the front" if p in front else "beaten"
    kinds = ["on the front", "beaten"]
    steps = alt.Chart(data(front)).mark_line(interpolate="step-after", color="#888888").encode(x="x:Q", y="y:Q")
    base = alt.Chart(data(points)).encode(
        x=alt.X("x:Q", title=x, scale=alt.Scale(zero=True)), y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False))
    )
    marks = base.mark_point(filled=True, size=80).encode(
        color=alt.Color(
            "front:N", title=None, scale=alt.Scale(domain=kinds, range=[colours.CATEGORIES[0], colours.CATEGORIES[1]])
        ),
        shape=alt.Shape("front:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "diamond"])),
        tooltip=[
            alt.Tooltip("label:N", title=" "),
            alt.Tooltip("x:Q", title=x),
            alt.Tooltip("y:Q", title=y),
            alt.Tooltip("front:N", title=" "),
        ],
    )
    names = base.mark_text(align="left", dx=8, dy=-6, fontSize=10).encode(text="label:N")
    text = f"{len(points)} points of {x} and {y}; {len(front)} on the Pareto front: {', '.join(p['label'] for p in front)}."
    return figure(key, title, text, (steps + marks + names).properties(width=WIDTH, height=300))
