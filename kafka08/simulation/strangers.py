"""Files and znodes that no broker or client has made, such as an operator, a backup or another
program leaves. They must end nothing, and change nothing of the cluster."""

from __future__ import annotations

from random import Random
from typing import Final

from kafka08.log.names import RECOVERY_POINT_CHECKPOINT
from kafka08.runtime.disk import OpenMode
from kafka08.simulation.cluster import LOG_DIRECTORY, SimBroker
from kafka08.simulation.workload import TOPIC
from kafka08.simulation.zookeeper_group_history import GROUP
from kafka08.zk import paths
from kafka08.zk.operations import Create

GHOST: Final = "ghost"
"""A topic whose znodes cannot be read."""
STRANGE_TOPICS: Final = (GHOST, "a b")
TEXTS: Final = (None, "", "{}", "[1", '{"version":7,"partitions":{"0":["x"]}}', "\0", "1" * 30)
ZNODES: Final = (
    f"{paths.BROKER_IDS}/x",
    paths.broker(77),
    *map(paths.topic, STRANGE_TOPICS),
    f"{paths.topic(TOPIC)}/x",
    f"{paths.partitions(TOPIC)}/x",
    f"{paths.partition(TOPIC, 0)}/x",
    paths.topic_config(GHOST),
    f"{paths.CONFIG_CHANGES}/x",
    paths.config_change(99),
    f"{paths.ISR_CHANGES}/x",
    paths.isr_change("isr_change_99"),
    paths.REASSIGN_PARTITIONS,
    f"{paths.REASSIGN_PARTITIONS}/x",
    paths.PREFERRED_ELECTION,
    f"{paths.PREFERRED_ELECTION}/x",
    paths.delete_topic("gone"),
    f"{paths.CONSUMERS}/a b",
    paths.consumer_id("strangers", "x"),
    f"{paths.owners(GROUP, TOPIC)}/x",
    f"{paths.offsets(GROUP, TOPIC)}/x",
)
FILES: Final = ("notes.txt", ".nfs7", "core", "x-0", f"{RECOVERY_POINT_CHECKPOINT}.tmp")
"""In a log directory. A directory there ends the start of a broker, in 0.8.2.2 too."""
PARTITION_FILES: Final = ("notes.txt", ".nfs7", "00000000000000000000.log.gz", "tmp/")
"""Among the files of a partition."""


def strange_znode(random: Random) -> Create:
    return Create(random.choice(ZNODES), random.choice(TEXTS))


def leave_file(broker: SimBroker, random: Random) -> str:
    """Leave a file, or a directory, among those of a broker, whether or not it runs. Returns its
    path."""
    disk = broker.disk
    with disk.without_faults():
        logs = list(disk.directories_in(LOG_DIRECTORY))
        if logs and random.random() < 0.5:
            directory, name = random.choice(logs), random.choice(PARTITION_FILES)
        else:
            directory, name = LOG_DIRECTORY, random.choice(FILES)
        path = directory / name
        if name.endswith("/"):
            disk.make_directories(path)
        elif not disk.exists(path):
            disk.open(path, OpenMode.CREATE).pwrite(b"stranger", 0)
    return str(path)
