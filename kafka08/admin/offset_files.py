"""Files of committed offsets: ours, and that of ExportZkOffsets and ImportZkOffsets.

Ours is one JSON object:

    {"version":1,"groups":{"<group>":{"<topic>":{"<partition>":[<ZooKeeper's or null>,<Kafka's>]}}}}

The JVM's has a line for each znode, `/consumers/<group>/offsets/<topic>/<partition>:<offset>`; the
offset is for both stores. A partition with two offsets is refused, where the JVM takes the last,
and an empty line is passed over, where the JVM ends. An offset of -1 is none: a member of 0.8.2.2
that had no position has committed it.
Sources: kafka.tools.ExportZkOffsets, ImportZkOffsets 0.8.2.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kafka08.admin.group_facts import GroupFacts, OfBoth, Offset
from kafka08.errors import ConfigError
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import paths

VERSION: Final = 1
FORM: Final = '{"version":1,"groups":{"readers":{"pages":{"0":[120,null]}}}}'
LINE_FORM: Final = "/consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET"
LINE: Final = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+):(\d+|-1)")

OffsetsByGroup = dict[str, dict[TopicPartition, OfBoth]]
"""group → partition → offsets, at least one."""


def to_json(groups: Iterable[GroupFacts]) -> str:
    """Both stores, whole; partitions and groups of which neither has an offset are left out."""
    content: dict[str, dict[str, dict[str, list[Offset]]]] = {}
    for facts in groups:
        for p in facts.partitions:
            offsets = [None if o == NO_OFFSET else o for o in (p.zookeeper, p.kafka)]
            if offsets == [None, None]:
                continue
            tp = p.topic_partition
            topics = content.setdefault(facts.group, {})
            topics.setdefault(tp.topic, {})[str(tp.partition)] = offsets
    return json.dumps({"version": VERSION, "groups": content}, indent=1) + "\n"


def to_jvm_lines(groups: Iterable[GroupFacts], store: str) -> Iterator[str]:
    """One line for each offset of one store (`newest`: the larger of both)."""
    for facts in groups:
        for p in facts.partitions:
            offset = {"zookeeper": p.zookeeper, "kafka": p.kafka, "newest": p.newest}[store]
            if offset not in {None, NO_OFFSET}:
                yield f"{paths.offset(facts.group, *p.topic_partition)}:{offset}"


def read_offsets(path: Path) -> OffsetsByGroup:
    """Read a file in either format, without groups that have no offset in it. ConfigError with the
    file and its fault, also for a file without any offset."""
    try:
        found = parse(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not a file of offsets: byte {error.start} is not UTF-8 text"
        ) from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    with_offsets = {group: offsets for group, offsets in found.items() if offsets}
    if not with_offsets:
        raise ConfigError(
            f"{path}: no offsets in it; a file of them has lines like {LINE_FORM}, or is {FORM}"
        )
    return with_offsets


def parse(text: str) -> OffsetsByGroup:
    """Either format. ConfigError naming what is wrong."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    return _parse_lines(text)


def _parse_lines(text: str) -> OffsetsByGroup:
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise ConfigError(f"line {number}: {line!r} is not {LINE_FORM}")
        group, topic, partition, offset = match.groups()
        tp = TopicPartition(topic, int(partition))
        if (before := found.setdefault(group, {}).setdefault(tp, int(offset))) != int(offset):
            raise ConfigError(
                f"line {number}: {tp} of group {group} has offset {offset} here and {before} in a "
                "line before; leave one of them"
            )
    return {
        group: {tp: (o, o) for tp, o in offsets.items() if o != NO_OFFSET}
        for group, offsets in found.items()
    }


def _parse_json(text: str) -> OffsetsByGroup:
    try:
        fields = _object(json.loads(text, object_pairs_hook=_unique), "the file")
        if (version := fields.get("version")) != VERSION:
            raise ValueError(f"its version is {_shown(version)}, not {VERSION}")
        groups = _object(fields.get("groups"), "groups")
        return {group: dict(_known_of(group, topics)) for group, topics in groups.items()}
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"not a file of kafka08 offsets export: {error}; one has the form {FORM}"
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object; ValueError for one that it has twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"{_shown(twice)} is twice in one object; leave one of them")
    return fields


def _known_of(group: str, topics: Any) -> Iterator[tuple[TopicPartition, OfBoth]]:
    """The offsets of each partition that has one; ValueError naming what is wrong."""
    for topic, partitions in _object(topics, f"group {group}").items():
        place = f"group {group}, topic {topic}"
        for number, offsets in _object(partitions, place).items():
            if not number.isdecimal():
                raise ValueError(f"{place}: {number!r} is not a partition")
            known = _known(offsets, f"{place}, partition {number}")
            if known != (None, None):
                yield TopicPartition(topic, int(number)), known


def _known(offsets: Any, place: str) -> OfBoth:
    """Both offsets; ValueError for anything that is not an offset."""
    if not isinstance(offsets, list) or len(offsets) != 2:
        raise ValueError(f"{place}: {_shown(offsets)} is not [ZooKeeper's offset, Kafka's]")
    for offset in offsets:
        if offset is not None and (type(offset) is not int or offset < NO_OFFSET):
            raise ValueError(
                f"{place}: {_shown(offset)} is not an offset: give a number from 0 on, or null"
            )
    zookeeper, kafka = (None if offset == NO_OFFSET else offset for offset in offsets)
    return zookeeper, kafka


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: {_shown(value)} is not a JSON object")
    return value


def _shown(value: Any) -> str:
    """The text as in the file, shortened."""
    return json.dumps(value)[:60]
