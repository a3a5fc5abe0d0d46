"""FollowerTruncation: where the log of a follower differs from its leader's, it is truncated.

Brokers that speak leader epochs are asked where theirs end, before anything is fetched, and the log
is truncated to where it differs (epoch_search). Where the logs have no epoch in common, as those of
older formats, and with older leaders, their messages are compared:

Above its HW a log may differ from that of a new leader. So the fetcher first fetches from the HW
on, and the log is truncated where the leader has other messages. If the leader does not even have
the HW (OffsetOutOfRange), the log is truncated, or restarted at the leader's start; or the broker
halts rather than lose messages.

Below the leader's HW a difference may also come from a cleaner, and a replica in sync must keep
what it has there: its leader may die next. So a replica that ZooKeeper names in sync is compared
from the leader's HW on, above which nothing is cleaned (LogCleaner), unless the same offset has
another message. Any other is truncated: where the leader lacks offsets, the messages of a follower
may never have been committed.

All of that only for a leader that ZooKeeper still names, in the epoch that this broker has heard
of. A LeaderAndIsr request may be late: meanwhile another leader may have been elected whose ISR
this replica has joined, because a fetch request names no epoch. What it truncates then may be
committed. 0.8.2.2 truncates all the same.

Source: kafka.server.ReplicaFetcherThread 0.8.2.2 and 0.11.0.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka08.broker.replication.epoch_search import EpochSearch
from kafka08.broker.replication.log_comparison import Difference, DivergenceSearch, same_entries
from kafka08.broker.replication.partition_fetch_state import PartitionFetchState
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import (
    CorruptLog,
    FileRefused,
    KafkaError,
    NotLeaderForPartition,
    ProtocolError,
    ZooKeeperError,
    error_of,
)
from kafka08.protocol.fetch import FetchPartitionResponse
from kafka08.protocol.message_set import begins_whole
from kafka08.protocol.offset_for_leader_epoch import EpochEndOffset
from kafka08.runtime import BrokerRuntime
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, Broker, LeaderAndIsr, TopicPartition
from kafka08.topic_config import unclean_elections_allowed

if TYPE_CHECKING:
    from kafka08.log.manager import LogManager
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)


class FollowerTruncation:
    """Truncates the logs that a ReplicaFetcher copies from `leader`. Its methods switch: a
    partition that is not followed any more after that stays as it is.

    log_manager  truncates logs and writes their recovery points
    store        ZooKeeper: the states of partitions that are to be truncated, and a topic's
                 unclean.leader.election.enable
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: BrokerRuntime,
        log_manager: LogManager,
        store: ClusterStore,
        leader: Broker,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._log_manager = log_manager
        self._store = store
        self._leader = leader
        self.has_lowered = False
        """Whether a HW was lowered for a search: its checkpoint must be, too."""

    def settle(
        self,
        wanted: Mapping[TopicPartition, PartitionFetchState],
        responses: dict[TopicPartition, FetchPartitionResponse],
    ) -> dict[TopicPartition, KafkaError]:
        """Compare the logs above their HW with the new leader's messages. Equal messages stay, and
        the next request continues behind them; at a difference the log is truncated. All logs at
        once, because recovery points must be written before anything else is appended.

        Afterwards `responses` has what must be appended. Returns why logs cannot be compared or
        truncated now: CorruptLog, FileRefused, NotLeaderForPartition, or the error of ZooKeeper.
        """
        cuts: dict[TopicPartition, int] = {}
        problems: dict[TopicPartition, KafkaError] = {}
        committed: dict[TopicPartition, int] = {}
        for tp, followed in wanted.items():
            if tp in responses and followed.is_followed:
                try:
                    self._compare(tp, followed, responses, cuts, committed)
                except (CorruptLog, FileRefused) as error:
                    problems[tp] = error.with_traceback(None)
        if cuts:
            problems |= self._cut(cuts, wanted, committed)
            for tp, offset in cuts.items():
                # The comparison goes on elsewhere, or a wrapper around the offset was dropped.
                if wanted[tp].unsettled is not None or wanted[tp].log.log_end_offset < offset:
                    responses.pop(tp, None)
        for tp in problems:
            responses.pop(tp, None)
        return problems

    def settle_by_epochs(
        self,
        asking: Mapping[TopicPartition, PartitionFetchState],
        ask: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, EpochEndOffset]],
    ) -> tuple[dict[TopicPartition, KafkaError], dict[TopicPartition, KafkaError]]:
        """Find where these logs differ from the leader's, and truncate them there. Those without an
        epoch in common are compared later. Returns the leader's errors and refused flushes; and why
        logs cannot be truncated now, as `settle`. Raises as `ask`, which returns where epochs end.
        """
        refused: dict[TopicPartition, KafkaError] = {}
        cuts: dict[TopicPartition, int] = {}
        left = dict(asking)
        while left:
            answers = ask({tp: one.epochs.wanted for tp, one in left.items() if one.epochs})
            for tp, one in list(left.items()):
                answer, search = answers.get(tp), one.epochs
                error = None if answer is None else error_of(answer.error_code)
                if not one.is_followed or search is None:
                    del left[tp]  # another leader is followed by now
                elif answer is None or error is not None:
                    refused[tp] = error or ProtocolError(f"no answer for the epoch of {tp}")
                    del left[tp]
                else:
                    search.advance(answer.end_offset)
                    if search.is_done:
                        del left[tp]
                        self._settle_by(search, one, cuts)
        for tp in [tp for tp in cuts if cuts[tp] < asking[tp].partition.high_watermark]:
            try:
                self._check_loss(tp, asking[tp], cuts[tp])
            except (NotLeaderForPartition, ZooKeeperError) as unconfirmed:
                refused[tp] = unconfirmed
                del cuts[tp]
        # By epochs nothing is truncated that the leader has, so its HW is no limit.
        problems = self._cut(cuts, asking, committed={}) if cuts else {}
        # The next fetch acknowledges these logs, of which an earlier flush may have been refused.
        for tp, one in asking.items():
            if one.is_followed and one.unsettled is None:
                try:
                    one.flush_owed(self._runtime.run_native)
                except FileRefused as refusal:
                    refused[tp] = refusal
        return refused, problems

    def _settle_by(
        self, search: EpochSearch, followed: PartitionFetchState, cuts: dict[TopicPartition, int]
    ) -> None:
        """A search is done: note where to truncate, if anywhere."""
        if search.common_end is None:
            followed.epochs = None
        elif search.common_end >= followed.log.log_end_offset:
            followed.settle()
        else:
            cuts[followed.topic_partition] = search.common_end

    def _check_loss(self, tp: TopicPartition, followed: PartitionFetchState, end: int) -> None:
        """The leader was elected without messages that were acknowledged: what it has ends, or
        differs, at `end`, below our HW. Unless the topic allows that, halt, so that an operator can
        decide. NotLeaderForPartition or ZooKeeperError if the leader is not confirmed. Switches."""
        # Read before the leader is confirmed: nothing may switch between that and the truncation.
        allowed = self._may_lose_messages(tp.topic)
        if self._confirmed(followed) and not allowed:
            self._halt(tp, followed.log.log_end_offset, end)
        self.has_lowered = True

    def _halt(self, tp: TopicPartition, end: int, leader_end: int) -> None:
        logger.critical(
            "Halting because log truncation is not allowed for topic %s, Current leader %d's "
            "latest offset %d is less than replica %d's latest offset %d",
            tp.topic,
            self._leader.id,
            leader_end,
            self._config.broker_id,
            end,
        )
        self._runtime.halt(1)

    def _compare(
        self,
        tp: TopicPartition,
        followed: PartitionFetchState,
        responses: dict[TopicPartition, FetchPartitionResponse],
        cuts: dict[TopicPartition, int],
        committed: dict[TopicPartition, int],
    ) -> None:
        """Reduce the response to what must be appended, remove it if the comparison must continue,
        or note where to truncate: if cleaners may have made the difference, with the offset below
        which everything is committed."""
        data = responses[tp]
        # An error says nothing about messages; the fetcher's `_take` handles it.
        if data.error_code:
            return
        start, end = followed.unsettled, followed.log.log_end_offset
        # Nothing lies above the HW, and below it the logs are the same.
        if start is None or start >= end:
            followed.settle()
            return
        same, difference = same_entries(followed.log, start, data.message_set)
        differ = difference is not Difference.NONE
        equal_end = same.last_offset + 1 if same.count else start
        if difference is not Difference.CERTAIN:
            committed[tp] = data.high_watermark
        if followed.search is not None:
            committed[tp] = min(data.high_watermark, followed.search.leader_end)
            self._continue_search(tp, followed, equal_end, differ, cuts)
            # Neither: the set is the beginning of one message, for which `_take` raises the fetch
            # size.
            if same.count or differ:
                del responses[tp]
            return
        # What follows in the response is the leader's, and is appended after the cut.
        if differ:
            cuts[tp] = equal_end
        elif equal_end == end:
            followed.settle()
        elif same.count:
            followed.unsettled = equal_end
            followed.ask_for(self._config.replica_fetch_max_bytes)
            del responses[tp]
            return
        rest = memoryview(data.message_set)[same.size :]
        if same.size and not begins_whole(rest):
            rest = rest[:0]  # the rest of a cut message is no message for which room is needed
        responses[tp] = replace(data, message_set=rest)

    def _continue_search(
        self,
        tp: TopicPartition,
        followed: PartitionFetchState,
        equal_end: int,
        differs: bool,
        cuts: dict[TopicPartition, int],
    ) -> None:
        """Note the offset to truncate to if the search is done, else where it continues."""
        search = followed.search
        assert search is not None
        window = search.start
        search.advance(equal_end, differs=differs)
        if search.is_done:
            cuts[tp] = search.differs_from
        else:
            continued = equal_end if search.start == window else search.start
            if continued != followed.unsettled:
                followed.unsettled = continued
                followed.ask_for(self._config.replica_fetch_max_bytes)

    def _cut(
        self,
        cuts: Mapping[TopicPartition, int],
        wanted: Mapping[TopicPartition, PartitionFetchState],
        committed: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, KafkaError]:
        """Truncate logs, or go on comparing those in sync at the offsets in `committed`; returns
        why neither can be done. Switches."""
        states, problems = self._confirm([wanted[tp] for tp in cuts])
        confirmed: dict[TopicPartition, int] = {}
        for tp, state in states.items():
            followed = wanted[tp]
            kept_end = min(committed.get(tp, 0), followed.log.log_end_offset)
            # `_confirm` switches: a partition may have another leader by now.
            if not followed.is_followed:
                continue
            # What differs below was cleaned, here or there: see the header.
            if cuts[tp] < kept_end and self._is_in_sync(state):
                followed.compare_from(kept_end)
                followed.ask_for(self._config.replica_fetch_max_bytes)
            else:
                confirmed[tp] = cuts[tp]
        if confirmed:
            problems |= self._log_manager.truncate_to(confirmed)
        for tp in confirmed:
            if tp not in problems:
                _clamp(wanted[tp])
        return problems

    def _is_in_sync(self, state: LeaderAndIsr) -> bool:
        return self._config.broker_id in state.isr

    def _confirm(
        self, followed: list[PartitionFetchState]
    ) -> tuple[dict[TopicPartition, LeaderAndIsr], dict[TopicPartition, KafkaError]]:
        """(the states of the partitions whose leader ZooKeeper confirms, why it does not confirm
        the others). Switches."""
        try:
            # The server that answers may be behind: without this it could confirm a leader of the
            # past.
            self._store.catch_up()
            found = self._store.leader_and_isr([one.topic_partition for one in followed])
        except KafkaError as error:
            return {}, {one.topic_partition: error for one in followed}
        states: dict[TopicPartition, LeaderAndIsr] = {}
        problems: dict[TopicPartition, KafkaError] = {}
        for one in followed:
            tp, epoch = one.topic_partition, one.partition.leader_epoch
            state = found.get(tp)
            if state is not None and (state.leader, state.leader_epoch) == (self._leader.id, epoch):
                states[tp] = state
            else:
                problems[tp] = self._not_leader(state, epoch)
        return states, problems

    def _not_leader(self, state: LeaderAndIsr | None, epoch: int) -> NotLeaderForPartition:
        """The error if `state` is not that of the leader that is followed in this epoch."""
        if state is None:
            found = "no leader"
        else:
            found = f"leader {state.leader} in leader epoch {state.leader_epoch}"
        return NotLeaderForPartition(
            f"ZooKeeper has {found}, this broker has heard of leader {self._leader.id} in leader "
            f"epoch {epoch}; it truncates nothing until the controller tells it of the other"
        )

    # Out of range

    def reset(
        self,
        tp: TopicPartition,
        followed: PartitionFetchState,
        leader_offset: Callable[[TopicPartition, int], int],
    ) -> None:
        """The leader does not have the offset that we need: truncate or restart the log so that it
        can follow. KafkaError if that is not possible now. Switches.

        leader_offset  asks the leader for the LATEST_OFFSET or EARLIEST_OFFSET
        """
        leader_end = leader_offset(tp, LATEST_OFFSET)
        leader_start = leader_offset(tp, EARLIEST_OFFSET)
        by_epochs = followed.epochs is not None
        position = followed.log.log_end_offset if by_epochs else followed.position
        if leader_start > position and leader_end >= position:
            self._restart_at_leader_start(tp, followed, leader_start)
        elif not by_epochs:  # else the next round asks for them
            # The leader may have grown since it refused the offset.
            end = min(leader_end, followed.log.log_end_offset)
            self._search_from_leader_end(tp, followed, end, leader_start)

    def _search_from_leader_end(
        self, tp: TopicPartition, followed: PartitionFetchState, leader_end: int, leader_start: int
    ) -> None:
        """The leader was elected with fewer messages than we have. If the topic allows unclean
        elections, truncate to its log end, or to where the logs differ below that, for which the
        next responses are compared; else halt, so that an operator can decide."""
        end, me = followed.position, self._config.broker_id
        # Read before the leader is confirmed: nothing may switch between that and the truncation.
        allowed = self._may_lose_messages(tp.topic)
        if not self._confirmed(followed):
            return
        if not allowed:
            self._halt(tp, end, leader_end)
        search = DivergenceSearch(leader_end, max(leader_start, followed.log.log_start_offset))
        if search.is_done:
            for unreadable in self._log_manager.truncate_to({tp: leader_end}).values():
                raise unreadable
            _clamp(followed)
        else:
            followed.search, followed.unsettled = search, search.start
            # The proof must outlive the search: if it is interrupted, the leader may have the
            # former HW by then, and everything below that would count as compared.
            followed.partition.high_watermark = search.lowest
            self.has_lowered = True
        logger.warning(
            "Replica %d for partition %s reset its fetch offset from %d to current leader %d's "
            "latest offset %d",
            me,
            tp,
            end,
            self._leader.id,
            leader_end,
        )

    def _restart_at_leader_start(
        self, tp: TopicPartition, followed: PartitionFetchState, leader_start: int
    ) -> None:
        """The leader has deleted the messages after our log end: restart at its log start."""
        end = followed.position
        if (state := self._confirmed(followed)) is None:
            return
        if leader_start < followed.log.log_end_offset and self._is_in_sync(state):
            # Only our HW is below: in sync we must keep what the leader has, see the header.
            followed.compare_from(leader_start)
            return
        self._log_manager.truncate_fully_and_start_at(tp, leader_start)
        _clamp(followed)
        logger.warning(
            "Replica %d for partition %s reset its fetch offset from %d to current leader %d's "
            "start offset %d",
            self._config.broker_id,
            tp,
            end,
            self._leader.id,
            leader_start,
        )

    def _confirmed(self, followed: PartitionFetchState) -> LeaderAndIsr | None:
        """The state that names its leader; None if the partition is not followed any more. Raises
        why the leader is not confirmed. Switches."""
        states, problems = self._confirm([followed])
        for problem in problems.values():
            raise problem
        return states[followed.topic_partition] if followed.is_followed else None

    def _may_lose_messages(self, topic: str) -> bool:
        """unclean.leader.election.enable of the topic, read from ZooKeeper now. Switches."""
        overrides = self._store.topic_config(topic)
        return unclean_elections_allowed(
            topic, overrides, self._config.unclean_leader_election_enable
        )


def _clamp(followed: PartitionFetchState) -> None:
    """The log was truncated or restarted: lower the HW to its end."""
    followed.settle()
    followed.partition.set_high_watermark(followed.partition.high_watermark)
