"""`--optimise size`: the same cipher in fewer bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ciphermill as cm
from ciphermill import engine, manifest, study

#: Each kind of machine, and ciphers that differ in what makes their code large.
PAIRS = [
    ("rijndael", "c6201", "multi"), ("mars", "c64x", "single"), ("rc6", "epic", "multi"), ("serpent", "rv32", "multi"),
    ("misty1", "leon2", "single"), ("salsa20", "core2", "multi"), ("sosemanuk", "zen5", "multi"),
]  # fmt: skip


def run(cipher: str, machine: str, blocks: str, **options):
    return cm.run(cipher, on=machine, blocks=blocks, bytes=256, **options)


@pytest.mark.parametrize(("cipher", "machine", "blocks"), PAIRS)
def test_it_is_right_and_not_larger(cipher, machine, blocks):
    small = run(cipher, machine, blocks, optimise="size")
    # The smallest of the forms of fast code, and the one that takes no search.
    fast = run(cipher, machine, blocks, jam=1, unroll=False)
    assert small.verified and fast.verified
    assert (small.optimise, fast.optimise) == ("size", "speed")
    assert small.code_bytes <= fast.code_bytes
    assert small.provenance["settings"] != fast.provenance["settings"]
    if machine in ("c6201", "c64x", "epic"):
        assert small.code_bytes < fast.code_bytes


def test_the_c_compiler_saves_bytes_too():
    """Where clang would inline and unroll, and where that is smaller none the less."""
    less = cm.run("rijndael", on="leon2", variant="sbox-only", bytes=64, optimise="size")
    assert (
        less.verified and less.code_bytes < cm.run("rijndael", on="leon2", variant="sbox-only", bytes=64).code_bytes / 2
    )
    assert "-Oz" in less.provenance["origin"]["flags"]
    same = cm.run("rijndael", on="leon2", bytes=64, optimise="size")
    assert "-Oz" not in same.provenance["origin"]["flags"]


@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_programs_are_at_most_twice_those_of_the_dsp_paper(direction):
    """Here those of the cipher that comes nearest to it."""
    paper = study.find("aes-finalists-on-dsp").figures["table2"]["rc6"][direction]["single"]
    small = run("rc6", "c6201", "single", direction=direction, optimise="size")
    assert small.verified and small.code_bytes <= 2 * paper


def test_the_program_printed_is_the_small_one(cli):
    def code(*options: str) -> int:
        return int(re.search(r"\((\d+) bytes of code\)", cli("asm", "rc6", "--on", "c6201", *options).out)[1])

    # It has the key set-up and the other functions too.
    small = run("rc6", "c6201", "multi", optimise="size").code_bytes
    assert small < code("--optimise", "size") < code("--jam", "1", "--no-unroll")


def test_what_the_user_fixes_is_kept():
    unrolled = run("rc6", "c6201", "multi", optimise="size", unroll=True, jam=1)
    assert unrolled.verified and unrolled.unroll > 1


def test_commands_say_so(cli, refused):
    document = json.loads(cli("run", "rc6", "--on", "rv32", "--bytes", "64", "--optimise", "size", "--json").out)
    assert document["measurements"][0]["optimise"] == "size"
    assert "small" in cli("run", "rc6", "--on", "rv32", "--bytes", "64", "--optimise", "size").out.splitlines()[0]
    assert refused("run", "rc6", "--on", "rv32", "--optimise", "both").startswith("--optimise both: it is speed")
    grid = {"grid": [{"cipher": "rc6", "on": "rv32", "bytes": 64, "optimise": ["speed", "size"]}]}
    assert [m.optimise for m in cm.sweep(grid).measurements] == ["speed", "size"]


def test_an_exact_schedule_is_not_for_size():
    asked = engine.request(
        engine.module(manifest.find("rc6")),
        "c6201",
        engine.Options(optimise="size"),
        exact={"form": None, "answers": []},
    )
    with pytest.raises(cm.InputError, match="--optimal: an exact schedule is for speed"):
        engine._core.measure(engine.module(manifest.find("rc6")).wasm, asked)


@pytest.mark.parametrize("machine", ["core2", "zen5", "leon2", "rv32"])
def test_small_code_is_never_the_faster(machine):
    """Speed takes the fastest of all that it knows, small code's forms among them."""
    speck = Path(__file__).parent / "foreign" / "speck64.c"
    for cipher, direction in [
        (speck, "encrypt"),
        (speck, "decrypt"),
        ("rijndael", "encrypt"),
        ("misty1", "keysetup"),
        ("rc6", "encrypt"),
    ]:
        fast, small = (cm.run(cipher, on=machine, direction=direction, optimise=goal) for goal in ("speed", "size"))
        assert fast.verified and small.verified
        assert fast.cycles_per_block <= small.cycles_per_block, (cipher, direction)


def test_rounds_are_unrolled_where_that_is_faster():
    free, loops, unrolled = (cm.run("rijndael", on="rv32", unroll=unroll) for unroll in (None, False, True))
    assert free.verified and free.cycles_per_block == min(loops.cycles_per_block, unrolled.cycles_per_block)
