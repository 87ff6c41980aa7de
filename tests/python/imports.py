"""Which file of a crate or package takes what from which, and where that goes round.

A file needs another when it names something of it: in Rust by a path that begins at ``crate``,
``super``, ``self`` or a module of its own, in Python by an import, wherever that stands. What only
Rust's tests need does not count. A path leads to the file that its longest part names, so what is
taken from a parent module counts as the parent's, though it may only pass it on.

    python tests/python/imports.py FOLDER    prints what goes round there
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]
#: For each file those that it needs, with the names that it takes from each.
Graph = dict[Path, dict[Path, set[str]]]

#: What in Rust may hold anything: comments, strings, characters.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>#*)".*?"(?P=hashes)|\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*"'
    r"|'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])'",
    re.DOTALL,
)
FOR_TESTS = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
USE = re.compile(r"\buse\s+([^;]+);")


def rust(source: Path) -> Graph:
    """The graph of a crate's files below its ``src``; programs in ``bin`` are crates of their own."""
    files: dict[Module, Path] = {}
    for file in sorted(source.rglob("*.rs")):
        module = file.relative_to(source).with_suffix("").parts
        if module[0] != "bin":
            files[module[:-1] if module[-1] in ("mod", "lib", "main") else module] = file
    graph: Graph = {file: {} for file in files.values()}
    for module, file in files.items():
        for path in paths_of(code_of(file.read_text()), {m[-1] for m in files if m[:-1] == module and m}):
            at, rest = located(path, module)
            while rest and (*at, rest[0]) in files:
                at, rest = (*at, rest[0]), rest[1:]
            if at in files:
                enter(graph, file, files[at], rest[0] if rest else "*")
    return graph


def code_of(text: str) -> str:
    """Rust without comments, strings, and items that are compiled for tests only."""
    text = OPAQUE.sub(" ", text)
    while found := FOR_TESTS.search(text):
        # An item ends with its body, or with a semicolon outside of all brackets.
        depth, end = 0, found.end()
        while end < len(text) and depth >= 0:
            letter = text[end]
            depth += (letter in "([{") - (letter in ")]}")
            end += depth >= 0
            if depth == 0 and letter in ";}":
                break
        text = text[: found.start()] + text[end:]
    return text


def paths_of(code: str, children: set[str]) -> Iterator[list[str]]:
    """Paths into the crate that a file names, each from ``crate``, ``super`` or ``self`` on."""
    used = [path for found in USE.finditer(code) for path in leaves(found[1])]
    # Modules may be brought in by one path and named by a shorter one.
    local = {path[-1]: path for path in used if path[0] in ("crate", "super", "self")}
    local |= {child: ["self", child] for child in children}
    written = [found[0].split("::") for found in re.finditer(r"(?<![:\w])\w+(?:::\w+)+", USE.sub("", code))]
    for path in used + written:
        if path[0] in ("crate", "super", "self"):
            yield path
        elif path[0] in local:
            yield [*local[path[0]], *path[1:]]


def leaves(tree: str) -> Iterator[list[str]]:
    """The paths of a `use`: ``a::{b, c as d}`` has ``a::b`` and ``a::c``."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield re.split(r"\s+as\s+", tree.strip())[0].replace(" ", "").split("::")
        return
    depth, parts = 0, [""]
    for letter in rest[: rest.rindex("}")]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    for part in filter(str.strip, parts):
        for leaf in leaves(part):
            yield [*head.strip().removesuffix("::").split("::"), *(leaf if leaf != ["self"] else [])]


def located(path: list[str], module: Module) -> tuple[Module, list[str]]:
    """The module where a path begins, and what follows of it."""
    if path[0] == "crate":
        return (), path[1:]
    while path and path[0] in ("self", "super"):
        module = module[:-1] if path[0] == "super" else module
        path = path[1:]
    return module, path


def python(source: Path) -> Graph:
    """The graph of a package's files; what is compiled stands in it by its stub (``.pyi``)."""
    files: dict[Module, Path] = {}
    for file in sorted([*source.rglob("*.py"), *source.rglob("*.pyi")]):
        module = file.relative_to(source.parent).with_suffix("").parts
        files[module[:-1] if module[-1] == "__init__" else module] = file
    graph: Graph = {file: {} for file in files.values()}
    for module, file in files.items():
        package = module if file.name == "__init__.py" else module[:-1]
        for target, name in imported(ast.parse(file.read_text()), package):
            found = (*target, name) if (*target, name) in files else target
            # A package is run before anything in it, but for those that one is in oneself.
            outer = [found[:n] for n in range(1, len(found)) if found[:n] != module[:n]]
            for needed in (found, *outer):
                if needed in files:
                    enter(graph, file, files[needed], name if needed == found else "*")
    return graph


def imported(tree: ast.Module, package: Module) -> Iterator[tuple[Module, str]]:
    """What a file imports at any place: the module, and the name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            for alias in node.names:
                yield (*base, *(node.module or "").split(".")) if node.module else base, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split(".")), "*"


def enter(graph: Graph, file: Path, other: Path, name: str) -> None:
    if other != file:
        graph[file].setdefault(other, set()).add(name)


def cycles(graph: Graph) -> list[list[Path]]:
    """A shortest way round in each set of files that all need each other, in the order in which one needs the next."""
    reached = {file: set(distances(graph, file)) for file in graph}
    found, seen = [], set()
    for file in sorted(graph):
        together = {other for other in reached[file] if file in reached[other]}
        if file in together and file not in seen:
            seen |= together
            rounds = (around(graph, start) for start in sorted(together))
            found.append(min(rounds, key=len))
    return found


def distances(graph: Graph, start: Path) -> dict[Path, Path]:
    """The files that one needs, directly or not, each with the one before it on a shortest way there."""
    before: dict[Path, Path] = {}
    front = [start]
    while front:
        front = [
            other
            for file in front
            for other in sorted(graph[file])
            if other not in before and before.setdefault(other, file)
        ]
    return before


def around(graph: Graph, start: Path) -> list[Path]:
    """A shortest way from a file back to it."""
    before, way = distances(graph, start), [start]
    while (last := before[way[-1]]) != start:
        way.append(last)
    return [start, *reversed(way[1:])]


def told(graph: Graph, source: Path) -> list[str]:
    """Each of the `cycles` in words: who takes what from whom; ``*`` is all of it, or the file itself."""

    def step(file: Path, other: Path) -> str:
        names = graph[file][other] - {"*"} or {"*"}
        return f"{file.relative_to(source)} takes {', '.join(sorted(names))} from {other.relative_to(source)}"

    return ["; ".join(map(step, way, [*way[1:], way[0]])) for way in cycles(graph)]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print("\n".join(told((python if any(folder.glob("*.py")) else rust)(folder), folder)))
