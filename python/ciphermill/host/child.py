"""The process that runs foreign native code: ``python -m ciphermill.host.child``.

It reads one request as JSON from standard input and answers with one document on
standard output. First the official vectors and the output of the very call that will
be timed, then, only if all of it is right, the figures. A cipher that crashes takes
this process with it and nothing else.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from .. import _core
from . import vectors


def answer(request: dict[str, Any]) -> dict[str, Any]:
    job = request["job"]
    native = vectors.Native(job["library"])
    try:
        checked = request["check"]
        cases = vectors.check(native, checked["files"], checked["variant"], checked["direction"], checked["key_bits"])
        if request["expected"] is not None and once(native, job) != bytes.fromhex(request["expected"]):
            raise vectors.Wrong("the native output differs from the reference interpreter's")
    except vectors.Wrong as error:
        return {"wrong": str(error)}
    if not request["timed"]:
        return {"vectors": cases}
    before = resource.getrusage(resource.RUSAGE_SELF)
    seen = json.loads(_core.observe(json.dumps(job)))
    after = resource.getrusage(resource.RUSAGE_SELF)
    if request["expected"] is not None and (seen["output"] != request["expected"] or seen["stable"] is False):
        return {"wrong": "the native output changed between calls"}
    return {"vectors": cases, "seen": seen, "preempted": after.ru_nivcsw - before.ru_nivcsw}


def once(native: vectors.Native, job: dict[str, Any]) -> bytes:
    key, message = bytes.fromhex(job["key"]), bytes.fromhex(job["message"])
    if job["ivsetup"]:
        return native.stream(key, bytes.fromhex(job["iv"]), message)
    return native.blocks(job["setup"], job["driver"], key, message, job["count"])


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
