"""The native compilers that are here, and what they make of a cipher's C.

gcc and clang from the PATH; where there is no clang, the one inside ``ziglang``. Each
with three settings. Everything is compiled into a shared library with the cipher's
own flags, the same C that becomes the WebAssembly module.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import cached, paths, processes
from .._core import InputError
from ..compile import SECONDS
from ..manifest import Variant

#: Settings, by the words that name them in tables.
SETTINGS = (("-O2",), ("-O3",), ("-O3", "-march=native"))

#: Those whose instructions are the same on every processor of an architecture. (Valgrind
#: does not know all instructions of new ones either.)
PORTABLE = SETTINGS[:2]

#: Given always: C11, code that can be loaded anywhere, no sanitizers (zig's default).
ALWAYS = ("-std=c11", "-fPIC", "-fno-stack-protector", "-fomit-frame-pointer")


@dataclass(frozen=True)
class Compiler:
    """A compiler and how it is started."""

    name: str
    command: tuple[str, ...]
    version: str
    #: What keeps it to instructions that every processor of the architecture has.
    baseline: tuple[str, ...] = ()


def compilers(wanted: str | None = None) -> list[Compiler]:
    """gcc and clang; with ``wanted`` that one alone (gcc, clang, zig or a path)."""
    if wanted is not None:
        return [_zig() if wanted == "zig" else _found(wanted, Path(wanted).name)]
    found = [_found(name, name) for name in ("gcc", "clang") if shutil.which(name)]
    if not any(compiler.name == "clang" for compiler in found):
        found.append(_zig())
    return found


def _found(command: str, name: str) -> Compiler:
    path = shutil.which(command)
    if path is None:
        raise InputError(
            f"--cc {command}: no such program on the PATH; install it, or say zig for the clang that comes with ciphermill"
        )
    return Compiler(name, (path,), _version((path,)))


def _zig() -> Compiler:
    command = (sys.executable, "-m", "ziglang", "cc")
    # Left alone it compiles for the processor it runs on, with a sanitizer.
    return Compiler("clang (zig)", (*command, "-fno-sanitize=all"), _version(command), ("-mcpu=baseline",))


def _version(command: tuple[str, ...]) -> str:
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False, env=environment())
    return said.stdout.splitlines()[0].strip() if said.stdout else "version unknown"


def environment() -> dict[str, str]:
    """zig keeps what it compiles where our own compilations go."""
    return cached.environment()


def build(
    compiler: Compiler, settings: tuple[str, ...], variant: Variant, out: Path, extra: tuple[Path, ...] = ()
) -> Path:
    """A shared library of a variant; with ``extra`` C files a program instead."""
    kind: tuple[str, ...] = () if extra else ("-shared",)
    if not any(flag.startswith("-march") for flag in settings):
        kind += compiler.baseline
    sources = [str(source.resolve()) for source in (*variant.sources, *extra)]
    include = [f"-I{folder.resolve()}" for folder in (paths.CIPHERS,)]
    command = [*compiler.command, *ALWAYS, *settings, *kind, *include, *variant.flags, *sources, "-o", str(out)]
    try:
        answer = processes.run(command, SECONDS, environment())
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{compiler.name} {' '.join(settings)} had not ended after {SECONDS} seconds and was stopped"
        ) from None
    except OSError as error:
        raise InputError(f"{compiler.name} could not be started: {error.strerror}") from None
    if answer.returncode:
        raise InputError(
            f"{compiler.name} {' '.join(settings)} refused {paths.shown(variant.sources[0])}:\n"
            f"{answer.stderr.decode(errors='replace').strip()}"
        )
    return out
