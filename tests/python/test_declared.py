"""Files as declared types: the line of every key, and what is said of what does not fit."""

from __future__ import annotations

import datetime
import tomllib
from typing import Annotated, Literal

import msgspec
import pytest
from samples import ROOT

from ciphermill import InputError, toml
from ciphermill.declared import Declared, Source

TRICKY = '''\
# a "comment = 'with signs' [x]
first = """
not = "a key"
[not.a.table]
""" # "
'quo ted' = 'C:\\[x]'
a.b . "c#d" = 1979-05-27 07:32:00
list = [ # [
  1.5, [2, 3], """
  """, { x = 1, y = { z = [
    4 ] } },

  "]",
]
["t.1"."u"]
k = QQQa "" bQQQ
[[many]]
n = 1
[[many.deep]]
n = 2
[many.deep.er]
n = 3
[[many]]
n = 4
[[many.deep]]
[many.deep.er]
n = """a\\"""b"""
'''.replace("QQQ", "'''")

LINES = {
    ("first",): 2, ("quo ted",): 6, ("a", "b", "c#d"): 7, ("list",): 8, ("list", 0): 9, ("list", 1, 1): 9, ("list", 2): 9,
    ("list", 3, "x"): 10, ("list", 3, "y", "z", 0): 11, ("list", 4): 13, ("t.1", "u", "k"): 16, ("many", 0, "n"): 18,
    ("many", 0, "deep", 0, "er", "n"): 22, ("many", 1): 23, ("many", 1, "n"): 24, ("many", 1, "deep", 0, "er", "n"): 27,
}  # fmt: skip


def places(value: object, place: toml.Place = ()):
    """Every place of what a file says."""
    yield place
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*place, key))


def test_lines_of_what_is_hard_to_read():
    table = tomllib.loads(TRICKY)
    assert {*LINES} <= {*places(table)}
    assert {place: toml.number(TRICKY, place) for place in LINES} == LINES
    # What is not there has the line of what is around it.
    assert toml.number(TRICKY, ("many", 1, "nothing", "more")) == 23 and toml.number(TRICKY, ("nothing",)) is None


@pytest.mark.parametrize("folder", ["ciphers", "machines", "extensions", "studies", "crates"])
def test_every_key_of_every_file_stands_on_its_line(folder):
    files = sorted((ROOT / folder).rglob("*.toml"))
    assert files
    for file in files:
        text = file.read_text()
        found, lines = toml._Lines(text).found, text.splitlines()
        for place in places(tomllib.loads(text)):
            if place:
                assert place in found, (file, place)
            if place and isinstance(place[-1], str):
                assert place[-1] in lines[found[place] - 1], (file, place)


class Inner(Declared, frozen=True):
    name: str
    size: Annotated[int, msgspec.Meta(ge=1, le=8, description="a size is a number from 1 to 8")] = 1


class Outer(Declared, frozen=True, kw_only=True):
    way: Literal["left", "right"] = "left"
    part: int | float = 1
    either: str | list[str | list[str]] = ""
    inner: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = msgspec.field(default_factory=dict)
    needed: bool


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: needed: missing; add it (true or false)"),
        ("needed = 1", "f:1: needed: is 1, must be true or false"),
        ("need = true", "f:1: need: unknown key (did you mean 'needed'?); the keys here are way, part, either, inner, by_name, needed"),
        ("needed = true\nway = 'lift'", "f:2: way: is 'lift' (did you mean 'left'?); it is left or right"),
        ("needed = true\nway = 3", "f:2: way: is 3, must be left or right"),
        ("needed = true\npart = true", "f:2: part: is true, must be a number"),
        ("needed = true\npart = 1979-05-27", "f:2: part: is 1979-05-27, must be a number"),
        ("needed = true\neither = ['a', ['b', 3]]", "f:2: either[1][1]: is 3, must be a string"),
        ("needed = true\neither = {}", "f:2: either: is an empty table, must be a string or a list"),
        ("needed = true\n[[inner]]\nname = 'a'\n[[inner]]\nname = 'b'\nsize = 9", "f:6: inner['b'].size: is 9; a size is a number from 1 to 8"),
        ("needed = true\ninner = [{ name = 'a' },\n { size = 2 }]", "f:3: inner[1].name: missing; add it (a string)"),
        ("needed = true\n[by_name.'a b']\nname = 'x'\nsiez = 2", "f:4: by_name.'a b'.siez: unknown key (did you mean 'size'?)"),
        ("needed = true\nby_name.c = 3", "f:2: by_name.c: is 3, must be a table"),
        ("needed = true\n\"\\u001b\\n\" = 3", "f:2: '\\x1b\\n': unknown key"),
    ],
)  # fmt: skip
def test_what_does_not_fit(text, message):
    with pytest.raises(InputError) as error:
        Source("f", tomllib.loads(text), text).checked(Outer)
    assert str(error.value).startswith(message) and str(error.value).isprintable()


def test_what_fits():
    given = {"needed": True, "part": 2.5, "either": ["a", ["b"]], "inner": [{"name": "x", "size": 8}]}
    made = Source("f", given).checked(Outer)
    assert (made.part, made.either, made.inner[0].size) == (2.5, ["a", ["b"]], 8)


def test_what_is_no_file_has_no_line():
    with pytest.raises(InputError, match=r"^the grid: part: is 1979-05-27, must be a number$"):
        Source("the grid", {"needed": True, "part": datetime.date(1979, 5, 27)}).checked(Outer)
