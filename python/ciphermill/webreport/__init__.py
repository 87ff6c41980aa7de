"""The report: everything measured as one HTML file that needs no network.

    survey.py      what the start page compares: ciphers on machines
    commentary.py  what a study's folder says about its outcome; words.py fills its figures in
    evidence.py    what stands behind each number
    figures.py     the figures, by way of Altair; drawing.py makes them SVG
    kernels.py     schedules of loops, packed
    pipelines.py   the way through out-of-order cores, packed
    page.py        puts all of it into the shape of the templates
    templates/     the page: HTML, style, script

Measurements are made, or found kept, by the same code as in
``ciphermill study``; the page adds none of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import paths
from .._core import InputError
from ..measurement import Measurement
from ..progress import Progress
from ..study import layout, results
from ..study import measure as measuring
from . import commentary, drawing, kernels, pipelines, survey

#: Optional: what imports them (`page`, `figures`) is imported where `check_installed` has seen them.
NEEDED = ("altair", "jinja2", "vl_convert")


@dataclass(frozen=True)
class Written:
    """What was written, for the sentence that says so."""

    path: Path
    bytes: int
    studies: int
    measurements: int
    faults: list[str]

    def sentence(self) -> str:
        """What is there now, and where."""
        return (
            f"{paths.shown(self.path)}: {self.studies} {'study' if self.studies == 1 else 'studies'}, "
            f"{self.measurements} measurements, {self.bytes / 1e6:.1f} MB; open it in a browser."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"schema": 1, **asdict(self), "path": str(self.path)}


def write(out: Path, studies: list[layout.Study], progress: Progress = lambda items, total: items) -> Written:
    """Measure what is not kept yet, and write the page.

    ``progress(results, total)`` passes the measurements on as they are made.
    Raises InputError when a package is missing or ``out`` cannot be written.
    """
    check_installed()
    # Said before the work, not after it.
    paths.check_writable(out, "-o")
    from . import page

    comments = [commentary.load(study) for study in studies]
    asked = survey.work()
    answers = measuring.measure_all([*(work for study in studies for work in study.work()), *asked], progress)
    solved = [results.solve(study, answers) for study in studies]
    compared = [(work, answers[measuring.key(work)]) for work in asked]
    loops = list(
        {measuring.key(k): k for comment in comments for k in (kernel.given() for kernel in comment.kernel)}.values()
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        explained = list(progress(pool.map(kernels.explain, loops), len(loops)))
    asked_for = list(
        {
            measuring.key(p): p for comment in comments for p in (pipeline.given() for pipeline in comment.pipeline)
        }.values()
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        traced = list(progress(pool.map(pipelines.trace, asked_for), len(asked_for)))
    content = page.Content(
        compared,
        list(zip(solved, comments, strict=True)),
        list(zip(loops, explained, strict=True)),
        list(zip(asked_for, traced, strict=True)),
    )
    text = page.render(content).encode()
    _put(out, text, "-o")
    faults = [fault for result in solved for fault in result.faults()]
    faults += [m.reason for _, m in compared if isinstance(m, measuring.Missing) and m.fault]
    made = sum(isinstance(answer, Measurement) for answer in answers.values())
    return Written(out, len(text), len(studies), made, list(dict.fromkeys(faults)))


def distinct(asked: Iterable[Sequence[layout.Settings]]) -> list[dict[str, Any]]:
    """Settings of several studies, each once."""
    given = [settings.given() for each in asked for settings in each]
    return list({measuring.key(settings): settings for settings in given}.values())


def draw(solved: list[results.Result], folder: Path) -> list[Path]:
    """Write the figures that studies ask for as SVG files (``ciphermill study --figures``).

    Raises InputError when ``folder`` cannot be written.
    """
    import vl_convert

    from . import figures

    out = []
    for result in solved:
        for found in figures.chosen(result, commentary.load(result.study)):
            spec = {**found.spec, "config": {**drawing.config("#1b1f24", "#c4cad1"), "background": "white"}}
            path = folder / f"{found.key}.svg"
            _put(path, vl_convert.vegalite_to_svg(spec).encode(), "--figures")
            out.append(path)
    return out


def write_schedule(
    out: Path, measurement: Measurement, explanation: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    """Write a page with one program's schedules (``ciphermill explain --html``). ``asked`` has the cipher, the
    machine and the options as they were given, by the names that options have.

    Raises InputError when a package is missing or ``out`` cannot be written.
    """
    check_installed()
    from . import page

    paths.check_writable(out, "--html")
    shown = {**explanation, "measured": measurement.to_dict()}
    _put(out, page.render(page.Content([], [], [(asked, shown)])).encode(), "--html")


def write_pipeline(out: Path, measurement: Measurement, asked: Mapping[str, Any]) -> None:
    """Write a page with one program's pipeline (``ciphermill trace --html``). ``asked`` has the cipher, the machine
    and the options as they were given, by the names that options have, ``first`` and ``count`` among them.

    Raises InputError when a package is missing or ``out`` cannot be written.
    """
    check_installed()
    from . import page

    paths.check_writable(out, "--html")
    _put(out, page.render(page.Content([], [], [], [(asked, measurement.to_dict())])).encode(), "--html")


def _put(out: Path, text: bytes, option: str) -> None:
    try:
        paths.write_atomically(out, text)
    except OSError as error:
        raise InputError(f"{option} {out}: {error.strerror}") from None


def check_installed() -> None:
    """InputError when a package that only the report needs is not there."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(f"the report needs {', '.join(missing)}: pip install 'ciphermill[report]'")
