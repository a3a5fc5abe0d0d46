"""TransactionRun: processes that send, process and read in transactions. Meanwhile chance breaks
brokers, and kills, suspends and replaces the processes; then come peace, and the rules of
TransactionHistory.

A process that is replaced while it runs or is suspended is a zombie: it must not commit any more.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.lifecycle import Closeable
from kafka08.simulation.transaction_history import (
    Entry,
    Log,
    Outcome,
    Session,
    Transaction,
    TransactionHistory,
)
from kafka08.structs import TopicPartition
from tests.histories.transactional_clients import RECEIVERS, OurSender, Receiver, Sender
from tests.histories.transactional_member import Member
from tests.in_sync import await_full_isr
from tests.interop.foreign_clients import POM_3_9_1, PROGRAMS
from tests.interop.jvm import POM_0_11, command, compiled
from tests.waiting import until

ROOT: Final = Path(__file__).parent.parent.parent
BROKERS: Final = 3
PARTITIONS: Final = 3
CONFIG: Final = {
    "kafka08.profile": "safe",
    "zookeeper.session.timeout.ms": "3000",
    "controlled.shutdown.enable": "false",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
FAULT_S_MAX: Final = 5.0
REQUESTS: Final = (
    "Produce",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
    "WriteTxnMarkers",
    "Fetch",
)
REQUEST_FAULTS: Final[tuple[dict[str, Any], ...]] = (
    {"close": "before"},
    {"close": "after"},
    {"drop": True},
    {"delay_ms": 300},
)
"""A request that is later than its client's timeout may end the next transaction: only the protocol
of Kafka 4.0 has a cure for that."""
SETTLE_S: Final = 60.0
STACKS_S: Final = 0.5
"""For a process to write the stacks of its threads."""
TIMEOUTS_MS: Final = (3000, 10_000, 60_000)
CLIENTS: Final = tuple(RECEIVERS)
JAVA: Final = {"java-0.11.0.3": POM_0_11, "java-3.9.1": POM_3_9_1}
"""Clients that only send."""


@contextmanager
def transaction_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=BROKERS, level="0.11.0", config=CONFIG, cuttable=True) as cluster:
        yield cluster


@dataclass
class Process:
    """A member's process, and the file with its lines."""

    member: Member
    popen: subprocess.Popen[bytes]
    lines: Path

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None


class TransactionRun(Closeable):
    """One run on the cluster, with topics of its own that begin with `name`. `directory` gets what
    the processes write. `java` names clients of JAVA that send, too."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        name: str,
        directory: Path,
        rng: random.Random,
        java: Sequence[str] = (),
    ) -> None:
        self.faults: Counter[str] = Counter()
        self.history = TransactionHistory()
        self._cluster = cluster
        self._directory = directory
        self._rng = rng
        self._seed = rng.randrange(10**9)
        self._source = f"{name}-in"
        self._results = {client: f"{name}-by-{client}" for client in CLIENTS}
        self._name = name
        self._java = java
        self._sessions: Counter[str] = Counter()
        self._current: dict[str, Process] = {}
        """The last session of each transactional id, and the readers."""
        self._former: list[Process] = []
        self._story: list[str] = []

    def close(self) -> None:
        for one in self._all():
            one.popen.kill()
            one.popen.wait()

    def run(self, seconds: float) -> list[str]:
        """The rules that are broken, after so many seconds of faults."""
        try:
            problems = self._run(seconds)
        except AssertionError as error:
            problems = [f"stuck: {error}"]
        if problems or self.faults["librdkafka_hangs"]:
            self._keep(problems)
        return problems

    def _run(self, seconds: float) -> list[str]:
        for topic in self._topics:
            self._cluster.create_topic(topic, PARTITIONS, BROKERS, {"min.insync.replicas": "2"})
        for client in CLIENTS:
            self._start(self._member("read", client))
            self._start(self._member("send", client))
            self._start(self._member("process", client))
        for client in self._java:
            self._start(self._member("send", client))
        self._note("the members start")
        until(self._all_read, "the first reads")
        self._break_things(seconds)
        return self._settle() or self._judge()

    @property
    def summary(self) -> str:
        """Counts of what happened."""
        made = self.history.transactions
        outcomes = Counter(one.outcome.value if one.outcome else "no outcome" for one in made)
        return (
            f"{len(made)} transactions of {self.history.sessions} sessions, {dict(outcomes)}; "
            f"{len(self.history.reads)} reads; faults {dict(self.faults)}"
        )

    # -------------------------------------------------------------------------------- the members

    @property
    def _topics(self) -> list[str]:
        return [self._source, *self._results.values()]

    @property
    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, n) for topic in self._topics for n in range(PARTITIONS)]

    def _member(self, role: str, client: str, transactions: int = 0) -> Member:
        everything = [(tp.topic, tp.partition) for tp in self._partitions]
        source = [(self._source, number) for number in range(PARTITIONS)]
        outputs = source
        if role == "process":
            outputs = [(self._results[client], number) for number in range(PARTITIONS)]
        name = f"{self._name}-{role}-{client}"
        self._sessions[name] += 1
        return Member(
            role=role,
            client=client,
            name=name,
            session=self._sessions[name],
            bootstrap=self._cluster.bootstrap,
            seed=self._seed,
            inputs=everything if role == "read" else source,
            outputs=outputs,
            timeout_ms=self._rng.choice(TIMEOUTS_MS),
            transactions=transactions,
        )

    def _start(self, member: Member) -> None:
        """The former process of that name, if there is one, is not ended."""
        lines = self._directory / f"{member.name}-{member.session}"
        with lines.open("wb") as out, _log(lines).open("wb") as log:
            popen = subprocess.Popen(_line(member), stdout=out, stderr=log, cwd=ROOT)
        if member.name in self._current:
            self._former.append(self._current[member.name])
        self._current[member.name] = Process(member, popen, lines)

    def _next(self, of: Process, transactions: int = 0) -> None:
        self._start(self._member(of.member.role, of.member.client, transactions))

    def _all(self) -> list[Process]:
        return [*self._current.values(), *self._former]

    def _readers(self) -> list[Process]:
        return [one for one in self._current.values() if one.member.role == "read"]

    def _writers(self) -> list[Process]:
        return [one for one in self._current.values() if one.member.role != "read"]

    @staticmethod
    def _has(one: Process, kind: str) -> bool:
        return f'"{kind}"' in one.lines.read_text()

    def _all_read(self) -> bool:
        self._look_after()
        return all(self._has(one, "read") for one in self._readers())

    def _look_after(self) -> None:
        """A session that has ended, fenced or timed out, has a successor."""
        for one in self._writers():
            if not one.is_running:
                self._next(one)
        for one in self._readers():
            assert one.is_running, f"{one.member.name} ended: {self._last_words(one)}"

    @staticmethod
    def _last_words(one: Process) -> str:
        return _log(one.lines).read_text()[-2000:]

    # --------------------------------------------------------------------------------- the faults

    def _note(self, text: str) -> None:
        self._story.append(f"{time.monotonic():.3f} {text}")

    def _break_things(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._look_after()
            self._rng.choice([self._break_a_broker, self._break_a_member])()
            time.sleep(self._rng.uniform(0, 1.5))

    def _break_a_broker(self) -> None:
        """One or two, for a while. Half of the time all replicas are in sync again before the next
        fault."""
        faults = [self._kill, self._pause, self._cut, self._reset, self._expire]
        faults += [self._fill_disk, self._slow_disk, self._break_requests, self._kill_all]
        for broker in self._rng.sample(range(BROKERS), self._rng.choice([1, 1, 2])):
            fault = self._rng.choice(faults)
            self._count(fault.__name__, f"broker {broker}")
            fault(broker)
            time.sleep(self._rng.uniform(0, FAULT_S_MAX / 2))
        time.sleep(self._rng.uniform(0, FAULT_S_MAX / 2))
        self._note("heal")
        self._cluster.heal()
        if self._rng.random() < 0.5:
            self._await_replicas()

    def _break_a_member(self) -> None:
        fault = self._rng.choice([self._kill_member, self._replace_member, self._freeze_member])
        one = self._rng.choice(self._writers())
        self._count(fault.__name__, f"{one.member.name}/{one.member.session}")
        fault(one)

    def _count(self, fault: str, what: str) -> None:
        fault = fault.lstrip("_")
        self.faults[fault] += 1
        self._note(f"{fault} {what}")

    def _kill(self, broker: int) -> None:
        self._cluster.kill(broker, expire=self._rng.random() < 0.7)

    def _pause(self, broker: int) -> None:
        self._cluster.pause(broker)
        self._maybe_expire(broker)

    def _cut(self, broker: int) -> None:
        self._cluster.cut(broker)
        self._maybe_expire(broker)

    def _maybe_expire(self, broker: int) -> None:
        if self._rng.random() < 0.5:
            self._cluster.expire_session(broker)

    def _reset(self, broker: int) -> None:
        self._cluster.reset_connections(broker)

    def _expire(self, broker: int) -> None:
        self._cluster.expire_session(broker)

    def _fill_disk(self, broker: int) -> None:
        self._cluster.break_disk(broker, full=True)

    def _slow_disk(self, broker: int) -> None:
        self._cluster.break_disk(broker, delay_ms=self._rng.choice([5, 50]))

    def _break_requests(self, broker: int) -> None:
        """One kind of request is late, or its response is lost, on that broker or on all."""
        keys = self._rng.choice(REQUEST_FAULTS)
        if self._rng.random() < 0.5:
            keys = {**keys, "broker": broker}
        api, seed = self._rng.choice(REQUESTS), self._rng.randrange(2**31)
        self._note(f"{api} {keys}")
        self._cluster.faults.add(api, probability=0.5, seed=seed, **keys)

    def _kill_all(self, broker: int) -> None:
        """This one last."""
        for one in sorted(self._cluster.brokers, key=lambda one: one.id == broker):
            self._cluster.kill(one)

    def _kill_member(self, one: Process) -> None:
        one.popen.kill()
        one.popen.wait()
        self._next(one)

    def _replace_member(self, one: Process) -> None:
        self._next(one)

    def _freeze_member(self, one: Process) -> None:
        """It is suspended, replaced, and resumed."""
        one.popen.send_signal(signal.SIGSTOP)
        self._next(one)
        time.sleep(self._rng.uniform(0, 3))
        one.popen.send_signal(signal.SIGCONT)

    def _await_replicas(self) -> None:
        for topic in (*self._topics, "__transaction_state", "__consumer_offsets"):
            await_full_isr(self._cluster, topic, BROKERS)

    # ------------------------------------------------------------------------------------ the end

    def _settle(self) -> list[str]:
        """End all sessions, and the transactions that killed ones left open; what hangs."""
        self._cluster.heal()
        self._note("peace")
        self._await_replicas()
        stuck = self._end([*self._writers(), *self._former])
        for one in self._writers():
            self._next(one, transactions=1)
        stuck += self._end(self._writers(), ask=False)
        stuck += [
            f"stuck: {one.member.name}/{one.member.session} did not begin: {self._tail(one)}"
            for one in self._writers()
            if not self._has(one, "initialized")
        ]
        self._note("all sessions have ended")
        return stuck

    def _end(self, processes: list[Process], *, ask: bool = True) -> list[str]:
        end = time.monotonic() + SETTLE_S
        if ask:
            for one in processes:
                one.popen.terminate()
        stuck = []
        for one in processes:
            try:
                code = one.popen.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                if one.member.client not in JAVA:
                    one.popen.send_signal(signal.SIGUSR1)
                    time.sleep(STACKS_S)
                if one.member.client != "librdkafka":
                    stuck.append(f"stuck: {one.member.name}/{one.member.session} does not end")
                else:  # its #5456: send_offsets_to_transaction ignores its timeout
                    self._count("librdkafka_hangs", f"{self._tail(one)}; {self._last_words(one)}")
                    one.popen.kill()
                    one.popen.wait()
                continue
            if code > 0:
                stuck.append(f"failed: {one.member.name}: {self._last_words(one)}")
        return stuck

    @staticmethod
    def _tail(one: Process) -> str:
        return " ".join(one.lines.read_text().splitlines()[-3:])

    def _judge(self) -> list[str]:
        """With everything that two clients read up to a last transaction in every partition."""
        for one in self._all():
            self._take_lines(one)
        last = self._send_last()
        committed: dict[str, Log] = {}
        offsets: list[dict[tuple[str, TopicPartition], int]] = []
        with ExitStack() as stack:
            for client in CLIENTS:
                committed[client] = self._read_all(stack, client, "read_committed", last)
                offsets.append(self._group_offsets(stack, client))
            uncommitted = {"all": self._read_all(stack, CLIENTS[-1], "read_uncommitted", last)}
        problems = self._until_readers_end(last)
        for one in self._readers():
            self._take_reads(one)
        if offsets[0] != offsets[1]:
            problems.append(f"differs: committed offsets {offsets}, says each client")
        return problems + self.history.problems(committed, uncommitted, offsets[0])

    def _send_last(self) -> bytes:
        """The value of a last transaction, which is in every partition."""
        session, value = Session(f"{self._name}-last", 1), b"last"
        made = OurSender(self._cluster.bootstrap, session.transactional_id, TIMEOUTS_MS[-1])
        with closing(made) as sender:
            self._send_everywhere(session, sender, value)
        return value

    def _send_everywhere(self, session: Session, sender: Sender, value: bytes) -> None:
        asked_at = time.monotonic()
        sender.init()
        self.history.initialized(session, asked_at, time.monotonic())
        transaction = self.history.begin(session)
        sender.begin()
        for tp in self._partitions:
            transaction.send(tp, value)
            sender.send(tp, value)
        transaction.commit_asked_at = time.monotonic()
        sender.commit()
        transaction.ended(Outcome.COMMITTED)

    def _receiver(self, stack: ExitStack, client: str, isolation: str, group: str = "") -> Receiver:
        inputs = self._partitions if not group else self._partitions[:PARTITIONS]
        found = RECEIVERS[client](self._cluster.bootstrap, inputs, isolation, group)
        stack.callback(found.close)
        return found

    def _read_all(
        self, stack: ExitStack, client: str, isolation: str, last: bytes
    ) -> dict[TopicPartition, list[Entry]]:
        receiver = self._receiver(stack, client, isolation)
        log: dict[TopicPartition, list[Entry]] = {tp: [] for tp in self._partitions}

        def is_done() -> bool:
            for one in receiver.poll(0.2):
                log[one.tp].append((one.offset, one.value))
            return all(entries and entries[-1][1] == last for entries in log.values())

        until(
            is_done,
            f"{client} reads up to the last transaction, {isolation}",
            explain=lambda: str({str(tp): entries[-1:] for tp, entries in log.items()}),
        )
        return log

    def _group_offsets(
        self, stack: ExitStack, client: str
    ) -> dict[tuple[str, TopicPartition], int]:
        found: dict[tuple[str, TopicPartition], int] = {}
        for of in CLIENTS:
            group = f"{self._name}-process-{of}"
            receiver = self._receiver(stack, client, "read_committed", group)

            def committed(receiver: Receiver = receiver) -> list[dict[TopicPartition, int]]:
                with suppress(KafkaError):
                    return [receiver.committed()]
                return []

            [offsets] = until(committed, f"the offsets of {group}")
            found.update({(group, tp): offset for tp, offset in offsets.items()})
        return found

    def _until_readers_end(self, last: bytes) -> list[str]:
        """The readers that were there all the time come to the end, too."""
        text = json.dumps(last.decode())
        for one in self._readers():
            until(
                lambda one=one: one.lines.read_text().count(text) >= len(self._partitions),  # type: ignore[misc]
                f"{one.member.name} reads up to the last transaction",
                explain=lambda one=one: self._tail(one)[-500:],  # type: ignore[misc]
            )
        return self._end(self._readers())

    # -------------------------------------------------------------------------------- the history

    @staticmethod
    def _lines_of(one: Process) -> Iterator[list[Any]]:
        for line in one.lines.read_text().splitlines(keepends=True):
            if line.endswith("\n"):  # else it was killed in between
                yield json.loads(line)

    def _take_reads(self, one: Process) -> None:
        for at, kind, *words in self._lines_of(one):
            for topic, partition, offset, value in words[0] if kind == "read" else ():
                tp = TopicPartition(topic, partition)
                self.history.read(one.member.client, tp, offset, value.encode(), at)

    def _take_lines(self, one: Process) -> None:
        if one.member.role == "read":
            return
        session = Session(one.member.name, one.member.session)
        asked_at = 0.0
        transaction: Transaction | None = None
        for at, kind, *words in self._lines_of(one):
            if kind == "initializing":
                asked_at = at
            elif kind == "initialized":
                self.history.initialized(session, asked_at, at)
            elif kind == "offset":
                group, topic, partition, offset = words
                self.history.saw_offset(group, TopicPartition(topic, partition), offset, at)
            elif kind == "begin":
                transaction = self.history.begin(session)
            elif transaction is not None:
                _take(transaction, at, kind, words)

    def _keep(self, problems: list[str]) -> None:
        """The story, and the brokers' logs, beside the lines of the members."""
        text = "\n".join([*self._story, "", *problems, ""])
        (self._directory / "story").write_text(text)
        for broker in self._cluster.brokers:
            shutil.copy(broker.process.log, self._directory / f"broker-{broker.id}.log")


def _log(lines: Path) -> Path:
    """Of the process that writes these lines."""
    return lines.parent / f"{lines.name}.log"


def _line(member: Member) -> list[str]:
    """The command line of its process."""
    if member.client not in JAVA:
        return member.line()
    pom = JAVA[member.client]
    topic = member.outputs[0][0]
    numbers = (member.session, member.seed, member.timeout_ms)
    classes = compiled(PROGRAMS / "TransactionalMember.java", pom)
    words = (member.bootstrap, member.name, *numbers, topic, PARTITIONS, member.transactions)
    return command("TransactionalMember", *map(str, words), classes=classes, pom=pom)


def _take(transaction: Transaction, at: float, kind: str, words: list[Any]) -> None:
    if kind == "send":
        topic, partition, value = words
        transaction.send(TopicPartition(topic, partition), value.encode())
    elif kind == "offsets":
        transaction.group, places, offsets = words
        transaction.processed = [(TopicPartition(topic, n), offset) for topic, n, offset in places]
        transaction.offsets = {TopicPartition(topic, n): offset for topic, n, offset in offsets}
    elif kind == "committing":
        transaction.commit_asked_at = at
    elif kind in {"committed", "aborted"}:
        transaction.ended(Outcome(kind))


def run_once(
    cluster: EmbeddedCluster,
    name: str,
    directory: Path,
    rng: random.Random,
    seconds: float,
    java: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """One run: what happened, and the rules that were broken."""
    directory.mkdir()
    with TransactionRun(cluster, name, directory, rng, java) as run:
        problems = run.run(seconds)
        return run.summary, problems
