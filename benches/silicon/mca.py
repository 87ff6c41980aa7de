"""llvm-mca on the programs of a host's file, beside silicon.

    .venv/bin/python benches/silicon/mca.py studies/silicon-zen5/hosts/epyc-turin-vm.toml --cpu znver5

It needs an llvm-mca that knows the processor (LLVM 16 for znver4, 19 for znver5); it is no part of ciphermill. What it
is given are the instructions that the simulator ran in the middle of the message, in their order and without calls
and returns, of which it would have to guess: `--instructions` of them, which it takes for a loop's body. It knows neither
caches nor guesses, and that loads and stores meet only where the registers tell. Printed is a row for each program, cycles
a block by llvm-mca beside those measured, and the errors over all, held out and not.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ciphermill import engine, manifest
from ciphermill.silicon import record, summary

#: Passes over the body: cycles are the slope between the two.
FEW, MANY = 2, 6
#: Instructions of which llvm-mca says that it does not know what they do.
LEFT_OUT = re.compile(r"(call|ret|jmp \*)")


def instructions(settings: record.Settings, machine: str, count: int) -> list[str]:
    """So many instructions from the middle of a message, as the assembler has them."""
    module = engine.module(manifest.find(settings.cipher), settings.variant)
    asked = engine.Options(direction=settings.direction, blocks=settings.blocks, trace={"first": None, "count": count})
    seen: dict[int, str] = {}
    for micro_op in engine.measure(module, machine, asked)["pipeline"]:
        if not micro_op["squashed"]:
            seen.setdefault(micro_op["instruction"], micro_op["text"])
    texts = [part.strip() for text in seen.values() for part in text.split(" + ")]
    return [text for text in texts if not LEFT_OUT.match(text)]


def cycles(tool: str, cpu: str, body: list[str], passes: int) -> int:
    command = [
        tool,
        "-mtriple=x86_64",
        f"-mcpu={cpu}",
        f"-iterations={passes}",
        "-instruction-info=0",
        "-resource-pressure=0",
    ]
    done = subprocess.run(command, input="\n".join(body) + "\n", capture_output=True, text=True, check=False)
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if done.returncode or found is None or "not a recognized processor" in done.stderr:
        sys.exit(f"mca.py: {tool} -mcpu={cpu}: {(done.stderr or 'no cycles in its answer').strip().splitlines()[0]}; "
                 "name another with --tool or --cpu")  # fmt: skip
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", type=Path, help="a file that `ciphermill silicon --into` wrote")
    parser.add_argument("--cpu", required=True, help="the processor, as LLVM calls it: znver4, znver5")
    parser.add_argument("--tool", default="llvm-mca", help="the program")
    parser.add_argument("--instructions", type=int, default=4000, help="of each program")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    arguments = parser.parse_args()
    if shutil.which(arguments.tool) is None:
        sys.exit(f"mca.py: no program {arguments.tool} on the PATH; it comes with LLVM, and is looked for by --tool")
    host = record.read(arguments.host)
    rows = []
    print("program\tsilicon_cycles\tmca_cycles\tratio\theld_out")
    for name, entry in host.programs.items():
        if arguments.only not in name:
            continue
        body = instructions(entry.settings, host.host.machine, arguments.instructions)
        few, many = (cycles(arguments.tool, arguments.cpu, body, n) for n in (FEW, MANY))
        a_block = (many - few) / (MANY - FEW) / len(body) * entry.instructions
        rows.append({"program": name, "ratio": a_block / entry.cycles, "held_out": entry.held_out})
        print(
            f"{name}\t{entry.cycles:.1f}\t{a_block:.1f}\t{a_block / entry.cycles:.3f}\t{int(entry.held_out)}",
            flush=True,
        )
    found = summary.of(rows)
    for what, errors in (("all", found), ("worked on", found["others"]), ("held out", found["held_out"])):
        if errors["programs"]:
            print(f"# {what}: {errors['programs']} programs, geometric mean {errors['geomean']:.3f}, mean absolute error "
                  f"{100 * errors['mean_absolute_error']:.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
