"""TOML files: read, and the line on which something stands in one.

`tomllib` tells what a file says and not where. When something in it is wrong, its text is
gone through once more for the line of each key and of each element of a list.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from . import paths
from ._core import InputError

#: The way to a value: keys of tables, and numbers of elements.
Place = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''[ \t\r]+|\#[^\n]* | (?P<line>\n) | (?P<sign>[\[\]{}=,.]) | (?P<bare>[^\s\[\]{}=,."'\#]+)
    | (?P<text>"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|'[^']*')''',
    re.DOTALL | re.VERBOSE,
)


def read(path: Path, mend: str = "") -> tuple[str, dict[str, Any]]:
    """A file's text and what it says. Raises InputError; `mend` says what to do where there is none."""
    try:
        return parse(path.read_bytes(), paths.shown(path))
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}{mend}") from None


def parse(data: bytes, shown: str) -> tuple[str, dict[str, Any]]:
    """The same of a file's content; `shown` is what messages call it."""
    try:
        text = data.decode(paths.TEXT)
        return text, tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(f"{shown}: not a text file; it must be TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{shown}: not TOML: {line(str(error))}") from None
    except RecursionError:
        raise InputError(f"{shown}: lists or tables nested too deep; no key here needs more than a few") from None
    except ValueError:
        # TOML knows no largest number, Python's decimal conversion does.
        raise InputError(f"{shown}: a number of thousands of digits; shorten it") from None


def line(text: str, most: int = 400) -> str:
    """What a file holds may stand in a message, which is one line a terminal can show."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def number(text: str, place: Place) -> int | None:
    """The line of a value of a file, or of the innermost table or list around it that has one."""
    lines = _Lines(text).found
    return next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), None)


class _Lines:
    """The lines of all keys and elements of a text that is TOML."""

    def __init__(self, text: str) -> None:
        self.found: dict[Place, int] = {}
        self.tokens: list[tuple[str, int]] = []
        at = 1
        for token in _TOKEN.finditer(text):
            if token.lastgroup:
                self.tokens.append((token[0], at))
            at += token[0].count("\n")
        self.tokens.reverse()
        #: How many tables there are so far in each list of tables, `[[name]]`.
        self.many: dict[Place, int] = {}
        table: Place = ()
        while self.tokens:
            if self.next() == "[":
                table = self.header()
            elif self.next() != "\n":
                self.pair(table)
            else:
                self.take()

    def next(self) -> str:
        return self.tokens[-1][0] if self.tokens else "\n"

    def take(self) -> str:
        return self.tokens.pop()[0]

    def enter(self, place: Place) -> None:
        self.found.setdefault(place, self.tokens[-1][1])

    def header(self) -> Place:
        self.take()
        if several := self.next() == "[":
            self.take()
        at = self.tokens[-1][1]
        *outer, name = self.keys("]")
        place: Place = ()
        for key in outer:
            place += (key,)
            self.found.setdefault(place, at)
            place += (self.many[place] - 1,) if place in self.many else ()
        place += (name,)
        self.found.setdefault(place, at)
        if several:
            self.many[place] = self.many.get(place, 0) + 1
            place += (self.many[place] - 1,)
            self.found[place] = at
            self.take()
        elif place in self.many:
            place += (self.many[place] - 1,)
        return place

    def keys(self, end: str) -> list[str]:
        """The parts of a dotted key, up to a sign that is taken too."""
        found = []
        while (token := self.take()) != end:
            if token != ".":
                found.append(tomllib.loads(f"k = {token}")["k"] if token[0] in "\"'" else token)
        return found

    def pair(self, table: Place) -> None:
        at = self.tokens[-1][1]
        for key in self.keys("="):
            table += (key,)
            self.found.setdefault(table, at)
        self.value(table)

    def value(self, place: Place) -> None:
        """Go over a value; what stands in it is entered."""
        if self.next() not in ("[", "{"):
            while self.next() not in (",", "]", "}", "\n"):
                self.take()
            return
        end, elements = {"[": "]", "{": "}"}[self.take()], 0
        while self.next() != end:
            if self.next() in (",", "\n"):
                self.take()
            elif end == "}":
                self.pair(place)
            else:
                self.enter((*place, elements))
                self.value((*place, elements))
                elements += 1
        self.take()
