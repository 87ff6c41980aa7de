"""Instructions by Valgrind's callgrind: exact, and the same on every computer.

The cipher is compiled into a small program (`callgrind.c`) that makes one call; only
that call is counted. Its output is compared like any other.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .. import scratch
from .._core import InputError
from ..manifest import Variant
from . import toolchain
from .vectors import Wrong

SOURCE = Path(__file__).with_suffix(".c")


def available() -> str:
    """The path of valgrind. Raises InputError when there is none."""
    path = shutil.which("valgrind")
    if path is None:
        raise InputError(
            "--engine callgrind: valgrind was not found; install it (Debian: valgrind), or leave --engine out"
        )
    return path


def count(
    compiler: toolchain.Compiler, settings: tuple[str, ...], variant: Variant, job: dict[str, Any], expected: str | None
) -> int:
    """Instructions of the one call that a job describes. Raises Wrong when its output is."""
    valgrind = available()
    with scratch.folder() as folder:
        program = Path(folder) / "program"
        stream = ("-DCM_STREAM",) if job["ivsetup"] else ()
        toolchain.build(compiler, (*settings, *stream), variant, program, (SOURCE,))
        counted = Path(folder) / "counted"
        key, iv, message = (bytes.fromhex(job[name]) for name in ("key", "iv", "message"))
        driver = "-" if job["mode"] == "keysetup" else job["driver"]
        command = [
            valgrind, "--tool=callgrind", f"--callgrind-out-file={counted}", "--toggle-collect=cm_counted",
            str(program), job["setup"], driver, str(len(key)), str(len(iv)), str(len(message)), str(job["count"]),
        ]  # fmt: skip
        answer = subprocess.run(command, input=key + iv + message, capture_output=True, check=False)
        if answer.returncode:
            raise InputError(
                f"--engine callgrind: {compiler.name} {' '.join(settings)}: exit status {answer.returncode}\n"
                f"{answer.stderr.decode(errors='replace').strip()}"
            )
        if expected is not None and answer.stdout.hex() != expected:
            raise Wrong("the native output differs from the reference interpreter's")
        return total(counted.read_text())


def total(text: str) -> int:
    """The number of instructions in what callgrind wrote."""
    found = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    if found is None:
        raise InputError("--engine callgrind: valgrind wrote no total; its version may be too old")
    return int(found[1])
