"""``serve``: a page on this computer into which a cipher in C is pasted."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import complain, say


def serve(
    port: Annotated[int, typer.Option("--port", metavar="N", help="Where it is served; 0 takes a free one.")] = 8217,
    unconfined: Annotated[
        bool,
        typer.Option(
            "--unconfined",
            help="Serve although what is pasted could read your files: where the system cannot confine it.",
        ),
    ] = False,
) -> None:
    """Serve a page on this computer: paste C, choose machines, see cycles, bounds and schedules."""
    from ..serving import desk, server
    from ..serving.limits import Limits

    serving = server.opened(port, Limits(), confined=not unconfined)
    if unconfined:
        complain("serve --unconfined: what is pasted is not kept from reading files; run only C that you trust")
    else:
        desk.check_confined(serving.desk)
    say(f"ciphermill is at {serving.address} until Ctrl-C.")
    # Whoever waits for the address reads it from a pipe.
    print(end="", flush=True)
    serving.serve_forever()
