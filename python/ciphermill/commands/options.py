"""Options that several commands share, each said once: name, help, completion.

Those of a measurement are said where they are kept, in `ciphermill.options`; a command
takes them as one parameter (`taking`). What an option means is not decided here but
where it is used; what is right of it is checked there too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import GenericAlias
from typing import Annotated, Any, get_args

import typer

from .. import completion
from .._core import InputError
from ..options import SAID, USUAL, Options

Machine = Annotated[
    list[str], typer.Option(
        "--on", metavar="MACHINE", help="A machine by name, or your own .toml; repeatable. Default: all.",
        autocompletion=completion.machines,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of text: a row for each result.")]
Parquet = Annotated[
    str | None, typer.Option("--parquet", metavar="FILE", help="Write the rows there too, as Parquet (needs polars).")
]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw it there, too, as .svg or .png.")]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--compare", metavar="FILE", help="A document --json wrote earlier: exit with 1 when something got worse."
    ),
]
Tolerance = Annotated[
    list[str],
    typer.Option(
        "--tolerance",
        metavar="[METRIC=]AMOUNT",
        help="How much worse is accepted, for instance 1% or cycles=0.5%; metrics: cycles, code, gates. Default: 0.",
    ),
]
CipherName = Annotated[
    str,
    typer.Argument(
        metavar="CIPHER", help="A built-in name, a .c, a .wasm, or a manifest.", autocompletion=completion.ciphers
    ),
]
OneMachine = Annotated[
    str,
    typer.Option(
        "--on", metavar="MACHINE", help="A machine by name, or your own .toml.", autocompletion=completion.machines
    ),
]
Variant = Annotated[
    str | None,
    typer.Option(help="Which of the cipher's variants. Default: the manifest's.", autocompletion=completion.variants),
]


def option(name: str, help: str | None = None) -> Any:
    """The annotation of one option of a measurement, with another `help` where it means something else."""
    kind, said = SAID[name]
    if isinstance(USUAL[name], list):
        kind = GenericAlias(list, get_args(kind))
    spelt = () if said.spelt is None else (said.spelt,)
    complete = None if said.names is None else getattr(completion, said.names)
    return Annotated[kind, typer.Option(*spelt, metavar=said.metavar, help=help or said.help, autocompletion=complete)]


Limit = option("limit")


def taking(
    *,
    only: Sequence[str] | None = None,
    but: Sequence[str] = (),
    help: Mapping[str, str] = {},
    before: Mapping[str, str] = {},
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command's parameter `options` the options of a measurement: all of them, `only` some, or all `but` some.

    They stand in its place, in the order of `Options`, and the command is given an `Options` of them.
    `help` says of some what is meant here; `before` puts parameters of the command's own among them: each
    before the option that it names.
    """
    if unknown := {*(only or ()), *but, *help, *before.values()} - SAID.keys():
        raise ValueError(f"no options of a measurement: {', '.join(sorted(unknown))}")
    names = [name for name in SAID if name not in but and (only is None or name in only)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        parameters: list[inspect.Parameter] = []
        for parameter in own.values():
            if parameter.name == "options":
                for name in names:
                    parameters += [own[mine] for mine, theirs in before.items() if theirs == name]
                    annotation = option(name, help.get(name))
                    parameters.append(
                        inspect.Parameter(
                            name, inspect.Parameter.KEYWORD_ONLY, default=USUAL[name], annotation=annotation
                        )
                    )
            elif parameter.name not in before:
                parameters.append(parameter)

        @wraps(command)
        def taken(**given: Any) -> None:
            options = made({name: given.pop(name) for name in names})
            command(**given, options=options)

        taken.__signature__ = inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters])  # type: ignore[attr-defined]
        return taken

    return decorate


def made(given: Mapping[str, Any]) -> Options:
    """`Options` from what the command line gave."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        plain = tuple(value) if isinstance(value, list) else value
        values[name] = tuple(split(plain)) if SAID[name][1].commas else plain
    return Options(**values)


def machines_of(on: list[str]) -> list[str]:
    """The machines that ``--on`` names; all of them where it was not given."""
    from .. import library

    if on and not split(on):
        raise InputError("--on is given and empty; name a machine, or leave --on out to have all of them")
    return split(on) or library.machine_names()


def split(values: Sequence[str]) -> list[str]:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
