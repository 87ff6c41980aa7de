"""The kinds of what key or message may decide, in words (`docs/audit.md`)."""

from __future__ import annotations

from collections.abc import Mapping

#: How a kind reads in a table, and several of them in a sentence.
KINDS = {
    "branch": ("branch", "branches"),
    "address": ("address", "addresses"),
    "indirect-call": ("indirect call", "indirect calls"),
    "division": ("division", "divisions"),
    "indirect-jump": ("indirect jump", "indirect jumps"),
    "perhaps-access": ("predicated access", "predicated accesses"),
    "timing": ("varying time", "instructions of varying time"),
}


def counted(kinds: Mapping[str, int]) -> str:
    """How many there are of each kind: ``2 branches, 1 address``; none of a kind is not said."""
    return ", ".join(f"{n} {KINDS[kind][n != 1]}" for kind, n in kinds.items() if n)
