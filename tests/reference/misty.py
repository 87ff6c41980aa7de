"""MISTY1 and MISTY2 (M. Matsui, "New Block Encryption Algorithm MISTY", FSE 1997; RFC 2994).

The functions are written on pairs of halves with the subkeys KL, KO and KI by their indices as
the specification's tables give them, not in the flattened order of the C code. MISTY1 proves the
functions and the key schedule against published vectors; MISTY2 puts the same functions into the
other network. The S-boxes are given by the algebraic normal forms of RFC 2994, section 2.2 (S7)
and as a table (S9).
"""

S7 = [
    27, 50, 51, 90, 59, 16, 23, 84, 91, 26, 114, 115, 107, 44, 102, 73,
    31, 36, 19, 108, 55, 46, 63, 74, 93, 15, 64, 86, 37, 81, 28, 4,
    11, 70, 32, 13, 123, 53, 68, 66, 43, 30, 65, 20, 75, 121, 21, 111,
    14, 85, 9, 54, 116, 12, 103, 83, 40, 10, 126, 56, 2, 7, 96, 41,
    25, 18, 101, 47, 48, 57, 8, 104, 95, 120, 42, 76, 100, 69, 117, 61,
    89, 72, 3, 87, 124, 79, 98, 60, 29, 33, 94, 39, 106, 112, 77, 58,
    1, 109, 110, 99, 24, 119, 35, 5, 38, 118, 0, 49, 45, 122, 127, 97,
    80, 34, 17, 6, 71, 22, 82, 78, 113, 62, 105, 67, 52, 92, 88, 125,
]
