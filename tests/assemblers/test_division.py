"""Division on machines that have none, by the emulator of the C6000."""

from __future__ import annotations

import random
import subprocess
import sys

import c6x
import pytest

pytest.importorskip("ciphermill")

SOURCE = """
#define EXPORT(name) __attribute__((export_name(#name)))
typedef unsigned int u32;
typedef unsigned long long u64;
EXPORT(divu) u32 divu(u32 a, u32 b) { return a / b; }
EXPORT(remu) u32 remu(u32 a, u32 b) { return a % b; }
EXPORT(divs) int divs(int a, int b) { return a / b; }
EXPORT(rems) int rems(int a, int b) { return a % b; }
EXPORT(cm_ctx_bytes) u32 cm_ctx_bytes(void) { return 4; }
EXPORT(cm_block_bytes) u32 cm_block_bytes(void) { return 4; }
EXPORT(cm_keysetup) void cm_keysetup(u32 *ctx, const u32 *key, u32 bytes) { *ctx = *key; }
EXPORT(cm_encrypt_blocks) void cm_encrypt_blocks(const u32 *ctx, const u32 *in, u32 *out, u32 n)
{
    while (n--) *out++ = *in++ ^ *ctx;
}
EXPORT(wide) u32 wide(u32 a, u32 b) { return ((u64)a << 32 | b) / (a | 1); }
"""
M32 = 0xFFFF_FFFF
EDGES = [(M32, M32), (1 << 31, 1), (M32, 1 << 31), (0, 5), (5, M32 - 1), (1 << 31, 3)]


@pytest.fixture(scope="session")
def module(tmp_path_factory):
    from ciphermill import engine, manifest

    folder = tmp_path_factory.mktemp("division")
    (folder / "division.c").write_text(SOURCE)
    options = ["--target=wasm32-freestanding", "-O2", "-nostdlib", "-Wl,--no-entry", "-Wl,--export=__heap_base"]
    command = [sys.executable, "-m", "ziglang", "cc", *options, "-o", folder / "division.wasm", folder / "division.c"]
    subprocess.run(command, check=True)
    return engine.module(manifest.find(str(folder / "division.wasm")))


def signed(x: int) -> int:
    return (x & 0x7FFF_FFFF) - (x & 0x8000_0000)


@pytest.mark.parametrize("machine", ["c6201", "c64x"])
def test_quotients_and_remainders(module, machine):
    from ciphermill import engine

    made = c6x.load(engine.assembly(module, machine, engine.Options()), machine)
    rng = random.Random(3)
    bits = lambda: rng.getrandbits(rng.choice([3, 8, 16, 31, 32]))  # noqa: E731
    for a, b in EDGES + [(bits(), bits() or 1) for _ in range(30)]:
        n, d = signed(a), signed(b)
        quotient = abs(n) // abs(d) * (1 if (n < 0) == (d < 0) else -1)
        wanted = {
            "divu": a // b,
            "remu": a % b,
            "divs": quotient,
            "rems": n - quotient * d,
            "wide": (a << 32 | b) // (a | 1),
        }
        for name, value in wanted.items():
            assert made.call(name, a, b).registers["a4"] == value & M32, (name, a, b)
