"""The native comparison counts what it says, and refuses wrong ciphertexts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benches" / "native"), str(ROOT / "tests" / "assemblers")]

import compare  # noqa: E402
import counting  # noqa: E402
import printed  # noqa: E402
import toolchains  # noqa: E402

from ciphermill import engine, manifest  # noqa: E402

TARGETS = {target.name: target for target in toolchains.TARGETS}

#: One instruction before the loop, two in it.
RISCV_LOOP = """
        .text
        .globl _start
_start: li      a0, {times}
1:      addi    a0, a0, -1
        bnez    a0, 1b
        j       harness
        .section .harness, "ax"
harness:
        nop
        li      a7, 93
        ecall
"""
X86_64_LOOP = """
        .text
        .globl _start
_start: movl    ${times}, %edi
1:      decl    %edi
        jnz     1b
        movl    $60, %eax
        syscall
        .section .note.GNU-stack, ""
"""
I386_LOOP = """
        .text
        .globl _start
_start: movl    ${times}, %ebx
1:      decl    %ebx
        jnz     1b
        movl    $1, %eax
        int     $0x80
        .section .note.GNU-stack, ""
"""


def target(name: str, scratch: Path) -> toolchains.Target:
    """The target, or the end of the test where its tools are missing."""
    if reason := TARGETS[name].missing(scratch):
        pytest.skip(f"{name}: {reason}")
    return TARGETS[name]


def assemble(chosen: toolchains.Target, text: str, times: int, scratch: Path) -> Path:
    source = scratch / f"loop-{times}.s"
    source.write_text(text.format(times=times))
    program = source.with_suffix("")
    subprocess.run([*chosen.gcc, "-nostdlib", "-static", "-no-pie", str(source), "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("times", [1, 10, 1000])
def test_qemu_counts_every_instruction_of_text_and_no_other(tmp_path: Path, times: int) -> None:
    program = assemble(target("rv32", tmp_path), RISCV_LOOP, times, tmp_path)
    assert counting.qemu_riscv32(program, []) == counting.Run(1 + 2 * times + 1, b"")
    assert counting.text_bytes(program) == 16


@pytest.mark.parametrize(("name", "text"), [("x86-64", X86_64_LOOP), ("m32", I386_LOOP)])
def test_callgrind_counts_every_instruction(tmp_path: Path, name: str, text: str) -> None:
    chosen = target(name, tmp_path)
    programs = [assemble(chosen, text, times, tmp_path) for times in (1, 10, 1010)]
    counts = [counting.callgrind(program, []).instructions for program in programs]
    assert counts[1] - counts[0] == 2 * 9
    assert counts[2] - counts[1] == 2 * 1000


def test_a_program_that_fails_is_an_error(tmp_path: Path) -> None:
    chosen = target("rv32", tmp_path)
    text = ".globl _start\n_start: li a0, 3\nli a7, 93\necall\n"
    program = assemble(chosen, text, 0, tmp_path)
    with pytest.raises(counting.ToolError, match="exit status 3"):
        chosen.counter(program, [])


@pytest.mark.parametrize("name", TARGETS)
def test_a_cipher_is_measured_with_every_compiler(tmp_path: Path, name: str) -> None:
    bench = compare.Bench(target(name, tmp_path), tmp_path)
    work = compare.Work(engine.module(manifest.find("chacha20"), "r8"))
    for compiler in bench.target.compilers():
        cost = bench.measure(work, compiler)
        # 8 rounds of 4 quarter-rounds of 4 steps of at least 3 operations, 16 additions, 16 XORs;
        # four such operations at once where the compiler vectorises, five and more for a rotation by shifts.
        assert 100 < cost.instructions < 3000
        assert 300 < cost.code_bytes < 10000


def test_a_wrong_ciphertext_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = compare.Bench(target("rv32", tmp_path), tmp_path)
    work = compare.Work(engine.module(manifest.find("chacha20"), "r8"))
    right = work.expected
    monkeypatch.setattr(work, "expected", lambda length: right(length)[:-1] + b"\0")
    with pytest.raises(counting.ToolError, match="chacha20/r8, gcc for RV32IM: the ciphertext is wrong"):
        bench.measure(work, "gcc")


def test_ours_is_the_slope_that_run_reports() -> None:
    work = compare.Work(engine.module(manifest.find("chacha20"), "r8"))
    cost = work.ours("rv32")
    counts = [engine.measure(work.module, "rv32", engine.Options(bytes=64 * n)).instructions for n in (3, 4)]
    assert cost.instructions == counts[1] - counts[0]


@pytest.mark.parametrize(
    ("cipher", "variant"), [("rijndael", "ttable"), ("chacha20", "r8"), ("sosemanuk", "branching")]
)
def test_qemu_counts_as_many_of_ours_as_the_simulator(tmp_path: Path, cipher: str, variant: str) -> None:
    """Both sides of a ratio by the same counter: our program, assembled, takes what `ours` says."""
    target("rv32", tmp_path)
    work = compare.Work(engine.module(manifest.find(cipher), variant))
    program = printed.Assembled(engine.assembly(work.module, "rv32", engine.Options()), printed.riscv(), tmp_path)
    counts = []
    for length in work.lengths():
        calls = printed.Calls()
        context, key = calls.buffer(65536), calls.buffer(compare.buffer("key", work.key_bits // 8))
        iv = calls.buffer(compare.buffer("iv", work.iv_bytes))
        # As long as the longer message every time, so that all else is the same.
        message, out = calls.buffer(compare.buffer("message", work.lengths()[1])), calls.buffer(work.lengths()[1])
        calls.call("cm_keysetup", context, key, work.key_bits // 8)
        if work.driver == "cm_keystream":
            calls.call("cm_ivsetup", context, iv, work.iv_bytes)
        amount = length if work.driver == "cm_keystream" else length // work.block_bytes
        calls.call(work.driver, context, message, out, amount, output=(out, length))
        assert program.run(calls) == [work.expected(length)]
        counts.append(counting.qemu_riscv32(tmp_path / "program", []).instructions)
    assert work.per_block(counts) == work.ours("rv32").instructions


def test_the_buffers_are_those_of_the_tool() -> None:
    # SplitMix64 from seed 0 starts with e220a8397b1dcdaf; the seed of a name is its FNV-1a hash.
    assert compare.buffer("", 8) != compare.buffer("key", 8)
    assert compare.buffer("message", 5) == compare.buffer("message", 64)[:5]


def test_the_table_is_sorted_and_ends_with_the_mean() -> None:
    rows = [
        compare.Row("a", "x", compare.Cost(100, 40), {"gcc": compare.Cost(100, 44), "clang": compare.Cost(200, 48)}),
        compare.Row("b", "y", compare.Cost(40.5, 40), {"gcc": compare.Cost(20, 44), "clang": compare.Cost(10.125, 48)}),
    ]
    lines = compare.table(rows).splitlines()
    assert lines[2] == "| b | y | 20 | 10.1 | 10.1 | 40.5 | 4.000 | 44 | 48 | 40 |"
    assert lines[3].startswith("| a | x | 100 | 200 | 100 | 100 | 1.000 |")
    assert "**2.000**" in lines[4]
    assert len({line.count("|") for line in lines}) == 1


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    assert "riscv64-linux-gnu-gcc was not found" in TARGETS["rv32"].missing(tmp_path)
    document = compare.document({}, {name: f"{name} lacks a tool" for name in TARGETS})
    assert "Not measured: rv32 lacks a tool.\n" in document
