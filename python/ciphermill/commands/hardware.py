"""``rtl`` and ``discover``: what instructions cost as hardware, and which a cipher would like to have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import completion, paths
from ..options import Options
from ..progress import waiting, with_progress
from .options import Baseline, CipherName, Csv, Json, Parquet, Tolerance, split, taking
from .output import OUR_FAULT, check, complain, emit, say, writable


def rtl(
    extension: Annotated[
        str,
        typer.Argument(
            metavar="EXT[,EXT]", help="Extensions by name, or your own .toml.", autocompletion=completion.extensions
        ),
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
    from .. import calls, compare, yosys

    check(json, csv, parquet)
    names = split([extension])
    accepted = compare.tolerances(tolerance)
    compare.wanted(baseline, tolerance)
    if baseline is not None:
        compare.read(baseline, "instructions")
    if out is not None:
        paths.check_folder(Path(out), "-o")
    if not verilog_only:
        ready_to_synthesise()
    missing = None
    with waiting("synthesising"):
        try:
            made = calls.rtl(names, on, plain_tables=plain_tables, verilog_only=verilog_only)
        except yosys.Missing as error:
            if baseline is not None:
                raise
            # The Verilog needs no Yosys, and is there to be had.
            missing = error
            made = calls.rtl(names, on, plain_tables=plain_tables, verilog_only=True)
    if out is not None:
        made.write(out)
    compared = None
    if baseline is not None:
        compared = compare.instructions(baseline, made.instructions, accepted)
        made.document["comparison"] = compared.to_dict()
    if not emit(made.to_dict(), made.rows(), json, csv, parquet):
        if compared is not None:
            say(f"{compare.text(compared)}\n")
        say(str(made))
    if missing is not None:
        complain(str(missing))
        raise typer.Exit(2)
    if not made.right:
        complain(f"{extension}: a module is not what its semantics say\n{OUR_FAULT}")
        raise typer.Exit(1)
    if compared is not None and compared.worse:
        if json or csv:
            complain(compare.sentence(compared))
        raise typer.Exit(1)


@taking(only=("direction", "key_bits", "aligned", "with_", "without", "set", "cc"))
def discover(
    cipher: CipherName,
    on: Annotated[str, typer.Option("--on", metavar="MACHINE", help="A machine by name, or your own .toml.")],
    inputs: Annotated[int, typer.Option("--inputs", metavar="N", help="Registers an instruction may read.")] = 2,
    outputs: Annotated[int, typer.Option("--outputs", metavar="M", help="Registers it may write.")] = 1,
    gates: Annotated[
        float | None, typer.Option("--gates", metavar="G", help="Gates it may cost. Default: any number.")
    ] = None,
    tries: Annotated[int, typer.Option("--tries", metavar="N", help="Candidates of each kind that are measured.")] = 6,
    out: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the best there, as an extension file.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Which of the cipher's variants.")] = None,
    options: Options = Options(),
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Find instructions that a cipher would like to have: what they save, what they cost."""
    from .. import calls, discovering, manifest

    check(json, csv, parquet)
    manifest.find(cipher).variant(variant)
    discovering.Limits(inputs=inputs, outputs=outputs, gates=gates, tries=tries).check()
    writable(out, "-o")
    ready_to_synthesise()
    found = calls.discover(
        cipher, on, inputs=inputs, outputs=outputs, gates=gates, tries=tries, variant=variant, progress=with_progress,
        **calls.keywords(options),
    )  # fmt: skip
    if not emit(found.to_dict(), found.rows(), json, csv, parquet):
        say(str(found))
    if out is not None:
        found.write(out)


def ready_to_synthesise() -> None:
    """See that Yosys, where it is installed, has been compiled."""
    from .. import synthesis, yosys

    if synthesis.installed():
        with waiting("compiling Yosys, which its first run does and which takes minutes"):
            yosys.prepare()
