"""C that was not written for this project, on every kind of machine.

`foreign/` holds what people bring: products of half words, loops that are left
by their middle, integers of 128 bits, recursion, tables of functions, rounds by goto, S-boxes
that are strings, or trees of choices, pointers that are asked for, a state of bytes that is written while it is read, bit-fields, structures
returned by value, a state in globals, tables made with the first key. A run is verified
against the interpreter; those with a manifest, or with examples in the comment at their head, against these too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import forms
import pytest

import ciphermill as cm
from ciphermill import engine, manifest

FOREIGN = Path(__file__).parent / "foreign"
CASES = {
    "idea.toml": ("encrypt", "decrypt", "keysetup"),
    "sponge.c": ("keystream",),
    "wide.c": ("encrypt",),
    "calls.c": ("encrypt",),
    "xxtea.c": ("encrypt", "decrypt"),
    "magma.toml": ("encrypt",),
    "rc4.c": ("keystream",),
    "led.toml": ("decrypt", "keysetup"),
    "snow3g.toml": ("keystream",),
    "bitfields.c": ("encrypt",),
    "speck48.c": ("encrypt", "decrypt"),
    "speck64.c": ("encrypt", "decrypt"),
    "spritz.c": ("keystream",),
    "xtea.c": ("encrypt",),
    "des.c": ("encrypt", "decrypt"),
}
#: Programs that run on one machine in turn: loops that those above have on machines of every kind, in other styles.
IN_TURN = {
    "aes_ct.c": ("encrypt",),
    "blowfish.c": ("encrypt", "decrypt"),
    "chacha_array.c": ("keystream",),
    "chacha_scalars.c": ("keystream",),
    "ctr_bytes.c": ("keystream",),
    "gift64.c": ("encrypt", "decrypt"),
    "grain128a.c": ("keystream",),
    "hc256_steps.c": ("keystream",),
    "hight.c": ("encrypt", "decrypt"),
    "keccak.c": ("keystream",),
    "lea.c": ("encrypt", "decrypt"),
    "mlkem.c": ("encrypt", "decrypt"),
    "poly1305.c": ("encrypt",),
    "safer.c": ("encrypt", "decrypt"),
    "salsa_core.c": ("encrypt",),
    "simon.c": ("encrypt", "decrypt"),
    "skipjack.c": ("encrypt", "decrypt"),
    "trivium.c": ("keystream",),
    "xoodoo.c": ("encrypt",),
}
#: Of messages, where it is not 272 bytes: whole blocks, or few of what is slow.
LENGTHS = {
    "xxtea.c": 260, "led.toml": 16, "speck48.c": 48, "spritz.c": 32, "des.c": 32,
    "mlkem.c": 1024, "salsa_core.c": 256, "xoodoo.c": 240,
}  # fmt: skip


#: Machines that differ in kind, and those that differ less.
KINDS = (
    ("ia32", "pentiumpro", "core2"), ("x86_64", "zen4", "zen5"), ("c6201", "c64x"), ("epic", "itanium2"),
    ("rv32", "scarv", "e31", "ibex", "cv32e40p"), ("rv64", "boom"), ("leon2",), ("clapp",), ("cortex-m3", "cortex-m4"),
    ("cortex-m0", "cortex-m0plus"), ("avr", "atmega1284p"), ("msp430",),
)  # fmt: skip


def pairs():
    """Each program on one machine of every kind, or on one alone, the next on the next; CIPHERMILL_EVERYTHING=1: on all."""
    for number, name in enumerate(CASES):
        for kind in KINDS:
            all_of_it = kind if os.environ.get("CIPHERMILL_EVERYTHING") else (kind[number % len(kind)],)
            yield from ((name, machine) for machine in all_of_it)
    machines = [machine for kind in KINDS for machine in kind]
    for number, name in enumerate(IN_TURN):
        everything = os.environ.get("CIPHERMILL_EVERYTHING")
        yield from ((name, machine) for machine in (machines if everything else [machines[number % len(machines)]]))


def test_every_machine_is_of_a_kind():
    assert sorted(machine for kind in KINDS for machine in kind) == cm.machines().names
    assert {machine for _, machine in pairs()} == set(cm.machines().names)


#: What a machine of 2 KB of RAM and 32 KB of flash has no room for, and what it says of it.
REFUSED = {("avr", name) for name in ("wide.c", "calls.c", "sponge.c", "bitfields.c", "blowfish.c", "keccak.c")}


PAIRS = list(pairs())
#: Machines whose loops are pipelined by software.
PIPELINED = {machine for kind in KINDS if kind[0] in ("c6201", "epic") for machine in kind}


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_it_is_right(name, machine):
    """Loops stay loops: the pipelines that run over their ends are what this is for.

    On the machines that have none one program in `forms.SHARE` is the fastest of several forms, the others are made in one.
    """
    if (machine, name) in REFUSED:
        with pytest.raises(cm.InputError, match=r"take a machine with more (memory|flash)"):
            cm.run(FOREIGN / name, on=machine, direction=(CASES | IN_TURN)[name][0], unroll=False)
        return
    place = PAIRS.index((name, machine))
    usual = machine in PIPELINED or forms.usual(place, place // len(KINDS))
    measure = engine.measure if usual else forms.measure
    for direction in (CASES | IN_TURN)[name]:
        length = {} if direction == "keysetup" else {"bytes": LENGTHS.get(name, 272)}
        options = engine.Options(direction=direction, unroll=False, **length)
        m = measure(engine.module(manifest.find(str(FOREIGN / name))), machine, options)
        assert m.verified
        assert m.bounds["lower"] <= m.cycles_per_block


def examples(path: Path) -> Iterator[dict[str, bytes]]:
    """Those in the comment at the head of a C file: `key K, iv V, in P, out C`, of a stream cipher without `in`."""
    head = re.sub(r"\s*\n \*\s*", " ", path.read_text().split("*/")[0])
    for found in re.finditer(r"key (?P<key>\w+),(?: iv (?P<iv>\w+),)?(?: in (?P<in>\w+),)? out (?P<out>\w+)", head):
        yield {name: bytes.fromhex(digits) for name, digits in found.groupdict().items() if digits}


@pytest.mark.parametrize("name", [name for name in IN_TURN if name not in ("keccak.c", "mlkem.c")])
def test_its_examples_come_out(name):
    cipher, given = cm.cipher(FOREIGN / name), list(examples(FOREIGN / name))
    assert given
    for example in given:
        key, out = example["key"], example["out"]
        if "in" not in example:
            assert cipher.keystream(key, example["iv"], len(out)) == out
            continue
        assert cipher.encrypt(key, example["in"]) == out
        if "decrypt" in IN_TURN[name]:
            assert cipher.decrypt(key, out) == example["in"]


@pytest.mark.parametrize("length", [1, 168, 400])
def test_the_sponge_is_shake128(length):
    key, iv = bytes(range(16)), bytes(range(100, 116))
    assert cm.cipher(FOREIGN / "keccak.c").keystream(key, iv, length) == hashlib.shake_128(key + iv).digest(length)


def transformed(values: list[int]) -> list[int]:
    """ML-KEM's transform as FIPS 203 explains it: what is left of division by X^2 - 17^(2 rev(i) + 1), for i from 0 to 127."""
    out = []
    for i in range(128):
        square = pow(17, 2 * int(f"{i:07b}"[::-1], 2) + 1, 3329)
        for start in (0, 1):
            terms = values[start::2]
            out.append(sum(v * pow(square, n, 3329) for n, v in enumerate(terms)) % 3329)
    return out


def test_the_transform_is_a_sum_of_powers():
    values = [(n * n * 7 + 3) % 3329 for n in range(256)]
    block, spectrum = (b"".join(v.to_bytes(2, "little") for v in of) for of in (values, transformed(values)))
    kem = cm.cipher(FOREIGN / "mlkem.c")
    assert kem.encrypt(bytes(16), block) == spectrum
    assert kem.decrypt(bytes(16), spectrum) == block


def test_they_are_the_ciphers_that_they_are_said_to_be():
    """Examples of the papers: Beaulieu and others 2013 (appendix C), Rivest and Schuldt 2014 (appendix E).

    XTEA's is one that libraries share, Crypto++ for example; DES's is that of Grabbe's tutorial of 1992.
    """
    key, block = bytes.fromhex("00010208090a10111218191a"), bytes.fromhex("74686973206d")
    speck = cm.cipher(FOREIGN / "speck48.c")
    assert speck.encrypt(key, block).hex() == "5d44b6105e73" and speck.decrypt(key, speck.encrypt(key, block)) == block
    xtea, key, block = cm.cipher(FOREIGN / "xtea.c"), bytes(range(16)), b"ABCDEFGH"
    assert xtea.encrypt(key, block).hex() == "497df3d072612cb5" and xtea.decrypt(key, xtea.encrypt(key, block)) == block
    des, key, block = cm.cipher(FOREIGN / "des.c"), bytes.fromhex("133457799bbcdff1"), bytes.fromhex("0123456789abcdef")
    assert des.encrypt(key, block).hex() == "85e813540f0ab405" and des.decrypt(key, des.encrypt(key, block)) == block
    assert cm.cipher(FOREIGN / "spritz.c").keystream(b"ABC", None, 8).hex() == "779a8e01f9e9cbc0"


@pytest.mark.parametrize(
    ("name", "machine", "jam", "most"), [("xtea.c", "c64x", 1, 1.2), ("idea.toml", "c6201", 1, 1.9)]
)
def test_what_libraries_ask_for_each_block_does_not_keep_blocks_apart(name, machine, jam, most):
    """Pointers, a number of rounds, key words and constants; and IDEA's conditions, for which there are five registers."""
    m = cm.run(FOREIGN / name, on=machine, blocks="multi", jam=jam)
    assert m.verified and len(m.loops) > 0
    assert m.cycles_per_block < most * m.bounds["lower"]


@pytest.mark.parametrize("machine", ["epic", "c64x"])
def test_it_is_right_unrolled(machine):
    assert cm.run(FOREIGN / "idea.toml", on=machine, bytes=272, unroll=True).verified


@pytest.mark.parametrize(
    ("cipher", "registers"), [*((FOREIGN / "xtea.c", n) for n in (9, 15, 20, 27)), ("rc6", 9), ("rc6", 20)]
)
def test_fewer_registers_leave_the_clusters_their_ways_to_each_other(cipher, registers):
    """The scratch registers by which an operand comes to the other side are none of those that are counted,
    and what waits for a call in a register of its arguments, or of conditions, is not destroyed by it."""
    few = cm.run(cipher, on="c6201", bytes=64, set={"abi.registers": registers})
    assert few.verified and few.bounds["lower"] <= few.cycles_per_block


def test_a_key_longer_than_the_context_is_told():
    """LED's C alone, without a manifest that says which keys it has."""
    with pytest.raises(cm.InputError, match="behind the context, which has 16 bytes, byte 16 was changed"):
        cm.run(FOREIGN / "led.c", on="rv32", bytes=16)
    assert cm.run(FOREIGN / "led.c", on="rv32", bytes=16, key_bits=64).verified


ADDED = """[extension]
name = "mine"
title = "One instruction on whole words"
for = ["x86_64"]

[instructions]
mine = {{ operands = {{ rd = "r", rs1 = "r", rs2 = "r", rs3 = "r" }}, asm = "{{name}} {{rs1}}, {{rs2}}, {{rs3}}, {{rd}}", bytes = 6, timing = "alu", semantics = "{semantics}" }}
source = "an example"
"""


@pytest.mark.parametrize(
    ("semantics", "used"),
    [("rd = rs1 ^ rs2 ^ rs3", True), ("rd = (rs1 & rs2) ^ rs3", True), ("rd = ~(rs1 ^ rs2 ^ rs3)", False)],
)
def test_an_added_instruction_on_whole_words_is_used_in_words_of_32_bits(semantics, used, tmp_path):
    """Where it looks at each bit by itself and leaves the zeros that stand above 32 bits."""
    path = tmp_path / "mine.toml"
    path.write_text(ADDED.format(semantics=semantics))
    plain, added = (cm.run("serpent", on="zen5", bytes=256, with_=with_) for with_ in ((), str(path)))
    assert added.verified and (added.instructions < 0.97 * plain.instructions) == used
