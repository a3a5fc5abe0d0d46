"""Checks of local log directories, and of the properties files of brokers and clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka08.doctor.check import Found, Z, note, problem
from kafka08.doctor.checks_topics import number
from kafka08.doctor.snapshot import FileFacts, Snapshot

FULL: Final = 0.9
DIRTY: Final = 0.9
SEALED_MIN: Final = 5
"""A log with fewer sealed segments is too small for conclusions about its cleaner."""
SESSION_MS_MIN: Final = 3000
"""Pauses of garbage collectors and disks can last about as long."""
FETCH_DEFAULT: Final = 1024 * 1024
SESSION_DEFAULT_MS: Final = 6000
REBALANCE_RETRIES_DEFAULT: Final = 4
SYNC_DEFAULT_MS: Final = 2000
BROKER, CONSUMER, PRODUCER = "broker", "consumer", "producer"


def _of_kind(snapshot: Snapshot, kind: str) -> Iterator[FileFacts]:
    return (file for file in snapshot.files if file.kind == kind and not file.fault)


def _value(file: FileFacts, key: str, default: int) -> int:
    found = number(file.values, key)
    return default if found is None else found


# Log directories


def _unusable(snapshot: Snapshot) -> Iterator[Found]:
    for directory in snapshot.log_directories:
        if directory.fault:
            yield Found(directory.path, directory.fault)


def _nearly_full(snapshot: Snapshot) -> Iterator[Found]:
    for directory in snapshot.log_directories:
        used = 1 - directory.free / directory.total
        if used > FULL and not directory.fault:
            yield Found(directory.path, f"its disk is {used:.0%} full")


def _one_disk(snapshot: Snapshot) -> Iterator[Found]:
    on: defaultdict[int, list[str]] = defaultdict(list)
    for directory in snapshot.log_directories:
        if not directory.fault:
            on[directory.device].append(directory.path)
    for paths in on.values():
        if len(paths) > 1:
            yield Found(" and ".join(paths), "are on one disk")


def _crashed(snapshot: Snapshot) -> Iterator[Found]:
    for directory in snapshot.log_directories:
        if directory.logs and not directory.in_use and not directory.was_clean:
            yield Found(directory.path, "its broker is down, and did not stop cleanly")


def _stray_logs(snapshot: Snapshot) -> Iterator[Found]:
    ids = {
        broker_id
        for file in _of_kind(snapshot, BROKER)
        if (broker_id := number(file.values, "broker.id")) is not None
    }
    if len(ids) != 1 or not snapshot.brokers:
        return
    [broker_id] = ids
    assigned = {tp for tp, p in snapshot.partitions() if broker_id in p.replicas}
    unreadable = {topic for topic, facts in snapshot.topics.items() if facts.fault}
    for directory in snapshot.log_directories:
        stray = sorted(
            tp
            for tp in set(directory.logs) - assigned
            if tp.topic not in snapshot.deletions
            and tp.topic not in unreadable
            and not _moves(snapshot, tp.topic)
        )
        if stray:
            yield Found(
                directory.path,
                f"has {len(stray)} logs of partitions that broker {broker_id} is not a replica of, "
                f"such as {stray[0]}",
            )


def _moves(snapshot: Snapshot, topic: str) -> bool:
    return snapshot.reassignment is not None and any(
        tp.topic == topic for tp in snapshot.reassignment.targets
    )


def _cleaner_dead(snapshot: Snapshot) -> Iterator[Found]:
    for directory in snapshot.log_directories:
        for tp, log in sorted(directory.logs.items()):
            facts = snapshot.topics.get(tp.topic)
            if facts is None or (facts.config or {}).get("cleanup.policy") != "compact":
                continue
            if log.sealed >= SEALED_MIN and log.dirty > DIRTY * log.size:
                yield Found(
                    f"{directory.path}/{tp.topic}-{tp.partition}",
                    f"has {log.sealed} segments that were never compacted",
                )


# Properties files


def _invalid(snapshot: Snapshot) -> Iterator[Found]:
    for file in snapshot.files:
        if file.fault:
            yield Found(file.path, file.fault)


def _unknown(snapshot: Snapshot) -> Iterator[Found]:
    for file in snapshot.files:
        if file.unknown:
            yield Found(file.path, f"unknown keys: {', '.join(file.unknown)}")


def _without_effect(snapshot: Snapshot) -> Iterator[Found]:
    for file in snapshot.files:
        if file.without_effect:
            yield Found(file.path, f"{', '.join(file.without_effect)} have no effect")


def _logs_in_tmp(snapshot: Snapshot) -> Iterator[Found]:
    for file in _of_kind(snapshot, BROKER):
        directories = file.values.get("log.dirs") or file.values.get("log.dir", "/tmp/kafka-logs")
        for directory in map(str.strip, directories.split(",")):
            if f"{directory}/".startswith(("/tmp/", "/var/tmp/")):
                yield Found(file.path, f"log.dirs has {directory}")


def _session_short(snapshot: Snapshot) -> Iterator[Found]:
    for file in snapshot.files:
        session_ms = _value(file, "zookeeper.session.timeout.ms", SESSION_DEFAULT_MS)
        if not file.fault and session_ms < SESSION_MS_MIN:
            yield Found(file.path, f"zookeeper.session.timeout.ms is {session_ms}")


def _below_largest_message(kind: str, key: str, snapshot: Snapshot) -> Iterator[Found]:
    """Finds files of a kind whose fetch size `key` is below a topic's max.message.bytes."""
    for file in _of_kind(snapshot, kind):
        fetch = _value(file, key, FETCH_DEFAULT)
        for topic, facts in snapshot.topics.items():
            largest = number(facts.config or {}, "max.message.bytes")
            if largest is not None and largest > fetch:
                yield Found(
                    f"{file.path}, topic {topic}",
                    f"max.message.bytes {largest} is above {key} {fetch}",
                )


_replica_fetch_short = partial(_below_largest_message, BROKER, "replica.fetch.max.bytes")
_fetch_short = partial(_below_largest_message, CONSUMER, "fetch.message.max.bytes")


def _offsets_replication(snapshot: Snapshot) -> Iterator[Found]:
    for file in _of_kind(snapshot, BROKER):
        if len(snapshot.live) > 1 and _value(file, "offsets.topic.replication.factor", 3) == 1:
            yield Found(file.path, "offsets.topic.replication.factor is 1")


def _cleaner_off(snapshot: Snapshot) -> Iterator[Found]:
    compacted = [
        topic
        for topic, facts in snapshot.topics.items()
        if (facts.config or {}).get("cleanup.policy") == "compact"
    ]
    for file in _of_kind(snapshot, BROKER):
        level = file.values.get("api.level", "0.8.2")
        default = "false" if level == "0.8.2" else "true"
        enabled = file.values.get("log.cleaner.enable", default).lower() == "true"
        if compacted and not enabled:
            yield Found(file.path, f"log.cleaner.enable is false, {compacted[0]} is compacted")


def _rebalance_formula(snapshot: Snapshot) -> Iterator[Found]:
    for file in _of_kind(snapshot, CONSUMER):
        session_ms = _value(file, "zookeeper.session.timeout.ms", SESSION_DEFAULT_MS)
        backoff = _value(
            file, "rebalance.backoff.ms", _value(file, "zookeeper.sync.time.ms", SYNC_DEFAULT_MS)
        )
        retries = _value(file, "rebalance.max.retries", REBALANCE_RETRIES_DEFAULT)
        if retries * backoff < session_ms:
            yield Found(
                file.path,
                f"rebalance.max.retries {retries} x rebalance.backoff.ms {backoff} is below "
                f"zookeeper.session.timeout.ms {session_ms}",
            )


def _no_acks(snapshot: Snapshot) -> Iterator[Found]:
    for file in _of_kind(snapshot, PRODUCER):
        for key in ("acks", "request.required.acks"):
            if file.values.get(key) == "0":
                yield Found(file.path, f"{key} is 0")


CHECKS: Final = (
    problem("log-directory-unusable", "a broker does not start with it, or stops",
            "check that it exists, and who may write to it", _unusable),
    problem("disk-nearly-full", "a broker stops when its disk is full",
            f"keep less: kafka08 topic alter TOPIC --config retention.bytes=BYTES {Z}",
            _nearly_full),
    note("log-directories-share-disk", "several directories on one disk are no faster than one",
         "df -h", _one_disk),
    note("broker-crashed", "its next start checks every log, which takes minutes",
         "kafka08 log check DIRECTORY", _crashed),
    problem("logs-left-behind", "they take disk, and no broker ever deletes them",
            "delete those directories while the broker is stopped, if nobody needs their messages",
            _stray_logs),
    problem("cleaner-dead", "compacted topics grow for ever, and offsets take longer to load",
            "restart the broker, and look for log-cleaner in its log", _cleaner_dead),
    problem("properties-invalid", "a program does not start with it",
            "see docs/configuration.md", _invalid),
    problem("properties-unknown", "a misspelt key has no effect, and its default holds",
            "see docs/configuration.md", _unknown),
    note("properties-without-effect", "their author expects an effect that they do not have",
         "see docs/configuration.md", _without_effect),
    note("logs-in-tmp", "the system deletes old files there",
         "set log.dirs to a permanent directory", _logs_in_tmp),
    problem("session-too-short", "one pause of a garbage collector or disk ends the session",
            "set zookeeper.session.timeout.ms to 6000", _session_short),
    problem("replica-fetch-too-small", "followers cannot copy a large message, and stay behind",
            "raise replica.fetch.max.bytes on all brokers", _replica_fetch_short),
    problem("offsets-replication-one", "with that broker the groups lose their offsets",
            "set offsets.topic.replication.factor to 3, before the topic is created",
            _offsets_replication),
    problem("cleaner-off", "compacted topics grow for ever",
            "set log.cleaner.enable to true", _cleaner_off),
    problem("rebalance-formula", "a rebalance gives up before the session of a dead member ends",
            "raise rebalance.max.retries", _rebalance_formula),
    problem("fetch-too-small", "the consumer stops at a large message",
            "raise fetch.message.max.bytes", _fetch_short),
    note("producer-without-acks", "a message that no broker accepted is lost silently",
         "set acks to 1 or all", _no_acks),
)  # fmt: skip
