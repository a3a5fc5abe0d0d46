"""Freed buffers are used again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ROUNDS = 200
BUFFERS_OF_200_KB = 8
PROGRAM = f"""
import resource
from kafka08.broker.process.memory import keep_freed_memory
assert keep_freed_memory()
def use():
    for _ in range({ROUNDS}):
        held = [bytearray(200_000) for _ in range({BUFFERS_OF_200_KB})]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tells glibc what to keep")
def test_buffers_made_again_and_again_take_no_new_pages() -> None:
    """Each round makes eight buffers of 200 KB and frees them together. Without the setting a round
    has their 400 page faults; with it, fewer than one."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert int(done.stdout) < ROUNDS
