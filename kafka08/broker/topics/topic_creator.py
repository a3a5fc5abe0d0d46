"""TopicCreator: automatic creation of topics.

Metadata requests create any legal unknown topic with auto.create.topics.enable, and
`__consumer_offsets` always, from 0.11 on `__transaction_state`, too. The broker that got the
request writes the topic's znodes; the controller reads the assignment and does the rest. From 0.9
on a name that collides with that of another topic is illegal; from 0.10.2 on one of more than 249
characters, too. Source: kafka.admin.AdminUtils and KafkaApis.getTopicMetadata 0.8.2.2, 0.9.0.1,
0.10.2.2 and 0.11.0.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kafka08.assignment import NO_RACKS, assign_replicas, racks_if_all_known
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import InvalidTopic, NodeExists, UnknownError
from kafka08.levels import ByLevel, Level
from kafka08.profile import topic_overrides
from kafka08.protocol.types import NULL_NAME
from kafka08.runtime import BrokerRuntime
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka08.topic_name import colliding, fault_of, max_length_at
from kafka08.zk import paths
from kafka08.zk.store import ClusterStore

OFFSETS_COMPRESSION: Final[ByLevel[Mapping[str, str]]] = ByLevel(
    {
        Level.V0_8_2: {},
        Level.V0_9_0: {"compression.type": "uncompressed"},
        Level.V0_10_2: {"compression.type": "producer"},
    }
)
"""Overrides of the offsets topic that a level adds. Source:
GroupCoordinator.offsetsTopicConfigs 0.9.0.1 and 0.10.2.2."""

logger = logging.getLogger(__name__)


class TopicCreator:
    """Creates topics through ZooKeeper. All methods except `creates` switch."""

    def __init__(self, config: BrokerConfig, runtime: BrokerRuntime, store: ClusterStore) -> None:
        self._config = config
        self._runtime = runtime
        self._store = store
        self._is_rack_aware = config.level >= Level.V0_10_2
        self._name_length_max = max_length_at(config.level)
        self._internal: dict[str, Callable[[], None]] = {OFFSETS_TOPIC: self.create_offsets_topic}
        if config.level >= Level.V0_11_0:
            self._internal[TRANSACTIONS_TOPIC] = self.create_transactions_topic

    def creates(self, topic: str) -> bool:
        """Whether a request for an unknown topic of this name creates it (or fails, if illegal)."""
        return topic in self._internal or self._config.auto_create_topics_enable

    def create(self, topics: Iterable[str]) -> None:
        """Create the topics; an existing one is no error. InvalidTopic (for NULL_NAME UnknownError)
        before anything is created, AdminError if there are fewer brokers than replicas. From 0.9 on
        InvalidTopic for a name that collides."""
        names = list(topics)
        for topic in names:
            if topic is NULL_NAME:
                raise UnknownError("a topic whose name is null")
            if fault := fault_of(topic, self._name_length_max):
                raise InvalidTopic(fault)
        for topic in names:
            if create_internal := self._internal.get(topic):
                create_internal()
            else:
                self._create(
                    topic,
                    self._config.num_partitions,
                    self._config.default_replication_factor,
                    {},
                )

    def create_offsets_topic(self) -> None:
        """Create `__consumer_offsets`; an existing one is no error. It has as many replicas as
        there are brokers, up to offsets.topic.replication.factor; from 0.11 on as many as that, and
        AdminError while there are fewer brokers."""
        replicas = self._config.offsets_topic_replication_factor
        if self._config.level < Level.V0_11_0:
            replicas = min(replicas, max(1, len(self._store.live_broker_ids())))
        self._create(
            OFFSETS_TOPIC,
            self._config.offsets_topic_num_partitions,
            replicas,
            {
                "cleanup.policy": "compact",
                "segment.bytes": str(self._config.offsets_topic_segment_bytes),
                **OFFSETS_COMPRESSION[self._config.level],
            },
        )

    def create_transactions_topic(self) -> None:
        """Create `__transaction_state`; an existing one is no error. AdminError while there are
        fewer brokers than it has replicas."""
        self._create(
            TRANSACTIONS_TOPIC,
            self._config.transaction_state_log_num_partitions,
            self._config.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(self._config.transaction_state_log_min_isr),
                "segment.bytes": str(self._config.transaction_state_log_segment_bytes),
            },
        )

    def _create(
        self, topic: str, partitions: int, replication_factor: int, config: Mapping[str, str]
    ) -> None:
        found = self._store.live_racks()
        # 0.8, 0.9: without regard to racks.
        racks = racks_if_all_known(found, found) if self._is_rack_aware else NO_RACKS
        assignment = assign_replicas(
            list(found), partitions, replication_factor, racks=racks, rng=self._runtime.random
        )
        if self._store.zk.exists(paths.topic(topic)):
            return
        self._check_collision(topic)
        overrides = topic_overrides(self._config.kafka08_profile, replication_factor)
        try:
            self._store.create_topic(topic, assignment, {**overrides, **config})
        except NodeExists:
            return  # another broker or a tool was faster
        logger.info(
            "Auto creation of topic %s with %d partitions and replication factor %d is successful!",
            topic,
            partitions,
            replication_factor,
        )

    def _check_collision(self, topic: str) -> None:
        if self._config.level < Level.V0_9_0 or not {".", "_"} & set(topic):
            return
        if others := colliding(topic, self._store.topics()):
            raise InvalidTopic(
                f"Topic '{topic}' collides with existing topics: {', '.join(others)}"
            )
