"""ZooKeeper clients of others on our server for tests, as on Apache's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from kafka08.embedded import EmbeddedZooKeeper, ZooKeeperServer
from kafka08.embedded.zookeeper_process import ZooKeeperProcess
from kafka08.zk.faults import end_session
from tests.interop.foreign_clients import go_program, needed

GO_SAYS = """
state: StateHasSession
again: zk: node already exists
watch: EventNodeDataChanged
old version: zk: version conflict
data: 2 1
children: EventNodeChildrenChanged 0000000000
count: 1
multi: zk: node does not exist
both: false
state: StateExpired
state: StateHasSession
its znode: false
"""


@pytest.fixture(params=["embedded", "java"])
def server(request: pytest.FixtureRequest) -> Iterator[ZooKeeperProcess]:
    with EmbeddedZooKeeper() if request.param == "embedded" else ZooKeeperServer() as server:
        yield server


def test_gos_client(server: ZooKeeperProcess) -> None:
    """go-zookeeper/zk: versions, watches, protected sequential znodes, transactions, locks, and an
    expired session, after which it has another one."""
    said = []
    with needed("go-zookeeper"):
        program = go_program("go_zookeeper")
    with subprocess.Popen(
        [program, server.connect_string],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout is not None
        for line in client.stdout:
            word, _, session = line.partition(" ")
            if word == "waiting":
                end_session(server.connect_string, int(session))
            else:
                said.append(line)
    assert "".join(said) == GO_SAYS.lstrip()
    assert 0 == client.returncode
