"""A broker without sockets, ZooKeeper or time: real handlers and logs, and a clock that the test
moves. The test acts as the controller: `lead` tells the broker which partitions it leads."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kafka08.broker.appends.appender import Appender
from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.groups.group_coordinator import GroupCoordinator
from kafka08.broker.groups.offset_manager import OffsetManager
from kafka08.broker.process.log_background import LogBackground
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.log_start_checkpoints import LogStartCheckpoints
from kafka08.broker.replication.record_deletions import RecordDeletions
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.replication.unconfirmed_leaderships import UnconfirmedLeaderships
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.dispatcher import Dispatcher
from kafka08.broker.requests.request_metrics import RequestMetrics
from kafka08.broker.settings.config import BrokerConfig
from kafka08.broker.topics.deleted_topics import DeletedTopics
from kafka08.broker.topics.topic_creator import TopicCreator
from kafka08.broker.topics.topic_waits import TopicWaits
from kafka08.broker.transactions.marker_sender import MarkerSender
from kafka08.broker.transactions.marker_writer import MarkerWriter
from kafka08.broker.transactions.transaction_checks import TransactionChecks
from kafka08.broker.transactions.transaction_coordinator import TransactionCoordinator
from kafka08.errors import BadVersion, BrokerNotAvailable, NodeExists, StorageError, ZooKeeperError
from kafka08.levels import Level
from kafka08.log.manager import LogManager
from kafka08.network.server_connection import FileSlice, GeneratedBytes, Piece, ServerConnection
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.served import SERVED
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.runtime.timer import Timer
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Operation
from kafka08.zk.producer_ids import ProducerIds
from kafka08.zk.store import ClusterStore
from tests.broker.fake_runtime import FakeRuntime
from tests.zk.in_process import InProcessWorld

logger = logging.getLogger(__name__)

BROKER_ID = 1
CONTROLLER_EPOCH = 5


class FakeStore:
    """The part of a ClusterStore that handlers and the replica manager use, in dictionaries. It is
    also its own client: `zk` is itself."""

    def __init__(self) -> None:
        self.znodes: dict[str, str] = {}
        self.live = [BROKER_ID]
        self.racks: dict[int, str] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.may_have_session = True
        self.session_id = 1
        self._ensemble = InProcessWorld()
        self._model: ZkClient | None = None
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        """State znodes; one that is not there has the version that its first writer expects."""

    @property
    def zk(self) -> FakeStore:
        return self

    def live_broker_ids(self) -> list[int]:
        return self.live

    def live_racks(self) -> dict[int, str | None]:
        return {broker: self.racks.get(broker) for broker in self.live}

    def topic_configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {topic: self.configs[topic] for topic in topics if topic in self.configs}

    def topic_config(self, topic: str) -> dict[str, str]:
        return self.configs.get(topic, {})

    def update_leader_and_isr(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr | ZooKeeperError]:
        responses: dict[TopicPartition, LeaderAndIsr | ZooKeeperError] = {}
        for tp, state in states.items():
            if tp in self.states and self.states[tp].zk_version != state.zk_version:
                responses[tp] = BadVersion(str(tp))
            else:
                responses[tp] = self.states[tp] = replace(state, zk_version=state.zk_version + 1)
        return responses

    def leader_and_isr(
        self, wanted: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        return {tp: self.states[tp] for tp in wanted if tp in self.states}

    def catch_up(self, *, again: bool = False) -> None: ...

    @property
    def model(self) -> ZkClient:
        """A model of ZooKeeper, for what has no dictionary here."""
        if self._model is None:
            ensemble = self._ensemble
            self._model = ZkClient("model:1", adapter=ensemble.connect, clock=ensemble)
            self._model.start()
        return self._model

    def advance(self, seconds: float) -> None:
        """Moves the model's clock: timers of what it has answered go."""
        self._ensemble.sleep(seconds)

    def pipeline(self, operations: Iterable[Operation]) -> list[Any]:
        """Stores offsets of groups."""
        return self.model.pipeline(operations)

    def assignments(self, topics: Iterable[str]) -> dict[str, dict[int, tuple[int, ...]]]:
        found = ((topic, self.znodes.get(paths.topic(topic))) for topic in topics)
        return {topic: nodes.decode_assignment(text) for topic, text in found if text is not None}

    def topics(self) -> list[str]:
        prefix = f"{paths.BROKER_TOPICS}/"
        return sorted(p.removeprefix(prefix) for p in self.znodes if p.startswith(prefix))

    def exists(self, path: str) -> bool:
        return path in self.znodes

    def create_topic(
        self, topic: str, assignment: Mapping[int, Iterable[int]], overrides: Mapping[str, str]
    ) -> None:
        if paths.topic(topic) in self.znodes:
            raise NodeExists(topic)
        self.znodes[paths.topic_config(topic)] = nodes.encode_topic_config(overrides)
        self.znodes[paths.topic(topic)] = nodes.encode_assignment(assignment)

    def replace_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        self.configs[topic] = dict(overrides)

    def created_partitions(self, topic: str) -> int:
        """The partitions of a topic whose znode a broker wrote."""
        return len(nodes.decode_assignment(self.znodes[paths.topic(topic)]))


class RecordedFollowers:
    """Records the partitions that are followed: partition → leader."""

    def __init__(self) -> None:
        self.sources: dict[TopicPartition, Broker] = {}

    def follow(self, partitions: Iterable[tuple[Partition, Broker]]) -> None:
        self.sources.update((p.topic_partition, leader) for p, leader in partitions)

    def stop_following(self, topic_partitions: Collection[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self.sources.pop(topic_partition, None)

    def follows(self, topic_partition: TopicPartition, leader: Broker) -> bool:
        return self.sources.get(topic_partition) == leader

    def moved(self, live: Mapping[int, Broker]) -> list[tuple[TopicPartition, Broker]]:
        return [
            (tp, live[leader.id])
            for tp, leader in self.sources.items()
            if live.get(leader.id, leader) != leader
        ]

    def end_idle(self) -> None: ...


class NoController:
    """The response of a broker that is not the controller."""

    is_active = False

    def controlled_shutdown(
        self, broker_id: int, _is_abandoned: Callable[[], bool]
    ) -> set[TopicPartition]:
        raise BrokerNotAvailable(f"broker {broker_id} is not known here")


class Client(ServerConnection):
    """A connection of the world: it sends bytes and returns frames. All have one number, so that
    requests of the controller may come over any."""

    def __init__(self, world: World, handle: Dispatcher | None = None, *, number: int = 0) -> None:
        reader = FrameReader(world.config.socket_request_max_bytes)
        super().__init__("test:1", reader, itertools.repeat(handle or world.handle))
        self.number = number
        self._world = world

    def send(self, data: bytes) -> None:
        """Delivers bytes and handles complete requests. Where ProtocolError is raised, a real
        connection closes."""
        view = memoryview(data)
        while view and not self.ending:
            room = self.reader.buffer()
            count = min(len(room), len(view))
            room[:count] = view[:count]
            view = view[count:]
            self.reader.advance(count)
            try:
                while self.handle_frames(self._world.runtime.monotonic):
                    pass
            except StorageError as error:
                self.fail(error)

    def fail(self, error: Exception) -> None:
        """Like AcceptedConnection: a storage error halts the broker."""
        uncaught(self._world.runtime, error, logger, "Closing socket because of error")
        super().fail(error)

    def response_queued(self) -> None:
        while self.handle_frames(self._world.runtime.monotonic):
            pass

    def frames(self) -> list[bytes]:
        """The response payloads since the last call."""
        data = b"".join(map(piece_bytes, self.outbox))
        self.outbox.clear()
        return [bytes(frame) for frame in FrameReader(1 << 30).feed(data)] if data else []

    def call(self, request: Request, correlation_id: int = 1) -> Any:
        """The decoded response to a request that is answered at once."""
        self.send(encode_request(request, correlation_id, "test"))
        (frame,) = self.frames()
        answered, response = decode_response(type(request), frame, request.version)
        assert correlation_id == answered
        return response


def piece_bytes(piece: Piece) -> bytes | bytearray:
    if isinstance(piece, bytes | bytearray):
        return piece
    if isinstance(piece, memoryview):
        return bytes(piece)
    return generated_bytes(piece) if isinstance(piece, GeneratedBytes) else file_bytes(piece)


def generated_bytes(piece: GeneratedBytes) -> bytes:
    """All converted bytes. A runtime whose native jobs run inline converts them here."""
    made: list[bytes | None] = []
    while piece.size:
        now = piece.make(lambda data, error: made.append(data))
        if now is not None:
            made.append(now)
    return b"".join(part or b"" for part in made)


def file_bytes(piece: FileSlice) -> bytes:
    data = piece.file.pread(piece.size, piece.position)
    assert len(data) == piece.size
    return data


class World:
    """One broker, by default with id 1 at 127.0.0.1:19091 and with logs under `directory`."""

    def __init__(
        self,
        directory: Path,
        *,
        broker_id: int = BROKER_ID,
        native_inline: bool = True,
        disk: Disk = SYSTEM_DISK,
        **config: Any,
    ) -> None:
        self.runtime = FakeRuntime(native_inline=native_inline)
        self.config = BrokerConfig(
            {
                "broker.id": broker_id,
                "zookeeper.connect": "nowhere:1",
                "log.dirs": str(directory),
                "log.index.size.max.bytes": 4096,
            },
            **config,
        )
        self.store = FakeStore()
        self.timer = Timer(self.runtime)
        self.cache = MetadataCache(broker_id)
        self.log_manager = LogManager(
            [directory],
            self.config.log_config(),
            clock=self.runtime,
            background=LogBackground(self.runtime, self.timer),
            disk=disk,
        )
        self.log_manager.load()
        store = cast("ClusterStore", self.store)
        self.followed = RecordedFollowers()
        self.replica_manager = ReplicaManager(
            self.config,
            self.runtime,
            log_manager=self.log_manager,
            store=store,
            metadata_cache=self.cache,
            timer=self.timer,
            followers=self.followed,
        )
        self.replica_manager.load_high_watermarks()
        self.log_starts = LogStartCheckpoints(cast("Any", self.runtime), self.log_manager)
        successors = UnconfirmedLeaderships(self.runtime, store, self.cache, self.replica_manager)
        successors.session_begins()
        appender = self.appender = Appender(self.replica_manager, self.runtime)
        offset_manager = OffsetManager(
            self.runtime, self.config, self.replica_manager, appender, successors.is_unconfirmed
        )
        group_coordinator = GroupCoordinator(self.runtime, self.config, self.timer, offset_manager)
        if self.config.level >= Level.V0_9_0:
            group_coordinator.startup()
        offset_manager.startup()
        marker_writer = MarkerWriter(
            self.runtime, appender, offset_manager, self.config.request_timeout_ms
        )
        markers = MarkerSender(
            self.runtime,
            broker_id,
            store,
            self.cache,
            marker_writer.write,
            listener=self.config.inter_broker_listener,
            timeout_ms=self.config.request_timeout_ms,
        )
        producer_ids = ProducerIds(self.store.model, broker_id)
        transactions = TransactionCoordinator(
            self.runtime,
            self.config,
            self.replica_manager,
            appender,
            markers,
            producer_ids.next_id,
            successors.is_unconfirmed,
        )
        if self.config.level >= Level.V0_11_0:
            transactions.startup()
        self.controller = NoController()
        topic_waits = TopicWaits(self.runtime, self.timer, self.cache)
        self.context = BrokerContext(
            self.config,
            self.runtime,
            store,
            self.cache,
            self.replica_manager,
            appender,
            TopicCreator(self.config, self.runtime, store),
            cast("Any", self.controller),
            offset_manager,
            group_coordinator,
            transactions,
            marker_writer,
            TransactionChecks(self.replica_manager, transactions),
            producer_ids,
            topic_waits,
            DeletedTopics(self.runtime, store, self.cache, group_coordinator, topic_waits),
            successors,
            RecordDeletions(
                cast("Any", self.runtime), self.replica_manager, self.cache, self.log_starts.write
            ),
            cluster_id="pC_UvGuMS9yjg9-rNYsVvQ",
        )
        self.handle = Dispatcher(
            self.context, SERVED[self.config.level], RequestMetrics(self.runtime, self.config.level)
        )
        self.client = Client(self)
        self._epochs = itertools.count()

    def at_listener(self, name: str) -> Client:
        """A client of another listener."""
        context = replace(self.context, listener=name)
        requests = RequestMetrics(self.runtime, self.config.level)
        return Client(self, Dispatcher(context, SERVED[self.config.level], requests))

    def lead(
        self,
        topic: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        leader: int = BROKER_ID,
        isr: Iterable[int] = (BROKER_ID,),
        replicas: Iterable[int] = (BROKER_ID,),
    ) -> None:
        """Makes this broker lead (or follow `leader` in) partitions of a topic."""
        if config:
            self.store.configs[topic] = dict(config)
        epoch = next(self._epochs)
        states = [
            PartitionStateInfo(
                topic, number, CONTROLLER_EPOCH, leader, epoch, list(isr), 0, list(replicas)
            )
            for number in range(partitions)
        ]
        if leader != self.config.broker_id:  # a follower reads it before it truncates
            for number in range(partitions):
                self.store.states[TopicPartition(topic, number)] = LeaderAndIsr(
                    leader, epoch, tuple(isr), 0, CONTROLLER_EPOCH
                )
        leaders = [BrokerEndpoint(leader, "127.0.0.1", 19090 + leader)]
        controller = Client(self)
        response = controller.call(
            LeaderAndIsrRequest(9, CONTROLLER_EPOCH, states, leaders),
        )
        assert response.error_code == 0
        live = [
            LiveBroker.plaintext(number, "127.0.0.1", 19090 + number) for number in self.store.live
        ]
        assert (
            controller.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, states, live)).error_code
            == 0
        )

    def partition(self, topic: str, number: int = 0) -> Any:
        return self.replica_manager.partition(TopicPartition(topic, number))
