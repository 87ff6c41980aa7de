"""Ciphers with one direction, and key set-ups: both are what they are called."""

from __future__ import annotations

import json

import pytest
from samples import XOR_CIPHER

import ciphermill as cm

KEYSETUP_DECRYPT, CRYPT, DECRYPT = (XOR_CIPHER.splitlines()[n] for n in (4, 5, 7))
assert KEYSETUP_DECRYPT.startswith("void cm_keysetup_decrypt") and DECRYPT.startswith("void cm_decrypt")

#: What is taken out of a cipher that does both.
ENCRYPT_ONLY = XOR_CIPHER.replace(KEYSETUP_DECRYPT, "").replace(DECRYPT, "")
DECRYPT_ONLY = (
    XOR_CIPHER.replace(KEYSETUP_DECRYPT, "")
    .replace(DECRYPT, "")
    .replace("cm_encrypt(", "cm_decrypt(")
    .replace("cm_keysetup(", "cm_keysetup_decrypt(")
)

MANIFEST = """\
name = "one"
kind = "block"
block_bytes = 16
key_bits = [128]
[variants.plain]
sources = ["x.c"]
[[vectors]]
file = "v.json"
source = "made for this"
"""
VECTORS = json.dumps({"kind": "block", "source": "made", "vectors": [
    {"id": "1", "key": "01" * 16, "plaintext": "02" * 16, "ciphertext": "03" * 16}]})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "way", "other"), [(ENCRYPT_ONLY, "encrypt", "decrypt"), (DECRYPT_ONLY, "decrypt", "encrypt")]
)
def test_a_cipher_of_one_direction(cli, refused, write, text, way, other):
    write("x.c", text)
    write("v.json", VECTORS)
    write("cipher.toml", MANIFEST)
    for cipher in ("x.c", "cipher.toml"):
        done = json.loads(cli("run", cipher, "--on", "rv32", "--json").out)["measurements"][0]
        assert (done["direction"], done["verified"]) == (way, True)
        assert (done["provenance"]["vectors"] or 0) == (cipher == "cipher.toml")
        message = refused("run", cipher, "--on", "rv32", "--direction", other)
        assert message.startswith(f"the cipher does not {other}: ") and f"use --direction {way}" in message
    assert cli("run", "x.c", "--on", "c6201,leon2").code == 0
    assert cli("run", "x.c", "--on", "rv32", "--blocks", "single").code == 0
    assert " is clean" in cli("audit", "x.c").out
    write("grid.toml", '[[grid]]\ncipher = "x.c"\non = "rv32"\n')
    assert cli("sweep", "grid.toml").code == 0
    made = cm.cipher("x.c" if False else str(write("y.c", text)))
    key, block = b"\1" * 16, b"\2" * 16
    assert getattr(made, way)(key, block) == b"\3" * 16
    with pytest.raises(cm.InputError, match=f"does not {other}"):
        getattr(made, other)(key, block)


def test_a_key_setup_of_one_direction(cli, refused, write):
    write("x.c", ENCRYPT_ONLY)
    assert cli("run", "x.c", "--on", "rv32", "--direction", "keysetup").code == 0
    write("y.c", DECRYPT_ONLY)
    assert "cm_keysetup" in refused("run", "y.c", "--on", "rv32", "--direction", "keysetup")


def test_a_cipher_of_no_direction(refused, write):
    write("x.c", ENCRYPT_ONLY.replace(CRYPT, "").replace(XOR_CIPHER.splitlines()[6], ""))
    message = refused("run", "x.c", "--on", "rv32")
    assert "x.c uses cm_encrypt, which no source defines" in message and "cm_decrypt" in message


def test_one_that_decrypts_without_a_key_for_it(cli, refused, write):
    write("x.c", XOR_CIPHER.replace(KEYSETUP_DECRYPT, ""))
    assert cli("run", "x.c", "--on", "rv32").code == 0
    assert "no cm_keysetup_decrypt" in refused("run", "x.c", "--on", "rv32", "--direction", "decrypt")


@pytest.mark.parametrize(
    ("text", "way", "other"), [(ENCRYPT_ONLY, "encrypt", "decrypt"), (DECRYPT_ONLY, "decrypt", "encrypt")]
)
def test_on_this_computer(cli, refused, write, text, way, other):
    write("x.c", text)
    done = cli("host", "x.c", "--cc", "zig", "--bytes", 64, "--repeat", 3)
    assert done.code == 0 and way in done.out, done
    assert f"--direction {other}: x has " in refused("host", "x.c", "--cc", "zig", "--direction", other)


def test_a_key_setup_is_not_called_a_block(cli):
    from ciphermill import html, report

    one = cm.run("rc6", on="rv32", direction="keysetup")
    several = [one, cm.run("rc6", on="leon2", direction="keysetup")]
    texts = [report.sentence(one), report.details(one), report.table(several), report.summary(several), html.measurement(one),
             html.measurements(several), repr(one), cli("explain", "rc6", "--on", "rv32", "--direction", "keysetup").out]  # fmt: skip
    for text in texts:
        assert "key set-up" in text
        assert not any(wrong in text for wrong in ("a block", "cycles/block", "cycles a byte", "Mbit/s at")), text
    assert "cycles/block" in report.table([cm.run("rc6", on="rv32")])
    head, row = (
        line.split(",")
        for line in cli("run", "rc6", "--on", "rv32", "--direction", "keysetup", "--csv").out.splitlines()[:2]
    )
    assert "cycles_per_block" not in head
    assert row[head.index("cycles_per_keysetup")] == str(one.cycles_per_keysetup)
