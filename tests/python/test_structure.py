"""No file needs itself by way of others: neither in a crate nor in the Python package."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
from pathlib import Path

import imports
import pytest
from samples import ROOT

from ciphermill import _core

#: Crates in which something still goes round. One whose files no longer do leaves the list.
NOT_YET = {"pipeline"}

CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/src"))


@pytest.mark.parametrize("crate", CRATES)
def test_no_file_of_a_crate_goes_round(crate):
    source = ROOT / "crates" / crate / "src"
    found = imports.told(imports.rust(source), source)
    if crate in NOT_YET:
        assert found, f"nothing goes round in {crate} any more: take it out of NOT_YET"
    else:
        assert found == [], f"crate {crate}: move what both need into a file below them"


def test_the_crates_that_are_not_done_are_there():
    assert set(CRATES) >= NOT_YET


def test_no_file_of_the_package_goes_round():
    source = ROOT / "python" / "ciphermill"
    found = imports.told(imports.python(source), source)
    assert found == [], "move what both need into a file below them"


def test_no_file_of_the_package_imports_what_the_package_hands_on():
    """`ciphermill/__init__.py` is for users: inside, a thing is imported from where it is."""
    source = ROOT / "python" / "ciphermill"
    graph = imports.python(source)
    front = source / "__init__.py"
    takers = {str(file.relative_to(source)): needed[front] for file, needed in graph.items() if front in needed}
    assert takers == {}


@pytest.fixture
def made(tmp_path):
    """A made-up tree from its files' texts, and what goes round there."""

    def make(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            path = tmp_path / "made" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        source: Path = tmp_path / "made"
        return imports.told((imports.rust if "lib.rs" in files else imports.python)(source), source)

    return make


#: `lib.rs` uses both, `low` nothing.
STRAIGHT = {
    "lib.rs": "mod low; mod high; pub use high::High; pub fn f() { low::g() }",
    "high.rs": "use crate::low::{self, Low as L};\npub struct High(L);",
    "low.rs": "pub struct Low; pub fn g() {}",
}


def test_a_tree_without_a_way_round(made):
    assert made(STRAIGHT) == []


@pytest.mark.parametrize(
    "line",
    [
        "use crate::high::High;",
        "use super::{high::{High}, low};",
        "fn h() -> crate::high::High { todo!() }",
        "use crate::high; fn h() -> high::High { todo!() }",
        "#[cfg(test)] mod tests { use super::*; fn f() { let x = [1; 2]; } } use super::high::High;",
        "const C: char = '\"'; use crate::high::High; const D: char = '\"';",
        "fn a<'a>(x: &'a str) {} fn h() -> crate::high::High { 'a'; todo!() }",
    ],
)
def test_a_way_round_in_rust_is_named(made, line):
    assert made({**STRAIGHT, "low.rs": f"{line} pub struct Low;"}) == [
        "high.rs takes Low from low.rs; low.rs takes High from high.rs"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "// use crate::high::High;",
        "/* use crate::high::High; */",
        'const S: &str = "use crate::high::High;";',
        'const S: &str = r#"a " use crate::high::High;"#;',
        "#[cfg(test)] mod tests { use crate::high::High; fn f() { if true { } } }",
        "#[cfg(test)]\nuse crate::high::High;",
        "#[cfg(all(test, unix))] fn f(x: [u8; 2]) -> crate::high::High { todo!() }",
        "use other::high::High; fn h() -> other::high::High { todo!() }",
    ],
)
def test_what_is_no_need_of_rust_code(made, line):
    assert made({**STRAIGHT, "low.rs": f"{line} pub struct Low;"}) == []


def test_the_shortest_way_round_of_each_knot(made):
    """Two knots: one of three files with a shorter way in it, one in a folder."""
    files = {
        "lib.rs": "mod a; mod b; mod c; mod d;",
        "a.rs": "use crate::b::B; pub struct A;",
        "b.rs": "use crate::c::C; pub struct B;",
        "c.rs": "use crate::{a::A, b::B}; pub struct C;",
        "d/mod.rs": "mod e; use e::E; pub struct D;",
        "d/e.rs": "use super::D; pub struct E;",
    }
    assert made(files) == [
        "b.rs takes C from c.rs; c.rs takes B from b.rs",
        "d/e.rs takes D from d/mod.rs; d/mod.rs takes E from d/e.rs",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "from .high import high",
        "from . import high",
        "import made.high",
        "def f():\n    from .high import high",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.high import high",
    ],
)
def test_a_way_round_in_python_is_named(made, line):
    files = {"__init__.py": "", "high.py": "from .low import low, lower", "low.py": line}
    taken = "*" if line.startswith("import") else "high"
    assert made(files) == [f"high.py takes low, lower from low.py; low.py takes {taken} from high.py"]


def test_a_package_is_run_before_what_is_in_it(made):
    files = {
        "__init__.py": "",
        "low.py": "from .pack.part import x",
        "pack/__init__.py": "from ..low import y",
        "pack/part.py": "",
    }
    assert made(files) == ["low.py takes * from pack/__init__.py; pack/__init__.py takes y from low.py"]
    assert made({"pack/__init__.py": "from .part import x"}) == []


def test_what_is_compiled_stands_by_its_stub(made):
    """`from . import _core` takes nothing from the package itself."""
    files = {"__init__.py": "from .high import high", "high.py": "from . import core", "core.pyi": ""}
    assert made(files) == []


def test_the_stub_is_of_the_core():
    """Every name, and the parameters of every function, with their defaults."""
    stub = ast.parse((ROOT / "python" / "ciphermill" / "_core.pyi").read_text())
    said = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    there = {name: value for name, value in vars(_core).items() if not name.startswith("__")}
    assert said.keys() == there.keys()
    for name, node in said.items():
        if isinstance(node, ast.ClassDef):
            assert [base.id for base in node.bases] == [base.__name__ for base in there[name].__bases__], name
        else:
            arguments = ast.unparse(node.args)
            real = inspect.signature(there[name]).parameters.values()
            assert [argument.arg for argument in node.args.args] == [parameter.name for parameter in real], arguments
            defaults = [parameter.default for parameter in real if parameter.default is not inspect.Parameter.empty]
            assert [ast.literal_eval(default) for default in node.args.defaults] == defaults, arguments


def test_the_core_is_compiled_once():
    """`make test-rust` takes the crates that `make build` has compiled: their features are the same in both."""
    if shutil.which("cargo") is None:
        pytest.skip("not installed: cargo")

    def features(*packages: str) -> dict[str, set[str]]:
        command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}"]
        done = subprocess.run([*command, *packages], capture_output=True, text=True, cwd=ROOT, check=True)
        found: dict[str, set[str]] = {}
        for line in done.stdout.splitlines():
            crate, _, enabled = line.removesuffix(" (*)").partition("|")
            found.setdefault(crate, set()).add(enabled)
        return found

    core, everything = features("--package", "ciphermill-python"), features("--workspace")
    assert all(everything[crate] <= core[crate] for crate in core)
    makefile = (ROOT / "Makefile").read_text()
    assert "cargo test --release --workspace" in makefile
    assert "maturin develop --release" in makefile
