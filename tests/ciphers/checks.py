"""What a native cipher must do, as plain functions: used by the tests in this process and,
under the sanitizers, by a child process (see test_sanitizers.py)."""

from __future__ import annotations

from harness import Native

XOR_DIGEST_BYTES = 64


def check_set(native: Native, data: dict) -> int:
    """Runs every vector of one file; returns how many there were."""
    assert data["vectors"], data["file"]
    if data["kind"] == "mct":
        check_mct(native, data)
    else:
        check = {"block": check_block, "stream": check_stream}[data["kind"]]
        for vector in data["vectors"]:
            check(native, vector, f"{native.variant} {data['file']} {vector['id']}")
    return len(data["vectors"])


def check_block(native: Native, vector: dict, name: str) -> None:
    key, plain, cipher = (bytes.fromhex(vector[k]) for k in ("key", "plaintext", "ciphertext"))
    assert native.ecb("encrypt", key, plain).hex() == cipher.hex(), f"{name}: encrypt"
    assert native.ecb("decrypt", key, cipher).hex() == plain.hex(), f"{name}: decrypt"


def check_mct(native: Native, data: dict) -> None:
    """NIST's Monte Carlo test of 1998: `inner` times x = E(x); then the key is changed by the
    last bits of the last two results, and the last result is the next input."""
    next_key = next_input = None
    for vector in data["vectors"]:
        name = f"{native.variant} {data['file']} {vector['id']}"
        key, given = bytes.fromhex(vector["key"]), bytes.fromhex(vector["input"])
        if not vector.get("starts"):
            assert (key, given) == (next_key, next_input), f"{name}: not the next of the chain"
        almost = native.feedback(data["direction"], key, given, data["inner"] - 1)
        last = native.feedback(data["direction"], key, almost, 1)
        assert last.hex() == vector["output"], name
        next_key = bytes(a ^ b for a, b in zip(key, (almost + last)[-len(key) :], strict=True))
        next_input = last


def check_stream(native: Native, vector: dict, name: str) -> None:
    key, iv = bytes.fromhex(vector["key"]), bytes.fromhex(vector["iv"])
    text = bytes.fromhex(vector["plaintext"]) if "plaintext" in vector else bytes(vector["length"])
    stream = native.xor(native.stream(key, iv), text)
    for chunk in vector["chunks"]:
        want = chunk["hex"]
        got = stream[chunk["offset"] : chunk["offset"] + len(want) // 2].hex()
        assert got == want, f"{name}: at {chunk['offset']}"
    if "xor_digest" in vector:
        digest = bytearray(XOR_DIGEST_BYTES)
        for i, byte in enumerate(stream):
            digest[i % XOR_DIGEST_BYTES] ^= byte
        assert digest.hex() == vector["xor_digest"], f"{name}: xor-digest"


def check_shapes(native: Native, rng) -> None:
    """Every alignment, in place and not, and for streams every way of cutting a message gives
    the same bytes; decryption undoes encryption under random keys."""
    about = native.variant.manifest
    for bits in about["key_bits"]:
        key = rng.randbytes(bits // 8)
        if about["kind"] == "block":
            data = rng.randbytes(native.block_bytes * 9)
            want = native.ecb("encrypt", key, data)
            for at in range(16):
                for in_place in (False, True):
                    assert native.ecb("encrypt", key, data, at, in_place) == want
                    assert native.ecb("decrypt", key, want, at, in_place) == data
            chain = data[: native.block_bytes]
            for _ in range(5):
                chain = native.ecb("encrypt", key, chain)
            first = data[: native.block_bytes]
            assert native.feedback("encrypt", key, first, 5) == chain
            assert native.feedback("decrypt", key, chain, 5) == first
            assert native.feedback("encrypt", key, first, 0) == first
        else:
            check_stream_shapes(native, rng, key)


def check_stream_shapes(native: Native, rng, key: bytes) -> None:
    for iv_bits in native.variant.manifest["iv_bits"]:
        iv = rng.randbytes(iv_bits // 8)
        data = rng.randbytes(1000)
        want = native.xor(native.stream(key, iv), data)
        assert want != data
        for at in range(16):
            for in_place in (False, True):
                assert native.xor(native.stream(key, iv, at), data, at, in_place) == want
        for length in range(0, 1001, 1 if native.block_bytes < 100 else 3):
            assert native.xor(native.stream(key, iv), data[:length]) == want[:length]
        for _ in range(40):
            ctx, done, out = native.stream(key, iv), 0, b""
            while done < len(data):
                step = rng.choice([0, 1, 3, native.block_bytes, rng.randrange(200)])
                out += native.xor(ctx, data[done : done + step], rng.randrange(16))
                done = min(len(data), done + step)
            assert out == want
        # A second IV under the same key starts afresh.
        ctx = native.stream(key, rng.randbytes(len(iv)))
        native.xor(ctx, data[:77])
        native.set_iv(ctx, iv)
        assert native.xor(ctx, data) == want
