"""A workload whose history can be checked: one sender and one reader for each partition.

    with Workload(bootstrap, "t", partitions=2) as work:
        work.await_progress()           # both sides get something done
        ...                             # break things
        work.await_progress()           # and again
    assert [] == work.problems()

Senders use plain Produce requests, one message each, never a second time. Readers follow from
offset 0, wait where they are told that an offset is not to be had now, and never jump.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import fetch_request, fetch_results, produce_request, produce_results
from kafka08.errors import ApiError, KafkaError, check
from kafka08.protocol import message_set
from kafka08.protocol.fetch import FetchResponse
from kafka08.protocol.produce import ProduceResponse
from kafka08.simulation.history import History
from kafka08.structs import TopicPartition
from tests.waiting import until

PAUSE_S = 0.02
SEND_TIMEOUT_MS = 1500
DEADLINE_S = 60.0
FETCH_BYTES = 1 << 20


class Workload:
    """Runs from `__enter__` to `__exit__`; `problems` afterwards reads everything once more."""

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int = 1, required_acks: int = -1
    ) -> None:
        self.history = History()
        self._bootstrap = [
            (host, int(port)) for host, _, port in (a.partition(":") for a in bootstrap.split(","))
        ]
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._required_acks = required_acks
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work, tp), daemon=True)
            for tp in self._partitions
            for work in (self._send, self._read)
        ]
        self.failures: list[BaseException] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)

    def await_progress(self, messages: int = 20) -> None:
        """Until `messages` more are acknowledged, and as many read, in every partition."""
        wanted = {key: count + messages for key, count in self._counts().items()}

        def is_done() -> bool:
            now = self._counts()
            return all(now[key] >= count for key, count in wanted.items())

        self._await(is_done, f"progress to {wanted}")

    def await_sends(self, messages: int = 20) -> None:
        """The same for sends alone: a reader whose offset is beyond the end of a shortened log
        waits for ever."""
        count = len(self.history.acknowledgements) + messages
        self._await(lambda: len(self.history.acknowledgements) >= count, "sends")

    def await_failures(self, messages: int = 20) -> None:
        """Wait until this many more sends were not acknowledged."""
        count = self.history.unknown_count() + messages
        self._await(lambda: self.history.unknown_count() >= count, "failures")

    def _await(self, done: Callable[[], bool], what: str) -> None:
        def is_done() -> bool:
            assert not self.failures, self.failures
            return done()

        until(is_done, what, DEADLINE_S, explain=lambda: str(self._counts()))

    def _counts(self) -> dict[tuple[str, TopicPartition], int]:
        counts = {(kind, tp): 0 for kind in ("send", "read") for tp in self._partitions}
        for kind, events in (
            ("send", self.history.acknowledgements),
            ("read", self.history.reads),
        ):
            for event in list(events):
                counts[kind, event.tp] += 1
        return counts

    def problems(self) -> list[str]:
        """Rules that the history breaks, given the messages that can be read now."""
        assert not self.failures, self.failures
        return self.history.problems({tp: self._read_all(tp) for tp in self._partitions})

    def _run(
        self, work: Callable[[ClusterClient, TopicPartition], None], tp: TopicPartition
    ) -> None:
        client = self._client()
        try:
            work(client, tp)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits for progress
            self.failures.append(error)
        finally:
            client.close()

    def _client(self) -> ClusterClient:
        return ClusterClient(self._bootstrap, client_id="history", timeout_ms=2 * SEND_TIMEOUT_MS)

    def _send(self, client: ClusterClient, tp: TopicPartition) -> None:
        number = 0
        while not self._stop.is_set():
            value = f"{tp.topic}-{tp.partition}-{number}".encode()
            number += 1
            try:
                offset = self._send_one(client, tp, value)
            except KafkaError:
                self.history.unknown(tp, value)
                self._refresh(client, tp)
            else:
                self.history.acknowledged("sender", tp, offset, value)
                self._stop.wait(PAUSE_S / 4)

    def _send_one(self, client: ClusterClient, tp: TopicPartition, value: bytes) -> int:
        request = produce_request(
            {tp: message_set.encode([(None, value)])},
            required_acks=self._required_acks,
            timeout_ms=SEND_TIMEOUT_MS,
        )
        response = client.send(client.leader(tp), request)
        assert isinstance(response, ProduceResponse)
        result = produce_results(response)[tp]
        check(result.error_code)
        return result.base_offset

    def _read(self, client: ClusterClient, tp: TopicPartition) -> None:
        position = 0
        while not self._stop.is_set():
            try:
                messages = fetch(client, tp, position, wait_ms=100)
            except KafkaError:
                self._refresh(client, tp)
                continue
            for offset, value in messages:
                self.history.record_read("reader", tp, offset, value)
                position = offset + 1

    def _refresh(self, client: ClusterClient, tp: TopicPartition) -> None:
        self._stop.wait(PAUSE_S)
        try:
            client.refresh([tp.topic])
        except KafkaError:
            self._stop.wait(PAUSE_S)

    def _read_all(self, tp: TopicPartition) -> dict[int, bytes]:
        """Every message below the HW, once two fetches found no more and the HW has passed what was
        acknowledged or read."""
        last = self.history.last_offset(tp)
        client = self._client()
        found: dict[int, bytes] = {}
        deadline = time.monotonic() + DEADLINE_S
        quiet = 0
        try:
            while quiet < 2 or (max(found, default=-1) < last and time.monotonic() < deadline):
                try:
                    messages = fetch(client, tp, max(found, default=-1) + 1, wait_ms=300)
                except ApiError:
                    assert time.monotonic() < deadline, f"{tp} cannot be read"
                    client.refresh([tp.topic])
                    continue
                found.update(messages)
                quiet = 0 if messages else quiet + 1
        finally:
            client.close()
        return found


def fetch(
    client: ClusterClient, tp: TopicPartition, offset: int, *, wait_ms: int
) -> list[tuple[int, bytes]]:
    """Messages from `offset` on, as the leader gives them to a consumer. KafkaError."""
    request = fetch_request({tp: (offset, FETCH_BYTES)}, max_wait_ms=wait_ms, min_bytes=1)
    response = client.send(client.leader(tp), request)
    assert isinstance(response, FetchResponse)
    result = fetch_results(response)[tp]
    check(result.error_code)
    return [
        (message.offset, bytes(message.value or b""))
        for message in message_set.decode(result.message_set, offset)
    ]
