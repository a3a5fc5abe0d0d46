"""A drawn history of two brokers, as lines of text that tell what they answered and became.

Clients and followers send the drawn requests to broker 1. Broker 2 copies the topic "copied" from
it, or leads that instead. In between the clock moves, leaders and ISRs change, segments are rolled
and deleted, native jobs run, and connections close; from 0.11 on transactions end and records are
deleted. Each step is a line:

    produce2 acks -1 t/0,t/3 d9b5a70e | 0 5cd1e62f | 1:t/0 hw 4 leo 6 in 12/1830 | files 08a7d35c

that is the step, with a digest of its request; the connections that got responses, with a digest of
their frames, `end` where one was closed; the fields of both brokers' partitions that changed (as
Partition and FollowerReplica have them); and a digest of the segments, indexes, producer snapshots
and leader epochs of the partitions whose logs changed. The last line is of all of these files after
both brokers stopped.

`scripts/record-requests` writes the files tests/data/requests-LEVEL.txt, which
test_recorded_requests replays: with the fast ways and without, on both kernels. They change only if
a rule changes.
"""

from __future__ import annotations

import hashlib
import logging
import random
import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from kafka08 import kernel
from kafka08.broker.replica.traffic import Traffic
from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.config import LONG_MAX
from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.log.names import LEADER_EPOCH_CHECKPOINT
from kafka08.log.producers import TransactionEnd
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol.codec import encode_request
from kafka08.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka08.protocol.fetch import MAGIC_1_VERSION
from kafka08.protocol.offset_records import OffsetKey, encode_key, encode_value
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.served import SERVED
from kafka08.structs import OFFSETS_TOPIC, Broker, LeaderAndIsr, OffsetAndMetadata, TopicPartition
from kafka08.zk.store import ClusterStore
from tests.broker.fetching_pair import Wire
from tests.broker.requests.drawn_requests import (
    FETCH_ISOLATION,
    MESSAGE_BYTES_MAX,
    PARTITIONS,
    PRODUCE_MAGIC_2,
    SEGMENT_BYTES,
    SNAPPY,
    TRANSACTIONAL,
    Sequences,
    draw_batches,
    draw_fetch,
    draw_produce,
)
from tests.broker.world import CONTROLLER_EPOCH, Client, World

DATA: Final = Path(__file__).parents[2] / "data"
LEVELS: Final = tuple(Level)
HISTORIES: Final = 10
REQUESTS: Final = 200
"""In each history."""
HEADING: Final = "history "
SUFFIXES: Final = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
OFFSETS: Final = TopicPartition(OFFSETS_TOPIC, 0)
ADMIN_CLIENT: Final = "__admin_client"
CONFIGS: Final = {
    "u": {"segment.index.bytes": "24", "retention.bytes": "3000"},
    "compact": {"cleanup.policy": "compact"},
    "flushed": {"flush.messages": "3"},
    "safe": {"min.insync.replicas": "2"},
}
CONFIGS_0_10: Final = {
    "old": {"message.format.version": "0.9.0"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "strict": {"message.timestamp.difference.max.ms": "10000"},
}
REPLICAS: Final = {"u": (1,), "compact": (1,), "copied": (1, 2), "safe": (1, 2)}
"""Others have three."""

Fields = dict[str, str]


def recording(level: Level) -> Path:
    return DATA / f"requests-{level}.txt"


def read_recording(level: Level) -> list[list[str]]:
    """The lines of each history."""
    histories: list[list[str]] = []
    for line in recording(level).read_text().splitlines():
        if line.startswith(HEADING):
            histories.append([])
        else:
            histories[-1].append(line)
    return histories


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:8]


class Copying:
    """Broker `follower` copies what broker `leader` leads, each time that `round` is called."""

    def __init__(self, leader: World, follower: World) -> None:
        self.leader = leader
        self.follower = follower
        self.aborts = 0
        cast("Any", follower.runtime).dial = lambda *_: Wire(cast("Any", self))
        leader_id = leader.config.broker_id
        self.fetcher = ReplicaFetcher(
            follower.config,
            cast("Any", follower.runtime),
            follower.log_manager,
            cast("ClusterStore", follower.store),
            leader=Broker(leader_id, "127.0.0.1", 19090 + leader_id),
            fetcher_id=0,
            checkpoint=follower.replica_manager.checkpoint_high_watermarks,
            checkpoint_starts=follower.log_starts.write,
        )

    def while_fetching(self) -> None: ...

    def while_waiting(self) -> None: ...

    def follow(self, topic: str, *, leads: bool) -> None:
        """Begin anew with this topic's partitions; `leads`: whether the leader leads them."""
        partitions = [
            one for one in self.follower.replica_manager if one.topic_partition.topic == topic
        ]
        self.fetcher.remove([one.topic_partition for one in partitions])
        if leads:
            self.fetcher.add(partitions)


class History:
    """Two brokers of one level, and what a random source makes of them.

    handlers   whether all requests go to the handlers
    taken      requests that the fast ways answered
    """

    def __init__(self, directory: Path, level: Level, number: int, *, handlers: bool) -> None:
        self._draw = random.Random(f"{level} {number}")
        self._level = level
        self._worlds = [
            World(
                directory / str(broker_id),
                broker_id=broker_id,
                native_inline=bool(number % 2),
                api_level=str(level),
                log_segment_bytes=SEGMENT_BYTES,
                log_index_interval_bytes=300,
                message_max_bytes=MESSAGE_BYTES_MAX,
                replica_lag_time_max_ms=3000,
                replica_fetch_max_bytes=MESSAGE_BYTES_MAX,
                unclean_leader_election_enable=True,  # a leader may be drawn from any replica
            )
            for broker_id in (1, 2)
        ]
        self._has_magic_1 = level >= Level.V0_10_2
        self._has_records = level >= Level.V0_11_0
        self._sequences = Sequences()
        self._directory = directory
        self._world = self._worlds[0]
        self._copying = [Copying(*self._worlds), Copying(*reversed(self._worlds))]
        self._clients: list[Client] = []
        self._known: dict[str, Fields] = {}
        self._commits = 0
        self.taken = 0
        for world in self._worlds:
            world.store.live = [1, 2, 3]
            if handlers:
                world.handle._fast_path.clear()
        ways = self._world.handle._fast_path
        ways |= {api: self._counted(way) for api, way in ways.items()}
        self._start = self._world.runtime.now

    def _counted(self, way: Callable[..., Any]) -> Any:
        def answer(payload: memoryview, link: Any) -> Any:
            response = way(payload, link)
            self.taken += response is None or isinstance(response, bytes | list)
            return response

        return answer

    def lines(self) -> Iterator[str]:
        """The history, step by step."""
        configs = CONFIGS | (CONFIGS_0_10 if self._has_magic_1 else {})
        for topic in (*PARTITIONS, OFFSETS_TOPIC):
            self._elect(
                topic, 1, (1, 2) if self._replicas(topic) != (1,) else (1,), configs.get(topic)
            )
        self._elect("followed", 2, (1, 2))
        yield self._line("start")
        sent = 0
        while sent < REQUESTS:
            steps = {
                self._request: 100, self._commit: 3, self._copy: 15, self._wait: 12,
                self._change_leader: 4, self._shrink: 4, self._close: 1, self._run_jobs: 10,
            }  # fmt: skip
            if self._has_records:
                steps |= {self._end: 6, self._delete: 2}
            step = self._draw.choices([*steps], [*steps.values()])[0]
            sent += step == self._request
            text = step()
            for world in self._worlds:
                world.runtime.advance(0)  # to the end of the turn
            yield self._line(text)
        for world in self._worlds:
            world.runtime.run_native_jobs()
            world.replica_manager.shutdown()
            world.log_manager.shutdown()
        yield f"stop | {digest(*self._files(self._directory))}"

    # Steps

    def _request(self) -> str:
        kind = self._draw.choice((0, 0, 1, 1))
        versions = [v for v in range(6) if (kind, v) in SERVED[self._level].rows]
        if kind and self._has_magic_1 and not self._world.runtime.native_inline:
            # A client cannot wait for a conversion here.
            versions = versions[FETCH_ISOLATION if self._has_records else MAGIC_1_VERSION :]
        version, now_ms = self._draw.choice(versions), self._world.runtime.time_ms()
        follower = bool(kind) and self._draw.random() < 0.6
        request: Any
        if kind:
            request = draw_fetch(self._draw, self._world, version, from_follower=follower)
        elif version >= PRODUCE_MAGIC_2:
            request = draw_batches(self._draw, now_ms, self._sequences)
        else:
            request = draw_produce(self._draw, version, now_ms)
        client_id = self._draw.choice(("c", "c", "c", None, ADMIN_CLIENT))
        frame = encode_request(request, self._draw.randrange(1 << 31), client_id)
        free = [one for one in self._clients if not one.parked and not one.ending]
        if not free:
            free = [Client(self._world, number=next(NUMBERS))]
            self._clients += free
        client = self._draw.choice(free)
        try:
            client.send(frame)
        except ProtocolError:
            client.finish()
        places = ",".join(f"{t.topic}/{p.partition}" for t in request.topics for p in t.partitions)
        if isinstance(request, ProduceRequest):
            what = f"produce{version} acks {request.required_acks}"
        else:
            what = f"fetch{version} of {request.replica_id}"
        return f"{what} {places} {digest(frame)}"

    def _commit(self) -> str:
        """Append records of the broker itself."""
        self._commits += 1
        count, acks = self._draw.randint(1, 3), self._draw.choice((-1, 1))
        codec = self._draw.choice((0, 0, SNAPPY))
        key = OffsetKey("g", "t", self._draw.randrange(3))
        value = encode_value(OffsetAndMetadata(self._commits, "", self._world.runtime.time_ms()))
        results: list[Any] = []
        self._world.appender.append_internal(
            OFFSETS, [(encode_key(key), value)] * count, codec=codec, required_acks=acks,
            timeout_ms=100, done=results.append,
        )  # fmt: skip
        found = [(one.base_offset, one.error_code) for one in results]
        return f"commit{count} acks {acks} codec {codec}: {found}"

    def _end(self) -> str:
        """Write markers that end a transaction in some partitions."""
        topics = self._draw.sample(["t", "copied", "safe"], self._draw.randint(1, 3))
        commits, age = self._draw.random() < 0.5, self._draw.choice((0, 0, 0, 1))
        epoch = max(0, self._sequences.epochs[TRANSACTIONAL] - age)
        codes: list[int] = []
        self._world.context.marker_writer.write(
            TransactionEnd(TRANSACTIONAL, epoch, commits, coordinator_epoch=3),
            [TopicPartition(topic, n) for topic in topics for n in range(PARTITIONS[topic])],
            lambda _, code: codes.append(code),
        )
        return f"end {epoch} {'commit' if commits else 'abort'} {','.join(topics)}: {codes}"

    def _delete(self) -> str:
        """A client deletes the first records of a log."""
        topic = self._draw.choice(("t", "u", "copied"))
        log = self._world.partition(topic).log
        offset = self._draw.randint(log.log_start_offset, log.log_end_offset)
        asked = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
        client = Client(self._world, number=next(NUMBERS))
        self._clients.append(client)
        client.send(encode_request(DeleteRecordsRequest([asked], 100), 1, "c"))
        return f"delete {topic} before {offset}"

    def _copy(self) -> str:
        for copying in self._copying:
            if len(copying.fetcher):
                copying.fetcher.round()
        return "copy"

    def _wait(self) -> str:
        seconds = self._draw.choice((0.06, 0.06, 0.6, 1.1, 4))
        for world in self._worlds:
            world.runtime.advance(seconds)
        return f"wait {seconds}"

    def _change_leader(self) -> str:
        """An election, or the same leader with another ISR; sometimes the ISR's next change meets
        another version of its znode."""
        topic = self._draw.choice(("t", "t", "copied", "copied", "copied", "safe", "flushed", "u",
                                   OFFSETS_TOPIC))  # fmt: skip
        replicas = self._replicas(topic)
        leader = self._draw.choice((1, 1, 2)) if 2 in replicas else 1
        others = [one for one in replicas if one != leader]
        isr = (leader, *self._draw.sample(others, self._draw.randint(0, len(others))))
        if topic == OFFSETS_TOPIC:
            isr = (leader,)  # Else the load of its offsets waits for the HW.
        self._elect(topic, leader, isr, zk_version=self._draw.choice((0, 0, 0, 1)))
        return f"elect {topic} {leader} of {isr}"

    def _shrink(self) -> str:
        """What a broker does on a schedule."""
        for world in self._worlds:
            world.replica_manager.shrink_isrs()
            world.log_manager.retain()
        return "shrink"

    def _close(self) -> str:
        if not self._clients:
            return "close"
        index = self._draw.randrange(len(self._clients))
        self._clients[index].close()
        return f"close {index}"

    def _run_jobs(self) -> str:
        for world in self._worlds:
            world.runtime.run_native_jobs()
        return "jobs"

    def _elect(
        self,
        topic: str,
        leader: int,
        isr: tuple[int, ...],
        config: dict[str, str] | None = None,
        zk_version: int = 0,
    ) -> None:
        replicas, count = self._replicas(topic), PARTITIONS.get(topic, 1)
        for world in self._worlds if topic == "copied" else self._worlds[:1]:
            world.lead(topic, count, config, leader=leader, isr=isr, replicas=replicas)
            for number in range(count):
                epoch = world.partition(topic, number).leader_epoch
                world.store.states[TopicPartition(topic, number)] = LeaderAndIsr(
                    leader, epoch, isr, zk_version, CONTROLLER_EPOCH
                )
        if topic == "copied":
            for copying in self._copying:
                copying.follow(topic, leads=copying.leader.config.broker_id == leader)

    def _replicas(self, topic: str) -> tuple[int, ...]:
        return REPLICAS.get(topic, (1, 2, 3))

    # What came of it

    def _line(self, step: str) -> str:
        answered = []
        for index, client in enumerate(self._clients):
            frames = client.frames()
            if frames:
                answered.append(f"{index} {digest(*frames)}")
            if client.ending and client.peer:
                client.peer = ""
                answered.append(f"{index} end")
        changes, directories = [], []
        for world in self._worlds:
            for partition in world.replica_manager:
                name = f"{world.config.broker_id}:{partition.topic_partition.topic}/"
                name += str(partition.topic_partition.partition)
                before, now = self._known.get(name, {}), self._fields(partition)
                changed = [f"{k} {v}" for k, v in now.items() if v != before.get(k)]
                if changed:
                    changes.append(" ".join((name, *changed)))
                if now["log"] != before.get("log") and partition.log is not None:
                    directories.append(partition.log.directory)
                self._known[name] = now
        parts = [step, ", ".join(answered), ", ".join(changes)]
        if directories:
            files = (part for one in directories for part in self._files(one))
            parts.append(f"files {digest(*files)}")
        return " | ".join(parts).rstrip(" |")

    def _fields(self, partition: Any) -> Fields:
        log = partition.log
        flushed_to = partition.high_watermark_max
        counts = Traffic(*(getattr(partition, name) for name in Traffic._fields))
        return {
            "leader": f"{partition.leader}@{partition.leader_epoch}v{partition.zk_version}",
            "hw": str(partition.high_watermark),
            "max": "" if flushed_to == LONG_MAX else str(flushed_to),
            "log": "" if log is None else f"{log.log_start_offset}-{log.log_end_offset}/{log.size}",
            "isr": ".".join(map(str, partition.isr)),
            "maximal": ".".join(map(str, partition.maximal_isr)),
            "enough": str(partition.reached_in_sync),
            "queued": str(int(partition.is_queued)),
            **self._stable(partition),
            "counts": "/".join(map(str, counts)),
            **{f"of{one.broker_id}": self._follower(one) for one in partition.followers.values()},
        }

    def _stable(self, partition: Any) -> Fields:
        if not self._has_records or partition.log is None:
            return {}
        return {"lso": str(partition.last_stable_offset)}

    def _follower(self, one: Any) -> str:
        fetched_at, up_at = one.last_fetch - self._start, one.last_caught_up - self._start
        return f"{one.log_end_offset}/{one.leader_log_end}@{fetched_at:.2f}/{up_at:.2f}"

    def _files(self, directory: Path) -> Iterator[bytes]:
        for path in sorted(directory.rglob("*")):
            if path.suffix in SUFFIXES or path.name == LEADER_EPOCH_CHECKPOINT:
                yield path.name.encode() + path.read_bytes()


def play(level: Level, number: int, *, handlers: bool = False) -> tuple[list[str], int]:
    """The lines of a history, and the number of requests that the fast ways answered."""
    with TemporaryDirectory() as directory:
        history = History(Path(directory), level, number, handlers=handlers)
        return list(history.lines()), history.taken


def first_difference(level: Level, number: int, *, handlers: bool) -> str:
    """Where a history is not as recorded; empty if it is. Unless all requests go to the handlers,
    the fast ways must answer many."""
    lines, taken = play(level, number, handlers=handlers)
    way = "handlers" if handlers else "fast ways"
    for step, (recorded, now) in enumerate(zip_longest(read_recording(level)[number], lines)):
        if recorded != now:
            return (
                f"level {level}, history {number}, step {step}, {way}, {kernel.NAME} kernel\n"
                f"recorded: {recorded}\nnow:      {now}\n"
            )
    if not handlers and taken < REQUESTS / 8:
        return f"level {level}, history {number}: the fast ways answered {taken} of {REQUESTS}\n"
    return ""


def record(level: Level) -> None:
    lines: list[str] = []
    for number in range(HISTORIES):
        lines += [f"{HEADING}{number}", *play(level, number)[0]]
    recording(level).write_text("\n".join(lines) + "\n")


def main() -> int:
    """Record; or with `--check COUNT` tell what is different in the first histories."""
    logging.disable()
    if len(sys.argv) == 1:
        for level in LEVELS:
            record(level)
        return 0
    found = "".join(
        first_difference(level, number, handlers=handlers)
        for level in LEVELS
        for number in range(int(sys.argv[2]))
        for handlers in (False, True)
    )
    sys.stdout.write(found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
