"""Microcontrollers: what others measured on boards beside the model, and what their machine files ask of code."""

from __future__ import annotations

import pytest

import ciphermill as cm

#: A Cortex-M4 whose loads and stores reach 31 bytes.
NEAR = """
[machine]
name = "near"
title = "Cortex-M4 with short displacements"
inherits = "cortex-m4"
[modes.far]
i12 = { operands = { b = "r", d = "uimm5" }, value = "b + d", asm = "[{b}, #{d}]", bytes = 0 }
[sources]
"modes.far" = "a test"
"""

#: A Cortex-M0+ that spills to the stack alone.
STACKED = """
[machine]
name = "stacked"
title = "Cortex-M0+ without its upper registers"
inherits = "cortex-m0plus"
[abi]
spill = []
"""

MACHINES = ["e31", "ibex", "cv32e40p", "cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4"]


def test_aes_on_the_e31_takes_what_the_board_took():
    """901 cycles a block: C with tables by clang 10 -O3, unrolled, words from aligned buffers (Campos and others, 2020)."""
    m = cm.run("rijndael", on="e31", variant="ttable", unroll=True, aligned=True)
    assert m.verified and abs(m.cycles_per_block / 901 - 1) < 0.05


def test_assembly_on_the_cortex_m4_is_a_tenth_faster():
    """ChaCha20 by hand 14 cycles a byte; AES by hand, unrolled, 634.7 a block (Schwabe and Stoffelen, 2016)."""
    chacha = cm.run("chacha20", on="cortex-m4", variant="r20", unroll=True)
    aes = cm.run("rijndael", on="cortex-m4", variant="one-table", blocks="single", unroll=True)
    assert chacha.verified and chacha.cycles_per_byte / 14 < 1.1
    assert aes.verified and aes.cycles_per_block / 634.7 < 1.08
    # The addresses of four tables are made before the loop of the rounds.
    looped = cm.run("rijndael", on="cortex-m4", variant="ttable", blocks="single", unroll=False)
    assert looped.verified and looped.cycles_per_block < 1000


def test_upper_registers_hold_what_is_spilled(write):
    stacked = write("stacked.toml", STACKED)
    far, near = (cm.run("chacha20", on=machine, variant="r20") for machine in (stacked, "cortex-m0plus"))
    assert near.verified and far.verified
    assert near.cycles_per_block < 0.95 * far.cycles_per_block and near.stack_bytes <= far.stack_bytes


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "cipher, variant", [("rijndael", "ttable"), ("chacha20", "r20"), ("misty1", "plain"), ("sosemanuk", "branching")]
)
def test_the_bound_holds(machine, cipher, variant):
    m = cm.run(cipher, on=machine, variant=variant, unroll=False)
    assert m.verified and m.bounds["lower"] <= m.cycles_per_block


def test_a_frame_that_displacements_do_not_reach(write):
    """No register is kept for that: one is taken from the values of such a function."""
    near = write("near.toml", NEAR)
    m, far = (cm.run("chacha20", on=machine, variant="r20", unroll=True) for machine in (near, "cortex-m4"))
    assert m.verified and min(m.stack_bytes, far.stack_bytes) > 32 and m.instructions > far.instructions


def test_shifted_operands_and_scaled_indices_are_used(cli, tmp_path):
    cli("asm", "rijndael", "--on", "cortex-m4", "--variant", "ttable", "--unroll", "-o", tmp_path / "aes.s")
    cli("asm", "salsa20", "--on", "cortex-m4", "-o", tmp_path / "salsa.s")
    aes, salsa = (tmp_path / "aes.s").read_text(), (tmp_path / "salsa.s").read_text()
    assert aes.count(", lsl #2]") >= 160 and "uxtb r" in aes and "ubfx r" in aes
    # A sum, a rotation and an exclusive or are two instructions.
    assert salsa.count(", ror #") >= 16 and "\tror.w" not in salsa


def test_arrays_that_reach_below_ram_are_refused(refused):
    """There are registers. HC-256 sets up with an array of 2,112 bytes, and C's stack has an eighth of 16 KB."""
    assert "C's stack" in refused("run", "hc256", "--on", "atmega1284p")


def test_a_message_comes_in_parts_where_memory_is_small():
    """HC-128 has room for few blocks beside its 4 KB of tables: trials are as short."""
    m = cm.run("hc128", on="atmega1284p", bytes=4096)
    assert m.verified and m.bytes == 4096


def test_costs_of_a_long_chain_do_not_overflow():
    """Where one value is read twice by what takes it in, and so on for 27 rounds, the cost of selection doubles each time."""
    assert cm.run("speck", on="cortex-m4", variant="s64", direction="decrypt").verified


def test_a_long_vector_does_not_lie_over_tables_in_flash():
    """One of SOSEMANUK has 128 KiB; the tables stand above RAM, below address 65536."""
    assert cm.run("sosemanuk", on="avr", variant="branchless", direction="keysetup").verified
