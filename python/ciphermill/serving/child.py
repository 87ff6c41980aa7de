"""A run: reads what is asked from standard input, confines itself, compiles and measures.

``python -m ciphermill.serving.child``, started by `ciphermill.serving.desk` in a folder of its own. Writes
lines of JSON: `refused` where the C does not compile, a line a machine, `done` at the end. With the argument
``probe`` it only says whether it can be confined.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from .. import _core, engine, explaining, manifest, paths, processes
from .._core import InputError, InternalError
from . import told
from .asked import Asked

#: The pasted text, in the folder that the process is started in.
SOURCE = "cipher.c"
#: What programs of the system are made of, and what the loader and the compiler read of devices.
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero")
#: Files a process may have open.
OPEN_FILES = 512


def main() -> int:
    if sys.argv[1:] == ["probe"]:
        try:
            confine(Path.cwd())
        except InputError as error:
            print(error)
            return 1
        return 0
    # The compiler belongs to this run, and ends with it.
    processes.together()
    given = json.load(sys.stdin)
    folder = Path.cwd()
    (folder / SOURCE).write_text(given["asked"].pop("source"), encoding="utf-8")
    limit(given["seconds"], given["memory"], given["file_bytes"])
    if given["confined"]:
        confine(folder)
    asked = msgspec.convert({"source": "", **given["asked"]}, Asked)
    for answer in answers(asked, folder):
        print(json.dumps(answer), flush=True)
    return 0


def limit(seconds: float, memory: int, file_bytes: int) -> None:
    """The limits of this process, and of each that it starts: processor time, address space, files."""
    wanted = [
        # Of all cores together: the desk looks at the clock, and this is for when there is no desk any more.
        (resource.RLIMIT_CPU, int(seconds * (os.cpu_count() or 1)) + 1),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ]
    # On macOS each process has more addresses from its start, and such a limit is refused.
    if sys.platform == "linux":
        wanted.append((resource.RLIMIT_AS, memory))
    for which, value in wanted:
        _, hard = resource.getrlimit(which)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (least, least))


def confine(folder: Path) -> None:
    """From now on the folder, and what ciphermill and its compiler are made of, is all there is. Raises InputError."""
    _core.confine(readable(), [str(folder), "/dev/null"])


def readable() -> list[str]:
    """Python, ciphermill with its data, the compiler, and the system's libraries."""
    data = [path.resolve() for path in paths.DATA.iterdir()]
    programs = [sys.executable, str(Path(sys.executable).resolve()), sysconfig.get_config_var("LIBDIR") or ""]
    python = [*sysconfig.get_paths().values(), *programs]
    settings = [f"{prefix}/pyvenv.cfg" for prefix in (sys.prefix, Path(sys.executable).parent)]
    compiler = find_spec("ziglang")
    found = list(compiler.submodule_search_locations or ()) if compiler else []
    return [*python, *settings, *found, str(Path(paths.__file__).parent), *map(str, data), *SYSTEM]


def answers(asked: Asked, folder: Path) -> Iterator[dict[str, Any]]:
    """What is said of the C, and of each machine."""
    try:
        module = engine.module(manifest.find(SOURCE))
        # So that what is wrong with all of it is said once.
        module.interface  # noqa: B018
    except (InputError, InternalError) as error:
        yield {"refused": told.message(error, folder)}
    else:
        for machine in asked.machines:
            try:
                yield {"machine": machine, **measured(module, machine, asked)}
            except (InputError, InternalError) as error:
                yield {"machine": machine, "refused": told.message(error, folder)}
    yield {"done": True}


def measured(module: engine.Module, machine: str, asked: Asked) -> dict[str, Any]:
    """What `run` and `explain` say of it."""
    options = asked.options()
    measurement = engine.measure(module, machine, options)
    return told.answer(measurement, explaining.explanation(module, machine, options))


if __name__ == "__main__":
    sys.exit(main())
