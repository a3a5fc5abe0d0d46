"""The keywords of the configurations, for type checkers alone. Made by scripts/configuration;
a test keeps it so."""

from __future__ import annotations

from typing import TypedDict


class KafkaProducerConfigKeywords(TypedDict, total=False):
    """The keywords of KafkaProducerConfig."""

    bootstrap_servers: str
    acks: str
    retries: int
    batch_size: int
    linger_ms: int
    buffer_memory: int
    compression_type: str
    max_request_size: int
    max_block_ms: int
    block_on_buffer_full: bool | None
    metadata_fetch_timeout_ms: int | None
    metadata_max_age_ms: int
    request_timeout_ms: int
    timeout_ms: int
    retry_backoff_ms: int
    reconnect_backoff_ms: int
    max_in_flight_requests_per_connection: int
    connections_max_idle_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    client_id: str
    key_serializer: str
    value_serializer: str
    partitioner_class: str
    interceptor_classes: str
    metric_reporters: str
    metrics_num_samples: int
    metrics_sample_window_ms: int


class ProducerConfigKeywords(TypedDict, total=False):
    """The keywords of ProducerConfig."""

    metadata_broker_list: str
    request_required_acks: int
    request_timeout_ms: int
    producer_type: str
    serializer_class: str
    key_serializer_class: str | None
    serializer_encoding: str
    partitioner_class: str
    compression_codec: str
    compressed_topics: str | None
    message_send_max_retries: int
    retry_backoff_ms: int
    topic_metadata_refresh_interval_ms: int
    send_buffer_bytes: int
    client_id: str
    queue_buffering_max_ms: int
    queue_buffering_max_messages: int
    queue_enqueue_timeout_ms: int
    batch_num_messages: int
    event_handler: str | None
    callback_handler: str | None
    queue_time: int
    queue_size: int
    queue_enqueueTimeout_ms: int
    batch_size: int
