"""The types of a measurement are those of the core: of its source, and of what it writes."""

from __future__ import annotations

from typing import get_type_hints

import measured_types
import msgspec
import pytest
from samples import XOR_CIPHER

import ciphermill as cm
from ciphermill import engine, manifest
from ciphermill.measured_types import Fields

#: Each has fields that others have not: a cluster and its loops, an out-of-order core with caches,
#: a trace, a key set-up, a keystream, memory that is not aligned, an exact scheduler's word.
KINDS = {
    "loops": {"cipher": "rijndael", "on": "c6201", "bytes": 64},
    "caches": {"cipher": "rc6", "on": "core2", "bytes": 4096},
    "set-up": {"cipher": "rc6", "on": "rv32", "direction": "keysetup"},
    "stream": {"cipher": "salsa20", "on": "leon2", "bytes": 256},
    "one block": {"cipher": "rijndael", "on": "epic", "blocks": "single", "bytes": 64, "optimise": "size"},
}

TYPES = get_type_hints(Fields) | {"with": list[str]}


def test_they_are_of_the_core_s_source():
    """A field that is new in the core is new here: `make types`."""
    assert measured_types.OUT.read_text() == measured_types.made(), "run `make types`"


def check(m: dict) -> None:
    """Every key has a type, and every value is of it; what has no type would be left out."""
    assert m.keys() <= TYPES.keys()
    for key, value in m.items():
        assert msgspec.convert(value, TYPES[key]) == value, key


@pytest.mark.parametrize("kind", KINDS)
def test_a_measurement_is_of_them(kind):
    asked = dict(KINDS[kind])
    m = cm.run(asked.pop("cipher"), **asked).to_dict()
    check(m)
    # A key that is not declared is seen.
    for wrong in ({**m, "cycle": 1}, {**m, "bounds": {**m["bounds"], "uper": 1.0}}):
        with pytest.raises(AssertionError):
            check(wrong)


def test_a_trace_is_of_them():
    asked = engine.Options(bytes=64, trace={"first": None, "count": 8})
    m = engine.measure(engine.module(manifest.find("rc6")), "boom", asked).to_dict()
    assert len(m["pipeline"]) >= 8
    check(m)


def test_a_wrong_alignment_is_of_them(write):
    words = (
        "const uint32_t *key = (const uint32_t *)(const void *)(ctx->key + 1); for (int i = 0; i < 16; i += 4) "
        "cm_store32_le(out + i, cm_load32_le(in + i) ^ key[i / 4]);"
    )
    old = "for (int i = 0; i < 16; i++) out[i] = in[i] ^ ctx->key[i];"
    assert old in XOR_CIPHER
    source = write("x.c", XOR_CIPHER.replace(old, words).replace("key[16]", "key[20]"))
    m = cm.run(source, on="leon2", bytes=64).to_dict()
    assert m["misaligned"]["first"]["function"]
    check(m)
