"""Reading and laying out of programs."""

from __future__ import annotations

import pytest

from . import Illegal, load
from .operands import Address, Pair, Register, evaluate, operand
from .syntax import instruction, read


def test_instruction_parts():
    item = instruction("|| [!B0] LDW .D1T2 *++A4[3], b5", 7)
    assert (item.parallel, item.mnemonic, item.cross) == (True, "ldw", False)
    assert (item.unit, item.side, item.path) == ("d", 1, 2)
    assert (item.predicate.register, item.predicate.negated) == (32, True)
    assert item.operands == [Address(4, "++r", "3", True), Register(37)]
    assert instruction("add .l2x a4, b5, b6", 1).cross


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("*a4", Address(4, "+", "0", True)),
        ("*+a4[3]", Address(4, "+", "3", True)),
        ("*-b4(12)", Address(36, "-", "12", False)),
        ("*a4++", Address(4, "r++", "1", True)),
        ("*--a4", Address(4, "--r", "1", True)),
        ("*a4--[a5]", Address(4, "r--", Register(5), True)),
        ("*+a4(Size+4)", Address(4, "+", "Size+4", False)),
    ],
)
def test_addresses(text, address):
    assert operand(text, "ldw") == address


@pytest.mark.parametrize("text", ["*a4[3]", "*+a4", "*++a4++", "*a40", "*", "a5:a3", "b5:a4", "4 5", "(3)", ""])
def test_no_operands(text):
    with pytest.raises(ValueError):
        operand(text, "ldw")


def test_numbers_are_read_as_gnu_as_does():
    assert evaluate("0x1F", {}) == 31
    assert evaluate("-010", {}) == -8
    assert evaluate("base+4-0x2", {"base": 100}) == 102
    assert operand("a31:a30", "add") == Pair(30)


def test_comments_and_labels_on_one_line():
    source = read("# whole line\n* and this\nf: g:\tnop 3 ; rest\n")
    assert not source.faults
    section = source.sections[".text"]
    assert [label for label, at, line in section.labels] == ["f", "g"]
    assert section.items[0].line == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("\tnop\nmiddle:\n||\tnop\n", "line 3: a label in the middle of an execute packet"),
        ("||\tnop\n", "line 1: `||` with no instruction before it"),
        ("\t.fancy 3\n", "directive .fancy"),
        ("\tnop\n\t.word 3\n", "line 2: data among the code of .text"),
        ("\tadd .q1 a4, a5, a6\n", ".q1 is no unit"),
        ("\tb .s1 nowhere\n", "nowhere is not defined"),
        ("\t.data\nhere:\t.word 1\n\t.text\n\tb .s1 here\n", "where no packet begins"),
        ("same:\n\tnop\nsame:\n\tnop\n", "same is defined twice"),
        ("\t.data\n\t.byte 256\n", "256 does not fit 1 bytes"),
        ("|| [a1]\n", "no instruction behind"),
    ],
)
def test_faults(text, fault):
    with pytest.raises(Illegal, match=fault):
        load(text, "c64x")


def test_all_faults_are_told_at_once_in_order():
    with pytest.raises(Illegal) as caught:
        load("\tadd .l1 a4, b5, a6\n\tnop 11\n\tfrob\n", "c64x")
    assert [fault.line for fault in caught.value.faults] == [1, 2, 3]


def test_data():
    text = """
	.text
f:	nop
	.set size, 12
	.section .cm_linear, "aw"
table:	.4byte f, table+size, -1
	.byte 1, 2
	.balign 4
	.hword 0xABCD
	.skip 2
end:	.word 7
	.data
other:	.byte 9
"""
    made = load(text, "c64x")
    base, content = made.data[".cm_linear"]
    assert base == 0
    expected = [0xE000_0000, 12, 0xFFFF_FFFF, 0x0201, 0xABCD, 7]
    assert bytes(content) == b"".join(word.to_bytes(4, "little") for word in expected)
    assert made.symbols["end"] == 20
    assert made.symbols["other"] == made.data[".data"][0]
    assert load(text, "c64x", {".cm_linear": 0x400}).symbols["end"] == 0x414


def test_packets_of_the_c62x_stay_in_fetch_packets():
    five = "\tnop\n" + "||\tnop\n" * 4
    text = f"\t.text\n{five}second:\n{five}"
    assert load(text, "c6201").symbols["second"] == 0xE000_0020
    assert (load(text, "c6201").padding_nops, load(text, "c6201").code_bytes) == (3, 64)
    assert load(text, "c64x").symbols["second"] == 0xE000_0014
    assert (load(text, "c64x").padding_nops, load(text, "c64x").code_bytes) == (0, 64)


def test_alignment_of_code_is_padding():
    made = load("\tnop\n\t.balign 16\nf:\tnop\n", "c64x")
    assert made.symbols["f"] == 0xE000_0010
    assert made.padding_nops == 3
