"""The command line: where it is entered, and how it is left.

Exit codes: 0 done and verified; 1 ran but not verified, or a fault of ours;
2 bad input, with one message on stderr that names the place and the mend.

The commands themselves are in ``commands/``.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import click
import typer

from . import _core, commands, scratch
from ._core import InputError, InternalError
from .commands.output import OUR_FAULT, complain

app = typer.Typer(
    name="ciphermill",
    help="What a cipher, hash or kernel costs on a processor you describe, and why.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for _name, _command in commands.ALL.items():
    app.command(_name)(_command)


def version(value: bool) -> None:
    if value:
        print(f"ciphermill {_core.version()}")
        raise typer.Exit


@app.callback()
def common(
    _: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """The entry point: turns every exception into an exit code and a message."""
    # Nothing here is worth finishing.
    scratch.leave_clean()
    if sys.stdout is None:
        # Started with standard output closed.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.exit(status())


def status() -> int:
    try:
        code = app(prog_name="ciphermill", standalone_mode=False) or 0
        sys.stdout.flush()
        return code
    except SystemExit as left:
        # What click makes of a reader that has gone (`| head`); nothing here leaves that way.
        if isinstance(left.__context__, BrokenPipeError):
            return without_reader()
        raise
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
        return without_reader()
    except OSError as error:
        # Files have their own messages, which name the option: what is left is standard output.
        if error.filename is not None:
            raise
        discard()
        complain(f"standard output: {error.strerror}")
        return 2


def without_reader() -> int:
    discard()
    return 0


def discard() -> None:
    """Lead standard output nowhere: Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
