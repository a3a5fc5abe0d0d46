"""One broker without a network: real logs, ReplicaManager and OffsetManager, and a clock that the
test moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.appends.appender import Appender
from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.groups.offset_manager import FetchedOffset, OffsetManager
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.settings.config import BrokerConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.runtime.timer import Timer
from kafka08.structs import OFFSETS_TOPIC, LeaderAndIsr, OffsetAndMetadata, TopicPartition
from tests.broker.fake_runtime import FakeRuntime
from tests.broker.world import RecordedFollowers

BROKER_ID = 1


class NoTopicConfigs:
    """A ClusterStore in which no topic has overrides and every ISR may be written."""

    def topic_configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {}

    def update_leader_and_isr(
        self, states: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        return states


class Coordinator:
    """The broker, and operations of tests on it."""

    def __init__(self, directory: Path, **keys: Any) -> None:
        self.runtime = FakeRuntime()
        self.config = BrokerConfig(
            {"broker.id": BROKER_ID, "zookeeper.connect": "nowhere"},
            log_dirs=str(directory),
            offsets_topic_num_partitions=2,
            **keys,
        )
        self.log_manager = LogManager([directory], self.config.log_config(), clock=self.runtime)
        self.log_manager.load()
        store: Any = NoTopicConfigs()
        self.replica_manager = ReplicaManager(
            self.config,
            self.runtime,
            log_manager=self.log_manager,
            store=store,
            metadata_cache=MetadataCache(BROKER_ID),
            timer=Timer(self.runtime),
            followers=RecordedFollowers(),
        )
        self.replica_manager.load_high_watermarks()
        self.appender = Appender(self.replica_manager, self.runtime)
        self.offsets = OffsetManager(
            self.runtime, self.config, self.replica_manager, self.appender, lambda _: False
        )
        self.offsets.startup()
        self._epoch = 0

    def lead(self, partition: int, isr: tuple[int, ...] = (BROKER_ID,)) -> None:
        self._obey(partition, BROKER_ID, isr)

    def follow(self, partition: int) -> None:
        self._obey(partition, 2, (2,))

    def _obey(self, partition: int, leader: int, isr: tuple[int, ...]) -> None:
        state = PartitionStateInfo(
            OFFSETS_TOPIC, partition, 1, leader, self._epoch, list(isr), 0, [BROKER_ID, 2]
        )
        self._epoch += 1
        self.replica_manager.become_leader_or_follower(
            LeaderAndIsrRequest(9, 1, [state], [BrokerEndpoint(leader, "h", 1)])
        )

    def commit(
        self, group: str, partition: int, offset: int, metadata: str | None = "", when: int = -1
    ) -> int:
        """Commits one offset of topic `t` and returns the code of the response."""
        tp = TopicPartition("t", partition)
        responses: list[dict[TopicPartition, int]] = []
        self.offsets.commit(
            group, {tp: OffsetAndMetadata(offset, metadata, when)}, responses.append
        )
        assert len(responses) == 1, "the response came at once"
        return responses[0][tp]

    def fetch(self, group: str, partition: int) -> FetchedOffset:
        tp = TopicPartition("t", partition)
        return self.offsets.fetch(group, [tp])[tp]

    def log(self, partition: int) -> Log:
        found = self.log_manager.get(TopicPartition(OFFSETS_TOPIC, partition))
        assert found is not None
        return found

    def log_bytes(self, partition: int) -> bytes:
        source = self.log(partition)
        return bytes(source.read(source.log_start_offset, 1 << 20).bytes())

    def close(self) -> None:
        self.offsets.shutdown()
        self.log_manager.shutdown()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    coordinator = Coordinator(tmp_path)
    yield coordinator
    coordinator.close()
