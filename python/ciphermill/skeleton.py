"""The files of a new cipher: what ``ciphermill new`` writes.

A skeleton is a whole cipher, only a worthless one: it compiles, encrypts,
decrypts and passes its own vector, so that every later failure is the work of
the last edit. The places to fill in say what belongs there. The toy cipher
mixes the key into four words with exclusive-or, rotation and addition; as a
block cipher it can be undone, as a stream cipher it is applied to a counter.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import manifest, paths, skeletons
from ._core import InputError
from .suggest import did_you_mean

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def write(name: str, kind: str, into: Path) -> Path:
    """Write the skeleton into ``into/name``; the folder written.

    Nothing is overwritten: the folder must not exist yet.
    """
    if not NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_0123456789")
        hint = f", for instance {near}" if NAME.fullmatch(near) else ""
        raise InputError(f"new {name}: a name is a lower-case letter, then letters, digits, - or _{hint}")
    if name in manifest.names():
        raise InputError(f"new {name}: a built-in cipher has that name; choose another, for instance my-{name}")
    if kind not in manifest.KINDS:
        raise InputError(f"--kind {kind}: it is {' or '.join(manifest.KINDS)}{did_you_mean(kind, manifest.KINDS)}")
    if not into.is_dir():
        raise InputError(f"--into {into}: no such folder; make it first, or leave --into out to write here")
    folder = into / name
    if folder.exists() or folder.is_symlink():
        raise InputError(
            f"{paths.shown(folder)} is there already and nothing is overwritten; choose another name, "
            "another folder with --into, or move it away"
        )
    try:
        (folder / "vectors").mkdir(parents=True)
        for file, text in files(name, kind).items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{paths.shown(folder)}: {error.strerror}; choose another folder with --into") from None
    return folder


def files(name: str, kind: str) -> dict[str, str]:
    """Every file of a skeleton: its name in the folder and its content."""
    source = f"{name.replace('-', '_')}.c"
    values = {"NAME": name, "SOURCE": source, "HEADER": str((paths.CIPHERS / "ciphermill.h").resolve().parent)}

    def fill(template: str) -> str:
        for key, value in values.items():
            template = template.replace(f"@{key}@", value)
        return template

    if kind in ("block", "stream"):
        block = kind == "block"
        parts = (MANIFEST_BLOCK, BLOCK, VECTORS_BLOCK) if block else (MANIFEST_STREAM, STREAM, VECTORS_STREAM)
    else:
        parts = skeletons.parts(kind)
    text, code, vectors = parts
    return {
        manifest.FILE: fill(text),
        source: fill(code),
        "vectors/example.json": vectors,
        "README.md": fill(README if kind in manifest.KEYED else README.replace(KEYSETUP, "")),
    }


MANIFEST_BLOCK = """\
name = "@NAME@"
title = "@NAME@"          # as its designers write it
kind = "block"
block_bytes = 16
key_bits = [128]          # every length that cm_keysetup accepts
default_variant = "plain"

# One table a way of writing the cipher. `sources` stand beside this file; `flags` go to the compiler.
[variants.plain]
sources = ["@SOURCE@"]
trades = "nothing yet"    # what this variant gives, and what it takes
constant_time = true      # does no branch or address depend on key or message? `ciphermill audit` finds out, and `run` contradicts

# One entry a file of test vectors. A measurement counts as verified only if they pass.
[[vectors]]
file = "vectors/example.json"
source = "the toy cipher of the skeleton; put the published vectors here"
"""

MANIFEST_STREAM = MANIFEST_BLOCK.replace('kind = "block"\n', 'kind = "stream"\n').replace(
    "block_bytes = 16\n", "block_bytes = 16          # bytes of keystream made at once\n"
).replace(
    "cm_keysetup accepts\n", "cm_keysetup accepts\niv_bits = [64]            # the same for cm_ivsetup; 0: works without an IV\n"
)  # fmt: skip

BLOCK = """\
/*
 * @NAME@, a block cipher. What stands here is a toy that shows where things go.
 *
 * ciphermill.h says what each function promises, and has loads and stores of words from
 * bytes (cm_load32_le, cm_store32_be, ...) and rotations (cm_rotl32, ...). No library is
 * needed; memcpy, memset, memmove and memcmp are there if <string.h> is included.
 */
#include "ciphermill.h"

/* Fill in: all that the cipher keeps between calls, most of all the expanded key. */
struct cm_ctx {
    uint32_t key[4];
};

/* Fill in: expand the key. key_bytes is one of the manifest's key_bits, over 8. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;
    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i);
}

/* Fill in: expand the key for decryption, if that is something else. */
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

/* Fill in: one block. Read all of `in` before writing `out`: they may be the same buffer. */
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t i;
    for (i = 0; i < 4; i++) {
        uint32_t x = cm_load32_le(in + 4 * i);
        x = cm_rotl32(x ^ ctx->key[i], 7) + ctx->key[(i + 1) % 4];
        cm_store32_le(out + 4 * i, x);
    }
}

/* Fill in: the inverse of cm_encrypt. */
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t i;
    for (i = 0; i < 4; i++) {
        uint32_t x = cm_load32_le(in + 4 * i);
        x = cm_rotr32(x - ctx->key[(i + 1) % 4], 7) ^ ctx->key[i];
        cm_store32_le(out + 4 * i, x);
    }
}

/* Writes the loops over many blocks; the number is block_bytes of the manifest. */
CM_BLOCK_CIPHER(16)
"""

STREAM = """\
/*
 * @NAME@, a stream cipher. What stands here is a toy that shows where things go.
 *
 * ciphermill.h says what each function promises, and has loads and stores of words from
 * bytes (cm_load32_le, cm_store32_be, ...) and rotations (cm_rotl32, ...). No library is
 * needed; memcpy, memset, memmove and memcmp are there if <string.h> is included.
 */
#include "ciphermill.h"

/* Bytes of keystream made at once: block_bytes of the manifest. */
#define BLOCK 16

/* Fill in: all that the cipher keeps between calls. The last field is for cm_keystream. */
struct cm_ctx {
    uint32_t key[4];
    uint32_t state[4];
    CM_UNUSED_KEYSTREAM(BLOCK);
};

/* Fill in: expand the key. key_bytes is one of the manifest's key_bits, over 8. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;
    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i);
}

/* Fill in: start a new stream. iv_bytes is one of the manifest's iv_bits, over 8. */
void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    (void)iv_bytes;
    ctx->state[0] = cm_load32_le(iv);
    ctx->state[1] = cm_load32_le(iv + 4);
    ctx->state[2] = 0;
    ctx->state[3] = 0;
    ctx->unused = 0;
}

/* Fill in: the next block of keystream, XORed to `in`, which may be `out`. */
static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t i;
    for (i = 0; i < 4; i++) {
        uint32_t x = cm_rotl32(ctx->state[i] ^ ctx->key[i], 7) + ctx->key[(i + 1) % 4];
        cm_store32_le(out + 4 * i, x ^ cm_load32_le(in + 4 * i));
    }
    ctx->state[2]++;
}

/* Writes cm_keystream for messages of any length, and what else the tool asks for. */
CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
"""

VECTORS_BLOCK = """\
{"source": "the toy cipher of the skeleton",
 "kind": "block",
 "vectors": [
  {"id": "1", "key": "000102030405060708090a0b0c0d0e0f", "plaintext": "00112233445566778899aabbccddeeff", "ciphertext": "1c050e174029323b644d565f78616a73"}
]}
"""

VECTORS_STREAM = """\
{"source": "the toy cipher of the skeleton",
 "kind": "stream",
 "vectors": [
  {"id": "1", "key": "000102030405060708090a0b0c0d0e0f", "iv": "0011223344556677", "length": 32, "chunks": [{"offset": 0, "hex": "1c050e174029323b119112940787088a1c050e174029323b919112940787088a"}]}
]}
"""

#: What is said of what has a key.
KEYSETUP = "    ciphermill run cipher.toml --on rv32 --direction keysetup\n"

README = """\
# @NAME@

Fill in, on less than a screen: who designed it and when, how it is built, what is expensive in it on a processor, where the
vectors come from.

    ciphermill run cipher.toml                # on every machine
    ciphermill run cipher.toml --on rv32 --direction keysetup
    ciphermill audit cipher.toml              # branches and addresses that depend on secrets
    ciphermill asm cipher.toml --on rv32

`@SOURCE@` includes `ciphermill.h`; for an editor or a compiler of your own it is in

    -I @HEADER@
"""
