"""Pictures of what commands say (``--plot``), as Vega-Lite: the data, and how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import paths, report, tracing
from ._core import InputError
from .measured import Measured

Spec = dict[str, Any]

SUFFIXES = (".svg", ".png")
WIDTH = 560
#: Characters of a source line or an instruction beside its bar.
LABEL = 60
#: Source lines of a picture; the rest are one bar.
LINES = 25
#: Of Okabe and Ito, which people who see few colours tell apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"]


@dataclass(frozen=True)
class Picture:
    """A drawing, which a notebook shows. Needs the extra ``ciphermill[report]``, else raises InputError."""

    #: What is drawn, as Vega-Lite.
    spec: Spec

    def svg(self) -> str:
        drawer("plot")
        import vl_convert

        return vl_convert.vegalite_to_svg(self.spec)

    def png(self) -> bytes:
        drawer("plot")
        import vl_convert

        return vl_convert.vegalite_to_png(self.spec, scale=2)

    def write(self, path: str | Path) -> None:
        """Into a file: as its name ends, an SVG or a PNG."""
        check(str(path), "plot")
        write(self.spec, str(path), "plot")

    def __repr__(self) -> str:
        return f"<Picture: {self.spec['title']}>"

    def _repr_svg_(self) -> str:
        return self.svg()


def drawer(asked: str) -> None:
    if find_spec("vl_convert") is None:
        raise InputError(f"{asked} needs vl-convert-python: pip install 'ciphermill[report]'")


def check(path: str | None, asked: str = "--plot") -> None:
    """Refuse what cannot be drawn before the work is done and not after it."""
    if path is None:
        return
    if Path(path).suffix not in SUFFIXES:
        raise InputError(f"{asked} {path}: the name of a drawing ends in {' or '.join(SUFFIXES)}")
    drawer(asked)
    paths.check_writable(Path(path), asked)


def write(spec: Spec, path: str, asked: str = "--plot") -> None:
    """Draw into a file: as its name ends, an SVG or a PNG."""
    picture = Picture(spec)
    data = picture.svg().encode() if Path(path).suffix == ".svg" else picture.png()
    try:
        paths.write_atomically(Path(path), data)
    except OSError as error:
        raise InputError(f"{asked} {path}: {error.strerror}") from None


def drawn(title: str, rows: Sequence[Mapping[str, Any]], **rest: Any) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "width": WIDTH,
        "title": title,
        "data": {"values": list(rows)},
        "config": {"axis": {"labelLimit": 400}, "range": {"category": COLOURS}},
        **rest,
    }


def bars(title: str, rows: Sequence[Mapping[str, Any]], unit: str) -> Spec:
    """A bar a row: `name` and `cycles`, in the rows' order, with the number behind it."""
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    x = {"field": "cycles", "type": "quantitative", "title": unit}
    number = {"field": "cycles", "type": "quantitative", "format": ".4~g"}
    layers: list[Spec] = [
        {"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": {"x": x, "y": y}},
        {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"x": x, "y": y, "text": number}},
    ]
    if any("bound" in row for row in rows):
        tick = {"type": "tick", "color": "black", "thickness": 2, "size": 16}
        layers.append({"mark": tick, "encoding": {"x": {"field": "bound", "type": "quantitative"}, "y": y}})
    return drawn(title, rows, height={"step": 20}, layer=layers)


def run(measurements: Sequence[Measured]) -> Spec:
    """Cycles of each measurement, and its lower bound as a mark on the bar."""
    rows = [{"name": report.title(m), "cycles": m.cycles_per_block, "bound": m.bounds["lower"]} for m in measurements]
    return bars("Cycles, and the lower bound", rows, report.units(measurements))


def explain(measurement: Measured, explanation: Mapping[str, Any]) -> Spec:
    """Cycles of a pass of the hottest code by source line, in the order of the source; where no cycle belongs to one
    instruction, cycles an instruction by cause."""
    name = report.title(measurement)
    lines = [row for row in explanation["lines"] if row["stretch"] == 0]
    if not lines:
        causes = sorted(measurement.to_dict()["cpi_stack"].items(), key=lambda cause: -cause[1])
        stack = [{"name": cause, "cycles": cycles} for cause, cycles in causes if cycles >= 0.0005]
        return bars(f"{name}: what its cycles are", stack, "cycles an instruction")
    shown, others = lines[:LINES], lines[LINES:]
    shown = sorted(shown, key=lambda row: (row["file"] is None, row["file"] or "", row["line"] or 0))
    rows = [{"name": labelled(row), "cycles": row["cycles"]} for row in shown]
    if others:
        rows.append({"name": f"{len(others)} other lines", "cycles": sum(row["cycles"] for row in others)})
    stretch = explanation["stretches"][0]
    return bars(f"{name}: {stretch['function']} by source line", rows, "cycles a pass")


def labelled(row: Mapping[str, Any]) -> str:
    if row["file"] is None:
        return "no line of the source"
    whole = f"{Path(row['file']).name}:{row['line']}  {row['text'] or ''}"
    return whole if len(whole) <= LABEL else f"{whole[: LABEL - 3]}..."


def trace(measurement: Measured) -> Spec:
    """Micro-operations from top to bottom, cycles to the right, a colour for each stage."""
    rows = [
        {"n": n, "name": f"{n + 1}: {'> ' if row['squashed'] else ''}{tracing.title(row)}"[:LABEL], "stage": stage,
         "start": start, "stop": stop}
        for n, row in enumerate(measurement.pipeline)
        for stage, start, stop in tracing.spans(row)
    ]  # fmt: skip
    stages = list(dict.fromkeys(("fetch", "decode", "rename", "wait", "execute", "done")))
    encoding = {
        "x": {"field": "start", "type": "quantitative", "title": "cycle", "scale": {"zero": False, "nice": False}},
        "x2": {"field": "stop"},
        "y": {"field": "name", "type": "nominal", "sort": {"field": "n"}, "title": None},
        "color": {"field": "stage", "type": "nominal", "sort": stages, "title": None,
                  "scale": {"domain": stages, "range": ["#cccccc", "#999999", "#777777", "#e69f00", "#d55e00", "#56b4e9"]}},
    }  # fmt: skip
    return drawn(f"{report.title(measurement)}: its pipeline", rows, height={"step": 14}, mark="bar", encoding=encoding)


def sweep(varying: Sequence[str], points: Sequence[tuple[Mapping[str, Any], Measured | None]]) -> Spec:
    """Cycles of each point, its settings and its measurement, over the first setting that varies, a colour for each
    combination of the others."""
    axes = varying or ["cipher"]
    rows = []
    for settings, m in points:
        if m is not None:
            others = ", ".join(f"{axis} {settings[axis]}" for axis in axes[1:] if axis in settings)
            rows.append({"along": settings.get(axes[0], ""), "cycles": m.cycles_per_block, "others": others})
    number = all(isinstance(row["along"], (int, float)) and not isinstance(row["along"], bool) for row in rows)
    encoding: Spec = {
        "x": {"field": "along", "type": "quantitative" if number else "nominal", "title": axes[0], "sort": None},
        "y": {
            "field": "cycles",
            "type": "quantitative",
            "title": report.units(m for _, m in points if m is not None) if rows else "cycles",
        },
    }
    if len(axes) > 1:
        title = ", ".join(axes[1:])
        encoding["color"] = {"field": "others", "type": "nominal", "title": title, "legend": {"labelLimit": 300}}
    mark = {"type": "line", "point": True} if number else {"type": "point", "filled": True, "size": 60}
    return drawn(f"{len(rows)} points", rows, height=340, mark=mark, encoding=encoding)
