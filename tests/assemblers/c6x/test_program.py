"""Whole functions, called as C would call them."""

from __future__ import annotations

import pytest

from . import Stopped, load


def xtea(steps: int) -> str:
    """XTEA encryption of one block, for either machine.

    a4: two words in and out; b4: four words of key; a6: rounds.
    """

    def half(value: str, other: str, index: str) -> list[str]:
        return [
            f"\tshl .s1 {other}, 4, a7\n||\t{index}",
            f"\tshru .s1 {other}, 5, a3\n||\tand .l2 3, b5, b5",
            "\txor .l1 a7, a3, a7\n||\tldw .d2t2 *+b4[b5], b6",
            f"\tadd .l1 a7, {other}, a7",
            "\tnop 3",
            "\tadd .l2 b6, b7, b6",
            "\txor .l1x a7, b6, a7",
            f"\tadd .l1 {value}, a7, {value}",
        ]

    body = [*half("a8", "a9", "mv .l2 b7, b5"), "\tadd .l2 b7, b9, b7", *half("a9", "a8", "shru .s2 b7, 11, b5")]
    head = """
	.text
	.globl	xtea
xtea:
	ldw .d1t1 *a4, a8
||	mvkl .s2 delta, b8
	ldw .d1t1 *+a4[1], a9
||	mvkh .s2 delta, b8
	ldw .d2t2 *b8, b9
||	mv .l1 a6, a1
	mvk .s2 0, b7
	nop 3
round:
"""
    tail = f"""
	sub .l1 a1, {steps}, a1
	[a1] b .s1 round
	nop 5
	stw .d1t1 a8, *a4
	stw .d1t1 a9, *+a4[1]
||	b .s2 b3
	mv .l1 a8, a4
	nop 4
	.section .cm_linear, "aw"
delta:	.4byte 0x9E3779B9
"""
    return head + "\n".join(body) + tail


@pytest.mark.parametrize("machine", ["c6201", "c64x"])
def test_xtea(machine):
    made = load(xtea(1), machine)
    memory = made.memory()
    # The vector of the paper: key 00 01 .. 0f, plaintext 41424344 45464748.
    key = (0x00010203, 0x04050607, 0x08090A0B, 0x0C0D0E0F)
    memory.add(0x1000, b"".join(word.to_bytes(4, "little") for word in key))
    block = memory.add(0x2000, b"".join(word.to_bytes(4, "little") for word in (0x41424344, 0x45464748)))
    got = made.call("xtea", 0x2000, 0x1000, 32, memory=memory)
    assert block == b"".join(word.to_bytes(4, "little") for word in (0x497DF3D0, 0x72612CB5))
    assert got.registers["a4"] == 0x497DF3D0
    # Seven cycles before the loop; 10 + 1 + 10 in a round and 1 + 6 to go on;
    # two stores, the branch with the second, and its delay slots after it. On
    # the C64x the xor of each half waits one cycle for b6.
    assert got.cycles == 7 + 32 * (10 + 1 + 10 + 7 + 2 * (machine == "c64x")) + 1 + 6
    assert got.events["cross_path_stalls"] == (64 if machine == "c64x" else 0)


def test_call_puts_arguments_where_the_abi_says():
    text = "\t.text\nf:\n\tadd .l1x a4, b4, a4\n\tadd .l1 a4, a6, a4\n\tsub .l1x a4, b12, a4\n||\tb .s2 b3\n\tnop 5\n"
    got = load(text, "c64x").call("f", 1, 2, 4, 0, 0, 0, 0, 0, 0, 100)
    assert got.registers["a4"] == 7 - 100 & 0xFFFF_FFFF
    with pytest.raises(ValueError, match="11 arguments"):
        load(text, "c64x").call("f", *range(11))
    with pytest.raises(KeyError, match="g is no symbol"):
        load(text, "c64x").call("g")


def test_call_gives_a_stack():
    text = """
	.text
f:
	stw .d2t1 a10, *b15--[2]
	mv .l1 a4, a10
	stw .d2t1 a10, *+b15[1]
	ldw .d2t1 *+b15[1], a4
	ldw .d2t1 *++b15[2], a10
||	b .s2 b3
	nop 5
"""
    assert load(text, "c6201").call("f", 55).registers["a4"] == 55


def test_registers_that_a_callee_must_keep():
    text = "\t.text\nf:\n\tmvk .s1 0, a10\n||\tb .s2 b3\n\tnop 5\n"
    with pytest.raises(Stopped, match="f returned with a10 changed"):
        load(text, "c6201").call("f")


def test_registers_not_given_hold_junk():
    text = "\t.text\nf:\n\tmv .l1 a9, a4\n||\tb .s2 b3\n\tnop 5\n"
    first, second = (load(text, "c64x").run("f").registers for _ in range(2))
    assert first["a4"] == second["a4"] != 0
    assert len({first[name] for name in ("a0", "a1", "b0", "b1")}) == 4


def test_data_is_fresh_in_each_run():
    text = "\t.text\nf:\n\tmvkl .s1 n, a5\n\tmvkh .s1 n, a5\n\tldw .d1t1 *a5, a4\n\tnop 4\n"
    text += "\tadd .l1 1, a4, a4\n\tstw .d1t1 a4, *a5\n||\tb .s2 b3\n\tnop 5\n\t.data\nn:\t.word 41\n"
    made = load(text, "c64x")
    assert [made.call("f").registers["a4"] for _ in range(2)] == [42, 42]
    memory = made.memory()
    assert [made.call("f", memory=memory).registers["a4"] for _ in range(2)] == [42, 43]
