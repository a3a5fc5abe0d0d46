"""A broker's metrics, under the names that dashboards for the JMX exporter expect.

Each function reads one part and changes nothing. `pauses` let other tasks run: the samples of
10,000 partitions take tens of ms. What was read before a pause may be older than the rest. Names
that begin with kafka08_ have no counterpart in Kafka. Source: the MBeans of Kafka 0.8.2.2 and
0.9.0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from kafka08.broker.process.broker_state import BrokerState
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.traffic import Traffic, traffic_of
from kafka08.metrics import NO_LABELS, Batch, Family, Labels, Pauses, Sample, gauge, meter
from kafka08.structs import TopicPartition
from kafka08.zk.session import SessionEvent, SessionState

if TYPE_CHECKING:
    from kafka08.broker.controller.controller import Controller
    from kafka08.broker.groups.group_coordinator import GroupCoordinator
    from kafka08.broker.groups.offset_manager import OffsetManager
    from kafka08.broker.process.event_loop_monitor import EventLoopMonitor
    from kafka08.broker.purgatory.purgatories import Purgatories
    from kafka08.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
    from kafka08.broker.replication.replica_manager import ReplicaManager
    from kafka08.broker.transactions.transaction_coordinator import TransactionCoordinator
    from kafka08.log.cleaner import LogCleaner
    from kafka08.log.log import Log
    from kafka08.network.server import SocketServer
    from kafka08.zk.client import ZkClient

T = TypeVar("T")

SERVER: Final = "kafka_server"
TRAFFIC: Final = f"{SERVER}_brokertopicmetrics"
REPLICAS: Final = f"{SERVER}_replicamanager"
CONTROLLER: Final = "kafka_controller_kafkacontroller"
ELECTIONS: Final = "kafka_controller_controllerstats"
TRAFFIC_METERS: Final = (
    ("messagesin", "Messages that producers appended."),
    ("bytesin", "Bytes that producers appended."),
    ("bytesout", "Bytes that consumers were sent."),
    ("bytesrejected", "Bytes of sets with a message that is too large."),
    ("totalproducerequests", "Partitions of Produce requests."),
    ("failedproducerequests", "Those that this broker failed to append."),
    ("totalfetchrequests", "Partitions of Fetch requests."),
    ("failedfetchrequests", "Those that this broker failed to read."),
)
"""Names and descriptions of the fields of Traffic, in their order."""
SPARE_LABELS: Final = 1000
"""Of former partitions so many labels may stay in any case."""
PURGATORY_SAYS: Final = "Requests that wait for something to happen to their partitions."
SESSION_METERS: Final[Mapping[str, tuple[SessionEvent, ...]]] = {
    "zookeeperdisconnects": (SessionEvent.SUSPENDED,),
    "zookeepersyncconnects": (SessionEvent.CONNECTED, SessionEvent.RECONNECTED),
    "zookeeperexpires": (SessionEvent.EXPIRED,),
}


def of_state(state: BrokerState) -> Iterator[Family]:
    yield gauge(
        f"{SERVER}_kafkaserver_brokerstate",
        "1 starting, 3 running, 4 the controller up to 0.9, 6 moving leaders, 7 shutting down.",
        state,
    )


def of_event_loop(monitor: EventLoopMonitor) -> Iterator[Family]:
    says = "Share of the last second in which the event loop had nothing to do, 0 to 1."
    yield gauge(
        f"{SERVER}_kafkarequesthandlerpool_requesthandleravgidlepercent", says, 1 - monitor.busy
    )
    yield gauge("kafka_network_socketserver_networkprocessoravgidlepercent", says, 1 - monitor.busy)
    yield Family(
        "kafka08_event_loop_lag_ms",
        "How late the timer of each second was, because other work held the event loop.",
        monitor.late_ms.samples(NO_LABELS),
        "summary",
    )


def of_session(zk: ZkClient) -> Iterator[Family]:
    for name, events in SESSION_METERS.items():
        yield from meter(
            f"{SERVER}_sessionexpirelistener_{name}",
            f"ZooKeeper sessions of this broker: {' or '.join(event.value for event in events)}.",
            [(NO_LABELS, sum(zk.session_events.get(event, 0) for event in events))],
        )
    yield gauge(
        "kafka08_zookeeper_connected",
        "1 while this broker is connected to ZooKeeper.",
        zk.state is SessionState.CONNECTED,
    )
    yield Family(
        "kafka08_zookeeper_requests",
        "Requests sent to ZooKeeper; a transaction is one.",
        [Sample("_total", NO_LABELS, zk.requests_sent)],
        "counter",
    )


def of_connections(servers: Sequence[SocketServer]) -> Iterator[Family]:
    yield gauge(
        f"{SERVER}_socketservermetrics_connection_count",
        "Open connections, of all listeners.",
        sum(map(len, servers)),
    )
    queued = [server.queued() for server in servers]
    yield gauge(
        "kafka_network_requestchannel_requestqueuesize",
        "Connections with received requests that wait for their next turn in the event loop.",
        sum(requests for requests, _ in queued),
    )
    yield gauge(
        "kafka_network_requestchannel_responsequeuesize",
        "Connections with responses that wait for room in their socket.",
        sum(responses for _, responses in queued),
    )


def of_controller(controller: Controller, pauses: Pauses) -> Iterator[Family]:
    context = controller.context
    offline = imbalance = topics = partitions = 0
    if context is not None:
        topics, partitions = len(context.topics), len(context.assignments)
        offline, imbalance = context.offline_and_imbalanced()
        pauses.after(partitions)
    yield gauge(
        f"{CONTROLLER}_activecontrollercount",
        "1 on the controller, else 0; the sum over the cluster must be 1.",
        context is not None,
    )
    yield gauge(
        f"{CONTROLLER}_offlinepartitionscount",
        "Partitions without a live leader; 0 on brokers that are not the controller.",
        offline,
    )
    yield gauge(
        f"{CONTROLLER}_preferredreplicaimbalancecount",
        "Partitions that another replica leads than the preferred one; 0 as above.",
        imbalance,
    )
    yield gauge(f"{CONTROLLER}_globaltopiccount", "Topics; 0 as above.", topics)
    yield gauge(f"{CONTROLLER}_globalpartitioncount", "Partitions; 0 as above.", partitions)
    elections, unclean = controller.elections
    yield Family(
        f"{ELECTIONS}_leaderelectionrateandtimems",
        "Leaders that this broker elected as the controller.",
        [Sample("_count", NO_LABELS, elections)],
        "unknown",
    )
    yield from meter(
        f"{ELECTIONS}_uncleanleaderelections",
        "Leaders elected from outside the ISR: acknowledged messages may be lost.",
        [(NO_LABELS, unclean)],
    )


def group_metrics(groups: GroupCoordinator, offsets: OffsetManager) -> Iterator[Family]:
    name = "kafka_coordinator_group_groupmetadatamanager"
    yield gauge(f"{name}_numoffsets", "Committed offsets that this broker keeps.", len(offsets))
    yield gauge(
        f"{name}_numgroups", "Groups that this broker coordinates.", len(groups.all_groups()[1])
    )


def of_transactions(transactions: TransactionCoordinator) -> Iterator[Family]:
    yield Family(
        "kafka08_transactional_ids",
        "Transactional ids that this broker coordinates, by the state of their transaction.",
        [
            Sample("", {"state": state.name.lower()}, count)
            for state, count in transactions.count_states().items()
        ],
    )


def of_fetchers(fetchers: ReplicaFetcherManager, pauses: Pauses) -> Iterator[Family]:
    lags = list(fetchers.lags())
    pauses.after(len(lags))
    yield Family(
        f"{SERVER}_replicafetchermanager_maxlag",
        "The most messages that a replica on this broker is behind its leader.",
        [Sample("", {"clientId": "Replica"}, max((lag for *_, lag in lags), default=0))],
    )
    yield Family(
        f"{SERVER}_fetcherlagmetrics_consumerlag",
        "Messages that a replica on this broker is behind its leader.",
        (),
        batches=batches_of([(labels_of(tp, name), lag) for name, tp, lag in lags], int, pauses),
    )


def cleaner_metrics(cleaner: LogCleaner) -> Iterator[Family]:
    stats = cleaner.last_stats
    yield gauge(
        "kafka_log_logcleaner_max_clean_time_secs",
        "Time of the last pass of the log cleaner.",
        0.0 if stats is None else stats.seconds,
    )
    yield gauge(
        "kafka_log_logcleaner_max_buffer_utilization_percent",
        "How full the offset map was in that pass.",
        0.0 if stats is None else 100 * stats.map_use,
    )
    yield gauge(
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "How many of the bytes that it read that pass kept.",
        0.0 if stats is None else 100 * stats.bytes_written / max(1, stats.bytes_read),
    )
    yield gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Compacted logs that could not be cleaned and are left out until they roll.",
        cleaner.uncleanable,
    )


def of_replicas(manager: ReplicaManager, pauses: Pauses) -> Iterator[Family]:
    partitions = list(manager)
    led = [partition for partition in partitions if partition.is_leader]
    short = [partition for partition in led if is_under_replicated(partition)]
    below_minimum = sum(not partition.has_enough_in_sync() for partition in led)
    pauses.after(len(partitions))
    yield gauge(f"{REPLICAS}_leadercount", "Partitions that this broker leads.", len(led))
    yield gauge(
        f"{REPLICAS}_partitioncount", "Partitions that it has a replica of.", len(partitions)
    )
    yield gauge(
        f"{REPLICAS}_underreplicatedpartitions",
        "Partitions that it leads with fewer in-sync replicas than assigned ones.",
        len(short),
    )
    yield gauge(
        f"{REPLICAS}_underminisrpartitioncount",
        "Partitions that it leads with fewer in-sync replicas than acks=-1 needs.",
        below_minimum,
    )
    shrinks, expansions = manager.isr_changes
    yield from meter(f"{REPLICAS}_isrshrinks", "Replicas put out of ISRs.", [(NO_LABELS, shrinks)])
    yield from meter(f"{REPLICAS}_isrexpands", "Replicas put into ISRs.", [(NO_LABELS, expansions)])
    yield from of_purgatories(manager.purgatories)
    yield from of_traffic(manager, partitions, pauses)
    yield Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Time of fsyncs of logs in ms.",
        manager.log_manager.flush_times.samples(NO_LABELS),
        "summary",
    )
    yield Family(
        "kafka_cluster_partition_underreplicated",
        "1 for a partition that this broker leads with too few in-sync replicas.",
        (),
        batches=batches_of([(labels_of(p.topic_partition), 1) for p in short], int, pauses),
    )
    yield from of_open_transactions(led, pauses)
    yield from of_logs([p.log for p in partitions if p.log is not None], pauses)


def of_open_transactions(led: Sequence[Partition], pauses: Pauses) -> Iterator[Family]:
    """Partitions without one have no samples."""
    waiting = [p for p in led if p.log is not None and p.log.records.producers.open_transactions]
    yield Family(
        "kafka08_partition_opentransactions",
        "Producers with an open transaction in a partition that this broker leads.",
        (),
        batches=batches_of(
            [
                (labels_of(p.topic_partition), len(p.log.records.producers.open_transactions))
                for p in waiting
                if p.log is not None
            ],
            int,
            pauses,
        ),
    )
    yield Family(
        "kafka_cluster_partition_laststableoffsetlag",
        "Messages that readers of committed ones do not get yet, of those that others get.",
        (),
        batches=batches_of(
            [
                (labels_of(p.topic_partition), p.high_watermark - p.last_stable_offset)
                for p in waiting
            ],
            int,
            pauses,
        ),
    )


def is_under_replicated(partition: Partition) -> bool:
    return len(partition.isr) < len(partition.replicas)


def of_purgatories(purgatories: Purgatories) -> Iterator[Family]:
    produce = len(purgatories.produces) + len(purgatories.counted_produces)
    fetch = len(purgatories.fetches) + len(purgatories.follower_fetches)
    # An operation leaves its watch lists as soon as it is over, so both sizes are the same.
    for name, size in (("producer", produce), ("fetch", fetch)):
        for what in ("purgatorysize", "numdelayedrequests"):
            yield gauge(f"{SERVER}_{name}requestpurgatory_{what}", PURGATORY_SAYS, size)
    for what in ("purgatorysize", "numdelayedoperations"):
        yield Family(
            f"{SERVER}_delayedoperationpurgatory_{what}",
            PURGATORY_SAYS,
            [
                Sample("", {"delayedOperation": "Produce"}, produce),
                Sample("", {"delayedOperation": "Fetch"}, fetch),
            ],
        )
    expired = purgatories.produces.expired + purgatories.counted_produces.expired
    yield from meter(
        f"{SERVER}_delayedproducemetrics_expires",
        "Produce requests that replicas did not acknowledge in time.",
        [(NO_LABELS, expired)],
    )
    yield from meter(
        f"{SERVER}_delayedfetchmetrics_expires",
        "Fetch requests that waited for their whole time.",
        [
            ({"fetcherType": "consumer"}, purgatories.fetches.expired),
            ({"fetcherType": "follower"}, purgatories.follower_fetches.expired),
        ],
    )


def of_traffic(
    manager: ReplicaManager, partitions: Sequence[Partition], pauses: Pauses
) -> Iterator[Family]:
    """All topics together, without a label, and each topic."""
    # Without a pause between the two: a partition that is deleted then moves from one to the other.
    total = manager.former_traffic.plus(traffic_of(partitions))
    pauses.after(len(partitions))
    of_topics: dict[str, list[Partition]] = {}
    for partition in partitions:
        of_topics.setdefault(partition.topic_partition.topic, []).append(partition)
    pauses.after(len(partitions))
    topics: list[tuple[Labels, Traffic]] = []
    for name, of_topic in sorted(of_topics.items()):
        topics.append((labels_of_topic(name), traffic_of(of_topic)))
        pauses.after(len(of_topic) + len(TRAFFIC_METERS))
    for column, (name, says) in enumerate(TRAFFIC_METERS):
        # The two names of a meter: see `meter`.
        for suffix, kind in (("persec", "unknown"), ("", "counter")):
            of_sample = "_total" if kind == "counter" else ""
            of_all = [Sample(of_sample, NO_LABELS, total[column])]
            of_each = batches_of(topics, itemgetter(column), pauses, of_sample)
            yield Family(f"{TRAFFIC}_{name}{suffix}", says, of_all, kind, of_each)


def of_logs(logs: Sequence[Log], pauses: Pauses) -> Iterator[Family]:
    rows: tuple[tuple[str, str, Callable[[Log], int]], ...] = (
        ("size", "Bytes of a partition's log.", lambda log: log.size),
        ("logstartoffset", "The lowest offset that may be read.", lambda log: log.log_start_offset),
        ("logendoffset", "The next offset to be written.", lambda log: log.log_end_offset),
        ("numlogsegments", "Segments of a log.", lambda log: log.segment_count),
    )
    forget_labels(len(logs))
    labelled = [(labels_of(log.topic_partition), log) for log in logs]
    pauses.after(len(labelled))
    for name, says, value in rows:
        batches = batches_of(labelled, value, pauses)
        yield Family(f"kafka_log_log_{name}", says, (), batches=batches)


def batches_of(
    labelled: Sequence[tuple[Labels, T]],
    value: Callable[[T], int],
    pauses: Pauses,
    suffix: str = "",
) -> Iterator[Batch]:
    for some in pauses.batches(labelled):
        yield Batch(suffix, [labels for labels, _ in some], [value(found) for _, found in some])


@lru_cache(maxsize=100_000)
def labels_of(tp: TopicPartition, client_id: str | None = None) -> Labels:
    """The labels of a partition, with the fetcher that reads it if there is one."""
    of_partition = Labels(partition=str(tp.partition), topic=tp.topic)
    return of_partition if client_id is None else Labels(clientId=client_id, **of_partition)


@lru_cache(maxsize=100_000)
def labels_of_topic(topic: str) -> Labels:
    return Labels(topic=topic)


def forget_labels(partitions: int) -> None:
    """Begin again with the labels if most are of former partitions of this broker, which has
    `partitions` now: each is used with and without a fetcher."""
    for cache in (labels_of, labels_of_topic):
        if cache.cache_info().currsize > 4 * partitions + SPARE_LABELS:
            cache.cache_clear()
