"""The logs of the clients' topic at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.log.check import check_log
from kafka08.log.files import read_file
from kafka08.log.names import LOG_SUFFIX, partition_directory
from kafka08.simulation.cluster import LOG_DIRECTORY, SimBroker
from kafka08.simulation.recovery_conditions import assignment_of
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import TopicPartition


def log_ends(
    brokers: Sequence[SimBroker], partitions: Sequence[TopicPartition]
) -> dict[tuple[int, TopicPartition], int]:
    """The log end offset of each replica, by broker id and partition."""
    return {
        (broker.id, tp): partition.log.log_end_offset
        for broker in brokers
        for tp in partitions
        if (partition := broker.partition(tp)) is not None and partition.log is not None
    }


def differing_logs(
    zookeeper: SimZooKeeper,
    brokers: Sequence[SimBroker],
    partitions: Sequence[TopicPartition],
    *,
    is_safe: bool,
) -> str:
    """A sentence about a replica without a log, or with an unsound one, or, under the safe profile,
    with another one than the others; "" if there is none."""
    for tp in partitions:
        assignment = assignment_of(zookeeper, tp.topic)
        logs = {}
        # 0.8: a broker that was down while a partition moved away keeps its log.
        for broker in brokers:
            if broker.id not in assignment[tp.partition]:
                continue
            directory = LOG_DIRECTORY / partition_directory(tp)
            if not broker.disk.exists(directory):
                return f"{broker.host} lacks the log of {tp}"
            if problems := check_log(directory, broker.disk):
                return f"{broker.host}: {problems[0]}"
            files = broker.disk.files_in(directory)
            logs[broker.host] = b"".join(
                read_file(broker.disk, file) for file in files if file.suffix == LOG_SUFFIX
            )
        if is_safe and len(set(logs.values())) > 1:
            sizes = ", ".join(f"{host}: {len(data)} bytes" for host, data in logs.items())
            return f"{tp}: the logs of its replicas differ: {sizes}"
    return ""
