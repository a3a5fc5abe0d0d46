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
from kafka08.client.group_offsets import GroupOffsets
from kafka08.clock import Clock
from kafka08.errors import KafkaError
from kafka08.exporter.view import Committed
from kafka08.hashing import group_partition
from kafka08.listing import some_of
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition

PATIENCE_SECONDS: Final = 3.0
"""For all groups whose coordinators are loading or moving."""
PAUSE_SECONDS: Final = 0.2
OfGroup = Mapping[TopicPartition, Committed]


class Position(NamedTuple):
    """The state of a group's partition of the offsets topic. end: None if it is unknown."""

    leader: int
    end: int | None


class Known(NamedTuple):
    """What a coordinator answered.

    position    of the offsets topic, from before the question
    is_settled  an earlier question at this position had been answered already: a commit counts in
                the log a moment before its coordinator tells it
    """

    position: Position
    is_settled: bool
    offsets: OfGroup


class KafkaCommits:
    """Remembers the answers for the groups of the last `read_all`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Known] = {}
        self.requests_sent = 0

    def read_all(
        self,
        cluster: ClusterClient,
        groups: Iterable[str],
        partitions: Sequence[TopicPartition],
        ends: Mapping[TopicPartition, int],
        unanswered: list[str],
    ) -> dict[str, OfGroup]:
        """group → the offsets of `partitions` that it committed; groups without an answer are left
        out, with the reason in `unanswered`.

        partitions   all of the cluster, with those of the offsets topic
        ends         their log ends as far as known, read before this call
        """
        count = sum(tp.topic == OFFSETS_TOPIC for tp in partitions)
        numbers = {group: group_partition(group, count) for group in groups} if count else {}
        known: dict[str, Known] = {}
        open_: dict[str, TopicPartition] = {}
        for group, number in numbers.items():
            tp = TopicPartition(OFFSETS_TOPIC, number)
            before = self._known.get(group)
            if before and before.is_settled and before.position == _position(cluster, tp, ends):
                known[group] = before
            else:
                open_[group] = tp
        wanted = GroupOffsets(partitions)
        give_up_at = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            positions = {group: _position(cluster, tp, ends) for group, tp in open_.items()}
            answers = self._ask_all(cluster, open_, wanted)
            failures = {g: said for g, said in answers.items() if isinstance(said, KafkaError)}
            for group, offsets in answers.items():
                position = positions[group]
                if isinstance(offsets, KafkaError) or position is None:
                    continue
                earlier = self._known.get(group)
                repeated = earlier is not None and earlier.position == position
                known[group] = Known(position, repeated and position.end is not None, offsets)
            open_ = {group: open_[group] for group in failures}
            if not self._may_repeat(cluster, failures, give_up_at):
                break
        self._known = known
        if failures:
            said = some_of(sorted(failures))
            why = next(iter(failures.values()))
            unanswered.append(f"offsets in Kafka of {len(failures)} groups: {said}: {why}")
        return {group: answer.offsets for group, answer in known.items()}

    def _may_repeat(
        self, cluster: ClusterClient, failures: Mapping[str, KafkaError], give_up_at: float
    ) -> bool:
        """Whether to ask about `failures` again; then waits a moment, and fetches new metadata."""
        if not failures or self._clock.monotonic() >= give_up_at:
            return False
        self._clock.sleep(PAUSE_SECONDS)
        try:
            cluster.refresh()
        except KafkaError:
            return False
        return True

    def _ask_all(
        self, cluster: ClusterClient, groups: Mapping[str, TopicPartition], wanted: GroupOffsets
    ) -> dict[str, OfGroup | KafkaError]:
        """group → its offsets, or why they are unknown."""
        found: dict[str, OfGroup | KafkaError] = {}
        by_leader: dict[Broker, list[str]] = {}
        for group, tp in groups.items():
            try:
                by_leader.setdefault(cluster.metadata.leader(tp), []).append(group)
            except KafkaError as error:
                found[group] = error
        for broker, names in by_leader.items():
            try:
                with cluster.connection(broker) as connection:
                    self.requests_sent += len(names)
                    for name, offsets in wanted.ask(connection, names):
                        found[name] = committed(offsets)
            except KafkaError as error:
                found |= {name: error for name in names if name not in found}
        return found


def _position(
    cluster: ClusterClient, tp: TopicPartition, ends: Mapping[TopicPartition, int]
) -> Position | None:
    """None without a leader."""
    try:
        return Position(cluster.metadata.leader(tp).id, ends.get(tp))
    except KafkaError:
        return None


def committed(offsets: dict[TopicPartition, int] | KafkaError) -> OfGroup | KafkaError:
    if isinstance(offsets, KafkaError):
        return offsets
    return {tp: Committed(offset) for tp, offset in offsets.items()}
