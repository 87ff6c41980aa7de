"""Sweeps: grids, the store that survives kill -9, tables, and a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from samples import XOR_CIPHER

import ciphermill as cm
from ciphermill.declared import Source
from ciphermill.sweeps import grid as grids
from ciphermill.sweeps import load, monotone, run, work
from ciphermill.sweeps.store import Store

# Points of a tenth of a second each: enough to kill a sweep among them.
SLOW = """
[[grid]]
cipher = ["rijndael", "mars", "twofish"]
on = "epic"
blocks = "single"
unroll = true
with = ["addr-indirect", "addr-scaled"]
set = { "issue.width" = [1, 2, 4, 8] }
"""
QUICK = {"grid": {"cipher": ["rijndael", "rc6"], "on": "rv32", "bytes": 256, "set": {"timings.load.latency": [1, 4]}}}


def points(text: str) -> tuple:
    import tomllib

    return grids.parse(Source("test", tomllib.loads(text)), None).points


def test_a_grid_is_the_product_of_its_axes():
    got = points(
        '[[grid]]\ncipher = ["a", "b"]\non = "m"\nwith = ["x", ["x", "y"], []]\n'
        'set = { "issue.width" = [1, 2] }\nskip = [{ cipher = "b", with = "x" }, { cipher = "a", set = { "issue.width" = 2 } }]'
    )
    found = [(p["cipher"], p["with"], p["set"]["issue.width"]) for p in got]
    assert found == [
        ("a", ["x"], 1), ("a", ["x", "y"], 1), ("a", [], 1),
        ("b", ["x", "y"], 1), ("b", ["x", "y"], 2), ("b", [], 1), ("b", [], 2),
    ]  # fmt: skip


def test_a_point_of_two_grids_counts_once():
    one = '[[grid]]\ncipher = "a"\non = "m"\nset = { "issue.width" = [1, 2] }\n'
    assert len(points(one + one.replace("[1, 2]", "[2, 3]"))) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[grid]\non = 'rv32'", "g.toml:1: grid.cipher: missing; add it (a string or a list)"),
        (
            "[grid]\ncipher = 'rc6'\non = 'rv32'\nblock = 'multi'",
            "g.toml:4: grid.block: unknown key (did you mean 'blocks'?)",
        ),
        (
            "[grid]\ncipher = 'rc6'\non = 'rv32'\nbytes = '64'",
            "g.toml:4: grid.bytes: is '64', must be a whole number or a list",
        ),
        (
            "[grid]\ncipher = 'rc6'\non = 'rv32'\njam = true",
            "g.toml:4: grid.jam: is true, must be a whole number or a list",
        ),
        (
            "[grid]\ncipher = 'rc6'\non = 'rv32'\nset = 4",
            "g.toml:4: grid.set: is 4, must be a table; it goes from paths to values",
        ),
        (
            "[grid]\ncipher = 'rc6'\non = 'rv32'\nwith = []",
            "g.toml:4: grid.with: is an empty list; an axis has one value or more",
        ),
        (
            "[sweep]\nstore = 3\n[grid]\ncipher = 'rc6'\non = 'rv32'",
            "g.toml:2: sweep.store: is 3, must be a string; it is the name of a file",
        ),
        ("", "g.toml: grid: missing; add it (a table or a list); there is at least one [[grid]]"),
        ("[grid", "not TOML"),
    ],
)
def test_a_wrong_grid_is_refused_at_its_place(cli, tmp_path, text, says):
    (tmp_path / "g.toml").write_text(text)
    answer = cli("sweep", "g.toml")
    assert answer.code == 2 and says in answer.err and "g.toml" in answer.err
    assert "Traceback" not in answer.err


def test_the_command_measures_keeps_and_tabulates(cli, tmp_path):
    (tmp_path / "g.toml").write_text('[grid]\ncipher = "rc6"\non = ["rv32", "leon2"]\nbytes = 256\n')
    first = cli("sweep", "g.toml", "--parquet", "t.parquet")
    assert first.code == 0 and first.out.startswith("2 points, 2 measured now, 0 without a measurement; from "), (
        first.err
    )
    second = cli("sweep", "g.toml", "--json")
    assert second.code == 0
    assert [m["machine"] for m in json.loads(second.out)["measurements"]] == ["rv32", "leon2"]
    assert cli("sweep", "g.toml").out.startswith("2 points, 0 measured now")
    polars = pytest.importorskip("polars")
    table = polars.read_parquet(tmp_path / "t.parquet")
    assert table["cycles_per_block"].to_list() == [
        m["cycles_per_block"] for m in json.loads(second.out)["measurements"]
    ]
    rows = cli("sweep", "g.toml", "--csv")
    assert polars.read_csv(rows.out.encode()).columns == table.columns, rows.err


def test_a_point_that_cannot_be_measured_says_why_and_takes_no_other_with_it(cli, tmp_path):
    (tmp_path / "g.toml").write_text('[grid]\ncipher = "rc6"\non = ["rv32", "leon2"]\nbytes = 256\nwith = "zba"\n')
    answer = cli("sweep", "g.toml")
    assert answer.code == 2 and "zba" in answer.err and "2 points, 2 measured now, 1 without" in answer.out
    assert "0 measured now, 1 without" in cli("sweep", "g.toml").out


def test_a_point_that_reached_its_limit_is_tried_again_with_another(cli, tmp_path):
    (tmp_path / "quick.c").write_text(XOR_CIPHER)
    (tmp_path / "slow.c").write_text(
        XOR_CIPHER.replace("{ for (int i", "{ for (volatile int j = 0; j < 1000; j++); for (int i")
    )
    (tmp_path / "g.toml").write_text('[[grid]]\ncipher = ["quick.c", "slow.c"]\non = "rv32"\nbytes = 64\n')
    short = cli("sweep", "g.toml", "--limit", 5000, "--csv")
    assert short.code == 2 and "the limit of 5,000 steps" in short.err, short
    assert cli("sweep", "g.toml").code == 2, "without a limit a failure that is kept stays one"
    longer = cli("sweep", "g.toml", "--limit", 10_000_000)
    assert longer.code == 0 and "the limit" not in longer.err, longer
    assert cli("sweep", "g.toml").code == 0


def test_from_python_as_a_frame():
    polars = pytest.importorskip("polars")
    done = cm.sweep(QUICK)
    table = done.to_polars()
    assert table.height == 4 and table["verified"].all()
    wide = table.pivot(on="timings.load.latency", index="cipher", values="cycles_per_block")
    alone = [
        cm.run(c, on="rv32", bytes=256, set={"timings.load.latency": 4}).cycles_per_block for c in ("rijndael", "rc6")
    ]
    assert wide.columns == ["cipher", "1", "4"] and wide["4"].to_list() == alone
    assert table.filter(polars.col("cipher") == "rijndael")["metrics.lookup_share"].min() > 0.3


def made(**cycles: tuple[float, float]) -> list[dict]:
    """Rows of a grid of widths (w) and ports (p), as w2p1=(cycles, bound)."""
    return [
        {
            "cipher": "c",
            "issue.width": int(name[1]),
            "units.mem": int(name[3]),
            "failure": None,
            "cycles_per_block": c,
            "bounds.lower": b,
        }
        for name, (c, b) in cycles.items()
    ]


def test_a_point_that_is_slower_with_more_is_found():
    rows = made(w1p1=(100, 90), w2p1=(60, 50), w4p1=(63, 40), w1p2=(100, 90), w2p2=(50, 50), w4p2=(50, 40))
    found = monotone(rows, ["issue.width", "units.mem"])
    assert found.compared == 7 and not found.below and len(found.violations) == 1
    (v,) = found.violations
    assert (v.axis, v.less, v.cycles, v.fewer, v.settings["units.mem"]) == ("issue.width", 2, 63, 60, 1)
    assert v.excess == pytest.approx(0.05) and v.gap == pytest.approx(0.575) and not found.beyond
    assert "w" not in str(found).split() and "issue.width=2 (5.00 % more; 57.5 % above its bound)" in str(found)
    assert not monotone(rows, ["units.mem"]).violations
    # The best of those with less counts, not the neighbour.
    assert [v.less for v in monotone(made(w1p1=(10, 9), w2p1=(12, 9), w4p1=(11, 9)), ["issue.width"]).violations] == [
        1,
        1,
    ]


def test_a_point_below_its_bound_and_one_beyond_its_gap_are_found():
    found = monotone(made(w1p1=(100, 90), w2p1=(110, 109), w4p1=(39, 40)), ["issue.width"])
    assert [p["issue.width"] for p in found.below] == [4]
    assert [v.settings["issue.width"] for v in found.beyond] == [2]


def test_a_grid_is_checked_from_the_command_line(cli, tmp_path):
    (tmp_path / "g.toml").write_text(
        '[grid]\ncipher = "rc6"\non = "rv32"\nbytes = 256\nset = { "timings.load.latency" = [1, 60] }\n'
    )
    answer = cli("sweep", "g.toml", "--monotone", "timings.load.latency")
    # A longer latency is no resource: more of it is slower, here by less than the gap.
    assert "1 comparisons with less, 1 of them slower with more" in answer.out, answer.err
    wrong = cli("sweep", "g.toml", "--monotone", "issue.width")
    assert wrong.code == 2 and "issue.width: not a setting of these points; there are cipher, on, bytes" in wrong.err


def test_the_key_knows_what_matters_and_nothing_else(tmp_path, monkeypatch):
    def key(**changes) -> str:
        settings = {"cipher": "rc6", "on": "rv32"} | changes
        return work.prepare(load({"grid": settings}))[0].key

    assert key() == key()
    others = [
        key(bytes=512),
        key(blocks="single"),
        key(on="clapp"),
        key(**{"with": ["zba"]}),
        key(set={"clock_mhz": 5}),
    ]
    assert len({key(), *others}) == 6
    # A machine file that inherits has its parent in its key; a neighbour is not.
    file = tmp_path / "mine.toml"
    file.write_text('[machine]\nname = "mine"\ntitle = "mine"\ninherits = "rv32"\n')
    before = key(on=str(file))
    (tmp_path / "other.toml").write_text('[machine]\nname = "other"\n')
    from ciphermill import library

    library.folder.cache_clear()
    assert key(on=str(file)) == before
    file.write_text('[machine]\nname = "mine"\ntitle = "mine"\ninherits = "clapp"\n')
    library.folder.cache_clear()
    assert key(on=str(file)) != before


def test_a_store_of_another_layout_is_refused(tmp_path):
    Store(tmp_path / "s").close()
    db = sqlite3.connect(tmp_path / "s")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(cm.InputError, match="layout 99"):
        Store(tmp_path / "s")
    (tmp_path / "text").write_text("not a database, long enough to be read as one " * 50)
    with pytest.raises(cm.InputError, match="not a store"):
        Store(tmp_path / "text")


def kept(path) -> dict[str, float]:
    """Keys in a store and the seconds each took; a new connection sees what was committed."""
    db = sqlite3.connect(path)
    try:
        return dict(db.execute("SELECT key, seconds FROM measurements"))
    except sqlite3.OperationalError:
        return {}
    finally:
        db.close()


def test_killed_in_the_middle_and_started_again(tmp_path):
    grid = tmp_path / "g.toml"
    grid.write_text(SLOW)
    store = tmp_path / "g.sqlite"
    command = [sys.executable, "-m", "ciphermill", "sweep", str(grid)]
    victim = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while (not store.exists() or len(kept(store)) < 3) and time.monotonic() < end:
        assert victim.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    before = kept(store)
    assert 3 <= len(before) < 24
    done = run(grid)
    after = kept(store)
    assert len(after) == 24 and done.measured == 24 - len(before)
    # What was there was not measured again: not even its time has changed.
    assert {key: after[key] for key in before} == before
    assert all(m is not None and m.verified for _, m in done)
    assert run(grid).measured == 0


def test_a_cluster_that_loses_a_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    grid = load({"grid": {"cipher": ["rijndael", "rc6"], "on": "epic", "blocks": "single", "unroll": True,
                          "set": {"issue.width": [1, 2, 3, 4, 5, 6]}}})  # fmt: skip
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None)
    try:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 3
        killed = []

        def progress(answers, total):
            for answer in answers:
                if not killed:
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])
                yield answer

        done = run(grid, store=tmp_path / "s.sqlite", cluster=cluster.scheduler_address, progress=progress)
    finally:
        cluster.close()
    assert killed and len(done) == 12 and done.measured == 12 and not done.failures
    here = run(grid)
    assert [m.to_dict() for m in done.measurements] == [m.to_dict() for m in here.measurements]


def test_a_local_cluster_leaves_nothing_behind(cli, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "g.toml").write_text('[[grid]]\ncipher = ["rc6", "rabbit"]\non = "rv32"\nbytes = 64\n')
    (tmp_path / "temporary").mkdir()
    done = cli("sweep", "g.toml", "--cluster", "local", "--workers", 2, TMPDIR=str(tmp_path / "temporary"))
    assert done.code == 0, done
    assert list((tmp_path / "temporary").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"g.toml", "g.sqlite", "temporary"}


def test_a_cluster_that_is_not_there(cli, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "g.toml").write_text('[grid]\ncipher = "rc6"\non = "rv32"\n')
    answer = cli("sweep", "g.toml", "--cluster", "nonsense://here")
    assert answer.code == 2 and "--cluster nonsense://here" in answer.err and "Traceback" not in answer.err
