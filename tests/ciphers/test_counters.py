"""The block counters of Salsa20 and ChaCha past 2^32, where no message of ours would reach: the
counter is set in the context itself, whose layout is that of the specifications' state."""

import ctypes
import random
import sys

import pytest
from harness import ROOT, Native, Variant

sys.path.insert(0, str(ROOT / "tests"))

from reference import salsa20


def streams():
    for counter in (2**32 - 2, 2**32 - 1, 2**33 + 5, 2**64 - 2):
        yield "salsa20", 8, 8, counter, salsa20.salsa20
        yield "chacha20", 12, 8, counter, salsa20.chacha


@pytest.mark.parametrize(
    "cipher,word,iv_bytes,counter,reference", list(streams()), ids=lambda v: getattr(v, "__name__", v)
)
def test_carry(cipher, word, iv_bytes, counter, reference):
    rng = random.Random(counter)
    native = Native(Variant(cipher, "r20"))
    key, iv = rng.randbytes(32), rng.randbytes(iv_bytes)
    ctx = native.stream(key, iv)
    state = ctypes.cast(ctx, ctypes.POINTER(ctypes.c_uint32))
    state[word], state[word + 1] = counter % 2**32, counter >> 32
    want = reference(key, iv, 300, 20, counter)
    assert native.xor(ctx, bytes(300)) == want


def test_a_short_counter_leaves_the_iv_alone():
    """With a 12-byte IV ChaCha's counter has 32 bits and does not carry into the IV."""
    native = Native(Variant("chacha20", "r20"))
    key, iv = bytes(range(32)), bytes(range(12))
    ctx = native.stream(key, iv)
    ctypes.cast(ctx, ctypes.POINTER(ctypes.c_uint32))[12] = 2**32 - 1
    want = salsa20.chacha(key, iv, 64, 20, 2**32 - 1) + salsa20.chacha(key, iv, 64, 20, 0)
    assert native.xor(ctx, bytes(128)) == want
