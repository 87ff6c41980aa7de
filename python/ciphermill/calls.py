"""The calls beside `run`: what the commands of the same names do, from Python. The commands call them.

Each takes the options of a measurement that its command has as keywords (`ciphermill.asked.Asked`), and
raises InputError, which names the place and the mend, or InternalError where we are at fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import asked as asking
from . import engine, manifest
from ._core import InputError
from .answers import Answer as Answer
from .answers import Assembly, Audit, Discovery, Explanation, Hardware, Sheet
from .asked import Asked
from .options import Options

if TYPE_CHECKING:
    from .progress import Progress


def _as_it_is(items: Iterable[Any], _: int) -> Iterable[Any]:
    return items


def asm(
    cipher: str | Path,
    on: str | Path,
    *,
    variant: str | None = None,
    relocatable: bool = False,
    prefix: str | None = None,
    **options: Unpack[Asked],
) -> Assembly:
    """The program that `run` measures with the same options, as assembly for the machine's GNU assembler.

    As it is, its addresses are numbers. ``relocatable`` asks for sections and symbols, each function's name with
    ``prefix`` (by default the cipher's name and ``_``) before it: the result then has an object file and a C header,
    too. Raises InputError, too, for a machine whose functions C does not call, and for a program that needs memory
    of its own beside tables (docs/firmware.md).
    """
    wanted = asking.options(options)
    found = manifest.find(str(cipher))
    if not relocatable:
        if prefix is not None:
            raise InputError("--prefix: names are as in the C interface unless the program is relocatable")
        return Assembly(engine.assembly(engine.module(found, variant, wanted.cc), str(on), wanted))
    from . import firmware

    made = firmware.make(found, str(on), variant, wanted, prefix)
    return Assembly(made.assembly, made)


def audit(
    cipher: str | Path,
    on: str | Path | Sequence[str | Path] | None = None,
    *,
    variant: str | None = None,
    **options: Unpack[Asked],
) -> Audit:
    """Which branches, addresses and times of instructions depend on key or message, by source line.

    Without a machine it is the WebAssembly module that is looked at, for one key size of ``key_bits`` or for all it
    has, each run for at most ``limit`` steps; with one or several the code that `run` measures there.
    """
    from . import auditing

    wanted = asking.options(options)
    wanted.check()
    machines = [] if on is None else [str(on)] if isinstance(on, (str, Path)) else [str(one) for one in on]
    if not machines and replace(wanted, cc=Options.cc, key_bits=None, limit=None) != Options():
        raise InputError(
            "this option is about a machine's code; say which with --on MACHINE, or leave it out to audit the module"
        )
    found = manifest.find(str(cipher))
    document = (
        auditing.on_machines(found, variant, machines, wanted)
        if machines
        else auditing.run(found, variant, wanted.cc, wanted.key_bits, limit=wanted.limit)
    )
    return Audit(
        document=document,
        cipher=document["cipher"],
        variant=document["variant"],
        clean=document["clean"],
        claimed=document["claimed"],
        contradicted=document["contradicted"],
        findings=auditing.findings(document),
    )


def explain(cipher: str | Path, on: str | Path, *, variant: str | None = None, **options: Unpack[Asked]) -> Explanation:
    """Where the cycles of the program that `run` measures go: bounds, and the hottest code cycle by cycle.

    The result's measurement may not be verified: ``result.measurement.verified`` says so.
    """
    from . import explaining

    wanted = asking.options(options)
    module = engine.module(manifest.find(str(cipher)), variant, wanted.cc)
    measurement = engine.measure(module, str(on), wanted)
    explanation = explaining.explanation(module, str(on), wanted)
    document = {"schema": 1, "measurement": measurement.to_dict(), **explanation}
    return Explanation(
        document=document, measurement=measurement, stretches=explanation["stretches"], lines=explanation["lines"]
    )


def discover(
    cipher: str | Path,
    on: str | Path,
    *,
    inputs: int = 2,
    outputs: int = 1,
    gates: float | None = None,
    tries: int = 6,
    variant: str | None = None,
    progress: Progress = _as_it_is,
    **options: Unpack[Asked],
) -> Discovery:
    """Instructions that a cipher would like to have: what each saves, measured, and what it costs in gates.

    An instruction reads up to ``inputs`` registers (1 to 4), writes up to ``outputs`` (1 to 3) and costs at most
    ``gates`` (None: any number); ``tries`` candidates of each kind are measured. ``progress(items, total)``
    goes through the candidates as they are done.
    """
    from . import discovering

    limits = discovering.Limits(inputs=inputs, outputs=outputs, gates=gates, tries=tries)
    wanted = asking.options(options)
    module = engine.module(manifest.find(str(cipher)), variant, wanted.cc)
    d = discovering.discover(module, str(on), wanted, limits, progress)
    return Discovery(
        document=d,
        cipher=d["cipher"],
        variant=d["variant"],
        machine=d["machine"],
        cycles_per_block=d["cycles_per_block"],
        candidates=d["candidates"],
        others=d["others"],
        best=d["best"],
    )


def rtl(
    extensions: str | Path | Iterable[str | Path],
    on: str | Path | None = None,
    *,
    plain_tables: bool = False,
    verilog_only: bool = False,
    prove: bool = True,
) -> Hardware:
    """The hardware of instructions: Verilog, gates, an FPGA's cells, and a proof against their semantics.

    Extensions are read on the machine ``on``, by default one that they fit. ``plain_tables`` writes tables as case
    statements; ``verilog_only`` asks Yosys for nothing, which need not be installed then; without ``prove`` it is
    asked for gates and cells alone.
    """
    from . import hardware

    names = [str(extensions)] if isinstance(extensions, (str, Path)) else [str(one) for one in extensions]
    if not names:
        raise InputError("no extension; name one or more")
    document, files = hardware.report(
        names,
        hardware.Options(
            on=None if on is None else str(on), plain_tables=plain_tables, verilog_only=verilog_only, prove=prove
        ),
    )
    return Hardware(
        document=document,
        machine=document["machine"],
        instructions=document["instructions"],
        units=document["units"],
        files=files,
    )


def sheet(machine: str | Path, *, loops: str | Path | None = None, silicon: bool = False) -> Sheet:
    """Tiny loops on a machine, beside what others measured on the real one: those of ``machines/sheets``, or of the
    file ``loops``. ``silicon`` runs them on this computer's processor, too."""
    from . import sheets

    native = None
    if silicon:
        from .silicon import loops as natively

        native = natively.run
    filled = sheets.run(str(machine), None if loops is None else str(loops), native)
    return Sheet(document=filled, machine=filled["machine"], loops=filled["rows"])


def keywords(options: Options) -> Mapping[str, Any]:
    """What of `options` is not as usual, as keywords of the calls here."""
    return {f"{name}_" if name == "with" else name: value for name, value in options.asked().items()}
