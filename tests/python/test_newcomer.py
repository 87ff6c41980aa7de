"""The newcomer's examples: each runs, and does what its page says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import ciphermill as cm

NEWCOMER = Path(__file__).resolve().parents[2] / "examples" / "newcomer"
CIPHER, HASH, MACHINE, INSTRUCTION = (
    str(NEWCOMER / name) for name in ("rc5/cipher.toml", "sm3/cipher.toml", "picorv32.toml", "sm3p.toml")
)


def test_the_cipher_on_both_machines():
    """Rotations by secrets take as long as they turn on the machine that shifts step by step, and there alone."""
    for direction in ("encrypt", "decrypt"):
        own, usual = cm.run(CIPHER, [MACHINE, "rv32"], direction=direction)
        assert own.verified and usual.verified and own.cycles_per_block > 4 * usual.cycles_per_block
    assert cm.audit(CIPHER, on=MACHINE).findings and not cm.audit(CIPHER, on="rv32").findings


def test_the_hash_function_on_the_machine_with_the_instructions(cli):
    plain = cm.run(HASH, MACHINE, unroll=False)
    with_it = cm.run(HASH, MACHINE, with_=INSTRUCTION, unroll=False)
    assert plain.verified and with_it.verified
    assert with_it.cycles_per_block < plain.cycles_per_block * 0.6
    listing = cli("asm", HASH, "--on", MACHINE, "--with", INSTRUCTION, "--no-unroll").out
    assert {"sm3p0", "sm3p1", "roli"} <= set(re.findall(r"\t(\w+)", listing))


def test_a_message_of_more_than_a_block():
    """Longer than the standard's examples, and with a padding of two blocks, against the digest by
    OpenSSL 3 (`openssl dgst -sm3`) of 0, 1, 2 ... 119."""
    digest = cm.cipher(HASH).hash(bytes(range(120)))
    assert digest.hex() == "6babee35e6a1515af9d6255109c24f3c08897829422c6225d235fd4c8527e9ec"


def test_each_shift_takes_its_steps_of_four_and_of_one():
    file = tomllib.loads(Path(MACHINE).read_text())
    for mnemonic in ("slli", "srli", "srai"):
        kinds = [(n, i) for n, i in file["instructions"].items() if n.split("_")[0] == mnemonic]
        cycles = {
            amount: file["timings"][i["timing"]]["issue_cycles"]
            for _, i in kinds
            for amount in i["operands"]["imm"]["values"]
        }
        assert cycles == {n: 4 + n // 4 + n % 4 for n in range(32)}


def test_the_instructions_have_hardware(cli, tmp_path):
    cli("rtl", INSTRUCTION, "--verilog-only", "-o", tmp_path)
    assert {path.name for path in tmp_path.glob("op_*.v")} >= {"op_sm3p0.v", "op_sm3p1.v", "op_roli.v"}
