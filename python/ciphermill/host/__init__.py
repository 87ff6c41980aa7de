"""The same C on this computer, under its own counters.

``ciphermill host NAME`` compiles a cipher natively, checks the official vectors and
the output of the call that will be timed, and only then measures it: time, the
time-stamp counter, an estimate of the clock, and the events of Linux perf where the
kernel gives them, under their generic names and those of the paper whose Table 2 the
out-of-order machines count as well.

    processor.py   which processor this is; the machine of ours nearest to it
    toolchain.py   gcc and clang, and what they make of the C
    child.py       the process that runs foreign code
    vectors.py     official vectors on native code
    events.py      names of events, and the metrics made of them
    callgrind.py   the other engine: instruction counts that depend on no machine
    text.py        the answer for people

The counters themselves are read by the crate ``host``.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _core, engine, library, manifest, scratch
from .._core import InputError
from ..compile import ONE_WAY
from ..progress import Progress
from . import callgrind, events, processor, toolchain
from .vectors import Wrong

ENGINES = ("perf", "callgrind")

#: Seconds after which native code is taken to go on for ever.
PATIENCE = 600

#: Above this part of the median the spread is worth a warning.
UNSTABLE = 0.05


@dataclass(frozen=True)
class Options:
    """What is measured natively, and how often."""

    direction: str | None = None
    key_bits: int | None = None
    blocks: str | None = None
    bytes: int = 16384
    repeat: int = 51
    #: Short beside the time slice that other processes take, so that most samples are undisturbed.
    sample_ms: float = 0.3
    cc: str | None = None
    engine: str = "perf"

    def check(self) -> None:
        engine.Options(direction=self.direction, blocks=self.blocks).check()
        if self.engine not in ENGINES:
            raise InputError(f"--engine {self.engine}: it is one of {', '.join(ENGINES)}")
        if not 3 <= self.repeat <= 10000:
            raise InputError(f"--repeat {self.repeat}: a median and a spread need from 3 to 10000 samples")
        if not 1 <= self.bytes <= 1 << 26:
            raise InputError(f"--bytes {self.bytes}: from 1 byte to 64 MiB")
        if self.engine == "callgrind":
            callgrind.available()


def run(
    name: str, variant: str | None, options: Options, progress: Progress = lambda items, total: items
) -> dict[str, Any]:
    """Everything there is to say, as ``--json`` prints it."""
    options.check()
    module = engine.module(manifest.find(name), variant)
    if module.variant.sources[0].suffix == ".wasm":
        raise InputError(f"{name}: a WebAssembly module has no C to compile natively; give the C file or the manifest")
    work = Work(module, options)
    here = processor.this()
    settings = toolchain.PORTABLE if options.engine == "callgrind" else toolchain.SETTINGS
    wanted = [(c, s) for c in toolchain.compilers(options.cc) for s in settings]
    rows = list(progress((work.row(compiler, flags, here) for compiler, flags in wanted), len(wanted)))
    return {
        "schema": 1,
        "cipher": module.cipher.name,
        "variant": module.variant.name,
        "direction": work.direction,
        "key_bits": work.key_bits,
        "bytes": work.bytes,
        "block_bytes": work.block_bytes,
        "blocks": options.blocks or "multi",
        "engine": options.engine,
        "processor": here.to_dict(library.machine_names()),
        "counters": counters(rows) if options.engine == "perf" else None,
        "rows": rows,
        "warnings": surroundings() if options.engine == "perf" else [],
    }


#: What the native driver can call.
KINDS = ("block", "stream")


class Work:
    """One cipher in one mode: the bytes, the calls, and what must come out."""

    def __init__(self, module: engine.Module, options: Options) -> None:
        cipher = module.cipher
        if module.kind not in KINDS:
            raise InputError(
                f"host: {cipher.name}/{module.variant.name} is of kind {module.kind}, and natively only {' and '.join(KINDS)} ciphers "
                "are measured so far; ciphermill silicon runs the simulated program of any kind"
            )
        self.module, self.options = module, options
        self.key_bits = options.key_bits or engine.default_key_bits(cipher)
        cipher.check_key_bits(self.key_bits)
        about = module.interface
        stream = module.kind == "stream"
        self.block_bytes = cipher.block_bytes or about["block_bytes"]
        self.direction = options.direction or ("keystream" if stream else module.directions[0])
        setup = ("keysetup",) if "cm_keysetup" in about["exports"] else ()
        allowed = ("keystream", "keysetup") if stream else (*module.directions, *setup)
        if self.direction not in allowed:
            raise InputError(f"--direction {self.direction}: {cipher.name} has {' and '.join(allowed)}")
        feedback = options.blocks == "single" and self.direction in ("encrypt", "decrypt")
        count = math.ceil(options.bytes / self.block_bytes)
        key, iv = buffer("key", self.key_bits // 8), buffer("iv", engine.iv_bytes(module) if stream else 0)
        message = buffer("message", self.block_bytes * (1 if feedback else count))
        self.bytes = 0 if self.direction == "keysetup" else self.block_bytes * count
        self.job: dict[str, Any] = {
            "mode": "keysetup" if self.direction == "keysetup" else "message",
            "setup": "cm_keysetup_decrypt" if self.direction == "decrypt" else "cm_keysetup",
            "ivsetup": "cm_ivsetup" if stream else None,
            "driver": "cm_keystream" if stream else f"cm_{'decrypt' if self.direction == 'decrypt' else 'encrypt'}_"
            + ("feedback" if feedback else "blocks"),
            "key": key.hex(), "iv": iv.hex(), "message": message.hex(),
            "count": len(message) if stream else count,
        }  # fmt: skip
        #: The C as it is, without the drivers of a direction that it does not have.
        one_way = (
            ()
            if stream
            else tuple(flag for name, flag in ONE_WAY.items() if name.removeprefix("cm_") not in module.directions)
        )
        self.variant = replace(module.variant, flags=(*module.variant.flags, *one_way))
        self.expected = self._expected(stream, feedback, key, iv, message, count)

    def _expected(self, stream: bool, feedback: bool, key: bytes, iv: bytes, message: bytes, count: int) -> str | None:
        """The output by the reference interpreter; None for a key set-up, whose context nobody has specified."""
        if self.direction == "keysetup":
            return None
        wasm, decrypt = self.module.wasm, self.direction == "decrypt"
        if stream:
            made = _core.keystream(wasm, key, iv, len(message))
            return bytes(a ^ b for a, b in zip(message, made, strict=True)).hex()
        if not feedback:
            return _core.crypt(wasm, key, message, decrypt).hex()
        for _ in range(count):
            message = _core.crypt(wasm, key, message, decrypt)
        return message.hex()

    def row(self, compiler: toolchain.Compiler, settings: tuple[str, ...], here: processor.Processor) -> dict[str, Any]:
        """One compiler with one setting. Never raises for wrong code: the row says so."""
        row: dict[str, Any] = {"compiler": compiler.name, "version": compiler.version, "flags": " ".join(settings)}
        with scratch.folder() as folder:
            built = toolchain.build(compiler, settings, self.variant, Path(folder) / "cipher.so")
            try:
                seen = self.observed(built, events.groups(here) if self.options.engine == "perf" else None)
                row |= {"verified": True, "failure": None, "vectors": seen["vectors"]}
                if self.options.engine == "callgrind":
                    counted = callgrind.count(compiler, settings, self.variant, self.job, self.expected)
                    return row | {"instructions": counted} | self.per("instructions", counted)
            except Wrong as error:
                return row | {"verified": False, "failure": str(error)}
        return row | self.figures(seen, here)

    def observed(self, built: Path, groups: list[dict[str, dict[str, Any]]] | None) -> dict[str, Any]:
        """What the child process saw; without groups it only checks. Raises Wrong when it refused or crashed."""
        job = self.job | {
            "library": str(built), "groups": [list(group.values()) for group in groups or []],
            "samples": self.options.repeat, "sample_ns": int(self.options.sample_ms * 1e6),
        }  # fmt: skip
        check = {
            "files": [library.read(path) for path in self.module.cipher.vectors],
            "variant": self.module.variant.name, "direction": self.direction, "key_bits": self.key_bits,
        }  # fmt: skip
        request = json.dumps({"job": job, "check": check, "expected": self.expected, "timed": groups is not None})
        command = [sys.executable, "-m", "ciphermill.host.child"]
        try:
            done = subprocess.run(command, input=request, capture_output=True, text=True, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the native code had not ended after {PATIENCE} seconds") from None
        if done.returncode:
            why = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
            said = done.stderr.strip().splitlines()
            raise Wrong(f"the native code ended with {why}{': ' + said[-1] if said else ''}")
        answer: dict[str, Any] = json.loads(done.stdout)
        if "wrong" in answer:
            raise Wrong(answer["wrong"])
        return answer

    def per(self, name: str, value: float) -> dict[str, float]:
        """A figure of one call per block and byte; of a key set-up, per set-up."""
        if self.direction == "keysetup":
            return {f"{name}_per_keysetup": value}
        return {f"{name}_per_block": value * self.block_bytes / self.bytes, f"{name}_per_byte": value / self.bytes}

    def figures(self, answer: dict[str, Any], here: processor.Processor) -> dict[str, Any]:
        """Medians and spreads of what was seen, for one call."""
        seen = answer["seen"]
        calls = seen["calls"]
        time = summary([sample["ns"] / calls for sample in seen["samples"]])
        row: dict[str, Any] = {"time_ns": time} | self.per("time_ns", time["median"])
        if seen["tsc_hz"] is not None:
            ticks = summary([sample["tsc"] / calls for sample in seen["samples"]])
            row |= {"tsc_hz": seen["tsc_hz"], "tsc_cycles": ticks} | self.per("tsc_cycles", ticks["median"])
        if seen["clock_hz"]:
            # The best estimate is the fastest: whatever disturbs the chain makes it slower.
            clock = max(seen["clock_hz"])
            row |= {"estimated_clock_hz": clock} | self.per("estimated_cycles", time["median"] * clock / 1e9)
        if self.bytes:
            row["mbit_per_s"] = 8e3 * self.bytes / time["median"]
        counts, refused, shared = counted(seen["groups"], events.groups(here), calls)
        row["events"] = {name: e | self.per("value", e["value"]) for name, e in events.named(counts, here).items()}
        row["metrics"] = events.metrics(row["events"])
        if "cycles" in counts:
            row |= {"cycles": counts["cycles"]} | self.per("cycles", counts["cycles"])
        row["refused"], row["multiplexed"] = refused, shared
        row["warnings"] = unstable(row, seen, answer["preempted"])
        return row


def counted(
    readings: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]], calls: int
) -> tuple[dict[str, float], dict[str, dict[str, Any]], list[str]]:
    """Medians of one call by event, what was refused, and what shared a counter."""
    counts: dict[str, float] = {}
    refused: dict[str, dict[str, Any]] = {}
    shared: list[str] = []
    for reading, group in zip(readings, groups, strict=True):
        if "refused" in reading:
            refused |= dict.fromkeys(group, reading["refused"])
            continue
        for name, answer in zip(group, reading["counts"], strict=True):
            if "Err" in answer:
                refused[name] = answer["Err"]
                continue
            values = [count["value"] / calls for count in answer["Ok"] if count["value"] is not None]
            if not values:
                refused[name] = {"code": None, "message": "the kernel never let it count"}
                continue
            # Cycles are in every group; the first group's belong to the instructions.
            counts.setdefault(name, statistics.median(values))
            if any(count["running"] < count["enabled"] for count in answer["Ok"]) and name not in shared:
                shared.append(name)
    return counts, {name: why for name, why in refused.items() if name not in counts}, shared


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles, least, and the spread: the middle half over the median."""
    middle = statistics.median(values)
    low, high = (
        (statistics.quantiles(values, n=4)[0], statistics.quantiles(values, n=4)[2])
        if len(values) > 1
        else (middle,) * 2
    )
    return {
        "median": middle, "low": low, "high": high, "least": min(values), "samples": len(values),
        "spread": (high - low) / middle if middle else 0.0,
    }  # fmt: skip


def unstable(row: dict[str, Any], seen: dict[str, Any], preempted: int) -> list[str]:
    """What speaks against believing the figures to the last digit."""
    found = []
    if row["time_ns"]["spread"] > UNSTABLE:
        found.append(f"the middle half of the samples spans {100 * row['time_ns']['spread']:.0f} % of the median")
    if preempted > row["time_ns"]["samples"]:
        found.append(f"the process was interrupted {preempted} times for others")
    clocks = seen["clock_hz"]
    if clocks and max(clocks) > (1 + UNSTABLE) * min(clocks):
        found.append(f"the clock moved, from {clocks[0] / 1e9:.2f} to {clocks[-1] / 1e9:.2f} GHz")
    if row["multiplexed"]:
        found.append(f"counters were shared, and scaled to the whole time: {', '.join(row['multiplexed'])}")
    return found


def counters(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Whether there were counters, and in one line why not."""
    refused = {name: why for row in rows for name, why in row.get("refused", {}).items()}
    given = sorted({name for row in rows for name in row.get("events", {})})
    if any(name in given for name in ("cycles", "instructions")):
        return {"available": True, "events": given, "refused": refused, "why": None}
    why = next((events.refused(r["code"], r["message"]) for r in refused.values()), "nothing could be measured")
    return {"available": False, "events": given, "refused": refused, "why": why}


def surroundings() -> list[str]:
    """What around the measurement disturbs it."""
    found = []
    try:
        governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
        if governor != "performance":
            found.append(f"the clock's governor is {governor!r}; with 'performance' the clock moves less")
    except OSError:
        pass
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.75 * cores:
        found.append(f"{load:.1f} processes want to run on {cores} cores; figures are of a busy computer")
    return found


def buffer(name: str, length: int) -> bytes:
    """The bytes that ``ciphermill run`` puts into the buffer of that name: SplitMix64 from its FNV-1a hash."""
    mask = 2**64 - 1
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & mask
    out = bytearray()
    while len(out) < length:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out[:length])


def records(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each compiler and setting, with what was asked."""
    about = {k: document[k] for k in ("cipher", "variant", "direction", "key_bits", "bytes", "blocks", "engine")}
    return [about | {"processor": document["processor"]["model"]} | row for row in document["rows"]]


__all__ = ["Options", "records", "run"]
