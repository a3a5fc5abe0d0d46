"""The names of files and directories under a log directory (one entry of log.dirs).

    <log.dir>/.lock                             held while a broker runs
    <log.dir>/.kafka_cleanshutdown              the last broker stopped cleanly
    <log.dir>/recovery-point-offset-checkpoint  and other checkpoints
    <log.dir>/<topic>-<partition>/
        00000000000000000042.log                messages from offset 42 on
        00000000000000000042.index              sparse offset → position map of that file
        00000000000000000042.timeindex          sparse map timestamp → offset (0.10.1)
        00000000000000000042.txnindex           aborted transactions of that file (0.11)
        00000000000000000042.snapshot           the producers before offset 42 (0.11)
        leader-epoch-checkpoint                 where leader epochs begin (0.11)
        *.deleted                               not in the log any more, removed later
        *.cleaned, *.swap                       a compaction in progress
        00000000000000000042.unsynced.deleted   ours: those before 42 might not be on disk
    <log.dir>/<topic>-<partition>.<32 hex digits>-delete/
                                                a deleted partition, removed later (from 0.10.2 on)

Source: kafka.log.Log and kafka.log.LogManager 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kafka08.config import INT_MAX, LONG_MAX
from kafka08.errors import CorruptLog
from kafka08.structs import TopicPartition

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES, TRANSACTION_INDEX_SUFFIX)
DUMPED_SUFFIXES: Final = (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)
"""Of the files that a dump reads."""
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
UNSYNCED_SUFFIX: Final = ".unsynced" + DELETED_SUFFIX
"""A JVM broker deletes such a file at its start, and so a mark that it does not keep."""

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
"""In the directory of each partition."""
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
"""Written and read by the broker's replica manager."""

_PARTITION_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]+)-(0|[1-9][0-9]*)")
_DELETED_DIRECTORY: Final = re.compile(r"(.+)-([0-9]+)\.[^.]+-delete", re.DOTALL)
_BASE_OFFSET: Final = re.compile(r"[0-9]{1,20}")


def file_of(directory: Path, offset: int, suffix: str) -> Path:
    """The path of a file that is named after an offset: the base offset of its segment, or the end
    of what it is about."""
    return directory / f"{offset:020d}{suffix}"


def segment_files(directory: Path, base_offset: int) -> tuple[Path, ...]:
    """The paths of all files that a segment may have."""
    return tuple(file_of(directory, base_offset, suffix) for suffix in SEGMENT_SUFFIXES)


def base_offset_of(path: Path) -> int:
    """The base offset in a segment file's name; CorruptLog if the name has none, or one that no
    message can have."""
    stem = path.name.split(".", maxsplit=1)[0]
    if _BASE_OFFSET.fullmatch(stem) is None or int(stem) > LONG_MAX:
        raise CorruptLog(f"{path} is not named after the base offset of a segment")
    return int(stem)


def partition_directory(topic_partition: TopicPartition) -> str:
    """The name of the partition's directory."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def deleted_directory(topic_partition: TopicPartition, unique: str) -> str:
    """The name of the partition's directory after its deletion. Source: Log.logDeleteDirName
    0.10.2.2."""
    return f"{partition_directory(topic_partition)}.{unique}-delete"


def is_deleted_directory(path: Path) -> bool:
    """Whether a directory has such a name."""
    return _DELETED_DIRECTORY.fullmatch(path.name) is not None


def parse_partition_directory(path: Path) -> TopicPartition:
    """The partition of a directory: its name is split at the last `-`.

    Raises CorruptLog for any other directory (`lost+found`, say). 0.8: a broker does not start with
    such a directory in a log.dir; neither does ours, but its error names the directory. 0.8.2.2
    takes `copy of t-0` and `t-007`, which are no names of topics and numbers; it cannot read its
    checkpoints then.
    """
    match = _PARTITION_DIRECTORY.fullmatch(path.name)
    if match is None or int(match[2]) > INT_MAX:
        raise CorruptLog(
            f"{path} is not the directory of a partition (<topic>-<number>); "
            "move it out of the log directory"
        )
    return TopicPartition(match[1], int(match[2]))
