"""A report small enough for tests: a study of two ciphers, a start page of six
measurements, one loop. The tests in a browser use it too."""

from __future__ import annotations

from pathlib import Path

from ciphermill import study
from ciphermill.study import layout, measure, results

STUDY = """\
[study]
title = "A study <of> two"
paper = "P & Q"
settings = { on = "rv32", bytes = 64 }

[[table]]
name = "t"
title = "A table"
columns = [
  { key = "cycles", label = "speed", unit = "cycles", figure = "cycles", measure = "cycles_per_block", summary = true },
  { key = "size", label = "size", unit = "bytes", figure = "size", measure = "code_bytes" },
  { key = "rate", label = "rate", unit = "Mbit/s", formula = "rate", of = ["cycles"], constants = { bits = 128, mhz = 200 } },
  { key = "other", label = "elsewhere", unit = "cycles", figure = "other", quoted = true, measure = "cycles_per_block", settings = { on = "nowhere" } },
]
rows = [
  { key = "a", label = "First", figures = "t.a", settings = { cipher = "rc6" } },
  { key = "b", label = "Second", figures = "t.b", settings = { cipher = "present" } },
]
"""
FIGURES = """\
[t]
a = { cycles = 100, size = 900, other = 50 }
b = { cycles = 400, size = 500, other = 70 }
"""
REPORT = """\
agrees = "Much."
[[pareto]]
title = "Size against speed"
table = "t"
x = "size"
y = "cycles"
[[kernel]]
cipher = "rc6"
on = "rv32"
[[pipeline]]
cipher = "rc6"
on = "core2"
bytes = 256
count = 24
"""


def folder(root: Path, report: str = REPORT) -> Path:
    """Write the study below ``root`` and return its folder."""
    place = root / "studies" / "small"
    place.mkdir(parents=True, exist_ok=True)
    for name, text in (("figures", FIGURES), ("study", STUDY), ("report", report)):
        (place / f"{name}.toml").write_text(text)
    layout.load.cache_clear()
    return place


def content(root: Path, monkeypatch):
    """What the page is made of, measured here."""
    from ciphermill.webreport import commentary, kernels, page, pipelines

    place = folder(root)
    monkeypatch.setattr(study.paths, "STUDIES", place.parent)
    small = layout.load(place)
    common = {"key_bits": 128, "blocks": "multi", "bytes": 64}
    named = [
        {"cipher": cipher, "variant": variant, "on": machine, "direction": direction, **common}
        for cipher, variant, direction in (
            ("rc6", "plain", "encrypt"),
            ("present", "table", "encrypt"),
            ("rabbit", "plain", "keystream"),
        )
        for machine in ("rv32", "leon2")
    ]
    answers = dict(measure.measure_all([*small.work(), *named], lambda items, total: items))
    answers[measure.key(named[3])] = measure.Missing("out of order")
    comment = commentary.load(small)
    loops = [(asked, kernels.explain(asked)) for asked in (kernel.given() for kernel in comment.kernel)]
    traces = [(asked, pipelines.trace(asked)) for asked in (way.given() for way in comment.pipeline)]
    return page.Content(
        [(a, answers[measure.key(a)]) for a in named], [(results.solve(small, answers), comment)], loops, traces
    )
