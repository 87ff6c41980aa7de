"""Which processor this is, and which machine of ours is nearest to it.

What the operating system says of the processor (`/proc/cpuinfo`, on x86 the values of
CPUID) is looked up in `processors.toml`. A processor that is not there is still
measured; only events of its own and a suggestion are then missing.
"""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("processors.toml")


@dataclass(frozen=True)
class Processor:
    """What is known of a processor."""

    #: As it calls itself.
    model: str
    vendor: str
    family: int | None
    model_number: int | None
    stepping: int | None
    #: Behind a hypervisor, as far as it can be seen.
    virtual: bool
    #: The entry of the table; None when there is none.
    entry: Mapping[str, Any] | None = field(default=None, compare=False)

    def nearest(self, machines: list[str]) -> str | None:
        """The first of the entry's machines that there is."""
        wanted = self.entry["nearest"] if self.entry else []
        return next((name for name in wanted if name in machines), None)

    def to_dict(self, machines: list[str]) -> dict[str, Any]:
        return {
            "model": self.model, "vendor": self.vendor, "family": self.family, "model_number": self.model_number,
            "stepping": self.stepping, "virtual": self.virtual, "known_as": self.entry["name"] if self.entry else None,
            "nearest_machine": self.nearest(machines),
        }  # fmt: skip


def this() -> Processor:
    """The processor this runs on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    return parse(text, platform.machine())


def parse(cpuinfo: str, architecture: str) -> Processor:
    """A processor from the first part of ``/proc/cpuinfo``."""
    facts: dict[str, str] = {}
    for line in cpuinfo.split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())

    def number(name: str) -> int | None:
        text = facts.get(name, "")
        return int(text) if text.isdecimal() else None

    families = {"riscv64": "riscv", "riscv32": "riscv", "sparc": "sparc", "sparc64": "sparc"}
    vendor = facts.get("vendor_id") or families.get(architecture, architecture)
    family, model = number("cpu family"), number("model")
    return Processor(
        model=facts.get("model name") or facts.get("uarch") or facts.get("cpu") or architecture,
        vendor=vendor,
        family=family,
        model_number=model,
        stepping=number("stepping"),
        virtual="hypervisor" in facts.get("flags", "").split(),
        entry=entry(vendor, family, model),
    )


def entry(vendor: str, family: int | None, model: int | None) -> Mapping[str, Any] | None:
    """The first entry of the table that fits."""
    for found in table():
        if found["vendor"] != vendor:
            continue
        if "family" in found and found["family"] != family:
            continue
        if "models" in found and model not in found["models"]:
            continue
        return found
    return None


@cache
def table() -> list[dict[str, Any]]:
    processors: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["processor"]
    return processors
