"""ProducerMetadata: the topics that the new producer writes to, and the age of their metadata.

A topic that a thread waits for is requested alone, and at once if it is new: together with all
others, after the backoff, a program with many topics would wait for minutes. Source:
org.apache.kafka.clients.producer.internals.Metadata 0.8.2.2; new topics as in
ProducerMetadata 2.5 (KIP-526).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kafka08.client.metadata import ClusterMetadata
from kafka08.errors import KafkaError
from kafka08.protocol.metadata import MetadataResponse
from kafka08.runtime import WAIT_S_MAX, ClientRuntime


class ProducerMetadata:
    """Thread-safe. The sender requests metadata and calls `update` or `failed`; others wait.

    bootstrap    addresses for requests while no broker is known, and in addition to known ones
    max_age_s    the age at which metadata is refreshed
    backoff_s    shortest time between two requests for a topic
    on_update    called with new metadata and the topics that it may have changed, in the sender's
                 thread, before waiting threads wake up
    """

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        max_age_s: float,
        backoff_s: float,
        on_update: Callable[[ClusterMetadata, Collection[str]], None],
        runtime: ClientRuntime,
    ) -> None:
        self.cluster = ClusterMetadata()
        self.failure: KafkaError | None = None
        """Why a connection was lost since a broker last responded: the first refusal of this
        client, else the last error."""
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
        self._new: set[str] = set()
        """Awaited topics that were never requested."""
        self._missing: set[str] = set()
        """Awaited topics to request again after the backoff."""
        self._answers: Counter[str] = Counter()
        """The number of responses with each of them since a thread waits."""
        self._updates_wanted = 0
        self._updates_wanted_when_asked = 0
        self._updates_served = 0
        """The number of requests to update all topics so far, of those before the last metadata
        request for all, and of those that its response covers: it may miss one that was made while
        it was in flight."""
        self._is_all = False
        """Whether the request in flight is for all topics."""
        self._asked_at = float("-inf")
        self._all_asked_at = float("-inf")
        self._all_updated_at = float("-inf")
        self._all_due_at = float("inf")
        self._due_at = float("inf")
        """When the next request is due (monotonic seconds), by all of the above."""

    @property
    def is_wanted(self) -> bool:
        """Whether an update of all topics was requested and has not arrived."""
        return self._updates_wanted != self._updates_served and bool(self._topics)

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
        """While the block waits for `topic`, request it too: at once if no response ever had it.
        Yields the number for `await_update`. When no thread waits and no response had it, it is not
        requested again."""
        with self._lock:
            self._waiting[topic] += 1
            (self._missing if topic in self.cluster.topics else self._new).add(topic)
            self._reckon()
            number = self._answers[topic]
        try:
            yield number
        finally:
            with self._lock:
                self._waiting[topic] -= 1
                if not self._waiting[topic]:
                    del self._waiting[topic], self._answers[topic]
                    self._new.discard(topic)
                    self._missing.discard(topic)
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

    def is_all_due(self, now: float) -> bool:
        """Whether the next request is for all topics."""
        return now >= self._all_due_at

    def _reckon(self) -> None:
        """Reckon when the next request is due; the caller holds the lock."""
        self._all_due_at = self._due_at = float("inf")
        if self._topics:
            self._all_due_at = self._all_asked_at + self._backoff_s
            if self._updates_served == self._updates_wanted:
                self._all_due_at = max(self._all_due_at, self._all_updated_at + self._max_age_s)
            self._due_at = self._all_due_at
        if self._new:
            self._due_at = float("-inf")
        elif self._missing:
            self._due_at = min(self._due_at, self._asked_at + self._backoff_s)

    def ask(self, now: float) -> list[str]:
        """The topics of a request that is sent now: all if that is due, else those that threads
        wait for. Empty: none is to be sent."""
        with self._lock:
            self._is_all = not self._topics or now >= self._all_due_at
            topics = (
                self._topics.union(self._waiting) if self._is_all else self._new | self._missing
            )
            self._asked_at = now
            if self._is_all:
                self._all_asked_at = now
                self._updates_wanted_when_asked = self._updates_wanted
            self._missing |= self._new
            self._new = set()
            self._reckon()
            return sorted(topics)

    def update(self, response: MetadataResponse, now: float) -> None:
        """Apply a response. A missing topic that a thread waits for is requested again."""
        with self._lock:
            former, self.failure = self.cluster, None
            self.cluster = former.updated(response)
            topics = [topic.topic for topic in response.topics]
            is_same = former.brokers == self.cluster.brokers
            self._on_update(self.cluster, topics if is_same else self.cluster.topics)
            known = list(filter(self.cluster.knows, topics))
            self._topics.update(known)
            self._missing.difference_update(known)
            if self._is_all:
                self._all_updated_at = now
                self._updates_served = self._updates_wanted_when_asked
            self._reckon()
            for topic in topics:
                if topic in self._waiting:
                    self._answers[topic] += 1
            self._changed.notify_all()

    def await_update(self, topic: str, number: int, timeout_s: float) -> int:
        """Wait for a response with `topic`, which is `awaited`, after `number`; returns the new
        number, the same one on timeout."""
        deadline = self._runtime.monotonic() + timeout_s
        with self._lock:
            while self._answers[topic] == number:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, WAIT_S_MAX))
            return self._answers[topic]
