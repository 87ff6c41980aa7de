"""The benchmark of the simulator works; how fast it is, is not for a test to say."""

from __future__ import annotations

import subprocess
import sys

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
