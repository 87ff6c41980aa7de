"""The same C on this computer: what is believed, what is refused, what is shown."""

from __future__ import annotations

import json
import shutil

import pytest
from samples import XOR_CIPHER

from ciphermill import InputError, host
from ciphermill.host import callgrind, events, processor, text, toolchain

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc was not found")
needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind was not found")

CPUINFO = """\
processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model\t\t: {model}
model name\t: A processor
stepping\t: 2
flags\t\t: fpu tsc{flags}

processor\t: 1
vendor_id\t: Another
"""


def read(vendor, family, model, flags=""):
    return processor.parse(CPUINFO.format(vendor=vendor, family=family, model=model, flags=flags), "x86_64")


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name", "nearest"),
    [
        ("GenuineIntel", 6, 23, "Intel Core 2", "core2"),
        ("GenuineIntel", 6, 8, "Intel Pentium Pro, Pentium II or III", "pentiumpro"),
        ("GenuineIntel", 6, 207, "Intel Alder Lake, Sapphire Rapids or their successors (performance cores)", "zen5"),
        ("GenuineIntel", 19, 1, "an Intel x86 processor", "zen5"),
        ("AuthenticAMD", 26, 68, "AMD Zen 5", "zen5"),
        ("CentaurHauls", 6, 1, None, None),
    ],
)
def test_processors(vendor, family, model, name, nearest):
    found = read(vendor, family, model)
    about = found.to_dict(["core2", "leon2", "pentiumpro", "zen5"])
    assert (about["known_as"], about["nearest_machine"]) == (name, nearest)
    assert found.nearest(["leon2"]) is None
    assert not found.virtual and read(vendor, family, model, " hypervisor").virtual


def test_an_unknown_processor_is_described_as_far_as_it_goes():
    assert processor.parse("", "s390x").to_dict(["rv32"])["model"] == "s390x"
    assert processor.parse("", "riscv64").nearest(["leon2", "rv32"]) == "rv32"


def test_the_table_of_processors_is_well_formed():
    for entry in processor.table():
        assert entry["name"] and entry["vendor"] and entry["nearest"]
        for name, event in entry.get("events", {}).items():
            assert name in events.PAPER and 0 < event["raw"] < 0x10000
            assert event.get("exact", True) != bool(event.get("note")), f"{entry['name']}: {name}: near events say how"
    # A general entry comes after all particular ones of its vendor, or would hide them.
    general = {e["vendor"]: i for i, e in enumerate(processor.table()) if "family" not in e}
    assert all(i <= general.get(e["vendor"], i) for i, e in enumerate(processor.table()))


def test_no_group_needs_more_counters_than_there_are():
    for entry in processor.table():
        groups = events.groups(processor.Processor("", "", None, None, None, False, entry))
        assert all(len(group) <= events.TOGETHER for group in groups)
        counted = {name for group in groups for name in group}
        assert set(entry.get("events", {})) <= counted
        assert all("cycles" in group for group in groups[2:])


def test_metrics_by_the_paper_s_formulas():
    core2 = read("GenuineIntel", 6, 23)
    counts = {
        "cycles": 500.0, "instructions": 1000.0, "branches": 100.0, "branch-misses": 5.0, "L1D_REPL": 20.0,
        "L2_LINES_IN.BOTH_CORES.ANY": 1.0, "RESOURCE_STALLS.BR_MISS_CLEAR": 50.0, "RS_UOPS_DISPATCHED": 1200.0,
        "UOPS_RETIRED.ANY": 900.0, "UOPS_RETIRED.FUSED": 100.0,
    }  # fmt: skip
    named = events.named(counts, core2)
    assert named["BR_INST_RETIRED.MISPRED"] == {"value": 5.0, "exact": True, "note": ""}
    assert "L1I_MISSES" not in named
    metrics = events.metrics(named)
    assert metrics == pytest.approx({
        "cpi": 0.5, "ilp": 2.4, "l1d_hit": 0.98, "l2_hit": 0.999, "branch_ratio": 0.1, "prediction_rate": 0.95,
        "mispredict_ratio": 0.005, "stall_ratio": 0.1, "wasted_work": 0.2, "branch_mpki": 5.0,
    })  # fmt: skip


def test_no_metric_without_its_events():
    assert events.metrics({}) == {}
    skylake = read("GenuineIntel", 6, 94)
    named = events.named({"cycles": 10.0, "RS_UOPS_DISPATCHED": 20.0, "UOPS_RETIRED.ANY": 18.0}, skylake)
    assert set(events.metrics(named)) == {"ilp"}
    assert named["RS_UOPS_DISPATCHED"]["exact"] is False


def test_refused_shared_and_absent_counters():
    def count(value, running=10):
        return {"value": value, "enabled": 10, "running": running}

    groups = [
        {"cycles": {}, "instructions": {}},
        {"cycles": {}, "L1D_REPL": {}},
        {"cycles": {}, "UOPS_RETIRED.ANY": {}},
    ]
    refusal = {"code": 2, "message": "no such file or directory"}
    readings = [
        {"counts": [{"Ok": [count(40), count(20), count(60)]}, {"Ok": [count(None, 0)] * 3}]},
        {"counts": [{"Ok": [count(999)] * 3}, {"Ok": [count(8, 5)] * 3}]},
        {"refused": refusal},
    ]
    counts, refused, shared = host.counted(readings, groups, 2)
    assert counts == {"cycles": 20.0, "L1D_REPL": 4.0}
    assert shared == ["L1D_REPL"]
    assert set(refused) == {"instructions", "UOPS_RETIRED.ANY"}
    assert "never let it count" in refused["instructions"]["message"]
    none = host.counters([{"refused": dict.fromkeys(("cycles", "instructions"), refusal), "events": {}}])
    assert none["available"] is False and "virtual machines" in none["why"]
    forbidden = host.counters([{"refused": {"cycles": {"code": 13, "message": ""}}, "events": {}}])
    assert "perf_event_paranoid" in forbidden["why"]
    assert host.counters([{"refused": {}, "events": {"cycles": {}}}])["available"] is True


def test_a_spread_that_is_worth_a_warning():
    steady = host.summary([100.0, 101.0, 99.0, 100.0])
    assert steady["median"] == 100.0 and steady["spread"] < 0.05 and steady["least"] == 99.0
    row = {"time_ns": host.summary([100.0, 150.0, 200.0, 120.0]), "multiplexed": ["cycles"]}
    said = host.unstable(row, {"clock_hz": [3e9, 2e9]}, 7)
    assert [
        word for word in ("samples spans", "interrupted 7", "clock moved", "shared") if not any(word in s for s in said)
    ] == []
    assert host.unstable({"time_ns": steady, "multiplexed": []}, {"clock_hz": [3e9, 2.95e9]}, 0) == []


@needs_gcc
def test_a_cipher_on_this_computer(cli, xor_cipher):
    answer = cli("host", xor_cipher, "--cc", "gcc", "--repeat", "3", "--bytes", "1000", "--json")
    assert answer.code == 0, answer
    document = json.loads(answer.out)
    assert [row["flags"] for row in document["rows"]] == ["-O2", "-O3", "-O3 -march=native"]
    assert document["bytes"] == 1008 and document["processor"]["model"]
    for row in document["rows"]:
        assert row["verified"] and row["vectors"] == 0
        assert (
            row["time_ns"]["low"] <= row["time_ns"]["median"] <= row["time_ns"]["high"]
            and row["time_ns"]["samples"] == 3
        )
        assert row["time_ns_per_byte"] == pytest.approx(row["time_ns"]["median"] / 1008)
        # No counter, no number: cycles are there exactly when the event is.
        assert ("cycles" in row) == ("cycles" in row["events"])
    assert document["counters"]["available"] or document["counters"]["why"]


@needs_gcc
@pytest.mark.parametrize(
    ("cipher", "options"),
    [
        ("rabbit", ()),
        ("rijndael", ("--direction", "decrypt", "--key-bits", "256", "--blocks", "single")),
        ("rijndael", ("--direction", "keysetup")),
    ],
)
def test_official_vectors_come_first(cli, cipher, options):
    answer = cli("host", cipher, "--cc", "gcc", "--repeat", "3", "--bytes", "512", *options)
    assert answer.code == 0, answer
    first, *_ = answer.out.splitlines()
    assert first.startswith(f"{cipher}/") and " ns a " in first
    assert answer.out.count("vectors") == 3 and "yes, 0" not in answer.out
    assert "Counted:" in answer.out or "No hardware counters here: " in answer.out


WRONG = XOR_CIPHER.replace("out[i] = in[i] ^ ctx->key[i]", "out[i] = in[i] ^ ctx->key[i] ^ NATIVE")
CASES = {
    "wrong": ("#ifdef __wasm__\n#define NATIVE 0\n#else\n#define NATIVE 1\n#endif\n", "differs from the reference"),
    "crash": (
        "#ifdef __wasm__\n#define NATIVE 0\n#else\n#define NATIVE (*(volatile int *)8)\n#endif\n",
        "ended with signal 11",
    ),
}  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("case", CASES)
def test_code_that_is_wrong_has_no_figures(cli, write, case):
    macro, said = CASES[case]
    answer = cli("host", write("mine.c", macro + WRONG), "--cc", "gcc", "--repeat", "3", "--json")
    assert answer.code == 1
    assert said in answer.err
    for row in json.loads(answer.out)["rows"]:
        assert row["verified"] is False and said in row["failure"]
        assert not [name for name in row if name.startswith(("time", "tsc", "cycles", "estimated", "mbit", "events"))]


@needs_gcc
@needs_valgrind
def test_callgrind_counts_the_call_and_nothing_else(xor_cipher, monkeypatch):
    monkeypatch.setattr(toolchain, "PORTABLE", (("-O2",),))

    def instructions(length):
        document = host.run(str(xor_cipher), None, host.Options(cc="gcc", engine="callgrind", bytes=length))
        return [row["instructions"] for row in document["rows"]]

    one, two, four = instructions(1024), instructions(2048), instructions(4096)
    assert one == instructions(1024)
    # So many for each block and a few around them, and nothing of the program's start.
    assert [c - b for b, c in zip(two, four, strict=True)] == [2 * (b - a) for a, b in zip(one, two, strict=True)]
    assert all(0 <= 2 * a - b < 100 for a, b in zip(one, two, strict=True))


def test_what_callgrind_wrote():
    assert callgrind.total("events: Ir\nfn=(1)\n\nsummary: 123\n\ntotals: 123\n") == 123
    with pytest.raises(InputError, match="no total"):
        callgrind.total("events: Ir\n")


def test_bad_input(refused, write):
    assert "one of perf, callgrind" in refused("host", "rc6", "--engine", "guess")
    assert "--repeat 1" in refused("host", "rc6", "--repeat", "1")
    assert "--bytes 0" in refused("host", "rc6", "--bytes", "0")
    assert "rc6 has encrypt and decrypt and keysetup" in refused("host", "rc6", "--direction", "keystream")
    assert "no such program" in refused("host", "rc6", "--cc", "no-such-compiler")
    assert "no variant" in refused("host", "rc6", "--variant", "none")


def test_the_clang_that_comes_along_makes_portable_code():
    zig = toolchain.compilers("zig")[0]
    assert zig.baseline == ("-mcpu=baseline",) and "clang" in zig.name
    assert ("-O3", "-march=native") not in toolchain.PORTABLE


def test_text_without_any_figure():
    row = {"compiler": "gcc", "flags": "-O2", "verified": False, "failure": "it crashed"}
    document = {
        "cipher": "x", "variant": "y", "direction": "encrypt", "key_bits": 128, "engine": "perf", "rows": [row],
        "processor": {"model": "P", "nearest_machine": "core2"}, "warnings": [],
        "counters": {"available": False, "why": "there are none", "events": [], "refused": {}},
    }  # fmt: skip
    said = text.text(document)
    assert said.startswith("x/y encrypt, 128-bit key on this computer (P): no figure")
    assert "gcc -O2: NOT VERIFIED: it crashed" in said
    assert said.endswith("The nearest simulated machine is core2: ciphermill run x --on core2.")


@needs_gcc
def test_code_that_never_ends(write, monkeypatch):
    endless = '#ifdef __wasm__\n#define NATIVE 0\n#else\n#define NATIVE 0; for (;;) __asm__ volatile("")\n#endif\n'
    monkeypatch.setattr(host, "PATIENCE", 1)
    monkeypatch.setattr(toolchain, "SETTINGS", (("-O2",),))
    document = host.run(str(write("mine.c", endless + WRONG)), None, host.Options(cc="gcc", repeat=3))
    assert [row["failure"] for row in document["rows"]] == ["the native code had not ended after 1 seconds"]
