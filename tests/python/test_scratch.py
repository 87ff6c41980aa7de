"""What an interrupt leaves behind: nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ciphermill import paths, scratch

#: In the core for hours, with a folder and a file that are there for the moment only.
BUSY = """
import sys
from pathlib import Path
import ciphermill as cm
from ciphermill import scratch
scratch.leave_clean()
with scratch.folder() as folder, scratch.passing(Path(sys.argv[1])) as file:
    (folder / "half.s").write_text("half")
    file.write_text("half")
    print(folder, flush=True)
    cm.run("rc6", on="leon2", bytes=2_000_000_000, exact=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_core_at_once_and_leaves_nothing(tmp_path, number):
    file = tmp_path / "half"
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as left:
        folder = Path(left.stdout.readline().strip())
        assert (folder / "half.s").is_file() and file.is_file()
        left.send_signal(number)
        _, said = left.communicate(timeout=30)
    # By the signal itself: a shell's loop ends with it.
    assert (left.returncode, said) == (-number, "")
    assert not folder.exists() and not file.exists()


def test_what_is_passing_goes_when_it_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), scratch.folder() as folder:
        (folder / "half").write_text("half")
        1 / 0  # noqa: B018
    assert not folder.exists()
    with pytest.raises(OSError):
        paths.write_atomically(tmp_path / ("n" * 300), b"text")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_the_command_is_imported_is_clean():
    text = """
import os, signal, sys
import ciphermill.start

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
sys.argv = ["ciphermill", "list"]
ciphermill.start.main()
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    # A shell calls that 130.
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1"; echo $?', sys.executable, text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "130\n" and "Traceback" not in done.stderr
