"""`kafka08 zookeeper start --embedded`: our own server in the foreground."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from kafka08.zk.client import ZkClient

COMMAND = (sys.executable, "-m", "kafka08.cli", "zookeeper", "start", "--port", "0")


def start(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, text=True)


def test_an_embedded_server_keeps_its_data_in_a_directory(tmp_path: Path) -> None:
    """It warns that it is for tests, serves until SIGTERM, and has its data at the next start."""
    for turn in range(2):
        running = start("--embedded", "--data-dir", str(tmp_path / "zk"))
        assert running.stderr is not None
        assert running.stderr.readline().startswith("WARNING: this ZooKeeper server is for tests.")
        address = running.stderr.readline().split()[-1]
        with ZkClient(address) as client:
            assert client.exists("/kept") is (turn == 1)
            client.put("/kept", "x")
        running.send_signal(signal.SIGTERM)
        running.communicate()
        assert running.returncode == 0


def test_an_address_that_others_reach_must_be_allowed() -> None:
    """The error says how; without --embedded the permission has no meaning."""
    refused = start("--embedded", "--host", "0.0.0.0")
    said = refused.communicate()[1]
    assert refused.returncode == 2
    assert "0.0.0.0 is not a loopback address" in said
    assert "--any-address" in said
    other = start("--any-address")
    assert "it belongs to --embedded" in other.communicate()[1]
    assert other.returncode == 2
