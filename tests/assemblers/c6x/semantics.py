"""What each instruction computes, as expressions over its sources.

`a`, `b`, `c` are the sources in the order in which they are written. How they
arrive is said beside the expression:

    u   as unsigned numbers
    s   as signed numbers
    m   as unsigned numbers if the result has 32 bits, else as signed ones:
        for what is the same modulo 2^32 and must be extended for a long

The result is cut to the width of the destination. A pair destination takes 64
bits (`D`) or 40 (`L`). The sources are TI's instruction descriptions; where
they leave a case open (shifts by more than 40, fields outside the register)
the comment says what is assumed.
"""

from __future__ import annotations

M32 = 0xFFFFFFFF


def s32(a: int) -> int:
    return (a & 0x7FFFFFFF) - (a & 0x80000000)


def s40(a: int) -> int:
    return (a & 0x7F_FFFF_FFFF) - (a & 0x80_0000_0000)


def s16(a: int) -> int:
    return (a & 0x7FFF) - (a & 0x8000)


def s8(a: int) -> int:
    return (a & 0x7F) - (a & 0x80)


def u16(a: int) -> int:
    return a & 0xFFFF


def halves(a: int, b: int, function) -> int:
    """A function of 16 bits on each half of two registers."""
    return (function(a >> 16, b >> 16) & 0xFFFF) << 16 | function(a & 0xFFFF, b & 0xFFFF) & 0xFFFF


def quarters(a: int, b: int, function) -> int:
    return sum((function(a >> n & 0xFF, b >> n & 0xFF) & 0xFF) << n for n in (0, 8, 16, 24))


def products(a: int, b: int, signed_a: bool) -> int:
    """Four 8 by 8 products, 16 bits each, the lowest bytes' lowest."""
    total = 0
    for n in range(4):
        left, right = a >> 8 * n & 0xFF, b >> 8 * n & 0xFF
        total |= ((s8(left) if signed_a else left) * right & 0xFFFF) << 16 * n
    return total


def dot(a: int, b: int, signed_a: bool) -> int:
    bytes_ = [(a >> n & 0xFF, b >> n & 0xFF) for n in (0, 8, 16, 24)]
    return sum((s8(left) if signed_a else left) * right for left, right in bytes_)


def field(a: int, left: int, right: int, signed: bool) -> int:
    """EXT and EXTU: `left` bits out at the top, then `right` to the right."""
    value = a << left & M32
    return (s32(value) if signed else value) >> right


def mask(low: int, high: int) -> int:
    """Bits low to high of SET and CLR; none if high is below low."""
    return (M32 >> (31 - high)) & (M32 << low) & M32 if low <= high else 0


def shift_left(a: int, n: int) -> int:
    # Amounts above 40 count as 40 (six bits of a register are looked at).
    return a << min(n & 63, 40)


def shift_right(a: int, n: int) -> int:
    return a >> min(n & 63, 40)


def norm(a: int, width: int) -> int:
    """Sign bits that are there beyond one."""
    a = ~a if a < 0 else a
    return width - 1 - a.bit_length()


def lmbd(bit: int, a: int) -> int:
    return 32 - (a if bit & 1 else a ^ M32).bit_length()


def deal(a: int) -> int:
    """Odd bits to the upper half, even bits to the lower."""
    return sum((a >> 2 * n & 1) << n | (a >> 2 * n + 1 & 1) << n + 16 for n in range(16))


def shfl(a: int) -> int:
    return sum((a >> n & 1) << 2 * n | (a >> n + 16 & 1) << 2 * n + 1 for n in range(16))


def bitr(a: int) -> int:
    return int(f"{a:032b}"[::-1], 2)


def bitc4(a: int) -> int:
    return sum((a >> n & 0xFF).bit_count() << n for n in (0, 8, 16, 24))


def xpnd(a: int, width: int) -> int:
    """Each of the low bits spread over `width` bits."""
    return sum(((1 << width) - 1) << width * n for n in range(32 // width) if a >> n & 1)


def gmpy4(a: int, b: int, gfpgfr: int) -> int:
    """Byte products in GF(2^8) modulo the polynomial in GFPGFR.

    Bits 26 to 24 hold the degree less one, bits 7 to 0 the polynomial without
    its highest term. Only fields of 256 elements are modelled.
    """
    if gfpgfr >> 24 & 7 != 7:
        raise ValueError(f"gmpy4 in a field of degree {(gfpgfr >> 24 & 7) + 1}: only degree 8 is modelled")
    return quarters(a, b, lambda x, y: field_product(x, y, gfpgfr & 0xFF | 0x100))


def field_product(x: int, y: int, polynomial: int) -> int:
    total = 0
    for n in range(8):
        total ^= (x << n) * (y >> n & 1)
    for n in range(14, 7, -1):
        total ^= (polynomial << n - 8) * (total >> n & 1)
    return total


def compared(a: int, b: int, width: int, function) -> int:
    """One bit for each lane, that of the lowest lane lowest."""
    lane = (1 << width) - 1
    return sum(function(a >> width * n & lane, b >> width * n & lane) << n for n in range(32 // width))


def rounded(a: int, b: int) -> int:
    """MPYHIR and MPYLIR: a 16 by 32 product, rounded, without its low 15 bits."""
    return (a * b + 0x4000) >> 15


EXPRESSIONS = {
    "add": ("m", "a + b"),
    "sub": ("m", "a - b"),
    "addu": ("u", "a + b"),
    "subu": ("u", "a - b"),
    "subc": ("u", "(a - b << 1) + 1 if a >= b else a << 1"),
    "addk": ("u", "d + a"),
    "addab": ("u", "a + b"),
    "addah": ("u", "a + (b << 1)"),
    "addaw": ("u", "a + (b << 2)"),
    "addad": ("u", "a + (b << 3)"),
    "subab": ("u", "a - b"),
    "subah": ("u", "a - (b << 1)"),
    "subaw": ("u", "a - (b << 2)"),
    "and": ("u", "a & b"),
    "or": ("u", "a | b"),
    "xor": ("u", "a ^ b"),
    "andn": ("u", "a & ~b"),
    "not": ("u", "~a"),
    "neg": ("m", "-a"),
    "mv": ("m", "a"),
    "zero": ("u", "0"),
    # The most negative number has no absolute value; it saturates.
    "abs": ("s", "min(abs(a), TOP)"),
    "cmpeq": ("s", "int(a == b)"),
    "cmpgt": ("s", "int(a > b)"),
    "cmplt": ("s", "int(a < b)"),
    "cmpgtu": ("u", "int(a > b)"),
    "cmpltu": ("u", "int(a < b)"),
    "lmbd": ("u", "lmbd(a, b)"),
    "norm": ("s", "norm(a, WIDTH)"),
    "shl": ("m", "shift_left(a, b)"),
    "shr": ("s", "shift_right(a, b)"),
    "shru": ("u", "shift_right(a, b)"),
    "ext": ("u", "field(a, b, c, True)"),
    "extu": ("u", "field(a, b, c, False)"),
    "set": ("u", "a | mask(b, c)"),
    "clr": ("u", "a & ~mask(b, c)"),
    "mvk": ("u", "a"),
    "mvkl": ("u", "s16(a)"),
    "mvkh": ("u", "d & 0xFFFF | a & 0xFFFF0000"),
    "mvklh": ("u", "d & 0xFFFF | a << 16"),
    "mpy": ("s", "s16(a) * s16(b)"),
    "mpyu": ("u", "u16(a) * u16(b)"),
    "mpyus": ("u", "u16(a) * s16(b)"),
    "mpysu": ("s", "s16(a) * u16(b)"),
    "mpyh": ("s", "(a >> 16) * (b >> 16)"),
    "mpyhu": ("u", "(a >> 16) * (b >> 16)"),
    "mpyhus": ("u", "(a >> 16) * s16(b >> 16)"),
    "mpyhsu": ("u", "s16(a >> 16) * (b >> 16)"),
    "mpyhl": ("s", "(a >> 16) * s16(b)"),
    "mpyhlu": ("u", "(a >> 16) * u16(b)"),
    "mpyhuls": ("u", "(a >> 16) * s16(b)"),
    "mpyhslu": ("s", "(a >> 16) * u16(b)"),
    "mpylh": ("s", "s16(a) * (b >> 16)"),
    "mpylhu": ("u", "u16(a) * (b >> 16)"),
    "mpyluhs": ("s", "u16(a) * (b >> 16)"),
    "mpylshu": ("u", "s16(a) * (b >> 16)"),
    "add2": ("u", "(a & 0xFFFF0000) + (b & 0xFFFF0000) | a + b & 0xFFFF"),
    "sub2": ("u", "(a & 0xFFFF0000) - (b & 0xFFFF0000) | a - b & 0xFFFF"),
    "add4": ("u", "quarters(a, b, lambda x, y: x + y)"),
    "sub4": ("u", "quarters(a, b, lambda x, y: x - y)"),
    "subabs4": ("u", "quarters(a, b, lambda x, y: abs(x - y))"),
    "max2": ("u", "halves(a, b, lambda x, y: max(s16(x), s16(y)))"),
    "min2": ("u", "halves(a, b, lambda x, y: min(s16(x), s16(y)))"),
    "maxu4": ("u", "quarters(a, b, max)"),
    "minu4": ("u", "quarters(a, b, min)"),
    "pack2": ("u", "a << 16 | b & 0xFFFF"),
    "packh2": ("u", "a & 0xFFFF0000 | b >> 16"),
    "packhl2": ("u", "a & 0xFFFF0000 | b & 0xFFFF"),
    "packlh2": ("u", "a << 16 | b >> 16"),
    "packh4": ("u", "a & 0xFF000000 | (a & 0xFF00) << 8 | b >> 16 & 0xFF00 | b >> 8 & 0xFF"),
    "packl4": ("u", "(a & 0xFF0000) << 8 | (a & 0xFF) << 16 | b >> 8 & 0xFF00 | b & 0xFF"),
    "shlmb": ("u", "b << 8 | a >> 24"),
    "shrmb": ("u", "a << 24 | b >> 8"),
    "swap2": ("u", "a << 16 | a >> 16"),
    "swap4": ("u", "(a & 0xFF00FF) << 8 | (a & 0xFF00FF00) >> 8"),
    "unpkhu4": ("u", "(a & 0xFF000000) >> 8 | a >> 16 & 0xFF"),
    "unpklu4": ("u", "(a & 0xFF00) << 8 | a & 0xFF"),
    "abs2": ("u", "halves(a, a, lambda x, y: min(abs(s16(x)), 0x7FFF))"),
    "cmpeq2": ("u", "compared(a, b, 16, lambda x, y: x == y)"),
    "cmpeq4": ("u", "compared(a, b, 8, lambda x, y: x == y)"),
    "cmpgt2": ("u", "compared(a, b, 16, lambda x, y: s16(x) > s16(y))"),
    "cmplt2": ("u", "compared(a, b, 16, lambda x, y: s16(x) < s16(y))"),
    "cmpgtu4": ("u", "compared(a, b, 8, lambda x, y: x > y)"),
    "cmpltu4": ("u", "compared(a, b, 8, lambda x, y: x < y)"),
    "shr2": ("u", "halves(a, a, lambda x, y: s16(x) >> (b & 31))"),
    "shru2": ("u", "halves(a, a, lambda x, y: x >> (b & 31))"),
    "avg2": ("u", "halves(a, b, lambda x, y: s16(x) + s16(y) + 1 >> 1)"),
    "avgu4": ("u", "quarters(a, b, lambda x, y: x + y + 1 >> 1)"),
    "bitc4": ("u", "bitc4(a)"),
    "bitr": ("u", "bitr(a)"),
    "deal": ("u", "deal(a)"),
    "shfl": ("u", "shfl(a)"),
    "xpnd2": ("u", "xpnd(a, 16)"),
    "xpnd4": ("u", "xpnd(a, 8)"),
    # Only five bits of the amount are looked at, and no shift is 32 or more.
    "rotl": ("u", "a << (b & 31) | a >> 32 - (b & 31)"),
    "mvd": ("u", "a"),
    "mpy2": ("u", "(s16(a >> 16) * s16(b >> 16)) << 32 | s16(a) * s16(b) & M32"),
    "mpyu4": ("u", "products(a, b, False)"),
    "mpysu4": ("u", "products(a, b, True)"),
    "mpyus4": ("u", "products(b, a, True)"),
    "mpyhi": ("s", "(a >> 16) * b"),
    "mpyli": ("s", "s16(a) * b"),
    "mpyih": ("s", "(b >> 16) * a"),
    "mpyil": ("s", "s16(b) * a"),
    "mpyhir": ("s", "rounded(a >> 16, b)"),
    "mpylir": ("s", "rounded(s16(a), b)"),
    "mpyihr": ("s", "rounded(b >> 16, a)"),
    "mpyilr": ("s", "rounded(s16(b), a)"),
    "dotp2": ("u", "s16(a >> 16) * s16(b >> 16) + s16(a) * s16(b)"),
    "dotpn2": ("u", "s16(a >> 16) * s16(b >> 16) - s16(a) * s16(b)"),
    "dotpu4": ("u", "dot(a, b, False)"),
    "dotpsu4": ("u", "dot(a, b, True)"),
    "dotpus4": ("u", "dot(b, a, True)"),
    "gmpy4": ("u", "gmpy4(a, b, G['gfpgfr'])"),
}
#: Shorter ways for amounts known beforehand, which cannot be out of range.
CONSTANT_AMOUNTS = {
    "shl": "a << b",
    "shr": "a >> b",
    "shru": "a >> b",
    "rotl": "a << b | a >> 32 - b",
    "extu": "(a << b & M32) >> c",
}
#: Results that cannot be wider than their 32-bit sources.
FITTING = ("and", "or", "xor", "mv", "mvd", "shru", "extu", "cmpeq", "cmpgt", "cmplt", "cmpgtu", "cmpltu", "mpyu")
#: The register form of a field instruction: both numbers in one source.
PACKED_FIELD = {"b": "(b >> 5 & 31)", "c": "(b & 31)"}
