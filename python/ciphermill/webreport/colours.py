"""The colours of the page, all safe for colour-blind readers.

Categories: the eight of M. Okabe and K. Ito (Color Universal Design, 2008),
with grey in place of black so that they show on dark ground. Amounts: cividis
(Nunez, Anderton and Renslow, PLOS ONE 13(7), 2018). Nowhere is colour alone in
saying something: there is a number, a word or a shape beside it.
"""

from __future__ import annotations

import math

CATEGORIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
PAPER, OURS = "#e69f00", "#0072b2"

#: Ten steps of cividis, from little to much.
CIVIDIS = ("#fee838", "#e1cc55", "#c3b369", "#a59c74", "#8a8678", "#707173", "#575d6d", "#3b496c", "#123570", "#00224e")


def heat(value: float, least: float, most: float) -> tuple[str, str]:
    """Ground and text colour of an amount on a logarithmic scale."""
    span = math.log(most / least) if most > least else 1.0
    place = min(max(math.log(value / least) / span, 0.0), 1.0)
    ground = CIVIDIS[round(place * (len(CIVIDIS) - 1))]
    return ground, text_on(ground)


def text_on(ground: str) -> str:
    """Black or white, whichever stands out more (WCAG 2: one of them always reaches 4.5 to 1)."""
    light = luminance(ground)
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2.2), 0 to 1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
