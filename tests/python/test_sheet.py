"""Microbenchmarks of the out-of-order machines, beside published values."""

from __future__ import annotations

import json

import pytest

from ciphermill import sheets as sheet

#: What a machine does not do as the real one, by machine: group and name of the loop.
WRONG: dict[str, set[tuple[str, str]]] = {
    "core2": {
        ("throughput", "rol r, i"),  # The measurement chains rotates by the carry flag.
        ("load latency", "16 MB"),
    },
    "zen4": {
        ("throughput", "movq x, r"),
        # Of products next to each other; here nothing else comes into their scheduler.
        ("products beside others", "imul, imul, lea, lea, rorx, rorx"),
        ("products beside others", "imul, imul, lea, lea, lea, lea"),
    },
    "zen5": {
        # 2.2 a cycle; here as many as there are units for it.
        ("throughput", "lea r, [r + r + d]"),
        # 6.7 a cycle of what is eliminated, of 16 in 64 bytes.
        ("throughput", "mov r, r"),
        ("throughput", "xor r, r (the same)"),
        # As if a product took one of the three shifters every second time, though chains of products start three a cycle.
        ("throughput of several", "1 imul, 1 rorx"),
        ("throughput of several", "2 imul, 2 rorx"),
        # A store's data waits there, too, but not for as long as here.
        ("throughput of chains", "load, 8 add, 1 stores"),
        ("throughput of chains", "load, 8 add, 2 stores"),
    },
}  # fmt: skip


@pytest.mark.parametrize("machine", sheet.names())
def test_every_residual_is_within_bounds_or_known(machine):
    filled = sheet.run(machine)
    assert {(row["group"], row["loop"]) for row in filled["rows"] if not row["within"]} == WRONG.get(machine, set())
    assert all(row["source"] for row in filled["rows"])
    names = [(row["group"], row["loop"]) for row in filled["rows"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("group", "expected", "ours", "within"),
    [
        ("throughput", 0.5, 1.0, False), ("throughput", 0.5, 0.46, True), ("throughput", 0.5, 0.44, False),
        ("latency", 1, 1.4, True), ("latency", 1, 2, False), ("latency", 10.28, 10, True), ("latency", 7, 10.28, False),
        ("load latency", 200, 209, True), ("load latency", 200, 211, False), ("misprediction", [12, 18], 18.6, True),
    ],
)  # fmt: skip
def test_how_far_a_figure_may_be_off(group, expected, ours, within):
    loop = {"name": "x", "group": group, "body": ["a"], "expected": expected}
    assert sheet.row({"source": "s"}, loop, {"cycles": ours, "events": {}}, {})["within"] is within


OWN = """\
[machine]
name = "own"
title = "Own"
description = "A machine with a lea of its own."
inherits = "zen5"

[timings.slow]
units = ["alu1", "alu2", "alu3"]
latency = 3
source = "assumption"

[instructions]
lea_far = { timing_at = { "m@bid8" = "slow" } }

[core.load]
latency = 6
scaled_cycles = 2
source = "assumption"
"""
OWN_SHEET = """\
[sheet]
start = ["mov_i {turns}, r11d"]
end = ["add_i_i8 r11d, -1", "jne top", "ret !stack"]
source = "by hand"

[[loop]]
name = "this form"
group = "latency"
body = ["lea_far_bid8 eax, ecx, eax, 4"]
copies = 16
expected = 3

[[loop]]
name = "another form"
group = "latency"
body = ["lea_far_bisd8 eax, ecx, eax, 1, 4"]
copies = 16
expected = 1

[[loop]]
name = "one unit of three"
group = "throughput"
body = ["lea_far_bid8 eax, r9d, r9d, 4", "lea_far_bid8 ecx, r9d, r9d, 4"]
copies = 30
expected = 0.333

[[loop]]
name = "load"
group = "latency"
setup = ["mov_i 65536, eax"]
body = ["load_b eax, eax"]
chase = { at = 65536, bytes = 4096, stride = 64 }
copies = 16
expected = 6

[[loop]]
name = "load with a scaled index"
group = "latency"
setup = ["mov_i 65536, eax", "mov_i 0, ecx"]
body = ["load_bis eax, eax, ecx, 2"]
chase = { at = 65536, bytes = 4096, stride = 64 }
copies = 16
expected = 8
"""


def test_a_form_of_its_own_timing(write):
    """Worked out by hand: what a form's timing says, and what a scaled index adds."""
    filled = sheet.run(str(write("own.toml", OWN)), str(write("sheets/mine.toml", OWN_SHEET)))
    assert [round(row["ours"], 1) for row in filled["rows"]] == [3, 1, 0.3, 6, 8]
    assert all(row["within"] for row in filled["rows"])


def test_a_users_own_machine_has_the_sheet_of_what_it_inherits_from(cli, write):
    own = write("own.toml", OWN)
    answer = cli("sheet", own)
    assert answer.code == 1
    first = answer.out.splitlines()[0]
    assert first.endswith("Loops and expected values are those of zen5.") and sheet.CRITERION in first
    assert "Not so: latency of lea r, [r + r + d], by its index: 3.00, not 1" in answer.out.replace("\n  ", " ")


def test_own_files_that_are_wrong(refused, write):
    own = write("own.toml", OWN.replace("m@bid8", "m@bid9"))
    assert "`m` has no form `bid9`" in refused("sheet", own)
    own = write("own.toml", OWN.replace("m@bid8", "n@bid8"))
    assert "`n` is no operand with forms" in refused("sheet", own)
    own = write("own.toml", OWN.replace("lea_far = { timing_at", "add = { timing_at"))
    assert "has no operand with forms" in refused("sheet", own)
    assert "no such file" in refused("sheet", "nowhere.toml")
    bare = write("bare.toml", OWN.replace('"zen5"', '"rv32"'))
    assert "give one with --loops FILE" in refused("sheet", bare)
    for text, said in [
        ("x = ", "not TOML"),
        ("x = 1", "loops.toml:1: x: unknown key; the keys here are sheet, loop"),
        (
            "",
            "loops.toml: sheet: missing; add it (a table); a sheet has a table [sheet]; machines/sheets/boom.toml shows how",
        ),
        (OWN_SHEET.replace('source = "by hand"', ""), "loops.toml:1: sheet.source: missing; add it (a string)"),
        (
            OWN_SHEET.replace("expected = 3", ""),
            "loop['this form'].expected: missing; add it (a number or a list); it is a number, or two for a range",
        ),
        (
            OWN_SHEET.replace("expected = 3", 'expected = "3"'),
            "loop['this form'].expected: is '3', must be a number or a list",
        ),
        (
            OWN_SHEET.replace("expected = 3", "expected = [3]"),
            "loop['this form'].expected: is a list; it is a number, or two for a range",
        ),
        (
            OWN_SHEET.replace("expected = 3", 'expected = 3\nless = "it"'),
            "loop['this form'].less: is 'it'; it names a loop above",
        ),
        (
            OWN_SHEET.replace("expected = 3", 'expected = 3\nwords = { at = 0, pattern = "012", count = 9 }'),
            "words.pattern: is '012'; it is made of 0 and 1, or random",
        ),
        (
            OWN_SHEET.replace("expected = 3", "expected = 3\nchase = { at = -4, bytes = 64, stride = 4 }"),
            "chase.at: is -4; it is a number from 0 to",
        ),
    ]:
        assert said in refused("sheet", "zen5", "--loops", write("loops.toml", text))


def test_others_stand_behind_each_copy():
    loop = {"name": "x", "body": ["a"], "others": {"instruction": "b", "times": 2}, "copies": 2}
    assert sheet.asked({"start": ["s"], "end": ["e"]}, loop)["text"].split("\n")[1:] == ["s", "top:", *"abbabb", "e"]


def test_a_residual_by_hand():
    head = {"source": "somewhere"}
    loop = {"name": "x", "group": "latency", "body": ["a", "b"], "copies": 5, "expected": [2, 3]}
    turn = {"cycles": 45.0, "events": {"branches_mispredicted": 0.5}}
    row = sheet.row(head, loop, turn, {})
    assert (row["ours"], row["residual"], row["within"], row["source"]) == (4.5, 1.5, False, "somewhere")
    assert sheet.row(head, {**loop, "each": 1}, turn, {})["ours"] == 9
    assert sheet.row(head, {**loop, "expected": 4.9}, turn, {})["within"]
    # Ten cycles more than the other loop, for a quarter of a wrong guess more.
    other = {"cycles": 35.0, "events": {"branches_mispredicted": 0.25}}
    assert sheet.row(head, {**loop, "less": "y"}, turn, {"y": other})["ours"] == 40
    assert not sheet.row(head, {**loop, "count": "branches_mispredicted", "expected": 0.4}, turn, {})["within"]


def test_the_command(cli):
    answer = cli("sheet", "boom", "--json")
    assert answer.code == 0
    rows = json.loads(answer.out)["rows"]
    assert {"latency", "throughput", "load latency", "predictors", "misprediction"} == {row["group"] for row in rows}
    text = cli("sheet", "boom").out
    assert text.startswith(f"boom: {len(rows)} of {len(rows)} figures are as expected: {sheet.CRITERION}.\n")


def test_refused(refused):
    assert refused("sheet", "leon2").startswith(
        "no microbenchmark sheet for 'leon2'; there are boom, core2, pentiumpro, zen4, zen5"
    )


def test_the_page():
    page = sheet.page()
    assert all(f"\n## {machine}\n" in page for machine in sheet.names()) and page.count("| NO |") == sum(
        map(len, WRONG.values())
    )


def test_native_figures_beside_simulated_ones():
    """Worked out by hand: cycles an instruction, counted guesses, and penalties with and without a count."""
    from ciphermill.silicon.loops import Turn

    loops = [
        {"name": "plain", "group": "latency", "body": ["a", "b"], "copies": 5, "expected": 1},
        {"name": "always", "group": "predictors", "body": ["a"], "count": "branches_mispredicted", "expected": 0},
        {"name": "penalty", "group": "misprediction", "body": ["a"], "less": "always", "expected": 12},
        {"name": "crash", "group": "latency", "body": ["a"], "expected": 1},
    ]
    turns = [{"cycles": 0.0, "events": {"branches_mispredicted": n}} for n in (0.0, 0.0, 0.4, 0.0)]

    def told(*native: Turn) -> list[tuple]:
        return [(row["silicon"], row["silicon_note"]) for row in sheet.beside(loops, turns, native)]

    plain, crash = Turn(25.0, None, None), Turn(None, None, "it stopped")
    counted = told(plain, Turn(3.0, 0.1, None), Turn(13.0, 0.6, None), crash)
    assert counted == [(2.5, None), (0.1, None), (20.0, None), (None, "it stopped")]
    guessed = told(plain, Turn(3.0, None, None), Turn(13.0, None, None), crash)
    assert guessed[1] == (None, "the kernel does not count that here")
    assert guessed[2] == (25.0, "by the simulation's wrong guesses")


def test_loops_run_natively(write):
    """A chain of 16 additions takes as many cycles as additions, on every processor there is."""
    from ciphermill import InputError
    from ciphermill.silicon import loops, settings

    machine = str(write("own.toml", OWN))
    text = (
        OWN_SHEET + '[[loop]]\nname = "chain"\ngroup = "latency"\nbody = ["add eax, eax"]\ncopies = 16\nexpected = 1\n'
    )
    few = settings.Settings(samples=30, rounds=1)
    try:
        filled = sheet.run(machine, str(write("mine.toml", text)), lambda *asked: loops.run(*asked, few))
    except InputError as error:
        pytest.skip(str(error))
    (chain,) = [row for row in filled["rows"] if row["loop"] == "chain"]
    # Sanity: a busy computer's samples may all be disturbed.
    assert chain["silicon"] is None or 0.9 < chain["silicon"] < 1.2
    assert "silicon" in sheet.text(filled)


def test_a_loop_that_the_assembler_does_not_take_is_left_out():
    from ciphermill.silicon import build, loops, processors

    text = "\t.text\n" + "".join(
        f"\n\t.balign 64\n\t.globl {name}\n\t.type {name}, @function\n{name}:\n.L{n}_0:\n\t{line}\n\tret\n"
        for n, (name, line) in enumerate([("one", "nop"), ("two", "frobnicate %eax"), ("three", "nop")])
    )
    text += '\n\t.section .cm_linear,"aw"\n\t.skip 64\n'
    isa = processors.ISAS[0]
    left, gone = loops.accepted(isa, text, ["one", "two", "three"])
    assert gone == {"two": "the assembler does not take 'frobnicate %eax'"}
    assert {"one", "two", "three"} <= build.program(isa, left).symbols.keys()
    assert left.count("\tnop\n") == 2 and "frobnicate" not in left
