"""What a shell may complete: names of ciphers, variants, machines, extensions, studies.

The shell asks on every press of the key, so nothing is read but names of files, and
nothing is imported that is not asked for. A value that begins like a path is left to the shell.
"""

from __future__ import annotations

import click


def ciphers(incomplete: str) -> list[str]:
    from . import manifest

    return _beginning(incomplete, [*manifest.names(), "all"])


def variants(ctx: click.Context, incomplete: str) -> list[str]:
    """Variants of the cipher that stands on the line already."""
    from . import manifest

    # With a value missing the line is not parsed to its end, and arguments may be left over.
    words = [ctx.params.get("cipher"), *ctx.args]
    name = next((word for word in words if word in manifest.names()), None)
    return [] if name is None else _beginning(incomplete, list(manifest.find(name).variants))


def machines(incomplete: str) -> list[str]:
    from . import library

    return _listed(incomplete, library.machine_names())


def extensions(incomplete: str) -> list[str]:
    from . import library

    return _listed(incomplete, library.extension_names())


def studies(incomplete: str) -> list[str]:
    from . import study

    return _beginning(incomplete, [*study.names(), "all"])


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _listed(incomplete: str, names: list[str]) -> list[str]:
    """Completes the last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in _beginning(last, names) if name not in taken]
