"""How fast the simulator is: simulated instructions per second on one core.

    .venv/bin/python benches/simulator/speed.py

encrypts 4 MB with RC6, compiled from its C source as `ciphermill run` does, on
the simulated `leon2` and `rv32`: with ideal memory, and with both caches
enabled. Only the simulation is timed; compiling, key set-up, and the reference
interpreter, whose comparison every measurement goes through, are not (they are
in `crates/measure/src/speed.rs`). One instruction in eleven of RC6 is a load;
ciphers with tables have more, and are slower to simulate: see --cipher.

`cargo bench -p ciphermill-sim` times a hand-written program on a toy machine
instead, without any compiler in between.

The goals are for a core of a current desktop computer that does nothing else:
150 million instructions per second with ideal memory, half of that with
caches; 50 million on a core that schedules at run time, whose machine file
says what caches it has, and of which a message as long as this is sampled where
it does not come back to its states. --check makes missing one the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tomllib
from dataclasses import replace

from ciphermill import _core, engine, manifest

#: Bytes of message.
MESSAGE = 1 << 22

CACHES = ("memory.icache.enabled=true", "memory.dcache.enabled=true")

#: Million instructions per second, by name of the memory.
GOALS = {"ideal": 150.0, "caches": 75.0}

#: The same on a core that schedules at run time.
GOALS_AT_RUN_TIME = {"own": 50.0}


def timed(module: engine.Module, machine: str, memory: str, length: int, runs: int) -> dict:
    """The core's answer: instructions and cycles of a run, and the seconds of each."""
    options = engine.Options(bytes=length, set=CACHES if memory == "caches" else ())
    options.check()
    return json.loads(_core.speed(module.wasm, engine.request(module, machine, options), runs))


def machine_text(module: engine.Module, machine: str) -> str:
    """The machine's own file."""
    return json.loads(engine.request(module, machine, engine.Options()))["machine"]["file"]["text"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulated instructions per second, on one core.")
    parser.add_argument("--cipher", default="rc6", help="another cipher than rc6")
    parser.add_argument("--variant", help="and which of its variants")
    parser.add_argument("--on", action="append", metavar="MACHINE", help="default: leon2 and rv32")
    parser.add_argument("--bytes", type=int, default=MESSAGE, help=f"length of the message (default: {MESSAGE})")
    parser.add_argument("--runs", type=int, default=5, help="default: 5; the best and the median count")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    chosen = parser.parse_args()
    if chosen.runs < 1:
        parser.error("--runs: one or more")

    module = engine.module(manifest.find(chosen.cipher), chosen.variant)
    # Official vectors vouch for the module, not for the time it takes.
    module = replace(module, cipher=replace(module.cipher, vectors=()))
    print(f"{module.cipher.name}/{module.variant.name}, {chosen.bytes} bytes, {chosen.runs} runs")
    print(f"{'machine':10}{'memory':10}{'instructions':>14}{'cycles':>14}{'best':>10}{'median':>10}{'goal':>8}")
    missed = False
    for machine in chosen.on or ("leon2", "rv32"):
        at_run_time = "core" in tomllib.loads(machine_text(module, machine))
        for memory, goal in (GOALS_AT_RUN_TIME if at_run_time else GOALS).items():
            answer = timed(module, machine, memory, chosen.bytes, chosen.runs)
            rates = [answer["instructions"] / seconds / 1e6 for seconds in answer["seconds"]]
            best = max(rates)
            missed |= best < goal
            print(
                f"{machine:10}{memory:10}{answer['instructions']:14}{answer['cycles']:14}"
                f"{best:10.1f}{statistics.median(rates):10.1f}{goal:8.0f}",
                flush=True,
            )
    print("best, median and goal in million simulated instructions per second")
    return 1 if chosen.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
