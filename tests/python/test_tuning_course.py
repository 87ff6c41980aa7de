"""Many cells: in which order they are searched, what a stop leaves, and that nothing of that changes a byte.

The core is replaced by a made-up one: a cell is a number that rounds make smaller, each round in a way that depends on
nothing but the cell, the round and what it goes on from, as the core's searches do. ``test_tune.py`` has the real one.
"""

from __future__ import annotations

import hashlib
import threading
import time

import msgspec
import pytest
from samples import XOR_CIPHER

import ciphermill as cm
from ciphermill import InternalError, engine, kept, manifest, schedules
from ciphermill.tuning import cells, course, journal, mending, search, text
from ciphermill.tuning.standing import Standing

LEAST = 50
#: Longer than the steps of a made-up search, shorter than anybody waits.
MOMENT = 0.002


def number(*of: object) -> int:
    return int(hashlib.sha256(repr(of).encode()).hexdigest(), 16)


def start(cell) -> int:
    """A cell's interval after a run's own search."""
    return LEAST + 10 + number(cell.note, cell.machine) % 90


def entry(cell, ii):
    digest = f"{number(cell.note, cell.machine):064x}"[:32]
    return {"loop": digest, "ii": ii, "divided": "AA", "sides": "AA", "time": [0], "variant": [ii % 7]}


class Core:
    """What the core is asked, and what it answers."""

    def __init__(self):
        self.rounds = []
        self.measured = []
        self.stop = None
        self.nothing = ()
        self.broken = ()

    def records(self, cell, module, entries, asked):
        best = min([e["ii"] for e in entries], default=start(cell))
        if asked != search.AS_A_RUN:
            if self.stop is not None and len(self.rounds) >= self.stop:
                raise KeyboardInterrupt
            self.rounds.append((cell.title, asked["times"], asked["round"]))
            time.sleep(MOMENT)
            best = max(LEAST, best - number(cell.title, best, *asked.values()) % (2 + asked["times"]))
        return [] if cell.options.direction in self.nothing else [{**entry(cell, best), "forms": ["f" * 32]}]

    def measure(self, cell, entries):
        if cell.options.direction in self.broken:
            raise InternalError("made to fail")
        ii = min([e["ii"] for e in entries], default=start(cell))
        loop = {"ii": ii, "least": LEAST, "recorded": bool(entries)}
        found = {"cycles_per_block": ii, "bounds": {"lower": LEAST}, "loops": [loop], "verified": True, "failure": None}
        return cm.Measurement(found)


@pytest.fixture
def core(monkeypatch, tmp_path):
    made = Core()
    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(search, "records", made.records)
    monkeypatch.setattr(search, "measured", lambda cell, module, entries: made.measure(cell, entries))

    def fresh(module, machine, options):
        # The options of a measurement with a run's own search are those of its cell but for one.
        asked = engine.Options(**{**vars(options), "fresh": False})
        cell = cells.Cell(module.cipher, module.variant.name, machine, asked)
        made.measured.append(cell.title)
        return made.measure(cell, ())

    monkeypatch.setattr(kept, "measurement", fresh)
    return made


@pytest.fixture
def mine(write):
    """A cipher of the user's, its cells on both DSPs, and the files where their schedules are kept."""
    path = write("mine.c", XOR_CIPHER)

    def every():
        return cells.of([manifest.find(str(path))], None, ["c6201", "c64x"], engine.Options())

    return every


def go(wanted, efforts, minutes=None, jobs=1, told=lambda *_: None):
    way = course.Course([(cell, ()) for cell in wanted], efforts, course.Clock(minutes), jobs)
    way.run(told)
    return way


def files(wanted):
    return {cell.file.name: cell.file.read_bytes() for cell in wanted if cell.file.is_file()}


ROUNDS = course.efforts(5, 3, 1, None)


def test_what_there_is_to_tune(mine):
    found = mine()
    assert len(found) == len({cell.name for cell in found}) == 10
    told = [(cell.options.direction, cell.options.blocks) for cell in found if cell.machine == "c64x"]
    assert told == [
        ("encrypt", "multi"), ("decrypt", "multi"), ("encrypt", "single"), ("decrypt", "single"), ("keysetup", "multi"),
    ]  # fmt: skip
    assert [cell.machine for cell in found[:2]] == ["c6201", "c64x"]
    # Of several ciphers those are left out that have not what is said.
    both = [manifest.find("rabbit"), manifest.find("square")]
    some = cells.of(both, None, ["c6201"], engine.Options(direction="decrypt", blocks="single"))
    assert {cell.cipher.name for cell in some} == {"square"}
    stream = cells.of([manifest.find("rabbit")], None, ["c6201"], engine.Options())
    assert {(c.options.direction, c.options.blocks) for c in stream} == {("keystream", "multi"), ("keysetup", "multi")}


def test_rounds_are_made_breadth_first_and_the_worst_comes_first(core, mine):
    wanted = mine()
    way = go(wanted, ROUNDS)
    assert [seat.state for seat in way.seats] == ["done"] * 10
    # No cell has its second round before all have had their first.
    assert [number for _, _, number in core.rounds] == [1] * 10 + [2] * 10 + [3] * 10
    # From the second pass on all ratios are known, and within it they fall.
    first = {cell.title: start(cell) for cell in wanted}
    begun = [title for title, _, number in core.rounds if number == 1]
    # With eight cells looked at ahead, the first is the worst of the first eight.
    ahead = [cell.title for cell in wanted[: course.AHEAD]]
    assert begun[0] == max(ahead, key=first.__getitem__)
    assert sorted(core.measured) == sorted(first)


def test_what_is_kept_does_not_depend_on_order_threads_or_stops(core, mine, tmp_path):
    wanted = mine()
    go(wanted, ROUNDS)
    expected, rounds = files(wanted), len(core.rounds)
    assert len(expected) == 2

    def from_the_beginning():
        for name in expected:
            (tmp_path / name).unlink(missing_ok=True)
        for path in (tmp_path / "cache" / journal.KIND).glob("*"):
            path.unlink()
        core.rounds.clear()

    from_the_beginning()
    go(wanted[::-1], ROUNDS, jobs=3)
    assert files(wanted) == expected
    # Stopped after some rounds, and begun again.
    from_the_beginning()
    for stop in range(1, rounds, 7):
        core.stop = stop
        with pytest.raises(KeyboardInterrupt):
            go(wanted, ROUNDS)
    core.stop = None
    go(wanted, ROUNDS)
    assert files(wanted) == expected
    # No round was made twice, and nothing else lies there.
    assert len(core.rounds) == len(set(core.rounds)) == rounds
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"]
    # Two commands at once.
    from_the_beginning()
    both = [threading.Thread(target=go, args=(wanted, ROUNDS), kwargs={"jobs": 2}) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    go(wanted, ROUNDS)
    assert files(wanted) == expected
    assert len(core.rounds) == len(set(core.rounds)) == rounds


def test_what_is_done_is_not_done_again_and_what_changed_is(core, mine, monkeypatch):
    wanted = mine()
    go(wanted, ROUNDS)
    core.rounds.clear(), core.measured.clear()
    go(wanted, ROUNDS)
    assert core.rounds == [] and core.measured == []
    # More rounds go on where these ended.
    go(wanted, course.efforts(5, 4, 1, None))
    assert [number for _, _, number in core.rounds] == [4] * 10
    # What is gone from a file is found anew.
    core.rounds.clear()
    gone = wanted[0].file
    gone.unlink()
    way = go(wanted, ROUNDS)
    assert {title for title, *_ in core.rounds} == {c.title for c in wanted if c.file == gone} and gone.is_file()
    assert "5 cells are gone from their file" in text.plan(way, [])
    # Another build of the core searches everything anew.
    core.rounds.clear()
    monkeypatch.setattr(engine, "identity", lambda: "another")
    go(wanted, ROUNDS[:1])
    assert len(core.rounds) == 10


def test_a_cell_that_has_nothing_or_fails_takes_no_other_along(core, mine):
    core.nothing, core.broken = ("keysetup",), ("decrypt",)
    heard = []
    way = go(mine(), ROUNDS, told=lambda seat, step: heard.append((seat.state, text.line(seat, step))))
    states = [(seat.cell.options.direction, seat.state) for seat in way.seats]
    assert {s for d, s in states if d == "keysetup"} == {"nothing"}
    assert {s for d, s in states if d == "decrypt"} == {"failed"}
    assert {s for d, s in states if d == "encrypt"} == {"done"}
    assert any(line and "No loop has a schedule that is kept" in line for state, line in heard if state == "nothing")
    assert "4 searched, 2 without a loop whose schedule is kept, 4 failed" in text.summary(way)
    failed = [cell for cell in text.document(way)["cells"] if cell["state"] == "failed"]
    assert len(failed) == 4 and all(cell["message"] == "made to fail" and cell["after"] is None for cell in failed)


def test_minutes_say_which_rounds_are_begun(core, mine, monkeypatch):
    ladder = course.efforts(20, None, 1, 5)
    assert [times for times, _ in ladder[:6]] == [2, 4, 8, 16, 20, 20] and len(ladder) == course.MOST
    assert [k for _, k in ladder[:3]] == [1, 2, 3]
    wanted = mine()
    # No time is left: nothing is begun, all of it is told.
    way = go(wanted, ladder, minutes=1e-9)
    assert core.rounds == [] and {seat.state for seat in way.seats} == {"waiting"}
    assert "10 cells left: the same command goes on" in text.summary(way)
    # Of a cell whose measurement took longer than is left, no round is begun.
    cell = wanted[0]
    module = cell.module()
    slow = journal.Record(cell.key(module), cell.title, start(cell), start(cell), LEAST, seconds=10_000)
    journal.write(cell.name, slow)
    way = go(wanted, ladder[:2], minutes=10)
    assert cell.title not in {title for title, *_ in core.rounds}
    assert [seat.state for seat in way.seats] == ["waiting"] + ["done"] * 9


def test_a_round_longer_than_its_share_waits(core, mine):
    wanted = mine()[:2]
    for cell, seconds in zip(wanted, (200, 1), strict=True):
        record = journal.Record(cell.key(cell.module()), cell.title, start(cell), start(cell), LEAST, seconds)
        journal.write(cell.name, record)
    go(wanted, course.efforts(2, 1, 1, 10), minutes=10)
    # 400 of 600 seconds for two: the other one comes first, whatever the ratios.
    assert [title for title, *_ in core.rounds] == [wanted[1].title, wanted[0].title]


def test_an_estimate_is_that_of_what_is_left(core, mine):
    wanted = mine()[:2]
    way = course.Course([(cell, ()) for cell in wanted], ROUNDS, course.Clock(None), 1)
    assert way.estimate() == 2 * (course.USUAL + 15 * course.USUAL)
    assert "none of which was timed yet" in text.plan(way, ["epic"]) and "Nothing is kept for epic" in text.plan(
        way, ["epic"]
    )
    for cell in wanted:
        record = journal.Record(cell.key(cell.module()), cell.title, start(cell), start(cell), LEAST, 7)
        journal.write(cell.name, msgspec.structs.replace(record, rounds=(journal.Round(5, 1, 20),)))
    way = course.Course([(cell, ()) for cell in wanted], ROUNDS, course.Clock(None), 2)
    assert [seat.state for seat in way.seats] == ["begun", "begun"]
    # Two rounds of five times for each of two cells, four seconds for one time, on two cores.
    assert way.estimate() == 2 * 5 * 4 * 2 / 2


def test_what_another_process_works_on_is_left_to_it(core, mine):
    wanted = mine()[:3]
    with journal.claimed(wanted[0].name) as ours:
        assert ours
        way = go(wanted, ROUNDS)
    assert [seat.state for seat in way.seats] == ["elsewhere", "done", "done"]
    way = go(wanted, ROUNDS)
    assert [seat.state for seat in way.seats] == ["done"] * 3


def test_when_nobody_reads_any_more_all_threads_end(core, mine):
    def told(seat, step):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        go(mine(), ROUNDS, jobs=2, told=told)
    assert core.rounds == []


def test_without_a_cache_it_works_and_remembers_nothing(core, mine, monkeypatch, write):
    monkeypatch.setenv("CIPHERMILL_CACHE", str(write("a file", "") / "below"))
    wanted = mine()[:2]
    assert [seat.state for seat in go(wanted, ROUNDS).seats] == ["done"] * 2
    assert files(wanted)


def test_a_folder_that_cannot_be_written_is_told_before_the_work(core, mine, monkeypatch):
    monkeypatch.setattr(course.os, "access", lambda *_: False)
    with pytest.raises(cm.InputError, match=r"mine\.c6201\.schedules\.json.*cannot be written to"):
        go(mine(), ROUNDS)
    assert core.measured == []


def stale(cell, state):
    (own,) = schedules.of(schedules.present(cell.file), cell.note)
    return Standing(cell.file, cell.machine, own, cell, state)


def test_mending_searches_what_is_lost_and_takes_the_rest_out(core, mine):
    wanted = [cell for cell in mine() if cell.machine == "c6201"]
    go(wanted, ROUNDS)
    states = ["taken", "found", "loop", "shorter", "rule"]
    found = [stale(cell, state) for cell, state in zip(wanted, states, strict=True)]
    core.rounds.clear()
    before = {cell.note: schedules.of(schedules.present(cell.file), cell.note) for cell in wanted}
    lost = mending.lost(found)
    assert [cell.note for cell, _ in lost] == [wanted[2].note, wanted[4].note]
    left = {e["for"] for e in schedules.present(wanted[0].file)}
    # What is to be searched anew stays until that is done.
    assert left == {wanted[k].note for k in (0, 2, 4)}
    way = course.Course(lost, ROUNDS[:1], course.Clock(None), 1)
    way.run(lambda *_: None)
    assert {title for title, *_ in core.rounds} == {wanted[2].title, wanted[4].title}
    after = {e["for"]: [e] for e in schedules.present(wanted[0].file)}
    assert after[wanted[0].note] == before[wanted[0].note]
    # A round of a search from the beginning, not from what no loop takes.
    for k in (2, 4):
        ((own,),) = [after.get(wanted[k].note, [entry(wanted[k], start(wanted[k]))])]
        expected = core.records(wanted[k], None, [], {"times": 5, "round": 1})[0]["ii"]
        assert own["ii"] == expected
