"""EventHandler: encodes messages, chooses partitions, sends one request per leader, and retries.

Source: kafka.producer.async.DefaultEventHandler 0.8.2.2, with two differences: a message that
cannot be routed does not delay the others of its batch, and permanent errors (too large, illegal
topic, a failing partitioner) are not retried.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat

from kafka08 import kernel
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import TOPIC_EXPIRY_S, ClusterMetadata
from kafka08.client.requests import produce_request, produce_results
from kafka08.client.retry import may_be_stored_later
from kafka08.clock import Clock
from kafka08.errors import FailedToSend, InvalidTopic, KafkaError, ProtocolError, error_of
from kafka08.listing import some_of
from kafka08.network.connection import Connection
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.encoded import NULLS, Encoded
from kafka08.producer.old.encoders import Encoder
from kafka08.producer.old.producer_stats import ProducerStats
from kafka08.producer.old.router import Router
from kafka08.producer.record import KeyedMessage
from kafka08.protocol import compression, message_set
from kafka08.protocol.produce import ProduceResponse
from kafka08.protocol.types import Buffer
from kafka08.structs import Broker, TopicPartition, host_port
from kafka08.topic_name import fault_of

logger = logging.getLogger(__name__)

Batch = dict[TopicPartition, Encoded]
"""The content of one request, each partition's messages in their given order."""
Failures = list[tuple[Encoded, KafkaError]]


class EventHandler:
    """Sends batches, one at a time; the caller ensures that.

    cluster               metadata and connections; `close` closes them
    router                chooses partitions
    encoder, key_encoder  of values and keys
    clock                 for backoffs and the age of metadata
    stats                 counts what becomes of the messages
    """

    def __init__(
        self,
        config: ProducerConfig,
        cluster: ClusterClient,
        router: Router,
        encoder: Encoder,
        key_encoder: Encoder,
        clock: Clock,
        stats: ProducerStats,
    ) -> None:
        self._config = config
        self._stats = stats
        self._cluster = cluster
        self._router = router
        self._encoder = encoder
        self._key_encoder = key_encoder
        self._clock = clock
        self._topics: set[str] = set()
        """Those sent to since the last refresh by topic.metadata.refresh.interval.ms."""
        self._stale: set[str] = set()
        """Those of the last failed tries: their leaders are looked up again before the next one."""
        self._refreshed: float | None = None
        self._used: set[str] = set()
        """Those sent to since the others were forgotten."""
        self._forgot = clock.monotonic()

    def handle(self, messages: Sequence[KeyedMessage]) -> None:
        """Send all of `messages`, with up to message.send.max.retries retries for failed ones.

        Within a partition they keep their order. FailedToSend if some were not acknowledged (acks
        0: not written to a socket); they may still be stored, if only the response was lost.

        With producer.type=sync, errors of an encoder or the partitioner are raised as they are, and
        so is ValueError for a message without a topic; in the first attempt nothing was sent then.
        With async such a message counts as failed, and the others are sent.
        """
        outstanding, given_up = self._encoded(messages)
        for tries in range(1, self._config.message_send_max_retries + 2):
            if tries > 1:
                self._back_off(outstanding, tries)
            self._refresh_if_due(outstanding)
            failures = self._dispatch(outstanding)
            given_up += [failure for failure in failures if not may_be_stored_later(failure[1])]
            failures = [failure for failure in failures if may_be_stored_later(failure[1])]
            if not failures:
                break
            self._stats.resent()
            outstanding = Encoded.joined(part for part, _ in failures)
        if failures:
            self._stale |= outstanding.distinct_topics()
        if given_up or failures:
            self._stats.failed()
            raise failed_to_send(messages, given_up + failures, tries)

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()

    # ------------------------------------------------------------------------------- encoding

    def _encoded(self, messages: Sequence[KeyedMessage]) -> tuple[Encoded, Failures]:
        """The sendable messages, and those that can never be sent."""
        failures: Failures = []
        try:
            all_ = Encoded.of(messages, self._encoder, self._key_encoder)
        except Exception:
            if self._config.producer_type == "sync":
                raise
            all_, failures = self._encoded_one_by_one(messages)
        topics = all_.distinct_topics()
        if topics:
            self._stats.taken(all_.topics, len(topics))
        faults = {topic: fault for topic in topics if (fault := fault_of(topic))}
        if not faults:
            return all_, failures
        for bad, fault in faults.items():
            rows = [row for row, topic in enumerate(all_.topics) if topic == bad]
            failures.append((all_.at(rows), InvalidTopic(fault)))
        legal = [row for row, topic in enumerate(all_.topics) if topic not in faults]
        return all_.at(legal), failures

    def _encoded_one_by_one(self, messages: Sequence[KeyedMessage]) -> tuple[Encoded, Failures]:
        """The messages that can be encoded, each alone, and the others with the reason.

        Source: DefaultEventHandler.serialize."""
        good: list[Encoded] = [Encoded.of((), self._encoder, self._key_encoder)]
        failures: Failures = []
        for place, message in enumerate(messages):
            try:
                one = Encoded.of((message,), self._encoder, self._key_encoder)
            except Exception as error:  # the user's encoder, or its argument
                self._stats.not_serialized()
                logger.exception("Error serializing message for topic %s", message.topic)
                bad = Encoded((place,), (str(message.topic),), (None,), (None,), (None,))
                failures.append((bad, KafkaError(f"it cannot be encoded: {error!r}")))
                continue
            good.append(one._replace(places=(place,)))
        return Encoded.joined(good), failures

    # ------------------------------------------------------------------------------- metadata

    def _back_off(self, outstanding: Encoded, tries: int) -> None:
        """Wait for an election that may be in progress, then look up the leaders again."""
        logger.info(
            "Back off for %d ms before retrying send. Remaining retries = %d",
            self._config.retry_backoff_ms,
            self._config.message_send_max_retries + 2 - tries,
        )
        self._clock.sleep(self._config.retry_backoff_ms / 1000)
        self._refresh(outstanding.distinct_topics())

    def _refresh_if_due(self, outstanding: Encoded) -> None:
        topics = outstanding.distinct_topics()
        self._topics |= topics
        self._used |= topics
        now = self._clock.monotonic()
        if stale := self._stale & topics:
            self._stale -= stale
            self._refresh(stale)
        interval_ms = self._config.topic_metadata_refresh_interval_ms
        if self._refreshed is None:
            self._refreshed = now
        elif 0 <= interval_ms < (now - self._refreshed) * 1000:
            self._refreshed = now
            self._refresh(self._topics)
            self._topics.clear()
        if now - self._forgot > TOPIC_EXPIRY_S:
            self._forgot = now
            self._stale &= self._used
            self._cluster.forget_others(self._used)
            self._stats.forget_others(self._used)
            self._used = set(topics)

    def _refresh(self, topics: Iterable[str]) -> None:
        """A failure is only logged: old metadata may still do, and the next attempt will tell."""
        try:
            self._cluster.refresh(topics)
        except KafkaError as error:
            logger.warning("Metadata refresh failed: %s", error)
        self._router.forget()

    # -------------------------------------------------------------------------------- sending

    def _dispatch(self, outstanding: Encoded) -> Failures:
        """Send once, to all leaders at the same time; returns what failed, and why."""
        batches, failures = self._collated(outstanding)
        acks = self._config.request_required_acks
        with ExitStack() as connections:
            in_flight: list[tuple[Broker, Connection, Batch, int, float]] = []
            for broker, batch in batches.items():
                try:
                    began = self._stats.now()
                    connection = connections.enter_context(self._cluster.connection(broker))
                    sets = {tp: self._message_set(tp, part) for tp, part in batch.items()}
                    size = sum(map(len, sets.values()))
                    connection.write(
                        produce_request(
                            sets,
                            required_acks=acks,
                            timeout_ms=self._config.request_timeout_ms,
                        ),
                        has_response=acks != 0,
                    )
                    if acks != 0:
                        in_flight.append((broker, connection, batch, size, began))
                    else:
                        self._stats.requested(name_of(broker), size, began)
                except KafkaError as error:
                    failures += failed(broker, batch, error)
            for broker, connection, batch, size, began in in_flight:
                failures += self._read_response(broker, connection, batch)
                self._stats.requested(name_of(broker), size, began)
        return failures

    def _collated(self, outstanding: Encoded) -> tuple[dict[Broker, Batch], Failures]:
        """Batches by leader, and the messages without a partition or leader now."""
        topics = outstanding.distinct_topics()
        try:
            metadata = self._cluster.known(topics)
        except KafkaError as error:
            return {}, [(outstanding, error)]
        failures: Failures = []
        batches: dict[Broker, Batch] = {}
        for tp, rows in self._rows(outstanding, topics, metadata, failures).items():
            part = outstanding.at(rows)
            try:
                batches.setdefault(metadata.leader(tp), {})[tp] = part
            except KafkaError as error:
                failures.append((part, error))
        return batches, failures

    def _rows(
        self,
        outstanding: Encoded,
        topics: set[str],
        metadata: ClusterMetadata,
        failures: Failures,
    ) -> Mapping[TopicPartition, Collection[int]]:
        """Message indexes by partition; `failures` gets those without a partition now."""
        if len(topics) == 1:
            [topic] = topics  # most calls end here
            try:
                partitions = metadata.partitions(topic)
                if kernel.are_of(NULLS, outstanding.chosen_by):
                    # All of them go to the partition of the first one.
                    partition = self._router.partition_of(topic, None, partitions)
                    return {TopicPartition(topic, partition): range(len(outstanding.places))}
            except KafkaError as error:
                failures.append((outstanding, error))
                return {}
            chosen = self._router.partitions_of(outstanding.chosen_by, partitions)
            if chosen is not None:
                groups = kernel.group_rows(chosen)
                return {TopicPartition(topic, partition): of for partition, of in groups.items()}
        rows: dict[tuple[str, int], list[int]] = {}
        keyless: dict[str, list[int]] = {}
        partition_of = self._router.partition_of
        for row, (topic, chosen_by) in enumerate(
            zip(outstanding.topics, outstanding.chosen_by, strict=True)
        ):
            if chosen_by is None and topic in keyless:
                keyless[topic].append(row)
                continue
            try:
                partition = partition_of(topic, chosen_by, metadata.partitions(topic))
            except KafkaError as error:
                failures.append((outstanding.at([row]), error))
                continue
            except Exception as error:  # the partitioner's
                if self._config.producer_type == "sync":
                    raise
                logger.exception("Failed to choose a partition of topic %s", topic)
                unroutable = KafkaError(f"the partitioner failed: {error!r}")
                failures.append((outstanding.at([row]), unroutable))
                continue
            of_partition = rows.setdefault((topic, partition), [])
            of_partition.append(row)
            if chosen_by is None:
                keyless[topic] = of_partition
        return {TopicPartition(*of): found for of, found in rows.items()}

    def _message_set(self, tp: TopicPartition, part: Encoded) -> Buffer:
        codec = self._config.codec_of(tp.topic)
        built: Buffer
        if codec == compression.NONE:
            built = part.message_set()
        else:
            built = message_set.encode(list(part.pairs()), codec)
        self._stats.built(tp.topic, len(built))
        return built

    def _read_response(self, broker: Broker, connection: Connection, batch: Batch) -> Failures:
        try:
            response = connection.read_response()
            assert isinstance(response, ProduceResponse)
            results = produce_results(response)
            if results.keys() != batch.keys():
                raise ProtocolError(f"from {connection}: other partitions than those requested")
        except KafkaError as error:
            return failed(broker, batch, error)
        failures: Failures = []
        for tp, part in batch.items():
            refusal = error_of(results[tp].error_code, f"{tp} at {broker}")
            if refusal is not None:
                failures += failed(broker, {tp: part}, refusal)
        return failures


def name_of(broker: Broker) -> str:
    return host_port(broker.host, broker.port)


def failed(broker: Broker, batch: Batch, error: KafkaError) -> Failures:
    """All messages of `batch` with `error`, which is logged with their partitions."""
    names = ", ".join(map(str, batch))
    logger.warning("Failed to send produce request to broker %s for %s: %s", broker, names, error)
    return [(part, error) for part in batch.values()]


def failed_to_send(
    messages: Sequence[KeyedMessage], failures: Failures, tries: int
) -> FailedToSend:
    """The error for unsent messages: how many, which topics and why, and the messages."""
    reasons: Counter[tuple[str, str]] = Counter()
    for part, error in failures:
        reasons.update(zip(part.topics, repeat(str(error)), strict=False))
    lost = tuple(messages[place] for part, _ in failures for place in part.places)
    shown = [f"{n} for {topic}: {why}" for (topic, why), n in reasons.items()]
    logger.error("Failed to send requests for topics %s", ",".join(sorted({t for t, _ in reasons})))
    result = FailedToSend(
        f"Failed to send messages after {tries} tries: {len(lost)} of {len(messages)}: "
        + some_of(shown, "; ", "reasons"),
        lost,
    )
    result.__cause__ = failures[-1][1]
    return result
