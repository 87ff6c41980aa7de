"""The cache is not trusted: what is damaged is made anew, and a folder that cannot be used is done without."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from samples import XOR_CIPHER

from ciphermill import InputError, cached, compile, engine, kept, manifest, paths, processes


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CIPHERMILL_CACHE", str(folder))
    for once in (cached.note, cached.compilers, cached._unwritable):
        once.cache_clear()
    yield folder
    for once in (cached.note, cached.compilers, cached._unwritable):
        once.cache_clear()


def flip(path: Path, at: int = -20) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def files(cache: Path, kind: str) -> list[Path]:
    found = sorted((cache / kind).glob("*.kept"))
    assert found
    return found


def test_a_flipped_bit_in_a_module_is_found(cache, xor_cipher, capsys):
    unit = compile.Unit((xor_cipher,), (paths.CIPHERS,))
    first = compile.module(unit)
    for file in files(cache, "wasm"):
        for at in (-1, -20, 40, 100):
            flip(file, at)
            assert compile.module(unit) == first
            assert compile.module(unit) == first
    said = capsys.readouterr().err.splitlines()
    # Each file is told of once.
    assert len(said) == 2 and all("is damaged, and what it held is made anew" in line for line in said)


def test_one_file_is_not_taken_for_another(cache):
    a, b = cached.place("x", "a"), cached.place("x", "b")
    cached.write(a, b"what a is")
    b.write_bytes(a.read_bytes())
    assert (cached.read(a), cached.read(b)) == (b"what a is", None)


@pytest.mark.parametrize("kind", ["measurements", "explanations", "vectors"])
def test_a_flipped_digit_in_what_was_measured_is_found(cache, kind):
    module = engine.module(manifest.find("rc6"))
    options = engine.Options(bytes=64)

    def answers():
        module.verdicts.clear()
        return kept.measurement(module, "rv32", options).to_dict(), kept.explanation(module, "rv32", options)

    first = answers()
    for file in files(cache, kind):
        content = file.read_bytes()
        at = next(i for i in range(len(content) - 1, 0, -1) if content[i : i + 1].isdigit())
        flip(file, at)
    assert answers() == first


def test_a_result_in_a_store_that_was_changed_is_measured_anew(tmp_path, capsys):
    from ciphermill.sweeps import run

    grid = {"grid": {"cipher": ["rc6"], "on": "rv32", "bytes": 64}}
    store = tmp_path / "s.sqlite"
    first = run(grid, store=store)
    assert run(grid, store=store).measured == 0
    for change in ("measurement = replace(measurement, '1', '2')", "failure = 'not so'", "hash = NULL"):
        with sqlite3.connect(store) as db:
            db.execute(f"UPDATE measurements SET {change}")
        again = run(grid, store=store)
        assert again.measured == 1 and [m.to_dict() for m in again.measurements] == [
            m.to_dict() for m in first.measurements
        ]
        assert run(grid, store=store).measured == 0
    assert "damaged" in capsys.readouterr().err


def test_synthesis_that_was_changed_is_not_used(tmp_path, monkeypatch, capsys):
    from ciphermill import synthesis

    text = synthesis.FILE.read_text()
    copy = tmp_path / "synthesis.json"
    copy.write_text(text)
    assert synthesis.kept(copy)["results"]
    changed = tmp_path / "changed.json"
    changed.write_text(text.replace('"depth": 3', '"depth": 2', 1))
    assert synthesis.kept(changed) == {"yosys": None, "results": {}}
    assert "was changed since Yosys answered" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["file/below", "/proc/none/such", "/dev/null/cache"])
def test_a_cache_that_cannot_be_written_is_done_without(cli, write, tmp_path, place):
    (tmp_path / "file").write_text("no folder")
    write("x.c", XOR_CIPHER)
    folder = place if place.startswith("/") else str(tmp_path / place)
    done = cli("run", "x.c", "--on", "rv32", "--json", CIPHERMILL_CACHE=folder)
    assert done.code == 0 and done.err.count("ciphermill: ") == 1, done
    assert (
        f"the cache folder {folder} cannot be written (" in done.err
        and "CIPHERMILL_CACHE=FOLDER names another" in done.err
    )


def test_a_compiler_that_does_not_end_is_stopped_with_all_that_it_started(monkeypatch, tmp_path, write):
    pids = tmp_path / "pids"
    slow = tmp_path / "cc"
    slow.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >> {pids}\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setattr(compile, "SECONDS", 1)
    monkeypatch.setattr(compile, "compiler", lambda cc: ([str(slow)], "slow"))
    with pytest.raises(InputError, match=r"x\.c: the C compiler had not ended after 1 seconds and was stopped"):
        compile.module(compile.Unit((write("x.c", XOR_CIPHER),), (paths.CIPHERS,)))
    assert gone(int(pids.read_text()))


def gone(pid: int) -> bool:
    """No such process runs any more; one that nobody has waited for yet is none."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_ends_what_was_started(tmp_path):
    started = tmp_path / "pid"
    text = (
        "from ciphermill import processes, scratch\nscratch.leave_clean()\n"
        f"processes.run(['sh', '-c', 'echo $$ > {started}; exec sleep 1000'], 1000)\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", text], env=os.environ)
    while not (started.exists() and started.read_text().strip()):
        time.sleep(0.05)
    ours.send_signal(signal.SIGINT)
    assert ours.wait(20) == -signal.SIGINT
    assert gone(int(started.read_text()))


def test_what_a_program_says_is_all_there():
    done = processes.run(
        [sys.executable, "-c", "import sys; print('a' * 10**6); print('b', file=sys.stderr); sys.exit(3)"], 60
    )
    assert (len(done.stdout), done.stderr.strip(), done.returncode) == (10**6 + 1, b"b", 3)
