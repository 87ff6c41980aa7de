"""All official vectors, Monte Carlo sets included, on natively compiled ciphers."""

import random

import checks
import pytest
from harness import Native, variants, vector_sets


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_all_vectors(variant):
    native = Native(variant)
    assert native.block_bytes == variant.manifest["block_bytes"]
    sets = vector_sets(variant)
    counts = {s["file"]: checks.check_set(native, s) for s in sets}
    assert counts, f"{variant} has no vectors"


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_vectors_cover_every_key_size(variant):
    seen = {4 * len(v["key"]) for s in vector_sets(variant) for v in s["vectors"]}
    assert seen >= set(variant.manifest["key_bits"])


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_alignments_lengths_and_cuts(variant):
    checks.check_shapes(Native(variant), random.Random(f"shapes {variant}"))


def test_a_wrong_vector_is_noticed():
    """The checks can fail: one bit changed anywhere in a vector is reported."""
    native = Native(next(v for v in variants() if str(v) == "rijndael-compact"))
    data = next(s for s in vector_sets(native.variant) if s["file"] == "vectors/fips197.json")
    for field in ("key", "plaintext", "ciphertext"):
        vector = dict(data["vectors"][0])
        vector[field] = f"{int(vector[field][0], 16) ^ 1:x}" + vector[field][1:]
        with pytest.raises(AssertionError):
            checks.check_set(native, {**data, "vectors": [vector]})
