"""BrokerAdmin: creates, lists, describes and deletes topics by requests, without ZooKeeper.

Brokers from 0.10.1 on (`api.level` 0.10.2 of ours) serve CreateTopics and DeleteTopics; older ones
only list and describe, without dead replicas. Brokers do not return overrides, or whether a topic
is being deleted.
A refused operation raises AdminError and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka08.admin.description import PartitionDescription, TopicDescription
from kafka08.assignment import check_assignment
from kafka08.client import PLAINTEXT, Security
from kafka08.client.cluster import ClusterClient
from kafka08.errors import (
    NO_ERROR,
    AdminError,
    ApiError,
    NoBrokersAvailable,
    NoSuchTopicOrPartition,
    NotController,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    check,
)
from kafka08.lifecycle import Closeable
from kafka08.nearest import did_you_mean
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.create_topics import (
    NO_COUNT,
    CreateTopicsRequest,
    NewTopic,
    ReplicaAssignment,
    TopicConfigEntry,
)
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.types import Request
from kafka08.runtime import Runtime
from kafka08.runtime.threads import THREADS
from kafka08.structs import Broker, host_port
from kafka08.topic_config import override_texts
from kafka08.topic_name import deletion_fault_of, fault_of

CREATE_TOPICS_KEY: Final = 19
PROBE_MS: Final = 5000
"""How long to wait for the list of supported requests: a broker of 0.9 does not respond."""
CONTROLLER_S: Final = 10.0
"""How long a controller is looked for."""
CONTROLLER_PAUSE_S: Final = 0.5
MARGIN_MS: Final = 10_000
"""Added to the timeout in a request to get the timeout for its response."""


class BrokerAdmin(Closeable):
    """The operations of AdminClient that brokers serve. Usable in a `with` statement.

    timeout_ms   how long brokers may take to elect leaders of a new topic, or to delete a topic
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
        self._probe, self._cluster = (
            ClusterClient(bootstrap, timeout_ms=longest_ms, security=security, runtime=runtime)
            for longest_ms in (PROBE_MS, timeout_ms + MARGIN_MS)
        )
        self._serves: bool | None = None

    def close(self) -> None:
        self._probe.close()
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
        self._require_topic_requests()
        topic = NewTopic(
            name,
            NO_COUNT if assignment is not None else partitions,
            NO_COUNT if assignment is not None else replication_factor,
            [ReplicaAssignment(n, list(replicas)) for n, replicas in (assignment or {}).items()],
            [TopicConfigEntry(*item) for item in override_texts(config or {}).items()],
        )
        request = CreateTopicsRequest([topic], self._timeout_ms, validate_only=dry_run, version=1)
        (result,) = self._ask_controller(request).topics
        try:
            check(result.error_code, name)
        except TopicAlreadyExists:
            raise AdminError(f'Topic "{name}" already exists.') from None
        except RequestTimedOut:
            raise AdminError(
                f"Topic {name} is created, but has no leaders after {self._timeout_ms} ms; kafka08 "
                f"topic describe {name} shows its state"
            ) from None
        except ApiError as error:
            raise AdminError(f"Topic {name}: {result.message or error}") from None
        if dry_run:
            return {}
        # Other brokers learn of the topic a moment after the controller's.
        # All topics: a request by name would create the topic again if it was deleted since.
        metadata = self._ask_controller(MetadataRequest(None, version=1))
        return {
            p.partition: tuple(p.replicas)
            for topic in metadata.topics
            if topic.topic == name
            for p in topic.partitions
        }

    def delete_topic(self, name: str, *, dry_run: bool = False) -> bool:
        """Delete a topic. False if it is not gone in time: it is deleted later, or never by brokers
        without delete.topic.enable=true. AdminError for a missing topic, and for an internal one,
        which brokers would delete. `dry_run`: check only.
        """
        self._require_topic_requests()
        self.describe_topics([name])
        if fault := deletion_fault_of(name):
            raise AdminError(fault)
        if dry_run:
            return True
        response = self._ask_controller(DeleteTopicsRequest([name], self._timeout_ms))
        (result,) = response.topics
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

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """The named topics (None: all, sorted) from a broker's metadata, without overrides;
        AdminError for a missing one. It requests all topics: a request by name may create one."""
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

    # Requests

    def _require_topic_requests(self) -> None:
        if not self._serves_topic_requests():
            raise AdminError(
                f"The brokers at {self._addresses} are older than 0.10.1 and do not serve requests "
                "to create or delete topics: give --zookeeper"
            )

    def _serves_topic_requests(self) -> bool:
        """Whether the brokers are of 0.10.1 or later. NoBrokersAvailable if none responds."""
        if self._serves is None:
            try:
                response: Any = self._probe.ask_any(ApiVersionsRequest())
                self._serves = CREATE_TOPICS_KEY in {api.key for api in response.apis}
            except NoBrokersAvailable:
                # A broker of 0.8 closes the connection, one of 0.9 does not respond.
                self._cluster.ask_any(MetadataRequest(None))
                self._serves = False
        return self._serves

    def _metadata(self) -> Any:
        """All topics; version 1, with dead replicas and the controller, where it is served."""
        version = 1 if self._serves_topic_requests() else 0
        return self._cluster.ask_any(MetadataRequest(None, version=version))

    def _ask_controller(self, request: Request) -> Any:
        """The response of the current controller; AdminError if there is none."""
        give_up_at = self._runtime.monotonic() + CONTROLLER_S
        while True:
            metadata = self._metadata()
            brokers = {broker.broker_id: broker for broker in metadata.brokers}
            controller = brokers.get(metadata.controller_id)
            if controller is not None:
                address = Broker(controller.broker_id, controller.host, controller.port)
                response: Any = self._cluster.send(address, request)
                if all(topic.error_code != NotController.code for topic in response.topics):
                    return response
            if self._runtime.monotonic() + CONTROLLER_PAUSE_S > give_up_at:
                raise AdminError(
                    f"The brokers at {self._addresses} have no controller; try again later"
                )
            self._runtime.sleep(CONTROLLER_PAUSE_S)
