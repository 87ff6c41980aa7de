"""Exact scheduling of real loops: what is asked, in which order, and what
becomes of the answers."""

from __future__ import annotations

import pytest
from test_optimal import needs_solver, node, problem

import ciphermill as cm
from ciphermill import exact, optimal


def loop(ii, first, divided, free=None):
    return {"func": 0, "runs": True, "ii": ii, "first": first, "divided": divided, "free": free}


def three_on_one_unit():
    """Three operations and one unit: three cycles, no fewer."""
    return problem([node(optional=False) for _ in range(3)], 0)


@needs_solver
def test_the_least_interval_is_found_and_proved():
    calls = []

    def core(so_far):
        calls.append(so_far)
        return {"form": {"unrolled": False}, "loops": [loop(5, 2, three_on_one_unit())]}

    answered = exact.answers(core)
    (answer,) = answered["answers"]
    assert answered["form"] == {"unrolled": False}
    assert (answer["least"], answer["schedule"]["ii"]) == (3, 3)
    assert len({t % 3 for t in answer["schedule"]["time"]}) == 3
    assert calls == [{"form": None, "answers": []}]


@needs_solver
def test_a_better_division_is_written_out_again():
    # One unit on each side; all three operations stand on one of them.
    both = lambda: [  # noqa: E731
        {"uses": ["u"], "result": "a", "reads": []},
        {"uses": ["v"], "result": "b", "reads": []},
    ]
    more = {"units": {"u": 1, "v": 1}, "files": {"a": 8, "b": 8}}
    free = problem([{**node(), "optional": False, "alternatives": both()} for _ in range(3)], 0, **more)
    calls = []

    def core(so_far):
        calls.append(so_far)
        sides = so_far["answers"][0]["division"] if so_far["answers"] else [0, 0, 0]
        nodes = [{**node(), "optional": False, "alternatives": [both()[s]]} for s in sides]
        return {"form": None, "loops": [loop(3, 1, problem(nodes, 0, **more), free)]}

    (answer,) = exact.answers(core)["answers"]
    assert (answer["least"], answer["schedule"]["ii"]) == (2, 2)
    assert sorted(answer["division"].count(s) for s in (0, 1)) == [1, 2]
    assert len(calls) == 2


@needs_solver
def test_what_is_undecided_is_neither_proved_nor_used(monkeypatch):
    monkeypatch.setattr(optimal, "kept", lambda problem, seconds: {"status": optimal.UNKNOWN, "seconds": 0})
    core = lambda so_far: {"form": None, "loops": [loop(5, 2, three_on_one_unit())]}  # noqa: E731
    asked = [{"ii": 2, "division": "own", "word": "unknown"}, {"ii": 4, "division": "own", "word": "unknown"}]
    assert exact.answers(core)["answers"] == [{"least": 2, "asked": asked}]


@needs_solver
def test_a_loop_that_nothing_comes_to_is_not_asked(monkeypatch):
    monkeypatch.setattr(optimal, "kept", lambda problem, seconds: pytest.fail("asked"))
    core = lambda so_far: {"form": None, "loops": [{**loop(5, 2, three_on_one_unit()), "runs": False}]}  # noqa: E731
    assert exact.answers(core)["answers"] == [{"least": 2, "asked": []}]


@needs_solver
def test_a_model_too_large_is_not_asked(monkeypatch):
    monkeypatch.setattr(exact, "LARGEST", 5)
    core = lambda so_far: {"form": None, "loops": [loop(5, 2, three_on_one_unit())]}  # noqa: E731
    asked = [{"ii": 2, "division": "own", "word": "large"}, {"ii": 4, "division": "own", "word": "large"}]
    assert exact.answers(core)["answers"] == [{"least": 2, "asked": asked}]


def test_without_the_solver_it_is_said(monkeypatch):
    monkeypatch.setattr(optimal, "available", lambda: False)
    with pytest.raises(cm.InputError, match=r"pip install 'ciphermill\[optimal\]'"):
        cm.run("rijndael", on="c6201", direction="keysetup", optimal=True)


@needs_solver
def test_a_loop_of_a_key_set_up():
    plain = cm.run("rijndael", on="c6201", direction="keysetup")
    best = cm.run("rijndael", on="c6201", direction="keysetup", optimal=True)
    # Registers around a loop that has become shorter may lie less well: a move more.
    assert best.verified and best.cycles <= plain.cycles + len(plain.loops)
    for before, after in zip(plain.loops, best.loops, strict=True):
        assert before["least"] <= after["least"] <= after["ii"] <= before["ii"]
        assert after["proved_optimal"] == (after["ii"] == after["least"])
        assert before["asked"] == []
        # An answer that shortens the loop, or says that none is shorter.
        words = {(q["ii"], q["word"]) for q in after["asked"]}
        assert all((ii, "none") in words for ii in range(before["least"], after["least"]))
        # The search before it is longer, too, and may come there by itself: the solver is then asked of shorter ones only.
        by_itself = all(q["ii"] < after["ii"] for q in after["asked"])
        assert after["ii"] == before["ii"] or (after["ii"], "found") in words or by_itself
    # What is not proved the shortest may be shorter with another division: the solver was asked of the next interval.
    for after in best.loops:
        assert after["proved_optimal"] or any(q["ii"] == after["ii"] - 1 for q in after["asked"])
    again = cm.run("rijndael", on="c6201", direction="keysetup", optimal=True)
    assert again.to_dict() == best.to_dict()
