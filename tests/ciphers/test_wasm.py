"""Every variant as WebAssembly: it compiles with the pinned clang of the `ziglang` package, needs
no import, exports the C interface, and (under wasmtime, if that is installed) gives the same
bytes as native code."""

import random
import subprocess
import sys

import pytest
from harness import CIPHERS, Native, variants

FEATURES = "generic+bulk_memory+sign_ext+multivalue"
FLAGS = ["-target", "wasm32-freestanding", "-O2", "-g0", f"-mcpu={FEATURES}", "-nostdlib",
         "-Wl,--no-entry", "-Wl,--export=__heap_base", "-Wl,-z,stack-size=65536",
         "-Wl,--global-base=65536"]  # fmt: skip
COMMON = {"memory", "__heap_base", "cm_keysetup", "cm_ctx_bytes", "cm_block_bytes"}
BLOCK = COMMON | {"cm_keysetup_decrypt"} | {
    f"cm_{direction}{what}" for direction in ("encrypt", "decrypt")
    for what in ("", "_blocks", "_feedback")
}  # fmt: skip
STREAM = COMMON | {"cm_ivsetup", "cm_keystream"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    pytest.importorskip("ziglang", reason="pip install ziglang")
    folder = tmp_path_factory.mktemp("wasm")

    def compile(variant):
        out = folder / f"{variant}.wasm"
        if not out.exists():
            sources = [variant.folder / s for s in variant.options["sources"]]
            command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *variant.options["flags"]]
            subprocess.run([*command, "-o", out, *sources], check=True, cwd=CIPHERS)
        return out.read_bytes()

    return compile


def leb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def sections(module: bytes) -> dict[int, bytes]:
    assert module[:8] == b"\0asm\1\0\0\0"
    found, at = {}, 8
    while at < len(module):
        kind, (size, start) = module[at], leb(module, at + 1)
        found[kind] = module[start : start + size]
        at = start + size
    return found


def exports(section: bytes) -> set[str]:
    count, at = leb(section, 0)
    names = set()
    for _ in range(count):
        size, at = leb(section, at)
        names.add(section[at : at + size].decode())
        _, at = leb(section, at + size + 1)
    return names


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_interface(variant, compiled):
    found = sections(compiled(variant))
    assert 2 not in found, "imports"
    assert exports(found[7]) == (BLOCK if variant.manifest["kind"] == "block" else STREAM)


class Wasm:
    """The C interface of a module under wasmtime, buffers placed after __heap_base."""

    def __init__(self, module: bytes):
        wasmtime = pytest.importorskip("wasmtime", reason="pip install wasmtime")
        self.store = wasmtime.Store()
        instance = wasmtime.Instance(self.store, wasmtime.Module(self.store.engine, module), [])
        self.exports = instance.exports(self.store)
        self.memory = self.exports["memory"]
        self.memory.grow(self.store, 2)
        self.heap = self.exports["__heap_base"].value(self.store)

    def call(self, name, *args):
        return self.exports[name](self.store, *args)

    def put(self, data: bytes, at: int) -> int:
        self.memory.write(self.store, data, at)
        return at

    def get(self, at: int, size: int) -> bytes:
        return bytes(self.memory.read(self.store, at, at + size))


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_same_as_native(variant, compiled):
    wasm, native = Wasm(compiled(variant)), Native(variant)
    about, rng = variant.manifest, random.Random(f"wasm {variant}")
    ctx = wasm.heap + -wasm.heap % 16
    key_at = ctx + wasm.call("cm_ctx_bytes") + 1
    in_at, out_at = key_at + 100, key_at + 3000
    for key_bits in about["key_bits"]:
        key = rng.randbytes(key_bits // 8)
        wasm.put(key, key_at)
        if about["kind"] == "block":
            data = rng.randbytes(about["block_bytes"] * 20)
            wasm.put(data, in_at)
            for direction, setup in (("encrypt", ""), ("decrypt", "_decrypt")):
                wasm.call(f"cm_keysetup{setup}", ctx, key_at, len(key))
                wasm.call(f"cm_{direction}_blocks", ctx, in_at, out_at, 20)
                assert wasm.get(out_at, len(data)) == native.ecb(direction, key, data)
                wasm.call(f"cm_{direction}_feedback", ctx, in_at, out_at, 50)
                block = data[: about["block_bytes"]]
                want = native.feedback(direction, key, block, 50)
                assert wasm.get(out_at, len(block)) == want
            continue
        for iv_bits in about["iv_bits"]:
            iv, data = rng.randbytes(iv_bits // 8), rng.randbytes(1999)
            wasm.call("cm_keysetup", ctx, key_at, len(key))
            wasm.call("cm_ivsetup", ctx, wasm.put(iv, in_at), len(iv))
            wasm.put(data, in_at)
            for start, end in ((0, 5), (5, 5), (5, 700), (700, 1999)):
                wasm.call("cm_keystream", ctx, in_at + start, out_at + start, end - start)
            assert wasm.get(out_at, len(data)) == native.xor(native.stream(key, iv), data)
