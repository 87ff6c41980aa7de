"""Programs on the processor at hand: what is run, compared, worked out, written down and refused.

Nothing here says how fast a processor is. Where this host runs no programs of a machine, or the
kernel keeps address 0 from them, the tests that need it are skipped with its words.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from functools import cache

import pytest

from ciphermill import InputError, engine, library, manifest, silicon
from ciphermill.silicon import build, job, plot, processors, programs, record, samples, summary, text
from ciphermill.silicon.job import Crash, Wrong
from ciphermill.silicon.samples import CHAIN, Sample

#: Few samples in one process: what is tested is not time.
QUICK = silicon.Settings(samples=12, rounds=1)


@cache
def unable() -> str | None:
    """Why programs for zen5 do not run here, if they do not."""
    try:
        host = processors.host_for("zen5")
        job.run(host, job.Job([build.program(host.isa, "\t.text\n")], 65536))
    except InputError as error:
        return str(error)
    return None


@pytest.fixture
def natively():
    if why := unable():
        pytest.skip(why)


# ---- what is run ----


def test_a_cipher_runs_and_is_verified(natively):
    document = silicon.run(["rabbit"], "zen5", engine.Options(), QUICK)
    (row,) = document["rows"]
    assert row["verified"] and row["program"] == "rabbit-plain-keystream-multi" and row["tried"] == 12
    assert document["summary"]["programs"] == (1 if row["silicon_cycles"] else 0)
    if row["silicon_cycles"]:
        # Sanity: no processor does 20 instructions a cycle, none is a hundred times as slow as the model.
        assert row["instructions"] / 20 < row["silicon_cycles"] < 100 * row["simulated_cycles"]
        assert row["ratio"] == pytest.approx(row["simulated_cycles"] / row["silicon_cycles"])
        assert 0.1 < row["clock_ghz"] < 20
    assert "rabbit-plain-keystream-multi" in text.text(document)


@pytest.mark.parametrize(("direction", "blocks"), [("decrypt", "multi"), ("encrypt", "single"), ("keysetup", None)])
def test_directions_and_modes(natively, direction, blocks):
    asked = engine.Options(direction=direction, blocks=blocks)
    (row,) = silicon.run(["rc6"], "zen5", asked, QUICK)["rows"]
    assert row["verified"], row["failure"]


@pytest.mark.parametrize("program", ["ascon/aead", "keccak/sha3-256", "ntt-mldsa"])
def test_kernels_of_other_kinds(natively, program):
    """Seven arguments, of which one does not travel in a register; a hash; a function that a manifest describes."""
    (row,) = silicon.run([program], "zen5", engine.Options(), QUICK)["rows"]
    assert row["verified"], row["failure"]


def test_more_arguments_than_registers(natively):
    """The sum of the last three of eight, of which two stand in memory. They are there for each call anew: the function
    spoils their places."""
    host = processors.host_for("zen5")
    sums = "\taddl (%rax), %r9d\n\taddl 8(%rax), %r9d\n\tmovl $0, (%rax)\n\tmovl $0, 8(%rax)\n"
    whole = f"\tmovl ${build.SYSTEM + 64:#x}, %eax\n{sums}\tmovl %r9d, (%rdi)\n\tret\n"
    image = build.program(host.isa, f"\t.text\n\t.globl f\nf:\n{whole}")
    calls = ([], [], [(0, "f", (256 + 4 * i, 0, 0, 0, 0, 1, 20, 300)) for i in range(2)])
    there = [(256, (321).to_bytes(4, "little").hex() * 2)]
    answer = job.run(host, job.Job([image], 65536, calls=calls, expected=there, overflow=64))
    assert answer.same


@pytest.mark.parametrize("program", ["rc6", "ascon/aead"])
def test_riscv_under_an_emulator(program):
    if shutil.which("qemu-riscv64") is None:
        pytest.skip("not installed: qemu-riscv64")
    document = silicon.run([program], "rv64", engine.Options(), silicon.Settings(emulator="qemu-riscv64"))
    (row,) = document["rows"]
    assert row["verified"] and row["silicon_cycles"] is None and row["ratio"] is None
    assert "An emulator's time is not a processor's: there are no cycles." in text.text(document)


def native(assembly: str, **given) -> job.Answer:
    host = processors.host_for("zen5")
    image = build.program(host.isa, f"\t.text\n\t.globl f\nf:\n{assembly}")
    return job.run(host, job.Job([image], 65536, calls=([], [], [(0, "f", (7,))]), **given))


@pytest.mark.parametrize(
    ("assembly", "message"),
    [
        ("\tud2\n", "SIGILL at instruction 0xe0000000"),
        ("\tmovl $0x7fff0000, %eax\n\tmovl (%eax), %eax\n", "SIGSEGV at instruction 0xe0000005 (address 0x7fff0000)"),
        ("\tmovl $1, %eax\n\txorl %ecx, %ecx\n\tcltd\n\tdivl %ecx\n", "SIGFPE"),
        # Code is not to be written.
        ("\tmovl $0xe0000000, %eax\n\tmovl $0, (%eax)\n", "address 0xe0000000"),
    ],
)
def test_a_crash_is_said(natively, assembly, message):
    with pytest.raises(Crash) as crash:
        native(assembly, expected=[])
    assert message in str(crash.value)


def test_memory_is_compared_to_the_byte(natively):
    store = "\tmovl $0x04030201, 512(,%eiz)\n\tret\n"
    assert native(store, expected=[(512, "01020304")]).same
    with pytest.raises(Wrong) as wrong:
        native(store, expected=[(512, "01020504")])
    assert (wrong.value.at, wrong.value.ours, wrong.value.theirs) == (514, 3, 5)
    # Where nothing is expected there are zeros.
    with pytest.raises(Wrong) as wrong:
        native(store, expected=[(512, "0102")])
    assert (wrong.value.at, wrong.value.theirs) == (514, 0)
    with pytest.raises(Wrong) as wrong:
        native(store, expected=[])
    assert wrong.value.at == 512


def test_a_wrong_output_is_an_error_and_no_figure(natively, monkeypatch):
    """One instruction of the program changed."""
    real = engine.native

    def spoilt(*given):
        said = real(*given)
        assert "\txorl " in said["assembly"]
        return {**said, "assembly": said["assembly"].replace("\txorl ", "\torl ")}

    monkeypatch.setattr(engine, "native", spoilt)
    document = silicon.run(["rc6"], "zen5", engine.Options(), QUICK)
    (row,) = document["rows"]
    assert not row["verified"] and row["fault"] and "silicon_cycles" not in row
    assert "the reference's" in row["failure"] or "stopped with" in row["failure"]
    assert document["summary"]["programs"] == 0 and "no figure" in text.text(document)


def test_registers_are_kept_for_whoever_calls(natively):
    """A program may change all but the stack pointer."""
    clobber = "".join(f"\tmovl $1, %{r}\n" for r in ("ebx", "ebp", "r12d", "r13d", "r14d", "r15d", "r10d"))
    assert native(f"{clobber}\tret\n", expected=[], samples=3).samples


def test_events_that_the_kernel_gives_are_counted(natively, monkeypatch):
    """With events that the kernel counts itself: nanoseconds of the process."""
    monkeypatch.setitem(job.EVENTS, "task_clock", (1, 1))
    monkeypatch.setitem(job.EVENTS, "faults", (1, 2))
    host = processors.host_for("zen5")
    loop = "\tmovl $1000, %eax\n1:\tdecl %eax\n\tjne 1b\n\tret\n"
    image = build.program(host.isa, f"\t.text\n\t.globl f, g\nf:\n{loop}g:\n\tret\n")
    calls = ([], [(0, "g", ())], [(0, "f", ())])
    answer = job.run(host, job.Job([image], 65536, calls=calls, samples=2, events=("task_clock", "faults")))
    if answer.uncounted:
        pytest.skip(answer.uncounted)
    # A turn of a loop takes a tenth of a cycle or more, and a cycle a tenth of a nanosecond or more.
    assert len(answer.counts["faults"]) == 2 and all(n > 10 * answer.calls for n in answer.counts["task_clock"])


# ---- what is worked out ----


def readings(*slopes: float, chain: int = CHAIN) -> list[Sample]:
    """Quiet samples of so many ticks more in the longer run."""
    return [Sample(1000, round(1000 + slope), 1000, chain, chain) for slope in slopes]


def test_a_slope_is_in_cycles_of_the_chain():
    # Two ticks a cycle: 400 ticks are 200 cycles, of 10 blocks.
    (sample,) = readings(400, chain=2 * CHAIN)
    assert sample.slope(10) == pytest.approx(20)
    assert samples.figure([sample], 10, 5e9).clock_ghz == pytest.approx(2.5)


def test_what_is_disturbed_is_left_out():
    quiet = readings(*range(100, 120))
    moved = Sample(1000, 9000, 1000, CHAIN, CHAIN + CHAIN // 100)
    late = Sample(1000, 9000, 1100, CHAIN, CHAIN)
    found = samples.figure([*quiet, moved, late], 1)
    assert (found.samples, found.tried, found.median, found.minimum) == (20, 22, 109.5, 100)
    assert "the median is 9.5 % above the least" in found.unstable
    assert samples.figure(readings(*[100] * 20), 1).unstable == ""
    assert "only 3 of 3" in samples.figure(readings(100, 100, 100), 1).unstable
    none = samples.figure([moved, late], 1)
    assert none.median is None and "none of 2 samples" in none.unstable


def test_the_least_process_counts_if_another_bears_it_out():
    def joined(*cycles: int) -> samples.Figure:
        return samples.joined([samples.figure(readings(*[each] * 20), 1) for each in cycles])

    found = joined(110, 100, 101)
    assert (found.median, found.minimum, found.samples, found.unstable) == (100, 100, 60, "")
    assert joined(110, 100, 111).unstable == "no two processes agree: 100.0 and 110.0 cycles"
    assert joined(100).unstable == ""
    assert samples.joined([samples.figure([], 1)]).median is None


def test_errors_over_a_set():
    found = summary.errors([0.5, 2.0, 1.0, 1.04])
    assert found["geomean"] == pytest.approx(1.04**0.25)
    assert found["mean_absolute_error"] == pytest.approx((0.5 + 1 + 0 + 0.04) / 4)
    assert (found["percentile_90"], found["largest_error"], found["within_5_percent"]) == (1.0, 1.0, 0.5)
    ten = summary.errors([1 + n / 100 for n in range(1, 11)])
    assert ten["percentile_90"] == pytest.approx(0.09) and ten["within_5_percent"] == 0.5
    assert summary.errors([])["geomean"] is None


def test_a_third_is_held_out_by_name():
    # By Python's hashlib, and nothing else.
    assert programs.held_out("chacha20-r20-keystream-multi") and not programs.held_out("rabbit-plain-keystream-multi")
    rows = [{"program": n, "ratio": 1.0, "held_out": h} for n, h in (("a", True), ("b", False), ("c", False))]
    found = summary.of(rows)
    assert (found["held_out"]["programs"], found["others"]["programs"]) == (1, 2)


def test_all_has_every_direction_and_mode():
    found = programs.chosen(["all"], engine.Options())
    names = [one.name for one in found]
    assert len(names) == len(set(names))
    variants = {(one.module.cipher.name, one.module.variant.name) for one in found}
    assert variants == {(c, v) for c in manifest.names() for v in manifest.find(c).variants}
    of_rc6 = [n for n in names if n.startswith("rc6-plain")]
    assert of_rc6 == ["rc6-plain-encrypt-multi", "rc6-plain-decrypt-multi", "rc6-plain-encrypt-single"]
    one_way = programs.chosen(["all"], engine.Options(direction="decrypt"))
    assert {one.direction for one in one_way} == {"decrypt"}
    back = programs.chosen(["all"], engine.Options(direction="decrypt", blocks="single"))
    assert {(one.direction, one.blocks) for one in back} == {("decrypt", "single")}
    setups = programs.chosen(["all"], engine.Options(direction="keysetup"))
    assert len(setups) == len(variants)
    with pytest.raises(InputError, match="no cipher has that"):
        programs.chosen(["all"], engine.Options(direction="keystream", blocks="single"))


def test_machines_of_an_instruction_set(tmp_path):
    assert library.lineage("zen5")[-2:] == ["x86_64", "ia32"]
    own = tmp_path / "mine.toml"
    own.write_text('[machine]\nname = "mine"\ninherits = "zen5"\n')
    found = processors.isa_of(str(own))
    assert found is not None and found.root == "x86_64"
    # 32-bit code is another instruction set.
    assert processors.isa_of("core2") is None and processors.isa_of("leon2") is None


def test_the_answer_is_read():
    said = "same\ncalls 4\nsample 1 2 3 4 5\nelapsed 1000 500\ncount 1 10 30\nuncounted 2\ndone\n"
    found = job.answer(said)
    assert found.same and found.calls == 4 and found.samples == [Sample(1, 2, 3, 4, 5)] and found.hz == 2e9
    assert (
        found.counts == {"instructions": [20]}
        and found.uncounted == "the kernel has none to give (as in most virtual machines)"
    )
    with pytest.raises(Crash):
        job.answer("same\n")


# ---- what is written down ----


def document() -> dict:
    row = {
        "program": "a-b-encrypt-multi", "cipher": "a", "variant": "b", "direction": "encrypt", "blocks": "multi",
        "held_out": True, "verified": True, "failure": None, "fault": False, "silicon_cycles": 100.0, "minimum": 99.0,
        "simulated_cycles": 104.0, "ratio": 1.04, "instructions": 250.0, "rounds": [100.0, 101.0], "by": "chain",
        "samples": 20, "tried": 22, "clock_ghz": 3.7, "unstable": None, "settled": True, "counts": {}, "uncounted": None,
    }  # fmt: skip
    here = {"model": 'A "processor"', "vendor": "V", "family": 25, "model_number": 17, "stepping": 1, "virtual": True,
            "known_as": None, "nearest_machine": "zen5"}  # fmt: skip
    return {
        "schema": 1, "machine": "zen5", "isa": "x86-64", "emulator": None, "processor": here,
        "method": {"samples": 300, "rounds": 3, "cpu": 1, "cycles": ""}, "counters": {"available": False, "why": "no"},
        "rows": [row], "summary": summary.of([row]),
    }  # fmt: skip


def test_a_hosts_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "host.toml"
    record.write(document(), str(path), note="a note")
    found = record.read(path)
    assert (found.host.processor, found.host.family, found.host.note) == ('A "processor"', 25, "a note")
    entry = found.programs["a-b-encrypt-multi"]
    assert (entry.cycles, entry.instructions, entry.spread, entry.held_out) == (100.0, 250.0, 0.01, True)
    assert entry.settings == record.Settings(cipher="a", variant="b", direction="encrypt", blocks="multi")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cycles = 100.0", "cycles = -1", "a number above 0"),
        ("cycles = 100.0", "", "missing"),
        ("family = 25", "famliy = 25", "did you mean 'family'"),
        ("[host]", "[hosts]", "unknown key"),
    ],
)
def test_a_hosts_file_that_is_wrong_is_named_with_its_place(tmp_path, old, new, message):
    path = tmp_path / "host.toml"
    said = record.text(document())
    assert old in said
    path.write_text(said.replace(old, new))
    with pytest.raises(InputError) as error:
        record.read(path)
    assert "host.toml" in str(error.value) and message in str(error.value)


def test_the_hosts_of_the_studies_are_well_formed():
    from ciphermill import paths

    files = sorted(paths.STUDIES.glob("silicon-*/hosts/*.toml"))
    assert files
    for path in files:
        found = record.read(path)
        for name, entry in found.programs.items():
            s = entry.settings
            assert name == f"{s.cipher}-{s.variant}-{s.direction}-{s.blocks}"
            assert entry.held_out == programs.held_out(name)


def test_the_drawing_has_a_point_for_each_program():
    layers = plot.spec(document())["layer"]
    assert [point["program"] for point in layers[1]["data"]["values"]] == ["a-b-encrypt-multi"]


def test_the_text_says_what_disturbs():
    told = document()
    told["rows"][0] |= {"unstable": "the median is 9.5 % above the least"}
    said = text.text(told)
    assert "unstable: the median is 9.5 % above the least" in said and "virtual machine" in said


# ---- what is refused ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["silicon", "rc6", "--on", "leon2"], "--on leon2: no host runs its programs"),
        (["silicon", "rc6/tables", "--on", "zen5"], "rc6 has no variant 'tables'"),
        (["silicon", "rc6", "--on", "zen5", "--samples", "0"], "--samples 0: from 1 to"),
        (["silicon", "rc6", "--on", "zen5", "--rounds", "0"], "--rounds 0: from 1 to"),
        (["silicon", "rc6", "--on", "zen5", "--cpu", "4000"], "--cpu 4000: this process may run on"),
        (["silicon", "rc6", "--on", "zen5", "--emulator", "no-such"], "--emulator no-such: no such program on the PATH"),
        (["silicon", "rc6", "--on", "zen5", "--plot", "x.pdf"], "--plot x.pdf: the name of a drawing ends in .svg or .png"),
        (["silicon", "rc6", "--on", "zen5", "--into", "no/such/x.toml"], "--into no/such/x.toml: there is no folder no/such"),
        (["silicon", "rc6", "--on", "zen55"], "no machine 'zen55'"),
        (["silicon", "rc6", "--on", "zen5", "--bytes", "20"], "--bytes 20: a message is a whole number of blocks"),
        (["silicon", "rabbit", "--on", "zen5", "--blocks", "single"], "a stream cipher has no feedback mode"),
    ],
)  # fmt: skip
def test_bad_input(refused, arguments, message):
    assert message in refused(*arguments)


def test_another_instruction_set_is_refused_with_a_mend():
    other = "rv64" if platform.machine() == "x86_64" else "zen5"
    with pytest.raises(InputError) as error:
        processors.host_for(other)
    assert "this host is" in str(error.value) and "--emulator" in str(error.value)


def test_memory_at_address_0_is_asked_for_politely():
    error = job.refusal("map", 0, 1)
    assert isinstance(error, InputError) and "sysctl -w vm.mmap_min_addr=0" in str(error)


def test_an_instruction_of_no_processor_is_refused():
    host = processors.host_for("zen5", sys.executable)
    with pytest.raises(build.Refused) as error:
        build.program(host.isa, "\t.text\n\tfrobnicate %eax\n")
    assert "does not take the printed program" in str(error.value)


def test_the_document_is_what_the_contract_says(natively, cli):
    answer = cli("silicon", "rabbit", "--on", "zen5", "--samples", "30", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert {"program", "silicon_cycles", "simulated_cycles", "ratio", "samples", "clock_ghz"} <= told["rows"][0].keys()
    assert {"geomean", "mean_absolute_error", "within_5_percent"} <= told["summary"].keys()


@pytest.mark.parametrize("lengths", [(4096, 2048), (2048, 2048), (2048, 4097), (0, 4096)])
def test_lengths_that_are_none(lengths):
    module = engine.module(manifest.find("rc6"))
    with pytest.raises(InputError) as error:
        engine.native(module, "zen5", engine.Options(), lengths)
    assert f"messages of {lengths[0]} and {lengths[1]} bytes" in str(error.value)


def test_the_same_buffers_and_calls_as_in_the_simulation():
    """A feedback mode works on one block; two lengths differ in the count alone."""
    module = engine.module(manifest.find("rc6"))
    told = engine.native(module, "zen5", engine.Options(blocks="single"), (1024, 2048))
    assert [call["symbol"] for call in told["setup"]] == ["cm_keysetup"]
    (shorter,), (longer,) = told["shorter"], told["longer"]
    assert longer["symbol"] == "cm_encrypt_feedback" and (shorter["args"][3], longer["args"][3]) == (64, 128)
    assert shorter["args"][:3] == longer["args"][:3] and told["blocks"] == 64
    sizes = {name: end - start for name, start, end in told["buffers"]}
    assert sizes["input"] == sizes["output"] == 16 and sizes["key"] == 16
    assert "cm_encrypt_feedback:" in told["assembly"] and told["memory_bytes"] % 65536 == 0
