"""Code in one form, for tests in which neither the choice of a form nor the length of a search is what is tested.

For speed the core makes a program in several forms, tries each on short messages and takes the fastest. On a machine with
interlocks that are five compilations, on one that schedules at compile time it is a search, which takes ten times as long
as everything else. Here the core is told the form, as it is told the one of which an exact scheduler was asked, and its
searches have no budget: loops get the first pipeline that fits. Of the cells of a test one in `SHARE` still goes the usual way.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ciphermill import _core, engine
from ciphermill.measurement import Measurement

#: One cell in so many goes the usual way: CIPHERMILL_EVERYTHING=1, all of them.
SHARE = 1 if os.environ.get("CIPHERMILL_EVERYTHING") else 4


def usual(*places: int) -> bool:
    """Whether the cell at these places of a test's tables goes the usual way: in each row and each column, one in `SHARE`."""
    return sum(places) % SHARE == 0


def assembly(module: engine.Module, machine: str, options: engine.Options) -> str:
    """As `engine.assembly`, in the form that ``jam`` and ``unroll`` say: of one block, with rounds as loops, unless they do."""
    return _core.assemble(*_asked(module, machine, options, judged=False))


def native(module: engine.Module, machine: str, options: engine.Options, lengths: tuple[int, int]) -> dict[str, Any]:
    """As `engine.native`, in that form."""
    return json.loads(_core.native(*_asked(module, machine, options, judged=False), *lengths))


def measure(module: engine.Module, machine: str, options: engine.Options) -> Measurement:
    """As `engine.measure`, in that form."""
    return Measurement(json.loads(_core.measure(*_asked(module, machine, options, judged=True))))


def _asked(module: engine.Module, machine: str, options: engine.Options, *, judged: bool) -> tuple[bytes, str]:
    module = engine.suited(module, machine, options)
    form = {"unrolled": bool(options.unroll), "jam": options.jam or 1, "throughput": False}
    exact, search = {"form": form, "answers": []}, {"times": 0, "round": 0}
    return module.wasm, engine.request(module, machine, options, judged=judged, exact=exact, search=search)
