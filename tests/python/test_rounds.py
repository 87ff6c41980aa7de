"""What goes round loops through memory, and whether loops are software-pipelined: as data and in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ciphermill import engine, manifest, report
from ciphermill import explaining as explain
from ciphermill.measurement import Measurement
from ciphermill.webreport import evidence

RC4 = str(Path(__file__).parent / "foreign" / "rc4.c")

BRANCHY = """\
#include "ciphermill.h"
struct cm_ctx { uint32_t key[4]; };
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n) { for (uint32_t i = 0; i < 4; i++) c->key[i] = key[4 * i] + n; }
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t x = cm_load32_le(in), y = cm_load32_le(in + 4), i;
    for (i = 0; i < 40; i++) {
        x += c->key[i & 3] ^ (y << 4);
        if (x & 1) { uint32_t n = y & 15; while (n--) { x = x * 5 + 1; out[n & 7] = (uint8_t)x; } }
        y ^= x;
    }
    cm_store32_le(out, x);
    cm_store32_le(out + 4, y);
}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { cm_encrypt(c, in, out); }
CM_BLOCK_CIPHER(8)
"""


def run(cli, *words: str) -> dict:
    answer = cli("run", *words, "--json")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)["measurements"][0]


def test_a_circuit_through_memory_is_in_the_bound(cli):
    """RC4: what one pass stores to s[j] the next may load as s[i + 1], and once in 256 passes it does."""
    m = run(cli, RC4, "--on", "c6201", "--jam", "1")
    bounds = m["bounds"]
    assert bounds["resource"] < bounds["recurrence"] == bounds["lower"] <= m["cycles_per_block"]
    (way, *_) = bounds["rounds"]
    # A load of 5 cycles, the sum, at the least its address, and a cycle to be in memory.
    assert way["cycles"] >= 8 * way["passes"] and way["cycles_per_block"] == pytest.approx(
        way["cycles"] / way["passes"]
    )
    assert way["accesses"] and all(a["passes"] >= 0 and a["store"].lstrip().startswith("st") for a in way["accesses"])
    assert all("ld" in a["load"] and a["store_at"] and a["load_at"] for a in way["accesses"])
    # The code generator knows less than the run shows.
    (kernel,) = [loop for loop in m["loops"] if loop["rec_mii"] > 1 and loop["function"] == way["function"]]
    assert bounds["recurrence"] <= kernel["rec_mii"] <= kernel["ii"] and kernel["block"] == way["block"]
    assert sum(step["cycles"] for step in kernel["round"]) == kernel["rec_mii"] * sum(
        step["iterations"] for step in kernel["round"]
    )
    assert any(step["memory"] for step in kernel["round"])


def test_explain_tells_what_goes_round_and_what_is_assumed(cli):
    answer = cli("explain", RC4, "--on", "c6201", "--jam", "1")
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    assert (
        "It is software-pipelined: an iteration begins every 14 cycles (II), in 2 stages" in text and "(RecMII)" in text
    )
    assert "RecMII goes through memory: accesses that cannot be told apart keep their order" in text
    assert "its recurrence circuits, through memory too, need" in text
    assert "Seen to meet in memory" in text and "rc4.c:17" in text
    assert "Kept in order because they cannot be told apart" in text
    assert max(map(len, answer.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("cipher", "machine"),
    [
        ("rc6", "c6201"),
        ("present", "c64x"),
        ("rc6", "epic"),
        ("rijndael", "itanium2"),
        ("rabbit", "leon2"),
        (RC4, "rv32"),
        (RC4, "c64x"),
        (RC4, "epic"),
    ],
)
def test_no_bound_is_above_the_measurement_and_every_loop_is_told_of(cli, cipher, machine):
    document = json.loads(cli("explain", cipher, "--on", machine, "--json").out)
    m = document["measurement"]
    assert m["bounds"]["lower"] <= m["cycles_per_block"] * (1 + 1e-12)
    explicit = machine not in ("leon2", "rv32", "core2")
    for s in document["stretches"]:
        assert s["recurrence"] <= s["cycles"], s["why"]
        if s["looped"]:
            pipelined = any((loop["function"], [loop["block"]]) == (s["function"], s["blocks"]) for loop in m["loops"])
            assert s["pipelining"].startswith(
                "It is software-pipelined" if pipelined else "It is not software-pipelined, because"
            ), s
            assert explicit or "because the machine takes instructions one after the other" in s["pipelining"]
    assert all(loop["block"] < 2**31 for loop in m["loops"])
    words = {"machine", "level", "size", "calls", "inner_loop", "blocks", "form", "no_schedule"}
    assert {loop["reason"] for loop in m["loops_not_pipelined"]} <= words
    assert explicit or {loop["reason"] for loop in m["loops_not_pipelined"]} <= {"machine"}


def test_why_a_loop_is_not_pipelined(cli, write):
    source = write("branchy.c", BRANCHY)
    m = run(cli, source, "--on", "c6201", "--no-unroll")
    reasons = {loop["reason"]: loop["why"] for loop in m["loops_not_pipelined"]}
    assert reasons["inner_loop"] == "another loop stands in it" and all(m["loops_not_pipelined"][0]["blocks"])
    text = " ".join(cli("explain", source, "--on", "c6201", "--no-unroll").out.split())
    assert "It is not software-pipelined, because another loop stands in it." in text


def test_machines_that_order_for_themselves_say_so_once(cli):
    text = " ".join(cli("explain", "rc6", "--on", "core2").out.split())
    assert (
        text.count("Its loops are not software-pipelined, because the machine takes instructions one after the other")
        == 1
    )


def test_a_critical_path_that_there_is_not_is_not_printed():
    m = engine.measure(engine.module(manifest.find("rc6")), "rv32", engine.Options(bytes=64)).to_dict()
    without = Measurement({**m, "bounds": {**m["bounds"], "critical_path": 0.0}})
    for said in (report.details, explain.bounds):
        assert "critical path" in said(Measurement(m)) and "critical path" not in said(without)
    assert "critical_path" not in evidence.of({"cipher": "rc6", "on": "rv32"}, without)["bounds"]
