"""From Vega-Lite to what a browser gets: a drawing that stands in the page as
it is, and the program that makes it move.

The drawing is SVG made here by vl-convert, so that the page has its figures at
once, without JavaScript, and on paper. Vega itself, from the same package, is
packed into the page and unpacked only when a figure comes into view.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import Any

from .. import cached

#: Stands for the colour of text in what vl-convert draws, until the page decides.
INK = "#010203"
LINE = "#010204"


def config(ink: str, line: str) -> dict[str, Any]:
    """How all figures look, on a ground where text has the colour ``ink``."""
    axis = {
        "labelColor": ink, "titleColor": ink, "domainColor": line, "tickColor": line, "gridColor": line, "gridOpacity": 0.35,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": axis,
        # Numbers at the ends are moved inwards, and would stand on their neighbours.
        "axisX": {"labelOverlap": "greedy", "labelSeparation": 3},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "orient": "top",
            "labelFontSize": 12,
            "labelLimit": 260,
            "columns": 3,
        },
        "text": {"color": ink},
        "title": {"color": ink},
    }


def converter() -> str:
    """The version of what draws."""
    import vl_convert

    version: str = vl_convert.__version__  # type: ignore[attr-defined]  # its stubs leave it out
    return version


def svg(spec: dict[str, Any], name: str) -> str:
    """A drawing whose text takes the colour of the text around it; kept by content."""
    # Optional: packing, which others take from here, needs none of it.
    import vl_convert

    whole = {**spec, "config": config(INK, LINE)}
    digest = hashlib.sha256(f"{converter()}\0{json.dumps(whole, sort_keys=True)}".encode()).hexdigest()[:40]
    kept = cached.place("report", f"{digest}.svg")
    if (known := cached.read(kept)) is not None:
        drawn = known.decode()
    else:
        drawn = vl_convert.vegalite_to_svg(whole)
        cached.write(kept, drawn.encode())
    drawn = drawn.replace(INK, "currentColor").replace(LINE, "var(--line)")
    # Names in a page must differ from drawing to drawing.
    drawn = re.sub(r"\b(clip|gradient_?)(\d+)\b", rf"{name}-\1\2", drawn)
    # What a screen reader needs is said once, by the figure around it.
    return re.sub(r' (role|aria-[a-z]+)="[^"]*"', "", drawn)


def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, compressed, in base64."""
    import vl_convert

    kept = cached.place("report", f"vega-{converter()}.b64")
    if (known := cached.read(kept)) is not None:
        return known.decode()
    packed = pack(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    cached.write(kept, packed.encode())
    return packed


def pack(text: str) -> str:
    """Text as the page's own script unpacks it: gzip, in base64; the same bytes for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
