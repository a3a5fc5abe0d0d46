"""One broker as a process: start, kill -9, clean stop, and the starts that must fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.ports import free_ports
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionStateInfo,
)
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.waiting import until

DEADLINE = 30.0
GZIP = 1
PARTITIONS = 4


class Process:
    """A broker process with its own log directory under `directory`."""

    def __init__(self, directory: Path, connect: str, broker_id: int = 1, **keys: Any) -> None:
        self.store_connect = connect
        self.log = directory / f"broker-{broker_id}.log"
        config = directory / f"server-{broker_id}.properties"
        lines = {
            "broker.id": broker_id,
            "port": 0,
            "host.name": "127.0.0.1",
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": 2000,
            "log.dirs": directory / f"logs-{broker_id}",
            **{name.replace("_", "."): value for name, value in keys.items()},
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "kafka08.broker.process.main", str(config)], stderr=output
            )

    def await_started(self) -> None:
        until(lambda: self.popen.poll() is not None or self._says_started())
        assert self.popen.poll() is None, self.log.read_text()

    def _says_started(self) -> bool:
        return "], started" in self.log.read_text()[self._log_start :]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the process and return its exit code."""
        self.popen.send_signal(number)
        return self.popen.wait(DEADLINE)


@pytest.fixture
def connect(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> str:
    """A chroot for each test, which the broker must create."""
    return f"{zookeeper.connect_string}/{tmp_path.name}/kafka"


@pytest.fixture
def start(tmp_path: Path, connect: str) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start_one(*args: Any, **keys: Any) -> Process:
        process = Process(tmp_path, connect, *args, **keys)
        started.append(process)
        return process

    yield start_one
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait(DEADLINE)
        sys.stdout.write(process.log.read_text())  # pytest shows it beside a failure


def connection_to(connect: str, broker_id: int = 1) -> Connection:
    with ZkClient(connect) as zk:
        broker = until(lambda: ClusterStore(zk).broker(broker_id))
    return Connection(broker.host, broker.port)


def produce(connection: Connection, topic: str, *values: bytes, acks: int = -1) -> tuple[int, int]:
    """(error code, base offset)."""
    data = message_set.encode([(None, value) for value in values])
    request = ProduceRequest(acks, 5000, [ProduceTopic(topic, [ProducePartition(0, data)])])
    part = connection.send(request).topics[0].partitions[0]  # type: ignore[attr-defined]
    return part.error_code, part.base_offset


def fetch(connection: Connection, topic: str, offset: int = 0) -> list[bytes]:
    part = FetchPartition(0, offset, 1 << 20)
    request = FetchRequest(-1, 0, 1, [FetchTopic(topic, [part])])
    response = connection.send(request).topics[0].partitions[0]  # type: ignore[attr-defined]
    assert response.error_code == 0
    return [bytes(message.value or b"") for message in message_set.decode(response.message_set)]


def create(connection: Connection, topic: str) -> None:
    """Request metadata of the topic until it has a leader."""

    def has_leader() -> bool:
        response = connection.send(MetadataRequest([topic]))
        (found,) = response.topics  # type: ignore[attr-defined]
        return bool(found.error_code == 0 and found.partitions[0].leader == 1)

    until(has_leader)


def test_an_auto_created_topic_survives_kill_and_stop(
    connect: str, start: Callable[..., Process], tmp_path: Path
) -> None:
    """Acknowledged messages survive kill -9, with recovery at the next start, and SIGTERM, without.
    A clean stop removes the broker's znode and leaves the JVM's marker."""
    port = free_ports(1)[0]
    broker = start(port=port)
    broker.await_started()
    with connection_to(connect) as connection:
        create(connection, "t")
        assert (0, 0) == produce(connection, "t", b"a", b"b")
        assert (0, 2) == produce(connection, "t", b"c")
    assert -signal.SIGKILL == broker.stop(signal.SIGKILL)
    assert not (tmp_path / "logs-1" / ".kafka_cleanshutdown").exists()

    broker = start(port=port)
    broker.await_started()
    with connection_to(connect) as connection:
        create(connection, "t")
        assert [b"a", b"b", b"c"] == fetch(connection, "t")
        assert (0, 3) == produce(connection, "t", b"d")
    assert 0 == broker.stop()
    assert (tmp_path / "logs-1" / ".kafka_cleanshutdown").exists()
    with ZkClient(connect) as zk:
        assert [] == ClusterStore(zk).broker_ids()
        cluster_id = nodes.decode_cluster_id(zk.get(paths.CLUSTER_ID).data)
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", cluster_id)

    start(port=port).await_started()
    with connection_to(connect) as connection:
        create(connection, "t")
        assert [b"d"] == fetch(connection, "t", 3)


def test_a_killed_broker_is_back_before_its_session_times_out(
    connect: str, start: Callable[..., Process]
) -> None:
    """At its next start it closes its former session."""
    timeout_ms, port = 60_000, free_ports(1)[0]
    broker = start(port=port, zookeeper_session_timeout_ms=timeout_ms)
    broker.await_started()
    assert -signal.SIGKILL == broker.stop(signal.SIGKILL)
    began = time.monotonic()
    start(port=port, zookeeper_session_timeout_ms=timeout_ms).await_started()
    assert time.monotonic() - began < timeout_ms / 2000
    with ZkClient(connect) as zk:
        assert [1] == ClusterStore(zk).broker_ids()


def test_a_start_on_a_copied_directory_takes_nothing_from_the_live_broker(
    connect: str, start: Callable[..., Process], tmp_path: Path
) -> None:
    """It has the session file and a lock of its own. It refuses to start, as 0.8.2.2 does, and the
    live broker keeps its id and its messages."""
    live = start(port=free_ports(1)[0])
    live.await_started()
    shutil.copytree(tmp_path / "logs-1", tmp_path / "copy")
    with ZkClient(connect) as zk:
        before = zk.get(paths.broker(1))
        copy = start(port=free_ports(1)[0], log_dirs=tmp_path / "copy")
        assert 1 == copy.popen.wait(DEADLINE)
        assert "If this directory is a copy" in copy.log.read_text()
        assert before == zk.get(paths.broker(1))
        assert zk.stat(paths.broker(1)) is not None
    assert live.popen.poll() is None


def test_a_second_start_on_the_directory_of_a_live_broker_takes_nothing_from_it(
    connect: str, start: Callable[..., Process]
) -> None:
    """The second process cannot lock the directory, so it fails and does not close the session of
    the first, which stays registered."""
    port = free_ports(1)[0]
    start(port=port).await_started()
    with ZkClient(connect) as zk:
        before = zk.get(paths.broker(1))
        second = start(port=port)
        assert 1 == second.popen.wait(DEADLINE)
        assert "A Kafka instance in another process" in second.log.read_text()
        assert before == zk.get(paths.broker(1))


def test_sigterm_under_load_of_large_compressed_sets_is_a_clean_stop(
    connect: str, start: Callable[..., Process], tmp_path: Path
) -> None:
    """Sets that are recompressed while the logs close are not appended, and do not halt the
    broker."""
    broker = start(num_partitions=PARTITIONS)
    broker.await_started()
    with connection_to(connect) as connection:
        create(connection, "t")
    values = [(None, number.to_bytes(4, "big") * 30) for number in range(20_000)]
    data = message_set.encode(values, GZIP)
    loads = [connection_to(connect) for _ in range(2 * PARTITIONS)]
    for number, load in enumerate(loads):
        sets = [ProducePartition(number % PARTITIONS, data)]
        for _ in range(4):
            load.write(ProduceRequest(0, 5000, [ProduceTopic("t", sets)]), has_response=False)
    with connection_to(connect) as connection:
        until(lambda: fetch(connection, "t"))
    assert 0 == broker.stop()
    assert (tmp_path / "logs-1" / ".kafka_cleanshutdown").exists()
    for load in loads:
        load.close()


def test_a_taken_broker_id_is_an_error(
    connect: str, start: Callable[..., Process], tmp_path: Path
) -> None:
    """The second broker exits with 1 and an error; the first is not affected."""
    start().await_started()
    second = start(1, log_dirs=tmp_path / "other")
    assert 1 == second.popen.wait(DEADLINE)
    assert "already registered" in second.log.read_text()
    with connection_to(connect) as connection:
        create(connection, "t")


def test_a_broker_whose_id_was_taken_while_it_was_suspended_halts(
    connect: str, start: Callable[..., Process], tmp_path: Path
) -> None:
    """It would lead what the other one leads, and fetch as the same replica. The other one is not
    affected."""
    first = start()
    first.await_started()
    with ZkClient(connect) as zk:
        store = ClusterStore(zk)
        os.kill(first.popen.pid, signal.SIGSTOP)
        until(lambda: store.broker_ids() == [])
        (tmp_path / "other").mkdir()
        second = Process(tmp_path / "other", connect)
        try:
            second.await_started()
            os.kill(first.popen.pid, signal.SIGCONT)
            assert 1 == first.popen.wait(DEADLINE)
            assert "another broker took the id 1" in first.log.read_text()
            with connection_to(connect) as connection:
                create(connection, "t")
                assert (0, 0) == produce(connection, "t", b"a")
        finally:
            assert 0 == second.stop()


@pytest.mark.parametrize(
    ("keys", "status", "said"),
    [
        ({"broker_id": "x"}, 1, "broker.id: 'x'"),
        ({"log_retention_hours": 0}, 1, "log.retention.hours: '0' is outside the range 1 to"),
        ({"zookeeper_connect": "127.0.0.1:1"}, 1, "cannot connect to ZooKeeper at 127.0.0.1:1"),
        ({"host_name": "192.0.2.1"}, 1, "use an address of this machine, such as 127.0.0.1"),
        ({"log_dirs": "/dev/null"}, 1, "the directory /dev/null: a file is in its place. Move"),
        (
            {"metrics_host": "192.0.2.1", "metrics_port": 0},
            1,
            "metrics.port: cannot listen on 192.0.2.1:0",
        ),
    ],
)
def test_a_start_that_cannot_work_says_why(
    start: Callable[..., Process], keys: dict[str, Any], status: int, said: str
) -> None:
    """One error line, exit code 1, and no registration or lock remains."""
    broker = start(zookeeper_connection_timeout_ms=1500, **keys)
    assert status == broker.popen.wait(DEADLINE)
    assert said in broker.log.read_text()
    assert "Traceback" not in broker.log.read_text()


def test_connections_of_one_address_count_on_all_listeners(
    connect: str, start: Callable[..., Process]
) -> None:
    """A second connection from an address whose limit is one is closed, on any listener."""
    ports = free_ports(2)
    broker = start(
        api_level="0.10.2",
        listeners="A://127.0.0.1:{},B://127.0.0.1:{}".format(*ports),
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        inter_broker_listener_name="A",
        max_connections_per_ip_overrides="127.0.0.2:1",
    )
    broker.await_started()

    def connected(port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), DEADLINE, ("127.0.0.2", 0))

    with connected(ports[0]) as first:
        first.sendall(encode_request(MetadataRequest([]), 1, "c"))
        assert first.recv(1)
        for port in ports:
            with connected(port) as second:
                assert b"" == second.recv(1)


def test_sigterm_while_it_waits_for_zookeeper_stops_it_at_once(
    start: Callable[..., Process],
) -> None:
    """This is a clean stop: exit code 0 and no fatal error, without waiting for the connection."""
    broker = start(zookeeper_connect="127.0.0.1:1", zookeeper_connection_timeout_ms=10 * 60_000)
    until(lambda: "Connecting to zookeeper" in broker.log.read_text())
    assert 0 == broker.stop()
    assert "stopped while it was starting" in broker.log.read_text()
    assert "Fatal" not in broker.log.read_text()


def test_a_wrong_command_line_is_misuse(tmp_path: Path) -> None:
    """Exit code 2 for an unreadable file or a malformed override."""
    (tmp_path / "server.properties").write_text("broker.id=1\n")
    for arguments in ([str(tmp_path / "absent")], [str(tmp_path / "server.properties"), "x"]):
        run = subprocess.run(
            [sys.executable, "-m", "kafka08.broker.process.main", *arguments],
            capture_output=True,
            check=False,
            timeout=DEADLINE,
        )
        assert 2 == run.returncode


def test_an_expired_session_is_registered_again(
    connect: str, start: Callable[..., Process]
) -> None:
    """A broker that was suspended past its session timeout registers again and serves requests."""
    broker = start()
    broker.await_started()
    with ZkClient(connect) as zk:
        store = ClusterStore(zk)
        until(lambda: store.broker_ids() == [1])
        os.kill(broker.popen.pid, signal.SIGSTOP)
        until(lambda: store.broker_ids() == [])
        os.kill(broker.popen.pid, signal.SIGCONT)
        until(lambda: store.broker_ids() == [1])
    with connection_to(connect) as connection:
        create(connection, "t")
        assert (0, 0) == produce(connection, "t", b"a")
    assert 0 == broker.stop()


def test_a_controller_that_has_a_successor_is_refused(
    connect: str, start: Callable[..., Process]
) -> None:
    """A broker asks ZooKeeper for the controller epoch when it starts, and with each new session:
    no controller has sent it a request yet, or its last one was replaced meanwhile. Otherwise
    it would carry out what a controller that was suspended had decided before."""

    def error_of_request(controller_epoch: int) -> int:
        state = PartitionStateInfo("t", 0, controller_epoch, 1, 0, [1], 0, [1])
        leaders = [BrokerEndpoint(1, "127.0.0.1", 9092)]
        request = LeaderAndIsrRequest(9, controller_epoch, [state], leaders)
        with connection_to(connect) as connection:
            response = connection.send(request)
            assert isinstance(response, LeaderAndIsrResponse)
            return response.error_code

    with ZkClient(connect, make_chroot=True) as zk:
        zk.create(paths.CONTROLLER_EPOCH, nodes.encode_controller_epoch(7))
        zk.create_ephemeral(paths.CONTROLLER, nodes.encode_controller(nodes.ControllerNode(9)))
        store = ClusterStore(zk)
        broker = start()
        broker.await_started()
        assert [11, 0] == [error_of_request(6), error_of_request(7)]
        os.kill(broker.popen.pid, signal.SIGSTOP)
        until(lambda: store.broker_ids() == [])
        zk.set(paths.CONTROLLER_EPOCH, nodes.encode_controller_epoch(8))
        os.kill(broker.popen.pid, signal.SIGCONT)
        until(lambda: store.broker_ids() == [1])
        assert [11, 0] == [error_of_request(7), error_of_request(8)]
    assert 0 == broker.stop()


def test_a_changed_topic_configuration_takes_effect(
    connect: str, start: Callable[..., Process]
) -> None:
    """kafka-topics --alter writes the configuration and a notification; brokers apply it without
    restart."""
    start().await_started()
    with connection_to(connect) as connection, ZkClient(connect) as zk:
        create(connection, "t")
        assert (0, 0) == produce(connection, "t", b"x" * 500)
        zk.put(paths.topic_config("t"), '{"version":1,"config":{"max.message.bytes":"100"}}')
        zk.create(paths.config_change(), '"t"', sequence=True)
        until(lambda: produce(connection, "t", b"x" * 500)[0] == 10)
