"""Which ciphers let their secrets decide branches and addresses, and where."""

from __future__ import annotations

import json

import pytest
from samples import XOR_CIPHER

CLEAN = [
    ("rijndael", "bitsliced"), ("chacha20", "r20"), ("salsa20", "r20"), ("rc6", "plain"), ("ascon", "plain"),
    ("serpent", "plain"), ("rabbit", "plain"), ("present", "sliced"),
]  # fmt: skip
NOT_CLEAN = [
    ("rijndael", "ttable"), ("rijndael", "compact"), ("rijndael", "sbox-only"), ("twofish", "full-keying"),
    ("sosemanuk", "branching"), ("sosemanuk", "branchless"), ("mars", "plain"), ("hc128", "plain"), ("sm4", "ttable"),
]  # fmt: skip


def audit(cipher, variant=None):
    from ciphermill import audit, manifest

    return audit.run(manifest.find(str(cipher)), variant)


@pytest.mark.parametrize("cipher, variant", CLEAN)
def test_clean(cipher, variant):
    answer = audit(cipher, variant)
    assert answer["clean"] and answer["findings"] == []
    assert answer["reached"] >= 0.9 * answer["sites"] > 0


@pytest.mark.parametrize("cipher, variant", NOT_CLEAN)
def test_not_clean(cipher, variant):
    answer = audit(cipher, variant)
    assert not answer["clean"]
    # Code that the compiler made of several lines has none (hc128's lookups).
    placed = [f for f in answer["findings"] if f["file"] is not None]
    assert placed and (len(placed) == len(answer["findings"]) or cipher == "hc128")
    for finding in placed:
        assert finding["file"].endswith((".c", ".h")) and finding["line"] > 0 and finding["text"]
    branches = [f for f in answer["findings"] if f["kind"] == "branch"]
    assert bool(branches) == (variant == "branching")


def test_the_branch_of_sosemanuk_by_line():
    [branch] = [f for f in audit("sosemanuk", "branching")["findings"] if f["kind"] == "branch"]
    assert branch["text"] == "if (r1 & 1) {" and branch["function"] == "xor_block"


def test_the_manifests_promise_is_kept():
    from ciphermill import manifest

    for cipher in map(manifest.find, manifest.names()):
        for variant in cipher.variants.values():
            if variant.constant_time is not None:
                assert audit(cipher.name, variant.name)["clean"] == variant.constant_time, (cipher.name, variant.name)


def test_debugging_information_changes_no_code(xor_cipher):
    from dataclasses import replace

    from ciphermill import engine, manifest, places

    def code(flags):
        cipher = manifest.find("rijndael")
        variant = replace(cipher.variants["ttable"], flags=flags)
        wasm = engine.module(replace(cipher, variants={"ttable": variant}), "ttable").wasm
        at, sections = 8, {}
        while at < len(wasm):
            kind, size, shift, at = wasm[at], 0, 0, at + 1
            while True:
                byte, at = wasm[at], at + 1
                size, shift = size | (byte & 127) << shift, shift + 7
                if byte < 128:
                    break
            sections[kind], at = wasm[at : at + size], at + size
        return sections[10]

    assert code(()) == code(places.DEBUG)


def test_a_leak_of_the_users_own(cli, write):
    leak = XOR_CIPHER.replace("out[i] = in[i] ^", "out[i] = (in[i] == 7 ? *(volatile uint8_t *)(in + 1) : in[i]) ^")
    path = write("leak.c", leak)
    answer = cli("audit", path)
    assert answer.code == 0 and "is not clean" in answer.out and "leak.c:7" in answer.out
    assert cli("audit", path, "--strict").code == 1
    document = json.loads(cli("audit", path, "--json").out)
    assert document["clean"] is False and {f["kind"] for f in document["findings"]} == {"branch"}


def test_in_words(cli, refused, xor_cipher):
    answer = cli("audit", xor_cipher, "--strict")
    assert answer.code == 0, answer
    assert answer.out.startswith("mine/default is clean: no branch or address depends on key or message.\n")
    assert "no variant 'tabel'" in refused("audit", "rijndael", "--variant", "tabel")


def test_one_key_size(cli, refused, write):
    # Only a key of more than 24 bytes has a byte that decides.
    leak = XOR_CIPHER.replace("{ for", "{ if (n > 24 && key[24] == 7) ctx->key[0] = *(volatile const uint8_t *)key;\n  for", 1)
    path = write("long.c", leak)
    def verdict(bits):
        document = json.loads(cli("audit", path, "--key-bits", bits, "--json").out)
        assert document["key_bits"] == [bits]
        return document["clean"]

    assert [verdict(bits) for bits in (128, 192, 200, 256)] == [True, True, False, False]
    assert "keys of 192 bits" in cli("audit", path, "--key-bits", 192).out
    assert json.loads(cli("audit", "rc6", "--key-bits", 256, "--json").out)["key_bits"] == [256]
    assert refused("audit", "rc6", "--key-bits", 100) == "rc6 has no 100-bit keys; it has 128, 192 or 256 bits"
    assert refused("audit", path, "--key-bits", 0).startswith("a key of 0 bits: it must be a multiple of 8")


def test_a_module_without_line_tables(cli, xor_cipher, tmp_path):
    from ciphermill import engine, manifest

    source = tmp_path / "t.c"
    source.write_text(XOR_CIPHER.replace("in[i] ^", "in[in[i] & 15] ^"))
    (tmp_path / "t.wasm").write_bytes(engine.module(manifest.find(str(source))).wasm)
    answer = cli("audit", tmp_path / "t.wasm")
    assert answer.code == 0 and "module offset 0x" in answer.out
