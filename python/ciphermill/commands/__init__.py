"""The commands, one function each, as the command line calls them.

    options.py    options that several of them share
    output.py     JSON, CSV, Parquet, complaints, exit codes
    measuring.py  run
    programs.py   explain, asm
    pipelines.py  trace
    sheets.py     sheet
    serving.py    serve
    catalogue.py  list, show, schema
    papers.py     study, report
    sweeping.py   sweep
    sources.py    new, audit
    hardware.py   rtl, discover
    tuning.py     tune
    native.py     host
    silicon.py    silicon

What only one command needs is imported inside it: start-up is part of every run. At
the top of a file stands what every run imports in any case.
"""

from __future__ import annotations

from collections.abc import Callable

from . import (
    catalogue,
    hardware,
    measuring,
    native,
    papers,
    pipelines,
    programs,
    serving,
    sheets,
    silicon,
    sources,
    sweeping,
    tuning,
)

#: In the order in which ``ciphermill --help`` names them.
ALL: dict[str, Callable[..., None]] = {
    "run": measuring.run,
    "explain": programs.explain,
    "trace": pipelines.trace,
    "asm": programs.asm,
    "show": catalogue.show,
    "list": catalogue.list_,
    "study": papers.study,
    "report": papers.report_,
    "sweep": sweeping.sweep,
    "new": sources.new,
    "audit": sources.audit,
    "rtl": hardware.rtl,
    "host": native.host,
    "silicon": silicon.silicon,
    "discover": hardware.discover,
    "tune": tuning.tune,
    "sheet": sheets.sheet,
    "serve": serving.serve,
    "schema": catalogue.schema,
}
