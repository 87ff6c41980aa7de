"""What mkdocs does besides: pages that are generated, and links out of the folder.

Pages: the commands with their help, the keys of machine files from their JSON schema,
the notebooks, the changelog. Links to files outside ``docs`` become the file's name, because the
site is read without the checkout beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import typer
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

#: ``[text](../somewhere)`` and images; titles after the address are not used here.
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    pages = {
        "reference/commands.md": commands(),
        "reference/schema.md": schema(),
        "reference/microbenchmarks.md": microbenchmarks(),
        "reference/changes.md": (ROOT / "CHANGELOG.md").read_text(),
    }
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = notebook(json.loads(path.read_text()))
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = (DOCS / page.file.src_uri).parent

    def mended(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or files.get_file_from_path(_within(here, target)):
            return match[0]
        path = (here / target).resolve()
        if path.exists() and not path.is_relative_to(DOCS):
            return f"{text} (`{path.relative_to(ROOT)}`)"
        return f"[{text}]({target}{anchor})"

    # Code is left alone: odd pieces between fences are.
    pieces = re.split(r"(^```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if i % 2 else LINK.sub(mended, piece) for i, piece in enumerate(pieces))


def _within(here: Path, target: str) -> str:
    path = (here / target).resolve()
    return path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else target


def notebook(content: dict[str, Any]) -> str:
    """A notebook's text and code, and what it shows, as it is kept."""
    parts = []
    for cell in content["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any]) -> str:
    """What a cell prints or shows: a picture, else HTML, else text."""
    data = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            # An empty line would end the block of HTML.
            return "<div>" + "".join(line for line in data[kind] if line.strip()) + "</div>"
    return f"```text\n{''.join(output.get('text') or data['text/plain'])}\n```"


def microbenchmarks() -> str:
    """Tiny loops on the out-of-order machines, beside published values."""
    from ciphermill import sheets

    return sheets.page()


def commands() -> str:
    """Every command with what ``--help`` says of it."""
    from ciphermill.cli import app

    group = typer.main.get_command(app)
    parts = [
        "# Commands\n\nThe same text as `ciphermill COMMAND --help`. Exit codes: 0 done and verified; 1 not verified, or worse "
        "than a baseline; 2 bad input, with one message that names the place and the mend."
    ]
    for name, command in group.commands.items():
        context = click.Context(command, info_name=f"ciphermill {name}", max_content_width=100, terminal_width=100)
        parts.append(f"## {name}\n\n```text\n{command.get_help(context).strip()}\n```")
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """Keys of machine and extension files, as tables."""
    from ciphermill import _core

    parts = [
        "# Machine files, key by key\n\nGenerated from the JSON schema that `ciphermill schema` prints. "
        "[Machine files](../machine-files.md) says what they are for. NAME stands for a name of your own."
    ]
    for kind, tree in json.loads(_core.machine_schema()).items():
        parts.append(f"## {kind} files\n\n| key | value | |\n|---|---|---|")
        parts[-1] += "".join(f"\n| `{key}` | {value} | {about} |" for key, value, about in keys(tree, ""))
    return "\n\n".join(parts) + "\n"


def keys(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Dotted paths of all keys below a part of the schema, with type and description."""
    named = dict(tree.get("properties", {}))
    if isinstance(extra := tree.get("additionalProperties"), dict):
        named["NAME"] = extra
    for name, value in named.items():
        if name == "source":
            continue
        path = f"{prefix}{name}"
        below = list(keys(value, f"{path}."))
        about = value.get("description", "").replace("|", "\\|").replace("\n", " ")
        if not below or about:
            yield path, kind(value), about
        yield from below


def kind(value: dict[str, Any]) -> str:
    """A value's type in words."""
    if "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if choices := value.get("anyOf") or value.get("oneOf"):
        return " or ".join(dict.fromkeys(kind(choice) for choice in choices))
    names = {"integer": "whole number", "object": "table", "array": "list", "boolean": "true or false"}
    of = value.get("type", "")
    if of == "array" and isinstance(value.get("items"), dict):
        return f"list of {kind(value['items'])}s".replace("true or falses", "true or false")
    return names.get(of, of)
