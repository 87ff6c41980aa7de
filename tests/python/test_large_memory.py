"""Memory that nobody touches costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: A cipher with a buffer of so many megabytes, of which two bytes are used.
SOURCE = """
#include "ciphermill.h"
struct cm_ctx {{ uint8_t key; }};
static uint8_t table[{megabytes}u << 20];
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n) {{ (void)n; c->key = *key; table[key[1]] = 1; }}
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{{
    table[sizeof table - 1 - c->key] ^= in[0];
    for (int i = 0; i < 8; i++) out[i] = in[i] ^ c->key ^ table[c->key];
}}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) {{ cm_keysetup(c, key, n); }}
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) {{ cm_encrypt(c, in, out); }}
CM_BLOCK_CIPHER(8)
"""

#: Prints the most megabytes that the process ever had.
CHILD = """
import sys
import ciphermill as cm
m = cm.run(sys.argv[1], on=sys.argv[2], bytes=64)
assert m.verified
status = dict(line.split(":") for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""


def most(folder: Path, megabytes: int, machine: str) -> int:
    source = folder / f"{megabytes}.c"
    source.write_text(SOURCE.format(megabytes=megabytes))
    child = [sys.executable, "-c", CHILD, str(source), machine]
    return int(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages are not given back")
@pytest.mark.parametrize("machine", ["rv32", "epic"])
def test_pages_that_nobody_touches_take_no_memory(tmp_path, machine):
    assert most(tmp_path, 300, machine) < most(tmp_path, 1, machine) + 100
