"""Arithmetic modulo a prime in C as different people write it: instructions whose semantics are one line of
integers are found in all of it, and `discover` proposes them."""

from __future__ import annotations

import re

import pytest

import ciphermill as cm
from ciphermill import discovering, engine, manifest, synthesis

#: One layer of butterflies on eight coefficients of 16 bits, or on four of 32, whose remainders are written last.
LAYER = """\
#include "ciphermill.h"
%(functions)s
static const int%(bits)d_t roots[4] = { 1353, -758, -359, 1517 };
void cm_permute(const uint8_t *in, uint8_t *out)
{
    int%(bits)d_t r[%(size)d];
    __builtin_memcpy(r, in, 16);
    for (int i = 0; i < %(size)d / 2; i++) {
        int%(bits)d_t t = multiply(roots[i], r[i + %(size)d / 2]);
        r[i + %(size)d / 2] = r[i] - t;
        r[i] = r[i] + t;
    }
    for (int i = 0; i < %(size)d; i++)
        r[i] = modulo(r[i]);
    __builtin_memcpy(out, r, 16);
}
CM_PERMUTATION(16)
"""

BARRETT = """\
static int16_t modulo(int16_t a)
{
    const int16_t v = ((1 << 26) + 3329 / 2) / 3329;
    int16_t t = ((int32_t)v * a + (1 << 25)) >> 26;
    t *= 3329;
    return a - t;
}
"""

#: Each is a b / 2^16 modulo 3329, and the remainder of a, from -1664 to 1664.
SHORT = {
    "as FIPS 203's reference": """\
static int16_t reduce(int32_t a)
{
    int16_t t = (int16_t)a * (int16_t)-3327;
    t = (a - (int32_t)t * 3329) >> 16;
    return t;
}
static int16_t multiply(int16_t a, int16_t b) { return reduce((int32_t)a * b); }
""",
    "unsigned": """\
static int16_t multiply(int16_t a, int16_t b)
{
    uint32_t x = (uint32_t)((int32_t)a * b), u = (x * 62209) & 0xffff;
    int32_t t = u >= 0x8000 ? (int32_t)u - 0x10000 : (int32_t)u;
    return (int32_t)(x - (uint32_t)(t * 3329)) >> 16;
}
""",
    "upper and lower halves, as in vectors": """\
static int16_t high(int16_t a, int16_t b) { return (int32_t)a * b >> 16; }
static int16_t low(int16_t a, int16_t b) { return (int16_t)((uint16_t)a * (uint32_t)(uint16_t)b); }
static int16_t multiply(int16_t a, int16_t b)
{
    int16_t m = low(low(a, b), -3327);
    return high(a, b) - high(m, 3329);
}
""",
    "the root times q^-1 first": """\
static int16_t multiply(int16_t a, int16_t b)
{
    int16_t scaled = (int16_t)(a * -3327);
    int16_t m = (int16_t)(scaled * b);
    return (int16_t)(((int32_t)a * b >> 16) - ((int32_t)m * 3329 >> 16));
}
""",
}

UNITS = """\
[extension]
name = "modulo3329"
title = "Arithmetic modulo 3329"
for = ["%s"]

[instructions]
source = "an assumption: one cycle in the ALU"

[instructions.mont]
format = "r"
timing = "alu"
semantics = "let x = sext16(rs1) * sext16(rs2); rd = (x - sext16(x * 62209) * 3329) >>s 16"

[instructions.barrett]
format = "unary"
timing = "alu"
semantics = "let x = sext16(rs1); rd = x - ((x * 20159 + 0x2000000) >>s 26) * 3329"
"""

#: a b / 2^32 modulo 8380417, and the remainder with q added to what is negative.
LONG = {
    "as FIPS 204's reference": """\
static int32_t multiply(int32_t a, int32_t b)
{
    int64_t x = (int64_t)a * b;
    int32_t t = (int32_t)((uint64_t)x * (uint64_t)58728449);
    return (x - (int64_t)t * 8380417) >> 32;
}
static int32_t modulo(int32_t a) { return a + ((a >> 31) & 8380417); }
""",
    "halves, and a condition": """\
static int32_t high(int32_t a, int32_t b) { return (int32_t)((uint64_t)((int64_t)a * b) >> 32); }
static int32_t multiply(int32_t a, int32_t b)
{
    uint32_t m = (uint32_t)a * (uint32_t)b * 58728449u;
    return (int32_t)((uint32_t)high(a, b) - (uint32_t)high((int32_t)m, 8380417));
}
static int32_t modulo(int32_t a) { return a < 0 ? a + 8380417 : a; }
""",
}

LONG_UNITS = """\
[extension]
name = "modulo8380417"
title = "Arithmetic modulo 8380417"
for = ["%s"]

[instructions]
source = "an assumption: one cycle in the ALU"

[instructions.mont]
format = "r"
timing = "alu"
semantics = "%s"

[instructions.addq]
format = "unary"
timing = "alu"
semantics = "%s"
"""
OF_WORDS = {
    "rv32": (
        "rd = mulhs(rs1, rs2) - mulhs(rs1 * rs2 * 58728449, 8380417)",
        "rd = rs1 + ((rs1 >>s 31) & 8380417)",
    ),
    "rv64": (
        "let x = sext32(rs1) * sext32(rs2); rd = (x - sext32(x * 58728449) * 8380417) >>s 32",
        "let x = sext32(rs1); rd = x + ((x >>s 63) & 8380417)",
    ),
}


def written(folder, name: str, functions: str, bits: int):
    path = folder / f"{name}.c"
    path.write_text(LAYER % {"functions": functions, "bits": bits, "size": 128 // bits})
    return path


def used(path, machine: str, extension) -> list[str]:
    """The instructions of the extension in the code."""
    measured = cm.run(str(path), machine, with_=str(extension))
    assert measured.verified and measured.cycles_per_block < cm.run(str(path), machine).cycles_per_block
    module = engine.module(manifest.find(str(path)), None)
    text = engine.assembly(module, machine, engine.Options(with_=[str(extension)]))
    return re.findall(r"\t(mont|barrett|addq)\b", text)


@pytest.mark.parametrize("machine", ["rv32", "rv64"])
@pytest.mark.parametrize("style", SHORT)
def test_products_and_remainders_modulo_3329(style, machine, tmp_path):
    path = written(tmp_path, "layer", SHORT[style] + BARRETT, 16)
    extension = tmp_path / "units.toml"
    extension.write_text(UNITS % machine)
    assert {*used(path, machine, extension)} == {"mont", "barrett"}


@pytest.mark.parametrize("machine", OF_WORDS)
@pytest.mark.parametrize("style", LONG)
def test_products_and_remainders_modulo_8380417(style, machine, tmp_path):
    path = written(tmp_path, "layer", LONG[style], 32)
    extension = tmp_path / "units.toml"
    extension.write_text(LONG_UNITS % (machine, *OF_WORDS[machine]))
    assert {*used(path, machine, extension)} == {"mont", "addq"}


def test_another_modulus_is_another_instruction(tmp_path):
    path = written(tmp_path, "layer", SHORT["unsigned"] + BARRETT, 16)
    extension = tmp_path / "units.toml"
    extension.write_text((UNITS % "rv32").replace("3329", "3331"))
    module = engine.module(manifest.find(str(path)), None)
    assert not re.search("mont|barrett", engine.assembly(module, "rv32", engine.Options(with_=[str(extension)])))


@pytest.mark.parametrize(
    ("kernel", "product"),
    [("ntt-mlkem", "rd = rs1 * rs2 / 2^16 modulo 3329"), ("ntt-mldsa", "rd = rs1 * rs2 / 2^32 modulo 8380417")],
)
def test_montgomery_s_product_is_proposed_by_its_name(kernel, product, monkeypatch):
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    module = engine.module(manifest.find(kernel), None)
    document = discovering.discover(module, "rv32", engine.Options(), discovering.Limits(tries=2))
    best = document["candidates"][document["best"]]
    assert best["kind"] == "modular" and best["meaning"] == product, best
    assert best["saved"] > document["cycles_per_block"] / 5 and product in discovering.text(document)


#: Butterflies of a transform whose loops stay, as most people write it.
ROLLED = """\
#include "ciphermill.h"
#define Q 3329
%(multiply)s
static const %(type)s roots[8] = { 17, 289, 1584, 296, 1703, 2319, 2804, 1062 };
void cm_permute(const uint8_t *in, uint8_t *out)
{
    %(type)s r[256];
    int k = 1;
    for (int i = 0; i < 256; i++)
        r[i] = in[i];
    for (int length = 128; length >= 2; length >>= 1)
        for (int start = 0; start < 256; start += 2 * length) {
            %(type)s z = roots[k++ & 7];
            for (int j = start; j < start + length; j++) {
                %(type)s t = multiply(z, r[j + length]);
                r[j + length] = %(difference)s;
                r[j] = %(sum)s;
                %(next)s
            }
        }
    for (int i = 0; i < 256; i++)
        out[i] = (uint8_t)(r[i] ^ r[i] >> 8);
}
CM_PERMUTATION(256)
"""
PLAIN = {"difference": "r[j] - t", "sum": "r[j] + t", "next": ""}
REMAINDERS = {
    "type": "uint32_t",
    "multiply": "static uint32_t multiply(uint32_t a, uint32_t b) { return a * b % Q; }",
    "difference": "(r[j] + Q - t) % Q",
    "sum": "(r[j] + t) % Q",
    "next": "",
}
MONTGOMERY = {"type": "int16_t", "multiply": SHORT["as FIPS 203's reference"], **PLAIN}
#: The root of the next turn is made of this one's, so what it may be is known of the loop alone.
ON_THE_FLY = {**MONTGOMERY, "next": "z = multiply(z, 17);"}


def proposed(path, monkeypatch, **limits):
    """What candidates that save cycles are modulo a number, with their kinds and results."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    module = engine.module(manifest.find(str(path)), None)
    document = discovering.discover(module, "rv32", engine.Options(), discovering.Limits(**limits))
    return [row for row in document["candidates"] if row["meaning"]]


@pytest.mark.parametrize(
    ("how", "kind", "product"),
    [
        (REMAINDERS, "modular", "rd = rs1 * rs2 modulo 3329"),
        (ON_THE_FLY, "modular", "rd = rs1 * rs2 / 2^16 modulo 3329"),
    ],
    ids=["with the remainder's operator", "with roots made on the fly"],
)
def test_a_product_in_a_loop_that_stays_is_proposed(how, kind, product, monkeypatch, tmp_path):
    path = tmp_path / "rolled.c"
    path.write_text(ROLLED % how)
    found = [(row["kind"], row["meaning"].removesuffix(", where nothing wraps")) for row in proposed(path, monkeypatch)]
    assert (kind, product) in found, found


def test_an_instruction_is_found_in_a_loop_that_stays(tmp_path):
    path = tmp_path / "rolled.c"
    path.write_text(ROLLED % ON_THE_FLY)
    extension = tmp_path / "units.toml"
    extension.write_text(UNITS % "rv32")
    options = {"with_": [str(extension)], "unroll": False}
    assert cm.run(str(path), "rv32", with_=str(extension), unroll=False).verified
    module = engine.module(manifest.find(str(path)), None)
    assert len(re.findall(r"\tmont\b", engine.assembly(module, "rv32", engine.Options(**options)))) == 2


def test_a_butterfly_is_one_instruction_of_two_results(monkeypatch, tmp_path):
    path = tmp_path / "rolled.c"
    path.write_text(ROLLED % MONTGOMERY)
    both = [row for row in proposed(path, monkeypatch, inputs=3, outputs=2, tries=2) if row["outputs"] == 2]
    butterfly = "rd = rs1 - rs2 * rs3 / 2^16 modulo 3329; rd2 = rs1 + rs2 * rs3 / 2^16 modulo 3329"
    assert butterfly in [row["meaning"].replace(", where nothing wraps", "") for row in both], both
