"""What instructions compute: values worked out by hand, and laws between instructions."""

from __future__ import annotations

import random

import pytest

from .helpers import run, value
from .semantics import EXPRESSIONS
from .table import ACCESS, BRANCHES, FORMS

A, B = 0x8123_45F7, 0x7EDC_0A89

#: Mnemonic and unit, operands between which `a4` holds A or the third column,
#: `a5` B or the fourth; the result in a8, or in a9:a8 for pairs.
CASES = [
    ("add .l1", "a4, a5", 0xFFFF_FFFF, 2, 1),
    ("add .s1", "-16, a5", 0, 5, 0xFFFF_FFF5),
    ("add .d1", "a4, 31", 1, 0, 32),
    ("add .d1", "a4, -16", 1, 0, 0xFFFF_FFF1),
    ("sub .l1", "a4, a5", 1, 2, 0xFFFF_FFFF),
    ("sub .l1", "3, a5", 0, 5, 0xFFFF_FFFE),
    ("sub .s1", "a4, 3", 5, 0, 2),
    ("sub .d1", "a4, 31", 5, 0, 0xFFFF_FFE6),
    ("subc .l1", "a4, a5", 9, 4, 11),
    ("subc .l1", "a4, a5", 3, 4, 6),
    ("addab .d1", "a4, a5", 0x100, 3, 0x103),
    ("addah .d1", "a4, a5", 0x100, 3, 0x106),
    ("addaw .d1", "a4, 31", 0x100, 0, 0x17C),
    ("addad .d1", "a4, a5", 0x100, 3, 0x118),
    ("subab .d1", "a4, a5", 0x100, 3, 0xFD),
    ("subah .d1", "a4, a5", 0x100, 3, 0xFA),
    ("subaw .d1", "a4, a5", 0x100, 3, 0xF4),
    ("and .l1", "a4, a5", A, B, 0x0000_0081),
    ("and .s1", "-16, a5", 0, B, 0x7EDC_0A80),
    ("or .d1", "a4, a5", A, B, 0xFFFF_4FFF),
    ("xor .l1", "a4, a5", A, B, 0xFFFF_4F7E),
    ("xor .l1", "-1, a5", 0, B, 0x8123_F576),
    ("andn .d1", "a4, a5", A, B, 0x8123_4576),
    ("not .s1", "a5", 0, B, 0x8123_F576),
    ("neg .l1", "a5", 0, 1, 0xFFFF_FFFF),
    ("mv .d1", "a4", A, 0, A),
    ("zero .l1", "", 0, 0, 0),
    ("abs .l1", "a4", 0xFFFF_FFFB, 0, 5),
    ("abs .l1", "a4", 0x8000_0000, 0, 0x7FFF_FFFF),
    ("cmpeq .l1", "a4, a5", A, A, 1),
    ("cmpeq .l1", "-1, a5", 0, 0xFFFF_FFFF, 1),
    ("cmpgt .l1", "a4, a5", A, B, 0),
    ("cmpgt .l1", "a4, -5", 0xFFFF_FFFC, 0, 1),
    ("cmpgtu .l1", "a4, a5", A, B, 1),
    ("cmplt .l1", "a4, a5", A, B, 1),
    ("cmplt .l1", "-5, a5", 0, 0xFFFF_FFFC, 1),
    ("cmpltu .l1", "a4, a5", A, B, 0),
    ("cmpltu .l1", "31, a5", 0, 32, 1),
    ("lmbd .l1", "1, a5", 0, 0x0000_8000, 16),
    ("lmbd .l1", "0, a5", 0, 0xFF00_0000, 8),
    ("lmbd .l1", "1, a5", 0, 0, 32),
    ("norm .l1", "a4", 0xFFFF_FFFF, 0, 31),
    ("norm .l1", "a4", 0x0000_8000, 0, 15),
    ("shl .s1", "a4, a5", A, 4, 0x1234_5F70),
    ("shl .s1", "a4, a5", A, 32, 0),
    ("shl .s1", "a4, a5", A, 0x44, 0x1234_5F70),
    ("shr .s1", "a4, a5", A, 4, 0xF812_345F),
    ("shr .s1", "a4, a5", A, 63, 0xFFFF_FFFF),
    ("shru .s1", "a4, a5", A, 4, 0x0812_345F),
    ("shru .s1", "a4, a5", A, 40, 0),
    ("shl .s1", "a4, 31", 3, 0, 0x8000_0000),
    ("shr .s1", "a4, 31", A, 0, 0xFFFF_FFFF),
    ("shru .s1", "a4, 31", A, 0, 1),
    # TI's example: EXT A1,10,19 of 07A43F2A, and the same by a register.
    ("ext .s1", "a4, 10, 19", 0x07A4_3F2A, 0, 0xFFFF_F21F),
    ("extu .s1", "a4, 10, 19", 0x07A4_3F2A, 0, 0x0000_121F),
    ("ext .s1", "a4, a5", 0x07A4_3F2A, 10 << 5 | 19, 0xFFFF_F21F),
    ("extu .s1", "a4, a5", 0x07A4_3F2A, 0xFFFF_FC00 | 10 << 5 | 19, 0x0000_121F),
    ("set .s1", "a4, 7, 21", 0x4B13_4A1E, 0, 0x4B3F_FF9E),
    ("set .s1", "a4, a5", 0, 4 << 5 | 7, 0xF0),
    ("set .s1", "a4, 0, 31", 0, 0, 0xFFFF_FFFF),
    ("clr .s1", "a4, 4, 19", 0x07A4_3F2A, 0, 0x07A0_000A),
    ("clr .s1", "a4, a5", 0xFFFF_FFFF, 31 << 5 | 31, 0x7FFF_FFFF),
    ("clr .s1", "a4, 9, 8", A, 0, A),
    ("mvk .s1", "-2", 0, 0, 0xFFFF_FFFE),
    ("mvk .l1", "-16", 0, 0, 0xFFFF_FFF0),
    ("mvkl .s1", "0x12348765", 0, 0, 0xFFFF_8765),
    ("mpy .m1", "a4, a5", 0x1_FFFF, 0x7_0003, 0xFFFF_FFFD),
    ("mpy .m1", "-3, a5", 0, 0x8000, 0x0001_8000),
    ("mpyu .m1", "a4, a5", 0x1_FFFF, 0x7_FFFF, 0xFFFE_0001),
    ("mpyus .m1", "a4, a5", 0xFFFF, 0xFFFF, 0xFFFF_0001),
    ("mpysu .m1", "a4, a5", 0xFFFF, 0xFFFE, 0xFFFF_0002),
    ("mpyh .m1", "a4, a5", 0xFFFF_1111, 0x0003_2222, 0xFFFF_FFFD),
    ("mpyhu .m1", "a4, a5", 0xFFFF_1111, 0x0003_2222, 0x0002_FFFD),
    ("mpyhus .m1", "a4, a5", 0xFFFF_0000, 0xFFFF_0000, 0xFFFF_0001),
    ("mpyhsu .m1", "a4, a5", 0xFFFF_0000, 0xFFFE_0000, 0xFFFF_0002),
    ("mpyhl .m1", "a4, a5", 0xFFFE_1111, 0x2222_0003, 0xFFFF_FFFA),
    ("mpyhlu .m1", "a4, a5", 0xFFFE_1111, 0x2222_0003, 0x0002_FFFA),
    ("mpyhuls .m1", "a4, a5", 0x0003_1111, 0x2222_FFFE, 0xFFFF_FFFA),
    ("mpyhslu .m1", "a4, a5", 0xFFFE_1111, 0x2222_8000, 0xFFFF_0000),
    ("mpylh .m1", "a4, a5", 0x1111_FFFE, 0x0003_2222, 0xFFFF_FFFA),
    ("mpylhu .m1", "a4, a5", 0x1111_FFFE, 0x0003_2222, 0x0002_FFFA),
    ("mpyluhs .m1", "a4, a5", 0x1111_8000, 0xFFFE_2222, 0xFFFF_0000),
    ("mpylshu .m1", "a4, a5", 0x1111_FFFE, 0x8000_2222, 0xFFFF_0000),
    ("add2 .s1", "a4, a5", 0x0001_FFFF, 0xFFFF_0001, 0),
    ("sub2 .s1", "a4, a5", 0x0001_0000, 0x0002_0001, 0xFFFF_FFFF),
    ("add4 .l1", "a4, a5", 0xFF01_FE02, 0x0101_0303, 0x0002_0105),
    ("sub4 .l1", "a4, a5", 0x0001_FE02, 0x0101_0303, 0xFF00_FBFF),
    ("subabs4 .l1", "a4, a5", 0x0001_FE02, 0x0101_0303, 0x0100_FB01),
    ("max2 .l1", "a4, a5", 0x8000_0005, 0x7FFF_FFFF, 0x7FFF_0005),
    ("min2 .l1", "a4, a5", 0x8000_0005, 0x7FFF_FFFF, 0x8000_FFFF),
    ("maxu4 .l1", "a4, a5", 0x8001_FF00, 0x7F02_0101, 0x8002_FF01),
    ("minu4 .l1", "a4, a5", 0x8001_FF00, 0x7F02_0101, 0x7F01_0100),
    ("pack2 .s1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x3344_7788),
    ("packh2 .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x1122_5566),
    ("packhl2 .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x1122_7788),
    ("packlh2 .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x3344_5566),
    ("packh4 .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x1133_5577),
    ("packl4 .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x2244_6688),
    ("shlmb .l1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x6677_8811),
    ("shrmb .s1", "a4, a5", 0x1122_3344, 0x5566_7788, 0x4455_6677),
    ("swap2 .s1", "a4", 0x1122_3344, 0, 0x3344_1122),
    ("swap4 .l1", "a4", 0x1122_3344, 0, 0x2211_4433),
    ("unpkhu4 .l1", "a4", 0x1122_3344, 0, 0x0011_0022),
    ("unpklu4 .s1", "a4", 0x1122_3344, 0, 0x0033_0044),
    ("abs2 .l1", "a4", 0xFFFF_8000, 0, 0x0001_7FFF),
    ("cmpeq2 .s1", "a4, a5", 0x1122_3344, 0x1122_3345, 2),
    ("cmpeq4 .s1", "a4, a5", 0x1122_3344, 0x1123_3345, 0b1010),
    ("cmpgt2 .s1", "a4, a5", 0x0001_8000, 0xFFFF_0000, 2),
    ("cmplt2 .s1", "a4, a5", 0x0001_8000, 0xFFFF_0000, 1),
    ("cmpgtu4 .s1", "a4, a5", 0x8001_FF00, 0x7F02_0101, 0b1010),
    ("cmpltu4 .s1", "a4, a5", 0x8001_FF00, 0x7F02_0101, 0b0101),
    ("shr2 .s1", "a4, 4", 0x8123_45F7, 0, 0xF812_045F),
    ("shru2 .s1", "a4, a5", 0x8123_45F7, 4, 0x0812_045F),
    ("avg2 .m1", "a4, a5", 0xFFFF_0003, 0x0002_0004, 0x0001_0004),
    ("avgu4 .m1", "a4, a5", 0xFF00_0103, 0x0100_0204, 0x8000_0204),
    ("bitc4 .m1", "a4", 0xFF01_8003, 0, 0x0801_0102),
    ("bitr .m1", "a4", 0x0000_0003, 0, 0xC000_0000),
    ("deal .m1", "a4", 0xAAAA_AAAA, 0, 0xFFFF_0000),
    ("shfl .m1", "a4", 0xFFFF_0000, 0, 0xAAAA_AAAA),
    ("xpnd2 .m1", "a4", 0xFFFF_FFFE, 0, 0xFFFF_0000),
    ("xpnd4 .m1", "a4", 0xFFFF_FFF5, 0, 0x00FF_00FF),
    ("rotl .m1", "a4, 8", 0x1122_3344, 0, 0x2233_4411),
    ("rotl .m1", "a4, a5", 0x1122_3344, 0x28, 0x2233_4411),
    ("rotl .m1", "a4, a5", 0x1122_3344, 0, 0x1122_3344),
    ("rotl .m1", "a4, 0", 0x1122_3344, 0, 0x1122_3344),
    ("mvd .m1", "a4", A, 0, A),
    ("mpyhir .m1", "a4, a5", 0x0002_0000, 0x0001_2000, 5),
    ("mpylir .m1", "a4, a5", 0xFFFF, 0x4000, 0),
    ("mpyilr .m1", "a4, a5", 0x4001, 0xFFFF, 0xFFFF_FFFF),
    ("mpyihr .m1", "a4, a5", 0x0001_2000, 0x0002_0000, 5),
    ("dotp2 .m1", "a4, a5", 0xFFFF_0002, 0x0003_0005, 7),
    ("dotpn2 .m1", "a4, a5", 0xFFFF_0002, 0x0003_0005, 0xFFFF_FFF3),
    ("dotpu4 .m1", "a4, a5", 0xFF01_0203, 0x0204_0506, 510 + 4 + 10 + 18),
    ("dotpsu4 .m1", "a4, a5", 0xFF01_0203, 0x0204_0506, -2 + 4 + 10 + 18),
    ("dotpus4 .m1", "a4, a5", 0x0204_0506, 0xFF01_0203, -2 + 4 + 10 + 18),
    # The field of AES is not that after reset: modulo 0x11D here.
    ("gmpy4 .m1", "a4, a5", 0x8002_0357, 0x0203_0301, 0x1D06_0557),
]

#: The same with a result of 40 or 64 bits in a9:a8.
WIDE = [
    ("add .l1", "a4, a5", 0x7FFF_FFFF, 1, 0x00_8000_0000),
    ("add .l1", "a4, a5", 0xFFFF_FFFF, 0, 0xFF_FFFF_FFFF),
    ("addu .l1", "a4, a5", 0xFFFF_FFFF, 1, 0x01_0000_0000),
    ("sub .l1", "a4, a5", 0, 1, 0xFF_FFFF_FFFF),
    ("subu .l1", "a4, a5", 0, 0xFFFF_FFFF, 0xFF_0000_0001),
    ("add .l1", "a4, a7:a6", 1, 0, 0x56_0000_0000),
    ("addu .l1", "a4, a7:a6", 0xFFFF_FFFF, 0, 0x56_FFFF_FFFE),
    ("add .l1", "-1, a7:a6", 0, 0, 0x55_FFFF_FFFE),
    ("sub .l1", "-1, a7:a6", 0, 0, 0xAA_0000_0000),
    ("sub .l1", "a7:a6, 16", 0, 0, 0x55_FFFF_FFEF),
    ("mv .l1", "a7:a6", 0, 0, 0x55_FFFF_FFFF),
    ("neg .l1", "a7:a6", 0, 0, 0xAA_0000_0001),
    ("zero .l1", "", 0, 0, 0),
    ("shl .s1", "a4, 8", 0x8000_0001, 0, 0x80_0000_0100),
    ("shl .s1", "a4, 3", 0x4000_0001, 0, 0x02_0000_0008),
    ("shl .s1", "a7:a6, 4", 0, 0, 0x5F_FFFF_FFF0),
    ("shr .s1", "a7:a6, 4", 0, 0, 0x05_5FFF_FFFF),
    ("shru .s1", "a7:a6, a5", 0, 40, 0),
    ("mpy2 .m1", "a4, a5", 0xFFFF_0002, 0x0003_FFFF, 0xFFFF_FFFD_FFFF_FFFE),
    ("mpyu4 .m1", "a4, a5", 0xFF01_0203, 0xFF04_0506, 0xFE01_0004_000A_0012),
    ("mpysu4 .m1", "a4, a5", 0xFF01_0203, 0x0204_0506, 0xFFFE_0004_000A_0012),
    ("mpyus4 .m1", "a4, a5", 0x0204_0506, 0xFF01_0203, 0xFFFE_0004_000A_0012),
    ("mpyhi .m1", "a4, a5", 0xFFFF_0000, 0x7FFF_FFFF, 0xFFFF_FFFF_8000_0001),
    ("mpyli .m1", "a4, a5", 0x1234_0003, 0x8000_0000, 0xFFFF_FFFE_8000_0000),
    ("mpyih .m1", "a4, a5", 0x7FFF_FFFF, 0xFFFF_0000, 0xFFFF_FFFF_8000_0001),
    ("mpyil .m1", "a4, a5", 0x8000_0000, 0x1234_0003, 0xFFFF_FFFE_8000_0000),
    ("dotp2 .m1", "a4, a5", 0x8000_8000, 0x8000_8000, 0x8000_0000),
]

#: Long sources to a 32-bit result; a7:a6 is 0x55_FFFF_FFFF.
FROM_LONG = [
    ("cmpeq .l1", "a4, a7:a6", 0xFFFF_FFFF, 0, 0),
    ("cmpgt .l1", "a7:a6, a4", 0x7FFF_FFFF, 0, 1),
    ("cmplt .l1", "a4, a7:a6", 0x7FFF_FFFF, 0, 1),
    ("cmpltu .l1", "a4, a7:a6", 0xFFFF_FFFF, 0, 1),
    ("cmpgtu .l1", "9, a7:a6", 0, 0, 0),
    ("norm .l1", "a7:a6", 0, 0, 0),
]
LONG = {"a6": 0xFFFF_FFFF, "a7": 0xFFFF_FF55}


def listed(cases: list) -> list:
    return [pytest.param(*case, id=f"{case[0]} {case[1]} of {case[2]:x} {case[3]:x}") for case in cases]


def code(head: str, sources: str, target: str) -> str:
    return f"{head} {', '.join(filter(None, (sources, target)))}; nop 4"


@pytest.mark.parametrize(("head", "sources", "a", "b", "expected"), listed(CASES + FROM_LONG))
def test_values(head, sources, a, b, expected):
    assert value(code(head, sources, "a8"), "a8", a4=a, a5=b, **LONG) == expected & 0xFFFF_FFFF


@pytest.mark.parametrize(("head", "sources", "a", "b", "expected"), listed(WIDE))
def test_pairs(head, sources, a, b, expected):
    got = run(code(head, sources, "a9:a8"), a4=a, a5=b, **LONG).registers
    assert got["a9"] << 32 | got["a8"] == expected


def test_halves_of_a_constant():
    assert value("mvkl .s1 0x89ABCDEF, a8; mvkh .s1 0x89ABCDEF, a8", "a8") == 0x89AB_CDEF
    assert value("mvk .s1 0x1234, a8; mvklh .s1 0x5678, a8", "a8") == 0x5678_1234
    assert value("addk .s1 -32768, a8", "a8", a8=1) == 0xFFFF_8001


def test_everything_that_computes_has_a_case():
    """No instruction is in the table without a value that was worked out."""
    elsewhere = {"nop", "idle", "mvc", "addkpc", "mvkh", "mvklh", "addk", *BRANCHES, *ACCESS}
    tried = {case[0].split()[0] for case in CASES + WIDE + FROM_LONG}
    assert set(FORMS) - elsewhere == tried
    assert set(FORMS) - {"nop", "idle", "mvc", "addkpc", *BRANCHES, *ACCESS} == set(EXPRESSIONS)


def test_sources_cross():
    assert value("sub .l1x b4, a4, a5", "a5", b4=9, a4=2) == 7
    assert value("sub .s2x b4, a4, b5", "b5", b4=9, a4=2) == 7
    assert value("shl .s1x b4, a4, a5", "a5", b4=1, a4=5) == 32
    assert value("mpyhl .m2x b4, a4, b5; nop", "b5", b4=3 << 16, a4=5) == 15


RANDOM = [(random.Random(seed).getrandbits(32), random.Random(-seed - 1).getrandbits(32)) for seed in range(40)]


@pytest.mark.parametrize(("a", "b"), RANDOM)
def test_product_of_words_from_products_of_halves(a, b):
    text = "mpyu .m1 a4, a5, a6; mpyhlu .m1 a4, a5, a7; mpylhu .m1 a4, a5, a8; mpyhu .m1 a4, a5, a9; nop"
    got = run(text, "c6201", a4=a, a5=b).registers
    assert got["a6"] + (got["a7"] + got["a8"] << 16) + (got["a9"] << 32) == a * b


@pytest.mark.parametrize(("a", "b"), RANDOM)
def test_signed_products(a, b):
    def halves(number: int) -> tuple[int, int]:
        return number >> 16, number & 0xFFFF

    def signed(half: int) -> int:
        return half - 0x1_0000 if half >= 0x8000 else half

    (ah, al), (bh, bl) = halves(a), halves(b)
    products = {
        "mpy": signed(al) * signed(bl),
        "mpysu": signed(al) * bl,
        "mpyus": al * signed(bl),
        "mpyh": signed(ah) * signed(bh),
        "mpyhsu": signed(ah) * bh,
        "mpyhus": ah * signed(bh),
        "mpyhl": signed(ah) * signed(bl),
        "mpyhslu": signed(ah) * bl,
        "mpyhuls": ah * signed(bl),
        "mpylh": signed(al) * signed(bh),
        "mpylshu": signed(al) * bh,
        "mpyluhs": al * signed(bh),
    }
    for mnemonic, expected in products.items():
        assert value(f"{mnemonic} .m1 a4, a5, a6; nop", "a6", a4=a, a5=b) == expected & 0xFFFF_FFFF, mnemonic


@pytest.mark.parametrize(("a", "b"), RANDOM)
def test_laws(a, b):
    text = """
        rotl .m1 a4, a5, a6 || shfl .m2 b4, b6;
        and .l1 a5, a15, a7;
        sub .l1 a14, a7, a8 || shl .s1 a4, a7, a9 || deal .m2 b6, b7;
        shru .s1 a4, a8, a10;
        or .l1 a9, a10, a9;
        mpyu4 .m1 a4, a5, a13:a12 || dotpu4 .m2 b4, b5, b8;
        bitr .m2 b4, b9;
        nop; bitr .m2 b9, b9; nop 3"""
    got = run(text, a4=a, a5=b, a14=32, a15=31, b4=a, b5=b).registers
    assert got["a6"] == got["a9"], "a rotation is two shifts"
    assert got["b7"] == a, "deal undoes shfl"
    assert got["b9"] == a, "bitr undoes itself"
    products = got["a13"] << 32 | got["a12"]
    assert sum(products >> n & 0xFFFF for n in (0, 16, 32, 48)) == got["b8"]


@pytest.mark.parametrize(("a", "b"), RANDOM)
def test_constant_amounts_are_register_amounts(a, b):
    left, right = b & 31, b >> 5 & 31
    for mnemonic in ("shl", "shr", "shru"):
        text = f"{mnemonic} .s1 a4, {left}, a8; {mnemonic} .s1 a4, a5, a9"
        got = run(text, a4=a, a5=left).registers
        assert got["a8"] == got["a9"], mnemonic
    for mnemonic in ("ext", "extu", "set", "clr"):
        text = f"{mnemonic} .s1 a4, {right}, {left}, a8; {mnemonic} .s1 a4, a5, a9"
        got = run(text, a4=a, a5=b).registers
        assert got["a8"] == got["a9"], mnemonic
