"""Programs as they behave on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios


def written(command: list[str], stream: str, columns: int = 80, **environment: str) -> str:
    """What a command writes to ``stream`` (stdout or stderr) when that is a terminal; it must succeed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | {stream: theirs}
    with subprocess.Popen(command, **streams, env={**clean, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        out = b""
        try:
            while chunk := os.read(ours, 65536):
                out += chunk
        except OSError:  # the other side has been closed
            pass
    os.close(ours)
    assert process.returncode == 0
    return out.decode().replace("\r\n", "\n")
