"""Numbers as the page writes them."""

from __future__ import annotations


def figure(value: float | None, none: str = "–") -> str:
    """Three or four digits that count, thousands set apart by a narrow space."""
    if value is None:
        return none
    if value == round(value) and abs(value) >= 1:
        return f"{value:,.0f}".replace(",", "\u202f")
    return digits(value)


def digits(value: float) -> str:
    """The same where whole numbers are a coincidence: 12 is written 12.0."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
