"""ProducerMetadata: which topics the new producer writes to, and how old its picture of them is.

Source: org.apache.kafka.clients.producer.internals.Metadata 0.8.2.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from kafka08.client.metadata import ClusterMetadata
from kafka08.protocol.metadata import MetadataResponse
from kafka08.runtime import WAIT_SECONDS_MAX, ClientRuntime


class ProducerMetadata:
    """Thread-safe. The sender asks brokers and calls `update` or `failed`; others wait.

    bootstrap    addresses to ask while no broker is known, and beside those that are
    max_age_s    the picture is renewed when it is older
    backoff_s    shortest time between two questions
    on_update    called with each new picture, in the sender's thread, before anybody is told
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
        """How many answers have come."""
        self._bootstrap = list(bootstrap)
        self._max_age_s = max_age_s
        self._backoff_s = backoff_s
        self._on_update = on_update
        self._runtime = runtime
        self._changed = runtime.condition()
        self._topics: set[str] = set()
        """Those that were ever known: there may be records for them."""
        self._waiting: Counter[str] = Counter()
        """How many threads wait for a topic."""
        self._updates_wanted = 0
        self._updates_wanted_when_asked = 0
        self._updates_served = 0
        """Requests for an update so far, of these before the last question, and of these answered:
        what is wanted while a question is under way, its answer may not know yet."""
        self._asked_at = float("-inf")
        self._updated_at = float("-inf")

    @property
    def topics(self) -> list[str]:
        """The topics to ask for."""
        with self._changed:
            return sorted(self._topics.union(self._waiting))

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where to ask: the brokers known, then those of bootstrap.servers: when all known ones are
        gone at once, these are the only way back."""
        known = {(broker.host, broker.port): None for broker in self.cluster.brokers.values()}
        return list(known | dict.fromkeys(self._bootstrap))

    @contextmanager
    def awaited(self, topic: str) -> Iterator[int]:
        """Somebody waits for `topic` in this block: ask for it too, as soon as may be. Gives the
        version that does not know it yet. Once nobody waits and no answer knew it, the topic is not
        asked for again."""
        with self._changed:
            self._waiting[topic] += 1
            self._updates_wanted += 1
            version = self.version
        try:
            yield version
        finally:
            with self._changed:
                self._waiting -= Counter([topic])

    def request_update(self) -> None:
        """The picture is wrong somewhere: ask as soon as the backoff allows."""
        with self._changed:
            self._updates_wanted += 1

    def due_in(self, now: float) -> float:
        """Seconds until the next question is due; 0 or less: now, infinity: there is no topic."""
        with self._changed:
            if not self._topics and not self._waiting:
                return float("inf")
            due = self._asked_at + self._backoff_s
            if self._updates_served == self._updates_wanted:
                due = max(due, self._updated_at + self._max_age_s)
            return due - now

    def asking(self, now: float) -> None:
        """A question is on its way."""
        with self._changed:
            self._asked_at = now
            self._updates_wanted_when_asked = self._updates_wanted

    def update(self, response: MetadataResponse, now: float) -> None:
        """Take an answer. A topic that somebody waits for in vain is asked for again."""
        with self._changed:
            self.cluster = self.cluster.updated(response)
            self._on_update(self.cluster)
            self._updated_at = now
            self._topics.update(filter(self.cluster.knows, self.cluster.topics))
            self._updates_served = self._updates_wanted_when_asked
            if not all(map(self.cluster.knows, self._waiting)):
                self._updates_wanted += 1
            self.version += 1
            self._changed.notify_all()

    def await_update(self, version: int, timeout_s: float) -> bool:
        """Wait for an answer after `version`; False if none came in time."""
        deadline = self._runtime.monotonic() + timeout_s
        with self._changed:
            while self.version <= version:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, WAIT_SECONDS_MAX))
            return True
