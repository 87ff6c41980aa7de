"""Where the cycles go: the hottest loop, cycle by cycle."""

from __future__ import annotations

import json
import re

import pytest

from ciphermill import engine, manifest
from ciphermill import explaining as explain


@pytest.fixture(scope="module")
def c6201():
    module = engine.module(manifest.find("rijndael"))
    return engine.explanation(module, "c6201", engine.Options(bytes=256))


def test_a_kernel_obeys_its_machine(c6201):
    hottest = c6201["stretches"][0]
    assert hottest["looped"] and 0.1 < hottest["share"] <= 1
    units = {u["unit"]: u for u in hottest["units"]}
    assert {"d1", "d2", "s1", "s2", "t1", "t2"} <= units.keys()
    assert units["t1"]["path"] and not units["d1"]["path"] and units["d2"]["cluster"] == 2
    lines = hottest["instructions"]
    for name, unit in units.items():
        places = [line["cycle"] for line in lines if line["unit"] == name or name in line["paths"]]
        assert len(places) == unit["cycles"] and max(places) < hottest["cycles"]
        assert len(places) == len({*places})  # One instruction a cycle.
    # Sixteen lookups a round, each with the cycles of its load before its use.
    assert sum(line["role"] == "lookup" for line in lines) >= 32
    for line in (line for line in lines if line["waits"] == "operand"):
        producer = lines[line["producer"]]
        latency = 5 if producer["name"].startswith("ld") else 2 if producer["name"].startswith("mpy") else 1
        assert (line["cycle"] - producer["cycle"] - latency) % hottest["cycles"] == 0
        assert line["register"] in producer["text"]
    assert 0 < hottest["recurrence"] <= hottest["cycles"] and hottest["chain"]
    assert all(0 < r["alive"] <= 16 for r in hottest["registers"])
    assert sum(s["share"] for s in c6201["stretches"]) <= 1


def test_text(cli):
    answer = cli("explain", "rijndael", "--on", "c6201")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert re.match(r"The loop takes \d+ cycles a pass and \d+ % of all cycles", lines[0])
    assert max(map(len, lines)) <= 80
    head = next(line for line in lines if line.startswith("cycle  l1"))
    assert head.split() == ["cycle", "l1", "s1", "d1", "l2", "s2", "d2"]
    assert any(re.match(r" full +\d+ %", line) for line in lines)
    assert re.search(r"^ +\d+ +xor \.\w+ .* [ab]\d+ of cycle \d+ \(\w+\)$", answer.out, re.MULTILINE)


def test_one_instruction_at_a_time(cli):
    answer = cli("explain", "rc6", "--on", "rv32", "--json")
    document = json.loads(answer.out)
    assert document["measurement"]["verified"] and document["measurement"]["machine"] == "rv32"
    hottest = document["stretches"][0]
    cycles = [line["cycle"] for line in hottest["instructions"]]
    assert cycles == sorted({*cycles}) and hottest["cycles"] >= len(cycles)
    assert "limit it, one a cycle at most." in hottest["why"]
    assert {line["waits"] for line in hottest["instructions"]} <= {"order", "operand", "unit"}
    # What a pass costs, times the passes, is the loop's share of what was measured; the
    # pass that leaves the loop is not a whole one.
    assert hottest["share"] == pytest.approx(hottest["cycles"] * hottest["passes"] / document["cycles"], rel=0.01)
    text = cli("explain", "rc6", "--on", "rv32").out
    assert "alu  mul" not in text and "instruction" in text


def test_instructions_that_hold_the_pipeline_are_told_of(cli):
    """RC6's products, were a multiplier to take the pipeline for ten cycles."""
    answer = cli("explain", "rc6", "--on", "rv32", "--set", "timings.mul.issue_cycles=10", "--json")
    document = json.loads(answer.out)
    assert re.search(
        r"cycles more in which some hold the pipeline, mul above all, take \d+ %", document["measurement"]["why"]
    )
    assert re.search(
        r"one a cycle at most, and \d+ cycles more in which some of them hold", document["stretches"][0]["why"]
    )


@pytest.mark.parametrize("machine", ("leon2", "rv32", "c6201", "epic"))
def test_nothing_takes_more_than_there_is(cli, machine):
    document = json.loads(cli("explain", "rc6", "--on", machine, "--json").out)
    assert 0.5 < sum(s["share"] for s in document["stretches"]) <= 1.001
    taken = [u["cycles"] / (u["count"] * s["cycles"]) for s in document["stretches"] for u in s["units"]]
    assert all(share <= 1 for share in taken)


def test_several_units_of_a_kind_share_a_column(cli):
    text = cli("explain", "rc6", "--on", "epic").out
    assert "cycle  alu" in text and " +1 " in text and "(p1" not in text.split("cycle  alu")[1].split("full")[0]


def test_refused(refused):
    assert refused("explain", "rc6", "--on", "c6202").startswith("no machine 'c6202' (did you mean 'c6201'?)")


def maps(cipher: str, variant: str, on: str, *extensions: str) -> list[dict]:
    module = engine.module(manifest.find(cipher), variant)
    # They are those of the module, whatever form its program has.
    return engine.explanation(module, on, engine.Options(with_=extensions, jam=1, unroll=False))["maps"]


@pytest.mark.parametrize(
    ("cipher", "variant", "what"),
    [
        ("rijndael", "compact", "(2 3 1 1; 1 2 3 1; 1 1 2 3; 3 1 1 2) over GF(2^8) modulo 0x11b"),
        ("square", "compact", "(2 3 1 1; 1 2 3 1; 1 1 2 3; 3 1 1 2) over GF(2^8) modulo 0x1f5"),
        ("twofish", "compact", "over GF(2^8) modulo 0x169"),
    ],
)
def test_matrices_are_named(cipher, variant, what):
    found = [m for m in maps(cipher, variant, "rv32") if what in m["what"]]
    assert found and all(m["kind"] == "matrix" and m["instruction"] is None for m in found)
    assert {m["missed"] for m in found} == {"the machine has no instruction with a matrix"}


@pytest.mark.parametrize(("function", "places", "ones"), [("cm_encrypt", 7, 610), ("cm_decrypt", 8, 546)])
def test_serpent_s_linear_layer_is_one_map(function, places, ones):
    """In every round but one, which the loop over the rounds divides in encryption."""
    (layer,) = [m for m in maps("serpent", "plain", "rv32") if m["function"] == function and m["places"] > 1]
    assert layer["what"].startswith(f"a map over GF(2) of 4 words to 4, 128 by 128 bits with {ones} ones")
    assert layer["places"] == places


@pytest.mark.parametrize(
    ("cipher", "variant", "direction", "field"),
    [
        ("rijndael", "compact", "encrypt", "0x11b"),
        ("rijndael", "on-the-fly", "decrypt", "0x11b"),
        ("square", "compact", "encrypt", "0x1f5"),
        ("twofish", "compact", "decrypt", "0x169"),
    ],
)
def test_products_in_a_field_are_found(cipher, variant, direction, field):
    """The C64x's own instruction, without intrinsics: the matrix in four products, the polynomial loaded."""
    found = [m for m in maps(cipher, variant, "c64x") if m["what"].endswith(f"modulo {field}")]
    assert "gmpy4" in {m["instruction"] for m in found}
    module = engine.module(manifest.find(cipher), variant)
    with_it, without = (engine.Options(direction=direction, unroll=False, without=names) for names in ((), ("gmpy4",)))
    printed = engine.assembly(module, "c64x", with_it)
    assert "gmpy4 .m" in printed.lower() and ", gfpgfr" in printed
    assert "gmpy4" not in engine.assembly(module, "c64x", without).lower()
    fast, slow = engine.measure(module, "c64x", with_it), engine.measure(module, "c64x", without)
    assert fast.verified and slow.verified and fast.instructions < slow.instructions


def test_what_matched_and_what_just_missed():
    found = {m["what"]: m for m in maps("rijndael", "compact", "leon2", "mixcol4", "sbox")}
    assert {m["instruction"] for m in found.values() if m["instruction"]} >= {"mixcol4", "sbox"}
    square = [m for m in maps("square", "compact", "leon2", "mixcol4") if "0x1f5" in m["what"]]
    assert square and all(
        m["instruction"] is None and m["missed"].startswith("differs from `mixcol4") for m in square[:1]
    )
    assert any(m["instruction"] == "mixcolm" for m in maps("square", "compact", "leon2", "mixcolm"))
    module = engine.module(manifest.find("rijndael"), "compact")
    options = engine.Options(with_=("mixcol4",))
    printed = explain.text(engine.measure(module, "leon2", options), engine.explanation(module, "leon2", options))
    assert "Matrices and tables in the cipher" in printed and "`mixcol4` does it." in printed


SIGMA = """
[extension]
name = "sigma"
title = "Ascon's linear layer, each line written in another way than the C"
for = ["rv32", "rv64"]

[instructions]
source = "an assumption: one cycle"
sigma0 = { format = "unary", timing = "alu", semantics = "rd = rs1 ^ rotr(rs1, 19) ^ rotr(rs1, 28)" }
sigma1 = { format = "unary", timing = "alu", semantics = "rd = rotl(rs1, 3) ^ (rotl(rs1, 25) ^ rs1)" }
sigma2 = { format = "unary", timing = "alu", semantics = "rd = rotr(rs1, 6) ^ rs1 ^ rotr(rs1, 1)" }
sigma3 = { format = "unary", timing = "alu", semantics = "rd = rs1 ^ rotr(rs1, 10) ^ rotr(rs1, 18)" }
"""

LINES = """
[extension]
name = "lines"
title = "RC6's f and SM4's L as their papers write them"
for = ["rv32"]

[instructions]
source = "an assumption: one cycle"
rc6_f = { format = "unary", timing = "mul", semantics = "rd = rotl(rs1 * (2 * rs1 + 1), 5)" }
sm4_l = { format = "unary", timing = "alu", semantics = "rd = rs1 ^ rotl(rs1, 2) ^ rotl(rs1, 10) ^ rotl(rs1, 18) ^ rotl(rs1, 24)" }
"""


def unused(cipher: str, variant: str, on: str, extension: str, **options) -> dict[str, str]:
    """Instructions of an extension that are not used, with the reasons; the measurement is verified."""
    module = engine.module(manifest.find(cipher), variant)
    asked = engine.Options(with_=(extension,), **options)
    assert engine.measure(module, on, asked).verified
    return {u["instruction"]: u["why"] for u in engine.explanation(module, on, asked)["unused"]}


@pytest.mark.parametrize("with_rotates", [(), ("zbb",)])
def test_an_instruction_is_found_however_its_line_is_written(write, with_rotates):
    lines = str(write("lines.toml", LINES))
    module = engine.module(manifest.find("rc6"), "plain")
    asked = engine.Options(with_=(*with_rotates, lines))
    assert engine.measure(module, "rv32", asked).verified
    left = {u["instruction"] for u in engine.explanation(module, "rv32", asked)["unused"]}
    assert "rc6_f" not in left and "sm4_l" in left
    assert unused("rc6", "plain", "rv32", lines, direction="decrypt").keys() == {"sm4_l"}


def test_a_linear_layer_is_found_with_a_key_among_its_terms(write):
    """A compiler adds the key before the layer's last term."""
    lines = str(write("lines.toml", LINES))
    assert unused("sm4", "compact", "rv32", lines).keys() == {"rc6_f"}
    assert unused("sm4", "compact", "rv32", lines, direction="decrypt").keys() == {"rc6_f"}


def test_words_of_64_bits_and_a_wrong_constant(write):
    left = unused("ascon", "plain", "rv64", str(write("sigma.toml", SIGMA)))
    assert left.keys() == {"sigma3"}
    assert "of its 4 operations" in left["sigma3"] and "stands the constant" in left["sigma3"]


def test_instructions_that_are_not_used_are_listed(cli, write):
    text = cli("explain", "rc6", "--on", "rv32", "--with", write("lines.toml", LINES)).out
    assert "Instructions of the extensions that are not used" in text and "\nsm4_l: " in text
    assert "not used" not in cli("explain", "rc6", "--on", "rv32").out


#: Programs whose loops are asked: one at its bound by units, one with a loop for the linear program, and one
#: that is open.
PROVED = [
    ("rc6", None, "c64x"),
    ("camellia", "ttable", "itanium2"),
    ("rabbit", "halves", "epic"),
]


@pytest.mark.parametrize(("cipher", "variant", "machine"), PROVED)
def test_what_is_proved_of_loops(cipher, variant, machine):
    module = engine.module(manifest.find(cipher), variant)
    told = engine.explanation(module, machine, engine.Options(bytes=1024))
    measured = engine.measure(module, machine, engine.Options(bytes=1024))
    assert told["loops"]
    for loop, also in zip(told["loops"], measured.loops, strict=True):
        assert (loop["function"], loop["block"], loop["ii"]) == (also["function"], also["block"], also["ii"])
        bounds = {
            holds: [b for b in loop["bounds"] if b["holds"] == holds] for holds in ("always", "registers", "division")
        }
        assert sum(map(len, bounds.values())) == len(loop["bounds"]) and bounds["always"] and bounds["division"]
        assert all(b["because"] and b["least"] >= 1 for b in loop["bounds"])
        # What holds for the schedule that was found is not above it.
        assert all(b["least"] <= loop["ii"] for b in bounds["always"] + bounds["division"])
        assert loop["least"] == max(b["least"] for b in bounds["always"])
        # Those that are quickly found are part of every measurement.
        assert also["least"] <= loop["least"] and also["because"] and also["certificate"] != "none"
        assert also["proved_optimal"] == (also["ii"] == also["least"])
        (same,) = [b for b in bounds["always"] if b["because"] == also["because"]]
        assert (same["certificate"], same["least"]) == (also["certificate"], also["least"])
    places = [(s, x) for s in told["stretches"] for x in told["loops"] if x["block"] in s["blocks"]]
    stretch, main = next((s, x) for s, x in places if s["function"] == x["function"])
    why = max((b for b in main["bounds"] if b["holds"] == "always"), key=lambda b: b["least"])["because"]
    if main["ii"] == main["least"]:
        assert f"No schedule is shorter: an II of {main['ii'] - 1} is refused, because {why}." in stretch["pipelining"]
    else:
        assert f"No II below {main['least']} is possible, because " in stretch["pipelining"]
        assert f"{main['ii'] - 1} is open: nothing proves it impossible" in stretch["pipelining"]


def test_the_branch_is_a_bound():
    """A loop of a few instructions: what its branch waits for, and the five delay slots of the C6201."""
    module = engine.module(manifest.find("sosemanuk"), "bytewise")
    loop = engine.measure(module, "c6201", engine.Options(bytes=1024)).loops[0]
    assert max(loop["res_mii"], loop["rec_mii"]) < loop["least"] == loop["ii"]
    assert loop["because"] == f"what the branch waits for, and the branch itself, take {loop['ii']} cycles"
