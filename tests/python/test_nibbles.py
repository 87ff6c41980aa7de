"""S-boxes of four bits: instructions for them, found in plain C by the contents of its tables."""

from __future__ import annotations

import pytest

from ciphermill import engine, manifest

#: PRESENT as its paper's pseudocode has it. Source: Bogdanov and others, CHES 2007.
PRESENT = """\
#include "ciphermill.h"
static const uint8_t sbox[16] = {12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2};
static const uint8_t inverse[16] = {5, 14, 15, 8, 12, 1, 2, 13, 11, 4, 6, 3, 0, 7, 9, 10};
struct cm_ctx { uint64_t round_key[32]; };
static uint64_t load(const uint8_t *p) { return (uint64_t)cm_load32_be(p) << 32 | cm_load32_be(p + 4); }
static void store(uint8_t *p, uint64_t x) { cm_store32_be(p, (uint32_t)(x >> 32)); cm_store32_be(p + 4, (uint32_t)x); }
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t high = load(key), rest = key[8] << 8 | key[9], t;
    (void)key_bytes;
    for (uint32_t round = 0; round < 32; round++) {
        ctx->round_key[round] = high;
        t = high;
        high = t << 61 | rest << 45 | t >> 19;
        rest = (t >> 3 & 0xffff) ^ ((round + 1) & 1) << 15;
        high = (high & 0x0fffffffffffffff) | (uint64_t)sbox[high >> 60] << 60;
        high ^= (round + 1) >> 1;
    }
}
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t n) { cm_keysetup(ctx, key, n); }
static uint64_t step(uint64_t x, uint64_t mask, int by) { uint64_t t = (x >> by ^ x) & mask; return x ^ t ^ t << by; }
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint64_t state = load(in), next;
    for (int r = 0; r < 31; r++) {
        state ^= ctx->round_key[r];
        next = 0;
        for (int i = 0; i < 16; i++)
            next |= (uint64_t)sbox[state >> (4 * i) & 15] << (4 * i);
        next = step(step(next, 0x0a0a0a0a0a0a0a0a, 3), 0x00cc00cc00cc00cc, 6);
        state = step(step(next, 0x0000f0f00000f0f0, 12), 0x00000000ff00ff00, 24);
    }
    store(out, state ^ ctx->round_key[31]);
}
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint64_t state = load(in) ^ ctx->round_key[31], next;
    for (int r = 31; r-- > 0;) {
        next = step(step(state, 0x00000000ff00ff00, 24), 0x0000f0f00000f0f0, 12);
        next = step(step(next, 0x00cc00cc00cc00cc, 6), 0x0a0a0a0a0a0a0a0a, 3);
        state = 0;
        for (int i = 0; i < 16; i++)
            state |= (uint64_t)inverse[next >> (4 * i) & 15] << (4 * i);
        state ^= ctx->round_key[r];
    }
    store(out, state);
}
CM_BLOCK_CIPHER(8)
"""

NIBBLE = "rd = sbox[rs1[3:0]]"
EIGHT = "rd = cat({})".format(", ".join(f"sbox[rs1[{4 * i + 3}:{4 * i}]]" for i in reversed(range(8))))
SIXTEEN = "rd = cat({})".format(", ".join(f"sbox[rs1[{4 * i + 3}:{4 * i}]]" for i in reversed(range(16))))
ANYWHERE = "let x = (rs1 >>u (at << 2))[3:0]; rd = (rd & ~(0xf << (at << 2))) | (sbox[x] << (at << 2))"


FORMAT = """\
[formats.nibble]
operands = { rd = "x", rs1 = "x", at = "uimm3" }
asm = "{name} {rd}, {rs1}, {at}"
bytes = 4
source = "a test"
"""


def extension(semantics: str, hex: str = "c56b90ad3ef84712", form: str = "unary") -> str:
    return f"""\
[extension]
name = "nibbles"
title = "A test"
for = ["rv32", "rv64"]
{FORMAT if form == "nibble" else ""}[instructions]
source = "a test"
[instructions.nibbles]
format = "{form}"
timing = "alu"
semantics = "{semantics}"
[tables.sbox]
bits = 4
hex = ["{hex}"]
source = "Bogdanov and others, CHES 2007"
"""


@pytest.fixture
def present(write):
    return write("present.c", PRESENT)


def test_the_c_is_present(present):
    import ciphermill as cm

    # The paper's appendix: key and plaintext of zeros, and both of ones.
    for byte, coded in ((b"\0", "5579c1387b228445"), (b"\xff", "3333dcd3213210d2")):
        key, block = 10 * byte, 8 * byte
        assert cm.cipher(str(present)).encrypt(key, block).hex() == coded
        assert cm.cipher(str(present)).decrypt(key, bytes.fromhex(coded)) == block


def made(present, machine: str, extension) -> tuple[str, object]:
    """The assembly of cm_encrypt with the extension, and the measurement."""
    module = engine.module(manifest.find(str(present)))
    options = engine.Options(key_bits=80, with_=[str(extension)])
    text = engine.assembly(module, machine, options)
    return text.split("\ncm_encrypt:")[1].split("\n\t.size")[0].split("\ncm_decrypt:")[0], engine.measure(
        module, machine, options
    )


@pytest.mark.parametrize(
    ("machine", "semantics", "form", "uses", "loads"),
    [
        ("rv32", NIBBLE, "unary", 17, 8),
        ("rv32", EIGHT, "unary", 2, 8),
        # An insertion leaves its nibble where it is: not the one that a shift has moved.
        ("rv32", ANYWHERE, "nibble", 16, 9),
        ("rv64", NIBBLE, "unary", 16, 8),
        ("rv64", SIXTEEN, "unary", 1, 8),
    ],
)  # fmt: skip
def test_a_table_of_sixteen_entries_is_found(present, write, machine, semantics, form, uses, loads):
    text, measurement = made(present, machine, write("nibbles.toml", extension(semantics, form=form)))
    assert measurement.verified, measurement.failure
    # Eight loads are the bytes of the block.
    assert (text.count("\tnibbles "), text.count("\tlbu ")) == (uses, loads)


def test_another_table_is_not(present, write):
    text, measurement = made(present, "rv32", write("nibbles.toml", extension(NIBBLE, hex="c56b90ad3ef84721")))
    assert measurement.verified and text.count("\tnibbles ") == 0


def test_explain_names_it(cli, present, write):
    asked = ("explain", present, "--on", "rv32", "--key-bits", "80", "--with")
    found = cli(*asked, write("nibbles.toml", extension(NIBBLE))).out
    assert "a table of 16 entries of 4 bits, not linear: c 5 6 b ....\n`nibbles` does it." in found
    near = cli(*asked, write("nibbles.toml", extension(NIBBLE, hex="c56b90ad3ef84721"))).out
    assert "16 entries of 4 bits, not linear: c 5 6 b .... Differs" in " ".join(near.split())
