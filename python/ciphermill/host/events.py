"""Names of events and metrics: generic ones, and the paper's.

The paper is *Microarchitecture analysis of Profile 1 eSTREAM ciphers on Intel Core2
Duo*: its Table 2 names eleven events, its formulas make metrics of them. Some of the
events are generic and every processor has them; others are the processor's own
(`processors.toml`), exact or near. A metric is only there when all of its events are,
and nothing is put in the place of one that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .processor import Processor

#: Generic events in groups that are counted together: four, what the poorest
#: processors have, and the first group holds what all ratios need.
GENERIC: tuple[dict[str, dict[str, Any]], ...] = (
    {
        "cycles": {"hardware": "cycles"},
        "instructions": {"hardware": "instructions"},
        "branches": {"hardware": "branches"},
        "branch-misses": {"hardware": "branch-misses"},
    },
    {
        "L1-dcache-loads": {"cache": {"which": "l1d", "op": "read", "miss": False}},
        "L1-dcache-load-misses": {"cache": {"which": "l1d", "op": "read", "miss": True}},
        "L1-icache-load-misses": {"cache": {"which": "l1i", "op": "read", "miss": True}},
        "cache-misses": {"hardware": "cache-misses"},
    },
)

#: The paper's names for generic events.
ALIASES = {
    "CPU_CLK_UNHALTED.CORE": "cycles",
    "INST_RETIRED.ANY": "instructions",
    "BR_INST_RETIRED.ANY": "branches",
    "BR_INST_RETIRED.MISPRED": "branch-misses",
    "L1I_MISSES": "L1-icache-load-misses",
}

#: All eleven of Table 2, in its order.
PAPER = (
    "BR_INST_RETIRED.ANY", "BR_INST_RETIRED.MISPRED", "CPU_CLK_UNHALTED.CORE", "INST_RETIRED.ANY", "L1D_REPL",
    "L1I_MISSES", "L2_LINES_IN.BOTH_CORES.ANY", "RESOURCE_STALLS.BR_MISS_CLEAR", "RS_UOPS_DISPATCHED",
    "UOPS_RETIRED.ANY", "UOPS_RETIRED.FUSED",
)  # fmt: skip

#: Events of one group, at most.
TOGETHER = 4


def groups(processor: Processor) -> list[dict[str, dict[str, Any]]]:
    """What is counted, name by name, in groups counted together."""
    own = dict(processor.entry.get("events", {})) if processor.entry else {}
    raw = [(name, {"raw": event["raw"]}) for name, event in own.items()]
    # Cycles in every group: what is compared with them was counted with them.
    room = TOGETHER - 1
    rest = [{"cycles": {"hardware": "cycles"}, **dict(raw[start : start + room])} for start in range(0, len(raw), room)]
    return [*GENERIC, *rest]


def named(counts: Mapping[str, float], processor: Processor) -> dict[str, dict[str, Any]]:
    """Every event that was counted, under its generic name and the paper's."""
    own = processor.entry.get("events", {}) if processor.entry else {}
    found: dict[str, dict[str, Any]] = {}
    for name, value in counts.items():
        about = own.get(name, {})
        found[name] = {"value": value, "exact": about.get("exact", True), "note": about.get("note", "")}
    for paper, generic in ALIASES.items():
        if paper not in found and generic in found:
            found[paper] = dict(found[generic])
    return found


#: Metrics by the paper's formulas, as fractions. ``wasted_work`` is not as the
#: paper prints it: its "-1" belongs outside the fraction (what was dispatched in
#: excess of what retired, over what retired).
FORMULAS: dict[str, Callable[[Mapping[str, float]], float]] = {
    "cpi": lambda e: e["CPU_CLK_UNHALTED.CORE"] / e["INST_RETIRED.ANY"],
    "ilp": lambda e: e["RS_UOPS_DISPATCHED"] / e["CPU_CLK_UNHALTED.CORE"],
    "l1d_hit": lambda e: 1 - e["L1D_REPL"] / e["INST_RETIRED.ANY"],
    "l2_hit": lambda e: 1 - e["L2_LINES_IN.BOTH_CORES.ANY"] / e["INST_RETIRED.ANY"],
    "branch_ratio": lambda e: e["BR_INST_RETIRED.ANY"] / e["INST_RETIRED.ANY"],
    "prediction_rate": lambda e: 1 - e["BR_INST_RETIRED.MISPRED"] / e["BR_INST_RETIRED.ANY"],
    "mispredict_ratio": lambda e: e["BR_INST_RETIRED.MISPRED"] / e["INST_RETIRED.ANY"],
    "stall_ratio": lambda e: e["RESOURCE_STALLS.BR_MISS_CLEAR"] / e["CPU_CLK_UNHALTED.CORE"],
    "wasted_work": lambda e: e["RS_UOPS_DISPATCHED"] / (e["UOPS_RETIRED.ANY"] + e["UOPS_RETIRED.FUSED"]) - 1,
    # Today's definitions beside them.
    "l1d_load_miss": lambda e: e["L1-dcache-load-misses"] / e["L1-dcache-loads"],
    "branch_mpki": lambda e: 1000 * e["branch-misses"] / e["instructions"],
}


def metrics(events: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """What the formulas give, where all their events were counted."""
    values = {name: event["value"] for name, event in events.items()}
    found = {}
    for name, formula in FORMULAS.items():
        try:
            found[name] = formula(values)
        except (KeyError, ZeroDivisionError):
            continue
    return found


def refused(code: int | None, message: str) -> str:
    """Why the kernel counts nothing, from its error number and its words."""
    match code:
        case 2 | 19 | 38 | 95:
            return "the kernel has none to give (as in most virtual machines)"
        case 1 | 13:
            return "the kernel forbids it; as root: sysctl kernel.perf_event_paranoid=2"
    return message
