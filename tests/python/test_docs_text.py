"""The documents as text: short paragraphs, places that exist, a page for each crate, the glossary, the picture.

What the site needs mkdocs for is in ``test_docs.py``.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
from samples import ROOT

DOCS = ROOT / "docs"
CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))
PAGES = [
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("*/*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "crates" / "README.md",
]

#: Longest paragraph, list item or row of a table, in characters.
LONGEST = 900
HEADINGS = ["Data structures", "Invariants", "Phases", "What it does not do", "Literature"]

#: Folders of the checkout that a path in a document may begin with.
FOLDERS = "crates python docs tests machines extensions studies schedules ciphers rtl fuzz benches".split()
#: Endings of source files; a name with one of them and a slash in it is a path.
SOURCE = (".rs", ".py", ".wat")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(params=PAGES, ids=named)
def page(request) -> Path:
    return request.param


# Text.


def lines_outside_code(text: str) -> list[str]:
    """Lines, those between fences left empty, so that numbers stay right."""
    fenced, out = False, []
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        out.append("" if fence or fenced else line)
        fenced ^= fence
    return out


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Paragraphs with their first lines: list items, headings and rows of tables are each by themselves."""
    found: list[tuple[int, str]] = []
    fresh = True
    for number, line in enumerate(lines_outside_code(text), 1):
        words = line.strip()
        if not words:
            fresh = True
            continue
        starts = re.match(r"([-*+]|\d+\.)\s|[|#>]", words)
        if fresh or starts:
            found.append((number, words))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]} {words}")
        fresh = words.startswith("#")
    return found


def too_long(text: str) -> list[str]:
    return [f"line {n}: {len(p)} characters: {p[:60]}" for n, p in paragraphs(text) if len(p) > LONGEST]


def test_paragraphs_are_short(page):
    assert too_long(page.read_text()) == [], f"{named(page)}: a paragraph has at most {LONGEST} characters"


def test_a_long_paragraph_is_found():
    word = "word " * 30
    wrapped = f"Short.\n\n{word}\n" * 2 + f"{word}\n" * 6
    assert [line[:7] for line in too_long(wrapped)] == ["line 6:"]
    assert [line[:7] for line in too_long(f"- {word}\n" * 9 + f"| {'x' * 901} |\n")] == ["line 10"]
    assert too_long(f"```\n{word * 10}\n```\n") == []


# Places.


def quoted(text: str) -> list[str]:
    """What stands between backticks, outside of fenced code."""
    return [words for _, paragraph in paragraphs(text) for words in re.findall(r"`([^`]+)`", paragraph)]


def is_path(words: str) -> bool:
    if not re.fullmatch(r"[\w.*/-]+", words):
        return False
    first, slash, _ = words.partition("/")
    return words.endswith(".rs") or (bool(slash) and (first in FOLDERS or words.endswith(SOURCE)))


def exists(path: str, page: Path) -> bool:
    """From the top of the checkout or from ``crates``; on a crate's own page also from its ``src``."""
    places = [ROOT, ROOT / "crates"]
    if page.parent.name == "design":
        places.append(ROOT / "crates" / page.stem / "src")
    return any(next(place.glob(path.rstrip("/")), None) for place in places)


def missing(text: str, page: Path) -> list[str]:
    return [path for path in quoted(text) if is_path(path) and not exists(path, page)]


def test_paths_lead_somewhere(page):
    assert missing(page.read_text(), page) == [], (
        f"{named(page)} names files that are not there (from the top, or from crates/)"
    )


def test_a_wrong_path_is_found():
    text = "`ir/src/func.rs`, `crates/ir`, `func.rs`, `gone.rs`, `crates/gone`, `cipher.toml`, `a / b`, `machines/*.toml`\n```\n`no.rs`\n```\n"
    assert missing(text, DOCS / "design.md") == ["func.rs", "gone.rs", "crates/gone"]
    assert missing(text, DOCS / "design" / "ir.md") == ["gone.rs", "crates/gone"]


def test_crates_that_are_named_exist(page):
    crates = {f"ciphermill-{crate}" for crate in CRATES} | {"ciphermill-fuzz"}
    assert {word for word in quoted(page.read_text()) if re.fullmatch(r"ciphermill-[a-z]+", word)} <= crates


def test_links_lead_somewhere(page):
    generated = {"reference", "notebooks"}
    for target in re.findall(r"\]\(([^)#\s]+)", "\n".join(lines_outside_code(page.read_text()))):
        if "://" not in target and not generated & set(Path(target).parts):
            assert (page.parent / target).exists(), f"{named(page)} links to {target}"


# The map, and a page for each crate.


def test_the_map_is_two_pages():
    text = (DOCS / "design.md").read_text()
    assert len(text) <= 8000
    for crate in CRATES:
        assert re.search(rf"^\| \[{crate}\]\(design/{crate}\.md\) \|", text, re.MULTILINE), (
            f"the table of crates lacks {crate}"
        )


@pytest.mark.parametrize("crate", CRATES)
def test_each_crate_has_its_page(crate):
    path = DOCS / "design" / f"{crate}.md"
    assert path.exists(), f"crate {crate} has no page docs/design/{crate}.md"
    text = path.read_text()
    headings = [line.removeprefix("## ") for line in lines_outside_code(text) if line.startswith("## ")]
    assert headings == HEADINGS
    assert 1500 <= len(text) <= 5000
    assert f"design/{crate}.md" in (ROOT / "mkdocs.yml").read_text(), "the navigation of mkdocs.yml lacks it"


def test_no_page_is_of_a_crate_that_is_gone():
    assert {path.stem for path in (DOCS / "design").glob("*.md")} == set(CRATES)


@cache
def words_of_code() -> set[str]:
    """Words with a capital, of the core and of the package in front of it."""
    files = [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "python" / "ciphermill").rglob("*.py")]
    return {word for path in files for word in re.findall(r"\b[A-Z]\w*", path.read_text())}


@pytest.mark.parametrize("crate", CRATES)
def test_types_that_a_page_names_exist(crate):
    text = (DOCS / "design" / f"{crate}.md").read_text()
    names = {name for words in quoted(text) for name in re.findall(r"(?<![\w./-])[A-Z]\w+", words)}
    assert names - words_of_code() == set()


#: "`Name`, `Other` (`file.rs`, `file.rs`)": the names, and where they are said to be.
PLACED = re.compile(r"((?:`[\w:]+`(?:,\s+|\s+and\s+|\s+))+)\(((?:`[\w./-]+\.(?:rs|py)`(?:,\s+)?)+)\)")


def misplaced(text: str) -> list[str]:
    """Names that none of the files beside them has."""
    wrong = []
    for names, files in PLACED.findall(text):
        found = [
            next(path for place in (ROOT, ROOT / "crates") if (path := place / file).exists()) for file in quoted(files)
        ]
        there = {word for path in found for word in re.findall(r"\w+", path.read_text())}
        wrong += [
            f"{name} in {files}"
            for name in quoted(names)
            if not set(name.split("::")[-1:]) <= there | {path.stem for path in found}
        ]
    return wrong


@pytest.mark.parametrize("crate", CRATES)
def test_names_are_in_the_files_beside_them(crate):
    assert misplaced((DOCS / "design" / f"{crate}.md").read_text()) == []


def test_a_misplaced_name_is_found():
    assert misplaced("`VFunc`, `Loops` (`vcode/src/code.rs`) and `liveness::max_live` (`vcode/src/liveness.rs`)") == [
        "Loops in `vcode/src/code.rs`"
    ]


# The glossary.

TERM = re.compile(r"\*\*(.+?)\*\*")


def terms(text: str) -> list[tuple[list[str], str]]:
    """Each entry: its term and other names for it (all in bold before the first full stop), and its text."""
    entries = [p for _, p in paragraphs(text) if p.startswith("**")]
    return [(TERM.findall(entry.split(". ")[0]), entry) for entry in entries]


GLOSSARY = terms((DOCS / "glossary.md").read_text())


def test_terms_are_unique():
    every = [name.lower() for names, _ in GLOSSARY for name in names]
    assert len(every) >= 50
    assert sorted(every) == sorted(set(every))


@pytest.mark.parametrize("names, entry", GLOSSARY, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_each_term_has_its_place(names, entry):
    """A path or a link; that they lead somewhere is asked of every page above."""
    assert any(map(is_path, quoted(entry))) or "](" in entry


@pytest.mark.parametrize("names, entry", GLOSSARY, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_other_words_of_the_code_are_still_there(names, entry):
    """``In the code today: `word` (`file`)``: once the word is gone from the file, it leaves the glossary."""
    _, mark, today = entry.partition("In the code today: ")
    found = re.findall(r"`(\w+)` \(`([^`]+)`\)", today)
    assert bool(mark) == bool(found)
    for word, file in found:
        place = next(place for place in (ROOT / file, ROOT / "crates" / file) if place.exists())
        assert re.search(rf"\b{word}\b", place.read_text()), f"{names[0]}: {file} no longer says {word}"


# The picture.


def test_the_picture_is_what_its_script_makes():
    script = DOCS / "pictures" / "way_through.py"
    spec = importlib.util.spec_from_file_location("way_through", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PICTURE.read_bytes() == module.drawn().encode(), "run python docs/pictures/way_through.py"
    crates = set(re.findall(r"[a-z]+", " ".join(below for *_, below in module.STEPS)))
    assert crates >= {"load", "opt", "select", "schedule", "regalloc", "codegen", "sim"}


@pytest.mark.parametrize("path", ["README.md", "docs/design.md"])
def test_the_picture_is_shown(path):
    assert "pictures/way-through.svg)" in (ROOT / path).read_text()
