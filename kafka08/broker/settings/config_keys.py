"""BrokerKeys: the keys of a server.properties of 0.8.2, with defaults and ranges at each level.

Later keys are in keys_0_9, rules about several keys and derived values in config. A key with
`effect=False` is accepted, as by the JVM, and listed at startup as without effect: here one event
loop does the work of the JVM's threads. Source: kafka.server.KafkaConfig 0.8.2.2.
"""

from __future__ import annotations

from typing import Final

from kafka08 import profile
from kafka08.broker.settings.keys_0_9 import V0_9_0, V0_10_2, V0_11_0, KeysSince0_9
from kafka08.config import INT_MAX, LONG_MAX, PORT_MAX, key
from kafka08.kernel.types import MIN_MESSAGE_BYTES
from kafka08.safety import ALLOW_DOC

DOUBLE_MAX: Final = 1.7976931348623157e308
NO_BROKER_ID: Final = -1
UNLIMITED: Final = -1


class BrokerKeys(KeysSince0_9):
    """The base of BrokerConfig. Only broker.id and zookeeper.connect are required."""

    ALIASES = {"log.dir": "log.dirs"}

    # Identity and ZooKeeper
    broker_id: int = key(
        low=0,
        later={V0_9_0: {"default": NO_BROKER_ID, "low": NO_BROKER_ID}},
        doc="The id of this broker, unique in the cluster; -1: generate one.",
    )
    zookeeper_connect: str = key(doc="host:port,host:port with an optional /chroot at the end.")
    zookeeper_session_timeout_ms: int = key(
        6000, low=1, doc="Time without a heartbeat after which the session expires."
    )
    zookeeper_connection_timeout_ms: int | None = key(
        None, low=1, doc="How long to wait for the first connection; default: session timeout."
    )
    zookeeper_sync_time_ms: int = key(2000, effect=False, doc="Not used by a 0.8.2.2 broker.")

    # Sockets
    port: int = key(9092, low=0, high=PORT_MAX, doc="Port to listen on; 0 takes a free one.")
    host_name: str | None = key(None, doc="Address to listen on and advertise; default: all.")
    advertised_host_name: str | None = key(None, doc="Host registered in ZooKeeper for clients.")
    advertised_port: int | None = key(
        None, low=1, high=PORT_MAX, doc="Port registered in ZooKeeper for clients; default: port."
    )
    socket_send_buffer_bytes: int = key(-1, low=-1, doc="SO_SNDBUF; -1: the system adapts it.")
    socket_receive_buffer_bytes: int = key(-1, low=-1, doc="SO_RCVBUF; -1: the system adapts it.")
    socket_request_max_bytes: int = key(104_857_600, low=1, doc="Largest request accepted.")
    max_connections_per_ip: int = key(INT_MAX, low=1, doc="Connections allowed from one address.")
    max_connections_per_ip_overrides: str = key(
        "", doc="host:count pairs, separated by commas, that override max.connections.per.ip."
    )
    connections_max_idle_ms: int = key(
        600_000,
        low=1,
        high=LONG_MAX,
        later={V0_10_2: {"low": UNLIMITED}},
        doc="A connection silent for longer is closed; from 0.10.2 on -1: never.",
    )

    # Metrics; keys of our own
    metrics_port: int | None = key(
        None,
        low=0,
        high=PORT_MAX,
        doc="Port that serves Prometheus metrics; 0 takes a free one, default: none is served.",
    )
    metrics_host: str = key(
        "127.0.0.1", doc="Address that metrics.port is bound to; they are served without a login."
    )

    # Threads of the JVM
    num_network_threads: int = key(3, low=1, effect=False, doc="One event loop does all the work.")
    num_io_threads: int = key(8, low=1, effect=False, doc="One event loop does all the work.")
    background_threads: int = key(10, low=1, effect=False, doc="One event loop does all the work.")
    queued_max_requests: int = key(
        500, low=1, effect=False, doc="Requests are handled as they arrive; there is no queue."
    )

    # Topics
    num_partitions: int = key(1, low=1, doc="Partitions of a topic created automatically.")
    default_replication_factor: int = key(
        1, low=1, doc="Replicas of a topic created automatically."
    )
    auto_create_topics_enable: bool = key(
        True, doc="Whether a metadata request creates unknown topics."
    )
    delete_topic_enable: bool = key(False, doc="Whether the controller deletes topics.")

    # Log
    log_dirs: str = key("/tmp/kafka-logs", doc="Directories of the logs, separated by commas.")
    message_max_bytes: int = key(
        1_000_012, low=0, doc="Largest entry of a log, its 12 bytes of offset and size included."
    )
    log_segment_bytes: int = key(
        1 << 30, low=MIN_MESSAGE_BYTES, doc="Segment size at which the log rolls."
    )
    log_roll_ms: int | None = key(
        None, low=1, later={V0_9_0: {"high": LONG_MAX}}, doc="Segment age at which the log rolls."
    )
    log_roll_hours: int = key(168, low=1, doc="log.roll.ms in hours, used if that is not set.")
    log_roll_jitter_ms: int | None = key(
        None,
        low=0,
        later={V0_9_0: {"high": LONG_MAX}},
        doc="Largest random time by which a segment rolls earlier.",
    )
    log_roll_jitter_hours: int = key(
        0, low=0, doc="log.roll.jitter.ms in hours, used if that is not set."
    )
    log_retention_ms: int | None = key(
        None,
        low=1,
        later={V0_9_0: {"low": -LONG_MAX, "high": LONG_MAX}},
        doc="Age at which a segment is deleted; from 0.9.0 on below 0: never.",
    )
    log_retention_minutes: int | None = key(
        None,
        low=1,
        later={V0_9_0: {"low": -INT_MAX}},
        doc="log.retention.ms in minutes, used if that is not set.",
    )
    log_retention_hours: int = key(
        168,
        low=1,
        later={V0_9_0: {"low": -INT_MAX}},
        doc="log.retention.ms in hours, used if neither that nor log.retention.minutes is set.",
    )
    log_retention_bytes: int = key(
        -1,
        low=-LONG_MAX,
        high=LONG_MAX,
        doc="Size above which a partition deletes old segments; -1: no limit.",
    )
    log_retention_check_interval_ms: int = key(
        300_000, low=1, high=LONG_MAX, doc="Interval between checks for segments to delete."
    )
    log_cleanup_policy: str = key("delete", doc="delete or compact; from 0.10.2 on also both.")
    log_cleaner_enable: bool = key(
        False,
        later={V0_9_0: {"default": True}},
        doc="Whether to compact topics with cleanup.policy=compact; otherwise they only grow.",
    )
    log_cleaner_threads: int = key(1, low=1, doc="Logs that may be cleaned at the same time.")
    log_cleaner_io_max_bytes_per_second: float = key(
        DOUBLE_MAX, low=1, doc="I/O limit of all cleaner threads together, reads and writes."
    )
    log_cleaner_dedupe_buffer_size: int = key(
        500 << 20,
        low=0,
        high=LONG_MAX,
        later={V0_9_0: {"default": 128 << 20}},
        doc="Memory for the offset maps of all cleaner threads; above 1 MB per thread.",
    )
    log_cleaner_io_buffer_size: int = key(
        512 << 10, low=1, doc="I/O buffers of all cleaner threads; a thread reads half its share."
    )
    log_cleaner_io_buffer_load_factor: float = key(
        0.9, low=0.01, doc="Largest load factor of an offset map."
    )
    log_cleaner_backoff_ms: int = key(
        15_000, low=0, high=LONG_MAX, doc="Pause when there is nothing to clean."
    )
    log_cleaner_min_cleanable_ratio: float = key(0.5, doc="Dirty ratio at which a log is cleaned.")
    log_cleaner_delete_retention_ms: int = key(
        86_400_000, low=0, high=LONG_MAX, doc="How long tombstones are kept in the clean part."
    )
    log_index_size_max_bytes: int = key(10 << 20, low=4, doc="Size of an offset index.")
    log_index_interval_bytes: int = key(4096, low=0, doc="Bytes of log between index entries.")
    log_flush_interval_messages: int = key(
        LONG_MAX, low=1, high=LONG_MAX, doc="Number of unflushed messages that triggers an fsync."
    )
    log_flush_interval_ms: int | None = key(
        None, low=1, high=LONG_MAX, doc="Age of unflushed messages that triggers an fsync."
    )
    log_flush_scheduler_interval_ms: int = key(
        LONG_MAX, low=1, high=LONG_MAX, doc="Interval between checks of that age."
    )
    log_flush_offset_checkpoint_interval_ms: int = key(
        60_000, low=1, doc="Interval between writes of the recovery points."
    )
    log_segment_delete_delay_ms: int = key(
        60_000, low=0, high=LONG_MAX, doc="Time between renaming and removing a deleted segment."
    )
    num_recovery_threads_per_data_dir: int = key(
        1, low=1, effect=False, doc="Recovery runs in native calls, one log after another."
    )

    # Replication
    min_insync_replicas: int = key(
        1,
        low=1,
        effect=False,
        later={V0_9_0: {"effect": True}},
        doc="In-sync replicas that acks=-1 needs; at 0.8.2 only under kafka08.profile=safe.",
    )
    kafka08_allow_less_safety: str = key("", doc=ALLOW_DOC)
    kafka08_profile: str = key(
        profile.CLASSIC,
        choices=profile.PROFILES,
        doc="safe: no unclean elections, acks=-1 needs two in-sync replicas.",
    )
    unclean_leader_election_enable: bool = key(
        True,
        later={V0_11_0: {"default": False}},
        doc="Whether a replica that is not in sync may lead when no other is left.",
    )
    replica_lag_time_max_ms: int = key(
        10_000, low=1, high=LONG_MAX, doc="Silence after which a follower leaves the ISR."
    )
    replica_lag_max_messages: int | None = key(
        4000,
        low=1,
        high=LONG_MAX,
        until=V0_9_0,
        later={V0_9_0: {"default": None}},
        doc="Lag at which a follower leaves the ISR.",
    )
    replica_fetch_max_bytes: int = key(1 << 20, low=0, doc="Fetch size of a follower.")
    replica_fetch_min_bytes: int = key(
        1, doc="Bytes at which the leader responds to a follower's fetch."
    )
    replica_fetch_wait_max_ms: int = key(
        500, doc="How long a follower's fetch may wait at the leader."
    )
    replica_socket_timeout_ms: int = key(
        30_000, doc="How long a follower waits for the leader's response."
    )
    replica_socket_receive_buffer_bytes: int = key(
        -1, low=-1, doc="SO_RCVBUF of a follower's connection; -1: the system adapts it."
    )
    num_replica_fetchers: int = key(
        1, low=1, doc="Connections of a follower to each broker that it follows."
    )
    replica_high_watermark_checkpoint_interval_ms: int = key(
        5000, low=1, high=LONG_MAX, doc="Interval between writes of the high watermarks."
    )
    fetch_purgatory_purge_interval_requests: int = key(
        1000, effect=False, doc="Completed operations leave the purgatory at once."
    )
    producer_purgatory_purge_interval_requests: int = key(
        1000, effect=False, doc="Completed operations leave the purgatory at once."
    )

    # Controller
    auto_leader_rebalance_enable: bool = key(
        True, doc="Whether the controller moves leadership back to preferred replicas."
    )
    leader_imbalance_per_broker_percentage: int = key(
        10, low=0, doc="Share of a broker's preferred partitions that other brokers may lead."
    )
    leader_imbalance_check_interval_seconds: int = key(
        300, low=1, doc="Interval between checks of that share."
    )
    controlled_shutdown_enable: bool = key(
        True, doc="Whether a stopping broker first asks the controller to move its leaders."
    )
    controlled_shutdown_max_retries: int = key(
        3, low=1, later={V0_9_0: {"low": 0}}, doc="Attempts of a controlled shutdown."
    )
    controlled_shutdown_retry_backoff_ms: int = key(
        5000, low=0, doc="Backoff between two attempts."
    )
    controller_socket_timeout_ms: int = key(
        30_000, low=1, doc="How long the controller waits for a broker's response."
    )
    controller_message_queue_size: int = key(
        INT_MAX, low=1, until=V0_9_0, doc="Length of the controller's request queue for one broker."
    )

    # Offsets
    offset_metadata_max_bytes: int = key(
        4096, low=0, doc="Longest metadata of a committed offset, in characters."
    )
    offsets_load_buffer_size: int = key(5 << 20, low=1, doc="Read size when offsets are loaded.")
    offsets_topic_num_partitions: int = key(
        50, low=1, doc="Partitions of the offsets topic; never change it on a live cluster."
    )
    offsets_topic_replication_factor: int = key(
        3, low=1, high=32767, doc="Replicas of the offsets topic, set at its creation."
    )
    offsets_topic_segment_bytes: int = key(
        104_857_600, low=1, doc="Segment size of the offsets topic, set at its creation."
    )
    offsets_topic_compression_codec: str = key(
        "0", doc="Codec of stored offsets, number or name: none, gzip, snappy, lz4."
    )
    offsets_retention_minutes: int = key(
        1440, low=1, doc="Age at which a committed offset is deleted."
    )
    offsets_retention_check_interval_ms: int = key(
        600_000,
        low=1,
        high=LONG_MAX,
        effect=False,
        later={V0_9_0: {"effect": True}},
        doc="Time between two looks for expired offsets; 0.8.2.2 always uses ten minutes.",
    )
    offsets_commit_timeout_ms: int = key(
        5000, low=1, doc="How long a commit may wait for acknowledgements."
    )
    offsets_commit_required_acks: int = key(-1, low=-1, high=32767, doc="acks of a commit.")
