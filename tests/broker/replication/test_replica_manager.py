"""LeaderAndIsr, StopReplica and UpdateMetadata, as kafka.server.ReplicaManager handles them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.broker.process.log_cleaner import CleanerWorkers
from kafka08.errors import (
    Closed,
    InvalidTopic,
    NotLeaderForPartition,
    ReplicaNotAvailable,
    SessionLost,
    UnknownTopicOrPartition,
)
from kafka08.levels import Level
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol import compression, message_set
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionError, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest
from kafka08.protocol.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceTopic,
)
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.runtime.yielding import PARTITIONS_PER_BATCH
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition
from tests.broker.world import CONTROLLER_EPOCH, World

TP = TopicPartition("t", 0)
OTHER = BrokerEndpoint(2, "127.0.0.1", 19092)
OTHER_LIVE = LiveBroker.plaintext(2, "127.0.0.1", 19092)
GZIP = 1
CHECKPOINT = "replication-offset-checkpoint"


def state(
    epoch: int,
    leader: int = 1,
    isr: tuple[int, ...] = (1,),
    replicas: tuple[int, ...] = (1, 2),
    partition: int = 0,
) -> PartitionStateInfo:
    return PartitionStateInfo(
        "t", partition, CONTROLLER_EPOCH, leader, epoch, list(isr), 0, list(replicas)
    )


def obey(
    world: World, *states: PartitionStateInfo, epoch: int = CONTROLLER_EPOCH
) -> tuple[int, list[PartitionError]]:
    request = LeaderAndIsrRequest(9, epoch, list(states), [OTHER])
    response = world.client.call(request)
    return response.error_code, response.partitions


def append(world: World, count: int) -> None:
    world.appender.append(
        {TP: bytearray(message_set.encode([(None, b"m")] * count))},
        required_acks=1,
        timeout_ms=0,
        done=lambda results: None,
    )


@dataclass(frozen=True)
class Listener:
    """A listener for leaderships of a topic."""

    on_leadership: Callable[[int], None]
    on_follower: Callable[[int], None]


def test_a_stale_controller_is_refused(tmp_path: Path) -> None:
    """A stale controller gets 11 and no partitions; UpdateMetadata gets -1 instead (both
    captured)."""
    world = World(tmp_path)
    obey(world, state(0))
    assert (11, []) == obey(world, state(1), epoch=CONTROLLER_EPOCH - 1)
    stale = UpdateMetadataRequest(9, CONTROLLER_EPOCH - 1, [], [])
    assert -1 == world.client.call(stale).error_code
    stop = StopReplicaRequest(9, CONTROLLER_EPOCH - 1, 1, [StopReplicaPartition("t", 0)])
    assert 11 == world.client.call(stop).error_code
    assert world.partition("t").is_leader


@pytest.mark.parametrize(
    ("topic", "number"),
    [("a/b", 0), ("..", 0), ("", 0), ("t\n", 0), ("x" * 256, 0), ("t", -1), ("../t", 0)],
)
def test_a_partition_that_no_directory_may_have(tmp_path: Path, topic: str, number: int) -> None:
    """It gets an error, the others their logs, and the next start finds no directory of it."""
    world = World(tmp_path / "logs")
    bad = replace(state(1, partition=number), topic=topic)
    code, errors = obey(world, bad, state(1))
    assert 0 == code
    expected = [PartitionError(topic, number, InvalidTopic.code), PartitionError("t", 0, 0)]
    assert expected == errors
    assert ["logs", "logs/t-0"] == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir()
    )


def test_only_a_higher_leader_epoch_is_obeyed(tmp_path: Path) -> None:
    """The same or a lower epoch gets 13, and nothing changes."""
    world = World(tmp_path)
    assert (0, [PartitionError("t", 0, 0)]) == obey(world, state(3))
    for epoch in (3, 2):
        assert (0, [PartitionError("t", 0, 13)]) == obey(world, state(epoch, leader=2))
    assert world.partition("t").is_leader
    assert (0, [PartitionError("t", 0, 0)]) == obey(world, state(4, leader=2))
    assert not world.partition("t").is_leader


@pytest.mark.parametrize("partitions", [1, 2], ids=["fast path", "handler"])
def test_a_wrapper_without_messages_is_answered_with_the_log_end(
    tmp_path: Path, partitions: int
) -> None:
    """The offset is the log end, as in Log.append of 0.8.2.2, which counts the wrapper. An empty
    set has no offset."""
    world = World(tmp_path)
    world.lead("t", partitions)
    wrapper = kernel.wrap(compression.compress(GZIP, b""), 0, GZIP)
    message = message_set.encode([(None, b"m")])
    for data, base_offset in ((message, 0), (wrapper, 1), (b"", -1)):
        sets = [ProducePartition(number, data) for number in range(partitions)]
        response = world.client.call(ProduceRequest(1, 1000, [ProduceTopic("t", sets)]))
        assert [ProducePartitionResponse(n, 0, base_offset) for n in range(partitions)] == (
            response.topics[0].partitions
        )


def test_high_watermarks_are_written_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HWs are written every few seconds in a native thread, so that the hub does not wait for the
    disk."""
    world = World(tmp_path)
    world.lead("t")
    native: list[Any] = []
    monkeypatch.setattr(world.runtime, "run_native", lambda *call: native.append(call))
    world.replica_manager.checkpoint_high_watermarks()
    ((write, watermarks),) = native
    assert {TP: 0} == watermarks
    write(watermarks)
    assert "t 0 0" in (tmp_path / CHECKPOINT).read_text()


def test_what_is_committed_on_disk_is_the_high_watermark_after_a_crash(tmp_path: Path) -> None:
    """The cleaner stays below it: followers compare what lies above with their own messages. It
    falls with the HW at once."""
    world = World(tmp_path)
    manager = world.replica_manager
    assert 0 == manager.committed_on_disk(TP)
    obey(world, state(0, isr=(1, 2)))
    append(world, 5)
    manager.record_follower_fetches([manager.partition(TP)], [4], 2)
    assert (4, 0) == (manager.committed(TP), manager.committed_on_disk(TP))
    manager.checkpoint_high_watermarks()
    manager.record_follower_fetches([manager.partition(TP)], [5], 2)
    assert (5, 4) == (manager.committed(TP), manager.committed_on_disk(TP))
    world.log_manager.shutdown()

    again = World(tmp_path)
    obey(again, state(1, isr=(1, 2)))
    assert 4 == again.replica_manager.committed_on_disk(TP)
    again.partition("t").set_high_watermark(3)
    assert 3 == again.replica_manager.committed_on_disk(TP)


def test_a_partition_of_others_is_left_out_of_the_response(tmp_path: Path) -> None:
    """A partition that does not have this broker as a replica is left out of the response, and gets
    no log."""
    world = World(tmp_path)
    assert (0, []) == obey(world, state(0, leader=2, isr=(2,), replicas=(2, 3)))
    assert world.log_manager.get(TP) is None


def test_without_its_leader_a_follower_only_gets_its_log(tmp_path: Path) -> None:
    """If the leader is not alive, the follower gets its log but does not adopt the leader epoch, so
    it obeys the same epoch once the leader is alive."""
    world = World(tmp_path)
    assert (0, [PartitionError("t", 0, 0)]) == obey(world, state(0, leader=3, replicas=(1, 3)))
    assert world.log_manager.get(TP) is not None
    assert -1 == world.partition("t").leader_epoch
    obey(world, state(0, leader=2))
    assert 0 == world.partition("t").leader_epoch


def test_requests_get_the_error_of_a_missing_partition(tmp_path: Path) -> None:
    """A request for a partition gets 3 if it is unknown, 6 if another broker leads it, and 9 if it
    has no replica here."""
    world = World(tmp_path)
    with pytest.raises(UnknownTopicOrPartition):
        world.replica_manager.leader_partition(TP)
    with pytest.raises(ReplicaNotAvailable):
        world.replica_manager.hosted_partition(TP)
    obey(world, state(0, leader=2))
    with pytest.raises(NotLeaderForPartition):
        world.replica_manager.leader_partition(TP)
    assert world.replica_manager.hosted_partition(TP) is world.partition("t")


def test_stop_replica_with_delete_takes_partition_and_directory(tmp_path: Path) -> None:
    """Without delete everything stays. With it partition and directory go, also the log of an
    unknown partition. Each gets 0."""
    world = World(tmp_path)
    obey(world, state(0), state(0, partition=1))
    items = [StopReplicaPartition("t", 0), StopReplicaPartition("t", 7)]
    keep = StopReplicaRequest(9, CONTROLLER_EPOCH, 0, items)
    assert [0, 0] == [item.error_code for item in world.client.call(keep).partitions]
    assert world.partition("t").is_leader
    drop = StopReplicaRequest(9, CONTROLLER_EPOCH, 1, items)
    assert [0, 0] == [item.error_code for item in world.client.call(drop).partitions]
    assert world.replica_manager.find(TP) is None
    assert not (tmp_path / "t-0").exists()
    assert (tmp_path / "t-1").exists()
    assert [1] == list(world.replica_manager.by_topic_name[b"t"])
    obey(world, state(0))
    assert 0 == world.partition("t").log.log_end_offset


def test_a_partition_that_was_moved_away_and_back_doubts_older_connections(tmp_path: Path) -> None:
    """A follower may have what this broker had before it deleted its replica. A topic that is made
    after that costs no refusals."""
    world, older = World(tmp_path), next(NUMBERS)
    obey(world, state(0))
    world.client.call(
        StopReplicaRequest(9, CONTROLLER_EPOCH, 1, [StopReplicaPartition("t", 0)]),
    )
    newer = next(NUMBERS)
    obey(world, state(3), state(0, partition=1))
    moved, made = world.partition("t", 0), world.partition("t", 1)
    assert [True, False] == [moved.doubts(older), moved.doubts(newer)]
    assert not made.doubts(older)


def test_a_replica_that_was_only_stopped_follows_again(tmp_path: Path) -> None:
    """Also the leader that it followed last: a controller that dies between the two StopReplica
    requests of a move does not delete it, and a later move may bring it back (found by the
    simulation; 0.8.2.2 copies nothing then)."""
    world = World(tmp_path)
    obey(world, state(0, leader=2))
    stop = StopReplicaRequest(9, CONTROLLER_EPOCH, 0, [StopReplicaPartition("t", 0)])
    assert 0 == world.client.call(stop).error_code
    assert TP not in world.followed.sources
    obey(world, state(1, leader=2))
    assert TP in world.followed.sources


def test_a_leader_at_another_address_is_followed_there(tmp_path: Path) -> None:
    """A broker that moved to another host leads again, without another leader in between: it was
    alone in the ISR. 0.8.2.2 goes on at the former address, for ever."""
    world = World(tmp_path)
    obey(world, state(0, leader=2, isr=(2,)))
    moved = BrokerEndpoint(2, "127.0.0.2", 19092)
    world.client.call(
        LeaderAndIsrRequest(9, CONTROLLER_EPOCH, [state(2, leader=2, isr=(2,))], [moved])
    )
    assert {TP: Broker(2, "127.0.0.2", 19092)} == world.followed.sources


def test_a_leader_at_another_address_in_the_same_epoch_is_followed_there(tmp_path: Path) -> None:
    """No controller saw it dead, so its leader epoch is the same, and LeaderAndIsr is refused (13).
    UpdateMetadata has the new address; that of another broker changes nothing."""
    world = World(tmp_path)
    obey(world, state(0, leader=2, isr=(2,)))
    former = world.followed.sources[TP]
    moved = LiveBroker.plaintext(2, "127.0.0.2", 19092)
    for live, leader in (
        ([OTHER_LIVE, LiveBroker.plaintext(3, "127.0.0.3", 19093)], former),
        ([LiveBroker.plaintext(3, "127.0.0.3", 19094)], former),
        ([moved], Broker(2, "127.0.0.2", 19092)),
    ):
        world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [], live))
        assert {TP: leader} == world.followed.sources


def test_a_leader_that_stays_is_followed_on(tmp_path: Path) -> None:
    """In the next epochs too, from where the log ends: it is not compared again."""
    world = World(tmp_path)
    obey(world, state(0, leader=2))
    followed = world.followed.sources[TP]
    obey(world, state(1, leader=2))
    assert followed is world.followed.sources[TP]


def test_the_high_watermark_survives_a_restart(tmp_path: Path) -> None:
    """The checkpoint has the JVM's format. It is not written before the first LeaderAndIsr, when
    this broker does not know its partitions."""
    world = World(tmp_path)
    world.replica_manager.checkpoint_high_watermarks()
    assert b"" == (tmp_path / CHECKPOINT).read_bytes()
    obey(world, state(0, isr=(1, 2)))
    append(world, 5)
    world.replica_manager.record_follower_fetches([world.replica_manager.partition(TP)], [4], 2)
    world.replica_manager.checkpoint_high_watermarks()
    assert "0\n1\nt 0 4\n" == (tmp_path / CHECKPOINT).read_text()
    world.log_manager.shutdown()

    again = World(tmp_path)
    again.replica_manager.checkpoint_high_watermarks()
    assert "0\n1\nt 0 4\n" == (tmp_path / CHECKPOINT).read_text()
    obey(again, state(1, isr=(1, 2)))
    assert 4 == again.partition("t").high_watermark
    assert 5 == again.partition("t").log.log_end_offset


@pytest.mark.parametrize("level", list(Level))
def test_a_damaged_high_watermark_checkpoint_is_none(
    tmp_path: Path, level: Level, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker starts with one, as 0.8.2.2 and 0.10.2.2 do, and leads its partitions, as they do
    not."""
    world = World(tmp_path, api_level=str(level))
    obey(world, state(0, isr=(1, 2)))
    append(world, 5)
    world.log_manager.shutdown()
    (tmp_path / CHECKPOINT).write_bytes(bytes(30))
    again = World(tmp_path, api_level=str(level))
    assert "each replica compares its whole log with its leader's" in caplog.text
    obey(again, state(1))
    assert 5 == again.partition("t").high_watermark


def test_metadata_of_another_leader_ends_a_leadership(tmp_path: Path) -> None:
    """UpdateMetadata with another leader ends a leadership, as when a controller dies before it
    sends StopReplica for a replica that it has moved. Produce requests are refused, the listener is
    called once, and the next LeaderAndIsr is obeyed although it has the epoch in the metadata."""
    world = World(tmp_path)
    told: list[int] = []
    world.replica_manager.listen("t", Listener(lambda _: None, told.append))
    obey(world, state(3))
    append(world, 1)
    moved = state(4, leader=2, isr=(2, 3), replicas=(2, 3))
    for _ in range(2):
        world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [moved], [OTHER_LIVE]))
        assert [0] == told
        with pytest.raises(NotLeaderForPartition):
            world.replica_manager.leader_partition(TP)
    assert (0, [PartitionError("t", 0, 0)]) == obey(world, state(4, leader=2))
    assert world.partition("t").leader == 2


@pytest.mark.parametrize(
    ("leader", "epoch"),
    [(2, 3), (2, 2), (1, 4), (-1, 4), (-2, 4)],
    ids=["same epoch", "earlier", "itself", "none", "deleted"],
)
def test_other_metadata_leaves_a_leadership(tmp_path: Path, leader: int, epoch: int) -> None:
    """Only a leader with a later epoch ends this broker's leadership."""
    world = World(tmp_path)
    obey(world, state(3))
    told = [state(epoch, leader=leader)]
    world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, told, [OTHER_LIVE]))
    assert world.partition("t").is_leader


def test_listeners_learn_of_leadership(tmp_path: Path) -> None:
    """Listeners are called once per change, after it, and never for a follower that did not
    lead."""
    world = World(tmp_path)
    told: list[tuple[str, int]] = []

    def leads(partition: int) -> None:
        assert world.partition("t", partition).is_leader
        told.append(("leader", partition))

    def follows(partition: int) -> None:
        told.append(("follower", partition))

    world.replica_manager.listen("t", Listener(leads, follows))
    obey(world, state(0), state(0, leader=2, partition=1))
    obey(world, state(1, leader=2))
    obey(world, state(2))
    stop = StopReplicaRequest(9, CONTROLLER_EPOCH, 1, [StopReplicaPartition("t", 0)])
    world.client.call(stop)
    assert [("leader", 0), ("follower", 0), ("leader", 0), ("follower", 0)] == told


def test_topic_configuration_reaches_a_new_log(tmp_path: Path) -> None:
    """A new log gets the topic's overrides from ZooKeeper."""
    world = World(tmp_path)
    world.lead(OFFSETS_TOPIC, config={"cleanup.policy": "compact", "segment.bytes": "5000"})
    config = world.partition(OFFSETS_TOPIC).log.config
    assert config.compact
    assert 5000 == config.segment_bytes


@pytest.fixture
def without_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker that waits for ZooKeeper three times before it answers."""
    world = World(tmp_path)
    topic_configs = world.store.topic_configs
    waited: list[float] = []

    def lost(topics: Iterable[str]) -> dict[str, dict[str, str]]:
        if len(waited) < 3:
            raise SessionLost("/config/topics/t: no reply from ZooKeeper in 12 s")
        return topic_configs(topics)

    monkeypatch.setattr(world.store, "topic_configs", lost)
    monkeypatch.setattr(world.runtime, "sleep", waited.append)
    return world


def test_a_leader_obeys_once_zookeeper_is_back(without_zookeeper: World) -> None:
    """The leader retries until ZooKeeper is back: the controller does not repeat LeaderAndIsr, and
    the partition would have no leader."""
    assert (0, [PartitionError("t", 0, 0)]) == obey(without_zookeeper, state(0))
    assert without_zookeeper.partition("t").is_leader


def test_a_broker_that_stops_waits_for_no_zookeeper(
    without_zookeeper: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stops does not wait for ZooKeeper, and makes no log when the logs may be
    closed."""
    world = without_zookeeper
    monkeypatch.setattr(world.runtime, "sleep", lambda _: world.replica_manager.shutdown())
    assert (-1, [PartitionError("t", 0, -1)]) == obey(world, state(0))
    assert world.partition("t").log is None


def test_metadata_changes_drop_remembered_responses(tmp_path: Path) -> None:
    """After an UpdateMetadata the same request gets a new response."""
    world = World(tmp_path, auto_create_topics_enable=False)
    assert 3 == world.client.call(MetadataRequest(["t"])).topics[0].error_code
    assert 3 == world.client.call(MetadataRequest(["t"])).topics[0].error_code
    world.lead("t", 2)
    (topic,) = world.client.call(MetadataRequest(["t"])).topics
    assert (0, 2) == (topic.error_code, len(topic.partitions))
    gone = [state(9, leader=-2), state(9, leader=-2, partition=1)]
    world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, gone, [OTHER_LIVE]))
    assert 3 == world.client.call(MetadataRequest(["t"])).topics[0].error_code


def test_metadata_lists_live_brokers_only(tmp_path: Path) -> None:
    """A dead replica is error 9 and left out; a dead leader is 5 and -1."""
    world = World(tmp_path)
    states = [state(0, leader=2, isr=(2, 3), replicas=(2, 3)), state(0, leader=3, partition=1)]
    world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, states, [OTHER_LIVE]))
    (topic,) = world.client.call(MetadataRequest([])).topics
    first, second = topic.partitions
    assert (9, 2, [2], [2]) == (first.error_code, first.leader, first.replicas, first.isr)
    assert (5, -1, []) == (second.error_code, second.leader, second.isr)


@pytest.mark.parametrize("cleaner", [True, False])
def test_a_fresh_log_directory_has_its_checkpoints(tmp_path: Path, cleaner: bool) -> None:
    """A new log directory gets empty checkpoints at start, as in 0.8.2.2, and the cleaner's if the
    cleaner is enabled."""
    world = World(tmp_path, log_cleaner_enable=cleaner)
    runtime: Any = world.runtime
    runtime.spawn = lambda *_, **__: None
    CleanerWorkers(world.config, runtime, world.replica_manager).start()
    wanted = {"recovery-point-offset-checkpoint", CHECKPOINT}
    if cleaner:
        wanted.add("cleaner-offset-checkpoint")
    assert dict.fromkeys(wanted, b"") == {
        file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != ".lock"
    }


def test_a_configuration_that_changes_while_it_is_read_is_kept(tmp_path: Path) -> None:
    """A change that is applied while the older configuration is being read is kept."""
    world = World(tmp_path)
    store: Any = world.store

    def read_slowly(topics: Iterable[str]) -> dict[str, dict[str, str]]:
        world.log_manager.update_topic_config("t", {"retention.ms": "7"})
        return {topic: {"retention.ms": "1"} for topic in topics}

    store.topic_configs = read_slowly
    world.lead("t")
    assert 7 == world.partition("t").log.config.retention_ms


def test_metadata_that_overtakes_a_leadership_ends_it(tmp_path: Path) -> None:
    """UpdateMetadata with another leader of a later epoch ends a leadership that is still being
    taken up: its LeaderAndIsr request waits for the topic's configuration, and its controller has
    died. A leadership of a later epoch than the metadata's stays, and so does the next one."""
    world = World(tmp_path)
    store: Any = world.store
    numbers = range(2)

    def overtaken(topics: list[str]) -> dict[str, dict[str, str]]:
        states = [replace(state(4, partition=n), leader=2, replicas=[2]) for n in numbers]
        world.replica_manager.update_metadata(
            UpdateMetadataRequest(9, CONTROLLER_EPOCH + 1, states, [OTHER_LIVE])
        )
        return {topic: {} for topic in topics}

    store.topic_configs = overtaken
    world.replica_manager.become_leader_or_follower(
        LeaderAndIsrRequest(9, CONTROLLER_EPOCH, [state(3, partition=0), state(5, partition=1)], [])
    )
    assert [False, True] == [world.partition("t", n).is_leader for n in numbers]
    world.replica_manager.become_leader_or_follower(
        LeaderAndIsrRequest(9, CONTROLLER_EPOCH + 1, [state(5, partition=0)], [])
    )
    assert world.partition("t", 0).is_leader


def test_a_stopping_broker_accepts_no_leadership(tmp_path: Path) -> None:
    """A broker that stops accepts no more leaderships, because the logs are closed next."""
    world = World(tmp_path)
    runtime: Any = world.runtime
    many = [state(0, partition=number) for number in range(PARTITIONS_PER_BATCH + 1)]
    world.lead("t", len(many), leader=2)
    runtime.sleep = lambda _: world.replica_manager.shutdown()
    with pytest.raises(Closed):
        world.replica_manager.become_leader_or_follower(
            LeaderAndIsrRequest(9, CONTROLLER_EPOCH, [replace(s, leader_epoch=5) for s in many], [])
        )
    assert not any(partition.is_leader for partition in world.replica_manager)
