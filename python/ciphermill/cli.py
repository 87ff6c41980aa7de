"""The command line.

Exit codes: 0 done and verified; 1 ran but not verified, or a fault of ours;
2 bad input, with one message on stderr that names the place and the mend.

What a command needs is imported inside it: start-up is part of every run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import click
import typer

from . import completion

app = typer.Typer(
    name="ciphermill",
    help="What a block or stream cipher costs on a processor you describe, and why.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Machine = Annotated[
    list[str], typer.Option(
        "--on", metavar="MACHINE", help="A machine by name, or your own .toml; repeatable. Default: all.",
        autocompletion=completion.machines,
    ),
]  # fmt: skip
With = Annotated[
    list[str],
    typer.Option(
        "--with", metavar="EXT[,EXT]", help="Add instruction-set extensions to the machine.", autocompletion=completion.extensions
    ),
]
Without = Annotated[
    list[str], typer.Option("--without", metavar="NAME[,NAME]", help="Take instructions or extensions away.")
]
Set = Annotated[
    list[str], typer.Option("--set", metavar="PATH=VALUE", help="Change any number in the machine file, for instance clock_mhz=50.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of text: a row for each result.")]
Parquet = Annotated[str | None, typer.Option("--parquet", metavar="FILE", help="Write the rows there too, as Parquet (needs polars).")]
Baseline = Annotated[
    str | None, typer.Option("--compare", metavar="FILE", help="A document --json wrote earlier: exit with 1 when something got worse.")
]
Tolerance = Annotated[
    list[str],
    typer.Option("--tolerance", metavar="[METRIC=]AMOUNT", help="How much worse is accepted, for instance 1% or cycles=0.5%; metrics: cycles, code, gates. Default: 0."),
]
Compiler = Annotated[
    str, typer.Option("--cc", metavar="CC", help="zig (the clang that comes along), system, or the path of a clang.")
]
Direction = Annotated[str | None, typer.Option(help="encrypt, decrypt, keysetup or keystream.")]
KeyBits = Annotated[int | None, typer.Option(help="Key size in bits. Default: 128.")]
BlocksMode = Annotated[
    str | None, typer.Option(help="single (feedback mode) or multi (independent blocks). Default: multi.")
]
Jam = Annotated[
    int | None, typer.Option(metavar="N", help="Blocks carried through the code together. Default: what is fastest of a few.")
]
Unrolled = Annotated[
    bool | None, typer.Option("--unroll/--no-unroll", help="Rounds unrolled. Default: what is fastest on machines without interlock, else no.")
]
Aligned = Annotated[
    bool, typer.Option("--aligned", help="Buffers are read and written as words, as hand-written code for aligned buffers would.")
]
CipherName = Annotated[
    str,
    typer.Argument(metavar="CIPHER", help="A built-in name, a .c, a .wasm, or a manifest.", autocompletion=completion.ciphers),
]
OneMachine = Annotated[
    str, typer.Option("--on", metavar="MACHINE", help="A machine by name, or your own .toml.", autocompletion=completion.machines)
]
Variant = Annotated[
    str | None,
    typer.Option(help="Which of the cipher's variants. Default: the manifest's.", autocompletion=completion.variants),
]


@app.command()
def run(
    cipher: Annotated[
        str,
        typer.Argument(
            metavar="CIPHER", help="A built-in name, a .c, a .wasm, a manifest; or all, for every variant of every cipher.",
            autocompletion=completion.ciphers,
        ),
    ],  # fmt: skip
    on: Machine = [],
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    bytes: Annotated[int | None, typer.Option(metavar="N", help="Message length. Default: 4096.")] = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    repeat: Annotated[bool, typer.Option("--repeat", help="Measure twice and insist on the same result.")] = False,
    optimal: Annotated[bool, typer.Option("--optimal", help="Exact scheduling.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Simulate the whole message, never a sample of it.")] = False,
    cc: Compiler = "zig",
    baseline: Baseline = None,
    tolerance: Tolerance = [],
    gates: Annotated[bool, typer.Option("--gates", help="Also the gates of what --with adds (synthesised by Yosys).")] = False,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark-json", metavar="FILE", help="Write figures for github-action-benchmark there.")
    ] = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Measure a cipher on a machine: cycles, bounds, and what limits it there."""
    from . import compare, engine, library, manifest, report

    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, jam=jam, unroll=unroll, aligned=aligned, with_=split(with_),
        without=split(without), set=set, repeat=repeat, optimal=optimal, exact=exact, cc=cc,
    )  # fmt: skip
    options.check()
    accepted = compare.tolerances(tolerance)
    if baseline is not None:
        # A baseline that cannot be read is said before the work, not after it.
        compare.read(baseline, "measurements")
    machines = split(on) or library.machine_names()
    if cipher == "all":
        chosen = [(c, v) for c in map(manifest.find, manifest.names()) for v in ([variant] if variant else c.variants)]
    else:
        chosen = [(manifest.find(cipher), variant)]
    work = [(c, v, machine) for c, v in chosen for machine in machines]
    answers = measure_all(work, options)
    measurements = [answer for answer in answers if not isinstance(answer, Exception)]
    if not measurements:
        raise answers[0]
    if gates:
        measurements = with_gates(measurements, options.with_)
    document = report.document(measurements)
    compared = None
    if baseline is not None:
        compared = compare.measurements(baseline, measurements, accepted)
        document["comparison"] = compared.to_dict()
    if benchmark is not None:
        write_json(compare.benchmark(measurements), benchmark, "--benchmark-json")
    if not emit(document, document["measurements"], json, csv, parquet):
        if compared is not None:
            print(f"{compare.text(compared)}\n")
        if len(work) == 1:
            print(f"{report.sentence(measurements[0])}\n\n{report.details(measurements[0])}")
        elif len(work) <= 4:
            print("\n".join(f"{report.sentence(m)}" for m in measurements), end="\n\n")
            print(report.table(measurements))
        else:
            print(f"{report.summary(measurements)}\n\n{report.table(measurements)}")
    status = 1 if compared is not None and compared.worse else 0
    if status and (json or csv):
        complain(compare.sentence(compared))
    for (c, v, machine), answer in zip(work, answers, strict=True):
        if isinstance(answer, Exception):
            complain(f"{c.name}/{v or c.default_variant} on {machine}: {answer}")
            status = 1 if 1 in (status, exit_code(answer)) else 2
        elif not answer.verified:
            complain(f"{report.title(answer)}: not verified: {answer.failure}\n{OUR_FAULT}")
            status = 1
    raise typer.Exit(status)


def measure_all(work: list, options) -> list:
    """Measure on all cores, in order, with progress on a terminal.

    Of several measurements, one that fails leaves its exception in the list:
    it must not take the others with it.
    """
    import os
    from concurrent.futures import ThreadPoolExecutor

    from . import engine
    from ._core import InputError, InternalError
    from .progress import waiting, with_progress

    def one(item):
        cipher, variant, machine = item
        return engine.measure(engine.module(cipher, variant, options.cc), machine, options)

    def kept(item):
        try:
            return one(item)
        except (InputError, InternalError) as error:
            return error

    if len(work) == 1:
        with waiting("measuring"):
            return [one(work[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(with_progress(pool.map(kept, work), len(work)))


def with_gates(measurements: list, extensions: list[str]) -> list:
    """Measurements with the gates of the extensions they were made with."""
    from . import rtl
    from ._core import InputError
    from .measurement import Measurement
    from .progress import waiting

    if not extensions:
        raise InputError("--gates: nothing was added with --with, so there is no hardware to count")
    with waiting("synthesising"):
        document, _ = rtl.report(extensions, rtl.Options(prove=False))
    total = sum(row.get("gates", 0) for row in document["instructions"])
    return [Measurement({**m.to_dict(), "gates": total}) for m in measurements]


@app.command()
def explain(
    cipher: CipherName,
    on: OneMachine,
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    cc: Compiler = "zig",
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the schedule there too, as a page to look at.")] = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show where the cycles go: bounds, and the hottest loop cycle by cycle."""
    from . import engine, manifest
    from . import explain as explaining
    from .progress import waiting

    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, jam=jam, unroll=unroll, aligned=aligned, with_=split(with_),
        without=split(without), set=set, cc=cc,
    )  # fmt: skip
    module = engine.module(manifest.find(cipher), variant, cc)
    with waiting("measuring"):
        measurement = engine.measure(module, on, options)
        explanation = engine.explanation(module, on, options)
    if html is not None:
        from pathlib import Path

        from . import webreport

        webreport.write_schedule(Path(html), measurement, explanation)
    document = {"schema": 1, "measurement": measurement.to_dict(), **explanation}
    if not emit(document, explaining.records(explanation), json, csv, parquet):
        print(explaining.text(measurement, explanation))
    if not measurement.verified:
        complain(f"{measurement.cipher} on {on}: not verified: {measurement.failure}\n{OUR_FAULT}")
        raise typer.Exit(1)


@app.command()
def asm(
    cipher: CipherName,
    on: OneMachine,
    out: Annotated[str | None, typer.Option("-o", metavar="FILE", help="Write there instead of to standard output.")] = None,
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    jam: Jam = None,
    unroll: Unrolled = None,
    aligned: Aligned = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    cc: Compiler = "zig",
) -> None:
    """Print the whole program as assembly for the machine's own assembler.

    It is the program that `run` measures with the same options: on machines
    without interlock, loops are written for the direction and mode measured.
    """
    from pathlib import Path

    from . import engine, manifest

    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, jam=jam, unroll=unroll, aligned=aligned, with_=split(with_),
        without=split(without), set=set,
    )  # fmt: skip
    text = engine.assembly(engine.module(manifest.find(cipher), variant, cc), on, options)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        Path(out).write_text(text)
    except OSError as error:
        from ._core import InputError

        raise InputError(f"-o {out}: {error.strerror}") from None


@app.command()
def show(
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="A machine by name, or your own .toml.", autocompletion=completion.machines)
    ],
    with_: With = [],
    without: Without = [],
    set: Set = [],
    json: Json = False,
) -> None:
    """Print a machine: registers, units, instructions, and where its numbers come from."""
    from . import engine

    options = engine.Options(with_=split(with_), without=split(without), set=set)
    described = engine.show_machine(machine, options)
    if json:
        print_json(described)
        return
    from .show import text

    print(text(described))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="[ciphers|machines|extensions|studies]", help="Default: all of them.")] = "all",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List what there is to choose from."""
    from . import api, tables
    from ._core import InputError
    from .suggest import did_you_mean

    kinds = {"ciphers": api.ciphers, "machines": api.machines, "extensions": api.extensions, "studies": api.studies}
    if what != "all" and what not in kinds:
        raise InputError(f"no list of {what!r}{did_you_mean(what, kinds)}; there are {', '.join(kinds)}")
    chosen = kinds if what == "all" else {what: kinds[what]}
    counted = {"studies": "study", "ciphers": "cipher", "machines": "machine", "extensions": "extension"}
    found = {kind: entries() for kind, entries in chosen.items()}
    records = [{"what": counted[kind], **entry} for kind, entries in found.items() for entry in entries]
    if emit(found if what == "all" else found[what], records, json, csv, parquet):
        return
    there = ", ".join(f"{len(entries)} {kind if len(entries) != 1 else counted[kind]}" for kind, entries in found.items())
    parts = [f"{there}; measure with ciphermill run CIPHER --on MACHINE [--with EXTENSION]."] if what == "all" else []
    for kind, entries in found.items():
        if kind == "ciphers":
            rows = [
                (c["name"], c["title"], ", ".join(map(str, c["key_bits"])), ", ".join(v["name"] for v in c["variants"]))
                for c in entries
            ]
            parts.append(tables.text(("cipher", "", "key bits", "variants"), rows))
        else:
            rows = [(e["name"], e.get("title", "")) for e in entries]
            parts.append(tables.text((counted[kind], ""), rows))
    print("\n\n".join(parts))


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Which study. Default: all.", autocompletion=completion.studies)
    ] = "all",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
    figures: Annotated[
        str | None, typer.Option("--figures", metavar="FOLDER", help="Draw the figures of the study there, as SVG.")
    ] = None,
) -> None:
    """Print a paper's tables with ours beside, and the ratio."""
    from . import study as studies
    from .progress import with_progress
    from .study import text

    chosen = [studies.find(n) for n in (studies.names() if name == "all" else [name])]
    if figures is not None:
        from . import webreport

        webreport.check_installed()
    results = studies.run(chosen, with_progress)
    if figures is not None:
        for path in webreport.draw(results, Path(figures)):
            complain(f"drawn: {path}")
    document = studies.document(results)
    if not emit(document, studies.records(document), json, csv, parquet):
        text.show(results)
    for fault in (fault for result in results for fault in result.faults()):
        complain(f"{fault}\n{OUR_FAULT}")
    raise typer.Exit(1 if any(result.faults() for result in results) else 0)


@app.command("report")
def report_(
    out: Annotated[str, typer.Option("-o", metavar="FILE", help="Write the page there.")] = "report/index.html",
    json: Json = False,
) -> None:
    """Write everything measured as one HTML page: all ciphers on all machines, and every study."""
    from pathlib import Path

    from . import study as studies
    from . import webreport
    from .progress import with_progress

    written = webreport.write(Path(out), [studies.find(n) for n in studies.names()], with_progress)
    if json:
        print_json(written.to_dict())
    else:
        print(written.sentence())
    for fault in written.faults:
        complain(f"{fault}\n{OUR_FAULT}")
    raise typer.Exit(1 if written.faults else 0)


@app.command()
def sweep(
    grid: Annotated[str, typer.Argument(metavar="GRID", help="A grid of points, as docs/sweeps.md describes it.")],
    store: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep the results there. Default: beside the grid, ending in .sqlite.")
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="How many points at once. Default: the cores.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Measure on the Dask cluster of this scheduler; local starts one here.")
    ] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="Write the whole table there as Parquet.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the whole table there as CSV.")] = None,
    json: Json = False,
) -> None:
    """Measure every point of a grid; what has been measured is kept, and not measured again."""
    from . import report
    from . import sweeps
    from ._core import InputError
    from .progress import with_progress

    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: at least 1")
    if parquet is not None or csv is not None:
        from .sweeps.frame import polars

        # Now, and not after an hour's work.
        polars()
    done = sweeps.run(grid, store=store, workers=workers, cluster=cluster, progress=with_progress)
    for write, path in (("write_parquet", parquet), ("write_csv", csv)):
        if path is not None:
            try:
                getattr(done.to_polars(), write)(path)
            except OSError as error:
                raise InputError(f"{path}: {error.strerror or error}") from None
    if json:
        print_json(report.document(done.measurements))
    else:
        print(report.sweep(done))
    for n, failure in done.failures.items():
        complain(f"{sweeps.title(done.grid.points[n])}: {failure.splitlines()[0]}")
    if done.faults:
        complain(OUR_FAULT)
        raise typer.Exit(1)
    raise typer.Exit(2 if done.failures else 0)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cipher's name, and its folder's.")],
    kind: Annotated[str, typer.Option(help="block or stream.")] = "block",
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="The folder to write it into. Default: this one.")] = ".",
) -> None:
    """Write the skeleton of a cipher of your own, which runs as it is."""
    from pathlib import Path

    from . import paths, skeleton

    folder = skeleton.write(name, kind, Path(into))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        print(f"wrote {paths.shown(path)}")
    print(f"next: ciphermill run {paths.shown(folder / 'cipher.toml')}")


@app.command()
def audit(
    cipher: CipherName,
    variant: Variant = None,
    key_bits: Annotated[
        int | None, typer.Option(help="Audit this key size alone, in bits. Default: all the cipher has; 128 for a .c or .wasm.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when something depends on a secret.")] = False,
    cc: Compiler = "zig",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """List the branches and memory addresses that depend on key or message, by source line."""
    from . import audit as auditing
    from . import manifest

    result = auditing.run(manifest.find(cipher), variant, cc, key_bits)
    if not emit(result, result["findings"], json, csv, parquet):
        print(auditing.text(result))
    raise typer.Exit(1 if strict and result["findings"] else 0)


@app.command()
def rtl(
    extension: Annotated[
        str,
        typer.Argument(metavar="EXT[,EXT]", help="Extensions by name, or your own .toml.", autocompletion=completion.extensions),
    ],
    on: Annotated[
        str | None, typer.Option("--on", metavar="MACHINE", help="The machine they are read on. Default: one they fit.")
    ] = None,
    out: Annotated[str | None, typer.Option("-o", metavar="DIR", help="Write Verilog and test benches there.")] = None,
    plain_tables: Annotated[
        bool, typer.Option("--plain-tables", help="Tables as case statements, never hand-written modules.")
    ] = False,
    verilog_only: Annotated[bool, typer.Option("--verilog-only", help="Only Verilog: no synthesis, no proof.")] = False,
    baseline: Baseline = None,
    tolerance: Tolerance = [],
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Make hardware of instructions: Verilog, gates, FPGA cells, and a proof against their semantics."""
    from pathlib import Path

    from . import compare
    from . import rtl as making
    from .progress import waiting

    options = making.Options(on=on, plain_tables=plain_tables, verilog_only=verilog_only)
    accepted = compare.tolerances(tolerance)
    if baseline is not None:
        compare.read(baseline, "instructions")
    with waiting("synthesising"):
        document, files = making.report(split([extension]), options)
    if out is not None:
        making.write(files, Path(out))
    compared = None
    if baseline is not None:
        compared = compare.instructions(baseline, document["instructions"], accepted)
        document["comparison"] = compared.to_dict()
    if not emit(document, making.records(document), json, csv, parquet):
        if compared is not None:
            print(f"{compare.text(compared)}\n")
        print(making.text(document))
    if not making.right(document):
        complain(f"{extension}: a module is not what its semantics say\n{OUR_FAULT}")
        raise typer.Exit(1)
    if compared is not None and compared.worse:
        if json or csv:
            complain(compare.sentence(compared))
        raise typer.Exit(1)


@app.command()
def host(
    cipher: Annotated[
        str, typer.Argument(metavar="CIPHER", help="A built-in name, a .c, or a manifest.", autocompletion=completion.ciphers)
    ],
    variant: Variant = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    blocks: BlocksMode = None,
    bytes: Annotated[int, typer.Option(metavar="N", help="Message length.")] = 16384,
    repeat: Annotated[int, typer.Option(metavar="N", help="Samples, of which the median is shown.")] = 51,
    native: Annotated[
        str | None, typer.Option("--cc", metavar="CC", help="gcc, clang, zig or a path. Default: gcc and a clang.")
    ] = None,
    with_engine: Annotated[
        str, typer.Option("--engine", help="perf (this computer's counters) or callgrind (instructions, exact).")
    ] = "perf",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Run the same C on this computer, under its own counters."""
    from . import host as hosting
    from .host import text
    from .progress import with_progress

    options = hosting.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, repeat=repeat, cc=native, engine=with_engine
    )
    document = hosting.run(cipher, variant, options, with_progress)
    if not emit(document, hosting.records(document), json, csv, parquet):
        print(text.text(document))
    wrong = [row for row in document["rows"] if not row["verified"]]
    for row in wrong:
        complain(f"{cipher}, {text.label(row)}: not verified: {row['failure']}")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def discover(
    cipher: CipherName,
    on: Annotated[str, typer.Option("--on", metavar="MACHINE", help="A machine by name, or your own .toml.")],
    inputs: Annotated[int, typer.Option("--inputs", metavar="N", help="Registers an instruction may read.")] = 2,
    outputs: Annotated[int, typer.Option("--outputs", metavar="M", help="Registers it may write.")] = 1,
    gates: Annotated[float | None, typer.Option("--gates", metavar="G", help="Gates it may cost. Default: any number.")] = None,
    tries: Annotated[int, typer.Option("--tries", metavar="N", help="Candidates of each kind that are measured.")] = 6,
    out: Annotated[str | None, typer.Option("-o", metavar="FILE", help="Write the best there, as an extension file.")] = None,
    variant: Annotated[str | None, typer.Option(help="Which of the cipher's variants.")] = None,
    direction: Direction = None,
    key_bits: KeyBits = None,
    aligned: Aligned = False,
    with_: With = [],
    without: Without = [],
    set: Set = [],
    cc: Compiler = "zig",
    json: Json = False,
) -> None:
    """Find instructions that a cipher would like to have: what they save, what they cost."""
    from pathlib import Path

    from . import discover as discovering
    from . import engine, manifest

    options = engine.Options(
        direction=direction, key_bits=key_bits, aligned=aligned, with_=split(with_), without=split(without), set=set, cc=cc
    )
    limits = discovering.Limits(inputs=inputs, outputs=outputs, gates=gates, tries=tries)
    module = engine.module(manifest.find(cipher), variant, cc)
    document = discovering.discover(module, on, options, limits)
    if json:
        print_json(document)
    else:
        print(discovering.text(document))
    if out is not None:
        discovering.write(document, Path(out))


@app.command()
def schema() -> None:
    """Print the JSON schema of machine files, for completion in editors."""
    from . import _core

    print(_core.machine_schema())


def version(value: bool) -> None:
    if value:
        from . import _core

        print(f"ciphermill {_core.version()}")
        raise typer.Exit


@app.callback()
def common(
    _: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def split(values: list[str]) -> list[str]:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def emit(document: object, records: list, json: bool, csv: bool, parquet: str | None) -> bool:
    """Results as data, in the forms asked for; False when text is wanted on standard output."""
    from ._core import InputError

    if json and csv:
        raise InputError("--json and --csv both go to standard output; ask for one of them")
    if csv or parquet is not None:
        from . import tables

        if parquet is not None:
            tables.parquet(records, parquet)
        if csv:
            sys.stdout.write(tables.csv(records))
    if json:
        print_json(document)
    return json or csv


def write_json(value: object, path: str, option: str) -> None:
    import json
    from pathlib import Path

    from . import paths
    from ._core import InputError

    try:
        paths.write_atomically(Path(path), json.dumps(value, indent=2).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror}") from None


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))


def complain(message: str) -> None:
    print(f"ciphermill: {message}", file=sys.stderr)


OUR_FAULT = "This is an error in ciphermill, not in what you gave it."


def exit_code(error: Exception) -> int:
    from ._core import InputError

    return 2 if isinstance(error, InputError) else 1


def main() -> NoReturn:
    """The entry point: turns every exception into an exit code and a message."""
    import signal

    # Python would act on an interrupt only after the core has returned, which
    # for a long message can be minutes; nothing here is worth finishing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status())


def status() -> int:
    from ._core import InputError, InternalError

    try:
        return app(prog_name="ciphermill", standalone_mode=False) or 0
    except InputError as error:
        complain(str(error))
        return 2
    except InternalError as error:
        complain(f"{error}\n{OUR_FAULT}")
        return 1
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 2
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "ciphermill"
        complain(f"{error.format_message().rstrip('.')}; see {where} --help")
        return 2
    except click.ClickException as error:
        complain(error.format_message())
        return 2
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would complain once more when
        # it flushes at exit.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
