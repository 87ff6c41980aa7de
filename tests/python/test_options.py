"""The options of a measurement are said once: what the commands, the calls and the pages make of that."""

from __future__ import annotations

import inspect
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ciphermill import api, commands
from ciphermill.commands.options import taking
from ciphermill.options import SAID, USUAL, Options


def answer(decorator, *arguments: str) -> Options:
    """What a command that takes options is given for a command line."""
    given = []

    @decorator
    def command(
        own: Annotated[str, typer.Argument()],
        options: Options = Options(),
        strict: Annotated[bool, typer.Option("--strict")] = False,
    ) -> None:
        given.append((own, options, strict))

    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, ["mine", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    ((own, options, strict),) = given
    assert (own, strict) == ("mine", "--strict" in arguments)
    return options


def test_a_command_is_given_what_the_line_says():
    assert answer(taking()) == Options()
    line = (
        "--with",
        "a,b",
        "--with",
        "c",
        "--set",
        "x=[1,2]",
        "--no-unroll",
        "--key-bits",
        "256",
        "--strict",
        "--fresh",
        "--cc",
        "gcc",
    )
    wanted = Options(with_=("a", "b", "c"), set=("x=[1,2]",), unroll=False, key_bits=256, fresh=True, cc="gcc")
    assert answer(taking(), *line) == wanted
    assert answer(taking(before={"strict": "fresh"}), *line) == wanted


def test_some_of_the_options_in_their_order():
    def command(own: str, options: Options = Options(), strict: bool = False) -> None:
        pass

    def names(decorator) -> list[str]:
        return list(inspect.signature(decorator(command)).parameters)

    assert names(taking()) == ["own", *SAID, "strict"]
    assert names(taking(only=("cc", "jam"))) == ["own", "jam", "cc", "strict"]
    assert names(taking(only=("cc", "jam"), before={"strict": "cc"})) == ["own", "jam", "strict", "cc"]
    assert names(taking(but=[name for name in SAID if name != "set"])) == ["own", "set", "strict"]
    told = inspect.signature(taking(help={"jam": "Otherwise."})(command)).parameters["jam"].annotation
    assert told.__metadata__[0].help == "Otherwise."
    with pytest.raises(ValueError, match="no options of a measurement: jamm"):
        taking(but=("jamm",))


def test_run_has_all_of_them_as_command_and_as_call():
    """The call's are written out, since editors and type checkers read them there: they must be these, with these defaults."""
    assert set(SAID) < set(inspect.signature(commands.ALL["run"]).parameters)
    call = inspect.signature(api.run).parameters
    settings = {name: parameter.default for name, parameter in call.items() if name not in ("cipher", "on", "variant")}
    assert list(settings) == list(SAID)
    assert settings == {name: () if usual == [] else usual for name, usual in USUAL.items()}


def test_what_was_asked_is_what_differs():
    assert Options().asked() == {} == Options(with_=[], trace={"first": 0, "count": 1}).asked()
    changed = Options(with_=("zkne",), unroll=False, key_bits=256, optimise="size", patience=2)
    assert changed.asked() == {"with": ["zkne"], "unroll": False, "key_bits": 256, "optimise": "size", "patience": 2}
