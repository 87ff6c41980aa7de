"""Progress: on a terminal, after a second, with the time left; otherwise nothing."""

from __future__ import annotations

import subprocess
import sys

import terminal

BAR = """
import sys, time
from ciphermill.progress import with_progress
pause = float(sys.argv[1])
assert [i for i in with_progress((time.sleep(pause) or i for i in range(4)), 4)] == [0, 1, 2, 3]
"""
SPINNER = """
import sys, time
from ciphermill.progress import waiting
with waiting("measuring"):
    time.sleep(float(sys.argv[1]))
"""


def command(script, pause):
    return [sys.executable, "-c", script, str(pause)]


def test_a_bar_with_the_time_left():
    out = terminal.written(command(BAR, 0.5), "stderr")
    assert "measuring" in out and "left" in out and "4/4" in out


def test_a_bar_while_the_first_step_is_under_way():
    """Not only once something has come of it: the first point of a study may take a minute."""
    slow = BAR.replace("time.sleep(pause)", "time.sleep(pause if i == 0 else 0)")
    assert "0/4" in terminal.written(command(slow, 1.4), "stderr")


def test_a_spinner_where_the_end_is_not_known():
    assert "measuring" in terminal.written(command(SPINNER, 1.5), "stderr")


def test_nothing_for_what_is_quick():
    assert terminal.written(command(BAR, 0.01), "stderr") == ""
    assert terminal.written(command(SPINNER, 0.01), "stderr").strip("\x1b[?25hl\n") == ""


def test_nothing_in_a_pipe():
    for script in (BAR, SPINNER):
        done = subprocess.run(
            command(script, 0.4 if script is BAR else 1.2), capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("", "")
