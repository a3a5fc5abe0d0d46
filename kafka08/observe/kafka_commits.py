"""KafkaCommits: the offsets that groups committed to Kafka, asked for in batches.

A cluster may have a thousand groups, and a request asks about one. So a coordinator is asked about
all of its groups at once, a failure is repeated for all of them, and a group is asked about again
only after its partition of the offsets topic has grown: each commit and each expiry is a record
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafka08.client import ClusterClient
from kafka08.client.coordinators import Coordinators
from kafka08.clock import Clock
from kafka08.errors import KafkaError
from kafka08.hashing import group_partition
from kafka08.observe.snapshot import Committed
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition

TIMEOUT_S: Final = 3.0
"""For all groups whose coordinators are loading or moving."""
OfGroup = Mapping[TopicPartition, Committed]


class Position(NamedTuple):
    """The state of a group's partition of the offsets topic. end: None if it is unknown."""

    leader: int
    end: int | None


class Known(NamedTuple):
    """The response of a coordinator.

    position    of the offsets topic, from before the request
    is_settled  an earlier request at this position had its response already: a commit counts in
                the log a moment before its coordinator tells it
    """

    position: Position
    is_settled: bool
    offsets: OfGroup


class KafkaCommits:
    """Remembers the latest responses for the groups of the last `read_all`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Known] = {}
        self.requests_sent = 0

    def forget(self) -> None:
        """There is no offsets topic."""
        self._known = {}

    def read_all(
        self,
        cluster: ClusterClient | None,
        groups: Sequence[str],
        errors: dict[str, KafkaError],
        partitions: Sequence[TopicPartition],
        ends: Mapping[TopicPartition, int],
    ) -> dict[str, OfGroup]:
        """group → the offsets of `partitions` that it committed. While its coordinator does not
        respond, which is added to `errors`, these are those of the last response: a group that has
        older offsets in ZooKeeper would seem to go back to them. Left out are groups that never had
        a response.

        cluster      None: no broker responds
        errors       group → why it has no coordinator now; it is not asked about
        partitions   all of the cluster, with those of the offsets topic
        ends         their log ends as far as known, read before this call
        """
        known = {
            group: earlier._replace(is_settled=False)
            for group in groups
            if (earlier := self._known.get(group)) is not None
        }
        if cluster is not None:
            asked = [group for group in groups if group not in errors]
            known |= self._responses(cluster, asked, partitions, ends, errors)
        self._known = known
        return {group: result.offsets for group, result in known.items()}

    def _responses(
        self,
        cluster: ClusterClient,
        groups: Sequence[str],
        partitions: Sequence[TopicPartition],
        ends: Mapping[TopicPartition, int],
        errors: dict[str, KafkaError],
    ) -> dict[str, Known]:
        """group → its response, a new one or the one that still holds."""
        leaders = OffsetsTopicLeaders(cluster, partitions, ends)
        known: dict[str, Known] = {}
        open_: list[str] = []
        for group in groups:
            before = self._known.get(group)
            if before and before.is_settled and before.position == leaders.position(group):
                known[group] = before
            else:
                open_.append(group)
        coordinators = Coordinators(cluster, self._clock, timeout_s=TIMEOUT_S, find=leaders.find)
        for group, result in coordinators.fetch_found(open_, partitions).items():
            if isinstance(result, KafkaError):
                errors[group] = result
                continue
            position = leaders.asked[group]
            earlier = self._known.get(group)
            repeated = earlier is not None and earlier.position == position
            offsets = {tp: Committed(offset) for tp, offset in result.items()}
            known[group] = Known(position, repeated and position.end is not None, offsets)
        self.requests_sent += coordinators.requests_sent
        return known


class OffsetsTopicLeaders:
    """Knows the coordinators of groups without a request about each: a group's is the leader of
    its partition of the offsets topic.

    count   partitions of the offsets topic
    asked   group → its position when `find` last found its coordinator
    """

    def __init__(
        self,
        cluster: ClusterClient,
        partitions: Iterable[TopicPartition],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        self.count = sum(tp.topic == OFFSETS_TOPIC for tp in partitions)
        self.asked: dict[str, Position] = {}
        self._cluster = cluster
        self._ends = ends
        self._is_stale = False

    def find(self, groups: Sequence[str]) -> dict[str, Broker | KafkaError]:
        """group → its coordinator, or why it has none. From the second call on by new metadata: the
        groups are those whose coordinator did not respond."""
        if self._is_stale:
            try:
                self._cluster.refresh()
            except KafkaError as error:
                return dict.fromkeys(groups, error)
        self._is_stale = True
        found: dict[str, Broker | KafkaError] = {}
        for group in groups:
            try:
                found[group] = leader = self._leader(group)
            except KafkaError as error:
                found[group] = error
            else:
                self.asked[group] = Position(leader.id, self._ends.get(self._partition(group)))
        return found

    def position(self, group: str) -> Position | None:
        """None without a leader."""
        try:
            return Position(self._leader(group).id, self._ends.get(self._partition(group)))
        except KafkaError:
            return None

    def _leader(self, group: str) -> Broker:
        return self._cluster.metadata.leader(self._partition(group))

    def _partition(self, group: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, group_partition(group, self.count))
