"""A wheel installed into an environment of its own, in a folder of its own, and used there.

    python3 .ci/try-wheel.py WHEEL

A measurement, a study, a page of all machines, and the page of `ciphermill serve`: all that needs the data that
comes along. Nothing of the checkout is in reach: the environment, the home and the cache are new.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

#: The study that is printed: eight measurements.
STUDY = "estream-on-core2"


def main(wheel: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ciphermill-wheel-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        command = str(folder / "venv/bin/ciphermill")
        environment = {"PATH": os.environ["PATH"], "HOME": name}

        def say(*arguments: str) -> str:
            done = subprocess.run(
                [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (arguments, done.stdout, done.stderr)
            return done.stdout

        (measured,) = json.loads(say("run", "rijndael", "--on", "rv32", "--json"))["measurements"]
        assert measured["verified"] and measured["provenance"]["vectors"], measured
        print(f"run: rijndael on rv32 takes {measured['cycles_per_block']} cycles a block, verified")
        # One with kept schedules.
        (kept,) = json.loads(say("run", "rc6", "--on", "c6201", "--bytes", "512", "--json"))["measurements"]
        assert kept["verified"] and any(loop["recorded"] for loop in kept["loops"]), kept
        assert STUDY in say("list", "studies") and "zbb" in say("list", "extensions")
        print(f"study: {len(say('study', STUDY).splitlines())} lines")
        serves(command, folder, environment)


def serves(command: str, folder: Path, environment: dict[str, str]) -> None:
    """The page is served, and runs what it begins with; where runs can be confined, confined."""
    confined = sys.platform == "linux"
    given = [command, "serve", "--port", "0", *([] if confined else ["--unconfined"])]
    with subprocess.Popen(given, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            address = served.stdout.readline().split()[3]
            with urllib.request.urlopen(address) as answer:
                text = answer.read().decode()
            known = json.loads(text.split('id="given">')[1].split("</script>")[0])
            body = json.dumps({"source": known["examples"]["XTEA"], "machines": ["rv32"]}).encode()
            headers = {"Content-Type": "application/json", "X-Ciphermill-Token": known["token"]}
            with urllib.request.urlopen(urllib.request.Request(f"{address}run", body, headers)) as answer:
                first, last = map(json.loads, answer.read().splitlines())
            assert first["verified"] and last == {"done": True}, (first, last)
            print(f"serve: {first['sentence']}")
        finally:
            served.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
