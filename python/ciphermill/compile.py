"""C to WebAssembly, once per content.

The compiler is the clang inside the pinned ``ziglang`` package, so the same
source gives the same module on every computer; ``cc="system"`` takes the
clang on the ``PATH`` instead, any other value is a path to one.

The cache is content-addressed. A first key covers the compiler and its
version, the flags, and the name and bytes of every source. What headers a
source includes is known only to the preprocessor, so the first compilation
asks it (``-M``) and writes the list beside the key; the second key covers the
bytes of those headers too (and of what stands in for a 128-bit integer's
operations, where it was linked), and names the module. A hit therefore costs a few
file reads and starts no process; a changed header, flag or compiler misses. What is read
is checked (`ciphermill.cached`).

Files are written to a temporary name and renamed, so two processes that
compile the same cipher at once, or one that is killed, leave a whole module
or none. The compiler's own message is shown as it is: it names file, line
and column better than we could.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from . import cached, paths, processes, scratch
from ._core import InputError

#: Given to every compilation, before a manifest's own flags. Only what the
#: loader reads is switched on: integers, sign extension, bulk memory, several
#: results. The C stack lies below the data (the linker's default) and takes
#: the first 64 KB, so that no valid pointer is small.
BASE_FLAGS = (
    "-std=c11",
    "-O2",
    "-g0",
    "-mcpu=mvp+bulk_memory+sign_ext+multivalue+mutable_globals",
    "-ffreestanding",
    "-fno-sanitize=all",  # zig turns some on at -O0, and they need a library
    "-nostdlib",
    "-Wl,--no-entry",
    "-Wl,--export=__heap_base",
    "-Wl,-z,stack-size=65536",
    "-Wl,--global-base=65536",
)


def fitted(start: int, end: int, constants: int | None = None) -> tuple[str, ...]:
    """Flags for a memory from ``start`` to ``end``: the C stack in its first eighth, the data behind it.

    With an address for ``constants`` these are there, and the module says where its stack begins.
    """
    base = start + (end - start) // 8
    if constants is None:
        return (f"-Wl,-z,stack-size={base}", f"-Wl,--global-base={base}")
    return (f"-Wl,-z,stack-size={base}", f"-Wl,--global-base={constants}", "-Wl,--export=__stack_high")


def placed(stack: int, data: int) -> tuple[str, ...]:
    """Flags for C's stack below ``stack`` and static data from ``data`` on."""
    return (f"-Wl,-z,stack-size={stack}", f"-Wl,--global-base={data}")


#: Seconds after which a compiler is stopped. The largest source here takes ten.
SECONDS = 300

#: For the function of a direction that no source defines, what tells ciphermill.h.
ONE_WAY = {"cm_decrypt": "-DCM_ENCRYPT_ONLY", "cm_encrypt": "-DCM_DECRYPT_ONLY"}


@dataclass(frozen=True)
class Unit:
    """What is compiled into one module: sources, where headers are, flags."""

    sources: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


def module(unit: Unit, cc: str = "zig") -> bytes:
    """The WebAssembly module of a unit, from the cache or the compiler."""
    command, identity = compiler(cc)
    first = _first_key(unit, identity)
    listing = cached.place("wasm", f"{first}.headers.json")
    if (found := _cached(listing, first)) is not None:
        return found
    headers = _headers(unit, command)
    whole = unit
    while True:
        try:
            wasm = _compile(whole, command)
            break
        except InputError as error:
            if (more := _completed(whole, str(error))) is None:
                raise
            whole = more
    headers = sorted({*headers, *(str(source.resolve()) for source in whole.sources if source not in unit.sources)})
    cached.write(_module_path(first, headers), wasm)
    cached.write(listing, json.dumps(headers).encode())
    return wasm


def _completed(unit: Unit, message: str) -> Unit | None:
    """The unit with what a compilation of it lacked, where that is not for the user to add: operations of
    128-bit integers, or only one of the two directions."""
    runtime = paths.LIBC / "int128.c"
    if _RUNTIME.search(message) and runtime not in unit.sources:
        return replace(unit, sources=(*unit.sources, runtime))
    undefined = {way for way in ONE_WAY if re.search(rf" uses {way}, which no source defines$", message, re.MULTILINE)}
    if len(undefined) == 1:
        flag = ONE_WAY[undefined.pop()]
        # Once: what still is undefined then is so for another reason.
        return None if flag in unit.flags else replace(unit, flags=(*unit.flags, flag))
    return None


def compiler(cc: str) -> tuple[list[str], str]:
    """The command that starts a compiler, and what tells it from any other."""
    if cc == "zig":
        return [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-freestanding"], _pinned()
    path = shutil.which("clang" if cc == "system" else cc)
    if path is None:
        wanted = "clang" if cc == "system" else cc
        raise InputError(
            f"--cc {cc}: no program {wanted} was found on the PATH; install it, "
            "or leave --cc out to use the compiler that comes with ciphermill"
        )
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if answer.returncode or "clang" not in answer.stdout:
        raise InputError(f"--cc {cc}: {path} is not clang, and only clang compiles C to WebAssembly")
    return [path, "--target=wasm32-unknown-unknown"], answer.stdout


@cache
def _pinned() -> str:
    return f"ziglang {version('ziglang')}"


def _first_key(unit: Unit, identity: str) -> str:
    digest = hashlib.sha256()
    for part in (identity, *BASE_FLAGS, "", *unit.flags, ""):
        digest.update(part.encode() + b"\0")
    for folder in unit.include:
        digest.update(str(folder.resolve()).encode() + b"\0")
    for source in unit.sources:
        digest.update(str(source.resolve()).encode() + b"\0")
        digest.update(_read(source) + b"\0")
    return digest.hexdigest()[:40]


def _cached(listing: Path, first: str) -> bytes | None:
    if (names := cached.read(listing)) is None:
        return None
    try:
        return cached.read(_module_path(first, json.loads(names)))
    except OSError:
        # A header is gone.
        return None


def _module_path(first: str, headers: list[str]) -> Path:
    digest = hashlib.sha256(first.encode())
    for header in headers:
        digest.update(header.encode() + b"\0")
        digest.update(Path(header).read_bytes() + b"\0")
    return cached.place("wasm", f"{digest.hexdigest()[:40]}.wasm")


def _headers(unit: Unit, command: list[str]) -> list[str]:
    """Absolute paths of all headers the sources include, sorted."""
    found = set()
    for source in unit.sources:
        rule = _call([*command, *_arguments(unit), "-M", str(source.resolve())], source)
        # Of a file to #embed that cannot be read clang says nothing here and writes no rule; the compilation then says it.
        names = rule.decode().partition(":")[2].replace("\\\n", " ")
        # Spaces in names are written "\ ".
        for name in names.replace("\\ ", "\0").split():
            path = Path(name.replace("\0", " ")).resolve()
            if path != source.resolve():
                found.add(str(path))
    return sorted(found)


def _compile(unit: Unit, command: list[str]) -> bytes:
    with scratch.folder() as folder:
        # The output's name gets into the module, so it is always the same.
        out = Path(folder) / "module.wasm"
        sources = [str(source.resolve()) for source in unit.sources]
        _call([*command, *_arguments(unit), *sources, "-o", str(out)], unit.sources[0])
        return out.read_bytes()


def _arguments(unit: Unit) -> list[str]:
    return [*BASE_FLAGS, *(f"-I{folder.resolve()}" for folder in unit.include), *unit.flags]


def _call(command: list[str], source: Path) -> bytes:
    try:
        answer = processes.run(command, SECONDS, cached.environment())
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{paths.shown(source)}: the C compiler had not ended after {SECONDS} seconds and was stopped; compile a smaller "
            "source, or less of it at -O1 (flags in the manifest). Where every source takes so long, the folder that it "
            f"keeps things in may be at fault, {cached.compilers()}; CIPHERMILL_CACHE=FOLDER names another"
        ) from None
    except OSError as error:
        raise InputError(f"the C compiler could not be started: {error}") from None
    if answer.returncode:
        said = answer.stderr.decode(errors="replace").strip()
        said = said or f"it ended with code {answer.returncode} and no message, as it does where memory runs out"
        message = _explained(said, source.resolve().parent)
        raise InputError(f"the C compiler refused {paths.shown(source)}:\n{message}")
    return answer.stdout


#: What the linker prints for every use of a function that nobody defines.
_UNDEFINED = re.compile(r"^wasm-ld: error: .*?([^/\\]+)\.o: undefined symbol: (\S+)$", re.MULTILINE)
#: What of that `ciphers/libc/int128.c` defines.
_RUNTIME = re.compile(r" uses __(?:multi|[al]shrti|ashlti|u?divti|u?modti)3, which no source defines$", re.MULTILINE)
_UNDECLARED = re.compile(r"call to undeclared (?:library )?function '(\w+)'")
#: Vector intrinsics or inline assembly that is not WebAssembly's.
_ELSEWHERE = re.compile(
    r"This header is only meant to be used on|note: instantiated into assembly here|invalid output constraint|unknown register name"
)
_NO_HEADER = re.compile(r"fatal error: '([^']+)' file not found")

#: Headers of a hosted C library that have nothing to do with ciphers.
_HOSTED = ("unistd.h", "signal.h", "pthread.h", "malloc.h")


def _explained(message: str, folder: Path) -> str:
    """The compiler's message, with a mend where it has none of its own.

    The linker names temporary files and repeats itself; its lines for
    undefined symbols are replaced by one sentence a symbol. Files of the `folder` that
    define one are named.
    """
    undefined = dict.fromkeys(_UNDEFINED.findall(message))
    if undefined:
        lines = [f"{file}.c uses {symbol}, which no source defines" for file, symbol in undefined]
        rest = [line for line in _UNDEFINED.sub("", message).splitlines() if line.strip()]
        message = "\n".join([*rest, *lines])
        names = {symbol for _, symbol in undefined}
        if names & {"memcpy", "memmove", "memset", "memcmp", "strlen", "abort"}:
            message += "\ninclude <string.h> (<stdlib.h> for abort) instead of declaring them: ciphermill brings both"
        if names & {"malloc", "calloc", "realloc", "free", "posix_memalign"}:
            message += "\nthere is no heap; keep what the cipher allocates in struct cm_ctx"
        message += defined(names, folder)
        message += "\nname every C file it needs in the manifest's sources; there is no C library to link with"
        if names & {"printf", "fprintf", "puts", "putchar", "sprintf", "snprintf"}:
            message += "\nnothing can be printed; leave that part out, usually by a macro in flags"
    if undeclared := dict.fromkeys(_UNDECLARED.findall(message)):
        message += (
            f"\nno header here declares {', '.join(undeclared)}; define it in a source, or leave out what needs it"
        )
    if _ELSEWHERE.search(message):
        # Every line of such a file is an error, and the first says it all.
        message = "\n".join(message.splitlines()[:4])
        message += (
            "\nthis is code for one processor's own instructions; take the portable C, usually by a macro in flags"
        )
    if missing := _NO_HEADER.search(message):
        name = missing[1]
        if name in _HOSTED:
            message += (
                f"\nthere is no C library, so no <{name}>; take the cipher's code without what needs it, "
                "or define a macro that leaves it out (flags in the manifest)"
            )
        else:
            message += f'\nif {name} is yours, add its folder to the manifest: flags = ["-I/the/folder"]'
    return message


#: Files of a folder that are looked into, and bytes of each.
MOST_FILES, MOST_BYTES = 200, 1 << 20


def defined(names: set[str], folder: Path) -> str:
    """Lines that say which C files of a folder define which of the names."""
    found: dict[str, list[str]] = {}
    try:
        files = sorted(folder.glob("*.c"))[:MOST_FILES]
        texts = {file: file.read_bytes()[:MOST_BYTES].decode(errors="replace") for file in files}
    except OSError:
        return ""
    for file, text in texts.items():
        # Outside of every block, what ends a list of parameters and begins one is a function's definition;
        # data has its name before `=` or `[`. Comments and strings do not count.
        text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.MULTILINE)
        top, depth = [], 0
        for part in re.split(r"([{}])", text):
            depth += (part == "{") - (part == "}")
            if part in "{}":
                top.append(part if depth + (part == "}") == 1 else "")
            elif depth <= 0:
                top.append(part)
        outside = "".join(top)
        for name in names:
            function = rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?\{{"
            data = rf"^(?!\s*extern\b)[^;{{}}()=]*\b{re.escape(name)}\s*(?:\[[^;={{}}]*\]\s*)*(?:=|;)"
            other = re.search(rf"\bstatic\b[^;{{}}]*\b{re.escape(name)}\b", outside)
            if not other and (re.search(function, outside) or re.search(data, outside, re.MULTILINE)):
                found.setdefault(name, []).append(paths.shown(file))
    return "".join(f"\n{name} is defined in {' and in '.join(where)}" for name, where in sorted(found.items()))


def _read(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise InputError(f"{paths.shown(source)}: {error.strerror}; give the path of a C file") from None
