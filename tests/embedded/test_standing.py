"""Who runs a cluster in a directory."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from kafka08.embedded.standing import ClusterDirectory


def test_a_look_at_a_directory_does_not_keep_its_owner_out(tmp_path: Path) -> None:
    """Who asks what runs there holds the lock for a moment: claim waits for that."""
    with (tmp_path / "lock").open("a") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        timer = threading.Timer(0.1, fcntl.flock, (lock_file, fcntl.LOCK_UN))
        timer.start()
        directory = ClusterDirectory(tmp_path)
        assert directory.claim()
        timer.join()
    directory.release()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    """Until it releases it."""
    owner, other = ClusterDirectory(tmp_path), ClusterDirectory(tmp_path)
    assert owner.claim()
    assert not other.claim()
    owner.release()
    assert other.claim()
    other.release()
