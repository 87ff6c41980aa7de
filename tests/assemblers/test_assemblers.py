"""Every cipher, direction and key size, by assemblers and emulators not ours.

The program printed for a machine is assembled by GNU as, for Thumb by clang, run under QEMU, and
its output compared with the official vectors. What the host itself can
run it runs too. Skipped, with the missing program named, where the tools are not installed (see .ci/run). Programs for
the C6000 run on the emulator in `c6x/`, which also checks that they keep the
machine's rules.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import c6x
import forms
import pytest
from printed import C6X, IA32, SPARC, X86_64, Assembled, Calls, Emulated, Target, refused, riscv, thumb, tool

ciphermill = pytest.importorskip("ciphermill")

ROOT = Path(__file__).resolve().parents[2]
CIPHERS = ROOT / "ciphers"
#: Vectors of one key size and file that are run, spread over the file.
MOST = 24
#: The same on the emulator of the C6000, which is in Python: a hundredth of QEMU's speed.
MOST_EMULATED = 4
#: Bytes of keystream that are compared at most.
LONGEST = 2048

#: Machine, extensions, and the tools that run it.
TARGETS: dict[str, tuple[str, tuple[str, ...], Target]] = {
    "c6201": ("c6201", (), C6X),
    "c64x": ("c64x", (), C6X),
    "core2": ("core2", (), IA32),
    "cortex-m0plus": ("cortex-m0plus", (), thumb("cortex_m0plus")),
    "cortex-m3": ("cortex-m3", (), thumb("cortex_m3")),
    "cortex-m4": ("cortex-m4", (), thumb("cortex_m4")),
    "leon2": ("leon2", (), SPARC),
    "rv32": ("rv32", (), riscv()),
    "rv32-zb": (
        "rv32",
        ("zba", "zbb", "zbkb"),
        riscv("_zba_zbb_zbkb", "rv32,zba=true,zbb=true,zbkb=true"),
    ),
    "rv32-zk": (
        "rv32",
        ("zkne", "zknd", "zbkb"),
        riscv("_zkne_zknd_zbkb", "rv32,zkne=true,zknd=true,zbkb=true"),
    ),
    "rv64": ("rv64", (), riscv("", "rv64", 64)),
    "rv64-zb": (
        "rv64",
        ("zba_rv64", "zbb_rv64", "zbkb_rv64"),
        riscv("_zba_zbb_zbkb", "rv64,zba=true,zbb=true,zbkb=true", 64),
    ),
    "rv64-zk": (
        "rv64",
        ("zkne_rv64", "zknd_rv64", "zbkb_rv64"),
        riscv("_zkne_zknd_zbkb", "rv64,zkne=true,zknd=true,zbkb=true", 64),
    ),
    "zen5": ("zen5", (), X86_64),
}
#: Targets that differ from others for these ciphers only.
ONLY = {"rv32-zk": {"rijndael"}, "rv64-zk": {"rijndael"}}


#: Targets whose programs the host may run itself.
NATIVE = [target for target, (_, _, tools) in TARGETS.items() if tools.native]

#: Machines whose instructions have different sizes, as the assembler chooses them.
SIZED = [*NATIVE, "cortex-m3", "cortex-m4"]
#: Machines without interlock, whose loops are scheduled by software.
DSPS = [machine for machine, (_, _, tools) in TARGETS.items() if tools is C6X]
FINALISTS = ["mars", "rc6", "rijndael", "serpent", "twofish"]


def variants() -> list[tuple[str, str]]:
    """Of block and stream ciphers; how the others are called is not known here."""
    ciphers = sorted(path.parent.name for path in CIPHERS.glob("*/cipher.toml"))
    every = [(cipher, variant, of) for cipher in ciphers for variant, of in manifest(cipher)["variants"].items()]
    return [(c, v) for c, v, of in every if of.get("kind", manifest(c)["kind"]) in ("block", "stream")]


@cache
def manifest(cipher: str) -> dict:
    return tomllib.loads((CIPHERS / cipher / "cipher.toml").read_text())


def stated(cipher: str, variant: str, key: str) -> Any:
    """What the manifest says of a variant, or of all of them."""
    return manifest(cipher)["variants"][variant].get(key, manifest(cipher).get(key))


@cache
def vectors(cipher: str, variant: str) -> dict[int, list[dict]]:
    """Vectors of a variant by key size in bits."""
    found: dict[int, list[dict]] = {bits: [] for bits in stated(cipher, variant, "key_bits")}
    for entry in manifest(cipher)["vectors"]:
        data = json.loads((CIPHERS / cipher / entry["file"]).read_text())
        if data["kind"] not in ("block", "stream") or variant not in data.get("variants", [variant]):
            continue
        for bits, chosen in found.items():
            mine = [v for v in data["vectors"] if 4 * len(v["key"]) == bits]
            chosen += mine[:: max(1, -(-len(mine) // MOST))]
    return found


#: Those there are, in order.
VARIANTS = variants()


def cases() -> list:
    out = []
    for target in TARGETS:
        for cipher, variant in VARIANTS:
            if cipher not in ONLY.get(target, {cipher}):
                continue
            stream = manifest(cipher)["kind"] == "stream"
            both = ("encrypt", "decrypt")
            # A search each: what one of the two enciphers the other deciphers.
            one = {"c6201": both[:1], "c64x": both[1:]}.get(target, both)
            for direction in ("keystream",) if stream else one:
                case = f"{target}-{cipher}-{variant}-{direction}"
                out.append(pytest.param(target, cipher, variant, direction, id=case))
    return out


@pytest.fixture(scope="session")
def assembled(tmp_path_factory):
    """Printed and assembled programs, each made once: one in `forms.SHARE` as `ciphermill asm` prints it with rounds as
    loops, the others in one form without a choice or a search."""

    @cache
    def make(target: str, cipher: str, variant: str, direction: str | None = None) -> Assembled:
        machine, extensions, tools = TARGETS[target]
        usual = forms.usual(list(TARGETS).index(target), VARIANTS.index((cipher, variant)))
        text = assembly(cipher, variant, machine, extensions, direction=direction, usual=usual)
        if tools is C6X:
            return Emulated(text, machine)
        folder = tmp_path_factory.mktemp(f"{target}-{cipher}-{variant}")
        return Assembled(text, tools, folder)

    return make


def assembly(
    cipher: str, variant: str | None, machine: str, extensions: tuple[str, ...], *, usual: bool = True, **form
) -> str:
    """The program's text: with rounds as loops, unless another form is asked for.

    The `usual` one is what `ciphermill asm` prints; the other is made in one form, without searches.
    """
    from ciphermill import engine
    from ciphermill.manifest import find

    module = engine.module(find(cipher), variant)
    if form.keys() <= {"direction"}:
        form |= {"jam": 1, "unroll": False}
    make = engine.assembly if usual else forms.assembly
    return make(module, machine, engine.Options(with_=extensions, **form))


def block_calls(block_bytes: int, direction: str, vectors: list[dict]) -> tuple[Calls, list[bytes]]:
    calls, expected = Calls(), []
    context = calls.buffer(16384)
    setup = "cm_keysetup" if direction == "encrypt" else "cm_keysetup_decrypt"
    for v in vectors:
        key, plain, coded = (bytes.fromhex(v[k]) for k in ("key", "plaintext", "ciphertext"))
        given, wanted = (plain, coded) if direction == "encrypt" else (coded, plain)
        out = calls.buffer(len(wanted))
        calls.call(setup, context, calls.buffer(key), len(key))
        blocks = len(given) // block_bytes
        calls.call(f"cm_{direction}_blocks", context, calls.buffer(given), out, blocks, output=(out, len(wanted)))
        expected.append(wanted)
    return calls, expected


def stream_calls(vectors: list[dict]) -> tuple[Calls, list[tuple[int, list[tuple[int, bytes]]]]]:
    """Calls, and for each vector its key size and what is wanted of its stream."""
    calls, expected = Calls(), []
    context = calls.buffer(32768)
    for v in vectors:
        chunks = [(c["offset"], bytes.fromhex(c["hex"])) for c in v["chunks"]]
        chunks = [(at, data) for at, data in chunks if at + len(data) <= LONGEST]
        if not chunks:
            continue
        key, iv = bytes.fromhex(v["key"]), bytes.fromhex(v.get("iv", ""))
        length = max(at + len(data) for at, data in chunks)
        text = bytes.fromhex(v["plaintext"]) if "plaintext" in v else bytes(length)
        given, out = calls.buffer(text), calls.buffer(length)
        calls.call("cm_keysetup", context, calls.buffer(key), len(key))
        calls.call("cm_ivsetup", context, calls.buffer(iv), len(iv))
        # Two pieces, so that the state is carried on too.
        first = length // 2 // 64 * 64
        calls.call("cm_keystream", context, given, out, first)
        calls.call("cm_keystream", context, given + first, out + first, length - first, output=(out, length))
        expected.append((4 * len(v["key"]), chunks))
    return calls, expected


@pytest.mark.parametrize(("target", "cipher", "variant", "direction"), cases())
def test_vectors(assembled, target, cipher, variant, direction):
    """All key sizes in one run: to assemble, link and start takes longer than to encrypt."""
    missing = TARGETS[target][2].missing()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    chosen = []
    for bits, of_size in vectors(cipher, variant).items():
        assert of_size, f"no vectors of {bits} bits"
        most = MOST_EMULATED if target in DSPS else MOST
        chosen += of_size[:: max(1, -(-len(of_size) // most))]
    # Loops that are scheduled by software are searched for in what is measured only.
    program = assembled(target, cipher, variant, *([direction] if target in DSPS else []))
    if direction == "keystream":
        calls, expected = stream_calls(chosen)
        assert {bits for bits, _ in expected} == vectors(cipher, variant).keys(), "no vector of a size is short enough"
        for outputs in program.ways(calls):
            for got, (bits, chunks) in zip(outputs, expected, strict=True):
                for at, data in chunks:
                    assert got[at : at + len(data)] == data, f"{bits} bits"
    else:
        calls, expected = block_calls(stated(cipher, variant, "block_bytes"), direction, chosen)
        for outputs in program.ways(calls):
            for vector, got, wanted in zip(chosen, outputs, expected, strict=True):
                assert got == wanted, f"{4 * len(vector['key'])} bits"


@pytest.mark.parametrize("target", NATIVE)
def test_the_host_runs_them_too(target):
    """Skipped where `test_vectors` has only the emulator's word."""
    tools = TARGETS[target][2]
    if missing := tools.missing():
        pytest.skip(f"not installed: {', '.join(missing)}")
    if reason := refused(tools):
        pytest.skip(reason)


# One direction on one machine, the other on the other; some after the usual search, which is long.
@pytest.mark.parametrize("cipher", FINALISTS)
@pytest.mark.parametrize(("machine", "direction"), list(zip(DSPS, ("encrypt", "decrypt"), strict=True)))
def test_blocks_carried_together(tmp_path, machine, cipher, direction):
    """Rounds unrolled, two blocks a turn: whole turns, and what is left over."""
    usual = forms.usual(DSPS.index(machine), FINALISTS.index(cipher))
    text = assembly(cipher, None, machine, (), usual=usual, direction=direction, jam=2, unroll=True)
    first = vectors(cipher, ciphermill.cipher(cipher).variant)[128][0]
    key, plain, coded = (bytes.fromhex(first[k]) for k in ("key", "plaintext", "ciphertext"))
    # Blocks that differ; the official one stands among them.
    blocks = 7
    plain = b"".join(bytes(byte ^ i for byte in plain[:16]) for i in range(blocks))
    wanted = ciphermill.cipher(cipher).encrypt(key, plain)
    assert wanted[:16] == coded[:16]
    vector = {"key": key.hex(), "plaintext": plain.hex(), "ciphertext": wanted.hex()}
    program = Emulated(text, machine)
    for n in (1, 2, 3, blocks):
        part = {**vector, "plaintext": plain[: 16 * n].hex(), "ciphertext": wanted[: 16 * n].hex()}
        calls, expected = block_calls(16, direction, [part])
        assert program.run(calls) == expected
    with contextlib.suppress(c6x.Missing):
        assert c6x.judge(text, machine, tmp_path).packets


@pytest.mark.parametrize("cipher", FINALISTS)
@pytest.mark.parametrize("machine", DSPS)
def test_feedback_unrolled(machine, cipher):
    """Rounds unrolled in a feedback mode: each block's input is the output before."""
    usual = forms.usual(DSPS.index(machine), FINALISTS.index(cipher), 1)
    program = Emulated(assembly(cipher, None, machine, (), usual=usual, blocks="single", unroll=True), machine)
    key, block, turns = bytes(range(16)), bytes(range(16, 32)), 5
    calls = Calls()
    context = calls.buffer(16384)
    calls.call("cm_keysetup", context, calls.buffer(key), len(key))
    out = calls.buffer(16)
    calls.call("cm_encrypt_feedback", context, calls.buffer(block), out, turns, output=(out, 16))
    for _ in range(turns):
        block = ciphermill.cipher(cipher).encrypt(key, block)
    assert program.run(calls) == [block]


@pytest.mark.parametrize("cipher", FINALISTS)
@pytest.mark.parametrize("machine", DSPS)
def test_small_programs(tmp_path, machine, cipher):
    """`--optimise size`: narrow bundles, no pipelined loops, calls instead of copies."""
    text = assembly(cipher, None, machine, (), optimise="size")
    program = Emulated(text, machine)
    variant = ciphermill.cipher(cipher).variant
    some = vectors(cipher, variant)[128][:3]
    for direction in ("encrypt", "decrypt"):
        calls, expected = block_calls(stated(cipher, variant, "block_bytes"), direction, some)
        assert program.run(calls) == expected
    with contextlib.suppress(c6x.Missing):
        assert c6x.judge(text, machine, tmp_path).packets


@pytest.mark.parametrize("cipher", ["rc6", "serpent"])
def test_retired_instructions(tmp_path, cipher):
    """QEMU, an instruction at a time, executes as many as the simulator retires."""
    missing = IA32.missing()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    from ciphermill import engine
    from ciphermill.manifest import find

    blocks = 4
    module = engine.module(find(cipher))
    measured = engine.measure(module, "core2", engine.Options(bytes=16 * blocks))
    # The form of the code that was measured, whichever that is.
    program = Assembled(assembly(cipher, None, "core2", (), bytes=16 * blocks), IA32, tmp_path)

    def executed(calls: Calls) -> int:
        program.run(calls)
        size = tool(["size", "-A", "program.o"], cwd=program.folder).decode()
        end = 0xE0000000 + int(re.search(r"^\.text\s+(\d+)", size, re.M)[1]) - 1
        options = ["-singlestep", "-d", "exec,nochain", "-dfilter", f"0xe0000000..{end:#x}", "-D", "log"]
        tool(["qemu-i386", *options, "./program"], cwd=program.folder, timeout=120)
        return sum(line.startswith("Trace") for line in (program.folder / "log").open())

    calls = Calls()
    context, out = calls.buffer(16384), calls.buffer(16 * blocks)
    calls.call("cm_keysetup", context, calls.buffer(bytes(16)), 16)
    before = executed(calls)
    calls.call("cm_encrypt_blocks", context, calls.buffer(bytes(16 * blocks)), out, blocks)
    assert executed(calls) - before == measured.instructions


@pytest.mark.parametrize("cipher", ["rc6", "rijndael", "salsa20", "sosemanuk"])
@pytest.mark.parametrize("target", NATIVE)
def test_callgrind_counts_what_is_retired(tmp_path, target, cipher):
    """The host, under callgrind, executes as many instructions as the simulator retires."""
    tools = TARGETS[target][2]
    missing = tools.missing() + [tool for tool in ("valgrind",) if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if reason := refused(tools):
        pytest.skip(reason)
    from ciphermill import engine
    from ciphermill.manifest import find

    stream = manifest(cipher)["kind"] == "stream"
    size = 256 if stream else 4 * manifest(cipher)["block_bytes"]
    machine = TARGETS[target][0]
    measured = engine.measure(engine.module(find(cipher)), machine, engine.Options(bytes=size))
    program = Assembled(assembly(cipher, None, machine, (), bytes=size), tools, tmp_path)

    def executed(function: str) -> int:
        calls = Calls()
        context = calls.buffer(32768)
        calls.call("cm_keysetup", context, calls.buffer(bytes(16)), 16)
        if stream:
            length = manifest(cipher)["iv_bits"][0] // 8
            calls.call("cm_ivsetup", context, calls.buffer(bytes(16)), length)
        calls.call(function, context, calls.buffer(bytes(size)), calls.buffer(size), size if stream else 4)
        return program.instructions(calls)

    measuring = executed("cm_keystream" if stream else "cm_encrypt_blocks")
    # The one instruction of a function that returns at once.
    assert measuring - executed("cm_nothing") + 1 == measured.instructions


@pytest.mark.parametrize("cipher", ["rc6", "rijndael", "sosemanuk"])
@pytest.mark.parametrize("target", SIZED)
def test_sizes_of_instructions(tmp_path, target, cipher):
    """Bytes of code as the machine file has them and as the assembler encodes it."""
    if shutil.which("as") is None:
        pytest.skip("not installed: as")
    machine, _, tools = TARGETS[target]
    text = assembly(cipher, None, machine, (), usual=False)
    said = int(re.search(r"\((\d+) bytes of code\)", text)[1])
    # Between functions the assembler fills up.
    (tmp_path / "program.s").write_text(text.replace("\t.balign 16\n", ""))
    tool([*tools.assembler, "program.s", "-o", "program.o"], cwd=tmp_path)
    sizes = tool(["size", "-A", "program.o"], cwd=tmp_path).decode()
    assert int(re.search(r"^\.text\s+(\d+)", sizes, re.M)[1]) == said


@pytest.mark.parametrize("target", TARGETS)
def test_a_wrong_program_is_noticed(assembled, tmp_path, target):
    """One instruction changed everywhere gives another ciphertext, or a crash."""
    missing = TARGETS[target][2].missing()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if TARGETS[target][2] is C6X:
        pytest.skip("the emulator has tests of its own")
    good = assembled(target, "rc6", "plain")
    calls, expected = block_calls(16, "encrypt", vectors("rc6", "plain")[128][:4])
    assert good.run(calls) == expected
    text = (good.folder / "program.s").read_text()
    wrong = (
        text.replace("\txor ", "\tor ")
        .replace("\txorl ", "\torl ")
        .replace("\teor.w ", "\torr.w ")
        .replace("\teors ", "\torrs ")
    )
    assert wrong != text
    bad = Assembled(wrong, good.target, tmp_path)
    with pytest.raises(AssertionError):
        assert bad.run(calls) == expected


@pytest.mark.parametrize(("cipher", "variant"), VARIANTS)
@pytest.mark.parametrize("machine", DSPS)
def test_gnu_as_makes_the_same_packets(tmp_path, machine, cipher, variant):
    """Assembled and disassembled, a C6000 program is what was printed."""
    if missing := c6x.missing():
        pytest.skip(missing)
    assert c6x.judge(assembly(cipher, variant, machine, ()), machine, tmp_path).packets
