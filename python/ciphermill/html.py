"""Measurements as HTML, for notebooks: what a cell shows when one is its value.

Small tables in the notebook's own style, no script, no colours of our own but
for a measurement that was not verified. The HTML report is not made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from . import report
from .measured import Measured

RED = ' style="color: #b00020; font-weight: bold"'


def measurement(m: Measured) -> str:
    """One measurement: the sentence, then a line a fact."""
    bounds = m.bounds
    rows = [
        *report.costs(m),
        ("lower bound", f"{report.number(bounds['lower'])} cycles {report.unit(m)}"),
        ("instructions", f"{m.instructions}, {m.cpi:.3f} cycles each"),
        *report.memory(m),
        ("limited by", m.bottleneck),
    ]
    lines = "".join(
        f"<tr><th scope='row' style='text-align: left'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows
    )
    return f"<p{'' if m.verified else RED}>{escape(report.sentence(m))}{verdict(m)}</p><table>{lines}</table>"


def measurements(several: Sequence[Measured]) -> str:
    """Several measurements, a row each."""
    if not several:
        return "<p>No measurements.</p>"
    head = (
        "cipher",
        "direction",
        "key",
        "machine",
        report.units(several),
        "cycles/byte",
        "bound",
        "limited by",
        "verified",
    )
    body = "".join(
        row(
            (
                f"{m.cipher}/{m.variant}", m.direction, str(m.key_bits),
                m.machine + "".join(f"+{name}" for name in m["with"]), f"{m.cycles_per_block:.1f}",
                "" if m.direction == "keysetup" else f"{m.cycles_per_byte:.2f}",
                f"{m.bounds['lower']:.1f}", m.bottleneck, "yes" if m.verified else "NO",
            ),
            RED if not m.verified else "",
        )
        for m in several
    )  # fmt: skip
    heads = "".join(f"<th scope='col'>{escape(name)}</th>" for name in head)
    return (
        f"<p>{escape(report.summary(several))}</p><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def verdict(m: Measured) -> str:
    return "" if m.verified else f" <strong>NOT VERIFIED: {escape(str(m.get('failure') or 'see to_dict()'))}</strong>"


def row(cells: Iterable[str], style: str) -> str:
    return f"<tr{style}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
