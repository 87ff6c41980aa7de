"""A cipher whose blocks are not alike: bounds are those of the blocks that were measured."""

from pathlib import Path

import pytest

from ciphermill import engine, manifest

THRESHOLD, MESSAGE = 8192, 16384
PHASES = """
#include "ciphermill.h"

struct cm_ctx { uint32_t key, words[65]; };

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    c->key = key[0] + n;
    for (int i = 0; i < 65; i++) c->words[i] = key[i % n];
}

void cm_ivsetup(struct cm_ctx *c, const uint8_t *iv, uint32_t n) { c->words[64] = iv[0] + n; }

void cm_keystream(struct cm_ctx *c, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    volatile uint32_t *w = c->words;
    for (uint32_t i = 0; i < bytes; i += 4) {
        if (i < THRESHOLD) {
            for (int j = 0; j < 64; j++) {
                uint32_t x = w[j];
                x *= x | 1, x *= x | 1, x *= x | 1, x *= x | 1;
                w[j + 1] = x;
            }
            w[0] = w[64];
        } else {
            for (int j = 0; j < 64; j++) w[j] += c->key;
        }
        cm_store32_le(out + i, cm_load32_le(in + i) ^ w[0]);
    }
}

CM_STREAM_CIPHER(4)
"""


@pytest.mark.parametrize("machine", ["rv32", "leon2"])
def test_a_slow_beginning_does_not_bound_the_rest(tmp_path: Path, machine: str) -> None:
    """The first words wait for 64 times four products, one after the other; those of the steady state for a sum."""
    source = tmp_path / "phases.c"
    source.write_text(PHASES.replace("THRESHOLD", str(THRESHOLD)))
    module = engine.module(manifest.find(str(source)))
    run = engine.measure(module, machine, engine.Options(bytes=MESSAGE))
    assert run.verified
    assert run.bounds["recurrence"] < 64 < run.bounds["lower"] <= run.cycles_per_block
