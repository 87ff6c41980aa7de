"""Model against silicon as a drawing: a point for each program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import plots
from .summary import CLOSE


def spec(document: Mapping[str, Any]) -> dict[str, Any]:
    """The drawing as Vega-Lite: silicon to the right, model upwards, both logarithmic, with the line of
    equals and those 5 % above and below it."""
    rows = [row for row in document["rows"] if row.get("ratio")]
    points = [
        {"program": r["program"], "silicon": r["silicon_cycles"], "model": r["simulated_cycles"],
         "what": "held out" if r["held_out"] else "others"}
        for r in rows
    ]  # fmt: skip
    ends = (
        [min(r["silicon_cycles"] for r in rows) / 1.2, max(r["silicon_cycles"] for r in rows) * 1.2]
        if rows
        else [1, 10]
    )
    lines = [
        {"silicon": at, "model": at * slope, "line": f"{slope:g}"} for slope in (1 - CLOSE, 1, 1 + CLOSE) for at in ends
    ]
    axis = {"type": "quantitative", "scale": {"type": "log", "nice": False, "zero": False}}
    where = document["processor"]["model"]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 560, "height": 560, "background": "white",
        "title": f"{document['machine']} beside {where}, cycles a block",
        "layer": [
            {"data": {"values": lines}, "mark": {"type": "line", "color": "#999999", "strokeWidth": 1}, "encoding": {
                "x": {"field": "silicon", **axis}, "y": {"field": "model", **axis}, "detail": {"field": "line"}}},
            {"data": {"values": points}, "mark": {"type": "point", "filled": True, "opacity": 0.8}, "encoding": {
                "x": {"field": "silicon", **axis, "title": f"silicon ({where})"},
                "y": {"field": "model", **axis, "title": f"model ({document['machine']})"},
                "color": {"field": "what", "type": "nominal", "title": None, "scale": {"range": ["#d55e00", "#0072b2"]}},
                "shape": {"field": "what", "type": "nominal", "title": None}}},
        ],
    }  # fmt: skip


def write(document: Mapping[str, Any], path: str) -> None:
    plots.write(spec(document), path)
