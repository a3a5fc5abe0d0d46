"""BrokerAdmin: the operations of AdminClient by requests, without ZooKeeper, up to Kafka 4.

    from        brokers serve
    0.8         what lists and describes topics: without dead replicas and overrides
    0.10.1      create_topic, delete_topic
    0.11        overrides, delete_records, acls, broker_configs
    1.0         alter_topic, log_dirs
    1.1         delete_group
    2.3         alter_broker

Brokers do not say whether a topic is being deleted.
A refused operation raises AdminError and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kafka08.admin import broker_configs
from kafka08.admin.acls import Acl, describe_acls
from kafka08.admin.broker_configs import BrokerConfig
from kafka08.admin.brokers import BrokerDescription, brokers_of, chosen
from kafka08.admin.description import PartitionDescription, TopicDescription
from kafka08.admin.record_deletions import delete_records
from kafka08.assignment import check_assignment
from kafka08.client import PLAINTEXT, Security
from kafka08.client.cluster import ClusterClient, send_at_version
from kafka08.client.topic_overrides import overrides_of
from kafka08.config import STRING_BYTES_MAX
from kafka08.errors import (
    NO_ERROR,
    AdminError,
    ApiError,
    ConfigError,
    KafkaError,
    NoSuchTopicOrPartition,
    NotController,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicExists,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    check,
    error_of,
)
from kafka08.lifecycle import Closeable
from kafka08.nearest import did_you_mean
from kafka08.network.connection import Connection
from kafka08.observe.layout import registration_of
from kafka08.protocol.alter_configs import AlterConfigsRequest, AlteredResource, ConfigEntry
from kafka08.protocol.create_partitions import AddedPartition, CreatePartitionsRequest, GrownTopic
from kafka08.protocol.create_topics import (
    NO_COUNT,
    CreateTopicsRequest,
    NewTopic,
    ReplicaAssignment,
    TopicConfigEntry,
)
from kafka08.protocol.delete_groups import DeleteGroupsRequest
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.describe_configs import TOPIC
from kafka08.protocol.describe_log_dirs import DescribeLogDirsRequest, LogDir
from kafka08.protocol.incremental_alter_configs import (
    DELETE,
    SET,
    ChangedResource,
    ConfigChange,
    IncrementalAlterConfigsRequest,
)
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.types import Request
from kafka08.runtime import Runtime
from kafka08.runtime.threads import THREADS
from kafka08.structs import INTERNAL_TOPICS, Broker, TopicPartition, host_port
from kafka08.topic_config import override_texts
from kafka08.topic_name import deletion_fault_of, fault_of

METADATA_VERSIONS: Final = 0, 2
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
CONTROLLER_S: Final = 10.0
"""How long a controller is looked for."""
CONTROLLER_PAUSE_S: Final = 0.5
SHOWN_PAUSE_S: Final = 0.05
"""Until a broker is asked again whether it shows a change."""
NAME_SHOWN: Final = 80
"""The most characters of an override's name in an error."""
MARGIN_MS: Final = 10_000
"""Added to the timeout in a request to get the timeout for its response."""


class BrokerAdmin(Closeable):
    """The operations of AdminClient that brokers serve. Usable in a `with` statement.

    timeout_ms   how long brokers may take to elect leaders of a new topic, to show a change, or to
                 delete a topic
    security     of the connections to brokers
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        *,
        timeout_ms: int = 30_000,
        security: Security = PLAINTEXT,
        runtime: Runtime = THREADS,
    ) -> None:
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self._addresses = ", ".join(host_port(host, port) for host, port in bootstrap)
        self._cluster = ClusterClient(
            bootstrap,
            timeout_ms=timeout_ms + MARGIN_MS,
            negotiates=True,
            accepts_0_8=True,
            security=security,
            runtime=runtime,
        )

    def close(self) -> None:
        self._cluster.close()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, object] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        *,
        dry_run: bool = False,
    ) -> dict[int, tuple[int, ...]]:
        """Create a topic; returns its partition → replicas. With `dry_run` the broker checks
        everything, changes nothing, and the result is {}. The broker checks `config`."""
        if fault := fault_of(name):
            raise AdminError(fault)
        if assignment is not None:
            check_assignment(assignment)
        topic = NewTopic(
            name,
            NO_COUNT if assignment is not None else partitions,
            NO_COUNT if assignment is not None else replication_factor,
            [ReplicaAssignment(n, list(replicas)) for n, replicas in (assignment or {}).items()],
            [TopicConfigEntry(*item) for item in _requestable(config or {}).items()],
        )
        request = CreateTopicsRequest([topic], self._timeout_ms, validate_only=dry_run)
        (result,) = self._ask_controller(request, (1, 2), "to create topics").topics
        try:
            check(result.error_code, name)
        except TopicAlreadyExists:
            raise TopicExists(f'Topic "{name}" already exists.') from None
        except RequestTimedOut:
            raise AdminError(
                f"Topic {name} is created, but has no leaders after {self._timeout_ms} ms; kafka08 "
                f"topic describe {name} shows its state"
            ) from None
        except ApiError as error:
            raise AdminError(f"Topic {name}: {result.message or error}") from error
        if dry_run:
            return {}
        return self._replicas(name, partitions if assignment is None else len(assignment))

    def delete_topic(self, name: str, *, dry_run: bool = False) -> bool:
        """Delete a topic. False if it is not gone in time: it is deleted later, or never by brokers
        without delete.topic.enable=true. AdminError for a missing topic, and for an internal one,
        which brokers would delete. `dry_run`: check only.
        """
        self._described([name])
        if fault := deletion_fault_of(name):
            raise AdminError(fault)
        if dry_run:
            return True
        request = DeleteTopicsRequest([name], self._timeout_ms)
        (result,) = self._ask_controller(request, (0, 1), "to delete topics").topics
        try:
            check(result.error_code, name)
        except UnknownTopicOrPartition:
            raise self._absent_topic(name) from None
        except RequestTimedOut:
            return False
        return True

    def list_topics(self) -> list[str]:
        """Names of all topics, sorted."""
        return sorted(topic.topic for topic in self._metadata().topics)

    def live_brokers(self) -> list[int]:
        """Ids of the brokers that the controller knows to be alive, ascending."""
        return sorted(broker.broker_id for broker in self._metadata().brokers)

    def cluster_id(self) -> str | None:
        """The cluster's own id; None from brokers before 0.10.1."""
        found: str | None = self._metadata().cluster_id
        return found

    def describe_brokers(self, broker_ids: Sequence[int] | None = None) -> list[BrokerDescription]:
        """The named brokers (None: all that live or have replicas) by id, as brokers tell clients;
        AdminError for one that is neither. Which one is the controller they do not say."""
        topics = self._described(None)
        brokers = self._cluster.refresh().brokers
        registrations = {id_: registration_of(broker) for id_, broker in brokers.items()}
        found = brokers_of(registrations, None, topics)
        return chosen([replace(broker, is_controller=None) for broker in found], broker_ids)

    def broker_configs(self, broker_id: int | None = None) -> dict[str, BrokerConfig]:
        """All keys of a broker with their values, sorted; None: only those that are set for all
        brokers at run time, from 1.1 on. AdminError for a broker that does not live."""
        try:
            return broker_configs.describe(self._cluster, self._live(broker_id))
        except UnsupportedVersion:
            raise self._too_old("to describe their configuration") from None

    def alter_broker(
        self,
        broker_id: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
        delete_config: Sequence[str] = (),
        dry_run: bool = False,
    ) -> None:
        """Set keys of a broker at run time, or of all brokers (None), and remove values that were
        set so, from 2.3 on. The broker checks everything, also with `dry_run`, which changes
        nothing; AdminError for a key that only its file can change."""
        changed = _requestable(config or {})
        broker = self._live(broker_id)
        try:
            broker_configs.alter(self._cluster, broker, changed, delete_config, dry_run=dry_run)
        except UnsupportedVersion:
            raise self._too_old("to change their configuration") from None

    def _live(self, broker_id: int | None) -> Broker | None:
        if broker_id is None:
            return None
        brokers = self._cluster.refresh().brokers
        if broker_id not in brokers:
            live = ", ".join(map(str, sorted(brokers)))
            raise AdminError(f"Broker {broker_id} does not live; these do: {live}")
        return brokers[broker_id]

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """The named topics (None: all, sorted), with overrides from 0.11 on; AdminError for a
        missing one."""
        topics = self._described(names)
        overrides = overrides_of(self._cluster, [topic.name for topic in topics])
        if overrides is None:
            return topics
        return [replace(topic, config=overrides.get(topic.name, {})) for topic in topics]

    def shows_overrides(self) -> bool:
        """Whether the brokers say the overrides of topics."""
        return overrides_of(self._cluster, []) is not None

    def _described(self, names: Sequence[str] | None) -> list[TopicDescription]:
        """Without overrides. It requests all topics: a request by name may create one."""
        found = {topic.topic: topic for topic in self._metadata().topics}
        for name in names or ():
            if name not in found:
                raise self._absent_topic(name)
        return [
            TopicDescription(
                name,
                tuple(
                    PartitionDescription(
                        p.partition,
                        p.leader,
                        tuple(p.replicas),
                        tuple(p.isr),
                        # A dead replica is known by the error alone in version 0.
                        lists_all=p.error_code == NO_ERROR,
                    )
                    for p in sorted(found[name].partitions, key=lambda p: p.partition)
                ),
                {},
            )
            for name in (sorted(found) if names is None else names)
        ]

    def _absent_topic(self, name: str) -> AdminError:
        nearest = did_you_mean(name, self.list_topics())
        return NoSuchTopicOrPartition(f"Topic {name} does not exist{nearest}")

    def alter_topic(
        self,
        name: str,
        *,
        config: Mapping[str, object] | None = None,
        delete_config: Sequence[str] = (),
        partitions: int | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        dry_run: bool = False,
    ) -> dict[int, tuple[int, ...]]:
        """Change a topic's overrides, add partitions, or both; returns partition → replicas of the
        added ones, with `dry_run` without replicas. The brokers check everything.

        Before 2.3 brokers replace all overrides at once: a change that another tool makes meanwhile
        may be undone.
        """
        (topic,) = self._described([name])
        if partitions is not None:
            self._grow(name, partitions, assignment, dry_run=dry_run)
        if config or delete_config:
            self._alter_overrides(name, _requestable(config or {}), delete_config, dry_run)
        if partitions is None:
            return {}
        first = len(topic.partitions)
        if dry_run:
            return dict.fromkeys(range(first, partitions), ())
        return {n: rs for n, rs in self._replicas(name, partitions).items() if n >= first}

    def overrides(self, name: str) -> dict[str, str]:
        """The topic's overrides; AdminError from brokers before 0.11."""
        found = overrides_of(self._cluster, [name])
        if found is None:
            raise self._too_old("to describe overrides")
        return found[name]

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the messages below an offset of each partition, or with HIGH_WATERMARK all that
        consumers can read; returns the new starts of the logs. Raises the first partition's
        error."""

        found: dict[TopicPartition, int] = {}
        for tp, result in delete_records(self._cluster, before, self._timeout_ms).items():
            if isinstance(result, KafkaError):
                raise result
            found[tp] = result
        return found

    def delete_group(self, group: str) -> None:
        """Delete a group without members, with its offsets in Kafka. AdminError if it has some, or
        does not exist."""

        def ask(connection: Connection) -> None:
            response: Any = send_at_version(connection, DeleteGroupsRequest([group]), (0, 0))
            (result,) = response.groups
            if result.error_code == NON_EMPTY_GROUP:
                raise AdminError(f"Group {group} has members: stop them first")
            if result.error_code == GROUP_ID_NOT_FOUND:
                raise AdminError(
                    f"Group {group} does not exist; kafka08 group list shows all groups"
                )
            check(result.error_code, f"group {group}")

        try:
            self._cluster.ask_coordinator(group, ask)
        except UnsupportedVersion:
            raise self._too_old("to delete groups") from None

    def log_dirs(self) -> dict[int, list[LogDir]]:
        """Broker id → its log directories, with the sizes of the replicas in them."""
        found = {}
        try:
            for broker in self._cluster.brokers():
                response: Any = self._cluster.send(broker, DescribeLogDirsRequest(None), (0, 1))
                found[broker.id] = response.log_dirs
        except UnsupportedVersion:
            raise self._too_old("to describe log directories") from None
        return found

    def acls(self, principal: str | None = None) -> list[Acl]:
        """The access control entries of the cluster, or those of a principal (`User:alice`),
        sorted. AdminError from brokers without an authorizer, and for who may not see them."""
        try:
            return describe_acls(self._cluster, principal)
        except UnsupportedVersion:
            raise self._too_old("to describe ACLs") from None

    def _grow(
        self,
        name: str,
        partitions: int,
        assignment: Sequence[Sequence[int]] | None,
        *,
        dry_run: bool,
    ) -> None:
        if name in INTERNAL_TOPICS:
            raise AdminError(f"The number of partitions of {name} cannot be changed.")
        added = None if assignment is None else [AddedPartition(list(rs)) for rs in assignment]
        request = CreatePartitionsRequest(
            [GrownTopic(name, partitions, added)], self._timeout_ms, dry_run
        )
        (result,) = self._ask_controller(request, (0, 0), "to add partitions").topics
        _check_result(f"Topic {name}", result)

    def _alter_overrides(
        self, name: str, config: Mapping[str, str], dropped: Sequence[str], dry_run: bool
    ) -> None:
        changes = [ConfigChange(key, SET, value) for key, value in config.items()]
        changes += [ConfigChange(key, DELETE, None) for key in dropped]
        request: Request = IncrementalAlterConfigsRequest(
            [ChangedResource(TOPIC, name, changes)], dry_run
        )
        try:
            response: Any = self._cluster.ask_any(request, (0, 0))
        except UnsupportedVersion:
            kept = {key: v for key, v in self.overrides(name).items() if key not in dropped}
            entries = [ConfigEntry(*item) for item in {**kept, **config}.items()]
            request = AlterConfigsRequest([AlteredResource(TOPIC, name, entries)], dry_run)
            response = self._cluster.ask_any(request, (0, 0))
        (result,) = response.resources
        _check_result(f"Topic {name}", result)

    def _replicas(self, name: str, count: int) -> dict[int, tuple[int, ...]]:
        """Those of a topic that was just changed and has so many partitions. The controller is
        asked, which is the first to know them; of brokers without ZooKeeper it is any broker, so it
        may need a moment. All topics are requested: a request by name would create the topic again
        if it was deleted since."""
        give_up_at = self._runtime.monotonic() + self._timeout_ms / 1000
        while True:
            metadata = self._ask_controller(MetadataRequest(None), (1, 2), "to change topics")
            found = {
                p.partition: tuple(p.replicas)
                for topic in metadata.topics
                if topic.topic == name
                for p in topic.partitions
            }
            if len(found) >= count:
                return found
            if self._runtime.monotonic() + SHOWN_PAUSE_S > give_up_at:
                raise AdminError(
                    f"Topic {name} is changed, but after {self._timeout_ms} ms the controller "
                    f"shows {len(found)} of {count} partitions; kafka08 topic describe {name} "
                    "shows its state"
                )
            self._runtime.sleep(SHOWN_PAUSE_S)

    # Requests

    def _too_old(self, what: str) -> AdminError:
        return AdminError(
            f"The brokers at {self._addresses} are older than the request {what}: give --zookeeper"
        )

    def _metadata(self) -> Any:
        """All topics; from 0.10 on with dead replicas and the controller."""
        return self._cluster.ask_any(MetadataRequest(None), METADATA_VERSIONS)

    def _ask_controller(self, request: Request, versions: tuple[int, int], what: str) -> Any:
        """The response of the current controller in the highest of these versions that it serves;
        AdminError if there is none. `what`: the purpose, for brokers that do not serve it."""
        give_up_at = self._runtime.monotonic() + CONTROLLER_S
        while True:
            asked = MetadataRequest(None)
            metadata: Any = self._cluster.ask_any(asked, METADATA_VERSIONS)
            if asked.version == 0:
                raise self._too_old(what)  # it names no controller
            brokers = {broker.broker_id: broker for broker in metadata.brokers}
            controller = brokers.get(metadata.controller_id)
            if controller is not None:
                address = Broker(controller.broker_id, controller.host, controller.port)
                try:
                    response: Any = self._cluster.send(address, request, versions)
                except UnsupportedVersion:
                    raise self._too_old(what) from None
                if all(topic.error_code != NotController.code for topic in response.topics):
                    return response
            if self._runtime.monotonic() + CONTROLLER_PAUSE_S > give_up_at:
                raise AdminError(
                    f"The brokers at {self._addresses} have no controller; try again later"
                )
            self._runtime.sleep(CONTROLLER_PAUSE_S)


def _requestable(config: Mapping[str, object]) -> dict[str, str]:
    """Overrides as texts; ConfigError for one that is too long for a request."""
    texts = override_texts(config)
    for name, text in texts.items():
        size = max(len(part.encode(errors="replace")) for part in (name, text))
        if size > STRING_BYTES_MAX:
            raise ConfigError(
                f"{name[:NAME_SHOWN]}: {size} bytes, and a request carries at most "
                f"{STRING_BYTES_MAX}: shorten it, or give --zookeeper"
            )
    return texts


def _check_result(what: str, result: Any) -> None:
    """AdminError for the error of a result, with its text."""
    error = error_of(result.error_code)
    if error is not None:
        raise AdminError(f"{what}: {result.message or error}") from error
