"""DeletedTopics: drops topics that were deleted while nobody could tell this broker.

Only the controller's UpdateMetadata with LEADER_DURING_DELETE removes a topic from the metadata
cache. A broker misses it while its ZooKeeper session is over, or if the controller dies before it
is sent; no later request names the topic. 0.8.2.2 then lists it until it is restarted.

So at each new session, and at the first UpdateMetadata of each controller, everything in the cache
is a suspect. The controller sends all existing partitions to a broker that joined, and to all when
its term begins: those suspects are replaced. ZooKeeper decides about what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kafka08.broker.cluster.metadata_cache import MetadataCache, PartitionStates
from kafka08.broker.groups.group_coordinator import GroupCoordinator
from kafka08.broker.topics.topic_waits import TopicWaits
from kafka08.errors import ZooKeeperError
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.yielding import yielding_batches
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

CHECK_MS: Final = 2500


class DeletedTopics:
    """The suspects of one broker."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        cache: MetadataCache,
        group_coordinator: GroupCoordinator,
        topic_waits: TopicWaits,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._cache = cache
        self._group_coordinator = group_coordinator
        self._topic_waits = topic_waits
        self._suspects: PartitionStates = {}
        self._controller_epoch = 0

    def controller_speaks(self, controller_epoch: int) -> None:
        """An UpdateMetadata request is about to be applied. Never switches."""
        if controller_epoch != self._controller_epoch:
            self._controller_epoch = controller_epoch
            self.suspect_all()

    def suspect_all(self) -> None:
        """This broker is about to register, or hears of another controller. Never switches."""
        self._suspects = self._cache.states()

    def check(self) -> None:
        """Drop the suspects that do not exist; called every CHECK_MS. Switches. A topic whose
        deletion is queued is checked again, and so are all if ZooKeeper cannot be asked."""
        suspects = self._suspects
        if not suspects:
            return
        left = self._unchanged(suspects)
        if left:
            try:
                gone, left = self._sort_out(left)
            except ZooKeeperError as error:
                logger.warning(
                    "Cannot check whether %d partitions were deleted: %s. Trying again in %g s",
                    len(left),
                    error,
                    CHECK_MS / 1000,
                )
                return
            # A task that ran meanwhile may have heard of one; none runs before these are dropped.
            self._forget(self._unchanged(gone).keys())
        # Otherwise `suspect_all` has begun again meanwhile.
        if self._suspects is suspects:
            self._suspects = left

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        """As after an UpdateMetadata request that says so. Never switches."""
        if partitions:
            logger.info(
                "Dropping %d partitions that were deleted unheard, %s the first",
                len(partitions),
                min(partitions),
            )
            self._cache.remove(partitions)
            self._group_coordinator.forget_partitions(partitions)
            for topic in sorted({tp.topic for tp in partitions}):
                self._topic_waits.topic_updated(topic)

    def _unchanged(self, suspects: PartitionStates) -> PartitionStates:
        """Those that the controller has not sent again."""
        known = self._cache.partition_state
        return {tp: state for tp, state in suspects.items() if known(tp) is state}

    def _sort_out(self, suspects: PartitionStates) -> tuple[PartitionStates, PartitionStates]:
        """(those that do not exist, those whose deletion is queued). Switches."""
        store = self._store
        store.catch_up()
        queued, existing = set(store.topics_to_delete()), set(store.topics())
        topics = sorted({tp.topic for tp in suspects} & existing)
        assigned: dict[str, dict[int, tuple[int, ...]]] = {}
        for turn in yielding_batches(topics, self._runtime):
            assigned |= store.readable_assignments(turn)
        gone = {
            tp: state
            for tp, state in suspects.items()
            if tp.topic not in existing
            # An assignment that cannot be read proves nothing.
            or (tp.topic in assigned and tp.partition not in assigned[tp.topic])
        }
        return gone, {tp: state for tp, state in suspects.items() if tp.topic in queued}
