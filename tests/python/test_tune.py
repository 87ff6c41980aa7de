"""Long searches for schedules: what they find is kept, taken by later runs, and never trusted."""

from __future__ import annotations

import json

import pytest

import ciphermill as cm
from ciphermill import engine, schedules, tune

#: A machine of the user's: the C6201, with what is kept for it in a file of its own.
MINE = '[machine]\nname = "mine"\ninherits = "c6201"\n'

SETTINGS = {"variant": "compact", "direction": "encrypt", "unroll": False}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A machine file beside which a schedule is kept, and what `tune` said of it."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("tuned")
    (folder / "mine.toml").write_text(MINE)
    command = [
        sys.executable,
        "-m",
        "ciphermill",
        "tune",
        "square",
        "--variant",
        "compact",
        "--on",
        "mine.toml",
        "--no-unroll",
        "--times",
        "3",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "mine.toml", json.loads(done.stdout)


def run(path, **more):
    return cm.run("square", on=path, **SETTINGS, **more)


def loops(measurement):
    return [(loop["ii"], loop["recorded"]) for loop in measurement.loops]


def test_what_is_found_is_taken_by_later_runs(tuned):
    path, said = tuned
    assert said["after"]["cycles_per_block"] <= said["before"]["cycles_per_block"]
    kept = path.with_suffix(".schedules.json")
    assert len(json.loads(kept.read_text())["schedules"]) == len(said["kept"]) > 0
    m = run(path)
    assert m.verified and any(loop["recorded"] for loop in m.loops)
    assert m.cycles_per_block == said["after"]["cycles_per_block"]
    fresh = run(path, fresh=True)
    assert not any(loop["recorded"] for loop in fresh.loops)
    assert fresh.cycles_per_block == said["before"]["cycles_per_block"]


def test_settings_are_told_from_the_note(tuned):
    path, _ = tuned
    (entry, *_) = schedules.read(path.with_suffix(".schedules.json"))
    assert entry["for"] == "square/compact encrypt, 128 bits, multi, not unrolled"
    cipher, variant, options = tune.settings(entry)
    assert (cipher, variant, options.unroll, options.jam) == ("square", "compact", False, None)
    asked = engine.Options(
        direction="decrypt",
        key_bits=192,
        blocks="single",
        jam=3,
        unroll=True,
        aligned=True,
        with_=["mine"],
        without=["mpy", "ldw"],
        set=["a.b=3"],
    )
    m = cm.Measurement({
        "cipher": "rijndael", "variant": "ttable", "direction": "decrypt", "key_bits": 192, "blocks": "single",
        "with": asked.with_, "without": asked.without, "set": asked.set,
    })  # fmt: skip
    assert tune.settings({"for": tune.note(m, asked)}) == ("rijndael", "ttable", asked)


def test_a_shorter_one_stays(tuned):
    path, _ = tuned
    kept = path.with_suffix(".schedules.json")
    before = kept.read_bytes()
    entries = schedules.read(kept)
    longer = [
        {key: value for key, value in entry.items() if key != "for"} | {"ii": entry["ii"] + 1} for entry in entries
    ]
    assert schedules.keep(str(path), longer, "") == []
    assert kept.read_bytes() == before


def test_a_loop_has_one_entry_whatever_its_form(tuned):
    path, _ = tuned
    kept = path.with_suffix(".schedules.json")
    before = kept.read_bytes()
    try:
        (entry, *others) = schedules.read(kept)
        new = {key: value for key, value in entry.items() if key != "for"} | {
            "loop": "0" * 32,
            "forms": [entry["loop"], "1" * 32],
        }
        assert schedules.keep(str(path), [new], "") == []
        shorter = new | {"ii": entry["ii"] - 1}
        ((written, replaced),) = schedules.keep(str(path), [shorter], "mine")
        assert (written["ii"], replaced, written["for"]) == (
            entry["ii"] - 1,
            [entry],
            "mine",
        ) and "forms" not in written
        assert schedules.read(kept) == sorted([written, *others], key=lambda e: (e["for"], e["loop"]))
    finally:
        kept.write_bytes(before)


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
        assert m.cycles_per_block == said["before"]["cycles_per_block"]
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
    ],
)
def test_a_file_that_is_none_is_named(refused, write, content, what):
    write("mine.toml", MINE)
    write("mine.schedules.json", content)
    message = refused("run", "rijndael", "--on", "mine.toml")
    assert message.startswith("mine.schedules.json: not a file of schedules") and what in message and "tune" in message


def test_where_there_is_nothing_to_search_is_said(refused):
    assert "clusters" in refused("tune", "rijndael", "--variant", "compact", "--on", "rv32")
    assert "--times 1" in refused("tune", "rijndael", "--on", "c6201", "--times", "1")
    assert "--first 0" in refused("tune", "rijndael", "--on", "c6201", "--first", "0")
    assert "no machine" in refused("tune", "rijndael", "--on", "c6202")


def test_what_is_kept_is_taken_or_told(tuned):
    path, _ = tuned
    ((ii, _),) = loops(run(path))
    (entry,) = [e for e in schedules.read(path.with_suffix(".schedules.json")) if e["ii"] == ii]
    assert tune.taken(str(path), entry)
    assert not tune.taken(str(path), entry | {"ii": ii - 1})
