"""A sweep as text for people."""

from __future__ import annotations

from .. import report, tables
from . import Sweep, title
from .grid import flat


def text(done: Sweep) -> str:
    """How many points and how far apart they are; then a line a point: what varies in the grid, and the main figures."""
    axes = done.grid.axes() or ["cipher"]
    rows = []
    for n, (point, m) in enumerate(done.results):
        settings = flat(point)
        cells = [str(settings.get(axis, "")) for axis in axes]
        if m is None:
            rows.append((*cells, "", "", "", "failed" if n in done.failures else "missing"))
        else:
            share = f"{100 * m.metrics['lookup_share']:.0f} %"
            rows.append((*cells, f"{m.cycles_per_block:.1f}", f"{m.bounds['lower']:.1f}", share, m.bottleneck))
    head = (
        *axes,
        report.units(done.measurements) if done.measurements else "cycles/block",
        "bound",
        "lookups",
        "limited by",
    )
    sentence = f"{len(done)} point{'' if len(done) == 1 else 's'}, {done.measured} measured now, {len(done.failures)} without a measurement"
    made = sorted(((point, m) for point, m in done.results if m is not None), key=lambda pair: pair[1].cycles_per_block)
    if len(made) > 1:
        (least, few), (most, many) = made[0], made[-1]
        what = report.units(done.measurements).replace("/", " a ")
        sentence += (
            f"; from {report.number(few.cycles_per_block)} {what} ({title({a: flat(least).get(a, '') for a in axes})}) "
            f"to {report.number(many.cycles_per_block)} ({title({a: flat(most).get(a, '') for a in axes})})"
        )
    figures = range(len(axes), len(axes) + 3)
    return f"{sentence}.\n\n{tables.text(head, rows, figures, (len(axes) + 1, len(axes) + 2))}"
