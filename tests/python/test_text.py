"""What people read: golden texts."""

from __future__ import annotations

import re

import pytest

import ciphermill as cm
from ciphermill import report, show
from ciphermill.measurement import Measurement

M = Measurement({
    "cipher": "rijndael", "variant": "ttable", "direction": "encrypt", "key_bits": 128, "bytes": 4096,
    "block_bytes": 16, "machine": "leon2", "with": ["sbox"], "without": [], "set": ["machine.clock_mhz=50"],
    "clock_mhz": 50.0, "blocks": "single", "jam": 1, "verified": True, "failure": None, "cycles": 256100,
    "cycles_per_block": 1000.25, "cycles_per_byte": 62.515625, "mbit_per_s": 6.3984, "instructions": 250000,
    "cpi": 1.0244, "metrics": {"lookup_share": 0.5, "l1d_hit": None}, "bottleneck": "units",
    "bounds": {"resource": 980.0, "recurrence": 110.5, "critical_path": 120.0, "lower": 980.0},
    "why": "The issue width limits it.", "code_bytes": 1200, "table_bytes": 4352, "stack_bytes": 96,
    "provenance": {"vectors": 400},
})  # fmt: skip


def test_sentence():
    assert report.sentence(M) == (
        "rijndael/ttable encrypt, 128-bit key, feedback, on leon2 --with sbox --set machine.clock_mhz=50: "
        "1000.2 cycles a block. The issue width limits it."
    )


def test_details():
    assert (
        report.details(M)
        == """\
  cycles a block  1000.2  (256100 for 4096 bytes)
  cycles a byte   62.52
  rate            6.40 Mbit/s at 50 MHz
  lower bound     980 cycles a block  (resources 980, recurrence 110.5, critical path 120)
  instructions    250000, 1.024 cycles each
  table lookups   50.0 %
  memory          1200 bytes of code, 4352 of tables, 96 of stack
  limited by      units
  verified        yes: output and memory equal the reference interpreter's; 400 official vectors"""
    )


def test_what_was_not_compared_is_said():
    long = Measurement({**M, "bytes": 300000000, "verified_bytes": 16777216})
    assert report.details(long).splitlines()[-1] == (
        "  verified        yes: output and memory equal the reference interpreter's after the first 16777216 bytes, "
        "the rest was not compared; 400 official vectors"
    )


def test_table():
    failed = Measurement({**M, "verified": False, "with": [], "blocks": "multi"})
    assert (
        report.table([M, failed])
        == """\
cipher           direction           key  machine     cycles/block  cycles/byte  Mbit/s  bound  limited by  verified
---------------  ------------------  ---  ----------  ------------  -----------  ------  -----  ----------  --------
rijndael/ttable  encrypt (feedback)  128  leon2+sbox        1000.2        62.52    6.40  980.0  units       yes
rijndael/ttable  encrypt             128  leon2             1000.2        62.52    6.40  980.0  units       NO"""
    )


def test_run_begins_with_a_sentence(cli):
    answer = cli("run", "rijndael", "--on", "leon2")
    first, blank, *rest = answer.out.splitlines()
    assert re.fullmatch(
        r"rijndael/ttable encrypt, 128-bit key, on leon2: \d+(\.\d)? cycles a block\. [A-Z].* limits? it.*\.", first
    )
    assert blank == "" and rest[0].startswith("  cycles a block")
    assert answer.err == "" and "\x1b" not in answer.out


def test_two_machines_make_a_table(cli):
    lines = cli("run", "rc6", "--on", "rv32", "--on", "leon2").out.splitlines()
    assert lines[0].startswith("rc6/plain encrypt, 128-bit key, on rv32: ")
    assert lines[1].startswith("rc6/plain encrypt, 128-bit key, on leon2: ")
    head = "machine cycles/block cycles/byte Mbit/s key set-up code tables context stack bound limited by verified"
    assert lines[3].split() == head.split()
    assert [line.split()[0] for line in lines[5:7]] == ["rv32", "leon2"] and lines[7:] == ["", report.UNITS]


def test_the_embedded_table_says_what_a_device_has_to_have():
    """Cycles of the key set-up and bytes of everything, as the JSON has them."""
    found = cm.run("present", on=["e31", "cortex-m4", "cortex-m0plus"], variant="sliced")
    _, _, *lines, blank, units = report.table(found).splitlines()
    assert (blank, units) == ("", report.UNITS)
    assert [line.split()[0] for line in lines] == ["e31", "cortex-m4", "cortex-m0plus"]
    for line, m in zip(lines, found, strict=True):
        cells = line.split()
        assert cells[4:9] == [
            f"{m.keysetup_cycles:.0f}",
            *(str(m[k]) for k in ("code_bytes_total", "cipher_table_bytes", "context_bytes", "stack_bytes")),
        ]
        assert m.code_bytes_total > m.code_bytes and m.context_bytes == 256
        # Measured by itself a key set-up has code of a form of its own.
        again = cm.run("present", on=m.machine, variant="sliced", direction="keysetup", unroll=m.unroll > 1)
        assert again.keysetup_cycles == again.cycles_per_block == pytest.approx(m.keysetup_cycles, rel=0.25)
    # Different programs stay in the table that names them.
    mixed = report.table([found[0], cm.run("present", on="e31", variant="table")])
    assert mixed.split()[0] == "cipher"


def test_list_machines(cli):
    sentence, blank, head, rule, *lines = cli("list", "machines").out.splitlines()
    names = [line.split("  ")[0] for line in lines]
    # Whatever machines there are: in order, each with its title in the same column.
    assert sentence.startswith(f"{len(lines)} machines; ") and blank == ""
    assert head == "machine" and set(rule) == {"-", " "} and names == sorted(names)
    width = len(rule.split()[0]) + 2
    assert f"{'leon2':<{width}}LEON-2 (SPARC V8)" in lines
    assert all(line[width - 1] == " " and line[width] != " " for line in lines)


def test_show(cli):
    out = cli("show", "leon2").out
    assert re.match(
        r"leon2: LEON-2 \(SPARC V8\); 1 instruction a cycle at 100 MHz, \d+ to choose from\.\n\nThe 32-bit SPARC V8 ",
        out,
    )
    assert "word               32 bits, big-endian\n" in out
    assert "issue              1 instruction a cycle; the pipeline waits for operands\n" in out
    assert re.search(
        r"\nload: result after 2 cycles; on lsu\n  \[.*LEON2Itineraries(?:.|\n)*?\]\n  ld \[rs1 \+ imm\], rd +rd = mem32\[rs1 \+ imm\]\n",
        out,
    )
    assert "What takes several instructions:\n" in out and "Where the numbers come from:\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_show_with_an_extension(cli):
    out = cli("show", "rv32", "--with", "zba,zbb").out
    assert out.startswith("rv32: RV32IM, five stages, in order, with zba, zbb; 1 instruction a cycle")
    assert re.search(r"sh2add rd, rs1, rs2 +rd = \(rs1 << 2\) \+ rs2  \(zba\)\n", out)


def test_show_settings(cli):
    assert "clock              50 MHz\n" in cli("show", "leon2", "--set", "machine.clock_mhz=50").out
    assert "4096 bytes, 1 way, lines of 32 bytes" in cli("show", "leon2", "--set", "memory.dcache.enabled=true").out


def test_help(cli):
    answer = cli("--help")
    assert answer.code == 0
    for command in ("run", "asm", "show", "list", "schema"):
        assert re.search(rf"^  {command} ", answer.out, re.MULTILINE)
    assert cli().out == answer.out
    assert "--key-bits" in cli("run", "--help").out
    assert re.fullmatch(r"ciphermill \d+\.\d+\.\d+\n", cli("--version").out)


def test_schema(cli):
    import json

    schemas = json.loads(cli("schema").out)
    assert schemas["machine"]["properties"]["machine"]


def test_count():
    assert show.count(1, "cycle") == "1 cycle" and show.count(2, "cycle") == "2 cycles"


def test_times_and_energies_have_no_exponents():
    """Figures that say something, from a small core's thousands of nanoseconds to a wide one's tenth."""
    said = [report.rounded(value) for value in (11265.6, 274.93, 18.75, 0.20312, 0.0)]
    assert said == ["11266", "274.9", "18.75", "0.2031", "0"]
    timed = Measurement({**M, "ns_per_byte": 11265.6, "nj_per_byte": 1.5})
    assert "  rate            6.40 Mbit/s at 50 MHz, 11266 ns a byte, 1.500 nJ\n" in report.details(timed)


def test_short_messages_say_their_units():
    m = Measurement({**M, "messages": [{"bytes": 16, "cycles": 4360}, {"bytes": 64, "cycles": 7630.5}]})
    assert report.short(m) == [("short messages", "cycles: 4360 for 16, 7630.5 for 64 bytes")]


def test_memory_is_said_by_direction():
    def of(direction, code, *stack):
        frames = [{"function": function, "bytes": bytes_} for function, bytes_ in stack]
        return {"direction": direction, "code_bytes": code, "table_bytes": 256, "stack": frames}

    sizes = [of("encrypt", 1200, ("cm_encrypt", 64), ("mix", 32)), of("keysetup", 80, ("cm_keysetup", 0))]
    m = Measurement({**M, "sizes": sizes, "code_bytes_total": 1300, "cipher_table_bytes": 4608, "context_bytes": 244})
    assert report.memory(m) == [
        ("memory", "1200 bytes of code, 4352 of tables, 96 of stack (frames: cm_encrypt 64, mix 32)"),
        ("  key set-up", "80 bytes of code, 256 of tables, 0 of frames"),
        ("  all together", "1300 bytes of code, 4608 of tables, 244 of context"),
    ]
    # A frame that is there to be filled, as a register window's, is said where nothing filled it.
    for stack, said in ((0, "0 of stack (frames: cm_encrypt 96)"), (96, "96 of stack")):
        one = Measurement({**m, "stack_bytes": stack, "sizes": [of("encrypt", 1200, ("cm_encrypt", 96))]})
        assert report.memory(one)[0][1] == f"1200 bytes of code, 4352 of tables, {said}"
