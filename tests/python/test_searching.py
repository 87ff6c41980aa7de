"""How a schedule was found, as text: hand-made searches, and one real one."""

import json

from ciphermill import searching

MOVES = {kind: {"tried": 100, "taken": 10} for kind in searching.KINDS}


def phase(name, start, to, work, end="exhausted", broken=0):
    return {"phase": name, "from": start, "to": to, "tried": 3, "broken": broken, "work": work, "end": end}


def loop(*phases, least=10):
    search = {
        "forms": 1,
        "divisions": 2,
        "budget": 1000,
        "left": 100,
        "moves": {"work": 900, **MOVES},
        "phases": phases,
    }
    return {"function": "f", "block": 3, "ii": 12, "least": least, "search": search}


def test_each_phase_is_a_line_and_says_what_stayed_broken():
    text = searching.of_loop(loop(phase("list", 10, 20, 100), phase("race", 15, None, 300, "broken", 7)))
    assert "1 form, 2 divisions; 900 of 1,000 moves spent." in text
    lines = [line.split() for line in text.splitlines()]
    assert ["list", "10", "20", "3", "100", "exhausted"] in [line[:6] for line in lines]
    assert ["race", "15", "none", "3", "300", "7", "broken"] in [line[:7] for line in lines]
    assert any(line[-3:] == ["100", "10", "10.0%"] for line in lines)


def test_the_curve_falls_with_each_schedule():
    found = [
        phase("list", 10, 20, 100),
        phase("race", 15, None, 300),
        phase("race", 16, 18, 200),
        phase("narrow", 18, 12, 400),
    ]
    assert searching.curve(found) == [(100, 20), (400, 20), (600, 18), (1000, 12)]
    # Nothing before the first schedule.
    assert searching.curve([phase("ascend", 10, None, 50), phase("ascend", 20, 22, 50)]) == [(100, 22)]


def test_the_plot_has_the_first_at_the_top_and_ends_at_the_last():
    drawn = searching.plot([(100, 20), (500, 15), (1000, 10)], 10).splitlines()
    rows = [line.split("|", 1)[1] for line in drawn[1 : 1 + searching.HEIGHT]]
    assert drawn[1].startswith("20 |") and drawn[searching.HEIGHT].startswith("10 |")
    assert rows[0].index("*") == 5 and rows[-1].rstrip().endswith("*") and len(rows[-1].rstrip()) == searching.WIDTH
    # A column for each share of the moves, one star in each from the first schedule on.
    stars = [sum(row[column : column + 1] == "*" for row in rows) for column in range(searching.WIDTH)]
    assert stars == [0] * 5 + [1] * (searching.WIDTH - 5)


def test_kept_schedules_and_programs_without_loops_are_told():
    kept = {**loop(phase("list", 10, 12, 1)), "search": None}
    assert "Its schedule is a kept one" in searching.of_loop(kept)
    assert searching.text([]).startswith("No loop is software-pipelined")


def test_a_real_search_reaches_the_ii_that_the_loop_has(cli):
    answer = cli("explain", "rc6", "--on", "c64x", "--fresh", "--bytes", 1024, "--json")
    told = json.loads(answer.out)
    loops = [entry for entry in told["loops"] if entry["search"]]
    assert loops
    for entry in loops:
        search = entry["search"]
        assert min(phase["to"] for phase in search["phases"] if phase["to"] is not None) == entry["ii"]
        assert 0 <= search["left"] <= search["budget"] and search["moves"]["work"] > 0
        assert sum(phase["work"] for phase in search["phases"]) <= search["budget"]
