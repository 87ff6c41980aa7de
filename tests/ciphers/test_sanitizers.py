"""Every vector and every shape of message again, under AddressSanitizer and
UndefinedBehaviorSanitizer."""

import os
import pathlib
import subprocess
import sys

import pytest
from harness import variants
from kinds import KINDS

HERE = pathlib.Path(__file__).parent


def run_time(name: str) -> str:
    """The sanitizer's run-time library, or a skip."""
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True)
    path = done.stdout.strip()
    if not os.path.isabs(path):
        pytest.skip(f"the C compiler has no {name}")
    return path


def sanitized(*arguments: str, script: str = "sanitized.py") -> subprocess.CompletedProcess:
    environment = dict(
        os.environ,
        LD_PRELOAD=run_time("libasan.so"),
        ASAN_OPTIONS="detect_leaks=0:halt_on_error=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        PYTHONMALLOC="malloc",  # so that buffers have the sanitizer's red zones around them
    )
    return subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env=environment, cwd=HERE, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("variant", [*variants(), *variants(*KINDS)], ids=str)
def test_sanitized(variant):
    done = sanitized(variant.cipher, variant.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vectors" in done.stdout


def test_the_sanitizer_sees_a_byte_too_far(tmp_path):
    """The set-up can fail: a key read one byte too far stops the process."""
    probe = tmp_path / "probe.py"
    probe.write_text(
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        "import ctypes\nfrom harness import Native, Variant\nimport sanitized\n"
        "native = Native(Variant('rc6', 'plain'), sanitized.FLAGS)\n"
        "raw = (ctypes.c_char * native.ctx_bytes)(); key = (ctypes.c_char * 31)()\n"
        "native.lib.cm_keysetup(raw, key, 32)\n"
    )
    done = sanitized(script=str(probe))
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr, done.stderr
