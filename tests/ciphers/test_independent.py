"""The natively compiled ciphers against independent implementations: random keys, lengths from 0
to 1,000 bytes, every alignment. A judge that is not installed is skipped by name; a cipher that
no judge on this machine knows fails, so that none goes unjudged unnoticed."""

import random

import judges
import pytest
from harness import Native, variants

KEYS = 6


def compare(native, judge, rng) -> int:
    """How many comparisons were made; 0 if the judge does not have the cipher."""
    variant, about = native.variant, native.variant.manifest
    slow = isinstance(judge, judges.Reference)
    made = 0
    for key_bits in about["key_bits"]:
        for iv_bits in about["iv_bits"] or [None]:
            for _ in range(2 if slow else KEYS):
                key = rng.randbytes(key_bits // 8)
                if iv_bits is None:
                    data = rng.randbytes(native.block_bytes * (1000 // native.block_bytes))
                    want = judge.block(variant.judged, key, data[:160] if slow else data)
                else:
                    iv, data = rng.randbytes(iv_bits // 8), rng.randbytes(1000)
                    want = judge.stream(variant.judged, variant.name, key, iv, data)
                if want is None:
                    continue
                if iv_bits is None:
                    made += compare_block(native, key, data[: len(want)], want, rng)
                else:
                    made += compare_stream(native, key, iv, data, want, rng)
    return made


def compare_block(native, key, data, want, rng) -> int:
    made = 0
    for length in range(0, len(data) + 1, native.block_bytes):
        at = rng.randrange(16)
        got = native.ecb("encrypt", key, data[:length], at, bool(at & 1))
        assert got == want[:length], f"{native.variant} {key.hex()} {length} bytes at {at}"
        back = native.ecb("decrypt", key, want[:length], 15 - at, bool(at & 2))
        assert back == data[:length], f"{native.variant} {key.hex()} decrypt"
        made += 2
    return made


def compare_stream(native, key, iv, data, want, rng) -> int:
    made = 0
    for length in range(1001):
        at = rng.randrange(16)
        if length % 5 and native.ctx_bytes > 2000:
            continue
        got = native.xor(native.stream(key, iv, at), data[:length], at, bool(at & 1))
        assert got == want[:length], f"{native.variant} {key.hex()} {iv.hex()} {length} at {at}"
        made += 1
    return made


def pairs():
    for variant in variants():
        for name, kind in judges.ALL.items():
            if variant.judged in kind.CIPHERS:
                yield pytest.param(variant, name, id=f"{variant}-{name}")


@pytest.mark.parametrize("variant,name", list(pairs()))
def test_against(variant, name):
    try:
        judge = judges.judge(name)
    except judges.Missing as missing:
        pytest.skip(str(missing))
    if not compare(Native(variant), judge, random.Random(f"{variant} {name}")):
        pytest.skip(f"{name} has no {variant}")


def knows(judge, variant) -> bool:
    about = variant.manifest
    key = bytes(range(about["key_bits"][-1] // 8))
    if about["kind"] == "block":
        return judge.block(variant.judged, key, bytes(about["block_bytes"])) is not None
    iv = bytes(about["iv_bits"][-1] // 8)
    return judge.stream(variant.judged, variant.name, key, iv, b"0") is not None


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_some_judge_knows(variant):
    """Where only a library that is not installed knows a cipher, its vectors have to do."""
    missing = []
    for name, kind in judges.ALL.items():
        if variant.judged not in kind.CIPHERS:
            continue
        try:
            if knows(judges.judge(name), variant):
                return
        except judges.Missing as reason:
            missing.append(str(reason))
    if missing:
        pytest.skip(f"no judge for {variant}: " + "; ".join(missing))
    pytest.fail(f"no independent implementation of {variant}")
