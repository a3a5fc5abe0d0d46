"""Files of committed offsets: ours, and that of ExportZkOffsets and ImportZkOffsets.

Ours is one JSON object:

    {"version":1,"groups":{"<group>":{"<topic>":{"<partition>":[<ZooKeeper's or null>,<Kafka's>]}}}}

The JVM's has a line for each znode, `/consumers/<group>/offsets/<topic>/<partition>:<offset>`, and
ends at the first empty one. A partition with two offsets is refused; the JVM takes the last.
Sources: kafka.tools.ExportZkOffsets, ImportZkOffsets 0.8.2.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kafka08.errors import ConfigError
from kafka08.migration.facts import GroupFacts, Offset
from kafka08.structs import TopicPartition
from kafka08.zk import paths

VERSION: Final = 1
FORM: Final = '{"version":1,"groups":{"readers":{"pages":{"0":[120,null]}}}}'
LINE_FORM: Final = "/consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET"
LINE: Final = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+):(\d+)")

OffsetsByGroup = dict[str, dict[TopicPartition, int]]
"""group → partition → offset."""


def to_json(groups: Iterable[GroupFacts]) -> str:
    """Both stores, whole; partitions and groups of which neither has an offset are left out."""
    content: dict[str, dict[str, dict[str, list[Offset]]]] = {}
    for facts in groups:
        for p in facts.partitions:
            if p.newest is None:
                continue
            tp = p.topic_partition
            topics = content.setdefault(facts.group, {})
            topics.setdefault(tp.topic, {})[str(tp.partition)] = [p.zookeeper, p.kafka]
    return json.dumps({"version": VERSION, "groups": content}, indent=1) + "\n"


def to_jvm_lines(groups: Iterable[GroupFacts], store: str) -> Iterator[str]:
    """One line for each offset of one store (`newest`: the larger of both)."""
    for facts in groups:
        for p in facts.partitions:
            offset = {"zookeeper": p.zookeeper, "kafka": p.kafka, "newest": p.newest}[store]
            if offset is not None:
                yield f"{paths.offset(facts.group, *p.topic_partition)}:{offset}"


def read_offsets(path: Path) -> OffsetsByGroup:
    """Read a file in either format, without groups that have no offset in it. ConfigError with the
    file and its fault, also for a file without any offset."""
    try:
        found = parse(path.read_text(encoding="utf-8"))
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
    """Either format; of ours the larger offset of both stores. ConfigError naming what is wrong."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    return _parse_lines(text)


def _parse_lines(text: str) -> OffsetsByGroup:
    found: OffsetsByGroup = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            break
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
    return found


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


def _known_of(group: str, topics: Any) -> Iterator[tuple[TopicPartition, int]]:
    """The larger offset of each partition that has one; ValueError naming what is wrong."""
    for topic, partitions in _object(topics, f"group {group}").items():
        place = f"group {group}, topic {topic}"
        for number, offsets in _object(partitions, place).items():
            if not number.isdecimal():
                raise ValueError(f"{place}: {number!r} is not a partition")
            if known := _known(offsets, f"{place}, partition {number}"):
                yield TopicPartition(topic, int(number)), max(known)


def _known(offsets: Any, place: str) -> list[int]:
    """The offsets that are not null; ValueError for anything that is not an offset."""
    if not isinstance(offsets, list):
        raise ValueError(f"{place}: {_shown(offsets)} is not a list of offsets")
    for offset in offsets:
        if offset is not None and (type(offset) is not int or offset < 0):
            raise ValueError(
                f"{place}: {_shown(offset)} is not an offset: give a number from 0 on, or null"
            )
    return [offset for offset in offsets if offset is not None]


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: {_shown(value)} is not a JSON object")
    return value


def _shown(value: Any) -> str:
    """The text as in the file, shortened."""
    return json.dumps(value)[:60]
