"""A search for schedules has a budget, says when it was spent, and is given more on request."""

from __future__ import annotations

import json
from pathlib import Path

import ciphermill as cm
from ciphermill import report

FOREIGN = Path(__file__).parent / "foreign"


def test_a_search_that_was_cut_says_so():
    """Grain's shift registers are many words, which an iteration of hundreds of operations keeps."""
    m = cm.run(FOREIGN / "grain128a.c", on="c6201", bytes=64)
    assert m["search"] == {"patience": 1, "spent": True} and m["verified"]
    assert "was not over when its budget was spent; --patience 10 searches longer" in report.sentence(m)


def test_one_that_came_to_its_end_says_nothing(cli):
    answer = cli("run", "rijndael", "--on", "epic", "--bytes", "64")
    assert answer.code == 0, answer.err
    assert "patience" not in answer.out
    answer = cli("run", "rijndael", "--on", "epic", "--bytes", "64", "--patience", "3", "--json")
    assert json.loads(answer.out)["measurements"][0]["search"] == {"patience": 3, "spent": False}


def test_no_patience_at_all_is_refused(cli):
    for times in ("0", "1001"):
        answer = cli("run", "rijndael", "--on", "epic", "--patience", times)
        assert (
            answer.code == 2
            and f"--patience {times}: a search of so many times the usual length, 1 to 1000" in answer.err
        )
