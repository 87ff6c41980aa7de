"""Carry-less products in C as different people write them, and the linear maps of SHA-2: the
instructions of Zbc and Zknh are found in all of it."""

from __future__ import annotations

import re

import pytest

import ciphermill as cm
from ciphermill import discovering, engine, manifest, synthesis

#: Both halves of the product of the first two words, and those of the other two.
PROGRAM = """\
#include "ciphermill.h"
%s
void cm_permute(const uint8_t *in, uint8_t *out)
{
    for (int i = 0; i < 16; i += 8) {
        uint64_t product = carryless(cm_load32_le(in + i), cm_load32_le(in + i + 4));
        cm_store32_le(out + i, (uint32_t)product);
        cm_store32_le(out + i + 4, (uint32_t)(product >> 32));
    }
}
CM_PERMUTATION(16)
"""

WRITTEN = {
    "masks made of bits, and both factors shifted": """\
static uint64_t carryless(uint32_t x, uint32_t y)
{
    uint64_t sum = 0, wide = x;
    for (int i = 0; i < 32; i++, wide <<= 1, y >>= 1)
        sum ^= wide & (0 - (uint64_t)(y & 1));
    return sum;
}""",
    "from the highest bit down": """\
static uint64_t carryless(uint32_t x, uint32_t y)
{
    uint64_t sum = 0;
    for (int i = 31; i >= 0; i--)
        sum = sum << 1 ^ (uint64_t)x * (y >> i & 1);
    return sum;
}""",
    "integers with room for carries": """\
static uint64_t carryless(uint32_t x, uint32_t y)
{
    uint64_t a[4], b[4], c[4], m = 0x1111111111111111;
    for (int i = 0; i < 4; i++) {
        a[i] = x & (uint32_t)(m << i);
        b[i] = y & (uint32_t)(m << i);
    }
    c[0] = (a[0] * b[0]) ^ (a[1] * b[3]) ^ (a[2] * b[2]) ^ (a[3] * b[1]);
    c[1] = (a[0] * b[1]) ^ (a[1] * b[0]) ^ (a[2] * b[3]) ^ (a[3] * b[2]);
    c[2] = (a[0] * b[2]) ^ (a[1] * b[1]) ^ (a[2] * b[0]) ^ (a[3] * b[3]);
    c[3] = (a[0] * b[3]) ^ (a[1] * b[2]) ^ (a[2] * b[1]) ^ (a[3] * b[0]);
    return (c[0] & m) | (c[1] & m << 1) | (c[2] & m << 2) | (c[3] & m << 3);
}""",
}

#: Every second bit leaves too little room: carries get into the bits that are kept.
TOO_NARROW = """\
static uint64_t carryless(uint32_t x, uint32_t y)
{
    uint64_t e = 0x5555555555555555, o = e << 1, x0 = x & (uint32_t)e, x1 = x & (uint32_t)o, y0 = y & (uint32_t)e, y1 = y & (uint32_t)o;
    return ((x0 * y0 ^ x1 * y1) & e) | ((x0 * y1 ^ x1 * y0) & o);
}"""


def by_hand(x: int, y: int) -> int:
    product = 0
    for i in range(32):
        product ^= (x << i) * (y >> i & 1)
    return product


@pytest.mark.parametrize("machine", ["rv32", "rv64"])
@pytest.mark.parametrize("how", WRITTEN)
def test_a_product_however_it_is_written(how, machine, cli, tmp_path):
    path = tmp_path / "product.c"
    path.write_text(PROGRAM % WRITTEN[how])
    data = bytes(range(200, 216))
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, 16, 4)]
    wanted = b"".join(by_hand(*pair).to_bytes(8, "little") for pair in (words[:2], words[2:]))
    assert cm.cipher(path).permute(data) == wanted
    extension = "zbc" if machine == "rv32" else "zbc_rv64"
    plain, with_it = cm.run(path, machine), cm.run(path, machine, with_=extension)
    assert with_it.verified and with_it.cycles_per_block < plain.cycles_per_block / 2
    # Two halves of two products; one product gives both where words have 64 bits.
    found = re.findall(r"\tclmulh?\b", cli("asm", path, "--on", machine, "--with", extension).out)
    assert found and len(found) % (4 if machine == "rv32" else 2) == 0, found


def test_a_product_with_carries_is_none(cli, tmp_path):
    path = tmp_path / "product.c"
    path.write_text(PROGRAM % TOO_NARROW)
    assert "clmul" not in cli("asm", path, "--on", "rv32", "--with", "zbc").out


def test_discovered(monkeypatch):
    """GHASH with products of integers asks for what Zbc has."""
    monkeypatch.setattr(synthesis, "installed", lambda: False)
    module = engine.module(manifest.find("ghash"), "products32")
    document = discovering.discover(module, "rv32", engine.Options(), discovering.Limits(tries=1))
    best = document["candidates"][document["best"]]
    assert best["kind"] == "product" and best["semantics"] in ("rd = clmul(rs1, rs2)", "rd = clmulh(rs1, rs2)")
    assert best["places"] >= 9 and best["gates"] > 1000


@pytest.mark.parametrize(
    ("cipher", "machine", "names"),
    [
        ("sha256", "rv32", {"sha256sig0", "sha256sig1", "sha256sum0", "sha256sum1"}),
        ("sha256", "rv64", {"sha256sig0", "sha256sig1", "sha256sum0", "sha256sum1"}),
        ("sha512", "rv64", {"sha512sig0", "sha512sig1", "sha512sum0", "sha512sum1"}),
        (
            "sha512",
            "rv32",
            {"sha512sig0h", "sha512sig0l", "sha512sig1h", "sha512sig1l", "sha512sum0r", "sha512sum1r"},
        ),
    ],
)
def test_the_maps_of_sha2(cipher, machine, names, cli):
    extension = "zknh" if machine == "rv32" else "zknh_rv64"
    listing = cli("asm", cipher, "--no-unroll", "--on", machine, "--with", extension).out
    assert set(re.findall(r"\bsha(?:256|512)\w+", listing)) >= names
    assert cm.run(cipher, machine, with_=extension, unroll=False).verified
