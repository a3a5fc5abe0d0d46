"""Which client of others does what on brokers of ours at a level, and on Apache's of that release.

    python -m tests.interop.client_matrix 0.11.0 [CLIENT]...

writes the rows of a table in docs/clients.md, and each failure to stderr. A cell is what our broker
gives: "yes", "no", or "none" where the client has no such thing; with "(JVM: …)" behind it where
Apache's broker gives another one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kafka08.admin import AdminClient
from kafka08.embedded import EmbeddedCluster
from tests.interop.foreign_clients import ALL, CONFLUENT, ForeignClient, delivered
from tests.interop.jvm import POM_0_9_0, POM_0_10_2, POM_0_11, JvmKafka

BEFORE_0_11: Final = ("produce", "group", "admin")
ACTS: Final = (*BEFORE_0_11, "idempotent", "transactional", "read committed")
APACHES: Final = {"0.9.0": POM_0_9_0, "0.10.2": POM_0_10_2, "0.11.0": POM_0_11}
COUNT: Final = 20
LIMIT_S: Final = 30.0
KEYS: Final = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "delete.topic.enable": "true",
}


class Tried:
    """One client on one broker."""

    def __init__(
        self, client: ForeignClient, level: str, bootstrap: str, zookeeper: str, broker: str
    ) -> None:
        self._client = client
        self._level = level
        self._bootstrap = bootstrap
        self._broker = broker
        self._sent = 0
        with AdminClient(zookeeper) as admin:
            for topic in (self._topic("tried"), self._topic("transactions")):
                admin.create_topic(topic, 2)
                admin.await_leaders(topic, 30_000)

    def act(self, name: str) -> bool:
        """Do one of ACTS; False if the client has no such thing. AssertionError if it fails."""
        acts = {
            "produce": self._produce,
            "group": self._group,
            "admin": self._administer,
            "idempotent": self._produce_idempotently,
            "transactional": self._transact,
            "read committed": self._read_committed,
        }
        return acts[name]()

    def cells(self) -> Iterator[str]:
        """What each of ACTS gives, in their order."""
        for act in ACTS if self._level == "0.11.0" else BEFORE_0_11:
            try:
                yield "yes" if self.act(act) else "none"
            except AssertionError as error:
                say(sys.stderr, f"{self._client}, {act}, {self._broker} {self._level}: {error}")
                yield "no"

    def _topic(self, what: str) -> str:
        return f"{what}-{self._client}"

    def _run(self, verb: str, *words: str) -> Sequence[str]:
        return self._client.run(self._level, verb, self._bootstrap, *words, timeout_s=LIMIT_S)

    def _produce(self, settings: Sequence[str] = (), codecs: Sequence[str] | None = None) -> bool:
        for codec in codecs or self._client.codecs:
            words = (self._topic("tried"), codec, str(self._sent), str(COUNT), *settings)
            assert f"sent {COUNT}" in self._run("produce", *words)
            self._sent += COUNT
        return True

    def _group(self) -> bool:
        topic, count = self._topic("tried"), self._sent or COUNT
        if not self._sent:
            CONFLUENT.run(self._level, "produce", self._bootstrap, topic, "none", "0", str(COUNT))
        said = self._run("consume", topic, topic, str(count))
        assert list(range(count)) == sorted(int(one.value) for one in delivered(said))
        return True

    def _administer(self) -> bool:
        if not self._client.has_admin:
            return False
        assert 5 == len(self._run("admin", self._topic("made"), self._topic("tried")))
        return True

    def _produce_idempotently(self) -> bool:
        idempotent = self._client.idempotent
        return idempotent is not None and self._produce(idempotent, self._client.codecs[:1])

    def _transact(self) -> bool:
        if self._client.idempotent is None:
            return False
        said = self._run("transact", self._topic("transactions"), "0", str(COUNT))
        assert [f"aborted {COUNT}", f"committed {COUNT}"] == said
        return True

    def _read_committed(self) -> bool:
        if self._client.idempotent is None:
            return False
        topic = self._topic("transactions")
        said = self._run("consume", topic, topic, str(COUNT), *self._client.committed)
        assert list(range(COUNT)) == sorted(int(one.value) for one in delivered(said))
        return True


def main(level: str, *names: str) -> int:
    differ = 0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(EmbeddedCluster(brokers=1, level=level, config=KEYS))
        jvm = stack.enter_context(JvmKafka(directory, KEYS, pom=APACHES[level]))
        brokers = {
            "ours": (ours.bootstrap, ours.zookeeper.connect_string),
            "JVM": (jvm.bootstrap, jvm.zookeeper),
        }
        for client in ALL:
            if names and client.name not in names:
                continue
            rows = [
                list(Tried(client, level, *addresses, broker).cells())
                for broker, addresses in brokers.items()
            ]
            row = [
                cell if cell == theirs else f"{cell} (JVM: {theirs})"
                for cell, theirs in zip(*rows, strict=True)
            ]
            differ += rows[0] != rows[1]
            say(sys.stdout, f"| {client} | {' | '.join(row)} |")
    return int(differ > 0)


def say(where: object, line: str) -> None:
    print(line, file=where, flush=True)  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
