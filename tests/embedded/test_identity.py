"""A process id counts only together with the start of its process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.embedded.identity import ProcessIdentity, started_at
from kafka08.errors import KafkaError
from tests.waiting import until


@pytest.fixture(params=["/proc", "ps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Linux has /proc; other systems have ps."""
    if request.param == "ps":
        monkeypatch.setattr("kafka08.embedded.identity._PROC", tmp_path)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.mark.usefixtures("way")
def test_a_running_process_is_signalled(process: subprocess.Popen[bytes]) -> None:
    """The identity matches while the process runs, and no process has it afterwards."""
    identity = ProcessIdentity(process.pid, started_at(process.pid) or "")
    assert identity.started
    assert len(identity.started.split()) == 1
    assert identity.send(signal.SIGTERM)
    # Not waited for: the id is still its own.
    until(lambda: not identity.is_alive, "it has ended")
    assert not identity.send(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert not identity.is_alive
    assert not identity.send(signal.SIGTERM)


@pytest.mark.usefixtures("way")
def test_a_process_with_a_reused_id_is_not_signalled(process: subprocess.Popen[bytes]) -> None:
    """Another process has the id now, with another start time."""
    assert not ProcessIdentity(process.pid, "earlier").send(signal.SIGKILL)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)


def test_processes_started_in_one_second_differ(process: subprocess.Popen[bytes]) -> None:
    """This process and its child have different start times within a second."""
    assert started_at(os.getpid()) != started_at(process.pid)
    assert ProcessIdentity.of_this_process() == (os.getpid(), started_at(os.getpid()))


def test_a_process_of_another_user_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the process, instead of a bare "Operation not permitted"."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(KafkaError, match=f"process {os.getpid()} belongs to another user"):
        ProcessIdentity.of_this_process().send(signal.SIGTERM)
