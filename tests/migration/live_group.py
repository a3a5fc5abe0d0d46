"""A group under steady load that is watched while it migrates: members, a producer, two looks.

Members are processes of their own, which print what they are handed, so that they can be killed at
any instant: ours (tests/interop/member_process.py), or the JVM's (tests/interop/jvm_member.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka08.admin.connections import Connections
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import log_ends
from kafka08.client.requests import produce_request, produce_results
from kafka08.errors import KafkaError, check
from kafka08.migration.reading import zookeeper_offsets
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.structs import NO_OFFSET, TopicPartition
from tests.histories.offsets import OffsetHistory

ROOT = Path(__file__).parent.parent.parent
STOP_S = 150.0
"""0.8.2.2's shutdown waits for the rebalance in progress, each attempt of which fails from then on
(`isShuttingDown` in ZKRebalancerListener.rebalance): all that are left of rebalance.max.retries,
with rebalance.backoff.ms after each, and a second or two for each on a busy machine."""


def our_member(topic: str, *properties: str) -> list[str]:
    """The command line of a member of ours."""
    return [sys.executable, "-m", "tests.interop.member_process", topic, "0", *properties]


class MemberProcess:
    """One member, by the command line that `program` makes. Its lines are read as they come and
    noted in the history."""

    def __init__(
        self,
        topic: str,
        keys: Mapping[str, str],
        history: OffsetHistory,
        program: Callable[..., list[str]] = our_member,
    ) -> None:
        self.reached: dict[TopicPartition, int] = {}
        """partition → the offset behind what it was handed last of it, as far as it was noted."""
        self._topic = topic
        self._history = history
        self._process = subprocess.Popen(
            program(topic, *(f"{key}={value}" for key, value in keys.items())),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=ROOT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words = line.split()
            # The last line of a killed process may be cut: then nobody was handed that message.
            if line.endswith(b"\n") and len(words) == 2:
                tp, offset = TopicPartition(self._topic, int(words[0])), int(words[1])
                self._history.handed(tp, offset)
                self.reached[tp] = offset + 1

    def kill(self) -> None:
        """kill -9; everything it printed before is noted afterwards."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """SIGINT: it commits and leaves."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Load:
    """Sends `rate` messages a second, spread over all partitions, until it is stopped. A message
    whose response was lost may be sent again: values do not count, offsets do."""

    def __init__(self, bootstrap: str, partitions: list[TopicPartition], rate: int) -> None:
        self._bootstrap = bootstrap
        self._client = ClusterClient(parse_bootstrap(bootstrap))
        self._partitions = partitions
        self._period_s = len(partitions) / rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s):
            for tp in self._partitions:
                # A broker that is being killed answers the next time, or the time after.
                with suppress(KafkaError):
                    self._send(tp)

    def _send(self, tp: TopicPartition) -> None:
        sets = {tp: message_set.encode([(None, b"x")])}
        request = produce_request(sets, required_acks=-1, timeout_ms=3000)
        try:
            response = self._client.send(self._client.leader(tp), request)
            assert isinstance(response, ProduceResponse)
            check(produce_results(response)[tp].error_code)
        except KafkaError:
            self._client.refresh([tp.topic])
            raise

    def stop(self) -> dict[TopicPartition, int]:
        """partition → where its log ends."""
        self.close()
        client = ClusterClient(parse_bootstrap(self._bootstrap))
        try:
            return log_ends(client, self._partitions)
        finally:
            client.close()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.close()


@contextmanager
def watched_stores(
    connections: Connections, group: str, partitions: list[TopicPartition], history: OffsetHistory
) -> Iterator[None]:
    """Looks at both stores some times a second, and notes what it sees."""
    stopping = threading.Event()

    def look() -> None:
        while not stopping.wait(0.1):
            for tp, (offset, _) in zookeeper_offsets(group, partitions, connections).items():
                history.committed("ZooKeeper", tp, offset)
            try:
                found = connections.kafka(group).fetch_once(partitions)
            except KafkaError:
                continue
            for tp, offset in found.items():
                history.committed("Kafka", tp, None if offset == NO_OFFSET else offset)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
