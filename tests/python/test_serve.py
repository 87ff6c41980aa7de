"""``ciphermill serve``: who may ask for what, what comes back, what a run can reach, and that none outlives its asker."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples import XOR_CIPHER

from ciphermill import _core
from ciphermill._core import InputError
from ciphermill.serving import asked, desk, server
from ciphermill.serving.limits import Limits

CONFINED = desk.Desk(Limits(), True).probe() is None
needs_confinement = pytest.mark.skipif(not CONFINED, reason="this system confines no process (Landlock)")


@contextmanager
def serving(confined: bool = CONFINED, **limits):
    """A server in this process, on a free port."""
    made = server.opened(0, Limits(**limits), confined)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@pytest.fixture(scope="module")
def page():
    with serving() as made:
        yield made


def connection(page) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=250)


def send(page, method: str, path: str, body: bytes | None = None, **headers: str | None):
    """Status, headers and text of an answer; a header that is None is left out."""
    there = connection(page)
    given = {"Host": f"127.0.0.1:{page.server_port}"}
    if method == "POST":
        given |= {"Content-Type": "application/json", "X-Ciphermill-Token": page.token}
        given |= {"Content-Length": str(len(body or b""))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    there.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            there.putheader(name, value)
    there.endheaders(body)
    answer = there.getresponse()
    text = answer.read().decode()
    there.close()
    return answer.status, answer.headers, text


def request(source: str = XOR_CIPHER, machines=("rv32",), **more) -> bytes:
    return json.dumps({"source": source, "machines": list(machines), **more}).encode()


def run(page, source: str = XOR_CIPHER, machines=("rv32",), **more) -> list[dict]:
    status, _, text = send(page, "POST", "/run", request(source, machines, **more))
    assert status == 200, text
    return [json.loads(line) for line in text.splitlines()]


# Who may ask.


def test_the_page(page):
    status, headers, text = send(page, "GET", "/")
    assert status == 200 and page.token in text and "rv32" in text and "CM_BLOCK_CIPHER" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not any("access-control" in name.lower() for name in headers)
    for path in server.FILES:
        assert send(page, "GET", path)[0] == 200


@pytest.mark.parametrize("path", ["/etc/passwd", "/../server.py", "/page.css/..", "/run", "/?x"])
def test_there_is_nothing_else(page, path):
    assert send(page, "GET", path)[0] == 404


def test_it_listens_on_the_loopback_address_alone(page):
    assert page.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", "0.0.0.0:{port}", "", None]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_host_is_refused(page, host, method):
    named = host and host.format(port=page.server_port)
    status, _, text = send(page, method, "/" if method == "GET" else "/run", request(), Host=named)
    assert status == 403 and page.token not in text and "answers to no other name" in text


def test_localhost_is_a_name_of_it(page):
    assert send(page, "GET", "/", Host=f"localhost:{page.server_port}")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Ciphermill_Token": None}, 403),
        ({"X_Ciphermill_Token": "guessed"}, 403),
        ({"X_Ciphermill_Token": "\xe9"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Length": None}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": None, "Transfer_Encoding": "chunked"}, 411),
        ({"Content_Length": "99999999999"}, 413),
        ({"Content_Length": "9" * 5000}, 413),
    ],
)
def test_a_run_that_the_page_did_not_ask_for(page, headers, status):
    got, _, text = send(page, "POST", "/run", request(), **headers)
    assert got == status and set(json.loads(text)) == {"error"}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods(page, method):
    assert send(page, method, "/run")[0] == 501


# What may be asked.


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "the request: "),
        (b"\xff", "the request: "),
        (b"[]", "the request: "),
        (request("  \n"), "there is no C"),
        (request("\0"), "a byte 0"),
        (request(machines=()), "the request: "),
        (request(machines=("rv23",)), "no machine rv23 (did you mean 'rv32'?)"),
        (request(machines=("/etc/passwd",)), "no machine /etc/passwd"),
        (request(machines=("../machines/rv32.toml",)), "no machine ../machines"),
        (request(extensions=["/tmp/x.toml"]), "no extension /tmp/x.toml"),
        (request(direction="sideways"), "--direction sideways"),
        (request(key_bits=-1), "the request: "),
        (request(blocks="some"), "the request: "),
        (request(cc="/bin/sh"), "the request: "),
    ],
)
def test_what_cannot_be_asked(body, said):
    with pytest.raises(InputError) as refused:
        asked.read(body)
    assert said in str(refused.value)


def test_a_request_that_is_refused_says_why(page):
    status, _, text = send(page, "POST", "/run", request(machines=("rv23",)))
    assert status == 400 and "did you mean 'rv32'" in text


# What comes back.


def test_it_says_what_run_and_explain_say(page, cli, write):
    write("cipher.c", XOR_CIPHER)
    first, second, done = run(page, machines=("rv32", "leon2"), blocks="single")
    assert (first["machine"], second["machine"], done) == ("rv32", "leon2", {"done": True})
    said = cli("run", "cipher.c", "--on", "rv32", "--blocks", "single").out
    assert said == f"{first['sentence']}\n\n{first['details']}\n"
    assert first["explanation"] == cli("explain", "cipher.c", "--on", "rv32", "--blocks", "single").out.rstrip("\n")
    assert first["row"]["verified"] == "yes" and float(first["row"]["lower bound"]) <= float(
        first["row"]["cycles a block"]
    )


def test_what_is_wrong_is_told_by_its_line(page):
    broken = XOR_CIPHER.replace("out[i] = in[i]", "out[i] = inn[i]")
    refused, done = run(page, broken)
    assert re.search(r"^cipher\.c:7:\d+: error: use of undeclared identifier 'inn'", refused["refused"], re.MULTILINE)
    assert "/tmp" not in refused["refused"] and done == {"done": True}


def test_what_goes_wrong_in_a_run_is_told_by_its_line(page):
    refused, _ = run(page, XOR_CIPHER.replace("out[i] = in[i]", "out[i] = in[i + 0x7000000]"))
    assert "cipher.c:7" in refused["refused"] and "outside of memory" in refused["refused"]


def test_a_machine_that_refuses_leaves_the_others(page):
    first, second, _ = run(page, machines=("leon2", "rv32"), extensions=["zbb"])
    assert "zbb" in first["refused"] and second["row"]["verified"] == "yes"


# What a run can reach.


@needs_confinement
@pytest.mark.parametrize("line", ['#include "{secret}"', '#embed "{secret}"', '__asm__(".include \\"{secret}\\"");'])
def test_a_file_is_not_shown(tmp_path, line):
    secret = tmp_path / "secret.h"
    secret.write_text("hidden_word;\n")
    source = f"{line.format(secret=secret)}\n{XOR_CIPHER}"
    with serving() as page:
        text = json.dumps(run(page, source))
    assert "hidden_word" not in text and "refused" in text
    if "#include" in line:
        # It would be, so there is something to be kept from.
        with serving(confined=False) as page:
            assert "hidden_word" in json.dumps(run(page, source))


@needs_confinement
def test_confined(tmp_path):
    """Files and sockets of a confined process and of its children."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "there").write_text("x")
    tries = """
import os, socket, sys
inside, outside = sys.argv[1:]
def attempt(name, what):
    try:
        what()
        print(name, "done", sep=": ")
    except OSError as error:
        print(name, error.strerror, sep=': ')
attempt("write inside", lambda: open(inside + "/new", "w").close())
attempt("read inside", lambda: open(inside + "/new").close())
attempt("read outside", lambda: open(outside + "/there").close())
attempt("write outside", lambda: open(outside + "/new", "w").close())
attempt("list outside", lambda: os.listdir(outside))
attempt("remove outside", lambda: os.remove(outside + "/there"))
attempt("link", lambda: (os.symlink(outside + "/there", inside + "/link"), open(inside + "/link").close()))
attempt("environment", lambda: open("/proc/self/environ").close())
attempt("socket", lambda: socket.socket().close())
attempt("local socket", lambda: socket.socket(socket.AF_UNIX).close())
"""
    (inside / "tries.py").write_text(tries)
    program = """
import subprocess, sys
from ciphermill import _core
from ciphermill.serving import child
_core.confine(child.readable(), [sys.argv[1], "/dev/null"])
subprocess.run([sys.executable, sys.argv[1] + "/tries.py", *sys.argv[1:]], check=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(inside), str(outside)], capture_output=True, text=True, check=False
    )
    allowed = {"write inside", "read inside"}
    files = {"read outside", "write outside", "list outside", "remove outside", "link", "environment"}
    wanted = dict.fromkeys(allowed, "done") | dict.fromkeys(files, "Permission denied")
    wanted |= dict.fromkeys(("socket", "local socket"), "Operation not permitted")
    assert dict(line.split(": ") for line in done.stdout.splitlines()) == wanted, done


def test_where_nothing_can_be_confined(monkeypatch):
    made = desk.Desk(Limits(), True)
    monkeypatch.setattr(made, "probe", lambda: "no Landlock here")
    with pytest.raises(InputError, match=r"no Landlock here; with --unconfined the page is served"):
        desk.check_confined(made)


# How long, how much, how many.


SERVED = b"ciphermill.serving.child"
COMPILER = b"ziglang/zig"


def at_work(program: bytes, below: int | None = None) -> set[str]:
    """Folders in which such processes of ours run: all of them, as a child that is lost has another parent; or those
    that a process has started, itself or through others, since other tests may serve and compile at the same time."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = process.stat().st_uid == os.getuid() and (below is None or below in parents(process))
            if ours and program in (process / "cmdline").read_bytes():
                found.add(os.readlink(process / "cwd").removesuffix(" (deleted)"))
        except OSError:
            pass
    return {folder for folder in found if Path(folder).name.startswith("ciphermill-")}


def parents(process: Path) -> list[int]:
    """The process that started this one, the one that started that, and so on."""
    found = []
    while parent := int((process / "stat").read_text().rpartition(")")[2].split()[1]):
        found.append(parent)
        process = Path(f"/proc/{parent}")
    return found


def test_a_run_has_so_much_time():
    with serving(seconds=0.05) as page:
        *_, said = run(page)
    assert "was stopped after 0.05 seconds" in said["error"]


def test_a_run_has_so_much_memory():
    with serving(memory=100 << 20) as page:
        refused, _ = run(page)
    assert "where memory runs out" in refused["refused"]


def test_an_answer_is_so_long():
    with serving(answer_bytes=100) as page:
        assert "choose fewer machines" in run(page)[-1]["error"]


def test_turns():
    turns = desk.Turns(at_once=1, waiting=1)
    with turns.turn() as first, turns.turn() as second:
        assert (turns.before(first), turns.before(second)) == (0, 1)
        with pytest.raises(desk.Full), turns.turn():
            pass
    with turns.turn() as third:
        assert turns.before(third) == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked for in /proc")
def test_the_third_is_turned_away_and_who_leaves_ends_his_run():
    with serving(at_once=1, waiting=1) as page:
        first, second = connection(page), connection(page)
        body = request(machines=("rv32", "c64x", "itanium2"))
        headers = {"Content-Type": "application/json", "X-Ciphermill-Token": page.token}
        first.request("POST", "/run", body, headers)
        (folder,) = wait(lambda: at_work(SERVED, below=os.getpid()))
        second.request("POST", "/run", body, headers)
        answer = second.getresponse()
        assert json.loads(answer.readline()) == {"waiting": 1}
        status, _, text = send(page, "POST", "/run", body)
        assert status == 503 and "as many runs are waiting as may" in text
        answer.close()
        second.close()
        first.close()
        wait(lambda: not at_work(SERVED, below=os.getpid()))
        wait(lambda: folder not in at_work(SERVED) and not os.path.exists(folder))


#: Ten to the ninth words for the preprocessor.
LONG = "#define A0 x\n" + "".join(f"#define A{i + 1} {f'A{i} ' * 10}\n" for i in range(9)) + "A9\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked for in /proc")
def test_the_compiler_ends_with_its_run():
    with serving() as page:
        first = connection(page)
        first.request(
            "POST", "/run", request(LONG), {"Content-Type": "application/json", "X-Ciphermill-Token": page.token}
        )
        (folder,) = wait(lambda: at_work(COMPILER, below=os.getpid()))
        first.close()
        wait(lambda: folder not in at_work(COMPILER) and not os.path.exists(folder))


def wait(until):
    """What `until` says, once it says something."""
    end = time.monotonic() + 60
    while not (said := until()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return said


# The command.


def test_a_port_that_cannot_be_had(refused, page):
    assert "name another, or 0" in refused("serve", "--unconfined", "--port", page.server_port)
    assert "up to 65535" in refused("serve", "--unconfined", "--port", 70000)


@needs_confinement
def test_the_command():
    command = [sys.executable, "-m", "ciphermill", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        said = served.stdout.readline()
        port = int(re.fullmatch(r"ciphermill is at http://127\.0\.0\.1:(\d+)/ until Ctrl-C\.\n", said)[1])
        there = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        there.request("GET", "/")
        assert b"ciphermill" in there.getresponse().read()
        served.terminate()
    assert served.returncode < 0


def test_confining_names_what_is_missing():
    if CONFINED:
        pytest.skip("this system confines processes")
    with pytest.raises(InputError):
        _core.confine([], [])
