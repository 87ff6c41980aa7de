"""``run``: a cipher measured on machines, compared with an earlier run, told as text or data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .. import completion
from .._core import InputError, InternalError
from ..options import Options
from ..progress import waiting, with_progress
from .options import Baseline, Csv, Json, Machine, Parquet, Plot, Tolerance, Variant, machines_of, taking
from .output import check, complain, emit, exit_code, say, unverified, writable, write_json

if TYPE_CHECKING:
    from ..manifest import Cipher
    from ..measurement import Measurement

    Work = tuple[Cipher, str | None, str]


@taking()
def run(
    cipher: Annotated[
        str,
        typer.Argument(
            metavar="CIPHER",
            help="A built-in name, a .c, a .wasm, a manifest; or all, for every variant of every cipher.",
            autocompletion=completion.ciphers,
        ),
    ],
    on: Machine = [],
    variant: Variant = None,
    options: Options = Options(),
    baseline: Baseline = None,
    tolerance: Tolerance = [],
    gates: Annotated[
        bool, typer.Option("--gates", help="Also the gates of what --with adds (synthesised by Yosys).")
    ] = False,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark-json", metavar="FILE", help="Write figures for github-action-benchmark there."),
    ] = None,
    plot: Plot = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Measure a cipher on a machine: cycles, bounds, and what limits it there."""
    from .. import auditing, compare, manifest, plots, report

    check(json, csv, parquet)
    plots.check(plot)
    options.check()
    writable(benchmark, "--benchmark-json")
    accepted = compare.tolerances(tolerance)
    compare.wanted(baseline, tolerance)
    if baseline is not None:
        # A baseline that cannot be read is said before the work, not after it.
        compare.read(baseline, "measurements")
    machines = machines_of(on)
    chosen: list[tuple[Cipher, str | None]]
    if cipher == "all":
        chosen = [(c, v) for c in map(manifest.find, manifest.names()) for v in ([variant] if variant else c.variants)]
    else:
        chosen = [(manifest.find(cipher), variant)]
    work = [(c, v, machine) for c, v in chosen for machine in machines]
    answers = measure_all(work, options)
    measurements = [answer for answer in answers if not isinstance(answer, Exception)]
    if not measurements:
        raise next(answer for answer in answers if isinstance(answer, Exception))
    if gates:
        measurements = with_gates(measurements, options.with_)
    document = report.document(measurements)
    compared = None
    if baseline is not None:
        compared = compare.measurements(baseline, measurements, accepted)
        document["comparison"] = compared.to_dict()
    if benchmark is not None:
        write_json(compare.benchmark(measurements), benchmark, "--benchmark-json")
    if plot is not None:
        plots.write(plots.run(measurements), plot)
    if not emit(document, report.rows(document["measurements"]), json, csv, parquet):
        if compared is not None:
            say(f"{compare.text(compared)}\n")
        if len(work) == 1:
            say(f"{report.sentence(measurements[0])}\n\n{report.details(measurements[0])}")
        elif len(work) <= 4:
            sentences = "\n".join(report.sentence(m) for m in measurements)
            say(f"{sentences}\n\n{report.table(measurements)}")
        else:
            say(f"{report.summary(measurements)}\n\n{report.table(measurements)}")
    for said in lost(work, answers, options):
        complain(said)
    status = 0
    if compared is not None and compared.worse:
        status = 1
        if json or csv:
            complain(compare.sentence(compared))
    for (c, v, machine), answer in zip(work, answers, strict=True):
        if isinstance(answer, Exception):
            complain(f"{c.name}/{v or c.default_variant} on {machine}: {answer}")
            status = 1 if 1 in (status, exit_code(answer)) else 2
            continue
        if not answer.verified:
            unverified(report.title(answer), answer.failure)
            status = 1
        if answer.constant_time is False and c.variant(v).constant_time:
            places = answer.leaks["places"]
            many = "1 instruction" if places == 1 else f"{places} instructions"
            complain(f"{auditing.contradiction(c, v, f' on {machine}')} at {many}; `ciphermill audit --on` says which")
            status = 1
    raise typer.Exit(status)


def measure_all(work: list[Work], options: Options) -> list[Measurement | InputError | InternalError]:
    """Measure on all cores, in order, with progress on a terminal.

    Of several measurements, one that fails leaves its exception in the list:
    it must not take the others with it.
    """
    from concurrent.futures import ThreadPoolExecutor

    from .. import engine

    def one(item: Work) -> Measurement:
        cipher, variant, machine = item
        return engine.measure(engine.module(cipher, variant, options.cc), machine, options)

    def kept(item: Work) -> Measurement | InputError | InternalError:
        try:
            return one(item)
        except (InputError, InternalError) as error:
            return error

    if len(work) == 1:
        with waiting("measuring"):
            return [one(work[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(with_progress(pool.map(kept, work), len(work)))


def lost(work: list[Work], answers: Sequence[Measurement | InputError | InternalError], options: Options) -> list[str]:
    """What is to be said of kept schedules that were not taken."""
    from ..tuning import unused

    done = [
        (c, m, answer) for (c, _, m), answer in zip(work, answers, strict=True) if not isinstance(answer, Exception)
    ]
    return unused.told(done, options)


def with_gates(measurements: list[Measurement], extensions: Sequence[str]) -> list[Measurement]:
    """Measurements with the gates of the extensions they were made with."""
    from .. import hardware
    from ..measurement import Measurement

    if not extensions:
        raise InputError("--gates: nothing was added with --with, so there is no hardware to count")
    with waiting("synthesising"):
        document, _ = hardware.report(list(extensions), hardware.Options(prove=False))
    total = sum(row.get("gates", 0) for row in document["instructions"])
    return [Measurement({**m.to_dict(), "gates": total}) for m in measurements]
