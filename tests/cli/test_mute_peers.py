"""Ctrl-C ends a command whose broker or ZooKeeper accepts connections and never responds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, DEADLINE_S, Done

TO = ("--target-bootstrap", "127.0.0.1:1", "--group", "g", "--whitelist", "t")


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A peer that the system lets accept connections, and that reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        yield server


def interrupted(mute: socket.socket, arguments: list[str], directory: Path) -> Done:
    """Runs a command with MUTE as an address, and sends SIGINT once it has connected to it."""
    address = f"127.0.0.1:{mute.getsockname()[1]}"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA08_")}
    command = [*COMMAND, *(address if word == "MUTE" else word for word in arguments)]
    lines = directory / "lines"
    lines.write_bytes(b"one\n")
    with (
        lines.open() as source,
        subprocess.Popen(
            command,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
        ) as process,
    ):
        connection, _ = mute.accept()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
        connection.close()
    assert b"Traceback" not in err, err
    return Done(process.returncode, out, err.decode())


@pytest.mark.parametrize(
    "arguments",
    [
        ["consume", "t", "--zookeeper", "MUTE"],
        ["consume", "t", "--zookeeper", "MUTE", "--partition", "0"],
        ["consume", "t", "--bootstrap", "MUTE", "--partition", "0"],
        ["consume", "t", "--bootstrap", "MUTE", "--partition", "0", "--until", "end"],
        ["mirror", *TO, "--source-zookeeper", "MUTE"],
    ],
    ids=["group", "partition-by-zookeeper", "partition", "range", "mirror"],
)
def test_a_reader_ends_at_once(mute: socket.socket, arguments: list[str], tmp_path: Path) -> None:
    """As it does later: with exit code 0, and what it has read. (It waited for the timeout, and
    then ended with its error.)"""
    done = interrupted(mute, arguments, tmp_path)
    assert 0 == done.code, done.err
    assert done.err.startswith(("Consumed 0 messages", "Copied 0 messages"))


@pytest.mark.parametrize("options", [[], ["--override", "producer.type=async"]])
def test_the_old_producer_waits_some_seconds(
    mute: socket.socket, options: list[str], tmp_path: Path
) -> None:
    """For the lines in flight, then it says that there may be some. (It ignored the signal.)"""
    arguments = ["produce", "t", "--old-producer", "--bootstrap", "MUTE", *options]
    done = interrupted(mute, arguments, tmp_path)
    assert 1 == done.code
    assert "stopped by a signal" in done.err
    assert "Sent 0 messages to t" in done.err
