"""``study`` and ``report``: papers' tables with ours beside, and everything as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import completion, paths
from ..progress import with_progress
from .options import Csv, Json, Parquet
from .output import OUR_FAULT, check, complain, emit, print_json, say


def study(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Which study. Default: all.", autocompletion=completion.studies)
    ] = "all",
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
    figures: Annotated[
        str | None, typer.Option("--figures", metavar="FOLDER", help="Draw the figures of the study there, as SVG.")
    ] = None,
) -> None:
    """Print a paper's tables with ours beside, and the ratio."""
    from .. import study as studies
    from ..study import text

    check(json, csv, parquet)
    chosen = [studies.find(n) for n in (studies.names() if name == "all" else [name])]
    if figures is not None:
        from .. import webreport

        paths.check_folder(Path(figures), "--figures")
        webreport.check_installed()
    results = studies.run(chosen, with_progress)
    if figures is not None:
        drawn = webreport.draw(results, Path(figures))
        for path in drawn:
            complain(f"drawn: {path}")
        if not drawn:
            complain(f"--figures {figures}: nothing drawn; no report.toml of these studies asks for bars or curves")
    document = studies.document(results)
    if not emit(document, studies.records(document), json, csv, parquet):
        text.show(results)
    for fault in (fault for result in results for fault in result.faults()):
        complain(f"{fault}\n{OUR_FAULT}")
    raise typer.Exit(1 if any(result.faults() for result in results) else 0)


def report_(
    out: Annotated[
        str | None,
        typer.Option(
            "-o", metavar="FILE", help="Write the page there. Default: report/index.html, in a folder made for it."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write everything measured as one HTML page: ciphers on all machines, and every study."""
    from .. import study as studies
    from .. import webreport

    page = Path("report/index.html" if out is None else out)
    if out is None:
        paths.check_folder(page.parent, "-o")
        page.parent.mkdir(exist_ok=True)
    written = webreport.write(page, [studies.find(n) for n in studies.names()], with_progress)
    if json:
        print_json(written.to_dict())
    else:
        say(written.sentence())
    for fault in written.faults:
        complain(f"{fault}\n{OUR_FAULT}")
    raise typer.Exit(1 if written.faults else 0)
