"""KafkaServer: starts and stops the parts of a broker, in the order of 0.8.2.2.

Startup registers in ZooKeeper last, when everything behind the address works. A failed start stops
the started parts and raises. Source: kafka.server.KafkaServer 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from kafka08.broker.appends.appender import Appender
from kafka08.broker.cluster.former_session import FormerSession
from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.cluster.peer_protocols import advertised
from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.broker.controller.controller import Controller
from kafka08.broker.groups.group_coordinator import GroupCoordinator
from kafka08.broker.groups.offset_manager import OffsetManager
from kafka08.broker.process.broker_families import (
    cleaner_metrics,
    group_metrics,
    of_connections,
    of_controller,
    of_event_loop,
    of_fetchers,
    of_replicas,
    of_session,
    of_state,
    of_transactions,
)
from kafka08.broker.process.broker_metadata import claim_broker_id
from kafka08.broker.process.broker_state import BrokerState
from kafka08.broker.process.controlled_shutdown import request_controlled_shutdown
from kafka08.broker.process.event_loop_monitor import EventLoopMonitor
from kafka08.broker.process.log_background import LogBackground
from kafka08.broker.process.log_cleaner import CleanerWorkers
from kafka08.broker.process.missed_restart import MissedRestart
from kafka08.broker.replication.isr_change_notifications import CHECK_MS as ISR_CHANGES_CHECK_MS
from kafka08.broker.replication.log_start_checkpoints import LogStartCheckpoints
from kafka08.broker.replication.record_deletions import RecordDeletions
from kafka08.broker.replication.refused_states import RETRY_MS as REFUSED_RETRY_MS
from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.replication.unconfirmed_leaderships import UnconfirmedLeaderships
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.dispatcher import Dispatcher
from kafka08.broker.requests.request_metrics import RequestMetrics
from kafka08.broker.settings.config import BrokerConfig
from kafka08.broker.topics.deleted_topics import CHECK_MS as DELETED_TOPICS_CHECK_MS
from kafka08.broker.topics.deleted_topics import DeletedTopics
from kafka08.broker.topics.topic_config_changes import TopicConfigChanges
from kafka08.broker.topics.topic_creator import TopicCreator
from kafka08.broker.topics.topic_waits import TopicWaits
from kafka08.broker.transactions.marker_sender import MarkerSender
from kafka08.broker.transactions.marker_writer import MarkerWriter
from kafka08.broker.transactions.transaction_checks import TransactionChecks
from kafka08.broker.transactions.transaction_coordinator import TransactionCoordinator
from kafka08.config import LONG_MAX
from kafka08.errors import Closed, ConfigError, KafkaError
from kafka08.levels import ByLevel, Level
from kafka08.log.log import Log
from kafka08.log.manager import LoadJob, LogManager
from kafka08.metrics import Family, Pauses
from kafka08.network.connection_quotas import ConnectionQuotas
from kafka08.network.server import SocketServer
from kafka08.network.server_connection import RequestHandler
from kafka08.protocol.served import SERVED
from kafka08.runtime import BrokerRuntime, Buffers, Greenlet, Listener
from kafka08.runtime.cluster_id import new_cluster_id
from kafka08.runtime.listen_errors import listen_error_text
from kafka08.runtime.timer import Timer
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Broker, Endpoint
from kafka08.zk.client import ZkClient
from kafka08.zk.producer_ids import ProducerIds
from kafka08.zk.store import ClusterStore

logger = logging.getLogger("kafka.server.KafkaServer")

INITIAL_TASK_DELAY_S: Final = 30.0
"""The delay between the start and the first of the periodic tasks for logs: retention, flushes and
checkpoints of recovery points. Source: LogManager.InitialTaskDelayMs."""
PRODUCERS_CHECK_MS: Final = 600_000
ISR_CHECKS: Final = ByLevel({Level.V0_8_2: 1, Level.V0_10_2: 2})
"""How many checks for lagging followers there are per replica.lag.time.max.ms."""


class KafkaServer:
    """One broker. `startup` once, then `shutdown` once, from any greenlet.

    endpoint   the registered address, with the real port when `port` is 0. Set by startup
    store      ZooKeeper; None before startup
    around     makes the handler of a listener's requests from the broker's own; see `use_around`
    """

    controller_type: type[Controller] = Controller
    """Another one has other habits, in a simulation."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: BrokerRuntime,
        around: Callable[[RequestHandler], RequestHandler] = lambda handle: handle,
    ) -> None:
        self.config = config
        self.runtime = runtime
        self._around = around
        self._dispatchers: list[Dispatcher] = []
        self.endpoint: Broker | None = None
        self._started = False
        self._stopping = False
        self._state = BrokerState.STARTING
        self._stopped = runtime.event()
        self._zk: ZkClient | None = None
        self._cluster_id: str | None = None
        self.store: ClusterStore | None = None
        self._log_manager: LogManager | None = None
        self._former_session: FormerSession | None = None
        self._unconfirmed_leaderships: UnconfirmedLeaderships | None = None
        self._listeners: dict[str, Listener] = {}
        self._fetchers: ReplicaFetcherManager | None = None
        self._replica_manager: ReplicaManager | None = None
        self._offset_manager: OffsetManager | None = None
        self._group_coordinator: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._marker_sender: MarkerSender | None = None
        self._controller: Controller | None = None
        self._socket_servers: list[SocketServer] = []
        self._config_changes: TopicConfigChanges | None = None
        self._registration: RegistrationKeeper | None = None
        self._missed_restart: MissedRestart | None = None
        self._event_loop_monitor: EventLoopMonitor | None = None
        self._cleaner: CleanerWorkers | None = None
        self._scheduled: list[Greenlet] = []
        self._requests = RequestMetrics(
            runtime, config.level, takes_times=config.metrics_port is not None
        )

    # Start

    def startup(self) -> None:
        """Start. Switches. After an error it stops the started parts and raises: ConfigError,
        StorageError, CorruptLog, ZooKeeperError (BrokerIdTaken), OSError."""
        self._log("starting")
        self._log(self.config.format_note)
        try:
            self._start()
        except (KafkaError, OSError) as error:
            if self._stopping:
                logger.info("%sstopped while it was starting: %s", self._ident, error)
                self._stopped.wait()
                raise
            logger.critical(
                "%sFatal error during KafkaServer startup. Prepare to shutdown: %s",
                self._ident,
                error,
            )
            self.shutdown()
            raise
        self._started = True
        if not self._stopping:
            self._state = BrokerState.RUNNING
        self._log("started")

    def _start(self) -> None:
        runtime = self.runtime
        timer = Timer(runtime)
        self._event_loop_monitor = EventLoopMonitor(runtime)
        store = self.store = self._connect_zookeeper()
        log_manager = self._log_manager = self._load_logs(store, timer)
        config = self._claim_broker_id(store)
        # Before the former session is ended: this address proves that its process is gone.
        self._listen()
        endpoints = self._advertised()
        self.endpoint = broker_at(config.broker_id, endpoints[0])
        former_session = self._end_former_session(store, self.endpoint, log_manager.identity)

        context = self._create_context(store, log_manager, timer)
        # Before the first request: until then any controller would be obeyed.
        context.replica_manager.refuse_former_controllers()
        if config.level >= Level.V0_9_0:
            context.group_coordinator.startup()
        if config.level >= Level.V0_11_0:
            context.transactions.startup()
        context.offset_manager.startup()
        self._serve_all(context, timer)
        self._schedule(context, log_manager)
        self._cleaner = CleanerWorkers(config, runtime, context.replica_manager)
        self._cleaner.start()
        context.controller.startup()
        self._config_changes = TopicConfigChanges(
            runtime, store, log_manager, config.protocol_version
        )
        self._config_changes.start()

        def before_registration(zk: ZkClient) -> None:
            former_session.keep(zk)
            context.deleted_topics.suspect_all()
            context.unconfirmed_leaderships.session_begins()
            context.replica_manager.refuse_former_controllers()

        # Tell everyone we are alive.
        self._registration = RegistrationKeeper(
            runtime,
            store,
            self.endpoint,
            before_registration,
            retry_s=config.zookeeper_session_timeout_ms / 1000,
            advertised=advertised(
                config.level, config.protocol_version, endpoints, config.broker_rack
            ),
        )
        self._registration.start()
        self._missed_restart = MissedRestart(
            runtime,
            store,
            context.replica_manager,
            self._registration,
            lambda: bool(context.metadata_cache.racks),
            away_s=config.zookeeper_session_timeout_ms / 1000,
        )
        self._missed_restart.start()

    def _create_context(
        self, store: ClusterStore, log_manager: LogManager, timer: Timer
    ) -> BrokerContext:
        """Create what handles requests: replicas, groups, the controller. Starts none of them."""
        config, runtime = self.config, self.runtime
        metadata_cache = MetadataCache(config.broker_id)

        def checkpoint() -> None:
            replica_manager.checkpoint_high_watermarks()

        log_starts = LogStartCheckpoints(runtime, log_manager)
        self._fetchers = ReplicaFetcherManager(
            config,
            runtime,
            partial(
                ReplicaFetcher, config, runtime, log_manager, store, checkpoint, log_starts.write
            ),
        )
        replica_manager = self._replica_manager = ReplicaManager(
            config,
            runtime,
            log_manager=log_manager,
            store=store,
            metadata_cache=metadata_cache,
            timer=timer,
            followers=self._fetchers,
        )
        replica_manager.load_high_watermarks()
        if self._stopping:
            raise Closed(f"broker {config.broker_id} was stopped while it loaded its logs")
        self._unconfirmed_leaderships = UnconfirmedLeaderships(
            runtime, store, metadata_cache, replica_manager
        )
        appender = Appender(replica_manager, runtime)
        self._offset_manager = OffsetManager(
            runtime,
            config,
            replica_manager,
            appender,
            self._unconfirmed_leaderships.is_unconfirmed,
            self._partition_count(store, OFFSETS_TOPIC, Level.V0_9_0),
        )
        self._group_coordinator = GroupCoordinator(runtime, config, timer, self._offset_manager)
        marker_writer = MarkerWriter(
            runtime, appender, self._offset_manager, config.request_timeout_ms
        )
        self._marker_sender = MarkerSender(
            runtime,
            config.broker_id,
            store,
            metadata_cache,
            marker_writer.write,
            listener=config.inter_broker_listener,
            timeout_ms=config.request_timeout_ms,
        )
        producer_ids = ProducerIds(store.zk, config.broker_id)
        self._transactions = TransactionCoordinator(
            runtime,
            config,
            replica_manager,
            appender,
            self._marker_sender,
            producer_ids.next_id,
            self._unconfirmed_leaderships.is_unconfirmed,
            self._partition_count(store, TRANSACTIONS_TOPIC, Level.V0_11_0),
        )
        self._controller = self.controller_type(runtime, config, store)
        topic_waits = TopicWaits(runtime, timer, metadata_cache)
        return BrokerContext(
            config,
            runtime,
            store,
            metadata_cache,
            replica_manager,
            appender,
            TopicCreator(config, runtime, store),
            self._controller,
            self._offset_manager,
            self._group_coordinator,
            self._transactions,
            marker_writer,
            TransactionChecks(replica_manager, self._transactions),
            producer_ids,
            topic_waits,
            DeletedTopics(runtime, store, metadata_cache, self._group_coordinator, topic_waits),
            self._unconfirmed_leaderships,
            RecordDeletions(runtime, replica_manager, metadata_cache, log_starts.write),
            cluster_id=self._cluster_id,
        )

    def _connect_zookeeper(self) -> ClusterStore:
        config = self.config
        self._log(f"Connecting to zookeeper on {config.zookeeper_connect}")
        self._zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.connection_timeout_ms,
            adapter=self.runtime.zookeeper,
            name=f"broker {config.broker_id}",
            make_chroot=True,
            clock=self.runtime,
        )
        self._zk.start()
        store = ClusterStore(self._zk)
        store.create_common_paths(config.level)
        if config.is_safe:
            store.put_profile(config.kafka08_profile)
        self._cluster_id = store.cluster_id(partial(new_cluster_id, self.runtime.random))
        self._log(f"Cluster ID = {self._cluster_id}")
        return store

    def _claim_broker_id(self, store: ClusterStore) -> BrokerConfig:
        """Take the final broker id into the configuration; returns that."""
        config = self.config
        self.config = claim_broker_id(
            config,
            lambda: store.next_broker_id(config.reserved_broker_max_id),
            self.runtime.time_ms() / 1000,
            self.runtime.disk,
        )
        return self.config

    def _end_former_session(
        self, store: ClusterStore, address: Broker, identity: str
    ) -> FormerSession:
        """End the ZooKeeper session of the process that had these directories, and this address,
        before."""
        directory = Path(self.config.log_directories[0])
        self._former_session = FormerSession(directory, identity, self.runtime.disk)
        self._former_session.end(self.runtime, store, address)
        return self._former_session

    def _load_logs(self, store: ClusterStore, timer: Timer) -> LogManager:
        """Open all logs; other tasks run in between, so that the session stays alive."""
        manager = LogManager(
            self.config.log_directories,
            self.config.log_config(),
            store.all_topic_configs(),
            clock=self.runtime,
            disk=self.runtime.disk,
            background=LogBackground(self.runtime, timer),
            draw_jitter=self.runtime.random.randrange,
            pause=lambda: self.runtime.sleep(0),
            draw_unique=self._draw_hex if self.config.level >= Level.V0_10_2 else None,
        )

        def load(job: LoadJob) -> Log:
            self.runtime.sleep(0)
            return job()

        manager.load(lambda jobs: map(load, jobs))
        return manager

    def _draw_hex(self) -> str:
        """32 random hex digits, as in a UUID."""
        return f"{self.runtime.random.getrandbits(128):032x}"

    def _partition_count(self, store: ClusterStore, topic: str, since: Level) -> int:
        """The number of partitions of an internal topic that brokers have from a level on; 0 if it
        does not exist.

        0.8 does not check, so a broker with another offsets.topic.num.partitions looks for groups
        in the wrong partition."""
        if self.config.level < since:
            return 0
        return len(store.assignment(topic) or ())

    def _listen(self) -> None:
        """Bind the ports of all listeners."""
        for endpoint in self.config.listening:
            self._listeners[endpoint.listener] = self._listen_at(endpoint)

    def _listen_at(self, endpoint: Endpoint) -> Listener:
        config = self.config
        buffers = Buffers(config.socket_receive_buffer_bytes, config.socket_send_buffer_bytes)
        try:
            listener = self.runtime.listen(endpoint.host, endpoint.port, buffers)
        except OSError as error:
            key = "port" if config.listeners is None else "listeners"
            raise ConfigError(
                f"{key}: cannot listen on {endpoint.host or '*'}:{endpoint.port}: "
                f"{listen_error_text(error)}"
            ) from error
        self._log(f"Awaiting socket connections on {endpoint.host or '0.0.0.0'}:{listener.port}.")
        return listener

    def _advertised(self) -> tuple[Endpoint, ...]:
        """The advertised endpoints, with the hosts and ports that the configuration leaves open."""
        return tuple(
            endpoint._replace(
                host=endpoint.host or self.runtime.canonical_host_name(),
                port=endpoint.port or self._listeners[endpoint.listener].port,
            )
            for endpoint in self.config.advertised
        )

    def _serve_all(self, context: BrokerContext, timer: Timer) -> None:
        """Accept connections on all listeners."""
        config = self.config
        served = SERVED[config.level]
        quotas = ConnectionQuotas(
            config.max_connections_per_ip, config.connection_limits, self.runtime.resolve
        )
        for name, listener in self._listeners.items():
            dispatcher = Dispatcher(replace(context, listener=name), served, self._requests)
            self._dispatchers.append(dispatcher)
            self._socket_servers.append(self._serve(listener, dispatcher, timer, quotas))

    def _serve(
        self, listener: Listener, dispatcher: Dispatcher, timer: Timer, quotas: ConnectionQuotas
    ) -> SocketServer:
        config = self.config
        server = SocketServer(
            self.runtime,
            listener,
            self._requests.handlers(self._around(dispatcher)),
            request_bytes_max=config.socket_request_max_bytes,
            call_later=timer.add,
            quotas=quotas,
            idle_ms=config.connections_max_idle_ms
            if config.connections_max_idle_ms > 0
            else LONG_MAX,
        )
        server.start()
        return server

    def use_around(self) -> None:
        """Make all handlers anew by `around`, which would make others now."""
        for server, dispatcher in zip(self._socket_servers, self._dispatchers, strict=True):
            server.handle_by(self._requests.handlers(self._around(dispatcher)))

    def use_descriptors(self) -> None:
        """Let the logs take the descriptors of their files anew, which would be others now."""
        if self._log_manager is not None:
            for log in self._log_manager.logs.values():
                log.active_segment.use_descriptor()

    def _schedule(self, context: BrokerContext, log_manager: LogManager) -> None:
        """Schedule periodic work. A disk error in it stops the broker."""
        config, replica_manager = self.config, context.replica_manager
        self._every(
            config.replica_high_watermark_checkpoint_interval_ms,
            replica_manager.checkpoint_high_watermarks,
            "highwatermark-checkpoint",
        )
        self._every(
            config.replica_lag_time_max_ms // ISR_CHECKS[config.level],
            replica_manager.shrink_isrs,
            "isr-expiration",
        )
        notifications = replica_manager.isr_change_notifications
        if notifications is not None:
            self._every(ISR_CHANGES_CHECK_MS, notifications.propagate, "isr-change-propagation")
        self._every(DELETED_TOPICS_CHECK_MS, context.deleted_topics.check, "deleted-topics")
        self._every(REFUSED_RETRY_MS, replica_manager.retry_refused, "refused-states")
        self._every(
            config.log_retention_check_interval_ms,
            # Below 0.11 it goes on above the HW.
            partial(log_manager.retain, replica_manager.committed)
            if config.level >= Level.V0_11_0
            else log_manager.retain,
            "kafka-log-retention",
            delay=INITIAL_TASK_DELAY_S,
        )
        if config.level >= Level.V0_11_0:
            self._every(
                config.log_flush_start_offset_checkpoint_interval_ms,
                context.record_deletions.checkpoint,
                "kafka-log-start-offset-checkpoint",
                delay=INITIAL_TASK_DELAY_S,
            )
            self._every(
                PRODUCERS_CHECK_MS,
                partial(log_manager.expire_producers, config.transactional_id_expiration_ms),
                "producer-expiration",
            )
        self._every(
            config.log_flush_scheduler_interval_ms,
            log_manager.flush_dirty,
            "kafka-log-flusher",
            delay=INITIAL_TASK_DELAY_S,
        )
        self._every(
            config.log_flush_offset_checkpoint_interval_ms,
            log_manager.checkpoint_recovery_points,
            "kafka-recovery-point-checkpoint",
            delay=INITIAL_TASK_DELAY_S,
        )

    def _every(
        self, interval_ms: int, call: Callable[[], object], name: str, delay: float | None = None
    ) -> None:
        if interval_ms >= LONG_MAX:
            return  # never

        self._scheduled.append(self.runtime.every(interval_ms / 1000, call, name=name, first=delay))

    # Metrics

    def families(self) -> Iterator[Family]:
        """The current metrics of all parts. Switches between partitions."""
        yield from of_state(self._current_state())
        if self._event_loop_monitor is not None:
            yield from of_event_loop(self._event_loop_monitor)
        if self._zk is not None:
            yield from of_session(self._zk)
        if not self._started or self._stopping:
            return
        assert self._replica_manager is not None
        assert self._controller is not None
        assert self._fetchers is not None
        assert self._cleaner is not None
        yield from self._requests.families()
        yield from of_connections(self._socket_servers)
        pauses = Pauses(lambda: self.runtime.sleep(0))
        yield from of_controller(self._controller, pauses)
        if self._group_coordinator is not None and self._offset_manager is not None:
            yield from group_metrics(self._group_coordinator, self._offset_manager)
        if self._transactions is not None:
            yield from of_transactions(self._transactions)
        yield from of_fetchers(self._fetchers, pauses)
        yield from cleaner_metrics(self._cleaner.cleaner)
        yield from of_replicas(self._replica_manager, pauses)

    def _current_state(self) -> BrokerState:
        if self._state is BrokerState.RUNNING and self.config.level < Level.V0_10_2:
            assert self._controller is not None
            if self._controller.is_active:
                return BrokerState.RUNNING_AS_CONTROLLER
        return self._state

    # Stop

    def shutdown(self) -> None:
        """Stop in the order of 0.8.2.2, whichever parts were started. Switches. Never raises:
        errors are logged, and the next part is stopped."""
        if self._stopping:
            self._stopped.wait()
            return
        self._stopping = True
        self._log("shutting down")
        if self._missed_restart is not None:
            # While it is away the broker must not register again, and get leaderships.
            self._log_errors_of(self._missed_restart.stop)
        if self._fetchers is not None:
            # At first: a leader that is followed from now on would return this broker to ISRs.
            self._fetchers.begin_shutdown()
        if self._started and self.config.controlled_shutdown_enable:
            self._state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._log_errors_of(self._controlled_shutdown)
        self._state = BrokerState.SHUTTING_DOWN
        if self._registration is not None:
            self._log_errors_of(self._registration.stop)
        if self._unconfirmed_leaderships is not None:
            self._log_errors_of(self._unconfirmed_leaderships.stop)
        for server in self._socket_servers:
            self._log_errors_of(server.stop)
        # Bound but not served: the start failed in between.
        for listener in list(self._listeners.values())[len(self._socket_servers) :]:
            self._log_errors_of(listener.close)
        if self._group_coordinator is not None:
            self._log_errors_of(self._group_coordinator.shutdown)
        if self._transactions is not None:
            self._log_errors_of(self._transactions.shutdown)
        if self._marker_sender is not None:
            self._log_errors_of(self._marker_sender.shutdown)
        if self._offset_manager is not None:
            self._log_errors_of(self._offset_manager.shutdown)
        if self._config_changes is not None:
            self._log_errors_of(self._config_changes.stop)
        for task in self._scheduled:
            self._log_errors_of(task.kill)
        if self._cleaner is not None:
            self._log_errors_of(self._cleaner.stop)
        if self._event_loop_monitor is not None:
            self._log_errors_of(self._event_loop_monitor.stop)
        if self._fetchers is not None:
            self._log_errors_of(self._fetchers.shutdown)
        if self._replica_manager is not None:
            self._log_errors_of(self._replica_manager.shutdown)
        if self._former_session is not None:
            self._log_errors_of(self._former_session.forget)  # while the directory is locked
        if self._log_manager is not None:
            self._log_errors_of(self._log_manager.shutdown)
        if self._controller is not None:
            self._log_errors_of(self._controller.shutdown)
        if self._zk is not None:
            self._log_errors_of(self._zk.close)
        self._log("shut down completed")
        self._stopped.set()

    def await_shutdown(self) -> None:
        """Wait until shutdown is complete."""
        self._stopped.wait()

    def _controlled_shutdown(self) -> None:
        assert self.store is not None
        request_controlled_shutdown(self.config, self.runtime, self.store)

    def _log_errors_of(self, stop: Callable[[], object]) -> None:
        try:
            stop()
        except Exception:
            logger.warning("%serror while shutting down", self._ident, exc_info=True)

    @property
    def _ident(self) -> str:
        return f"[Kafka Server {self.config.broker_id}], "

    def _log(self, text: str) -> None:
        logger.info("%s%s", self._ident, text)


def broker_at(broker_id: int, endpoint: Endpoint) -> Broker:
    """The address of a broker for 0.8."""
    assert endpoint.host, f"{endpoint} has no host"
    return Broker(broker_id, endpoint.host, endpoint.port)
