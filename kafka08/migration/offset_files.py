"""Files of committed offsets: ours, and that of ExportZkOffsets and ImportZkOffsets.

Ours is one JSON object:

    {"version":1,"groups":{"<group>":{"<topic>":{"<partition>":[<ZooKeeper's or null>,<Kafka's>]}}}}

The JVM's has a line for each znode, `/consumers/<group>/offsets/<topic>/<partition>:<offset>`, and
ends at the first empty one. Sources: kafka.tools.ExportZkOffsets, ImportZkOffsets 0.8.2.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kafka08.errors import ConfigError
from kafka08.migration.facts import GroupFacts, Offset
from kafka08.structs import TopicPartition
from kafka08.zk import paths

VERSION: Final = 1
LINE: Final = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+):(\d+)")

GroupOffsets = dict[str, dict[TopicPartition, int]]
"""group → partition → offset."""


def to_json(groups: Iterable[GroupFacts]) -> str:
    """Both stores, whole."""
    content: dict[str, dict[str, dict[str, list[Offset]]]] = {}
    for facts in groups:
        topics = content.setdefault(facts.group, {})
        for p in facts.partitions:
            tp = p.topic_partition
            topics.setdefault(tp.topic, {})[str(tp.partition)] = [p.zookeeper, p.kafka]
    return json.dumps({"version": VERSION, "groups": content}, indent=1) + "\n"


def to_jvm_lines(groups: Iterable[GroupFacts], store: str) -> Iterator[str]:
    """One line for each offset of one store (`newest`: the larger of both)."""
    for facts in groups:
        for p in facts.partitions:
            offset = {"zookeeper": p.zookeeper, "kafka": p.kafka, "newest": p.newest}[store]
            if offset is not None:
                yield f"{paths.offset(facts.group, *p.topic_partition)}:{offset}"


def read_offsets(path: Path) -> GroupOffsets:
    """What a file says, in either format; ConfigError naming it and what is wrong."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not a file of offsets: byte {error.start} is no UTF-8 text"
        ) from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(text: str) -> GroupOffsets:
    """Either format; of ours the larger offset of both stores. ConfigError naming what is wrong."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    return _parse_lines(text)


def _parse_lines(text: str) -> GroupOffsets:
    found: GroupOffsets = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            break
        match = LINE.fullmatch(line)
        if match is None:
            raise ConfigError(
                f"line {number}: {line!r} is not /consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET"
            )
        group, topic, partition, offset = match.groups()
        found.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    return found


def _parse_json(text: str) -> GroupOffsets:
    try:
        fields = json.loads(text)
        if fields["version"] != VERSION:
            raise ValueError(f"version {fields['version']} is not {VERSION}")
        groups: Mapping[str, Mapping[str, Mapping[str, list[Offset]]]] = fields["groups"]
        return {
            group: {
                TopicPartition(topic, int(number)): max(known)
                for topic, partitions in topics.items()
                for number, offsets in partitions.items()
                if (known := _known(offsets))
            }
            for group, topics in groups.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"not a file of kafka08 offsets export: {error}") from error


def _known(offsets: Iterable[Offset]) -> list[int]:
    """Those that are there; ValueError for what can be none."""
    for offset in offsets:
        if offset is not None and (type(offset) is not int or offset < 0):
            raise ValueError(f"{offset!r} is no offset, which is a number from 0 on, or null")
    return [offset for offset in offsets if offset is not None]
