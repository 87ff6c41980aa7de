"""Machine and extension files: finding them, and reading them as text.

The core reads no files: it is given the text of a machine, of everything the
machine may inherit from, and of the extensions that can be named.
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from . import paths
from ._core import InputError
from .suggest import did_you_mean

#: Beside the machines, and not one: the identities of instruction selection.
RULES = "rules"

#: Bytes from which on a file beside a machine's is not looked at: nobody writes such a machine.
LARGEST = 1 << 22

#: Longest chain of ancestors, and one more; the core says that it is too long.
MOST_ANCESTORS = 20


def machine_names() -> list[str]:
    return [path.stem for path in paths.files(paths.MACHINES, "*.toml") if path.stem != RULES]


def extension_names() -> list[str]:
    return [path.stem for path in paths.files(paths.EXTENSIONS, "*.toml")]


def request(machine: str, with_: list[str], without: list[str], settings: list[str]) -> dict[str, Any]:
    """What the core is told about a machine; ``machine`` is a name or a path.

    A machine file of the user's may inherit from those that come with the
    package, from those beside it, and from any that it names by a path.
    """
    path = machine_path(machine)
    own = read(path)
    library = list(folder(paths.MACHINES))
    if path.parent.resolve() != paths.MACHINES.resolve():
        library += beside(path)
        library += ancestors(path, own)
    extensions = list(folder(paths.EXTENSIONS))
    names = []
    for name in with_:
        file = extension_path(name)
        if file.parent != paths.EXTENSIONS:
            # The user's own goes before one of that name that comes with the package.
            extensions.insert(0, read(file))
        names.append(file.stem)
    return {
        "file": own,
        "library": library,
        "extensions": extensions,
        "with": names,
        "without": without,
        "set": settings,
    }


def machine_path(machine: str) -> Path:
    """The file of a machine: one of ours by its name, or the user's own by its path."""
    if machine not in machine_names() and machine in extension_names():
        raise InputError(
            f"{machine} is an extension, not a machine; add it to one: rv32 --with {machine}, for instance"
        )
    return _named("machine", machine, paths.MACHINES, machine_names())


def memory(machine: str) -> dict[str, Any]:
    """What a machine's file and its ancestors say of its memory, the nearest first.

    By the files alone, and nothing of files that are none: whether a program fits is the core's to say.
    """
    path, found = machine_path(machine), dict[str, Any]()
    for _ in range(MOST_ANCESTORS):
        try:
            said = tomllib.loads(read(path)["text"])
            found = {**said.get("memory", {}), **found}
            parent = str(said["machine"]["inherits"])
        except (tomllib.TOMLDecodeError, InputError, KeyError, TypeError, ValueError, AttributeError):
            break
        beside = path.parent / (parent if parent.endswith(".toml") else f"{parent}.toml")
        path = beside if parent not in machine_names() else paths.MACHINES / f"{parent}.toml"
    return found


def ram(machine: str) -> tuple[int, int] | None:
    """First address of a machine's memory and the one behind its last, where a program cannot have as much as it wants."""
    said = memory(machine)
    try:
        return (int(said.get("ram_from", 0)), int(said["ram_to"])) if "ram_to" in said else None
    except (TypeError, ValueError):
        return None


def extension_path(extension: str) -> Path:
    """The file of an extension, likewise."""
    if extension not in extension_names() and extension in machine_names():
        raise InputError(f"{extension} is a machine, not an extension; run on it: --on {extension}")
    return _named("extension", extension, paths.EXTENSIONS, extension_names())


def _named(kind: str, name: str, folder: Path, known: list[str]) -> Path:
    if name in known:
        return folder / f"{name}.toml"
    if name.endswith(".toml"):
        if not paths.is_file(Path(name)):
            wrong = "a folder, not a file" if paths.is_dir(Path(name)) else "no such file"
            if wrong == "no such file" and Path(name).exists():
                wrong = "a pipe or a device, not a file"
            raise InputError(f"{name}: {wrong}; give a file that exists, or one of {', '.join(known)}")
        return Path(name)
    raise InputError(
        f"no {kind} {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}; "
        "your own is a path that ends in .toml"
    )


@cache
def folder(path: Path) -> tuple[dict[str, str], ...]:
    """All TOML files of a folder."""
    return tuple(read(file) for file in paths.files(path, "*.toml"))


def beside(path: Path) -> list[dict[str, str]]:
    """The TOML files beside one, as far as they can be read: it need not inherit from any of them."""
    found = []
    for file in paths.files(path.parent, "*.toml"):
        try:
            if file.stat().st_size <= LARGEST:
                found.append(read(file))
        except (InputError, OSError):
            continue
    return found


def ancestors(path: Path, file: dict[str, str]) -> list[dict[str, str]]:
    """The files that a machine file and its ancestors name by a path: ``inherits = "../base.toml"``.

    A path is taken from the folder of the file that says it. Each gets the
    path by which the core asks for it; the core refuses circles and files that
    are not there.
    """
    found: list[dict[str, str]] = []
    for _ in range(MOST_ANCESTORS):
        try:
            parent = tomllib.loads(file["text"])["machine"]["inherits"]
        except (tomllib.TOMLDecodeError, KeyError, TypeError):
            break
        if not isinstance(parent, str) or "\0" in parent or parent in machine_names():
            break
        if parent.endswith(".toml"):
            label = os.path.normpath(os.path.join(os.path.dirname(file["path"]), parent))
            path = path.parent / parent
            if not paths.is_file(path, f"{file['path']}: inherits {parent}"):
                break
            file = {"path": label, "text": read(path)["text"]}
            found.append(file)
        else:
            path = path.parent / f"{parent}.toml"
            if not paths.is_file(path, f"{file['path']}: inherits {parent}"):
                break
            file = read(path)
            found.append(file)
    return found


def lineage(machine: str) -> list[str]:
    """The names of a machine's file and of those that it inherits from, itself first; ``machine`` is a name or a path."""
    path = machine_path(machine)
    files = [read(path)]
    if path.parent.resolve() != paths.MACHINES.resolve():
        files += ancestors(path, files[0])
    found = [path.stem]
    for file in files:
        found += [Path(name).stem for name in _parent(file)]
    while (ours := paths.MACHINES / f"{found[-1]}.toml") != path and paths.is_file(ours):
        parent = _parent(read(ours))
        if not parent or parent[0] in found:
            break
        found += parent
    return found


def _parent(file: dict[str, str]) -> list[str]:
    """What a file inherits from: one name, or none."""
    try:
        parent = tomllib.loads(file["text"])["machine"]["inherits"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return []
    return [parent] if isinstance(parent, str) and "\0" not in parent else []


def read(path: Path) -> dict[str, str]:
    """A text file, with the path that messages give it."""
    try:
        return {"path": paths.shown(path), "text": read_bytes(path).decode(paths.TEXT)}
    except UnicodeDecodeError:
        raise InputError(f"{paths.shown(path)}: not a text file; it must be in UTF-8") from None


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None


def headline(path: Path, kind: str) -> dict[str, Any]:
    """The strings and numbers at the head of a machine or extension file."""
    try:
        head = tomllib.loads(read(path)["text"]).get(kind, {})
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{paths.shown(path)}: not TOML: {error}") from None
    plain = {key: value for key, value in head.items() if isinstance(value, (str, int, float, list))}
    return {"title": ""} | plain | {"name": path.stem}
