"""Samples and ages that all groups share which have committed nothing in a topic. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kafka08.exporter.histories import Histories
from kafka08.metrics import Labels, Shared
from kafka08.observe.group_lags import GroupLags
from kafka08.observe.snapshot import ClusterView
from kafka08.structs import TopicPartition


class UncommittedTopic(NamedTuple):
    """lags     partition → lag of a group that has committed nothing there, where it is known
    groups   those that the topic concerns, which may have committed some of its partitions
    """

    lags: Mapping[TopicPartition, int]
    groups: list[str]


def uncommitted_topics(view: ClusterView) -> dict[str, UncommittedTopic]:
    """The topics where at least one such lag is known."""
    found: dict[str, UncommittedTopic] = {}
    for name in view.groups:
        for topic, shared in view.lags[name].uncommitted.items():
            if not shared.sum.known:
                continue
            if topic not in found:
                found[topic] = UncommittedTopic(shared.known(), [])
            found[topic].groups.append(name)
    return found


def shared_samples(
    view: ClusterView,
    groups: Collection[str],
    values: Mapping[TopicPartition, float],
    label: str,
    labels_of: Callable[[TopicPartition], Labels],
) -> Shared:
    """The samples of these groups for partitions in which they have committed nothing.

    values      of those partitions
    label       the name of the group's label; the others are `labels_of` a partition
    """
    places = {tp: place for place, tp in enumerate(values)}
    owners = [(name, [places[tp] for tp in view.lags[name].own if tp in places]) for name in groups]
    return Shared(label, owners, [labels_of(tp) for tp in values], list(values.values()))


class Ages:
    """The ages of the first messages of logs: the time lags of groups that have committed nothing
    there. Of one view."""

    def __init__(self, view: ClusterView, histories: Histories) -> None:
        self._view = view
        self._histories = histories
        self._oldest_first: dict[str, list[tuple[float, TopicPartition]]] = {}

    def of(self, lags: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """partition → its age in seconds, where it is known."""
        found = {tp: self._histories.seconds_late(self._view, tp, 0) for tp in lags}
        return {tp: seconds for tp, seconds in found.items() if seconds is not None}

    def oldest(self, lags: GroupLags) -> list[float]:
        """The largest age in each topic, of partitions in which the group has committed nothing."""
        found = []
        for topic, shared in lags.uncommitted.items():
            if shared.sum.known:
                if topic not in self._oldest_first:
                    ages = self.of(shared.known())
                    self._oldest_first[topic] = sorted(
                        ((age, tp) for tp, age in ages.items()), reverse=True
                    )
                found += next(
                    ([age] for age, tp in self._oldest_first[topic] if tp not in lags.own), []
                )
        return found
