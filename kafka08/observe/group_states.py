"""GroupStates: groups of both kinds, from ZooKeeper and their coordinators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka08.client.coordinators import Coordinators
from kafka08.errors import ConsumerCoordinatorNotAvailable, KafkaError
from kafka08.hashing import group_partition
from kafka08.listing import counted, some_of
from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.coordinator_reader import CoordinatorReader
from kafka08.observe.kafka_commits import KafkaCommits
from kafka08.observe.layout import Layout
from kafka08.observe.logs import Client
from kafka08.observe.members import read_members_of
from kafka08.observe.snapshot import Committed, GroupState, Owner
from kafka08.observe.trees import Tree
from kafka08.runtime import ClientRuntime
from kafka08.structs import NO_LEADER, NO_OFFSET, OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children
from kafka08.zk.store import ClusterStore

DESCRIBED_SINGLY: Final = 3
"""Groups of which each coordinator is asked; for more all groups are listed."""
IN_MEMORY_MAX: Final = 200_000
"""Partitions in the responses of coordinators that are in memory at a time, most without an offset:
each group is asked about every partition of the cluster."""
NO_OFFSETS: Final[Tree[Committed]] = Tree(set())
NO_OWNERS: Final[Tree[Owner]] = Tree(set())


@dataclass(frozen=True, slots=True)
class InKafka:
    """group → its committed offsets, and why its coordinator did not respond."""

    offsets: dict[str, Mapping[TopicPartition, Committed]] = field(default_factory=dict)
    errors: dict[str, KafkaError] = field(default_factory=dict)


class GroupStates:
    """Remembers what coordinators said. `store`: None without ZooKeeper."""

    def __init__(self, store: ClusterStore | None, runtime: ClientRuntime) -> None:
        self._store = store
        self._runtime = runtime
        self._kafka_commits = KafkaCommits(runtime)

    @property
    def offset_fetches_sent(self) -> int:
        """Requests to coordinators, one per group."""
        return self._kafka_commits.requests_sent

    def committed(
        self,
        layout: Layout,
        cluster: Client,
        groups: Sequence[str],
        led: Collection[TopicPartition],
        failed: list[str],
        *,
        ends: Mapping[TopicPartition, int | str] = {},
    ) -> InKafka:
        """`ends`: of the logs of the offsets topic, where known."""
        count = len(layout.assigned.get(OFFSETS_TOPIC, ()))
        if not count:  # no broker is asked for a coordinator, which would create the topic
            self._kafka_commits.forget()
            return InKafka()
        errors: dict[str, KafkaError] = {}
        if isinstance(cluster, KafkaError):
            errors = dict.fromkeys(groups, cluster)
        elif silent := without_coordinator(groups, count, led):
            why = ConsumerCoordinatorNotAvailable(f"no live broker leads {OFFSETS_TOPIC}")
            errors = dict.fromkeys(silent, why)
        offsets = self._kafka_commits.read_all(
            None if isinstance(cluster, KafkaError) else cluster,
            groups,
            errors,
            list(layout.partitions),
            {tp: end for tp, end in ends.items() if isinstance(end, int)},
        )
        return noted(InKafka(offsets, errors), failed)

    def strictly_committed(
        self,
        layout: Layout,
        cluster: Client,
        groups: Sequence[str],
        coordinators: Coordinators,
        failed: list[str],
    ) -> InKafka:
        """The offsets of all partitions that have had a leader: no broker has heard of another."""
        if OFFSETS_TOPIC not in layout.assigned:
            return InKafka()
        if isinstance(cluster, KafkaError):
            return noted(InKafka({}, dict.fromkeys(groups, cluster)), failed)
        had_leaders = self._had_leaders(layout)
        found = InKafka()
        for some in portions(groups, len(had_leaders)):
            for group, result in coordinators.fetch(dict.fromkeys(some, had_leaders)).items():
                if isinstance(result, KafkaError):
                    found.errors[group] = result
                else:
                    found.offsets[group] = {
                        tp: Committed(offset)
                        for tp, offset in result.items()
                        if offset != NO_OFFSET
                    }
        return noted(found, failed)

    def _had_leaders(self, layout: Layout) -> list[TopicPartition]:
        if self._store is None:
            states = layout.states or {}
            return [tp for tp, state in states.items() if state.leader != NO_LEADER]
        listed = self._store.zk.pipeline(
            [Children(paths.partitions(topic)) for topic in layout.assigned]
        )
        return [
            TopicPartition(topic, number)
            for topic, names in zip(layout.assigned, listed, strict=True)
            for number in layout.assigned[topic]
            if str(number) in unless_gone(names, [])
        ]

    def coordinated(
        self,
        layout: Layout,
        cluster: Client,
        names: Sequence[str],
        failed: list[str],
    ) -> dict[str, CoordinatedGroup | KafkaError]:
        """Every group that brokers coordinate. Of those of `names` that are not listed: why that is
        unknown, if a broker did not respond."""
        if not layout.may_coordinate:
            return {}
        try:
            if isinstance(cluster, KafkaError):
                raise cluster
            listed = CoordinatorReader(cluster, self._runtime).groups()
        except KafkaError as error:
            failed.append(f"coordinated groups: {error}")
            return dict.fromkeys(names, error)
        found: dict[str, CoordinatedGroup | KafkaError] = {}
        if listed.failed_requests:
            failed.extend(listed.failed_requests)
            found |= dict.fromkeys(names, KafkaError(listed.failed_requests[0]))
        return found | {group.name: group for group in listed.groups}

    def described(
        self, layout: Layout, cluster: Client, groups: Sequence[str]
    ) -> dict[str, CoordinatedGroup | KafkaError]:
        """Those of `groups` that brokers coordinate. Of many groups brokers are asked for lists,
        which costs less than a request for each."""
        if not layout.may_coordinate:
            return {}
        if isinstance(cluster, KafkaError):
            return dict.fromkeys(groups, cluster)
        reader = CoordinatorReader(cluster, self._runtime)
        found: dict[str, CoordinatedGroup | KafkaError] = {}
        failed: list[str] = []
        if len(groups) > DESCRIBED_SINGLY:
            listed = self.coordinated(layout, cluster, (), failed)
            found |= {name: listed[name] for name in groups if name in listed}
            if not failed:
                return found
        for name in groups:
            if name not in found:
                try:
                    described = reader.describe(name)
                except KafkaError as error:
                    found[name] = error
                else:
                    if described is not None:
                        found[name] = described
        return found

    def of(
        self,
        names: Sequence[str],
        in_zookeeper: Collection[str],
        coordinated: Mapping[str, CoordinatedGroup | KafkaError],
        in_kafka: InKafka,
        trees: Mapping[str, Tree[Committed]],
        owners: Mapping[str, Tree[Owner]] = {},
    ) -> dict[str, GroupState]:
        registered = {} if self._store is None else read_members_of(self._store.zk, list(trees))
        there = frozenset(in_zookeeper)
        found = {}
        for name in names:
            one = coordinated.get(name)
            known = None if isinstance(one, KafkaError) else one
            tree, owned = trees.get(name, NO_OFFSETS), owners.get(name, NO_OWNERS)
            members = registered.get(name, ())
            count = len(members) + (0 if known is None else len(known.members))
            found[name] = GroupState(
                None if isinstance(one, KafkaError) and not count else count,
                tree.values,
                in_kafka.offsets.get(name, {}),
                name in there,
                members,
                owned.values,
                (*owned.strays, *tree.strays),
                tree.unreadable,
                tree.topics | owned.topics,
                known,
                one if isinstance(one, KafkaError) else None,
                in_kafka.errors.get(name),
            )
        return found


def noted(found: InKafka, failed: list[str]) -> InKafka:
    """`found`, with its errors among the failed requests."""
    groups: dict[str, list[str]] = {}
    for group, error in found.errors.items():
        groups.setdefault(str(error), []).append(group)
    for why, names in groups.items():
        failed.append(
            f"offsets in Kafka of {counted(len(names), 'group')}: {some_of(names)}: {why}"
        )
    return found


def portions(groups: Sequence[str], partitions: int) -> Iterator[Sequence[str]]:
    """Groups whose responses have up to IN_MEMORY_MAX partitions together, or one group. Pure."""
    size = max(1, IN_MEMORY_MAX // max(1, partitions))
    return (groups[first : first + size] for first in range(0, len(groups), size))


def without_coordinator(
    groups: Iterable[str], count: int, led: Collection[TopicPartition]
) -> list[str]:
    """Those of `groups` whose partition of the offsets topic (of `count`) has no leader in `led`.
    Requests for each of a thousand such groups would take seconds each. Pure."""
    numbers = {tp.partition for tp in led if tp.topic == OFFSETS_TOPIC}
    return [group for group in groups if count and group_partition(group, count) not in numbers]
