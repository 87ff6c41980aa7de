"""Benchmarks work; how fast anything is, is not for a test to say."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys

import pytest
from samples import ROOT

from ciphermill import engine, manifest

SPEED = ROOT / "benches" / "simulator" / "speed.py"


def test_the_simulators_benchmark():
    command = [sys.executable, str(SPEED), "--bytes", "4096", "--runs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    rows = [line.split() for line in done.stdout.splitlines()[2:-1]]
    assert [row[:2] for row in rows] == [[m, memory] for m in ("leon2", "rv32") for memory in ("ideal", "caches")]
    for machine, memory, instructions, cycles, best, median, goal in rows:
        caches = [f"memory.{cache}.enabled=true" for cache in ("icache", "dcache")] if memory == "caches" else []
        measured = engine.measure(engine.module(manifest.find("rc6")), machine, engine.Options(set=caches))
        assert (int(instructions), int(cycles)) == (measured.instructions, measured.cycles)
        assert float(best) >= float(median) > 0 and float(goal) in (150, 75)


def test_the_table_of_pipelined_loops():
    command = [sys.executable, str(ROOT / "benches" / "pipeline" / "loops.py"), "--on", "c64x", "--cipher", "rc6"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    row, *_ = csv.DictReader(done.stdout.splitlines(), delimiter="\t")
    measured = engine.measure(engine.module(manifest.find("rc6")), "c64x", engine.Options(bytes=4096, fresh=True))
    assert float(row["cycles_per_block"]) == round(measured.cycles_per_block, 1)
    assert (int(row["ii"]), int(row["stages"])) == (measured.loops[0]["ii"], measured.loops[0]["stages"])
    assert int(row["ii"]) >= max(int(row["res_mii"]), int(row["rec_mii"])) and float(row["seconds"]) > 0


def test_the_table_of_bounds():
    command = [sys.executable, str(ROOT / "benches" / "pipeline" / "bounds.py"), "--on", "c64x", "--cipher", "rc6"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    rows = list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))
    told = engine.explanation(engine.module(manifest.find("rc6")), "c64x", engine.Options(bytes=4096))
    assert [(row["block"], row["ii"], row["least"]) for row in rows] == [
        (str(loop["block"]), str(loop["ii"]), str(loop["least"])) for loop in told["loops"]
    ]
    assert [row["main"] for row in rows].count("yes") == 1
    assert all((row["optimal"] == "yes") == (row["ii"] == row["least"]) for row in rows)


def test_the_committed_table_of_bounds():
    """No bound in it is above its loop's interval, and each greatest one is one of its kinds."""
    with (ROOT / "benches" / "pipeline" / "bounds.tsv").open(newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    assert {row["machine"] for row in rows} == {"c6201", "c64x", "epic", "itanium2"}
    for row in rows:
        kinds = [int(row[kind]) for kind in ("resources", "circuit", "joint", "relaxation") if row[kind]]
        assert max(kinds) == int(row["least"]) == int(row[row["certificate"]]) <= int(row["ii"])
        assert (row["optimal"] == "yes") == (row["ii"] == row["least"])
        assert int(row["divided"]) <= int(row["ii"])


def test_llvm_mca_beside_silicon():
    if shutil.which("llvm-mca") is None:
        pytest.skip("not installed: llvm-mca")
    host = ROOT / "studies" / "silicon-zen5" / "hosts" / "epyc-turin-vm.toml"
    command = [
        sys.executable,
        str(ROOT / "benches" / "silicon" / "mca.py"),
        str(host),
        "--only",
        "rabbit-plain",
        "--cpu",
    ]
    done = subprocess.run([*command, "znver2"], capture_output=True, text=True, check=True, timeout=300)
    head, row, *errors = done.stdout.splitlines()
    name, silicon, mca, ratio, held_out = row.split("\t")
    assert head.split("\t")[0] == "program" and (name, held_out) == ("rabbit-plain-keystream-multi", "0")
    # Another processor's model: it is near, or it was not given the program.
    assert 0.5 < float(ratio) < 2 and float(ratio) == pytest.approx(float(mca) / float(silicon), abs=0.01)
    assert [line.split(":")[0] for line in errors] == ["# all", "# worked on"]
    refused = subprocess.run([*command, "znver99"], capture_output=True, text=True, check=False, timeout=300)
    assert refused.returncode == 1 and "name another with --tool or --cpu" in refused.stderr
