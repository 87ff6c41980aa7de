"""Long searches for schedules: what they find is kept, taken by later runs, told where it is not, and never trusted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import ciphermill as cm
from ciphermill import engine, manifest, paths, schedules
from ciphermill.tuning import cells, journal, search, standing

#: A machine of the user's: the C6201, with what is kept for it in a file of its own.
MINE = '[machine]\nname = "mine"\ninherits = "c6201"\n'

#: A cipher whose loop takes no time to schedule.
SMALL = """\
#include "ciphermill.h"
struct cm_ctx { uint32_t key[4]; };
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t n)
{ for (uint32_t i = 0; i < 4; i++) ctx->key[i] = key[i % n] * 0x01010101u + i; }
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t n) { cm_keysetup(ctx, key, n); }
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_le(in), b = cm_load32_le(in + 4);
    for (int i = 0; i < 4; i++) a = cm_rotl32(a + ctx->key[i], 7) ^ b, b = cm_rotl32(b ^ a, 11);
    cm_store32_le(out, a), cm_store32_le(out + 4, b);
}
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out) { cm_encrypt(ctx, in, out); }
CM_BLOCK_CIPHER(8)
"""

SETTINGS = {"variant": "ttable", "direction": "decrypt", "unroll": False}
#: The same on the command line: one cell.
CELL = "square --variant ttable --direction decrypt --blocks multi --no-unroll --on mine.toml".split()
#: A cell of the small cipher.
SINGLE = "--direction encrypt --blocks single --on c6201".split()


def command(*arguments):
    return [sys.executable, "-m", "ciphermill", "tune", *arguments]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A machine file beside which a schedule is kept, and what `tune` said of it."""
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "mine.toml").write_text(MINE)
    asked = command(*CELL, "--times", "3", "--json")
    done = subprocess.run(asked, capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 cell to go" in done.stderr
    (said,) = json.loads(done.stdout)["cells"]
    return folder / "mine.toml", said


def run(path, **more):
    return cm.run("square", on=path, **SETTINGS, **more)


def loops(measurement):
    return [(loop["ii"], loop["recorded"]) for loop in measurement.loops]


def test_what_is_found_is_taken_by_later_runs(tuned):
    path, said = tuned
    assert said["after"] < said["before"] and said["state"] in ("done", "proved")
    assert said["rounds"] == [{"times": 3, "round": 1}]
    kept = path.with_suffix(".schedules.json")
    assert len(json.loads(kept.read_text())["schedules"]) == len(said["kept"]) > 0
    m = run(path)
    assert m.verified and any(loop["recorded"] for loop in m.loops)
    assert m.cycles_per_block == said["after"] and m.bounds["lower"] == said["lower"]
    fresh = run(path, fresh=True)
    assert not any(loop["recorded"] for loop in fresh.loops)
    assert fresh.cycles_per_block == said["before"]


def test_the_same_command_has_nothing_left_to_do(tuned, cli):
    path, said = tuned
    before = path.with_suffix(".schedules.json").read_bytes()
    started = time.monotonic()
    answer = cli("tune", *CELL, "--times", "3", cwd=path.parent)
    assert answer.code == 0 and "1 searched" in answer.out and "to go" not in answer.out
    assert time.monotonic() - started < 60
    assert path.with_suffix(".schedules.json").read_bytes() == before
    (again,) = json.loads(cli("tune", *CELL, "--times", "3", "--json", cwd=path.parent).out)["cells"]
    assert again == said | {"kept": []}


def test_a_cell_is_told_from_the_note(tuned):
    path, _ = tuned
    (entry, *_) = schedules.read(path.with_suffix(".schedules.json"))
    assert entry["for"] == "square/ttable decrypt, 128 bits, multi, not unrolled"
    square = manifest.find("square")
    options = engine.Options(direction="decrypt", key_bits=128, blocks="multi", unroll=False)
    found = standing.cell(entry["for"], str(path), {"square/ttable": (square, "ttable")}, "zig")
    assert found == cells.Cell(square, "ttable", str(path), options)
    assert entry["of"] == found.origin(found.module())
    asked = engine.Options(
        direction="decrypt",
        key_bits=192,
        blocks="single",
        jam=3,
        unroll=True,
        aligned=True,
        with_=("mine",),
        without=("mpy", "ldw"),
        set=("a.b=3",),
    )
    # A name may have anything in it.
    odd = manifest.Cipher("a, b/c encrypt", path, {}, "d")
    note = schedules.note(odd, "d", asked)
    assert standing.cell(note, "c64x", {"a, b/c encrypt/d": (odd, "d")}, "zig") == cells.Cell(odd, "d", "c64x", asked)
    assert standing.cell("by hand", "c64x", {"square/compact": (square, "compact")}, "zig") is None


def own(entries):
    return [{key: value for key, value in entry.items() if key not in ("for", "of")} for entry in entries]


def test_a_shorter_one_stays(tuned):
    path, _ = tuned
    entries = schedules.read(path.with_suffix(".schedules.json"))
    longer = [entry | {"ii": entry["ii"] + 1} for entry in own(entries)]
    assert schedules.merged(entries, longer, entries[0]["for"], {}) == (entries, [])


def test_a_loop_has_one_entry_whatever_its_form(tuned):
    path, _ = tuned
    (entry, *others) = schedules.read(path.with_suffix(".schedules.json"))
    (plain,) = own([entry])
    new = plain | {"loop": "0" * 32, "forms": [entry["loop"], "1" * 32]}
    assert schedules.merged([entry, *others], [new], entry["for"], {})[1] == []
    after, ((written, replaced),) = schedules.merged(
        [entry, *others], [new | {"ii": entry["ii"] - 1}], entry["for"], {"module": "m"}
    )
    assert (written["ii"], replaced, written["of"]) == (entry["ii"] - 1, [entry], {"module": "m"})
    assert "forms" not in written and after == [*others, written]
    # Another cell's entry stays, and is none that a new one must be shorter than.
    after, ((written, replaced),) = schedules.merged([entry], [new], "another", {})
    assert (written["for"], replaced, after) == ("another", [], [entry, written])


@pytest.mark.parametrize("change", ["another loop", "all at once", "too short", "another side"])
def test_a_schedule_that_breaks_a_rule_is_not_taken(tuned, change):
    path, said = tuned
    kept = path.with_suffix(".schedules.json")
    before = kept.read_bytes()
    document = json.loads(before)
    for entry in document["schedules"]:
        if change == "another loop":
            entry["loop"] = "0" * 32
        elif change == "all at once":
            entry["time"] = [0] * len(entry["time"])
        elif change == "too short":
            entry["time"].pop()
        else:
            entry["sides"] = "Z" * len(entry["sides"])
    try:
        kept.write_text(json.dumps(document))
        m = run(path)
        assert m.verified and not any(loop["recorded"] for loop in m.loops)
        assert m.cycles_per_block == said["before"]
    finally:
        kept.write_bytes(before)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "not a file of schedules"),
        ("[]", "not a file of schedules"),
        ('{"schedules": [{}]}', "'loop'"),
        ('{"schedules": [{"loop": 1}]}', "`loop`"),
        ('{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": -1}]}', "`ii`"),
        ('{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [true], "variant": []}]}', "`time`"),
        (
            '{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [], "variant": [70000]}]}',
            "`variant`",
        ),
        (
            '{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [], "variant": [], "x": 1}]}',
            "`x`",
        ),
        (
            '{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [], "variant": [],'
            ' "form": {"unrolled": true, "jam": true, "throughput": false}}]}',
            "`form`",
        ),
        (
            '{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [], "variant": [],'
            ' "form": {"unrolled": true, "jam": -1, "throughput": false}}]}',
            "`form`",
        ),
        (
            '{"schedules": [{"loop": "", "divided": "", "sides": "", "ii": 1, "time": [], "variant": [], "form": 1}]}',
            "`form`",
        ),
    ],
)
def test_a_file_that_is_none_is_named(refused, write, content, what):
    write("mine.toml", MINE)
    write("mine.schedules.json", content)
    message = refused("run", "rijndael", "--on", "mine.toml")
    assert message.startswith("mine.schedules.json: not a file of schedules") and what in message and "tune" in message


def test_bad_input_is_told(refused, write):
    assert "at compile time" in refused("tune", "rijndael", "--variant", "compact", "--on", "rv32")
    assert "--on rv32" in refused("tune", "rijndael", "--on", "c6201,rv32")
    assert "--times 1" in refused("tune", "rijndael", "--on", "c6201", "--times", "1")
    assert "--first 0" in refused("tune", "rijndael", "--on", "c6201", "--first", "0")
    assert "--rounds 0" in refused("tune", "rijndael", "--on", "c6201", "--rounds", "0")
    assert "--minutes 0" in refused("tune", "--minutes", "0")
    assert "--minutes nan" in refused("tune", "--minutes", "nan")
    assert "--jobs 0" in refused("tune", "--jobs", "0")
    assert "no study" in refused("tune", "--study", "none")
    assert "--variant: --study says all" in refused("tune", "--study", "aes-finalists-on-dsp", "--variant", "plain")
    assert "rc6: --study says all" in refused("tune", "rc6", "--study", "aes-finalists-on-dsp")
    assert "at compile time" in refused("tune", "--study", "silicon-zen5")
    assert "ask for one" in refused("tune", "--check", "--mend")
    assert "--direction" in refused("tune", "--check", "--direction", "encrypt")
    assert "rabbit has keystream" in refused("tune", "rabbit", "--direction", "encrypt")
    assert "no feedback" in refused("tune", "rabbit", "--blocks", "single")
    assert "--on is given and empty" in refused("tune", "--on", "")
    assert "no machine" in refused("tune", "rijndael", "--on", "c6202")
    assert "no variant" in refused("tune", "rijndael", "--variant", "none")
    assert "has no 129-bit keys" in refused("tune", "rijndael", "--key-bits", "129")
    write("mine.c6201.schedules.json", "{")
    write("mine.c", SMALL)
    assert "mine.c6201.schedules.json: not a file of schedules" in refused("tune", "mine.c", "--on", "c6201")


@pytest.mark.parametrize("machine", ["c6201", "c64x", "epic", "itanium2"])
def test_for_which_machines_schedules_are_kept_is_what_the_core_says(machine, write):
    options = engine.Options(direction="encrypt", key_bits=128, blocks="single")
    cell = cells.Cell(manifest.find(str(write("small.c", SMALL))), "default", machine, options)
    assert machine in cells.explicit(options)
    found = search.records(cell, cell.module(), (), search.AS_A_RUN)
    assert bool(found) == cells.keeps(machine, options)


@pytest.mark.parametrize(("machine", "rotates"), [("epic", False), ("itanium2", True)])
def test_a_schedule_of_one_cluster_is_kept_and_breaks_no_rule(machine, rotates):
    options = engine.Options(direction="encrypt", key_bits=128, blocks="multi", unroll=False)
    cell = cells.Cell(manifest.find("square"), "compact", machine, options)
    module = cell.module()
    found = search.records(cell, module, (), search.AS_A_RUN)
    assert [entry.get("rotates", False) for entry in found] == [rotates] and "divided" not in found[0]
    m = search.measured(cell, module, found)
    assert m.verified and any(loop["recorded"] for loop in m.loops)
    # An operation in the first cycle that was in a later one does not wait for what it reads.
    late = max(found[0]["time"])
    wrong = {**found[0], "time": [0 if t == late else t for t in found[0]["time"]]}
    assert not any(loop["recorded"] for loop in search.measured(cell, module, [wrong]).loops)


def test_the_form_of_a_kept_schedule_comes_first_and_may_be_wrong(small):
    """A run compiles the form that is named; where its loop takes nothing it looks for one that does."""
    entries = schedules.read(small.file)
    assert all({*schedules.LEFT_OUT, *entry["form"]} == schedules.FORMS.keys() for entry in entries)
    module = small.module()
    other = {"unrolled": not entries[0]["form"]["unrolled"], "jam": 1, "throughput": False}
    asked = [entries, [{**entry, "form": other} for entry in entries], [dict(e, form={}) for e in entries]]
    right, wrong, none = (search.measured(small, module, given) for given in asked)
    assert right.verified and any(loop["recorded"] for loop in right.loops)
    assert right.cycles == wrong.cycles == none.cycles and right.loops == wrong.loops == none.loops


def test_the_cells_of_a_study_are_what_it_measures():
    found = cells.of_study("aes-finalists-on-dsp", "zig")
    assert {cell.machine for cell in found} >= {"c6201", "c64x"}
    assert any(cell.machine.endswith("c6201-32.toml") for cell in found) and not any(c.options.fresh for c in found)
    notes = [cell.note for cell in cells.of_study("addressing-modes-on-epic", "zig")]
    assert "rc6/plain encrypt, 128 bits, single, with addr-indexed, set issue.width=2, set units.mem=2" in notes


@pytest.fixture
def small(write):
    """A cipher of the user's with a kept schedule beside it: that of a run's own search."""
    path = write("small.c", SMALL)
    options = engine.Options(direction="encrypt", key_bits=128, blocks="single")
    cell = cells.Cell(manifest.find(str(path)), "default", "c6201", options)
    module = cell.module()
    found = search.records(cell, module, (), search.AS_A_RUN)
    search.keep(cell, found, cell.origin(module), ())
    assert [entry["for"] for entry in schedules.read(cell.file)] == [cell.note] * len(found)
    return cell


def test_a_cipher_of_the_users_has_its_schedules_beside_it(small, cli):
    assert small.file == small.cipher.path.with_name("small.c6201.schedules.json")
    answer = cli("run", "small.c", *SINGLE)
    assert answer.code == 0 and answer.err == ""
    assert "with a kept schedule for its main loop. " in answer.out.splitlines()[0]
    assert "kept" not in cli("run", "small.c", *SINGLE, "--fresh").out
    # Those of built-in ciphers are in one place, however one is named.
    for square in (manifest.find("square"), manifest.load(paths.CIPHERS / "square" / "cipher.toml")):
        assert schedules.file("c6201", square) == paths.SCHEDULES / "c6201.json"


def check(cli, *more):
    answer = cli("tune", "small.c", "--on", "c6201", "--check", "--json", *more)
    found = json.loads(answer.out)["schedules"]
    assert answer.code == (0 if all(each["taken"] for each in found) else 1)
    return found


def test_stale_and_gone_ones_are_told_with_their_reason_and_mended(small, cli):
    (said,) = check(cli)
    assert said["taken"] and said["state"] == "as good" and said["for"] == small.note
    # A schedule that breaks a rule.
    good = small.file.read_text()
    document = json.loads(good)
    (entry,) = document["schedules"]
    entry["ii"] -= 1
    small.file.write_text(json.dumps(document))
    (said,) = check(cli)
    assert (said["taken"], said["state"]) == (False, "rule")
    told = cli("run", "small.c", *SINGLE)
    assert told.code == 0 and "no loop takes the schedule of II" in told.err and "--check" in told.err
    assert "kept" not in told.out.splitlines()[0]
    # Another loop: the cipher's source has changed.
    small.file.write_text(good)
    small.cipher.path.write_text(SMALL.replace("i < 4; i++) a", "i < 3; i++) a"))
    (said,) = check(cli)
    assert (said["taken"], said["state"]) == (False, "cipher")
    text = cli("tune", "small.c", "--on", "c6201", "--check")
    assert text.code == 1 and "the cipher's code is another" in text.out and "1 that no loop takes" in text.out
    mended = cli("tune", "small.c", "--on", "c6201", "--mend", "--times", "2", "--json")
    assert mended.code == 0, mended
    document = json.loads(mended.out)
    assert [each["state"] for each in document["schedules"]] == ["cipher"] and len(document["cells"]) == 1
    assert all(each["taken"] for each in check(cli))
    assert "no loop takes" not in cli("run", "small.c", *SINGLE).err
    # Gone: the journal knows that there was one.
    small.file.unlink(missing_ok=True)
    cell = cells.Cell(manifest.find(str(small.cipher.path)), "default", "c6201", small.options)
    record = journal.read(cell.name)
    assert record is not None
    journal.write(cell.name, journal.Record(record.key, record.title, 2, 1, 1, 1, kept=(("0" * 32, 9),)))
    assert "are gone" in cli("run", "small.c", *SINGLE).err


def kept_of(loop, ii, forms=(), **more):
    return {"loop": loop, "ii": ii, "divided": "", "sides": "", "time": [ii], "variant": [], "forms": [*forms], **more}


@pytest.mark.parametrize(
    ("now", "fresh", "state"),
    [
        ([kept_of("a", 5)], [kept_of("a", 6)], "taken"),
        ([kept_of("a", 5)], [kept_of("b", 4)], "taken"),
        ([kept_of("a", 5)], [kept_of("a", 5, time=[1])], "as good"),
        ([kept_of("a", 4)], [kept_of("a", 4)], "found"),
        ([kept_of("b", 4, ["a"])], [kept_of("a", 6)], "shorter"),
        ([kept_of("a", 6)], [kept_of("a", 6)], "rule"),
        ([kept_of("b", 6)], [kept_of("b", 6)], "loop"),
    ],
)
def test_reasons(now, fresh, state):
    entry = {key: value for key, value in kept_of("a", 5).items() if key != "forms"}
    entry |= {"for": "x", "of": {"module": "m", "machine": "n"}}
    assert standing.state(entry, now, fresh, {"module": "m", "machine": "n"}) == state


def test_what_has_changed_is_told():
    entry = {key: value for key, value in kept_of("a", 5).items() if key != "forms"}
    entry["of"] = {"module": "m", "machine": "n"}
    other = [kept_of("b", 6)]
    assert standing.state(entry, other, other, {"module": "k", "machine": "n"}) == "cipher"
    assert standing.state(entry, other, other, {"module": "m", "machine": "k"}) == "machine"
    # Of one that does not say what it was found with, nothing more is known.
    assert standing.state(entry | {"of": {}}, other, other, {"module": "k", "machine": "k"}) == "loop"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing_half_written(write, tmp_path, number):
    write("mine.toml", MINE)
    asked = command(*CELL, "--times", "900")
    environment = {**os.environ, "CIPHERMILL_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(asked, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as begun:
        assert begun.stdout is not None and "1 not begun" in begun.stdout.readline()
        time.sleep(1)
        begun.send_signal(number)
        begun.communicate(timeout=30)
    assert begun.returncode == -number
    assert not list(tmp_path.rglob("*.tmp")) and not (tmp_path / "mine.schedules.json").exists()


def test_writers_of_one_file_wait_for_each_other(tmp_path):
    """Sixteen processes add an entry each; all are there in the end."""
    code = (
        "import sys; from pathlib import Path; from ciphermill import schedules\n"
        "new = {'loop': sys.argv[2], 'ii': 9, 'divided': '', 'sides': '', 'time': [], 'variant': []}\n"
        "add = lambda entries: schedules.merged(entries, [new], sys.argv[2], {})[0]\n"
        "schedules.update(Path(sys.argv[1]), 'mine', add)\n"
    )
    path = tmp_path / "mine.schedules.json"
    names = [f"{k:032x}" for k in range(16)]
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in names]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 16
    assert [entry["loop"] for entry in schedules.read(path)] == names
    assert os.listdir(tmp_path) == [path.name]
