"""The points of a sweep, made ready: what the core is asked, and its answer.

A `Task` is all that a worker needs, on this computer or another: the module's
bytes and the request as text. It reads no files.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from .. import _core, engine, library, manifest
from .grid import Grid

#: Tasks handed out before the first results are back, per worker.
AHEAD = 4


@dataclass(frozen=True)
class Task:
    """One point: its settings and key, the module and the request."""

    point: dict[str, Any]
    key: str
    wasm: bytes
    request: str


@dataclass(frozen=True)
class Answer:
    """What came of a task. ``fault``: an error of ours, which is not kept."""

    key: str
    measurement: dict[str, Any] | None
    failure: str | None
    fault: bool
    seconds: float


def prepare(grid: Grid, limit: int | None = None) -> list[Task]:
    """A task for each point, in order, that may take `limit` steps. Raises InputError for what cannot be asked."""
    modules: dict[tuple[str, str | None], engine.Module] = {}
    tasks = []
    for point in grid.points:
        name = (point["cipher"], point.get("variant"))
        if name not in modules:
            modules[name] = engine.module(manifest.find(name[0]), name[1])
        options = replace(options_of(point), limit=limit)
        options.check()
        module = engine.suited(modules[name], point["on"], options)
        request = engine.request(module, point["on"], options)
        tasks.append(Task(point, key(module, json.loads(request)), module.wasm, request))
    return tasks


def options_of(point: dict[str, Any]) -> engine.Options:
    """The settings of a point as options of a measurement."""
    names = ("direction", "key_bits", "blocks", "bytes", "jam", "unroll", "optimise")
    text = [f"{path}={str(v).lower() if isinstance(v, bool) else v}" for path, v in point.get("set", {}).items()]
    return engine.Options(
        **{name: point[name] for name in names if name in point},
        with_=point.get("with", ()), without=point.get("without", ()), set=text,
    )  # fmt: skip


def key(module: engine.Module, request: dict[str, Any]) -> str:
    """The hash of everything that determines a measurement: this build of the
    core, the module, the machine's files as far as they are read, and all settings. What a run may
    take is none of it: it changes nothing in what one took that came to its end."""
    machine = dict(request["machine"])
    machine["library"] = needed(machine["file"], machine["library"])
    machine["extensions"] = [e for e in machine["extensions"] if stem(e) in machine["with"]]
    whole = json.dumps({**request, "machine": machine, "limit": None}, sort_keys=True)
    return hashlib.sha256(f"{engine.identity()}\0{module.hash}\0{whole}".encode()).hexdigest()


def needed(file: dict[str, str], folder: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The machine's ancestors, and the rules."""
    by_name = {stem(text): text for text in folder}
    out = [by_name[library.RULES]] if library.RULES in by_name else []
    while (parent := inherits(file)) in by_name and by_name[parent] not in out:
        file = by_name[parent]
        out.append(file)
    return out


def inherits(file: dict[str, str]) -> str | None:
    try:
        parent: str | None = tomllib.loads(file["text"]).get("machine", {}).get("inherits")
    except (tomllib.TOMLDecodeError, AttributeError):
        # The core will say what is wrong with it.
        return None
    return parent


def stem(file: dict[str, str]) -> str:
    return file["path"].replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".toml")


def measure(task: Task) -> Answer:
    """Ask the core. A pure function of the task and the build of the core."""
    start = time.monotonic()
    measurement, failure, fault = None, None, False
    try:
        measurement = json.loads(_core.measure(task.wasm, task.request))
        if not measurement["verified"]:
            failure, fault = measurement["failure"], True
    except _core.InputError as error:
        failure = str(error)
    except _core.InternalError as error:
        failure, fault = str(error), True
    return Answer(task.key, measurement, failure, fault, time.monotonic() - start)


def local(tasks: Sequence[Task], workers: int | None = None) -> Iterator[Answer]:
    """Measure on this computer's cores; answers as they come. The core runs
    outside the interpreter's lock, so threads are enough."""
    workers = workers or os.cpu_count() or 1
    left = iter(tasks)
    with ThreadPoolExecutor(workers) as pool:
        running = set()
        for task in left:
            running.add(pool.submit(measure, task))
            if len(running) >= workers * AHEAD:
                break
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                if (following := next(left, None)) is not None:
                    running.add(pool.submit(measure, following))
                yield future.result()
