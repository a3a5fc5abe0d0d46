"""No request of 10,000 partitions, and no periodic work on as many, blocks the hub for 100 ms: a
ZooKeeper session, clients and other brokers wait for it.

The tests measure the CPU time between two switches, on a broker whose logs are stand-ins or, where
they are read and written, are in memory."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.broker.groups.offset_cache import OffsetCache
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.manager import LogManager
from kafka08.log.names import parse_partition_directory
from kafka08.network import server_connection
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.offset_records import OffsetKey, OffsetValue
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.simulation.memory_disk import MemoryDisk
from kafka08.structs import OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition
from tests.broker.drawn_requests import large_requests
from tests.broker.hub import HOLD_S, TRIES, Hub
from tests.broker.world import CONTROLLER_EPOCH, Client, World

PARTITIONS = 10_000
BROKERS = [BrokerEndpoint(number, "127.0.0.1", 19090 + number) for number in (1, 2)]
LIVE = [LiveBroker.plaintext(b.broker_id, b.host, b.port) for b in BROKERS]
SHAPES = [(2000, 5), (PARTITIONS, 1)]
TOPICS, EACH = SHAPES[0]
NUMBERS = list(range(EACH))


class LogStandIn:
    """The part of an empty log that partitions and checkpoints use."""

    log_end_offset = log_start_offset = recovery_point = 0
    is_being_cleaned = False

    def __init__(self, path: Path, config: LogConfig) -> None:
        self.active_segment = kernel.SegmentTail()
        self.active_segment.end_offset = 0
        self.directory = path
        self.log_directory = path.parent
        self.topic_partition = parse_partition_directory(path)
        self.config = config

    def delete_old_segments(self, *_: object) -> int:
        return 0

    def owed_flush(self) -> None: ...

    def delete(self, renamed: Path | None) -> None: ...


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setattr(
        LogManager,
        "_open",
        lambda manager, path: LogStandIn(path, manager.config_of(path.name.rpartition("-")[0])),
    )
    world = World(tmp_path)
    world.store.live = [1, 2]
    return Hub(world)


def states(topics: int, partitions: int, epoch: int, leader: int = 1) -> list[PartitionStateInfo]:
    return [
        PartitionStateInfo(f"topic-{t}", p, CONTROLLER_EPOCH, leader, epoch, [1, 2], 0, [1, 2])
        for t in range(topics)
        for p in range(partitions)
    ]


def obey(hub: Hub, states: list[PartitionStateInfo], code: int = 0) -> None:
    response = hub.respond(LeaderAndIsrRequest(9, CONTROLLER_EPOCH, states, BROKERS))
    assert (0, {code}, len(states)) == (
        response.error_code,
        {partition.error_code for partition in response.partitions},
        len(response.partitions),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_leader_and_isr(hub: Hub, shape: tuple[int, int]) -> None:
    """LeaderAndIsr with new partitions, with some more (which once scanned all logs for each
    topic), with old epochs, and with a change of all leaders and back."""
    first = states(*shape, epoch=0)
    obey(hub, first)
    more = states(*shape, epoch=0)
    for state in more:
        state.topic = f"more-{state.topic}"
    obey(hub, more)
    obey(hub, first, code=13)
    obey(hub, states(*shape, epoch=1, leader=2))
    obey(hub, states(*shape, epoch=2))


@pytest.mark.parametrize("shape", SHAPES)
def test_metadata(hub: Hub, shape: tuple[int, int]) -> None:
    """UpdateMetadata, and Metadata for all topics and by name."""
    told = UpdateMetadataRequest(9, CONTROLLER_EPOCH, states(*shape, epoch=0), LIVE)
    named = [f"topic-{number}" for number in range(shape[0])]
    for topics in ([], named):
        # An update before each try: the response is cached until then.
        response = hub.best_response(MetadataRequest(topics), before=lambda: hub.update(told))
        assert PARTITIONS == sum(len(topic.partitions) for topic in response.topics)


@pytest.mark.parametrize("delete", [0, 1])
def test_stop_replica(hub: Hub, delete: int) -> None:
    """StopReplica holds the hub no longer than allowed, with and without deletion."""
    obey(hub, states(*SHAPES[0], epoch=0))
    stopped = [StopReplicaPartition(s.topic, s.partition) for s in states(*SHAPES[0], epoch=0)]
    response = hub.respond(StopReplicaRequest(9, CONTROLLER_EPOCH, delete, stopped))
    assert PARTITIONS == len(response.partitions)
    assert PARTITIONS * (1 - delete) == len(hub.world.log_manager.logs)


@pytest.fixture(scope="module")
def leading(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """A broker that leads PARTITIONS logs and the one partition of the offsets topic."""
    return hub_that_leads(tmp_path_factory.mktemp("logs"), TOPICS)


def hub_that_leads(root: Path, topics: int, **keys: Any) -> Hub:
    disk = MemoryDisk(lambda: 1)
    disk.make_directories(root)
    world = World(root, disk=disk, offsets_topic_num_partitions=1, **keys)
    hub = Hub(world)
    led = states(topics, EACH, epoch=0)
    for state in led:
        state.isr = state.replicas = [1]
    client = Client(world)
    for request in (
        LeaderAndIsrRequest(9, CONTROLLER_EPOCH, led, BROKERS),
        UpdateMetadataRequest(9, CONTROLLER_EPOCH, led, LIVE),
    ):
        client.send(encode_request(request, 1, "test"))
    world.lead(OFFSETS_TOPIC)
    world.runtime.advance(5)
    return hub


def wide(topic: Callable[[str, list[Any]], Any], partition: Callable[[int], Any]) -> list[Any]:
    """Every partition of `leading`, in a request."""
    return [topic(f"topic-{t}", [partition(p) for p in NUMBERS]) for t in range(TOPICS)]


def codes(response: Any) -> Counter[int]:
    return Counter(p.error_code for topic in response.topics for p in topic.partitions)


def test_fetch(leading: Hub) -> None:
    """A Fetch of every partition at its end."""
    asked = wide(FetchTopic, lambda number: FetchPartition(number, 0, 1000))
    assert {0: PARTITIONS} == codes(leading.best_response(FetchRequest(-1, 100, 0, asked)))


FEWER = 4
"""Sets for all partitions take seconds: for a quarter of them, within a quarter of the time."""


@pytest.fixture(scope="module")
def converting(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """A broker of level 0.10.2 with FEWER logs."""
    root = tmp_path_factory.mktemp("logs")
    return hub_that_leads(root, TOPICS // FEWER, api_level="0.10.2")


@pytest.mark.parametrize(
    ("codec", "min_bytes", "topics", "value_bytes"),
    [
        (0, 0, TOPICS // FEWER, 20),
        (1, 0, TOPICS // FEWER, 20),
        (0, 1 << 30, TOPICS // FEWER, 20),
        (1, 0, PARTITIONS_AT_ONCE // EACH, 10_000),
    ],
)
def test_fetch_of_sets_to_convert(
    converting: Hub, codec: int, min_bytes: int, topics: int, value_bytes: int
) -> None:
    """A Fetch 0 with a set of magic 1 in every partition; also one that was parked."""
    names = [f"topic-{t}" for t in range(topics)]
    values = [(None, bytes(value_bytes))] * 2
    data = message_set.encode(values, codec, magic=1, timestamps=[7] * 2)
    produced = [ProduceTopic(name, [ProducePartition(n, data) for n in NUMBERS]) for name in names]
    client = Client(converting.world)
    starts = client.call(ProduceRequest(1, 1000, produced, version=2)).topics
    asked = [
        FetchTopic(t.topic, [FetchPartition(p.partition, p.base_offset, 1000)])
        for t in starts
        for p in t.partitions
    ]
    frame = encode_request(FetchRequest(-1, 100, min_bytes, asked), 1, "test")

    def fetch() -> None:
        client.send(frame)
        converting._switch()
        converting.world.runtime.advance(0.2)

    held = min(converting.held(fetch) for _ in range(TRIES))
    assert held < HOLD_S / FEWER
    responses = [decode_response(FetchRequest, frame)[1] for frame in client.frames()]
    assert [{0: topics * EACH}] * TRIES == [codes(response) for response in responses]
    sets = [p.message_set for topic in responses[0].topics for p in topic.partitions]
    assert {0} == {entry.magic for one in sets for entry in kernel.entries(one)}
    assert 2 * len(sets) == sum(len(list(message_set.decode(one))) for one in sets)


@pytest.mark.parametrize("version", [0, 1])
def test_metadata_of_illegal_names(converting: Hub, leading: Hub, version: int) -> None:
    """As many names as a request may have, none of which can be a topic's: 3 s for 570,000."""
    names = [f"{n}/" for n in range(99_000)]
    hub = converting if version else leading
    response = hub.best_response(MetadataRequest(names, version=version))
    assert {17} == {topic.error_code for topic in response.topics}


def test_list_of_very_many_groups(converting: Hub) -> None:
    """ListGroups of 40,000 groups, which anybody can make: 0.5 s."""
    coordinator = converting.world.context.group_coordinator
    for n in range(40_000):
        coordinator._new_group(f"group-{n}")
    try:
        response = converting.best_response(ListGroupsRequest())
        assert 40_000 <= len(response.groups)
    finally:
        for n in range(40_000):
            coordinator._forget(coordinator._groups[f"group-{n}"])


@pytest.mark.parametrize("time_ms", [-1, -2, 12345])
def test_list_offsets(leading: Hub, time_ms: int) -> None:
    """ListOffsets for the end, the start, and a time."""
    asked = wide(OffsetsTopic, lambda number: OffsetsPartition(number, time_ms, 1))
    assert {0: PARTITIONS} == codes(leading.best_response(OffsetsRequest(-1, asked)))


def test_list_offsets_of_repeated_partitions(converting: Hub) -> None:
    """ListOffsets 1 of partitions that this broker does not have, each named twice."""
    asked = [OffsetsTopic("unknown", [OffsetsPartition(n // 2, -1, 1) for n in range(99_000)])]
    response = converting.best_response(OffsetsRequest(-1, asked, version=1))
    assert {42: 49_500} == codes(response)


@pytest.mark.parametrize(
    "request_",
    [
        ProduceRequest(
            1, 0, [ProduceTopic("no", [ProducePartition(n, b"") for n in range(39_000)])]
        ),
        FetchRequest(
            -1, 0, 1, [FetchTopic("no", [FetchPartition(n, 0, 1) for n in range(99_000)])]
        ),
    ],
    ids=lambda request: type(request).__name__,
)
def test_unknown_partitions(leading: Hub, request_: Request) -> None:
    """As many partitions as a request may name, none of which this broker has."""
    assert {3} == set(codes(leading.best_response(request_)))


def test_list_offsets_unpacks_in_threads(converting: Hub) -> None:
    """ListOffsets 1 by time, of sets of 20 KB that unpack to 20 MB each."""
    values = [(None, bytes(20 << 20))]
    data = message_set.encode(values, 1, magic=1, timestamps=[7])
    names = [f"topic-{t}" for t in range(4)]
    produced = [ProduceTopic(name, [ProducePartition(n, data) for n in NUMBERS]) for name in names]
    Client(converting.world).call(ProduceRequest(1, 1000, produced, version=2))
    asked = [OffsetsTopic(name, [OffsetsPartition(n, 7, 1) for n in NUMBERS]) for name in names]
    response = converting.best_response(OffsetsRequest(-1, asked, version=1))
    assert {0: len(names) * EACH} == codes(response)
    assert {7} == {p.timestamp_ms for topic in response.topics for p in topic.partitions}


@pytest.mark.parametrize("version", [0, 1])
def test_commits_and_fetches_of_offsets(
    leading: Hub, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits and fetches of offsets in ZooKeeper, whose session works between two switches, and in
    the offsets topic."""
    store = leading.world.store
    ask_zookeeper = store.pipeline

    def pipeline(operations: Any) -> list[Any]:
        made = list(operations)
        leading._switch()
        responses = ask_zookeeper(made)
        leading._since = time.thread_time()
        return responses

    monkeypatch.setattr(store, "pipeline", pipeline)
    commit = OffsetCommitRequest(
        "g", wide(OffsetCommitTopic, lambda number: OffsetCommitPartition(number, 7, ""))
    )
    fetch = OffsetFetchRequest("g", wide(OffsetFetchTopic, lambda number: number))
    commit.version = fetch.version = version
    assert {0: PARTITIONS} == codes(leading.best_response(commit))
    fetched = leading.best_response(fetch)
    assert {0: PARTITIONS} == codes(fetched)
    assert {7} == {p.offset for topic in fetched.topics for p in topic.partitions}


VERY_MANY = Request.ITEMS_MAX - 1
"""As many as a request can have, with their topic."""


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
def test_very_many_offsets(tmp_path: Path, level: str) -> None:
    """A commit of VERY_MANY offsets, most of partitions that do not exist, and a fetch of them:
    each is stored, or has got 3."""
    hub = hub_that_leads(tmp_path, 1, api_level=level)
    partitions = [OffsetCommitPartition(number, 7, "") for number in range(VERY_MANY)]
    commit = OffsetCommitRequest("g", [OffsetCommitTopic("topic-0", partitions)], version=1)
    committed = codes(hub.best_response(commit))
    assert committed == {0: committed[0], 3: VERY_MANY - committed[0]}
    topics = [OffsetFetchTopic("topic-0", list(range(VERY_MANY)))]
    fetched = hub.best_response(OffsetFetchRequest("g", topics, version=1)).topics[0].partitions
    stored = EACH if level == "0.8.2" else committed[0]  # 0.8 hands out those that exist
    assert stored == sum(partition.offset == 7 for partition in fetched)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_very_many_offsets_of_an_unknown_topic(tmp_path: Path, version: int) -> None:
    """In ZooKeeper and in the offsets topic: each partition of a commit gets 3."""
    hub = hub_that_leads(tmp_path, 1, api_level="0.10.2")
    numbers = range(VERY_MANY)
    committed = [OffsetCommitPartition(number, 7, "") for number in numbers]
    commit = OffsetCommitRequest("g", [OffsetCommitTopic("unknown", committed)], version=version)
    assert {3: VERY_MANY} == codes(hub.best_response(commit))
    topics = [OffsetFetchTopic("unknown", list(numbers))]
    fetched = hub.best_response(OffsetFetchRequest("g", topics, version=version))
    assert {0 if version else 3: VERY_MANY} == codes(fetched)


@pytest.mark.parametrize("version", [1, 2])
def test_very_many_offsets_of_groups_elsewhere(tmp_path: Path, version: int) -> None:
    """The group has another coordinator: one error, for all partitions or in version 2 without
    them."""
    hub = hub_that_leads(tmp_path, 1, api_level="0.10.2")
    hub.world.lead(OFFSETS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    topics = [OffsetFetchTopic("topic-0", list(range(VERY_MANY)))]
    fetched = hub.best_response(OffsetFetchRequest("g", topics, version=version))
    refused = (16, {}) if version == 2 else (0, {16: VERY_MANY})
    assert refused == (fetched.error_code, codes(fetched))


def test_very_many_groups(converting: Hub) -> None:
    """DescribeGroups of VERY_MANY unknown groups."""
    names = [f"{number:x}" for number in range(VERY_MANY)]
    response = converting.best_response(DescribeGroupsRequest(names))
    assert names == [group.group for group in response.groups]
    assert {"Dead"} == {group.state for group in response.groups}


PLAIN = message_set.encode([(None, bytes(20))])
SETS = {
    "plain": (PLAIN, 0),
    "large": (message_set.encode([(None, bytes(2000))]), 0),
    "compressed": (message_set.encode([(None, bytes(20))], 1), 0),
    "corrupt": (PLAIN[:-1] + b"x", 2),
}


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("kind", SETS)
def test_produce(leading: Hub, kind: str, acks: int) -> None:
    """A Produce with a set for every partition, each of which has one replica."""
    data, code = SETS[kind]
    asked = wide(ProduceTopic, lambda number: ProducePartition(number, data))
    assert {code: PARTITIONS} == codes(leading.best_response(ProduceRequest(acks, 1000, asked)))


def test_produce_lets_other_greenlets_run(leading: Hub) -> None:
    """During a Produce the event loop handles other connections, and may reuse the request's buffer
    for one of them."""
    asked = wide(ProduceTopic, lambda number: ProducePartition(number, PLAIN))
    rounds = 0
    received: list[memoryview] = []

    def handle(payload: memoryview, link: Any) -> Any:
        received.append(payload)
        return leading.world.handle(payload, link)

    client = Client(leading.world, handle)  # type: ignore[arg-type]

    def sleep(seconds: float) -> None:
        nonlocal rounds
        rounds += 1
        assert [] == client.frames()
        received[0][:] = bytes(len(received[0]))

    runtime: Any = leading.world.runtime
    sleep_before, runtime.sleep = runtime.sleep, sleep
    try:
        client.send(encode_request(ProduceRequest(1, 1000, asked), 1, "test"))
    finally:
        runtime.sleep = sleep_before
    assert rounds >= 9
    (frame,) = client.frames()
    assert {0: PARTITIONS} == codes(decode_response(ProduceRequest, frame)[1])


def test_acks_of_produce(leading: Hub) -> None:
    """acks -1 for partitions with a second replica, until the follower has fetched everything. The
    best of several runs counts, as in `best_response`."""
    for number in range(TOPICS):
        leading.world.lead(f"topic-{number}", EACH, isr=(1, 2), replicas=(1, 2))
    producer = Client(leading.world)
    follower = Client(leading.world, number=next(server_connection.NUMBERS))
    asked = wide(ProduceTopic, lambda number: ProducePartition(number, PLAIN))
    produced = encode_request(ProduceRequest(-1, 60_000, asked), 1, "test")

    def held() -> float:
        of_produce = leading.held(lambda: producer.send(produced))
        assert [] == producer.frames()
        end = leading.world.partition("topic-0").log.log_end_offset
        parts = wide(FetchTopic, lambda number: FetchPartition(number, end, 1))
        fetched = encode_request(FetchRequest(2, 100, 0, parts), 1, "test")
        of_fetch = leading.held(lambda: follower.send(fetched))
        (frame,) = producer.frames()
        assert {0: PARTITIONS} == codes(decode_response(ProduceRequest, frame)[1])
        return max(of_produce, of_fetch)

    assert any(held() < HOLD_S for _ in range(TRIES))


def test_offsets_of_partitions_that_are_not_here(hub: Hub) -> None:
    """Requests for offsets of partitions that this broker does not have. The log has one line for
    all."""
    asked = [OffsetsTopic(f"t{n}", [OffsetsPartition(0, -1, 1)]) for n in range(PARTITIONS)]
    assert PARTITIONS == len(hub.respond(OffsetsRequest(-1, asked)).topics)


def test_periodic_and_rare_work_yields(hub: Hub) -> None:
    """Checkpoints, retention, a topic's new configuration and the end of all followers at once do
    not block the hub."""
    obey(hub, states(*SHAPES[0], epoch=0))
    world = hub.world
    world.runtime.advance(60)
    manager, logs = world.replica_manager, world.log_manager
    logs._pause = lambda: world.runtime.sleep(0)
    held = {
        work.__name__: hub.held(work)
        for work in (
            manager.checkpoint_high_watermarks,
            logs.checkpoint_recovery_points,
            logs.retain,
            lambda: logs.update_topic_config("topic-0", {"retention.ms": "7"}),
            manager.shrink_isrs,
        )
    }
    assert {} == {name: seconds for name, seconds in held.items() if seconds >= HOLD_S}
    assert {(1,)} == {partition.isr for partition in manager}
    assert 5 == sum(one.config.retention_ms == 7 for one in logs.logs.values())


def test_expiry_of_half_a_million_offsets(hub: Hub) -> None:
    """Two percent of the offsets have expired, and their tombstones are in the log."""
    manager = hub.world.context.offset_manager
    cache: OffsetCache = manager._cache
    generation = cache.begin_load(0)
    assert generation is not None
    now_ms = hub.world.runtime.time_ms()
    for number in range(500_000):
        committed = OffsetAndMetadata(number, "", 0 if number % 50 == 0 else now_ms)
        cache.apply(0, number, OffsetKey("g", "t", number), OffsetValue(committed))
    finished = hub.held(lambda: cache.finish_load(0, generation))
    appended: list[int] = []
    manager._append_tombstones = lambda number, keys: appended.append(len(keys))  # type: ignore[method-assign]
    assert max(finished, hub.held(manager.expire)) < HOLD_S
    assert 10_000 == sum(appended)


def test_a_topic_without_logs_is_forgotten(hub: Hub) -> None:
    """The index of logs by topic forgets topics that are gone."""
    obey(hub, states(2, 2, epoch=0))
    for number in (0, 1):
        hub.world.log_manager.delete(TopicPartition("topic-0", number))
    assert {"topic-1"} == hub.world.log_manager._topics.keys()


@pytest.mark.parametrize("level", list(Level), ids=str)
def test_the_largest_requests_of_any_kind(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With drawn values, and each array in turn as long as it may be: none blocks the hub, whatever
    is wrong with it."""
    caplog.set_level(logging.CRITICAL + 1)
    monkeypatch.setattr(LogManager, "_open", lambda *_: None)
    world = World(tmp_path, api_level=str(level))
    hub, rng = Hub(world), random.Random(level.value)
    rows = SERVED[level].rows
    for key, version in dict(sorted(rows)).items():  # the last version of each
        if key in {4, 5, 6}:  # of the controller: as many partitions as a cluster has
            continue
        row = rows[key, version]
        for request in large_requests(row.request_form, version, rng):
            frame, holds = encode_request(request, 1, "c"), [HOLD_S]
            while min(holds) >= HOLD_S and len(holds) <= TRIES:
                client = Client(world)
                holds.append(hub.held(partial(client.send, frame)))
                client.close()
            assert min(holds) < HOLD_S, f"{type(request).__name__} {version}: {holds}"
