"""SearchOutages: for how long the positions of partitions have not been found, and why."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from kafka08.consumer.fetching.outage import Outage, deserves_warning
from kafka08.consumer.group.start_finder import Found
from kafka08.errors import KafkaError, RequestTimeout, UnstableOffsetCommit
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)


class SearchOutages:
    """One outage per partition, so that none lasts since that of another. The first failure is
    logged, and again after all have ended. Only the user's thread uses this class; `missing` are
    the partitions without a position, `now` is in monotonic seconds."""

    def __init__(self) -> None:
        self._outages: dict[TopicPartition, Outage] = {}
        self._is_logged = False

    def note(self, found: Found, missing: Collection[TopicPartition], now: float) -> None:
        """Note the failures of a search, and the end of the outages of what did not fail."""
        for tp in found.asked:
            why = found.failures.get(tp) if tp in missing else None
            if why is None:
                self._outages.pop(tp, None)
                continue
            outage = self._outages.setdefault(tp, Outage())
            outage.failed(why, now)
            if not self._is_logged and deserves_warning(outage, now):
                self._is_logged = True
                logger.warning("%s: Cannot find the position yet: %s", tp, why)

    def hold_up(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """These are not searched for while a commit of them is in flight. That counts as a failure,
        since the commit may never end."""
        for tp in partitions:
            if tp not in self._outages:
                why = RequestTimeout(f"the position of {tp} waits for a commit that has not ended")
                outage = self._outages[tp] = Outage()
                outage.failed(why, now)

    def keep(self, missing: Collection[TopicPartition]) -> None:
        """End the outages of partitions that are not missing any more."""
        if self._outages:
            self._outages = {tp: one for tp, one in self._outages.items() if tp in missing}
        if not self._outages:
            self._is_logged = False

    def lasting(
        self, missing: Collection[TopicPartition], seconds: float, now: float
    ) -> KafkaError | None:
        """The last error of an outage of at least `seconds`. The wait for a transaction counts only
        as a cause, without `seconds`: its coordinator ends it after transaction.timeout.ms."""
        for tp, outage in self._outages.items():
            failure = outage.lasting(seconds, now) if tp in missing else None
            if failure is not None and not (seconds and isinstance(failure, UnstableOffsetCommit)):
                return failure
        return None
