"""The keywords of the configurations, for type checkers alone. Made by scripts/configuration;
a test keeps it so."""

from __future__ import annotations

from typing import TypedDict


class ConsumerConfigKeywords(TypedDict, total=False):
    """The keywords of ConsumerConfig."""

    group_id: str
    zookeeper_connect: str
    consumer_id: str | None
    client_id: str
    auto_offset_reset: str
    auto_commit_enable: bool
    auto_commit_interval_ms: int
    offsets_storage: str
    dual_commit_enabled: bool
    offsets_channel_backoff_ms: int
    offsets_channel_socket_timeout_ms: int
    offsets_commit_max_retries: int
    partition_assignment_strategy: str
    rebalance_max_retries: int
    rebalance_backoff_ms: int
    exclude_internal_topics: bool
    fetch_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    num_consumer_fetchers: int
    queued_max_message_chunks: int
    refresh_leader_backoff_ms: int
    socket_timeout_ms: int
    socket_receive_buffer_bytes: int
    consumer_timeout_ms: int
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int
    zookeeper_sync_time_ms: int


class KafkaConsumerConfigKeywords(TypedDict, total=False):
    """The keywords of KafkaConsumerConfig."""

    bootstrap_servers: str
    group_id: str
    client_id: str
    key_deserializer: str
    value_deserializer: str
    auto_offset_reset: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    partition_assignment_strategy: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    exclude_internal_topics: bool
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    metadata_max_age_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    reconnect_backoff_ms: int
    connections_max_idle_ms: int
    receive_buffer_bytes: int
    send_buffer_bytes: int
    interceptor_classes: str
    isolation_level: str
    metric_reporters: str
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metrics_recording_level: str
