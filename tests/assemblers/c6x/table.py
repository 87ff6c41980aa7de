"""Which C62x and C64x instructions there are, on which units, with what operands.

From TI's instruction descriptions (SPRU733 for the C62x, SPRU732 for the
C64x). Operand codes, in the order in which an instruction is written:

    r   register of the unit's own file
    x   the one register that may come over the cross path; from the unit's
        own file without the `x` mark, from the other file with it
    d   destination, in the unit's own file
    l L     source, destination of 40 bits: a pair of the own file
    D       destination of 64 bits: a pair of the own file
    p   register of the own file that is read and written (`bdec`)
    t y     data of a load or store: a register, a pair, of the path's file
    m n     address; n is that of `ldndw` and `stndw`
    k u w   5-bit constant signed, 5-bit unsigned, 4-bit unsigned
    g       5-bit signed constant that is subtracted, so its negative is encoded
    c v h   16-bit constant signed; any 32 bits (low half wanted); high half
    3 9     3-bit unsigned constant
    a   a label
    C   control register

`latency` is the number of cycles from issue until the result can be read: 1
for one without delay slots. `2` and `4` on .M are TI's two- and four-cycle
multiplies; a load has 5. An address register that a load or store changes can
be read after 1 cycle whatever the instruction.

Units that differ between the machines stand on two lines: 62 is for both, 64
for the C64x alone.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = """
add                 ls 62 1   r x d | k x d
add                 l  62 1   r x L | x l L | k l L
add                 d  62 1   r r d | r u d
add                 d  64 1   r x d | x k d
sub                 ls 62 1   r x d | k x d | x g d
sub                 l  62 1   x r d | r x L | x r L | k l L | l g L
sub                 s  64 1   x r d
sub                 d  62 1   r r d | r u d
sub                 d  64 1   r x d
addu subu           l  62 1   r x L
addu                l  62 1   x l L
subu                l  62 1   x r L
subc                l  62 1   r x d
addk                s  62 1   c d
addab addah addaw subab subah subaw   d 62 1   r r d | r u d
addad               d  64 1   r r d | r u d
and or xor          ls 62 1   r x d | k x d
and or xor          d  64 1   r x d | k x d
andn                lsd 64 1  r x d
not neg             ls 62 1   x d
neg                 l  62 1   l L
not                 d  64 1   x d
mv                  ls 62 1   x d
mv                  l  62 1   l L
mv                  d  62 1   r d
mv                  d  64 1   x d
zero                lsd 62 1  d
zero                l  62 1   L
abs                 l  62 1   x d | l L
cmpeq cmpgt cmplt   l  62 1   r x d | k x d | x l d | k l d
cmpgt cmplt         l  62 1   x r d | x k d | l x d | l k d
cmpgtu cmpltu       l  62 1   r x d | w x d | x l d | w l d
cmpgtu cmpltu       l  64 1   u x d | u l d
lmbd                l  62 1   r x d | k x d
norm                l  62 1   x d | l d
shl                 s  62 1   x r d | x u d | l r L | l u L | x r L | x u L
shr shru            s  62 1   x r d | x u d | l r L | l u L
ext extu set clr    s  62 1   r u u d | x r d
mvk                 s  62 1   c d
mvk                 ld 64 1   k d
mvkl mvklh          s  62 1   v d
mvkh                s  62 1   h d
mvc                 s  62 1   C d | x C
mpy mpysu           m  62 2   r x d | k x d
mpyu mpyus mpyh mpyhu mpyhus mpyhsu     m 62 2   r x d
mpyhl mpyhlu mpyhuls mpyhslu            m 62 2   r x d
mpylh mpylhu mpyluhs mpylshu            m 62 2   r x d
ldb ldbu ldh ldhu ldw                   d 62 5   m t
stb sth stw         d  62 0   t m
b                   s  62 0   a | x
add2 sub2           s  62 1   r x d
add2 sub2           ld 64 1   r x d
add4 sub4 subabs4   l  64 1   r x d
max2 maxu4 min2 minu4                   l 64 1   r x d
pack2 packh2 packhl2 packlh2            ls 64 1  r x d
packh4 packl4       l  64 1   r x d
shlmb shrmb         ls 64 1   r x d
swap2               ls 64 1   r d
swap4               l  64 1   x d
unpkhu4 unpklu4     ls 64 1   x d
abs2                l  64 1   x d
cmpeq2 cmpeq4 cmpgt2 cmpgtu4            s 64 1   r x d
cmplt2 cmpltu4      s  64 1   x r d
shr2 shru2          s  64 1   x r d | x u d
avg2 avgu4          m  64 2   r x d
bitc4 bitr deal shfl xpnd2 xpnd4        m 64 2   x d
rotl                m  64 2   x r d | x u d
mvd                 m  64 4   x d
mpy2 mpyu4 mpysu4 mpyhi mpyli           m 64 4   r x D
mpyus4 mpyih mpyil  m  64 4   x r D
mpyhir mpylir       m  64 4   r x d
mpyihr mpyilr       m  64 4   x r d
dotp2               m  64 4   r x d | r x D
dotpn2 dotpu4 dotpsu4 gmpy4             m 64 4   r x d
dotpus4             m  64 4   x r d
lddw                d  64 5   m y
ldnw                d  64 5   m t
ldndw               d  64 5   n y
stdw                d  64 0   y m
stnw                d  64 0   t m
stndw               d  64 0   y n
bnop                s  64 0   a 3 | x 3
bdec                s  64 1   a p
bpos                s  64 0   a r
addkpc              s  64 1   a d 3
nop                 -  62 0   | 9
idle                -  62 0   |
"""

#: Bytes of an access, and whether it may be at any address.
ACCESS = {
    "ldb": 1, "ldbu": 1, "ldh": 2, "ldhu": 2, "ldw": 4, "lddw": 8, "ldnw": 4, "ldndw": 8,
    "stb": 1, "sth": 2, "stw": 4, "stdw": 8, "stnw": 4, "stndw": 8,
}  # fmt: skip
NONALIGNED = ("ldnw", "ldndw", "stnw", "stndw")
LOADS = tuple(name for name in ACCESS if name.startswith("ld"))
BRANCHES = ("b", "bnop", "bdec", "bpos")
#: Only .S2 reaches the program counter's and the control registers' paths.
SIDE_B = ("mvc", "addkpc")

MACHINES = {"c6201": 62, "c64x": 64}


@dataclass(frozen=True)
class Form:
    """One way to write an instruction."""

    mnemonic: str
    unit: str
    isa: int
    latency: int
    codes: tuple[str, ...]

    @property
    def crosses(self) -> bool:
        return "x" in self.codes


def forms() -> dict[str, list[Form]]:
    table: dict[str, list[Form]] = {}
    for row in ROWS.strip().splitlines():
        words = row.split()
        at = next(i for i, word in enumerate(words) if word in ("62", "64"))
        names, units, isa, latency = words[: at - 1], words[at - 1], int(words[at]), int(words[at + 1])
        for codes in " ".join(words[at + 2 :]).split("|"):
            for name in names:
                for unit in units.strip("-") or ("",):
                    table.setdefault(name, []).append(Form(name, unit, isa, latency, tuple(codes.split())))
    return table


FORMS = forms()
