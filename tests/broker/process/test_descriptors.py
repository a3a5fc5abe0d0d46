"""The limit of open files, and the number of descriptors of a partition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.kernel.types import EMPTY_ENTRY_BYTES
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.protocol import message_set

SCRIPT = """
import resource
from kafka08.broker.process.descriptors import raise_descriptor_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
assert raise_descriptor_limit() == hard
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard))
"""


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    """The process raises its soft limit to the hard one. (Runs in a process of its own.)"""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert "True\n" == done.stdout


def open_files_below(directory: Path) -> list[Path]:
    """Open files of this process below a directory. The garbage collector may close others at any
    time."""
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    files = [path.readlink() for path in links if path.exists()]
    return [file for file in files if file.is_relative_to(directory)]


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_a_log_takes_one_descriptor_for_each_segment(tmp_path: Path, level: Level) -> None:
    """A segment holds one descriptor, as in a JVM broker, for which a cluster's limit was chosen.
    Indexes hold none, also after appends that added entries and lookups in sealed segments."""
    config = LogConfig(level=level, segment_bytes=4000, index_interval_bytes=EMPTY_ENTRY_BYTES)
    log = Log(tmp_path / "t-0", config)
    while log.segment_count < 3:
        log.append(bytearray(message_set.encode([(None, bytes(100))], magic=config.magic)))
    for offset in range(log.log_end_offset):
        log.read(offset, 100)
    assert 3 == len(open_files_below(tmp_path))
    log.close()
