"""The promises to programs outside: keys, codes, and what a number means."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import forms
import pytest

import ciphermill as cm
from ciphermill import engine, library, manifest

KEYS = {
    "cipher", "variant", "direction", "key_bits", "bytes", "machine", "with", "without", "set", "clock_mhz",
    "blocks", "jam", "unroll", "verified", "cycles", "cycles_per_block", "steady", "cycles_per_byte", "mbit_per_s",
    "ns_per_byte", "nj_per_byte", "sizes", "instructions", "uops", "cpi", "ilp", "events", "metrics", "bounds", "loops", "bottleneck", "why",
    "code_bytes", "table_bytes", "stack_bytes", "provenance",
}  # fmt: skip
METRICS = {
    "l1d_hit", "l2_hit", "branch_ratio", "prediction_rate", "mispredict_ratio", "stall_ratio", "wasted_work",
    "lookup_share",
}  # fmt: skip
BOTTLENECKS = {"units", "dependences", "registers", "branches", "memory", "frontend"}

MACHINES = cm.machines().names
#: Each machine measures one in so many of all variants there are, a different part each,
#: so that everything is measured on some machines in every run: what one variant's directions
#: and key sizes have in common is compiled once. All of it on all of them takes an hour:
#: CIPHERMILL_EVERYTHING=1.
SHARE = 1 if os.environ.get("CIPHERMILL_EVERYTHING") else 8


def everything():
    """For every variant of every primitive, its directions, key sizes and block modes."""
    for name in manifest.names():
        for variant in manifest.find(name).variants:
            cipher = manifest.find(name).of(variant)
            if cipher.kind not in ("block", "stream"):
                # Its key sizes, and what else it does, share nearly all of the code.
                module = engine.module(cipher, variant)
                direction = engine.default_direction(module)
                yield [
                    (
                        cipher,
                        variant,
                        engine.usual_key_bits(module),
                        direction,
                        engine.default_blocks(module, direction),
                    )
                ]
                continue
            directions = ["keystream"] if cipher.kind == "stream" else ["encrypt", "decrypt"]
            measured = []
            for key_bits in cipher.key_bits:
                measured.append((cipher, variant, key_bits, "keysetup", "multi"))
                measured += [(cipher, variant, key_bits, direction, "multi") for direction in directions]
                if cipher.kind == "block":
                    measured.append((cipher, variant, key_bits, "encrypt", "single"))
            yield measured


def fraction(name: str, value: float, wrong_path: float) -> bool:
    """Is it between 0 and 1? Misses per thousand instructions are no fractions. By
    the paper's formulas wasted work can be a little below 0 (a compare and its branch
    count as two micro-operations retired and one dispatched), and so can a hit rate,
    which is one minus misses an *instruction*, where a run is a few instructions long. There
    what was wasted can also be more than what was of use, as its part of the whole says."""
    if name.endswith("_mpki"):
        return value >= 0
    if name.endswith("_hit"):
        return value <= 1
    if name == "wasted_work":
        return -0.25 <= value <= max(1, wrong_path / (1 - wrong_path) + 1e-9)
    return 0 <= value <= 1


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_is_verified_and_within_its_bounds(machine):
    """Of the variants one in `forms.SHARE` as the fastest of several forms, the others in one form."""

    def check(work, measure):
        cipher, variant, key_bits, direction, blocks = work
        # Rounds as loops: the search for the best form has a test of its own.
        options = engine.Options(
            direction=direction, key_bits=key_bits or None, blocks=blocks,
            bytes=1024 if cipher.kind in ("block", "stream") and direction != "keysetup" else None,
            jam=1, unroll=False,
        )  # fmt: skip
        try:
            m = measure(engine.module(cipher, variant), machine, options)
        except Exception as error:  # Shown with all the others, below.
            # A small memory has no room for some.
            if isinstance(error, cm.InputError) and library.ram(machine) is not None:
                return None
            return f"{cipher.name}/{variant} {direction} {key_bits} {blocks}: {error}"
        if not m.verified:
            return f"{cipher.name}/{variant} {direction} {key_bits} {blocks}: {m.failure}"
        consistent = (
            0 < m.bounds["lower"] <= m.cycles_per_block
            and m.bounds["lower"] == max(m.bounds["resource"], m.bounds["recurrence"])
            and sum(m.breakdown.values()) == m.cycles
            and m.bottleneck in BOTTLENECKS
            and m.cycles_per_byte == pytest.approx(m.cycles_per_block / m.block_bytes)
            and m.mbit_per_s == pytest.approx(8 * m.clock_mhz / m.cycles_per_byte)
            and m.ns_per_byte == pytest.approx(8000 / m.mbit_per_s)
            and takes(m)
            and m.cpi == pytest.approx(m.cycles / m.instructions)
            and all(
                value is None or fraction(name, value, m.metrics.get("wrong_path_share") or 0)
                for name, value in m.metrics.items()
            )
        )
        return None if consistent else f"{cipher.name}/{variant} {direction}: inconsistent: {m.to_dict()}"

    def check_all(number, works):
        measure = engine.measure if forms.usual(MACHINES.index(machine) // SHARE, number) else forms.measure
        return [fault for work in works if (fault := check(work, measure))]

    mine = list(everything())[MACHINES.index(machine) % SHARE :: SHARE]
    with ThreadPoolExecutor() as pool:
        faults = [fault for found in pool.map(check_all, range(len(mine)), mine) for fault in found]
    assert not faults, "\n".join(faults)


def takes(m):
    """Each direction is said once; of the one measured the same as of itself, and no less stack than was touched."""
    of = {each["direction"]: each for each in m.sizes}
    own = of[m.direction]
    return (
        len(of) == len(m.sizes)
        and (own["code_bytes"], own["table_bytes"]) == (m.code_bytes, m.table_bytes)
        and all(0 < each["code_bytes"] <= m.code_bytes_total for each in m.sizes)
        and sum(frame["bytes"] for frame in own["stack"]) >= m.stack_bytes
    )


def test_the_best_form_is_no_worse_than_the_plain_one():
    plain = cm.run("rijndael", on="c6201", jam=1, unroll=False)
    best = cm.run("rijndael", on="c6201")
    assert best.verified and best.cycles_per_block < plain.cycles_per_block
    assert best.unroll == 9 and plain.unroll == 1
    fixed = cm.run("rc6", on="c64x", jam=2)
    assert (fixed.jam, fixed.verified) == (2, True)
    # Two blocks a pass: its II, and the cycles that cross paths made it wait.
    passes = fixed.bytes / 16 / 2
    stalls = round(fixed.breakdown["cross"] / passes)
    assert any(fixed.cycles_per_block * 2 == loop["ii"] + stalls for loop in fixed.loops)


def test_json_document(cli):
    answer = cli("run", "rijndael", "--on", "leon2", "--json")
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert document["schema"] == 1
    (m,) = document["measurements"]
    assert m.keys() >= KEYS
    assert m["metrics"].keys() >= METRICS
    assert {"resource", "recurrence", "critical_path", "lower"} <= m["bounds"].keys()
    assert (m["cipher"], m["variant"], m["direction"], m["key_bits"]) == ("rijndael", "ttable", "encrypt", 128)
    assert (m["machine"], m["blocks"], m["jam"], m["bytes"]) == ("leon2", "multi", 1, 4096)
    assert m["verified"] is True
    assert m["table_bytes"] >= 4096 and m["code_bytes"] > 0
    assert m["metrics"]["lookup_share"] > 0.2
    assert m["provenance"]["kind"] == "simulated"
    assert m["provenance"]["vectors"] > 100
    assert len(m["provenance"]["module"]) == len(m["provenance"]["machine"]) == 64


def test_the_same_twice(cli):
    arguments = ("run", "salsa20", "--json", "--on", "rv32,leon2")
    assert cli(*arguments).out == cli(*arguments).out


def test_repeat_measures_twice(cli):
    assert cli("run", "rc6", "--on", "rv32", "--repeat", "--exact", "--jam", "1").code == 0


def test_feedback_mode_has_the_whole_cipher_as_recurrence():
    single = cm.run("rc6", on="rv32", blocks="single")
    multi = cm.run("rc6", on="rv32", blocks="multi")
    assert single.bounds["recurrence"] > 100 > multi.bounds["recurrence"]
    # A feedback mode cannot be faster than its own chain of dependences.
    assert single.cycles_per_block >= single.bounds["recurrence"]


def test_cycles_per_block_is_a_slope():
    small, large = (cm.run("rijndael", on="rv32", bytes=n) for n in (4096, 8192))
    assert (large.cycles - small.cycles) / 256 == pytest.approx(large.cycles_per_block)
    assert small.cycles > small.cycles_per_block * 256  # The call itself costs something.


def test_the_steady_state_has_no_first_passes():
    # HC-128 has code for each of its two tables, which take 2 KB of keystream in turn.
    runs = [cm.run("hc128", on="zen5", bytes=n) for n in (2048, 4096, 16384)]
    assert all(m.verified and m.steady["settled"] for m in runs)
    assert max(m.cycles_per_block for m in runs) < 1.01 * min(m.cycles_per_block for m in runs)
    assert all(m.cycles > 1.05 * m.cycles_per_block * m.bytes / m.block_bytes for m in runs)
    for m in runs:
        assert m.steady["longer"] >= 8192 and m.steady["shorter"] * 2 == m.steady["longer"]


def test_the_first_key_setup_is_not_the_steady_one():
    cold = cm.run("rijndael", on="zen5", direction="keysetup")
    assert cold.steady["settled"] and cold.steady["calls_before"] >= 2
    assert (cold.steady["shorter"], cold.steady["longer"]) == (0, 16)
    assert cold.bounds["lower"] <= cold.cycles_per_block < 0.5 * cold.cycles


def test_few_blocks_have_the_steady_state_of_many():
    one, many = (cm.run("rijndael", on="core2", bytes=n) for n in (16, 4096))
    assert one.cycles_per_block == pytest.approx(many.cycles_per_block, rel=0.01)


def test_one_block():
    m = cm.run("rijndael", on="rv32", bytes=16)
    assert m.bytes == 16 and m.verified and m.cycles > m.cycles_per_block > 0


def test_key_setup_is_one_call():
    m = cm.run("rijndael", on="leon2", direction="keysetup", key_bits=256)
    assert (m.bytes, m.block_bytes, m.cycles) == (32, 32, m.cycles_per_block)


def test_a_stream_of_any_length():
    m = cm.run("salsa20", on="rv32", bytes=100)
    assert m.bytes == 100 and m.verified and m.direction == "keystream"


def test_settings_change_the_machine():
    plain = cm.run("rc6", on="leon2")
    fast = cm.run("rc6", on="leon2", set={"machine.clock_mhz": 200})
    slow_stores = cm.run("rijndael", on="leon2", set=["timings.store.issue_cycles=9"])
    assert fast.mbit_per_s == pytest.approx(2 * plain.mbit_per_s)
    assert fast.set == ["machine.clock_mhz=200"]
    assert slow_stores.cycles > cm.run("rijndael", on="leon2").cycles
    assert plain.provenance["machine"] != fast.provenance["machine"]


def test_a_byte_takes_time_and_energy():
    plain = cm.run("rc6", on="rv32")
    assert plain.ns_per_byte == pytest.approx(plain.cycles_per_byte / 100 * 1000) and plain.clock_mhz == 100
    assert plain.nj_per_byte is None
    # 20 mW are 20 pJ a nanosecond.
    told = cm.run("rc6", on="rv32", set={"machine.power_mw": 20, "machine.clock_mhz": 50})
    assert told.nj_per_byte == pytest.approx(0.02 * told.ns_per_byte)
    assert told.ns_per_byte == pytest.approx(2 * plain.ns_per_byte)


def test_each_direction_takes_what_it_takes_alone():
    m = cm.run("rijndael", on="rv32", variant="compact", unroll=False)
    assert [each["direction"] for each in m.sizes] == ["encrypt", "decrypt", "keysetup"]
    for each in m.sizes:
        alone = cm.run("rijndael", on="rv32", variant="compact", direction=each["direction"], unroll=False)
        assert (each["code_bytes"], each["table_bytes"]) == (alone.code_bytes, alone.table_bytes)
        # On this machine frames are all of the stack, and these functions call the same each time.
        assert sum(frame["bytes"] for frame in each["stack"]) == alone.stack_bytes


def test_extensions_change_the_code():
    plain = cm.run("rc6", on="rv32")
    rotates = cm.run("rc6", on="rv32", with_="zbb")
    without = cm.run("rc6", on="rv32", with_=["zbb"], without=["zbb"])
    assert rotates.cycles_per_block < 0.9 * plain.cycles_per_block
    assert rotates["with"] == ["zbb"]
    assert without.cycles == plain.cycles


def test_a_cache_costs_cycles_and_counts_hits():
    m = cm.run("rijndael", on="leon2", set=["memory.dcache.enabled=true"])
    assert m.verified and 0 < m.metrics["l1d_hit"] < 1
    assert m.breakdown["dcache"] > 0


@pytest.mark.parametrize("what", ["ciphers", "machines", "extensions", "studies"])
def test_lists(cli, what):
    entries = json.loads(cli("list", what, "--json").out)
    assert entries and all(entry["name"] for entry in entries)
    assert [entry["name"] for entry in entries] == getattr(cm, what)().names


def test_asm(cli, tmp_path):
    printed = cli("asm", "rijndael", "--on", "leon2")
    written = cli("asm", "rijndael", "--on", "leon2", "-o", "out.s")
    assert printed.code == written.code == 0 and written.out == ""
    assert (tmp_path / "out.s").read_text() == printed.out
    for name in ("cm_keysetup", "cm_encrypt_blocks", "cm_decrypt_feedback"):
        assert f"{name}:" in printed.out


@pytest.mark.parametrize(("cipher", "variant"), [("twofish", "full-keying"), ("hc128", None), ("mars", None)])
def test_lookups_are_counted_alike_whatever_the_word(cipher, variant):
    """Tables that are constants and tables that the program makes."""

    def lookups(machine: str) -> float:
        m = cm.run(cipher, on=machine, variant=variant)
        return m.metrics["lookup_share"] * m.instructions

    assert lookups("rv64") == pytest.approx(lookups("rv32"), rel=0.01)
    assert lookups("rv64") > 0
