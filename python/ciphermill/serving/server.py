"""The page, and who may ask for what.

It is served on the loopback address alone. A page of another site cannot use it: a request must name this
server as its host, which one that was led here by its own name's address does not (DNS rebinding); a run
must come from this page, by what the browser says of its origin and by a token that stands in the page,
and no other page may read the answers, since none is allowed to (no CORS header is ever sent).
"""

from __future__ import annotations

import hmac
import json
import secrets
import select
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .. import _core, library, manifest, paths, skeleton
from .._core import InputError
from ..options import DIRECTIONS
from . import asked as asking
from .desk import Desk, Full, line
from .limits import Limits

#: The only address it is served on.
HOST = "127.0.0.1"
#: Files of the page, with their types. It looks as the report does.
PAGE = Path(__file__).parent / "page"
FILES = {
    "/style.css": (PAGE.parents[1] / "webreport" / "templates" / "style.css", "text/css; charset=utf-8"),
    "/page.css": (PAGE / "page.css", "text/css; charset=utf-8"),
    "/page.js": (PAGE / "page.js", "text/javascript; charset=utf-8"),
}
#: Machines that are chosen at the start: a plain one, and one that people own.
CHOSEN = ("rv32", "cortex-m4")
#: Connections at a time; a browser opens six.
CONNECTIONS = 32

#: For every answer. The page loads nothing from elsewhere, and stands in no other page.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """A page that runs what is pasted into it."""

    daemon_threads = True

    def __init__(self, port: int, limits: Limits, confined: bool) -> None:
        self.desk = Desk(limits, confined)
        self.token = secrets.token_urlsafe(24)
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((HOST, port), Handler)
        self.names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A browser that leaves early is no error of ours.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def page(self) -> bytes:
        return page(self.token, self.desk.confined)


class Refused(Exception):
    """A request that is not answered: the status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Handler(BaseHTTPRequestHandler):
    """One request: HTTP/1.0, a connection each, so that an answer ends where the connection does."""

    server: Server
    server_version, sys_version = "ciphermill", ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.desk.limits.patience)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        try:
            self._check_host()
            if self.path == "/":
                self._send(200, "text/html; charset=utf-8", self.server.page())
            elif self.path in FILES:
                file, kind = FILES[self.path]
                self._send(200, kind, _file(file))
            else:
                raise Refused(404, "there is only the page itself, at /")
        except Refused as refused:
            self._refuse(refused)

    def do_POST(self) -> None:
        try:
            self._check_host()
            if self.path != "/run":
                raise Refused(404, "what is run is sent to /run")
            self._check_origin()
            asked = self._asked()
            with self.server.desk.turns.turn() as ticket:
                self._stream(self.server.desk.answers(asked, ticket, self._gone))
        except Full:
            self._refuse(Refused(503, "as many runs are waiting as may; try again in a minute"))
        except Refused as refused:
            self._refuse(refused)

    def _check_host(self) -> None:
        if self.headers.get_all("Host", []) not in [[name] for name in self.server.names]:
            raise Refused(403, f"this page is at {self.server.address}, and answers to no other name")

    def _check_origin(self) -> None:
        """A run is asked for by this page alone."""
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        if (origin is not None and origin != f"http://{self.headers['Host']}") or site != "same-origin":
            raise Refused(403, "only the page itself may ask for a run")
        token = self.headers.get("X-Ciphermill-Token", "")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(403, "the page is of a server that has ended; load it anew")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "a run is asked for in JSON")

    def _asked(self) -> asking.Asked:
        length = self.headers.get("Content-Length", "")
        most = self.server.desk.limits.request_bytes
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise Refused(411, "the request does not say how long it is")
        if len(length) > 12 or int(length) > most:
            raise Refused(413, f"more than {most >> 10} KB; a cipher is smaller")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "the request is not whole")
        try:
            return asking.read(body)
        except InputError as error:
            raise Refused(400, str(error)) from None

    def _gone(self) -> bool:
        """Whether nobody is at the other end any more: there is something to be read, and it is the end."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        if not ready:
            return False
        try:
            return len(self.connection.recv(1, socket.MSG_PEEK)) == 0
        except OSError:
            return True

    def _stream(self, answers: Iterator[bytes]) -> None:
        self._head(200, "application/x-ndjson")
        # Closed, it ends its run, wherever it is.
        with closing(answers):  # type: ignore[type-var]
            try:
                for answer in answers:
                    self.wfile.write(answer)
            except OSError:
                # Nobody reads it.
                return

    def _refuse(self, refused: Refused) -> None:
        self.close_connection = True
        self._send(refused.status, "application/x-ndjson", line({"error": refused.why}))

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self._head(status, kind, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: int, kind: str, more: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()


def opened(port: int, limits: Limits, confined: bool) -> Server:
    """A server that is bound to its port and not yet serving. Raises InputError where it cannot be."""
    try:
        return Server(port, limits, confined)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "a port is a number up to 65535"
        raise InputError(f"--port {port}: {why}; name another, or 0 for one that is free") from None


@cache
def _file(path: Path) -> bytes:
    return path.read_bytes()


def page(token: str, confined: bool) -> bytes:
    """The page, with what its script needs to know in it."""
    known = {
        "token": token,
        "confined": confined,
        "version": _core.version(),
        "machines": [_machine(name) for name in library.machine_names()],
        "extensions": library.extension_names(),
        "directions": DIRECTIONS,
        "examples": examples(),
    }
    # As it may stand in a script element.
    text = json.dumps(known, sort_keys=True).replace("<", "\\u003c")
    return _file(PAGE / "index.html").replace(b"@KNOWN@", text.encode())


def _machine(name: str) -> dict[str, Any]:
    headline = library.headline(paths.MACHINES / f"{name}.toml", "machine")
    return {"name": name, "title": headline["title"], "chosen": name in CHOSEN}


@cache
def examples() -> dict[str, str]:
    """Whole files to begin with: a cipher, and the skeletons of the kinds that need no manifest."""
    kinds = [kind for kind in manifest.KINDS if kind != "kernel"]
    made = {f"skeleton: {kind}": skeleton.files("example", kind)["example.c"] for kind in kinds}
    return {"XTEA": _file(PAGE / "example.c").decode(), **made}
