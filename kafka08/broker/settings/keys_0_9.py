"""KeysSince0_9: the keys of a server.properties that 0.9, 0.10 and 0.11 added.

Below its level a key is unknown, as to a broker of that release; its attribute then has the
default. Source: kafka.server.KafkaConfig 0.9.0.1, 0.10.2.2 and 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kafka08.config import LONG_MAX, Config, key
from kafka08.levels import LEVELS, Level
from kafka08.protocol_version import LATEST, ProtocolVersion
from kafka08.structs import PLAINTEXT
from kafka08.topic_config import CODECS, TIMESTAMP_TYPES

V0_9_0, V0_10_2, V0_11_0 = Level.V0_9_0, Level.V0_10_2, Level.V0_11_0


SPELLINGS: Final = {"compression.type": str.lower, "security.inter.broker.protocol": str.upper}
"""Keys whose values brokers from 0.9 on read in any case, and how they are declared here."""


def in_spelling_of_0_9(given: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The pairs; from 0.9 on with true, false and the values of SPELLINGS in their case."""
    if given.get("api.level", LEVELS[0]) == LEVELS[0]:
        return dict(given)

    def spelled(name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if types.get(name) is bool:
            return value.strip().lower()
        return SPELLINGS[name](value) if name in SPELLINGS else value

    return {name: spelled(name, value) for name, value in given.items()}


def _latest(level: Level) -> dict[str, str]:
    return {"default": str(LATEST[level])}


def _unused(default: Any, *, since: Level = V0_9_0, **declared: Any) -> Any:
    """A key without effect."""
    return key(default, effect=False, since=since, **declared)


_no_quotas: Final = partial(_unused, doc="There are no quotas.")
_no_ssl: Final = partial(_unused, doc="There are PLAINTEXT listeners only.")
_no_metrics: Final = partial(_unused, doc="There are no metrics reporters.")
_no_java: Final = partial(_unused, doc="Java classes cannot be loaded.")


class KeysSince0_9(Config):
    """The base of BrokerKeys."""

    # Level and peers
    api_level: str = key(
        LEVELS[0],
        choices=LEVELS,
        doc="The Kafka release that the broker speaks as; decides which keys exist.",
    )
    inter_broker_protocol_version: str = key(
        str(ProtocolVersion.V0_8_2),
        since=V0_9_0,
        later={level: _latest(level) for level in (V0_9_0, V0_10_2, V0_11_0)},
        doc="Protocol between brokers: that of the oldest broker in the cluster.",
    )
    log_message_format_version: str = key(
        str(ProtocolVersion.V0_8_2),
        since=V0_10_2,
        later={level: _latest(level) for level in (V0_10_2, V0_11_0)},
        doc="The message format of logs; at most inter.broker.protocol.version.",
    )

    # Identity
    broker_id_generation_enable: bool = key(
        True, since=V0_9_0, doc="Whether a broker without broker.id generates one."
    )
    reserved_broker_max_id: int = key(
        1000,
        low=0,
        since=V0_9_0,
        doc="Largest broker.id that may be configured; generated ids are above it.",
    )
    broker_rack: str | None = key(None, since=V0_10_2, doc="Rack of the broker.")

    # Sockets
    listeners: str | None = key(
        None,
        since=V0_9_0,
        doc="NAME://host:port, separated by commas; overrides host.name and port.",
    )
    advertised_listeners: str | None = key(
        None, since=V0_9_0, doc="Listeners that clients and brokers connect to; default: listeners."
    )
    listener_security_protocol_map: str = key(
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        since=V0_10_2,
        doc="NAME:PLAINTEXT for each listener, separated by commas.",
    )
    inter_broker_listener_name: str | None = key(
        None, since=V0_10_2, doc="The listener that brokers use; default: the next key."
    )
    security_inter_broker_protocol: str = key(
        PLAINTEXT, choices=(PLAINTEXT,), since=V0_9_0, doc="Security protocol between brokers."
    )
    request_timeout_ms: int = key(
        30_000,
        effect=False,
        since=V0_9_0,
        later={V0_11_0: {"effect": True, "doc": "Longest wait for markers of transactions."}},
        doc="controller.socket.timeout.ms applies instead.",
    )

    # Log
    log_preallocate: bool = _unused(False, doc="Segments grow as they are written.")
    compression_type: str = key(
        "producer", choices=CODECS, since=V0_9_0, doc="Codec in which message sets are stored."
    )
    log_message_timestamp_type: str = key(
        "CreateTime",
        choices=TIMESTAMP_TYPES,
        since=V0_10_2,
        doc="Timestamp of a message: the producer's or the broker's.",
    )
    log_message_timestamp_difference_max_ms: int = key(
        LONG_MAX,
        low=0,
        high=LONG_MAX,
        since=V0_10_2,
        doc="Largest difference between the producer's and the broker's time.",
    )
    log_cleaner_min_compaction_lag_ms: int = key(
        0,
        low=0,
        high=LONG_MAX,
        effect=False,
        since=V0_10_2,
        doc="Age below which a message is not compacted.",
    )
    create_topic_policy_class_name: str | None = _no_java(None, since=V0_10_2)
    alter_config_policy_class_name: str | None = _no_java(None, since=V0_11_0)
    log_flush_start_offset_checkpoint_interval_ms: int = key(
        60_000,
        low=0,
        since=V0_11_0,
        doc="How often the log starts are written that no DeleteRecords has written.",
    )
    delete_records_purgatory_purge_interval_requests: int = _unused(
        1, since=V0_11_0, doc="Completed operations leave the purgatory at once."
    )

    # Replication
    replica_fetch_backoff_ms: int = _unused(1000, low=0, doc="Always one second.")
    replica_fetch_response_max_bytes: int = key(
        10 << 20, low=0, since=V0_10_2, doc="Size limit of a fetch response to a follower."
    )

    # Groups
    group_min_session_timeout_ms: int = key(
        6000, since=V0_9_0, doc="Shortest session timeout that a member may request."
    )
    group_max_session_timeout_ms: int = key(
        30_000,
        since=V0_9_0,
        later={V0_10_2: {"default": 300_000}},
        doc="Longest session timeout that a member may request.",
    )

    group_initial_rebalance_delay_ms: int = key(
        0,
        since=V0_11_0,
        later={V0_11_0: {"default": 3000}},
        doc="How long the first rebalance of a new group waits for more members.",
    )

    # Transactions
    transactional_id_expiration_ms: int = key(
        604_800_000,
        low=1,
        since=V0_11_0,
        doc="How long an idle producer, and a transactional id without a transaction, is kept.",
    )
    transaction_max_timeout_ms: int = key(
        900_000,
        low=1,
        since=V0_11_0,
        doc="Longest transaction timeout that a producer may request.",
    )
    transaction_state_log_min_isr: int = key(
        2, low=1, since=V0_11_0, doc="min.insync.replicas of __transaction_state."
    )
    transaction_state_log_load_buffer_size: int = key(
        5 << 20, low=1, since=V0_11_0, doc="Bytes read at a time when transactions are loaded."
    )
    transaction_state_log_replication_factor: int = key(
        3, low=1, high=32767, since=V0_11_0, doc="Replicas of __transaction_state."
    )
    transaction_state_log_num_partitions: int = key(
        50, low=1, since=V0_11_0, doc="Partitions of __transaction_state."
    )
    transaction_state_log_segment_bytes: int = key(
        104_857_600, low=1, since=V0_11_0, doc="segment.bytes of __transaction_state."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = key(
        60_000,
        low=1,
        since=V0_11_0,
        doc="Interval between checks for transactions that have timed out.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = key(
        3_600_000,
        low=1,
        since=V0_11_0,
        doc="Interval between checks for transactional ids that have expired.",
    )

    # Quotas
    quota_producer_default: int = _no_quotas(LONG_MAX, low=1, high=LONG_MAX)
    quota_consumer_default: int = _no_quotas(LONG_MAX, low=1, high=LONG_MAX)
    quota_window_num: int = _no_quotas(11, low=1)
    quota_window_size_seconds: int = _no_quotas(1, low=1)
    replication_quota_window_num: int = _no_quotas(11, low=1, since=V0_10_2)
    replication_quota_window_size_seconds: int = _no_quotas(1, low=1, since=V0_10_2)

    # Security and metrics
    zookeeper_set_acl: bool = _unused(False, doc="Znodes have open ACLs.")
    authorizer_class_name: str = _unused("", doc="There is no authorization.")
    principal_builder_class: str | None = _no_ssl(None)
    ssl_protocol: str = _no_ssl("TLS")
    ssl_provider: str | None = _no_ssl(None)
    ssl_cipher_suites: str | None = _no_ssl(None)
    ssl_enabled_protocols: str = _no_ssl("TLSv1.2,TLSv1.1,TLSv1")
    ssl_keystore_type: str = _no_ssl("JKS")
    ssl_keystore_location: str | None = _no_ssl(None)
    ssl_keystore_password: str | None = _no_ssl(None)
    ssl_key_password: str | None = _no_ssl(None)
    ssl_truststore_type: str = _no_ssl("JKS")
    ssl_truststore_location: str | None = _no_ssl(None)
    ssl_truststore_password: str | None = _no_ssl(None)
    ssl_keymanager_algorithm: str = _no_ssl("SunX509")
    ssl_trustmanager_algorithm: str = _no_ssl("PKIX")
    ssl_endpoint_identification_algorithm: str | None = _no_ssl(None)
    ssl_secure_random_implementation: str | None = _no_ssl(None, since=V0_10_2)
    ssl_client_auth: str = _no_ssl("none", choices=("required", "requested", "none"))
    sasl_enabled_mechanisms: str = key(
        "GSSAPI", since=V0_10_2, doc="Mechanisms that SaslHandshake lists; none of them works here."
    )
    sasl_mechanism_inter_broker_protocol: str = _no_ssl("GSSAPI", since=V0_10_2)
    sasl_kerberos_service_name: str | None = _no_ssl(None)
    sasl_kerberos_kinit_cmd: str = _no_ssl("/usr/bin/kinit")
    sasl_kerberos_ticket_renew_window_factor: float = _no_ssl(0.8)
    sasl_kerberos_ticket_renew_jitter: float = _no_ssl(0.05)
    sasl_kerberos_min_time_before_relogin: int = _no_ssl(60_000, high=LONG_MAX)
    sasl_kerberos_principal_to_local_rules: str = _no_ssl("DEFAULT")
    metric_reporters: str = _no_metrics("")
    metrics_num_samples: int = _no_metrics(2, low=1)
    metrics_sample_window_ms: int = _no_metrics(30_000, low=1, high=LONG_MAX)
    metrics_recording_level: str = _no_metrics("INFO", since=V0_10_2)
