"""The types of a measurement, from the structs of the core that serde writes.

    .venv/bin/python tests/python/measured_types.py     # writes python/ciphermill/measured_types.py

The JSON of a measurement is made of the struct `Measurement` (`crates/measure/src/measurement.rs`)
and of those that it names, in whatever crate. Here their fields are read off the source: names,
types, what is left out when empty, and the comments. A form that is not understood is an error,
so that no field is passed over.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from samples import ROOT

OUT = ROOT / "python" / "ciphermill" / "measured_types.py"
START = ROOT / "crates" / "measure" / "src" / "measurement.rs"

PLAIN = {
    "String": "str",
    "&'static str": "str",
    "bool": "bool",
    "f32": "float",
    "f64": "float",
    "serde_json::Value": "Any",
}
PLAIN |= dict.fromkeys(("u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"), "int")

#: A struct or an enum with what stands before it.
ITEM = re.compile(r"((?:^(?:///|#\[)[^\n]*\n)*)^pub (struct|enum) (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"((?:^    (?:///|#\[).*\n)*)^    (?:pub (\w+): (.+)|(\w+)),\n", re.MULTILINE)

HEAD = '''\
"""The types of a measurement's parts. Made by `tests/python/measured_types.py` from the core; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''


@dataclass(frozen=True)
class Item:
    """A struct or an enum: where it stands, what is said of it, its body."""

    file: Path
    before: str
    kind: str
    name: str
    body: str


def items(file: Path) -> dict[str, Item]:
    return {found[3]: Item(file, found[1], *found.group(2, 3, 4)) for found in ITEM.finditer(file.read_text())}


def find(name: str, asked: Path) -> Item:
    """The item that a path means in a file: one of that file, of the crate that it is taken from, or of its own."""
    *path, last = name.split("::")
    here = items(asked)
    if not path and last in here:
        return here[last]
    if not path and (used := re.search(rf"^use (\w+)::[^;]*\b{last}\b[^;]*;", asked.read_text(), re.MULTILINE)):
        path = [used[1]]
    crate = asked.relative_to(ROOT / "crates").parts[0]
    if path and path[0].startswith("ciphermill_"):
        crate = path[0].removeprefix("ciphermill_")
    there = [
        found[last]
        for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))
        if last in (found := items(file))
    ]
    written = [item for item in there if "Serialize" in item.before]
    assert len(written) == 1, f"{asked}: {name}: {len(written)} types of that name in crate {crate} that serde writes"
    return written[0]


class Types:
    """What has been written so far: the Python text of each struct, by name."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[Path, str]] = {}

    def of(self, rust: str, asked: Path) -> str:
        """A Rust type of a field of `asked` as a Python type."""
        if rust in PLAIN:
            return PLAIN[rust]
        if found := re.fullmatch(r"Option<(.+)>", rust):
            return f"{self.of(found[1], asked)} | None"
        if found := re.fullmatch(r"Vec<(.+)>", rust):
            return f"list[{self.of(found[1], asked)}]"
        if found := re.fullmatch(r"BTreeMap<[^,<]+, (.+)>", rust):
            return f"dict[str, {self.of(found[1], asked)}]"
        assert re.fullmatch(r"[\w:]+", rust), f"{asked}: {rust}: teach this script what serde writes of it"
        item = find(rust, asked)
        if item.kind == "enum":
            return f"Literal[{', '.join(map(repr, self.variants(item)))}]".replace("'", '"')
        if item.name not in self.done:
            self.done[item.name] = (item.file, "")
            self.done[item.name] = (item.file, self.struct(item, f"class {item.name}(TypedDict):", dicts=True))
        assert self.done[item.name][0] == item.file, f"two structs are called {item.name}: rename one"
        return item.name

    def variants(self, item: Item) -> list[str]:
        assert all(name for _, _, _, name in FIELD.findall(item.body)), (
            f"{item.file}: {item.name}: variants with values"
        )
        case = re.search(r'#\[serde\(rename_all = "(lowercase|kebab-case|snake_case)"\)\]', item.before)
        assert case, f"{item.file}: {item.name}: say how serde writes its variants"
        between = {"lowercase": "", "kebab-case": "-", "snake_case": "_"}[case[1]]
        names = [name for *_, name in FIELD.findall(item.body)]
        return [re.sub(r"(?<=.)([A-Z])", rf"{between}\1", name).lower() for name in names]

    def struct(self, item: Item, head: str, *, dicts: bool) -> str:
        """A struct as a class: of a dict, or of attributes."""
        said = "\n    ".join(comment(item.before))
        lines = [head, f'    """{said}"""' if "\n" not in said else f'    """{said}\n    """', ""]
        assert not re.search(r"#\[serde\((?!deny_unknown_fields)", item.before), (
            f"{item.file}: {item.name}: a form of serde's"
        )
        for before, name, rust, _ in FIELD.findall(item.body):
            said = "".join(re.findall(r"#\[serde\((.*)\)\]", before))
            assert re.fullmatch(r'(rename = "\w+"|skip_serializing_if = "[\w:]+"|default|, )*', said), (
                f"{item.name}.{name}: {said}"
            )
            renamed = re.search(r'rename = "(\w+)"', said)
            name = renamed[1] if renamed else name
            kind = self.of(rust, item.file)
            if "skip_serializing_if" in said:
                kind = kind.removesuffix(" | None")
                kind = f"NotRequired[{kind}]" if dicts else kind
                before += "" if dicts else "/// Left out where there is none.\n"
            if keyword.iskeyword(name):
                assert not dicts, f"{item.name}.{name}: a keyword cannot be a key of a TypedDict written as a class"
                continue
            lines += [f"    #: {line}".rstrip() for line in comment(before)] + [f"    {name}: {kind}"]
        return "\n".join(lines)


def comment(before: str) -> list[str]:
    return [line.strip().removeprefix("///").strip() for line in before.splitlines() if line.strip().startswith("///")]


def made() -> str:
    """The Python file."""
    types = Types()
    top = types.struct(items(START)["Measurement"], "class Fields:", dicts=False)
    top = top.replace('"""\n', '"""\n\n    __slots__ = ()\n', 1)
    return "\n\n\n".join([HEAD.rstrip(), *(text for _, text in types.done.values()), top]) + "\n"


if __name__ == "__main__":
    OUT.write_text(made())
