"""``import ciphermill as cm``."""

from __future__ import annotations

import pickle

import pytest

import ciphermill as cm
from ciphermill.paths import write_atomically


def test_fips_197():
    """The example of FIPS-197, appendix C.1, and its inverse, in every variant."""
    key = bytes(range(16))
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    coded = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")
    for variant in ("ttable", "compact"):
        c = cm.cipher("rijndael", variant)
        assert c.encrypt(key, plain * 3) == coded * 3
        assert c.decrypt(key, coded * 3) == plain * 3
        assert c.encrypt(key, b"") == b""


def test_salsa20_keystream():
    """eSTREAM, set 1, vector 0 of Salsa20/20 with a 256-bit key."""
    stream = cm.cipher("salsa20").keystream(b"\x80" + bytes(31), bytes(8), 512)
    assert stream[:8].hex() == "e3be8fdd8beca2e3"
    assert cm.cipher("salsa20").keystream(b"\x80" + bytes(31), bytes(8), 77) == stream[:77]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cm.cipher("rijndael").encrypt(bytes(15), bytes(16)), "a key of 15 bytes; it must be 16 or 24 or 32 bytes"),
        (lambda: cm.cipher("rijndael").encrypt(bytes(16), bytes(17)), "17 bytes of data; it must be whole blocks of 16 bytes"),
        (lambda: cm.cipher("rijndael").keystream(bytes(16), None, 1), "is a block cipher; use encrypt or decrypt"),
        (lambda: cm.cipher("salsa20").encrypt(bytes(16), bytes(64)), "is a stream cipher; use keystream"),
        (lambda: cm.cipher("salsa20").keystream(bytes(16), None, 1), "an IV of 0 bytes; it must be 8 bytes"),
        (lambda: cm.cipher("salsa20").keystream(bytes(16), bytes(8), -1), "the length must not be negative"),
        (lambda: cm.cipher("salsa20").keystream(bytes(16), bytes(8), 10**12), "1000000000000 bytes; a module's memory does not hold"),
        (lambda: cm.cipher("serpnt"), "did you mean 'serpent'?"),
        (lambda: cm.run("rijndael", on="leon9"), "no machine 'leon9'"),
        (lambda: cm.run("rijndael", on="leon2", jam=9), "--jam 9"),
        (lambda: cm.run("rijndael", on="leon2", jam="2"), "--jam '2': not a whole number; leave --jam out"),
        (lambda: cm.run("rijndael", on="leon2", bytes=2.5), "--bytes 2.5: not a whole number"),
        (lambda: cm.run("rijndael", on="leon2", bytes=True), "--bytes True: not a whole number"),
        (lambda: cm.run("rijndael", on="leon2", key_bits="128"), "--key-bits '128': not a whole number"),
        (lambda: cm.run("rijndael", on="leon2", unroll=3), "--unroll 3: it is True or False"),
    ],
)  # fmt: skip
def test_input_errors(call, message):
    with pytest.raises(cm.InputError) as caught:
        call()
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_numbers_from_an_array_are_numbers():
    numpy = pytest.importorskip("numpy")
    sizes = numpy.array([64, 128])
    mine = cm.run("rc6", on="rv32", bytes=sizes[0], key_bits=sizes[1], unroll=numpy.bool_(True))
    ours = cm.run("rc6", on="rv32", bytes=64, key_bits=128, unroll=True)
    assert mine.verified and mine.to_dict() == ours.to_dict()


def test_rabbit_takes_an_iv_or_none():
    rabbit = cm.cipher("rabbit")
    assert rabbit.keystream(bytes(16), None, 16) != rabbit.keystream(bytes(16), bytes(8), 16)


def test_the_users_own_cipher(xor_cipher):
    c = cm.cipher(xor_cipher)
    assert c.encrypt(b"\x01", bytes(32)) == b"\x01" * 32
    m = cm.run(xor_cipher, on="rv32")
    assert m.verified and m.cipher == "mine" and m.provenance["vectors"] is None


def test_measurement_is_its_json():
    m = cm.run("rc6", on="rv32")
    data = m.to_dict()
    assert data["cycles"] == m.cycles == m["cycles"]
    data["bounds"]["lower"] = 0
    assert m.bounds["lower"] > 0  # A copy, all the way down.
    assert pickle.loads(pickle.dumps(m)).to_dict() == m.to_dict()
    assert repr(m).startswith("<Measurement rc6/plain encrypt on rv32: ") and "verified" in repr(m)
    with pytest.raises(AttributeError, match="has no 'cycle'"):
        _ = m.cycle
    with pytest.raises(AttributeError):
        m.cycles = 1


def test_several_machines_give_a_list():
    assert [m.machine for m in cm.run("rc6", on=["rv32", "leon2"])] == ["rv32", "leon2"]
    assert [m.machine for m in cm.run("rc6")] == cm.machines().names


def test_listings():
    assert "leon2" in cm.machines() and "leon3" not in cm.machines()
    assert {"zba", "zbb", "zbkb"} <= set(cm.extensions().names)
    rijndael = next(c for c in cm.ciphers() if c.name == "rijndael")
    assert rijndael["key_bits"] == [128, 192, 256]


def test_a_panic_would_be_an_exception():
    """What crosses the border when the core is given nonsense instead of JSON."""
    from ciphermill import _core

    with pytest.raises(cm.InternalError, match="a request the core does not read"):
        _core.measure(b"", "{")
    with pytest.raises(cm.InputError, match="not a valid WebAssembly module"):
        _core.inspect(b"\0asm")


def test_atomic_writes_leave_nothing_behind(tmp_path):
    write_atomically(tmp_path / "a" / "b", b"x")
    write_atomically(tmp_path / "a" / "b", b"y")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]
    assert (tmp_path / "a" / "b").read_bytes() == b"y"


@pytest.mark.parametrize("more", [[], ["zbb"]])
def test_a_rotation_within_an_instruction_is_found(tmp_path, more):
    """Neither RV32 nor Zbb rotates to the left by a number: the instruction does, and adds before."""
    file = tmp_path / "ar.toml"
    file.write_text(
        '[extension]\nname = "ar"\ntitle = "add and rotate"\nfor = ["rv32"]\n\n[instructions]\n'
        'ar = { operands = { rd = "x", rs1 = "x", rs2 = "x", n = "uimm5" }, asm = "ar {rd}, {rs1}, {rs2}, {n}", '
        'bytes = 4, timing = "alu", semantics = "rd = rotl(rs1 + rs2, n)", source = "made up" }\n'
    )
    plain, found = (cm.run("salsa20", on="rv32", with_=[*more, *own]) for own in ([], [str(file)]))
    assert found.verified
    # 320 steps a block of one instruction each, instead of two or more.
    assert found.cycles_per_block < plain.cycles_per_block - 300
