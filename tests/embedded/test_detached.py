"""A directory has one running cluster, which the owner of its lock runs."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka08.embedded.broker_state import BrokerState
from kafka08.embedded.detached import (
    ClusterDirectory,
    ClusterState,
    find_directory,
    forget_foreground,
    remember_foreground,
)
from kafka08.embedded.identity import started_at
from kafka08.errors import ConfigError, KafkaError

BROKER = BrokerState(0, "h:1", "running", 7, None, 1.0, "/log")


def test_a_reader_of_the_state_does_not_block_a_claim(tmp_path: Path) -> None:
    """A process that reads the state holds the lock for a moment: claim() waits for it."""
    with (tmp_path / "lock").open("a") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_SH)
        timer = threading.Timer(0.7, fcntl.flock, (lock_file, fcntl.LOCK_UN))
        timer.start()
        directory = ClusterDirectory(tmp_path)
        assert directory.claim()
        timer.join()
    directory.release()


def no_sleep(seconds: float) -> None:
    raise AssertionError("it waits")


def test_a_directory_has_one_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second claim() fails, without waiting, until the owner releases the directory."""
    owner, other = ClusterDirectory(tmp_path), ClusterDirectory(tmp_path)
    assert owner.claim()
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=no_sleep)
    monkeypatch.setattr("kafka08.embedded.detached.time", clock)
    assert not other.claim()
    owner.release()
    assert other.claim()
    other.release()


def test_one_of_several_concurrent_claims_wins(tmp_path: Path) -> None:
    """Each round has one winner, whatever state the last owner left."""
    for _ in range(20):
        directories = [ClusterDirectory(tmp_path) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(ClusterDirectory.claim, directories))
        assert won.count(True) == 1
        assert ClusterDirectory(tmp_path).running() is not None
        directories[won.index(True)].release()


def test_a_killed_owner_is_not_reported_as_running(tmp_path: Path) -> None:
    """The state of a killed process remains without a lock, and concurrent readers do not mistake
    each other for its owner."""
    killed = ClusterDirectory(tmp_path)
    killed.claim()
    state = (tmp_path / "cluster.json").read_text()
    killed.release()
    (tmp_path / "cluster.json").write_text(state)

    def look(_: int) -> list[ClusterState | None]:
        return [ClusterDirectory(tmp_path).running() for _ in range(250)]

    with ThreadPoolExecutor(4) as pool:
        responses = [response for some in pool.map(look, range(4)) for response in some]
    assert responses.count(None) == 1000


def test_a_new_owner_removes_the_old_state_before_it_has_the_lock(tmp_path: Path) -> None:
    """A process that finds the lock taken never reads the addresses of an earlier cluster."""
    (tmp_path / "cluster.json").write_text("old")

    class Directory(ClusterDirectory):
        def _write(self, state: ClusterState) -> None:
            assert not (tmp_path / "cluster.json").exists()
            super()._write(state)

    directory = Directory(tmp_path)
    assert directory.claim()
    found = ClusterDirectory(tmp_path).running()
    assert found is not None
    assert found.pid == os.getpid()
    directory.release()


def test_readers_see_the_owners_state(tmp_path: Path) -> None:
    """Readers get addresses, brokers and the owner's process."""
    owner = ClusterDirectory(tmp_path)
    owner.claim()
    written = owner.announce("h:2181", "h:1", (BROKER,))
    read = ClusterDirectory(tmp_path).running()
    assert read == written
    assert written.is_ready
    assert written.owner.is_alive
    owner.release()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"brokers": [], "pid": 1, "new": 2}'])
def test_a_state_of_another_version_is_an_error(tmp_path: Path, text: str) -> None:
    """The error names the file."""
    owner = ClusterDirectory(tmp_path)
    owner.claim()
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(KafkaError, match=r"cluster\.json cannot be read"):
        ClusterDirectory(tmp_path).running()
    owner.release()


def test_how_to_stop_a_cluster_of_another_version(tmp_path: Path) -> None:
    """A state of version 1, without brokers and the process's start time, still leads to its
    process."""
    owner = ClusterDirectory(tmp_path)
    owner.claim()
    old = '{"pid": 7, "directory": "/d", "zookeeper": "h:2181", "bootstrap": "h:1"}'
    (tmp_path / "cluster.json").write_text(old)
    advice = r"Stop it with that version, or with SIGTERM to the process that holds .*/lock: 7$"
    with pytest.raises(KafkaError, match=advice):
        ClusterDirectory(tmp_path).stop()
    owner.release()


def test_a_reused_process_id_is_not_signalled(tmp_path: Path) -> None:
    """If the process with the stored id has another start time, stop raises and sends no signal."""
    owner = ClusterDirectory(tmp_path)
    owner.claim()
    with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
        owner._write(ClusterState(stranger.pid, "earlier", str(tmp_path)))
        with pytest.raises(KafkaError, match=f"names process {stranger.pid}, which is another one"):
            ClusterDirectory(tmp_path).stop()
        assert stranger.poll() is None
        stranger.kill()
    owner.release()


def test_a_read_only_directory_can_be_read(tmp_path: Path) -> None:
    """Reading the state creates no file."""
    assert ClusterDirectory(tmp_path).running() is None
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_in_the_foreground_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands without a directory find it while it runs, if no detached cluster does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    default = find_directory()
    assert default.path == tmp_path / "state" / "kafka08" / "cluster"
    foreground = ClusterDirectory(tmp_path / "foreground")
    foreground.claim()
    remember_foreground(foreground.path)
    assert find_directory().path == foreground.path
    default.claim()
    assert find_directory().path == default.path
    default.release()
    foreground.release()
    assert find_directory().path == default.path


def test_a_user_without_a_home_must_give_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home directory commands fail with an error that asks for a directory; a plain `up`
    needs none."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(ConfigError, match="give --data-dir"):
        find_directory()
    remember_foreground(Path("/nowhere"))


class TestAnotherUser:
    """Whoever else can write in a directory names no process, address or file to a command."""

    def test_its_directory_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither claimed nor read nor stopped."""
        directory = ClusterDirectory(tmp_path)
        directory.claim()
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        other = ClusterDirectory(tmp_path)
        for use in (other.claim, other.running, other.stop, other.open_log):
            with pytest.raises(KafkaError, match="belongs to user"):
                use()
        directory.release()

    def test_its_directory_is_not_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The note of a killed cluster may name a directory below /tmp that another user made
        again."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        foreground = ClusterDirectory(tmp_path / "foreground")
        foreground.claim()
        remember_foreground(foreground.path)
        assert foreground.path == find_directory().path
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        assert tmp_path / "state" / "kafka08" / "cluster" == find_directory().path
        foreground.release()

    @pytest.mark.parametrize(
        ("name", "use"),
        [
            ("lock", ClusterDirectory.claim),
            ("cluster.part", ClusterDirectory.claim),
            ("up.log", ClusterDirectory.open_log),
        ],
    )
    def test_a_link_is_not_followed(
        self, tmp_path: Path, name: str, use: Callable[[ClusterDirectory], object]
    ) -> None:
        """A link in place of a file of the directory is an error, and its target stays."""
        target = tmp_path / "precious"
        target.write_text("kept")
        directory = ClusterDirectory(tmp_path / "cluster")
        directory.path.mkdir()
        (directory.path / name).symlink_to(target)
        with pytest.raises(KafkaError, match=f"cannot open .*{name}"):
            use(directory)
        directory.release()
        assert "kept" == target.read_text()

    @pytest.mark.parametrize("address", ["$(touch /tmp/x):1", "h:1;id", "`id`", "h:1 x", "h:1\nx"])
    def test_an_address_is_no_command(self, tmp_path: Path, address: str) -> None:
        """`status --env` prints what a shell evaluates."""
        directory = ClusterDirectory(tmp_path)
        directory.claim()
        directory.announce(address, "h:1", ())
        with pytest.raises(KafkaError, match="cannot be read"):
            directory.running()
        directory.release()

    def test_only_the_holder_of_the_lock_is_stopped(self, tmp_path: Path) -> None:
        """A state that names another process of ours sends it no signal."""
        bystander = subprocess.Popen(["sleep", "60"])
        directory = ClusterDirectory(tmp_path)
        directory.claim()
        try:
            text = (tmp_path / "cluster.json").read_text()
            state = json.loads(text) | {
                "pid": bystander.pid,
                "started": started_at(bystander.pid),
            }
            (tmp_path / "cluster.json").write_text(json.dumps(state))
            with pytest.raises(KafkaError, match="which is another one"):
                ClusterDirectory(tmp_path).stop(timeout=5)
            assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()
            directory.release()


def test_the_note_of_a_foreground_cluster_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own note: another cluster may have been started since."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    note = tmp_path / "kafka08" / "foreground"
    remember_foreground(tmp_path / "second")
    forget_foreground(tmp_path / "first")
    assert note.exists()
    forget_foreground(tmp_path / "second")
    assert not note.exists()
