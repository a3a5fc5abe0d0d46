from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.errors import StorageError
from kafka08.log.lock import lock_directory

TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("taken")
    else:
        print("free")
"""


def state_for_others(directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TRY_LOCK, str(directory / ".lock")],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_another_process_is_kept_out_until_release(tmp_path: Path) -> None:
    """The lock is a POSIX record lock, which Java's FileChannel.tryLock takes too. The file stays
    after the release."""
    lock = lock_directory(tmp_path)
    assert "taken" == state_for_others(tmp_path)
    lock.release()
    assert "free" == state_for_others(tmp_path)
    lock.release()


def test_the_same_process_is_kept_out_without_losing_the_lock(tmp_path: Path) -> None:
    """A second lock in the same process is refused. POSIX would grant it, and closing the second
    descriptor would drop the first lock."""
    lock = lock_directory(tmp_path)
    with pytest.raises(StorageError, match=r"Failed to acquire lock on file \.lock in"):
        lock_directory(tmp_path)
    assert "taken" == state_for_others(tmp_path)
    lock.release()
    lock_directory(tmp_path).release()
