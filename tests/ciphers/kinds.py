"""Permutations, hash functions, codes, authenticated ciphers and kernels as native code: their vectors,
and messages of every length, alignment and cut."""

from __future__ import annotations

import ctypes

from harness import GUARD, GUARD_BYTE, Variant, build

KINDS = ("permutation", "hash", "mac", "aead", "kernel")


class Primitive:
    """A variant's C functions. Each call has a context that was filled with rubbish before."""

    def __init__(self, variant: Variant, extra: tuple[str, ...] = ("-O2",)):
        self.variant, self.about = variant, variant.manifest
        self.kind, self.block = self.about["kind"], self.about["block_bytes"]
        self.lib = ctypes.CDLL(str(build(variant, extra)))
        if self.kind != "kernel":
            assert self.lib.cm_block_bytes() == self.block

    def _context(self, key: bytes | None = None) -> ctypes.Array:
        size = self.lib.cm_ctx_bytes()
        raw = (ctypes.c_uint64 * ((size + 7) // 8))()
        ctypes.memset(raw, 0xCC, size)
        if key is not None:
            self.lib.cm_keysetup(raw, key, len(key))
        return raw

    def _call(self, name: str, before: list, given: bytes, size: int, after: list, at: int = 0, in_place: bool = False):
        """`name(*before, in, out, *after)`: what it returned and wrote."""
        source = (ctypes.c_char * (at + len(given)))()
        start = ctypes.addressof(source) + at
        ctypes.memmove(start, given, len(given))
        room = max(size, len(given))
        out = ctypes.create_string_buffer(bytes([GUARD_BYTE]) * (room + 2 * GUARD + 16), room + 2 * GUARD + 16)
        first = GUARD + (at * 7 + 3) % 16
        to = ctypes.addressof(out) + first
        if in_place:
            ctypes.memmove(to, given, len(given))
            start = to
        pointers = [ctypes.c_void_p(start), ctypes.c_void_p(to)]
        returned = getattr(self.lib, name)(*before, *pointers, *after)
        around = out.raw[:first] + out.raw[first + (room if in_place else size) :]
        assert set(around) <= {GUARD_BYTE}, f"{self.variant}: {name} wrote outside its output"
        return returned, out.raw[first : first + size]

    def permute(self, state: bytes, at: int = 0, in_place: bool = False) -> bytes:
        return self._call("cm_permute_blocks", [], state, len(state), [len(state) // self.block], at, in_place)[1]

    def digest(self, key: bytes | None, message: bytes, size: int, at: int = 0) -> bytes:
        """Of a message at once."""
        more = [len(message), size] if self.kind == "hash" else [len(message)]
        name = "cm_hash" if self.kind == "hash" else "cm_mac"
        return self._call(name, [self._context(key)], message, size, more, at)[1]

    def pieces(self, key: bytes | None, message: bytes, size: int, rng) -> bytes:
        """The same, absorbed in several calls."""
        ctx, left = self._context(key), message
        self.lib.cm_init(ctx)
        while len(left) > self.block:
            blocks = rng.randint(1, (len(left) - 1) // self.block)
            self.lib.cm_absorb(ctx, left[: blocks * self.block], blocks)
            left = left[blocks * self.block :]
        return self._call("cm_final", [ctx], left, size, [len(left), size])[1]

    def seal(self, v: dict, data: bytes, decrypt: bool, at: int = 0, in_place: bool = False) -> tuple[int, bytes]:
        tag = self.lib.cm_tag_bytes()
        length = len(data) - (tag if decrypt else 0)
        more = [v["nonce"], v["ad"], length, len(v["ad"])]
        name, size = ("cm_aead_decrypt", length) if decrypt else ("cm_aead_encrypt", length + tag)
        return self._call(name, [self._context(v["key"])], data, size, more, at, in_place)

    def kernel(self, buffers: dict[str, bytes]) -> dict[str, bytes]:
        made, arguments = {}, []
        for p in self.about["parameters"]:
            if "buffer" not in p:
                arguments.append(p.get("value", 1))
                continue
            held = buffers.get(p["buffer"], bytes(p["bytes"]))
            made[p["buffer"]] = ctypes.create_string_buffer(held, p["bytes"])
            arguments.append(made[p["buffer"]])
        getattr(self.lib, self.about["function"])(*arguments)
        return {name: held.raw for name, held in made.items()}

    def check(self, data: dict) -> int:
        """Every vector of a file; how many there were."""
        assert data["kind"] == self.kind and data["vectors"], data["file"]
        for vector in data["vectors"]:
            name = f"{self.variant} {data['file']} {vector['id']}"
            if self.kind == "kernel":
                before, after = ({k: bytes.fromhex(b) for k, b in vector[way].items()} for way in ("in", "out"))
                made = self.kernel(before)
                assert {k: made[k] for k in after} == after, name
                continue
            v = {k: bytes.fromhex(b) for k, b in vector.items() if k != "id"}
            if self.kind == "permutation":
                assert self.permute(v["input"]) == v["output"], name
            elif self.kind == "aead":
                sealed = v["ciphertext"] + v["tag"]
                assert self.seal(v, v["plaintext"], False)[1] == sealed, name
                assert self.seal(v, sealed, True) == (0, v["plaintext"]), name
                for bit in range(8 * len(sealed) - 8 * len(v["tag"]), 8 * len(sealed), 37):
                    wrong = bytearray(sealed)
                    wrong[bit // 8] ^= 1 << bit % 8
                    assert self.seal(v, bytes(wrong), True)[0] != 0, f"{name}: bit {bit} of the tag"
            else:
                want = v["digest" if self.kind == "hash" else "tag"]
                assert self.digest(v.get("key"), v["message"], len(want)) == want, name
        return len(data["vectors"])

    def check_shapes(self, rng) -> None:
        """Every alignment, in place and not; messages of every length and in pieces; opening undoes sealing."""
        if self.kind == "permutation":
            data = rng.randbytes(3 * self.block)
            want = b"".join(self.permute(data[i : i + self.block]) for i in range(0, len(data), self.block))
            for at in range(16):
                assert self.permute(data, at) == self.permute(data, at, True) == want
            chain = data[: self.block]
            for _ in range(4):
                chain = self.permute(chain)
            assert self._call("cm_permute_feedback", [], data[: self.block], self.block, [4])[1] == chain
        elif self.kind in ("hash", "mac"):
            size = self.lib.cm_tag_bytes()
            key = rng.randbytes(self.about["key_bits"][0] // 8) if self.kind == "mac" else None
            seen = set()
            for length in [*range(2 * self.block + 2), 5 * self.block + 3, 40 * self.block]:
                message = rng.randbytes(length)
                want = self.digest(key, message, size)
                assert self.digest(key, message, size, length % 16) == self.pieces(key, message, size, rng) == want
                seen.add(want)
            assert len(seen) >= 2 * self.block
        elif self.kind == "aead":
            for bits in self.about["key_bits"]:
                v = {"key": rng.randbytes(bits // 8), "nonce": rng.randbytes(self.about["iv_bits"][0] // 8)}
                for length in range(2 * self.block + 2):
                    v["ad"], data = rng.randbytes(rng.randrange(50)), rng.randbytes(length)
                    sealed = self.seal(v, data, False)[1]
                    at = length % 16
                    assert self.seal(v, data, False, at, True)[1] == sealed
                    assert self.seal(v, sealed, True, at)[:2] == (0, data)
                    assert self.seal({**v, "ad": v["ad"] + b"\0"}, sealed, True)[0] != 0
