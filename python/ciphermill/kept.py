"""Measurements and explanations, kept by content.

A verified measurement lies below the cache folder under a hash of everything
that determines it: the build of the core, the module, the machine's files, the
settings, the vectors' verdict. What was asked for with other words but means the
same is found too, since the hash is of the request as the core gets it. A
refusal is kept as well: it can take as long, and only another input or another
core gives another answer. One that was not verified is never kept: whoever sees
one will want to see it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from . import cached, engine
from ._core import InputError, InternalError
from .measurement import Measurement

#: In a kept file: what was said instead of an answer.
REFUSED = "refused"


def measurement(module: engine.Module, machine: str, options: engine.Options) -> Measurement:
    """`engine.measure`, or what it gave the last time. Raises what it raises."""
    options.check()
    found = _kept("measurements", module, machine, options, lambda: engine.measure(module, machine, options).to_dict())
    return Measurement(found)


def explanation(module: engine.Module, machine: str, options: engine.Options) -> dict[str, Any]:
    """`engine.explanation`, or what it gave the last time. Raises what it raises."""
    options.check()
    return _kept("explanations", module, machine, options, lambda: engine.explanation(module, machine, options))


def _kept(
    kind: str, module: engine.Module, machine: str, options: engine.Options, make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    # These two the core is not told of in the request; --repeat asks for the work.
    extra = f"{options.optimal} {options.exact}"
    request = engine.request(module, machine, options)
    hashes = "\0".join(m.hash for m in engine.candidates(module, options))
    digest = hashlib.sha256(f"{engine.identity()}\0{hashes}\0{extra}\0{request}".encode()).hexdigest()[:40]
    path = cached.place(kind, f"{digest}.json")
    known = None if options.repeat else cached.read(path)
    found: dict[str, Any] | None = None if known is None else json.loads(known)
    if found is None:
        try:
            found = make()
        except (InputError, InternalError) as error:
            found = {REFUSED: str(error), "internal": isinstance(error, InternalError)}
        if found.get("verified", True):
            cached.write(path, json.dumps(found, separators=(",", ":")).encode())
    if REFUSED in found:
        raise (InternalError if found["internal"] else InputError)(found[REFUSED])
    return found
