"""ProducerMetadata: the topics that the new producer writes to, and the age of their metadata.

Source: org.apache.kafka.clients.producer.internals.Metadata 0.8.2.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kafka08.client.metadata import ClusterMetadata
from kafka08.protocol.metadata import MetadataResponse
from kafka08.runtime import WAIT_SECONDS_MAX, ClientRuntime


class ProducerMetadata:
    """Thread-safe. The sender requests metadata and calls `update` or `failed`; others wait.

    bootstrap    addresses for requests while no broker is known, and in addition to known ones
    max_age_s    the age at which metadata is refreshed
    backoff_s    shortest time between two requests
    on_update    called with new metadata, in the sender's thread, before waiting threads wake up
    """

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        max_age_s: float,
        backoff_s: float,
        on_update: Callable[[ClusterMetadata], None],
        runtime: ClientRuntime,
    ) -> None:
        self.cluster = ClusterMetadata()
        self.version = 0
        """The number of responses so far."""
        self._bootstrap = list(bootstrap)
        self._max_age_s = max_age_s
        self._backoff_s = backoff_s
        self._on_update = on_update
        self._runtime = runtime
        self._lock = runtime.lock()
        self._changed = runtime.condition(self._lock)
        self._topics: set[str] = set()
        """Topics that were ever known: there may be records for them."""
        self._waiting: Counter[str] = Counter()
        """The number of threads that wait for each topic."""
        self._updates_wanted = 0
        self._updates_wanted_when_asked = 0
        self._updates_served = 0
        """The number of update requests so far, of those before the last metadata request, and of
        those that its response covers: it may miss one that was made while it was in flight."""
        self._asked_at = float("-inf")
        self._updated_at = float("-inf")
        self._due_at = float("inf")
        """When the next request is due (monotonic seconds), by all of the above."""

    @property
    def topics(self) -> list[str]:
        """The topics of the next metadata request."""
        with self._lock:
            return sorted(self._topics.union(self._waiting))

    @property
    def awaited_topics(self) -> list[str]:
        """The topics that a thread waits for."""
        with self._lock:
            return list(self._waiting)

    def forget(self, topics: Collection[str]) -> None:
        """Request these no more: the request would have brokers create one that was deleted."""
        with self._lock:
            self._topics.difference_update(topics)
            known = self.cluster.topics
            self.cluster = replace(
                self.cluster, topics={name: known[name] for name in known if name not in topics}
            )
            self._reckon()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses for it: the known brokers, then bootstrap.servers, which are the only way
        back when all known brokers are gone."""
        known = {(broker.host, broker.port): None for broker in self.cluster.brokers.values()}
        return list(known | dict.fromkeys(self._bootstrap))

    @contextmanager
    def awaited(self, topic: str) -> Iterator[int]:
        """While the block waits for `topic`, request it too, as soon as possible. Yields the
        version that does not have it yet. When no thread waits and no response had it, it is not
        requested again."""
        with self._lock:
            self._waiting[topic] += 1
            self._updates_wanted += 1
            self._reckon()
            version = self.version
        try:
            yield version
        finally:
            with self._lock:
                self._waiting -= Counter([topic])
                self._reckon()

    def request_update(self, topics: Iterable[str] = ()) -> None:
        """The metadata is out of date: request it again after the backoff, and with it that of
        `topics`, which have records to send and may have been forgotten."""
        with self._lock:
            self._topics.update(topics)
            self._updates_wanted += 1
            self._reckon()

    def due_in(self, now: float) -> float:
        """Seconds until the next request is due; 0 or less: now, infinity: there is no topic."""
        return self._due_at - now

    def _reckon(self) -> None:
        """Reckon when the next request is due; the caller holds the lock."""
        if not self._topics and not self._waiting:
            self._due_at = float("inf")
            return
        due = self._asked_at + self._backoff_s
        if self._updates_served == self._updates_wanted:
            due = max(due, self._updated_at + self._max_age_s)
        self._due_at = due

    def asking(self, now: float) -> None:
        """A metadata request is in flight."""
        with self._lock:
            self._asked_at = now
            self._updates_wanted_when_asked = self._updates_wanted
            self._reckon()

    def update(self, response: MetadataResponse, now: float) -> None:
        """Apply a response. A missing topic that a thread waits for is requested again."""
        with self._lock:
            self.cluster = self.cluster.updated(response)
            self._on_update(self.cluster)
            self._updated_at = now
            self._topics.update(filter(self.cluster.knows, self.cluster.topics))
            self._updates_served = self._updates_wanted_when_asked
            if not all(map(self.cluster.knows, self._waiting)):
                self._updates_wanted += 1
            self._reckon()
            self.version += 1
            self._changed.notify_all()

    def await_update(self, version: int, timeout_s: float) -> bool:
        """Wait for a response after `version`; False on timeout."""
        deadline = self._runtime.monotonic() + timeout_s
        with self._lock:
            while self.version <= version:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, WAIT_SECONDS_MAX))
            return True
