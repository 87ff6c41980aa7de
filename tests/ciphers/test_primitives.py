"""Permutations, hash functions, codes, authenticated ciphers and kernels, natively compiled: their official
vectors, every shape of message, and other people's implementations where Python has them."""

import hashlib
import random

import pytest
from harness import variants, vector_sets
from kinds import KINDS, Primitive


@pytest.mark.parametrize("variant", variants(*KINDS), ids=str)
def test_all_vectors(variant):
    primitive = Primitive(variant)
    counts = {s["file"]: primitive.check(s) for s in vector_sets(variant)}
    assert counts, f"{variant} has no vectors"


@pytest.mark.parametrize("variant", variants("mac", "aead"), ids=str)
def test_vectors_cover_every_key_size(variant):
    seen = {4 * len(v["key"]) for s in vector_sets(variant) for v in s["vectors"] if "key" in v}
    assert seen == set(variant.manifest["key_bits"])


@pytest.mark.parametrize("variant", variants(*KINDS), ids=str)
def test_alignments_lengths_and_cuts(variant):
    Primitive(variant).check_shapes(random.Random(f"shapes {variant}"))


JUDGES = {
    "sha256-plain": hashlib.sha256, "sha512-plain": hashlib.sha512, "blake2s-plain": hashlib.blake2s,
    "keccak-sha3-256": hashlib.sha3_256, "keccak-shake128": hashlib.shake_128, "keccak-shake256": hashlib.shake_256,
}  # fmt: skip


@pytest.mark.parametrize("variant", [v for v in variants("hash") if str(v) in JUDGES], ids=str)
def test_against_hashlib(variant):
    primitive, rng = Primitive(variant), random.Random(f"hashlib {variant}")
    for length in range(400):
        message = rng.randbytes(length)
        judged = JUDGES[str(variant)](message)
        size = judged.digest_size or rng.randrange(1, 500)
        want = judged.digest() if judged.digest_size else judged.digest(size)
        assert primitive.digest(None, message, size) == want, length


def test_a_wrong_vector_is_noticed():
    """The checks can fail: one bit changed anywhere in a vector is reported."""
    for name, fields in (("sha256-plain", ("message", "digest")), ("ascon-aead", ("key", "nonce", "ad", "ciphertext"))):
        primitive = Primitive(next(v for v in variants(*KINDS) if str(v) == name))
        data = vector_sets(primitive.variant)[0]
        whole = next(v for v in data["vectors"] if all(v[f] for f in fields))
        for field in fields:
            vector = whole | {field: f"{int(whole[field][0], 16) ^ 1:x}" + whole[field][1:]}
            with pytest.raises(AssertionError):
                primitive.check({**data, "vectors": [vector]})
