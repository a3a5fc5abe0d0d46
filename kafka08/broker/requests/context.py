"""BrokerContext: the parts of a running broker that a handler may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka08.broker.cluster.controller_connection import ControllerConnection
from kafka08.structs import PLAINTEXT

if TYPE_CHECKING:
    from kafka08.broker.appends.appender import Appender
    from kafka08.broker.cluster.metadata_cache import MetadataCache
    from kafka08.broker.controller.controller import Controller
    from kafka08.broker.groups.group_coordinator import GroupCoordinator
    from kafka08.broker.groups.offset_manager import OffsetManager
    from kafka08.broker.replication.record_deletions import RecordDeletions
    from kafka08.broker.replication.replica_manager import ReplicaManager
    from kafka08.broker.replication.unconfirmed_leaderships import UnconfirmedLeaderships
    from kafka08.broker.settings.config import BrokerConfig
    from kafka08.broker.topics.deleted_topics import DeletedTopics
    from kafka08.broker.topics.topic_creator import TopicCreator
    from kafka08.broker.topics.topic_waits import TopicWaits
    from kafka08.broker.transactions.marker_writer import MarkerWriter
    from kafka08.broker.transactions.transaction_checks import TransactionChecks
    from kafka08.broker.transactions.transaction_coordinator import TransactionCoordinator
    from kafka08.runtime import BrokerRuntime
    from kafka08.zk.producer_ids import ProducerIds
    from kafka08.zk.store import ClusterStore


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """Created by KafkaServer.startup for each listener, after all parts and before the first
    request.

    group_coordinator   handles requests from level 0.9 on; unused below
    transactions        likewise from 0.11 on, with `marker_writer`, `transaction_checks` and
                        `producer_ids`
    cluster_id          the text of /cluster/id
    listener            the name of the listener on which the requests arrive
    """

    config: BrokerConfig
    runtime: BrokerRuntime
    store: ClusterStore
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    appender: Appender
    topics: TopicCreator
    controller: Controller
    offset_manager: OffsetManager
    group_coordinator: GroupCoordinator
    transactions: TransactionCoordinator
    marker_writer: MarkerWriter
    transaction_checks: TransactionChecks
    producer_ids: ProducerIds
    topic_waits: TopicWaits
    deleted_topics: DeletedTopics
    unconfirmed_leaderships: UnconfirmedLeaderships
    record_deletions: RecordDeletions
    cluster_id: str | None = None
    listener: str = PLAINTEXT
    controller_connection: ControllerConnection = field(default_factory=ControllerConnection)

    @property
    def request_prefix(self) -> bytes:
        """Distinguishes this listener's Metadata requests from others in the cache of responses.
        Without it a key begins with the request's version, whose first byte is 0."""
        return b"" if self.listener == PLAINTEXT else self.listener.encode() + b"\0"
