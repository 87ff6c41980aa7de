"""Every rule of a packet, each with a neighbour that keeps it."""

from __future__ import annotations

import pytest

from . import Illegal, load
from .helpers import program, refused

ALLOWED = [
    # Cross paths: one unit and one register on the C62x, two units on the C64x.
    ("c6201", "add .l1x a4, b4, a5 || add .l2x b4, a4, b5"),
    ("c6201", "sub .l1x b4, a4, a5"),
    ("c64x", "add .l1x a4, b4, a5 || sub .s1x a6, b4, a7"),
    ("c64x", "add .d1x a4, b4, a5 || mpy .m1x a4, b4, a6"),
    # Addresses from one file, data of the other; one access on each path.
    ("c6201", "ldw .d1t2 *a4, b5 || ldw .d2t1 *b4, a5"),
    ("c6201", "ldw .d1t1 *a4, a5 || stw .d2t2 b5, *b4"),
    ("c64x", "ldndw .d1t1 *a4, a7:a6 || add .d2 b4, b5, b6"),
    # Four reads of a register; predicates do not count.
    ("c6201", "[b0] add .l1 a4, a4, a5 || [b0] add .s1 a4, a4, a6 || [b0] mv .l2 b4, b5"),
    ("c6201", "add .l1 a5, a6, a7:a6 || add .l2 b5, b6, b7:b6"),
    ("c6201", "add .l1 a4, a9:a8, a11:a10 || stw .d2t2 b5, *b4"),
    ("c64x", "add .l1 a4, a9:a8, a11:a10 || stw .d1t1 a5, *a4"),
    # Writes that land in different cycles, or under opposite predicates.
    ("c6201", "mpy .m1 a4, a5, a6 || add .l1 a4, a5, a6"),
    ("c6201", "[b0] add .l1 a4, a5, a6 || [!b0] sub .s1 a4, a5, a6"),
    ("c6201", "[a1] b .s1 main || [!a1] b .s2 b3"),
    ("c64x", "[a0] bnop .s1 main, 4 || add .l1 a4, a5, a6"),
    ("c64x", "nop 4 || add .l1 a4, a5, a6"),
]

BROKEN = [
    ("c6201", "add .l1 a4, a5, a6 || sub .l1 a4, a5, a7", r"line 4: \.l1 is used twice"),
    ("c6201", " || ".join(["nop"] * 9), "9 instructions in one execute packet"),
    ("c6201", "add .l1x a4, b4, a5 || sub .s1x a6, b4, a7", "cross path 1x is used by 2 units; it can be by 1"),
    ("c64x", "add .l1x a4, b4, a5 || sub .s1x a6, b4, a7 || mpy .m1x a4, b4, a8", "1x is used by 3 units"),
    ("c64x", "add .l1x a4, b4, a5 || sub .s1x a6, b5, a7", "cross path 1x carries two registers, b4 and b5"),
    ("c6201", "add .d1x a4, b4, a5", "b4 is in the wrong register file|no operand"),
    ("c6201", "ldw .d1t1 *a4, a5 || ldw .d2t1 *b4, a6", "line 4: data path t1 is used twice"),
    ("c6201", "stw .d1t2 b5, *a4 || stw .d2t2 b6, *b4", "data path t2 is used twice"),
    ("c6201", "ldw .d1t1 *a4, a5 || stw .d2t1 a6, *b4", "data path t1 is used twice"),
    ("c64x", "ldnw .d1t1 *a4, a5 || ldw .d2t2 *b4, b5", "ldnw uses both data paths"),
    ("c6201", "ldw .d1t1 *b4, a5", "address register b4 is not in the file of .d1"),
    ("c6201", "ldw .d1t1 *+a4[b5], a5", "offset register b5"),
    ("c6201", "ldw .d1t1 *a4, b5", "b5 is in the wrong register file for ldw .d1t1"),
    ("c6201", "add .l1 a4, a4, a5 || add .s1 a4, a4, a6 || ldw .d1t1 *a4, a7", "a4 is read 5 times"),
    ("c6201", "zero .l1 a4 || add .s1 a0, a0, a5 || add .d1 a0, a4, a6", "a0 is read 5 times"),
    ("c64x", "swap2 .l1 a4, a5 || swap2 .s1 a4, a6 || mv .d1 a4, a7", "a4 is read 5 times"),
    ("c6201", "add .l1 a5, a6, a7:a6 || shl .s1 a5, 3, a9:a8", "two 40-bit results on side 1"),
    ("c6201", "cmpeq .l1 a5, a7:a6, a8 || shl .s1 a7:a6, 3, a9:a8", "two 40-bit sources on side 1"),
    ("c6201", "add .l1 a4, a9:a8, a11:a10 || stw .d1t1 a5, *a4", "share a read port"),
    ("c6201", "add .l1 a4, a5, a6 || sub .s1 a4, a5, a6", "line 4: two writes of a6"),
    ("c6201", "[b0] add .l1 a4, a5, a6 || [b0] sub .s1 a4, a5, a6", "two writes of a6"),
    ("c6201", "ldw .d1t1 *a4++, a5 || add .l1 a5, a6, a4", "two writes of a4"),
    ("c6201", "[b0] b .s1 main || [!b0] b .s2 main", "two branches to labels"),
    ("c64x", "bnop .s1 main, 2 || nop 2", "each add NOP cycles"),
    # Units of the two machines.
    ("c6201", "and .d1 a4, a5, a6", r"and does not run on \.d of the c6201"),
    ("c64x", "shl .l1 a4, 3, a5", r"shl does not run on \.l"),
    ("c6201", "rotl .m1 a4, 3, a5", "rotl is not an instruction of the c6201"),
    ("c6201", "mvk .l1 3, a5", "mvk does not run on"),
    ("c64x", "frob .l1 a4, a5", "frob is not known"),
    ("c64x", "add a4, a5, a6", "add needs a unit"),
    ("c64x", "ldw .d1 *a4, a5", "ldw needs a data path"),
    ("c64x", "add .d1t1 a4, a5, a6", "add has no data path"),
    ("c64x", "b .s1 a4", "a constant was wanted|only on .s2"),
    ("c64x", "bnop .s1 a4, 3", "only on .s2"),
    ("c64x", "mvc .s1 a4, gfpgfr", "only on .s2"),
    ("c6201", "mvc .s2 b4, gfpgfr", "of the C64x only"),
    # Register files and numbers.
    ("c64x", "add .l1 a4, b5, a6", "b5 is in the wrong register file"),
    ("c64x", "add .l1 a4, a5, b6", "b6 is in the wrong register file"),
    ("c64x", "add .l1x a4, a5, a6", "a5 is in the wrong register file"),
    ("c64x", "add .l1x b4, a5, a6", "b4 is in the wrong register file|a5 is in"),
    ("c64x", "add .s2x a4, b5, b6", "a4 is in the wrong"),
    ("c64x", "mpy .m1x b4, a5, a6", "b4 is in the wrong"),
    ("c6201", "sub .s1x b4, a5, a6", "b4 is in the wrong"),
    ("c64x", "extu .s1x b4, 8, 24, a5", "b4 is in the wrong|can cross"),
    ("c6201", "add .l1 a4, a5, a16", "a16 is no register of the C62x"),
    ("c64x", "add .l1 a4, a5, a32", "a register was wanted, not a32"),
    ("c64x", "mpyu4 .m1 a4, a5, a6:a5", "no pair"),
    ("c6201", "ldw .d1t1 *+a16[1], a5", "a16 is no register"),
    # Predicates.
    ("c6201", "[a0] add .l1 a4, a5, a6", "a0 is no predicate of the C62x"),
    ("c64x", "[a3] add .l1 a4, a5, a6", "a3 cannot be a predicate"),
    ("c64x", "[b0] nop 2", "nop cannot have a predicate"),
    # Constants.
    ("c64x", "add .l1 16, a5, a6", "16 is out of range: -16 to 15"),
    ("c64x", "add .l1 -17, a5, a6", "out of range"),
    ("c64x", "sub .l1 a5, -16, a6", "out of range: -15 to 16"),
    ("c64x", "add .d1 a5, 32, a6", "out of range"),
    ("c6201", "cmpltu .l1 16, a5, a6", "out of range: 0 to 15"),
    ("c64x", "shl .s1 a4, 32, a5", "out of range: 0 to 31"),
    ("c64x", "extu .s1 a4, 8, 32, a5", "out of range"),
    ("c64x", "mvk .s1 32768, a5", "out of range: -32768 to 32767"),
    ("c64x", "addk .s1 -32769, a5", "out of range"),
    ("c64x", "nop 10", "out of range: 1 to 9"),
    ("c64x", "bnop .s1 main, 8", "out of range: 0 to 7"),
    ("c64x", "ldw .d1t1 *+a4[32], a5", "offset 32 is out of range: 0 to 31"),
    ("c64x", "ldw .d1t1 *+a4(6), a5", "no multiple of 4"),
    ("c64x", "ldw .d1t1 *+a15[32], a5", "out of range"),
    ("c64x", "ldw .d2t1 *-b15[32], a5", "out of range"),
    ("c64x", "ldw .d2t1 *+b15[32768], a5", "out of range: 0 to 32767"),
    ("c64x", "lddw .d2t1 *+b15[32], a5:a4", "out of range: 0 to 31"),
    ("c64x", "ldw .d1t1 *+a4(a5), a6", "only ldndw and stndw"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "code"), ALLOWED)
def test_allowed(machine, code):
    load(program(code), machine)


@pytest.mark.parametrize(("machine", "code", "text"), BROKEN)
def test_broken(machine, code, text):
    refused(code, machine, text)


def far(words: int) -> str:
    return "\t.text\nfirst:\n" + "\tnop\n" * words + "\tbdec .s1 first, a4\n"


def test_labels_within_reach():
    # The distance counts from the fetch packet: 512 words back reach from all eight of its words.
    load(far(519), "c64x")
    with pytest.raises(Illegal, match="further away than 512 words"):
        load(far(520), "c64x")
