"""Checks of topics: their configurations, names, and the offsets topic."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from kafka08.doctor.check import ZOOKEEPER, Found, Z, note, problem
from kafka08.doctor.snapshot import Snapshot, TopicFacts
from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.listing import counted
from kafka08.structs import OFFSETS_TOPIC
from kafka08.topic_config import CLEANUP_POLICY, MIN_INSYNC, UNCLEAN_ELECTIONS, parse_topic_config
from kafka08.topic_name import fault_of
from kafka08.zk import paths

COMPACT: Final = "compact"
NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


def number(config: Mapping[str, str], key: str) -> int | None:
    """An override as a number; None without it, or if it is not a number."""
    text = config.get(key, "").strip()
    return int(text) if NUMBER.fullmatch(text) else None


def _configured(snapshot: Snapshot) -> Iterator[tuple[str, TopicFacts, Mapping[str, str]]]:
    for topic, facts in snapshot.topics.items():
        if facts.config:
            yield topic, facts, facts.config


def _unreadable(snapshot: Snapshot) -> Iterator[Found]:
    for topic, facts in snapshot.topics.items():
        if facts.fault:
            yield Found(paths.topic(topic), f"cannot be read: {facts.fault}")


def _empty(snapshot: Snapshot) -> Iterator[Found]:
    for topic, facts in snapshot.topics.items():
        if not facts.partitions and not facts.fault:
            yield Found(f"topic {topic}", "has no partitions")


def _illegal_name(snapshot: Snapshot) -> Iterator[Found]:
    for topic in snapshot.topics:
        if fault := fault_of(topic):
            yield Found(paths.topic(topic), fault)


def _names_collide(snapshot: Snapshot) -> Iterator[Found]:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for topic in snapshot.topics:
        alike[topic.replace(".", "_")].append(topic)
    for topics in alike.values():
        if len(topics) > 1:
            yield Found(" and ".join(topics), "differ in . and _ alone")


def _config_unreadable(snapshot: Snapshot) -> Iterator[Found]:
    for topic, facts in snapshot.topics.items():
        if facts.config is None and facts.config_fault:
            yield Found(paths.topic_config(topic), f"cannot be read: {facts.config_fault}")


def _config_invalid(snapshot: Snapshot) -> Iterator[Found]:
    # Brokers without ZooKeeper have keys that we do not know, and have checked them all.
    for topic, _, config in _configured(snapshot) if snapshot.place.zookeeper else ():
        try:
            parse_topic_config(config, max(Level))
        except ConfigError as error:
            yield Found(f"topic {topic}", str(error))


def _min_insync_above_replicas(snapshot: Snapshot) -> Iterator[Found]:
    for topic, facts, config in _configured(snapshot):
        wanted = number(config, MIN_INSYNC)
        most = max((len(p.replicas) for p in facts.partitions.values()), default=0)
        if wanted is not None and facts.partitions and wanted > most:
            yield Found(
                f"topic {topic}", f"min.insync.replicas is {wanted}, it has {most} replicas"
            )


def _min_insync_not_met(snapshot: Snapshot) -> Iterator[Found]:
    for tp, partition in snapshot.partitions():
        wanted = number(snapshot.topics[tp.topic].config or {}, MIN_INSYNC)
        if wanted is None or partition.state is None or wanted > len(partition.replicas):
            continue
        if len(partition.state.isr) < wanted:
            yield Found(
                str(tp),
                f"{counted(len(partition.state.isr), 'replica')} in sync, min.insync.replicas is "
                f"{wanted}",
            )


def _unclean_allowed(snapshot: Snapshot) -> Iterator[Found]:
    for topic, _, config in _configured(snapshot):
        if config.get(UNCLEAN_ELECTIONS, "").lower() == "true":
            yield Found(f"topic {topic}", f"has {UNCLEAN_ELECTIONS}=true")


def _retention_below_segment(snapshot: Snapshot) -> Iterator[Found]:
    for topic, _, config in _configured(snapshot):
        retention, segment = number(config, "retention.bytes"), number(config, "segment.bytes")
        if retention is not None and segment is not None and 0 <= retention < segment:
            yield Found(
                f"topic {topic}", f"retention.bytes {retention} is below segment.bytes {segment}"
            )


def _replica_counts_differ(snapshot: Snapshot) -> Iterator[Found]:
    moving = {} if snapshot.reassignment is None else snapshot.reassignment.targets
    for topic, facts in snapshot.topics.items():
        counts = sorted({len(p.replicas) for p in facts.partitions.values()})
        if len(counts) > 1 and not any(tp.topic == topic for tp in moving):
            text = " and ".join(map(str, counts))
            yield Found(f"topic {topic}", f"its partitions have {text} replicas")


def _offsets_one_replica(snapshot: Snapshot) -> Iterator[Found]:
    facts = snapshot.topics.get(OFFSETS_TOPIC)
    if facts is None or len(snapshot.live) < 2:
        return
    alone = [number for number, p in facts.partitions.items() if len(p.replicas) == 1]
    if alone:
        yield Found(OFFSETS_TOPIC, f"{len(alone)} partitions have one replica")


def _offsets_not_compacted(snapshot: Snapshot) -> Iterator[Found]:
    facts = snapshot.topics.get(OFFSETS_TOPIC)
    if facts is not None and facts.config is not None:
        policy = facts.config.get(CLEANUP_POLICY)
        if policy != COMPACT:
            yield Found(OFFSETS_TOPIC, f"its cleanup.policy is {policy or 'the default'}")


CHECKS: Final = (
    problem("topic-unreadable", "its partitions are unknown to every broker",
            f"kafka08 topic list {Z}", _unreadable),
    problem("topic-empty", "nothing can be produced to it",
            f"delete it, and create it again: kafka08 topic delete TOPIC {Z}", _empty),
    problem("topic-name", "brokers cannot make its log directories",
            "delete that znode", _illegal_name),
    note("topic-names-collide", "their metrics have the same name in the JVM's brokers",
         f"kafka08 topic list {Z}", _names_collide),
    problem("topic-config-unreadable", "brokers treat it as if there were no overrides",
            f"kafka08 topic alter TOPIC --config KEY=VALUE {Z}", _config_unreadable),
    problem("topic-config-invalid", "brokers do not apply it, or do not start",
            "set that override again, or remove it: "
            f"kafka08 topic alter TOPIC --delete-config KEY {Z}", _config_invalid),
    problem("min-insync-above-replicas", "no message with acks=-1 is ever accepted",
            "give it more replicas by a reassignment, or ask for fewer: "
            f"kafka08 topic alter TOPIC --config {MIN_INSYNC}=N {Z}", _min_insync_above_replicas),
    problem("min-insync-not-met", "messages with acks=-1 are refused now",
            "start the replicas that are down, or ask for fewer: "
            f"kafka08 topic alter TOPIC --config {MIN_INSYNC}=N {Z}", _min_insync_not_met),
    note("unclean-election-allowed", "a replica that is behind may lead, and acknowledged messages "
         "are lost", f"kafka08 topic alter TOPIC --config {UNCLEAN_ELECTIONS}=false {Z}",
         _unclean_allowed),
    note("retention-below-segment", "the active segment is never deleted, so more is kept",
         f"kafka08 topic alter TOPIC --config segment.bytes=BYTES {Z}", _retention_below_segment),
    problem("replica-counts-differ", "a reassignment was aborted, or partitions were added with "
            "fewer copies", f"kafka08 partition reassign --topic TOPIC --brokers ID,.. {ZOOKEEPER}",
            _replica_counts_differ),
    problem("offsets-topic-one-replica", "with that broker the groups lose their offsets",
            "kafka08 partition reassign --help", _offsets_one_replica),
    problem("offsets-topic-not-compacted", "committed offsets are deleted with old segments",
            f"kafka08 topic alter {OFFSETS_TOPIC} --config cleanup.policy=compact {Z}",
            _offsets_not_compacted),
)  # fmt: skip
