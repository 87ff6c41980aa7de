"""Delays, branches, stalls: programs of a few packets, worked out by hand."""

from __future__ import annotations

import pytest

from . import Stopped, load
from .helpers import BUFFER, RETURN_CYCLES, cycles, lines, refused, run, stops, value

WORDS = b"".join(word.to_bytes(4, "little") for word in (0x11, 0x22, 0x33, 0x44))


def delay(issue: str, register: str, slots: int, machine: str = "c64x", **registers: int) -> tuple[int, int]:
    """What a copy made `slots` cycles after an instruction sees, and one a cycle later."""
    side, number = (1, "a") if register[0] == "a" else (2, "b")
    gap = f"nop {slots}; " if slots else ""
    early = f"{issue}; {f'nop {slots - 1}; ' if slots > 1 else ''}mv .s{side} {register}, {number}15; nop 5"
    late = f"{issue}; {gap}mv .s{side} {register}, {number}15; nop 5"
    options = {"content": WORDS, register: 0x777, **registers}
    before = run(early, machine, **options).registers[f"{number}15"] if slots else 0x777
    return before, run(late, machine, **options).registers[f"{number}15"]


@pytest.mark.parametrize("machine", ["c6201", "c64x"])
@pytest.mark.parametrize(
    ("issue", "register", "slots", "result"),
    [
        ("add .l1 a4, a5, a6", "a6", 0, 9),
        ("mvk .s2 -3, b6", "b6", 0, 0xFFFF_FFFD),
        ("mpy .m1 a4, a5, a6", "a6", 1, 20),
        ("mpyhslu .m1 a4, a5, a6", "a6", 1, 0),
        ("ldw .d1t1 *+a7[1], a6", "a6", 4, 0x22),
        ("ldb .d1t2 *+a7[8], b6", "b6", 4, 0x33),
    ],
)
def test_delay_slots(machine, issue, register, slots, result):
    assert delay(issue, register, slots, machine, a4=4, a5=5, a7=BUFFER) == (0x777, result)


@pytest.mark.parametrize(
    ("issue", "register", "slots", "result"),
    [
        ("rotl .m1 a4, 4, a6", "a6", 1, 0x40),
        ("shfl .m1 a4, a6", "a6", 1, 0x10),
        ("mvd .m1 a4, a6", "a6", 3, 4),
        ("gmpy4 .m1 a4, a5, a6", "a6", 3, 20),
        ("dotpu4 .m1 a4, a5, a6", "a6", 3, 20),
        ("mpy2 .m1 a4, a5, a7:a6", "a6", 3, 20),
        ("mpyli .m1 a4, a5, a7:a6", "a6", 3, 20),
        ("mvk .d1 7, a6", "a6", 0, 7),
    ],
)
def test_delay_slots_of_the_c64x(issue, register, slots, result):
    assert delay(issue, register, slots, a4=4, a5=5) == (0x777, result)


def test_address_register_changes_after_one_cycle():
    got = run("ldw .d1t1 *a4++, a5; mv .s1 a4, a6; nop 4", content=WORDS, a4=BUFFER).registers
    assert (got["a6"], got["a5"]) == (BUFFER + 4, 0x11)


def test_all_reads_come_before_all_writes():
    got = run("mv .l1 a4, a5 || mv .s1 a5, a4", a4=1, a5=2).registers
    assert (got["a4"], got["a5"]) == (2, 1)


def test_loads_in_flight_into_one_register():
    code = "ldw .d1t1 *a4, a5; ldw .d1t1 *+a4[1], a5; nop 3; mv .s1 a5, a6; mv .s1 a5, a7"
    got = run(code, content=WORDS, a4=BUFFER)
    assert (got.registers["a6"], got.registers["a7"]) == (0x11, 0x22)
    # The first copy reads a5 while the second load is still on its way.
    assert got.early_reads == {(6, "a5"): 1}


def test_early_reads_are_noted_and_take_the_old_value():
    got = run("ldw .d1t1 *a4, a5; add .l1 a5, a5, a6; [b0] mv .s1 a5, a7; nop 4", a4=BUFFER, a5=1, b0=0)
    assert got.registers["a6"] == 2
    assert got.early_reads == {(4, "a5"): 1}


def test_predicates():
    code = "[a1] mvk .s1 1, a5 || [!a1] mvk .s2 2, b5 || [!b0] add .l1 a4, a4, a6"
    got = run(code, a1=0, b0=0, a4=3, a5=9, b5=9)
    assert [got.registers[name] for name in ("a5", "b5", "a6")] == [9, 2, 6]
    assert got.events["annulled"] == 1


def test_false_predicate_loads_stores_and_moves_nothing():
    got = run("[a1] ldw .d1t1 *a4++, a5; [a1] stw .d1t1 a5, *a4; nop 4", a1=0, a4=3, a5=9)
    assert (got.registers["a4"], got.registers["a5"]) == (3, 9)


def test_branch_has_five_delay_slots():
    text = lines(f"b .s1 there; {'add .l1 1, a4, a4; ' * 5}mvk .s1 100, a4")
    made = load(f"\t.text\nmain:\n{text}there:\n\tb .s2 b3\n\tnop 5\n", "c6201")
    got = made.run("main", {"a4": 0})
    assert got.registers["a4"] == 5
    assert got.cycles == 6 + RETURN_CYCLES


@pytest.mark.parametrize("nops", [5, 6, 9])
def test_branch_cuts_a_long_nop_short(nops):
    made = load(f"\t.text\nmain:\n\tb .s1 there\n\tnop {nops}\n\tmvk .s1 1, a4\nthere:\n\tb .s2 b3\n\tnop 5\n", "c6201")
    got = made.run("main", {"a4": 0})
    assert (got.cycles, got.registers["a4"]) == (6 + RETURN_CYCLES, 0)


def test_branches_in_flight_each_take_effect():
    # Branches at cycles 0, 1 and 2: `one` runs one packet, then `two` one, then `three`.
    text = """
	.text
main:
	b .s1 one
	b .s1 two
	b .s1 three
	nop 3
	mvk .s1 99, a4
one:
	add .l1 1, a4, a4
	mvk .s1 99, a4
two:
	addk .s1 16, a4
	mvk .s1 99, a4
three:
	addk .s1 256, a4
	b .s2 b3
	nop 5
"""
    got = load(text, "c6201").run("main", {"a4": 0})
    assert got.registers["a4"] == 0x111
    assert got.cycles == 6 + 3 + RETURN_CYCLES
    assert got.events["taken"] == 4


def test_loop_of_one_packet():
    # Six branches fill the delay slots; the loop then runs once a cycle.
    text = "\t.text\nmain:\n" + "\t[a1] b .s1 loop\n||\tsub .l1 a1, 1, a1\n" * 5
    text += "loop:\n\tadd .l2 1, b4, b4\n||\t[a1] sub .l1 a1, 1, a1\n||\t[a1] b .s1 loop\n\tb .s2 b3\n\tnop 5\n"
    got = load(text, "c6201").run("main", {"a1": 20, "b4": 0})
    # Branches of cycles 0..19 are taken: packets `loop` run at 5..25, 21 times.
    assert got.registers["b4"] == 21
    assert got.cycles == 26 + RETURN_CYCLES


def test_two_branches_of_a_packet():
    code = "[a1] b .s1 main || [!b0] b .s2 b3; nop 5"
    assert run(code, a1=0, b0=0).cycles == 6
    stops(code, "two branches of one packet are both taken", a1=1, b0=0)


def test_branch_to_what_is_no_packet():
    stops("b .s2 b5; nop 5", "branch to 0x00001234, where no packet begins", b5=0x1234)
    with pytest.raises(Stopped, match="runs past its last packet"):
        load("\t.text\nmain:\n\tnop\n", "c64x").run("main")


@pytest.mark.parametrize(("count", "slots"), [(0, 5), (2, 3), (5, 0), (7, 0)])
def test_bnop(count, slots):
    text = f"\t.text\nmain:\n\tbnop .s1 there, {count}\n" + "\tadd .l1 1, a4, a4\n" * 9 + "there:\n\tbnop .s2 b3, 5\n"
    got = load(text, "c64x").run("main", {"a4": 0})
    assert (got.registers["a4"], got.cycles) == (slots, 6 + RETURN_CYCLES)


def test_false_bnop_still_waits():
    assert cycles("[a1] bnop .s1 main, 3; nop", a1=0) == 5


def test_bdec_and_bpos():
    made = load("\t.text\nmain:\n\tbdec .s1 main, a4\n\tnop 5\n\tb .s2 b3\n\tnop 5\n", "c64x")
    got = made.run("main", {"a4": 2})
    # Taken at 2, 1 and 0; at -1 it neither branches nor counts.
    assert (got.registers["a4"], got.events["taken"]) == (0xFFFF_FFFF, 4)
    assert got.cycles == 4 * 6 + RETURN_CYCLES
    assert run("bpos .s1 main, a4; nop 5", a4=0x8000_0000).events["taken"] == 1


def test_addkpc_gives_the_address_of_a_label():
    text = "\t.text\nmain:\n\tmv .l2 b3, b5\n\tb .s1 leaf\n\taddkpc .s2 back, b3, 4\nback:\n\tb .s2 b5\n\tnop 5\n"
    text += "leaf:\n\tbnop .s2 b3, 5\n"
    got = load(text, "c64x").run("main")
    assert got.cycles == 1 + 6 + 6 + RETURN_CYCLES
    assert got.registers["b3"] == load(text, "c64x").symbols["back"]


def test_long_nops():
    assert cycles("nop; nop 9; nop 2 || mv .l1 a4, a5") == 12
    # A result lands while the machine waits.
    assert value("mpy .m1 a4, a4, a5; nop 3; mv .s1 a5, a6", "a6", a4=3) == 9


def test_two_writes_in_one_cycle():
    stops("mpy .m1 a4, a5, a6; add .l1 a4, a5, a6", "line 3: two writes of a6 land in one cycle")
    stops("ldw .d1t1 *a4, a5; nop 3; mv .s1 a4, a5", "two writes of a5", a4=BUFFER)
    stops("ldw .d1t1 *a4, a5; nop 2; mpy .m1 a4, a4, a5; nop", "two writes of a5", a4=BUFFER)
    assert value("mpy .m1 a4, a5, a6 || add .l1 a4, a5, a6; mv .s1 a6, a7; mv .s1 a6, a8", "a7", a4=2, a5=3) == 5
    code = "[a1] mv .l1 a4, a6 || [b0] mv .s1 a5, a6"
    assert value(code, "a6", a4=4, a5=5, a1=0, b0=1) == 5
    stops(code, "two writes of a6 in one cycle", a1=1, b0=1)


def test_write_ports_of_the_multiplier():
    # A 64-bit product issued at 0 and a rotate at 2 land together.
    stops("mpy2 .m1 a4, a5, a7:a6; nop; rotl .m1 a4, 3, a8; nop", "three results of .m1")
    run("mpy2 .m1 a4, a5, a7:a6; rotl .m1 a4, 3, a8; nop 2")
    run("gmpy4 .m1 a4, a5, a6; nop; rotl .m1 a4, 3, a8; nop")
    run("mpy2 .m1 a4, a5, a7:a6; nop; rotl .m2 b4, 3, b8; nop")


def test_cross_path_stall():
    assert cycles("add .l1 a4, a5, a6; mv .l2x a6, b6") == 3
    assert cycles("add .l1 a4, a5, a6; nop; mv .l2x a6, b6") == 3
    assert cycles("add .l1 a4, a5, a6; mv .l1 a6, a7") == 2
    assert cycles("add .l1 a4, a5, a6; mv .l2x a6, b6", "c6201") == 2
    # Both paths in one packet: one cycle.
    assert cycles("mv .l1 a4, a6 || mv .l2 b4, b6; mv .l2x a6, b7 || mv .l1x b6, a7") == 3
    # The result of a multiply lands a cycle later than that of an add.
    assert cycles("mpy .m1 a4, a5, a6; nop; mv .l2x a6, b6") == 4
    assert cycles("mpy .m1 a4, a5, a6; mv .l2x a6, b6") == 2
    # Not after a load, but after the change of an address register.
    assert cycles("ldw .d1t1 *a4, a6; nop 4; mv .l2x a6, b6", a4=BUFFER) == 6
    assert cycles("ldw .d1t1 *a4++, a6; mv .l2x a4, b6; nop 3", a4=BUFFER) == 6
    # A write that did not happen makes nobody wait.
    assert cycles("[a1] add .l1 a4, a5, a6; mv .l2x a6, b6", a1=0) == 2
    assert run("add .l1 a4, a5, a6; mv .l2x a6, b6").events["cross_path_stalls"] == 1


def test_stalls_stop_the_whole_pipeline():
    # The load lands four packets later, whatever a stall adds.
    code = "ldw .d1t1 *a4, a5; mv .l1 a6, a7; mv .l2x a7, b7; nop; mv .s1 a5, a8; mv .s1 a5, a9"
    got = run(code, content=WORDS, a4=BUFFER, a5=1)
    assert (got.registers["a8"], got.registers["a9"]) == (1, 0x11)
    assert got.cycles == 6 + 1 + RETURN_CYCLES


@pytest.mark.parametrize(
    ("first", "second", "stall"),
    [
        ("ldw .d1t1 *a4, a5", "ldw .d2t2 *+b4[2], b5", 1),
        ("ldw .d1t1 *a4, a5", "ldw .d2t2 *+b4[1], b5", 0),
        ("ldw .d1t1 *a4, a5", "ldw .d2t2 *b4, b5", 1),
        ("ldb .d1t1 *a4, a5", "ldb .d2t2 *+b4[1], b5", 1),
        ("ldb .d1t1 *a4, a5", "ldb .d2t2 *+b4[2], b5", 0),
        ("ldh .d1t1 *+a4[1], a5", "stw .d2t2 b5, *b4", 1),
        ("ldh .d1t1 *+a4[1], a5", "stw .d2t2 b5, *+b4[1]", 0),
    ],
)
def test_bank_conflicts_of_the_c6201(first, second, stall):
    code = f"{first} || {second}; nop 4"
    assert cycles(code, "c6201", bank_conflicts=True, a4=BUFFER, b4=BUFFER) == 5 + stall
    assert cycles(code, "c6201", a4=BUFFER, b4=BUFFER) == 5


def test_no_bank_conflict_between_blocks_or_with_a_false_predicate():
    code = "[b0] ldw .d1t1 *a4, a5 || ldw .d2t2 *b4, b5; nop 4"
    assert cycles(code, "c6201", bank_conflicts=True, a4=BUFFER, b4=BUFFER, b0=0) == 5
    assert cycles(code, "c6201", bank_conflicts=True, a4=BUFFER, b4=BUFFER, b0=1) == 6
    made = load("\t.text\nmain:\n\tldw .d1t1 *a4, a5\n||\tldw .d2t2 *b4, b5\n\tnop 4\n\tb .s2 b3\n\tnop 5\n", "c6201")
    memory = made.memory()
    memory.add(0, 0x1_0000)
    got = made.run("main", {"a4": 0, "b4": 0x8000}, memory=memory, bank_conflicts=True)
    assert got.cycles == 5 + RETURN_CYCLES


def test_results_after_the_return_are_noted():
    got = load("\t.text\nmain:\n\tb .s2 b3\n\tnop 4\n\tldw .d1t1 *a4, a5\n", "c64x")
    memory = got.memory()
    memory.add(BUFFER, 16)
    assert got.run("main", {"a4": BUFFER}, memory=memory).notes == ["line 5: the result in a5 lands after the return"]


def test_field_register():
    code = "mvc .s2 b4, gfpgfr; nop 3; gmpy4 .m1 a4, a5, a6; nop 3; mvc .s2 gfpgfr, b5"
    got = run(code, a4=0x57, a5=0x83, b4=0x0700_001B)
    # The product of FIPS 197, section 4.2.
    assert (got.registers["a6"], got.registers["b5"], got.notes) == (0xC1, 0x0700_001B, [])
    early = run("mvc .s2 b4, gfpgfr; gmpy4 .m1 a4, a5, a6; nop 3", b4=0x0700_001B)
    assert "less than 4 cycles" in early.notes[0]
    stops("mvc .s2 b4, gfpgfr; nop 3; gmpy4 .m1 a4, a5, a6; nop 3", "not modelled", b4=0x0300_0003)
    stops("mvc .s2 b4, amr; nop", "circular addressing", b4=1)
    refused("mvc .s2 gfpgfr, b4", "c6201", "C64x only")


def test_a_limit_of_cycles():
    with pytest.raises(Stopped, match="more than 1000 cycles"):
        load("\t.text\nmain:\n\tb .s1 main\n\tnop 5\n", "c64x").run("main", limit=1000)


def test_counts():
    got = run("add .l1 a4, a5, a6 || nop; nop 2; [a1] mv .s1 a4, a5", a1=0)
    assert (got.packets, got.instructions, got.mix["nop"], got.mix["add"]) == (5, 3, 3, 1)
