"""Reads local log directories and properties files. Changes nothing, and takes no lock."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import Config, load_properties
from kafka08.consumer import ConsumerConfig, KafkaConsumerConfig
from kafka08.doctor.snapshot import FileFacts, LogDirectoryFacts, LogOnDisk
from kafka08.errors import ConfigError, CorruptLog
from kafka08.log.checkpoint import parse
from kafka08.log.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    LOCK_FILE,
    LOG_SUFFIX,
    base_offset_of,
    parse_partition_directory,
)
from kafka08.producer import KafkaProducerConfig
from kafka08.structs import TopicPartition

FLOCK: Final = struct.Struct("@hhqqi")
"""struct flock of Linux: type, whence, start, length, pid."""
CHECKPOINT_BYTES_MAX: Final = 16 << 20
ZOOKEEPER: Final = "zookeeper.connect"

KINDS: Final[Mapping[str, type[Config]]] = {
    "broker": BrokerConfig,
    "consumer": ConsumerConfig,
    "producer": KafkaProducerConfig,
    "KafkaConsumer": KafkaConsumerConfig,
}


def read_file(path: str, kind: str) -> FileFacts:
    """Read a properties file of that kind. A consumer's that names brokers instead of ZooKeeper is
    that of a KafkaConsumer."""
    values: dict[str, str] = {}
    try:
        values = load_properties(path)
        if kind == "consumer" and "bootstrap.servers" in values and ZOOKEEPER not in values:
            kind = "KafkaConsumer"
        config = KINDS[kind](values)
    except ConfigError as error:
        return FileFacts(path, kind, values, fault=str(error))
    # A key of another level is no typo: the file may be one of the JVM's.
    unknown = tuple(name for name in config.unknown if name not in config.KEYS)
    return FileFacts(path, kind, values, "", unknown, tuple(config.without_effect))


def read_log_directory(path: str) -> LogDirectoryFacts:
    """Read a log directory, its logs, and its disk."""
    directory = Path(path)
    try:
        usage = shutil.disk_usage(directory)
        cleaned = cleaner_points(directory)
        logs = {}
        for entry in sorted(directory.iterdir()):
            if entry.is_dir():
                try:
                    tp = parse_partition_directory(entry)
                except CorruptLog:
                    continue
                logs[tp] = measure(entry, cleaned.get(tp, 0))
        return LogDirectoryFacts(
            path,
            "",
            directory.stat().st_dev,
            max(1, usage.total),
            usage.free,
            logs,
            (directory / CLEAN_SHUTDOWN_FILE).exists(),
            is_locked(directory / LOCK_FILE),
        )
    except OSError as error:
        return LogDirectoryFacts(path, f"cannot be read: {error.strerror or error}")


def cleaner_points(directory: Path) -> Mapping[TopicPartition, int]:
    """partition → the offset that the cleaner has reached; {} if unknown."""
    file = directory / CLEANER_CHECKPOINT
    try:
        if file.stat().st_size > CHECKPOINT_BYTES_MAX:
            return {}
        return parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, CorruptLog):
        return {}


def measure(directory: Path, cleaned_to: int) -> LogOnDisk:
    """Measure a partition's log, which is compacted below `cleaned_to`."""
    sizes = {}
    for file in directory.glob(f"*{LOG_SUFFIX}"):
        try:
            sizes[base_offset_of(file)] = file.stat().st_size
        except (OSError, CorruptLog):
            continue  # deleted meanwhile, or not a segment
    dirty = sum(size for base, size in sizes.items() if base >= cleaned_to)
    return LogOnDisk(sum(sizes.values()), dirty, max(0, len(sizes) - 1))


def is_locked(lock: Path) -> bool:
    """Whether a process holds the lock of a log directory. Queries the lock without taking it."""
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_ = FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        return bool(kind != fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
