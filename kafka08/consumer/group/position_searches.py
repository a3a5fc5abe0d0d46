"""PositionSearches: the positions that the user's thread is looking for.

StartFinder searches in tasks of its own. The user's thread begins the searches, takes what they
found, and notes for how long a position has not been found. A partition whose committed offset is
wanted waits for the commits of it that are in flight: the search could overtake them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kafka08.consumer.group.partitions import Partitions, Start
from kafka08.consumer.group.search_outages import SearchOutages
from kafka08.consumer.group.start_finder import StartFinder
from kafka08.errors import KafkaError
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition


class PositionSearches:
    """See the module. All methods are for the user's thread.

    committing   returns the partitions of commits that have not ended
    """

    def __init__(
        self,
        finder: StartFinder,
        partitions: Partitions,
        committing: Callable[[], Collection[TopicPartition]],
        runtime: ClientRuntime,
    ) -> None:
        self._finder = finder
        self._partitions = partitions
        self._committing = committing
        self._runtime = runtime
        self._outages = SearchOutages()

    def begin(self, excepted: Collection[TopicPartition] = ()) -> None:
        """Search for the positions that are missing, except those of `excepted`. Never blocks."""
        missing = self._partitions.missing()
        self._outages.keep(missing)
        if not missing:
            return
        searchable = self._searchable()
        held_up = [tp for tp in missing if tp not in searchable]
        self._outages.hold_up(held_up, self._runtime.monotonic())
        wanted = {tp: start for tp, start in searchable.items() if tp not in excepted}
        if wanted:
            self._finder.begin(wanted, self._partitions.epoch)

    def take(self) -> list[TopicPartition]:
        """Take what searches have found. Returns the partitions that are still looked for and have
        no committed offset, while auto.offset.reset is none."""
        without: list[TopicPartition] = []
        while (found := self._finder.take()) is not None:
            if found.epoch != self._partitions.epoch:
                continue
            self._partitions.found(found.positions, found.asked)
            missing = self._partitions.missing()
            self._outages.note(found, missing, self._runtime.monotonic())
            without += [tp for tp in found.without if missing.get(tp) is found.asked[tp]]
        return without

    def has_news(self, tp: TopicPartition) -> bool:
        """Whether a search has found something, or that for `tp`, which waited for a commit, may
        begin now."""
        return self._finder.has_found() or (
            tp in self._searchable() and not self._finder.searches(tp)
        )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """The searches in progress may be older than what these are searched for now."""
        self._finder.forget(partitions)

    def close(self) -> None:
        """End the pauses after failures. The requests in flight end with their connections."""
        self._finder.close()

    def failure(self, lasting_s: float) -> KafkaError | None:
        """Why a position has not been found for `lasting_s`."""
        missing = self._partitions.missing()
        return self._outages.lasting(missing, lasting_s, self._runtime.monotonic())

    def _searchable(self) -> dict[TopicPartition, Start]:
        """The partitions without a position, except those to be read from their committed offset
        while a commit of it is in flight."""
        missing = self._partitions.missing()
        committing = self._committing() if missing else ()
        return {
            tp: start
            for tp, start in missing.items()
            if start is not Start.COMMITTED or tp not in committing
        }
