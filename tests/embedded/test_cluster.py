"""EmbeddedCluster with real broker processes: up, down, broken, and never left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedBroker, EmbeddedCluster, EmbeddedZooKeeper
from kafka08.embedded.cluster import ZooKeeperKind, choose_zookeeper
from kafka08.embedded.guard import Guard
from kafka08.embedded.ports import is_free
from kafka08.embedded.zookeeper_process import DATA, JOURNAL
from kafka08.errors import ConfigError, KafkaError
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka08.structs import Broker, TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.embedded.test_process import state_of
from tests.forking import in_child
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    # A short session, so that a killed broker's znode does not hold its id for long.
    with EmbeddedCluster(brokers=2, config={"zookeeper.session.timeout.ms": 3000}) as cluster:
        yield cluster


def registered(cluster: EmbeddedCluster) -> list[int]:
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        return ClusterStore(zk).broker_ids()


def test_start_returns_a_usable_cluster(cluster: EmbeddedCluster) -> None:
    """start() returns when all brokers are registered and the controller works."""
    assert registered(cluster) == [0, 1]
    assert cluster.bootstrap == ",".join(f"127.0.0.1:{b.port}" for b in cluster.brokers)
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        admin.create_topic("t", 4)
        admin.await_leaders("t")
        leaders = {p.leader for p in admin.describe_topics(["t"])[0].partitions}
    assert leaders == {0, 1}
    cluster.await_ready()
    cluster.check_alive()


def test_any_directory_without_a_comma_will_do(tmp_path: Path) -> None:
    """The name of data_dir may have any characters but a comma, which separates log.dirs."""
    data_dir = tmp_path / "ü\U0001f600 \\u"
    with EmbeddedCluster(1, data_dir=data_dir, zookeeper="embedded") as cluster:
        cluster.create_topic("t")
        log_dir = cluster.brokers[0].partition_directory("t", 0)
    assert data_dir in log_dir.parents
    with pytest.raises(ConfigError, match="a comma separates directories"):
        EmbeddedCluster(1, data_dir=tmp_path / "a,b")
    assert [data_dir] == list(tmp_path.iterdir())


def test_data_keeps_its_level(tmp_path: Path) -> None:
    """A later cluster in the directory has it, unless another one is given."""
    levels = []
    for level in ("0.8.2", None, "0.9.0", None):
        cluster = EmbeddedCluster(1, data_dir=tmp_path, level=level, zookeeper="embedded")
        with cluster:
            levels.append(cluster.level)
    assert levels == ["0.8.2", "0.8.2", "0.9.0", "0.9.0"]


@pytest.mark.parametrize("keys", [{"level": "0.10.2"}, {"config": {"api.level": "0.10.2"}}])
def test_the_level_of_data_is_never_lowered(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Brokers of 0.10.2 were started on logs of 0.11.0, which they cannot read."""
    properties = tmp_path / "broker-0" / "server.properties"
    properties.parent.mkdir()
    properties.write_text("api.level=0.11.0\n")
    with pytest.raises(ConfigError, match=r"level: 0\.10\.2, but the brokers have data of level 0"):
        EmbeddedCluster(1, data_dir=tmp_path, **keys)


def test_brokers_may_have_an_address_for_other_machines() -> None:
    """Brokers that listen on all interfaces and register another host are reached at 127.0.0.1 on
    this machine, and the cluster is ready with topics, too."""
    keys = {"host.name": "0.0.0.0", "advertised.host.name": "localhost"}
    with EmbeddedCluster(2, keys) as cluster:
        cluster.create_topic("t", partitions=2, replication_factor=2)
        cluster.restart(1)
        assert all(address.startswith("127.0.0.1:") for address in cluster.bootstrap.split(","))
        with ZkClient(cluster.zookeeper.connect_string) as zk:
            brokers = ClusterStore(zk).brokers()
    ports = {broker.id: broker.port for broker in cluster.brokers}
    assert {n: Broker(n, "localhost", port) for n, port in ports.items()} == brokers


@pytest.mark.parametrize(
    ("keys", "cuttable"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, False),
        ({"advertised.listeners": "PLAINTEXT://h:9092"}, False),
        ({"host.name": "0.0.0.0"}, True),
        ({"advertised.host.name": "h"}, True),
    ],
)
def test_an_address_that_brokers_cannot_share_is_refused(
    keys: dict[str, str], cuttable: bool
) -> None:
    """Listeners have the port of one broker, and a relay has an address of its own."""
    with pytest.raises(ConfigError, match=next(iter(keys))):
        EmbeddedCluster(1, keys, cuttable=cuttable)


def test_a_broker_is_stopped_and_comes_back_at_its_address(cluster: EmbeddedCluster) -> None:
    """A clean stop removes the broker's znode at once, and check_alive does not count a requested
    stop as a failure."""
    broker = cluster.brokers[1]
    address = broker.address
    assert broker.stop() == 0
    assert registered(cluster) == [0]
    cluster.check_alive()
    cluster.restart(broker)
    assert registered(cluster) == [0, 1]
    assert broker.address == address


def test_a_killed_broker_comes_back(cluster: EmbeddedCluster) -> None:
    """After kill -9 the znode remains until its session ends; the restart waits for that."""
    broker = cluster.brokers[0]
    broker.kill()
    assert not broker.running
    cluster.restart(broker)
    assert registered(cluster) == [0, 1]


def test_a_broker_that_dies_by_itself_is_noticed(cluster: EmbeddedCluster) -> None:
    """check_alive raises with the exit status and the end of the broker's log."""
    broker = cluster.brokers[1]
    pid = broker.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: not broker.running, "the broker ended")
    with pytest.raises(KafkaError, match=r"(?s)broker 1 ended with exit code -9.*INFO"):
        cluster.check_alive()
    cluster.restart(broker)
    cluster.check_alive()


def test_a_deleted_topic_disappears(cluster: EmbeddedCluster) -> None:
    """delete.topic.enable is true here, unlike 0.8's default."""
    cluster.create_topic("gone")
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        admin.delete_topic("gone")
        until(lambda: "gone" not in admin.list_topics(), "the topic is gone")


def test_a_paused_broker_sends_no_response(cluster: EmbeddedCluster) -> None:
    """A paused broker loses its session like one that hangs, and registers again when it
    resumes."""
    broker = cluster.brokers[1]
    broker.pause()
    until(lambda: registered(cluster) == [0], "its session ended")
    broker.resume()
    until(lambda: registered(cluster) == [0, 1], "it registered again")


def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    """An invalid configuration ends start() with the broker's own error, and no process remains."""
    cluster = EmbeddedCluster(
        brokers=1, config={"num.partitions": "0"}, data_dir=tmp_path, zookeeper="embedded"
    )
    with pytest.raises(KafkaError, match=r"(?s)broker 0 ended with exit code 1.*num\.partitions"):
        cluster.__enter__()
    assert not cluster.zookeeper.process.running
    assert (tmp_path / "broker-0" / "server.log").exists()


@pytest.mark.parametrize(
    ("left", "is_to_last", "kind"),
    [
        (None, True, "java"),
        (None, False, "embedded"),
        (JOURNAL, True, "embedded"),
        (DATA, False, "java"),
    ],
)
def test_the_data_decides_which_zookeeper_runs(
    tmp_path: Path, left: str | None, is_to_last: bool, kind: ZooKeeperKind
) -> None:
    """A directory goes on with the server that has filled it. In a new one Apache's has what is to
    last, ours the rest."""
    if left is not None:
        (tmp_path / "zookeeper" / left).mkdir(parents=True)
    assert choose_zookeeper(tmp_path, is_to_last=is_to_last) == kind


@pytest.mark.parametrize("kind", ["embedded", "java"])
def test_a_directory_that_was_given_is_used_again(tmp_path: Path, kind: ZooKeeperKind) -> None:
    """Topics and addresses outlive the cluster in a given directory; a temporary directory is
    removed. The data says which ZooKeeper it is of; Apache's is for data that must last."""
    first: ZooKeeperKind | None = "embedded" if kind == "embedded" else None
    with EmbeddedCluster(brokers=1, data_dir=tmp_path, zookeeper=first) as cluster:
        addresses = cluster.zookeeper.connect_string, cluster.bootstrap
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.create_topic("kept")
            admin.await_leaders("kept")
    with EmbeddedCluster(brokers=1, data_dir=tmp_path) as cluster:
        assert isinstance(cluster.zookeeper, EmbeddedZooKeeper) == (kind == "embedded")
        assert (cluster.zookeeper.connect_string, cluster.bootstrap) == addresses
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.await_leaders("kept")
    with EmbeddedCluster(brokers=0) as cluster:
        directory = cluster.data_dir
        assert directory.exists()
    assert not directory.exists()


def test_a_killed_cluster_starts_again_at_other_addresses(tmp_path: Path) -> None:
    """All its processes were killed, and other programs have its ports by now. ZooKeeper still has
    the broker's session, and gives it its whole timeout with each start: the broker would find its
    id taken at every attempt."""
    killed = EmbeddedCluster(brokers=1, data_dir=tmp_path, zookeeper="embedded")
    killed.start()
    ports = [killed.zookeeper.port, killed.brokers[0].port]
    for process in killed.processes:
        process.kill()
    killed.stop()
    taken = [socket.create_server(("127.0.0.1", port)) for port in ports]
    try:
        with EmbeddedCluster(brokers=1, data_dir=tmp_path, zookeeper="embedded") as cluster:
            assert registered(cluster) == [0]
    finally:
        for other in taken:
            other.close()


@pytest.mark.parametrize("how", ["stop", "kill", "heal"])
def test_a_cluster_that_starts_again_loses_no_message(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the broker that starts last has the message. With Kafka's defaults the first broker to
    register became the controller and elected itself, and the message was truncated."""
    cluster = EmbeddedCluster(brokers=2, data_dir=tmp_path, zookeeper="embedded")
    start = EmbeddedBroker.start

    def start_late(broker: EmbeddedBroker) -> None:
        if broker.id == 1:
            until(lambda: registered(cluster) == [0], "broker 0 is registered")
        start(broker)

    with cluster:
        cluster.create_topic("t", replication_factor=2)
        cluster.kill(0)
        until(lambda: in_sync(cluster) == [1], "broker 1 leads alone")
        config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, acks="all")
        with KafkaProducer(config) as producer:
            producer.send(ProducerRecord("t", b"acknowledged")).result(30)
        monkeypatch.setattr(EmbeddedBroker, "start", start_late)
        if how == "kill":
            for process in cluster.processes:
                process.kill()
        elif how == "heal":
            cluster.kill(1)
            cluster.heal()
            assert stored(cluster) == 1
    cluster = EmbeddedCluster(brokers=2, data_dir=tmp_path, zookeeper="embedded")
    with cluster:
        assert stored(cluster) == 1


def test_a_stop_of_all_brokers_elects_no_leader(tmp_path: Path) -> None:
    """Leaders, their epochs and ISRs are those of before. The controller moved leaders to brokers
    that stopped as well; with Kafka's defaults the last ones could go to a broker out of sync."""
    with EmbeddedCluster(brokers=2, data_dir=tmp_path, zookeeper="embedded") as cluster:
        cluster.create_topic("t", partitions=20, replication_factor=2)
        before = states(cluster)
    with EmbeddedCluster(brokers=2, data_dir=tmp_path, zookeeper="embedded") as cluster:
        assert before == states(cluster)


def states(cluster: EmbeddedCluster) -> dict[TopicPartition, tuple[int, int, set[int]]]:
    """Leader, leader epoch and ISR of each partition of the topic."""
    wanted = [TopicPartition("t", number) for number in range(20)]
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        found = ClusterStore(zk).leader_and_isr(wanted)
    return {tp: (s.leader, s.leader_epoch, set(s.isr)) for tp, s in found.items()}


def in_sync(cluster: EmbeddedCluster) -> list[int]:
    return [cluster.leader_of("t").id, *(broker.id for broker in cluster.followers_of("t"))]


def stored(cluster: EmbeddedCluster) -> int:
    """The number of messages in the partition."""
    partition = TopicPartition("t", 0)
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap) as consumer:
        return consumer.end_offsets([partition])[partition]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_remains_after_any_signal(number: signal.Signals) -> None:
    """Ctrl-C reaches the parent alone and ends in a clean stop; after kill -9 the guard cleans
    up."""
    program = """
        import sys, time
        from kafka08.embedded import EmbeddedCluster
        with EmbeddedCluster(brokers=1) as cluster:
            processes = [cluster.zookeeper.process, cluster.brokers[0].process]
            print(*(process.pid for process in processes), cluster.data_dir, flush=True)
            time.sleep(100)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        *pids, directory = parent.stdout.readline().split()
        os.killpg(parent.pid, number)
        parent.wait(30)
    until(lambda: not any(state_of(int(pid)) for pid in pids), "all processes ended")
    until(lambda: not Path(directory).exists(), "the directory is gone")


def test_a_forked_child_ends_no_cluster(cluster: EmbeddedCluster) -> None:
    """One that leaves the parent's with block deleted the directory of the running brokers."""

    def leaves() -> None:
        cluster.stop()
        cluster.__exit__(None, None, None)

    assert in_child(leaves) == "None"
    cluster.check_alive()
    assert cluster.data_dir.exists()


def test_nothing_outlives_a_killed_parent_with_a_child() -> None:
    """A worker that the program has forked holds what the guard of the cluster watches, too: the
    brokers lived as long as it did."""
    program = """
        import os, time
        from kafka08.embedded import EmbeddedCluster
        with EmbeddedCluster(brokers=1) as cluster:
            processes = [cluster.zookeeper.process, cluster.brokers[0].process]
            child = os.fork()
            if child:
                print(child, *(process.pid for process in processes), flush=True)
            time.sleep(100)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child, *pids = map(int, parent.stdout.readline().split())
        parent.kill()
        parent.wait(30)
        try:
            until(lambda: not any(map(state_of, pids)), "all processes ended")
            assert state_of(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_port_that_is_taken_meanwhile_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters that start together may choose the same port. If the port is taken between the
    choice and the broker's bind, the cluster chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        looks = iter([True])
        monkeypatch.setattr(
            "kafka08.embedded.cluster.is_free",
            lambda host, port: next(looks, False) if port == taken else is_free(host, port),
        )
        with EmbeddedCluster(brokers=2, ports=[0, taken]) as cluster:
            assert taken not in {broker.port for broker in cluster.brokers}
            cluster.create_topic("t", 2)


def test_a_temporary_directory_is_guarded_before_it_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that is killed between the two would leave it for ever."""
    existed: list[bool] = []

    class Watched(Guard):
        def __init__(self, temporary: Path | None = None) -> None:
            assert temporary is not None
            existed.append(temporary.exists())
            super().__init__(temporary)

    for kind, module in ((EmbeddedCluster, "cluster"), (EmbeddedZooKeeper, "zookeeper_process")):
        monkeypatch.setattr(f"kafka08.embedded.{module}.Guard", Watched)
        kind().stop()
    assert existed == [False, False]


WITHOUT_DESCRIPTORS = """
import os, resource, sys, tempfile
from kafka08.embedded import EmbeddedCluster
tempfile.tempdir = sys.argv[1]
used = len(os.listdir("/proc/self/fd"))
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for more in (0, 2, 5):
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + more, hard))
    try:
        with EmbeddedCluster(1):
            pass
    except Exception as error:
        print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
print(os.listdir(sys.argv[1]), len(os.listdir("/proc/self/fd")) - used)
"""


def test_without_descriptors_it_says_so(tmp_path: Path) -> None:
    """A start without enough descriptors, for the first of its processes or a later one, names
    their limit, and leaves no file and no descriptor."""
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *errors, left = done.stdout.splitlines()
    said = "the cluster cannot start: too many open files: raise this process's limit of open files"
    assert errors == 3 * [f"KafkaError {said} (ulimit -n)"]
    assert left == "[] 0"
    assert "Traceback" not in done.stderr


def test_an_impossible_argument_is_refused_at_once(tmp_path: Path) -> None:
    """An unknown level, two different ones and so on are errors before anything is created."""
    known = "is not one of 0.8.2, 0.9.0, 0.10.2, 0.11.0"
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"level": "0.10.1"}, f"level: '0.10.1' {known}"),
        ({"level": ""}, f"level: '' {known}"),
        ({"config": {"api.level": "1.0"}}, f"api.level: '1.0' {known}"),
        (
            {"level": "0.10.2", "config": {"api.level": "0.9.0"}},
            "level: '0.10.2', but api.level is '0.9.0' in config: give one of them",
        ),
        ({"brokers": -1}, "brokers: -1 is not a number of brokers"),
        ({"brokers": "3"}, "brokers: '3' is not a number of brokers"),
        ({"zookeeper": "apache"}, "zookeeper: 'apache' is not one of embedded, java"),
        ({"ports": [2181, 70_000]}, "ports: 70000 is not a number from 0 to 65535"),
    )
    for keys, says in refused:
        with pytest.raises(ConfigError, match=re.escape(says)):
            EmbeddedCluster(data_dir=tmp_path / "none", **keys)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("level", ["0.9.0", "0.10.2"])
def test_its_brokers_have_the_configured_level(level: str) -> None:
    """Brokers of each level serve a topic, register as that release does, and say the level in
    their logs; those of 0.10.2 respond to ApiVersions."""
    with EmbeddedCluster(brokers=2, level=level) as cluster:
        log = cluster.brokers[0].directory / "server.log"
        assert f"], api.level={level} among brokers of this level; new messages" in log.read_text()
        cluster.create_topic("t", 1, 2)
        with ZkClient(cluster.zookeeper.connect_string) as zk:
            registrations = ClusterStore(zk).registrations()
        expected = {"0.9.0": 2, "0.10.2": 4}[level]
        assert [expected] * 2 == [found.version for found in registrations.values()]
        if level == "0.10.2":
            with Connection("127.0.0.1", cluster.brokers[0].port) as connection:
                response = connection.send(ApiVersionsRequest())
            assert isinstance(response, ApiVersionsResponse)
            assert [*range(21)] == [api.key for api in response.apis]


def test_a_dropped_cluster_is_stopped_after_a_warning() -> None:
    """As the cell of a notebook that runs again: else it would live as long as the program."""
    cluster = EmbeddedCluster(brokers=1)
    cluster.start()
    processes, data_dir = cluster.processes, cluster.data_dir
    with pytest.warns(ResourceWarning, match="unclosed <.*EmbeddedCluster"):
        del cluster
    until(lambda: not any(process.running for process in processes) and not data_dir.exists())


def test_a_cluster_that_never_started_is_dropped_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of it runs, as after a start that failed at once."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    cluster = EmbeddedCluster(brokers=1)
    cluster.stop()
    del cluster
    gc.collect()
    assert unraisable == []


WITHOUT_MEMORY = """
import os, resource, sys, tempfile, threading
from pathlib import Path
from kafka08.embedded import EmbeddedCluster
tempfile.tempdir = sys.argv[1]
threading.stack_size(64 << 20)
"x".encode("idna")  # Python remembers for good what it could not import once
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
with EmbeddedCluster(1):  # imports all it needs
    pass
for more in (3, 20):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (more << 20), hard))
    said = "started"
    try:
        with EmbeddedCluster(1):
            pass
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    print(said)
print(os.listdir(sys.argv[1]))
"""


def test_without_memory_it_says_so(tmp_path: Path) -> None:
    """There is no room for the stack of a thread: the error names limits, and no file is left."""
    command = [sys.executable, "-c", WITHOUT_MEMORY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *errors, left = done.stdout.splitlines()
    for error in errors:
        assert error.startswith("KafkaError the cluster cannot start: ")
        assert "(ulimit -v" in error
    assert 2 == len(errors)
    assert left == "[]"
