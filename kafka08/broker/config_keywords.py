"""The keywords of the configurations, for type checkers alone. Made by scripts/configuration;
a test keeps it so."""

from __future__ import annotations

from typing import TypedDict


class BrokerConfigKeywords(TypedDict, total=False):
    """The keywords of BrokerConfig."""

    api_level: str
    inter_broker_protocol_version: str
    log_message_format_version: str
    broker_id_generation_enable: bool
    reserved_broker_max_id: int
    broker_rack: str | None
    listeners: str | None
    advertised_listeners: str | None
    listener_security_protocol_map: str
    inter_broker_listener_name: str | None
    security_inter_broker_protocol: str
    request_timeout_ms: int
    log_preallocate: bool
    compression_type: str
    log_message_timestamp_type: str
    log_message_timestamp_difference_max_ms: int
    log_cleaner_min_compaction_lag_ms: int
    create_topic_policy_class_name: str | None
    replica_fetch_backoff_ms: int
    replica_fetch_response_max_bytes: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    quota_producer_default: int
    quota_consumer_default: int
    quota_window_num: int
    quota_window_size_seconds: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    zookeeper_set_acl: bool
    authorizer_class_name: str
    principal_builder_class: str | None
    ssl_protocol: str
    ssl_provider: str | None
    ssl_cipher_suites: str | None
    ssl_enabled_protocols: str
    ssl_keystore_type: str
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_key_password: str | None
    ssl_truststore_type: str
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_keymanager_algorithm: str
    ssl_trustmanager_algorithm: str
    ssl_endpoint_identification_algorithm: str | None
    ssl_secure_random_implementation: str | None
    ssl_client_auth: str
    sasl_enabled_mechanisms: str
    sasl_mechanism_inter_broker_protocol: str
    sasl_kerberos_service_name: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_min_time_before_relogin: int
    sasl_kerberos_principal_to_local_rules: str
    metric_reporters: str
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metrics_recording_level: str
    broker_id: int
    zookeeper_connect: str
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int | None
    zookeeper_sync_time_ms: int
    port: int
    host_name: str | None
    advertised_host_name: str | None
    advertised_port: int | None
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    connections_max_idle_ms: int
    metrics_port: int | None
    metrics_host: str
    num_network_threads: int
    num_io_threads: int
    background_threads: int
    queued_max_requests: int
    num_partitions: int
    default_replication_factor: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    log_dirs: str
    message_max_bytes: int
    log_segment_bytes: int
    log_roll_ms: int | None
    log_roll_hours: int
    log_roll_jitter_ms: int | None
    log_roll_jitter_hours: int
    log_retention_ms: int | None
    log_retention_minutes: int | None
    log_retention_hours: int
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_cleanup_policy: str
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_backoff_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_delete_retention_ms: int
    log_index_size_max_bytes: int
    log_index_interval_bytes: int
    log_flush_interval_messages: int
    log_flush_interval_ms: int | None
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_segment_delete_delay_ms: int
    num_recovery_threads_per_data_dir: int
    min_insync_replicas: int
    kafka08_profile: str
    unclean_leader_election_enable: bool
    replica_lag_time_max_ms: int
    replica_lag_max_messages: int | None
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    num_replica_fetchers: int
    replica_high_watermark_checkpoint_interval_ms: int
    fetch_purgatory_purge_interval_requests: int
    producer_purgatory_purge_interval_requests: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_per_broker_percentage: int
    leader_imbalance_check_interval_seconds: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    controller_socket_timeout_ms: int
    controller_message_queue_size: int
    offset_metadata_max_bytes: int
    offsets_load_buffer_size: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: str
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offsets_commit_required_acks: int
    log_dir: str
