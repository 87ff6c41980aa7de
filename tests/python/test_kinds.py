"""Kinds of primitives beside block and stream ciphers: what is measured of them, what Python calls them by,
and what is said where a manifest or a call does not fit."""

from __future__ import annotations

import hashlib
import json

import pytest

import ciphermill as cm
from ciphermill import engine, manifest

KINDS = ("permutation", "hash", "mac", "aead", "kernel")
VARIANTS = [
    (cipher.name, variant)
    for cipher in map(manifest.find, manifest.names())
    for variant in cipher.variants
    if cipher.of(variant).kind in KINDS
]


@pytest.mark.parametrize("cipher, variant", VARIANTS)
def test_every_direction_is_verified(cipher, variant):
    module = engine.module(manifest.find(cipher), variant)
    for direction, blocks in module.modes.items():
        m = cm.run(cipher, "rv32", variant=variant, direction=direction)
        assert m.verified and m.provenance["vectors"] > 0, (direction, m.failure)
        assert m.blocks == blocks[0] and m.bounds["lower"] <= m.cycles_per_block
        assert (m.key_bits == 0) == (module.kind not in manifest.KEYED)
        if module.kind in ("hash", "mac", "aead") and direction != "keysetup":
            assert [message["bytes"] for message in m.messages] == [16, 64, 576, 1536]
            # A message has a beginning and an end besides its bytes.
            assert m.messages[0]["cycles"] > m.cycles_per_byte * m.messages[0]["bytes"]
        else:
            assert "messages" not in m


#: A core that schedules at run time, one of a microcontroller, and two that are scheduled for; small code, as loops.
MACHINES = ("zen5", "cortex-m4", "c64x", "leon2")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cipher, variant", [
    ("keccak", "permutation"), ("ascon", "hash"), ("poly1305", "plain"), ("ascon", "aead"), ("ntt-mlkem", "multiply"),
])  # fmt: skip
def test_each_kind_on_each_sort_of_machine(cipher, variant, machine):
    short = {} if "ntt" in cipher else {"bytes": 400}
    m = cm.run(cipher, machine, variant=variant, unroll=False, **short)
    assert m.verified, m.failure


def test_a_loop_behind_hundreds_of_instructions_that_make_its_values():
    """How far its pointers are followed back is the same for its schedule and for the check of that."""
    m = cm.run("blake3", "itanium2")
    assert m.verified and m.loops, m.failure


def test_independent_states_are_carried_together():
    one = cm.run("speck", "zen5", blocks="single")
    two = cm.run("speck", "zen5", blocks="multi", jam=2)
    assert one.verified and two.verified and two.cycles_per_block < one.cycles_per_block


def test_a_hash_by_its_name():
    message = bytes(range(200))
    assert cm.cipher("sha256").hash(message) == hashlib.sha256(message).digest()
    assert cm.cipher("keccak", "shake128").hash(message, 333) == hashlib.shake_128(message).digest(333)


def test_a_permutation_of_several_states():
    state = cm.cipher("keccak").permute(bytes(400))
    assert state[:200] == state[200:] and state[:8].hex() == "e7dde140798f25f1"


def test_sealing_and_opening():
    c = cm.cipher("chacha20-poly1305")
    sealed = c.encrypt(bytes(32), bytes(12), b"head", b"body")
    assert len(sealed) == 20 and c.decrypt(bytes(32), bytes(12), b"head", sealed) == b"body"
    with pytest.raises(cm.InputError, match="the tag is wrong"):
        c.decrypt(bytes(32), bytes(12), b"other", sealed)


def test_a_kernel_by_its_buffers():
    ntt, inverse = cm.cipher("ntt-mldsa"), cm.cipher("ntt-mldsa", "inverse")
    one = (1).to_bytes(4, "little") + bytes(1020)
    transformed = ntt.run(polynomial=one)["polynomial"]
    # The constant 1 has the value 1 at every root.
    assert transformed == (1).to_bytes(4, "little") * 256
    assert inverse.run(polynomial=transformed)["polynomial"] == one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cm.cipher("sha256").encrypt(b"k", b"m"), "sha256 is a hash function; use hash, not encrypt or decrypt"),
        (lambda: cm.cipher("rijndael").hash(b""), "is a block cipher; use encrypt or decrypt, not hash"),
        (lambda: cm.cipher("poly1305").mac(bytes(16), b""), "a key of 16 bytes; it must be 32 bytes"),
        (lambda: cm.cipher("aes-gcm").encrypt(bytes(16), bytes(8), b"", b""), "a nonce of 8 bytes; it must be 12 bytes"),
        (lambda: cm.cipher("aes-gcm").encrypt(bytes(16), b""), "give a key, a nonce, associated data, and data"),
        (lambda: cm.cipher("aes-gcm").decrypt(bytes(16), bytes(12), b"", b"short"), "the tag alone has 16"),
        (lambda: cm.cipher("keccak").permute(bytes(7)), "7 bytes; it must be whole states of 200 bytes"),
        (lambda: cm.cipher("ntt-mlkem").run(polinomial=b""), "did you mean 'polynomial'?"),
        (lambda: cm.cipher("ntt-mlkem").run(polynomial=b"12"), "polynomial has 512 bytes, and 2 are given"),
        (lambda: cm.run("sha256", "rv32", direction="encrypt"), "--direction encrypt: sha256 is a hash function; use hash"),
        (lambda: cm.run("sha256", "rv32", direction="keysetup"), "is a hash function; use hash"),
        (lambda: cm.run("sha256", "rv32", key_bits=128), "sha256 takes no key; leave --key-bits out"),
        (lambda: cm.run("sha256", "rv32", blocks="multi"), "--blocks multi: the blocks of one message are no independent messages"),
        (lambda: cm.run("sha256", "rv32", jam=2), "--jam 2: only blocks that do not wait"),
        (lambda: cm.run("ntt-mlkem", "rv32", bytes=1024), "the kernel has no parameter that counts blocks"),
        (lambda: cm.run("chacha20-poly1305", "rv32", direction="mac"), "use encrypt, decrypt or authenticate"),
    ],
)  # fmt: skip
def test_input_errors(call, message):
    with pytest.raises(cm.InputError) as caught:
        call()
    assert message in str(caught.value)


SUM = """\
void sum(unsigned *to, const unsigned *from, const unsigned *table, unsigned blocks)
{
    for (; blocks != 0; blocks--, from += 4)
        *to++ = from[0] + table[from[1] & 7] + from[2] + from[3];
}
"""
KERNEL = """\
name = "sum"
kind = "kernel"
block_bytes = 16
function = "sum"
parameters = [
    {{ buffer = "to", access = "write", bytes = 4, align = 4 }},
    {{ buffer = "from", access = "read", bytes = 16, align = 4, below = 1000 }},
    {{ buffer = "table", access = "read", bytes = 32, shared = true, align = 4 }},
    {{ {count} }},
]
[variants.plain]
sources = ["sum.c"]
"""


def test_a_kernel_of_counted_blocks(write):
    write("sum.c", SUM)
    path = write("cipher.toml", KERNEL.format(count='count = "blocks"'))
    m = cm.run(path, "rv32", bytes=1024)
    assert m.verified and (m.blocks, m.bytes, m.direction) == ("multi", 1024, "run")
    assert cm.run(path, "c64x", jam=2).verified
    # A table's index that depends on what is read.
    assert m.constant_time is False and m.leaks["kinds"]["address"] == m.leaks["places"]
    given = {"from": b"".join(n.to_bytes(4, "little") for n in (1, 9, 3, 4)), "table": bytes(4) + b"\5" + bytes(27)}
    assert cm.cipher(path).run(**given)["to"] == bytes([13, 0, 0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("count = \"blocks\"", 'count = "blocks", value = 1'), "by one of buffer, value and count"),
        (('access = "write", ', ""), "parameters[0].access: missing"),
        (('access = "write"', 'access = "writes"'), "'write'"),
        (("align = 4", "align = 3"), "parameters[0].align: is 3, must be 1 or 2 or 4"),
        (('function = "sum"\n', ""), "function: missing"),
        (('function = "sum"', 'function = "a b"'), "it is the name of a function in C"),
        (('function = "sum"', 'function = "total"'), "total"),
        (('kind = "kernel"', 'kind = "hash"'), "is for kernels"),
        (('kind = "kernel"', 'kind = "kernel"\nkey_bits = [128]'), "a kernel takes none"),
        ((', {{ count', ""), ""),
    ],
)  # fmt: skip
def test_what_a_manifest_says_of_a_kernel(refused, write, change, message):
    write("sum.c", SUM)
    text = KERNEL.format(count='count = "blocks"')
    if not message:
        text, message = (
            KERNEL.format(count="value = 1").replace("    { value = 1 },\n", ""),
            "the manifest lists 3 parameters",
        )
    else:
        assert change[0] in text
        text = text.replace(change[0], change[1], 1)
    assert message in refused("run", write("cipher.toml", text), "--on", "rv32")


def test_vectors_of_another_kind_are_refused(refused, write):
    write("sum.c", SUM)
    write(
        "v.json",
        json.dumps({"source": "made", "kind": "hash", "vectors": [{"id": "1", "message": "", "digest": "00"}]}),
    )
    text = KERNEL.format(count='count = "blocks"') + '[[vectors]]\nfile = "v.json"\nsource = "made"\n'
    assert "kind `hash` is for a hash function, and this is a kernel" in refused(
        "run", write("cipher.toml", text), "--on", "rv32"
    )


def test_a_wrong_digest_is_told(cli, write):
    source = (manifest.paths.CIPHERS / "sha256" / "sha256.c").read_text().replace('"../ciphermill.h"', '"ciphermill.h"')
    write("mine.c", source)
    vectors = json.loads((manifest.paths.CIPHERS / "sha256" / "vectors" / "nist.json").read_text())
    vectors["vectors"] = vectors["vectors"][:2]
    vectors["vectors"][1]["digest"] = "00" * 32
    write("v.json", json.dumps(vectors))
    path = write("cipher.toml", 'name = "mine"\nkind = "hash"\nblock_bytes = 64\n[variants.plain]\nsources = ["mine.c"]\n'
                 '[[vectors]]\nfile = "v.json"\nsource = "made"\n')  # fmt: skip
    answer = cli("run", path, "--on", "rv32")
    assert answer.code != 0 and vectors["vectors"][1]["id"] in answer.err


def test_a_single_file_is_what_it_exports(write):
    source = (
        (manifest.paths.CIPHERS / "blake2s" / "blake2s.c").read_text().replace('"../ciphermill.h"', '"ciphermill.h"')
    )
    m = cm.run(write("mine.c", source), "rv32", bytes=128)
    assert m.verified and (m.direction, m.key_bits, m.block_bytes) == ("hash", 0, 64)


def test_the_host_runs_ciphers_only(refused):
    assert "natively only block and stream ciphers" in refused("host", "sha256")


@pytest.mark.parametrize("machine", ["epic", "itanium2"])
def test_loops_inside_a_kernel_are_pipelined(machine):
    """With seven layers unrolled the butterflies' accesses are known to be apart: on itanium2 ten times the bound without it."""
    measured = cm.run("ntt-mlkem", machine)
    assert measured.cycles_per_block < 1.3 * measured.bounds["lower"]
    assert sum(loop["stages"] > 1 for loop in measured["loops"]) >= 4
