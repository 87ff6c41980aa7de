"""Loads and stores: address modes, sizes, order, what is refused."""

from __future__ import annotations

import pytest

from . import Memory, load
from .helpers import BUFFER, run, stops

CONTENT = bytes(range(0x80, 0xC0)) + bytes(range(64))


@pytest.mark.parametrize(
    ("address", "offset", "change"),
    [
        ("*a4", 0, 0),
        ("*+a4[3]", 12, 0),
        ("*-a4[1]", -4, 0),
        ("*+a4(12)", 12, 0),
        ("*+a4[a5]", 8, 0),
        ("*-a4[a5]", -8, 0),
        ("*++a4", 4, 4),
        ("*--a4", -4, -4),
        ("*++a4[3]", 12, 12),
        ("*--a4(8)", -8, -8),
        ("*++a4[a5]", 8, 8),
        ("*a4++", 0, 4),
        ("*a4--", 0, -4),
        ("*a4++[a5]", 0, 8),
        ("*a4--[5]", 0, -20),
        ("*a4++(16)", 0, 16),
    ],
)
@pytest.mark.parametrize("machine", ["c6201", "c64x"])
def test_address_modes(machine, address, offset, change):
    got = run(f"ldw .d1t1 {address}, a6; nop 4", machine, CONTENT, a4=BUFFER + 32, a5=2).registers
    at = 32 + offset
    assert got["a6"] == int.from_bytes(CONTENT[at : at + 4], "little")
    assert got["a4"] == BUFFER + 32 + change


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        ("ldb .d1t1 *+a4[5], a6", 0xFFFF_FF85),
        ("ldbu .d1t1 *+a4[5], a6", 0x85),
        ("ldh .d1t1 *+a4[5], a6", 0xFFFF_8B8A),
        ("ldhu .d1t1 *+a4[5], a6", 0x8B8A),
        ("ldw .d1t1 *+a4[5], a6", 0x9796_9594),
        ("ldnw .d1t1 *+a4(0), a6", 0x8382_8180),
        ("ldb .d1t1 *+a4[a5], a6", 0x01),
    ],
)
def test_sizes_and_signs(access, expected):
    assert run(f"{access}; nop 4", content=CONTENT, a4=BUFFER, a5=65).registers["a6"] == expected


@pytest.mark.parametrize(
    ("access", "at"),
    [
        ("lddw .d1t1 *+a4[2], a7:a6", 16),
        ("lddw .d1t1 *+a4(16), a7:a6", 16),
        ("lddw .d1t1 *++a4[a5], a7:a6", 24),
        ("ldndw .d1t1 *+a4(3), a7:a6", 3),
        ("ldndw .d1t1 *+a4[3], a7:a6", 24),
        ("ldndw .d1t1 *+a4(a5), a7:a6", 3),
        ("ldndw .d1t1 *+a4[a5], a7:a6", 24),
    ],
)
def test_pairs(access, at):
    got = run(f"{access}; nop 4", content=CONTENT, a4=BUFFER, a5=3).registers
    assert got["a7"] << 32 | got["a6"] == int.from_bytes(CONTENT[at : at + 8], "little")


@pytest.mark.parametrize(
    ("access", "at", "stored"),
    [
        ("stb .d1t1 a6, *+a4[5]", 5, "88"),
        ("sth .d1t1 a6, *+a4[5]", 10, "8877"),
        ("stw .d1t2 b6, *+a4[5]", 20, "efbeadde"),
        ("stnw .d1t1 a6, *a4++(4)", 0, "88776655"),
        ("stdw .d1t1 a7:a6, *+a4[1]", 8, "8877665544332211"),
        ("stndw .d1t1 a7:a6, *+a4(3)", 3, "8877665544332211"),
        ("stw .d2t1 a6, *b4--[1]", 0, "88776655"),
    ],
)
def test_stores(access, at, stored):
    registers = {"a4": BUFFER, "b4": BUFFER, "a6": 0x5566_7788, "a7": 0x1122_3344, "b6": 0xDEAD_BEEF}
    memory = run(access, **registers).memory
    content = memory.bytes(BUFFER, 64)
    assert content == bytes(at) + bytes.fromhex(stored) + bytes(64 - at - len(stored) // 2)


def test_a_load_sees_the_store_of_the_cycle_before():
    got = run("stw .d1t1 a6, *a4; ldw .d1t1 *a4, a7; nop 4", a4=BUFFER, a6=77)
    assert got.registers["a7"] == 77


def test_a_load_beside_a_store_sees_the_old_content():
    got = run("stw .d1t1 a6, *a4 || ldw .d2t2 *b4, b7; nop 4", content=CONTENT, a4=BUFFER, b4=BUFFER, a6=77)
    assert got.registers["b7"] == 0x8382_8180
    assert got.memory.load(BUFFER, 4) == 77


def test_store_data_is_read_at_issue():
    got = run("stw .d1t1 a6, *a4 || add .l1 a6, a6, a6", a4=BUFFER, a6=5)
    assert got.memory.load(BUFFER, 4) == 5


@pytest.mark.parametrize(
    "access", ["ldw .d1t1 *a4, a5", "ldh .d1t1 *a4, a5", "stw .d1t1 a5, *a4", "lddw .d1t1 *a4, a7:a6"]
)
def test_alignment(access):
    stops(f"{access}; nop 4", "line 3: unaligned access", a4=BUFFER + 1)


def test_outside():
    there = "line 4: load of 4 bytes at 0x00002100, where there is no memory"
    stops("nop; ldw .d1t1 *a4, a5; nop 4", there, a4=BUFFER + 256)
    stops("stb .d1t1 a5, *-a4[1]", "line 3: store of 1 bytes at 0x00001fff", a4=BUFFER)
    stops("ldnw .d1t1 *a4, a5; nop 4", "load of 4 bytes", a4=BUFFER + 254)


def test_pieces_do_not_overlap():
    memory = Memory()
    memory.add(16, 16)
    memory.add(0, 16)
    with pytest.raises(ValueError, match="overlaps"):
        memory.add(31, 4)


def test_memory_of_ones_own():
    class Tape:
        """Loads give their address; stores are remembered."""

        def __init__(self) -> None:
            self.stored = []

        def load(self, address: int, size: int) -> int:
            return address

        def store(self, address: int, size: int, value: int) -> None:
            self.stored.append((address, size, value))

    text = "\t.text\nmain:\n\tldw .d1t1 *a4, a5\n\tnop 4\n\tsth .d1t1 a5, *+a4[1]\n\tb .s2 b3\n\tnop 5\n"
    tape = Tape()
    load(text, "c6201").run("main", {"a4": 0x8004}, memory=tape)
    assert tape.stored == [(0x8006, 2, 0x8004)]
