"""GNU as on the same programs; skipped where it is not built (build_tic6x.sh)."""

from __future__ import annotations

import re

import pytest

from . import Disagreement, Illegal, judge, load, missing, samples
from .assembler import ARCHITECTURES, run
from .test_program import xtea

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "found")
MACHINES = ("c6201", "c64x")


@pytest.mark.parametrize("machine", MACHINES)
def test_every_form(machine, tmp_path):
    """GNU as takes each form and writes back the same instruction."""
    text = samples.program(samples.every_form(machine))
    listing = judge(text, machine, tmp_path)
    assert listing.code_bytes == load(text, machine).code_bytes


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("lines", ["every_unit", "every_edge", "every_address"])
def test_same_verdict_on_good_and_bad_lines(machine, lines, tmp_path):
    """Thousands of lines, most of them wrong: each is refused by both or by none."""
    texts = getattr(samples, lines)()
    # GNU as takes a register for a label here, and leaves it undefined.
    texts = [text for text in texts if not re.match(r"(b|bnop) \.s1 a4", text)]
    program = samples.program(texts)
    source = tmp_path / "lines.s"
    source.write_text(program)
    theirs: set[int] = set()
    try:
        run("tic6x-elf-as", f"-march={ARCHITECTURES[machine]}", source, "-o", tmp_path / "lines.o")
    except Disagreement as error:
        theirs = {int(found[1]) for line in error.differences if (found := re.search(r"lines\.s:(\d+): Error", line))}
    ours = {}
    try:
        load(program, machine)
    except Illegal as error:
        ours = {fault.line: fault.text for fault in error.faults}
    printed = program.splitlines()
    assert [printed[line - 1] for line in sorted(theirs - set(ours))] == []
    assert [(printed[line - 1], ours[line]) for line in sorted(set(ours) - theirs)] == []


@pytest.mark.parametrize("machine", MACHINES)
def test_xtea(machine, tmp_path):
    listing = judge(xtea(1), machine, tmp_path)
    assert listing.symbols["xtea"] == 0xE000_0000
    assert listing.symbols["delta"] == 0
    assert listing.code_bytes == load(xtea(1), machine).code_bytes


PADDED = """
	.text
	.globl f
	.type f, @function
f:
	ldw .d1t1 *++a4[1], a5
||	ldw .d2t2 *b4++(8), b5
||	[!b0] add .l1 a1, a2, a3
	stw .d2t1 a3, *+b15[100]
.L1:
	mvkl .s1 f, a4
||	mvkl .s2 data, b4
	mvkh .s1 f, a4
||	mvkh .s2 data+4, b4
||	zero .d1 a9
||	zero .l1 a8
||	not .l2 b4, b5
	[a1] b .s1 .L1
||	[!a1] b .s2x a4
||	mpy .m1 a1, a2, a3
||	mpy .m2 b1, b2, b3
||	sub .l1 a1, 1, a3
||	mv .d1 a5, a6
||	cmpgt .l2 b6, 5, b6
||	mv .d2 b5, b7
	nop 5
	.balign 32
g:
	nop
||	mv .s1 a4, a5
	b .s2 b3
	nop 5
	.section .cm_linear, "aw"
data:
	.4byte f, g-f, -1
	.byte 1, 2
	.hword 0xABCD
	.skip 4
	.word data+8
"""


@pytest.mark.parametrize("machine", MACHINES)
def test_padding(machine, tmp_path):
    text = PADDED.replace("g-f", "8")
    listing = judge(text, machine, tmp_path)
    made = load(text, machine)
    assert listing.code_bytes == made.code_bytes
    assert listing.symbols["g"] == made.symbols["g"]
    words = sum(len(items) for _, items in listing.packets)
    printed = sum(len(packet.ops) for packet in made.packets)
    tail = -(printed + made.padding_nops) % 8
    assert words == printed + made.padding_nops + tail
    assert machine == "c64x" or made.padding_nops > 8
    for address, _ in listing.packets:
        size = 4 * len(dict(listing.packets)[address])
        assert machine == "c64x" or address % 32 + size <= 32


@pytest.mark.parametrize("machine", MACHINES)
def test_data(machine, tmp_path):
    text = PADDED.replace("g-f", "8")
    listing = judge(text, machine, tmp_path)
    words = run("tic6x-elf-objdump", "-s", "-j", ".cm_linear", listing.elf).splitlines()
    content = "".join("".join(line[6:41].split()) for line in words if re.match(r" [0-9a-f]{4} ", line))
    assert bytes.fromhex(content) == bytes(load(text, machine).data[".cm_linear"][1])


def test_undefined_symbols_are_found(tmp_path):
    with pytest.raises(Disagreement, match="elsewhere is not defined"):
        judge("\t.text\n\tb .s1 elsewhere\n\tnop 5\n", "c64x", tmp_path)


def test_what_as_refuses_is_told(tmp_path):
    with pytest.raises(Disagreement, match=r"line|Error.*not supported on this functional unit"):
        judge("\t.text\n\tshl .l1 a4, 3, a5\n", "c64x", tmp_path)


def test_differences_are_found(tmp_path):
    """The comparison itself: the listing of one text against another."""
    from . import assembler

    good = "\t.text\nf:\n\tadd .l1 a4, a5, a6\n||\tmvk .s1 5, a7\n\tnop 2\n\tb .s1 f\n\tnop 5\n"
    changes = {
        "a5, a6": ("a5, a8", "line 3: add .l1 a4, a5, a8 became add .l1 a4, a5, a6"),
        "mvk .s1 5": ("mvk .s1 6", "line 4: mvk .s1 6, a7 became mvk .s1 5, a7"),
        "\tmvk": ("\t[a1] mvk", r"line 4: \[a1\] mvk"),
        "add .l1": ("add .d1", "line 3: add .d1 .* became add .l1"),
        "||\tmvk": ("\tmvk", "was not printed"),
        "\tnop 2": ("\tnop 3", "line 5: nop 3 became nop 2"),
        "\tb .s1 f": ("g:\tb .s1 g", "line 6: b .s1 .* became b .s1"),
    }
    listing = assembler.assemble(good, "c64x", tmp_path)
    for old, (new, text) in changes.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(assembler, "assemble", lambda *_: listing)
            with pytest.raises(Disagreement, match=text):
                assembler.judge(good.replace(old, new), "c64x", tmp_path)
    assembler.judge(good, "c64x", tmp_path)
