"""Mirror: copies topics of a source cluster to a target cluster until it is stopped.

    mirror = Mirror(source, target, Whitelist("page.*"))
    mirror.run(stopping)        # an Event, as of threading

It is one member of the group `group.id` at the source, so several mirrors of one group share the
work. Its guarantees:

1. No message is lost: it commits only messages that the target has acknowledged. After kill -9, or
   a rebalance, the messages since the last commit are copied again.
2. A message keeps topic, key, value, and its timestamp where both brokers are of 0.10.0 or later.
   Its partition is chosen by its key, or kept.
3. Messages of one source partition with the same key keep their order; if some were copied again,
   their last copies do.
4. It waits without limit for a target that does not respond. A permanent refusal ends the mirror,
   or the message is skipped, depending on the settings.

Source: kafka.tools.MirrorMaker 0.8.2.2, which commits messages that are still in its queue."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import Final

from kafka08.client import ClusterClient
from kafka08.consumer.subscription import TopicFilter
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.connector import ConsumerConnector
from kafka08.consumer.zookeeper.kafka_stream import KafkaStream
from kafka08.errors import FailedToSend, KafkaError
from kafka08.lifecycle import ProcessBound
from kafka08.mirror.copying import Interrupted, StreamCopier
from kafka08.mirror.outcome import MirrorFailed
from kafka08.mirror.settings import Address, MirrorSettings, check_apart, check_configs
from kafka08.mirror.stats import MirrorCounts, MirrorStats
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.runtime import ClientRuntime, Event
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

POLL_MS: Final = 100
"""How often a stream without messages checks for a stop."""
STOP_TIMEOUT_S: Final = 10.0
"""How long a stop waits for outstanding acknowledgements and commits."""


class Mirror(ProcessBound):
    """Copies the topics that `topics` allows from `source` to `target`. Raises ConfigError for
    configurations that would break a guarantee (settings.check_configs)."""

    def __init__(
        self,
        source: ConsumerConfig,
        target: KafkaProducerConfig,
        topics: TopicFilter,
        settings: MirrorSettings = MirrorSettings(),
        *,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._is_simulated = not isinstance(runtime, ThreadRuntime)
        check_configs(source, target)
        self._runtime = runtime
        self._source = source
        self._target = target
        self._topics = topics
        self._settings = settings
        self._stats = MirrorStats(runtime)
        self._failure: Exception | None = None
        self._failure_lock = runtime.lock()

    @property
    def counts(self) -> MirrorCounts:
        """Its counts so far. Any thread."""
        return self._stats.counts

    def run(
        self,
        stopping: Event,
        *,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Copy until `stopping` is set from outside. Then it waits a while for outstanding
        acknowledgements, and commits acknowledged messages. `starting` is entered around the
        connections to both clusters: an exception raised there, by a signal for instance, passes.

        Raises ConfigError if source and target are the same cluster, MirrorFailed, and errors for
        unreadable messages of the source; however it ends, `stopping` is set then.
        """
        with starting():
            self._check_apart()
        with ExitStack() as leaving:
            leaving.callback(stopping.set)
            producers = [
                KafkaProducer(self._target, runtime=self._runtime)
                for _ in range(self._settings.producers)
            ]
            leaving.callback(close_all, producers)
            source = self._source.with_changes(consumer_timeout_ms=POLL_MS)
            with starting():
                connector = ConsumerConnector(source, timestamps=True, runtime=self._runtime)
            leaving.callback(connector.shutdown)
            streams = connector.create_message_streams_by_filter(
                self._topics, self._settings.streams
            )
            self._copy(connector, streams, producers, stopping)
        if self._failure is not None:
            raise self._failure

    def _copy(
        self,
        connector: ConsumerConnector,
        streams: list[KafkaStream[bytes, bytes]],
        producers: list[KafkaProducer],
        stopping: Event,
    ) -> None:
        threads = [
            self._runtime.spawn(
                self._run_stream,
                connector,
                stream,
                producers[number % len(producers)],
                stopping,
                name=f"mirror-{number}",
            )
            for number, stream in enumerate(streams)
        ]
        stopping.wait()
        monotonic = self._runtime.monotonic
        deadline = monotonic() + STOP_TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        if any(thread.is_alive() for thread in threads):
            logger.warning("not everything was acknowledged and committed: that is copied again")
            close_all(producers)  # ends the waits of the threads for the target,
            connector.shutdown()  # and those for the coordinator of the source
        for thread in threads:
            thread.join()

    def _run_stream(
        self,
        connector: ConsumerConnector,
        stream: KafkaStream[bytes, bytes],
        producer: KafkaProducer,
        stopping: Event,
    ) -> None:
        def owns(tp: TopicPartition) -> bool:
            return connector.thread_of(tp) == stream.thread_id

        try:
            StreamCopier(
                stream,
                producer,
                self._settings,
                self._stats,
                stopping,
                owns,
                self._runtime.monotonic,
            ).run()
            commit(connector)  # including the current batch: it is acknowledged
        except Interrupted as error:
            if not stopping.is_set():
                self._fail(MirrorFailed("a producer ended by itself; its log says why"), error)
        except Exception as error:  # noqa: BLE001 - the root of a thread; `run` raises it
            self._fail(error)
        finally:
            stopping.set()

    def _fail(self, error: Exception, cause: Exception | None = None) -> None:
        """The first failure is the one that `run` raises."""
        with self._failure_lock:
            if self._failure is None:
                self._failure = error
                error.__cause__ = cause or error.__cause__

    def _check_apart(self) -> None:
        check_apart(
            source_addresses(self._source, self._runtime),
            target_addresses(self._target, self._runtime),
        )


def commit(connector: ConsumerConnector) -> None:
    """Commit at the end of a stream. Uncommitted messages are copied again, so it never fails."""
    try:
        connector.commit_offsets()
    except KafkaError as error:
        logger.warning("not committed, so it will be copied again: %s", error)


def source_addresses(config: ConsumerConfig, runtime: ClientRuntime) -> set[Address]:
    """The addresses of the registered brokers. Raises ZooKeeperError."""
    with ZkClient(
        config.zookeeper_connect,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        name="mirror",
        adapter=runtime.zookeeper,
        clock=runtime,
    ) as zk:
        return {(broker.host, broker.port) for broker in ClusterStore(zk).brokers().values()}


def target_addresses(config: KafkaProducerConfig, runtime: ClientRuntime) -> set[Address]:
    """The given brokers and those that they know: none before the first topic of a cluster.
    Raises NoBrokersAvailable."""
    with closing(
        ClusterClient(
            config.bootstrap,
            client_id="kafka08-mirror",
            security=config.security,
            runtime=runtime,
        )
    ) as cluster:
        brokers = cluster.refresh().brokers.values()
    return {*config.bootstrap, *((broker.host, broker.port) for broker in brokers)}


def close_all(producers: list[KafkaProducer]) -> None:
    """Close them without waiting; unacknowledged messages are not committed either."""
    for producer in producers:
        try:
            producer.close(timeout=0)
        except FailedToSend as error:
            logger.info("%s", error)
        except KafkaError as error:
            logger.warning("%s", error)
