"""EmbeddedCluster: ZooKeeper and several broker processes on this machine, by one call.

    with EmbeddedCluster(brokers=3) as cluster:
        admin = AdminClient(zookeeper=cluster.zookeeper.connect_string)

For tests, the demo and `kafka08 up`. However this process ends, its child processes end too
(guard.py).

Each fault is one line; `heal` undoes all of them:

    cluster.kill(cluster.leader_of("t", 0))
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from kafka08.admin.client import AdminClient
from kafka08.embedded.broker import ALL_INTERFACES, PROPERTIES, EmbeddedBroker
from kafka08.embedded.cluster_config import cluster_config, kept_level
from kafka08.embedded.damage import corrupt_tail
from kafka08.embedded.directories import make_directory, make_temporary, temporary_path
from kafka08.embedded.elections import ended_elections, held_elections
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.fork_server import warm
from kafka08.embedded.guard import Guard
from kafka08.embedded.kept_session import KeptSession
from kafka08.embedded.lacking import says_what_lacks
from kafka08.embedded.ports import check_ports, free_ports, is_free, kept_port
from kafka08.embedded.process import ManagedProcess
from kafka08.embedded.relay import LinkSpec, Relay
from kafka08.embedded.reset import delete_all
from kafka08.embedded.story import Doings, logged, told
from kafka08.embedded.waits import Waits, connection_to, metadata
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.embedded.zookeeper_process import ZooKeeperProcess
from kafka08.errors import ConfigError, KafkaError
from kafka08.levels import Level
from kafka08.lifecycle import Startable, end_dropped, warn_unclosed
from kafka08.listing import some_of
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition, host_port
from kafka08.zk import paths
from kafka08.zk.faults import end_session
from kafka08.zk.store import ClusterStore, reachable

if TYPE_CHECKING:
    from kafka08.embedded.fault_rules import FaultRule, FaultRules

logger = logging.getLogger(__name__)

START_S = 60.0
TOPIC_S = 20.0
RESET_S = 20.0
LED_S = 5.0
PORT_ATTEMPTS = 4
_POLL_S = 0.005

ZooKeeperKind: TypeAlias = Literal["embedded", "java"]
ZOOKEEPERS: Final = get_args(ZooKeeperKind)


class EmbeddedCluster(Startable):
    """ZooKeeper and `brokers` brokers with ids 0, 1, … on 127.0.0.1.

    config      Kafka keys for every broker. With host.name=0.0.0.0 and advertised.host.name clients
                on other machines reach the brokers, though not ZooKeeper. ConfigError for listeners
                and advertised.listeners, which have the port of one broker
    level       the release whose protocol they speak: 0.8.2, 0.9.0, 0.10.2 or 0.11.0; the same as
                `api.level` in `config`. None: that of the data in `data_dir`, or else 0.11.0.
                ConfigError for another one, and for one below that of the data
    data_dir    a directory to keep, which a later cluster may use again, at the same addresses if
                they are free; None: a temporary one, removed at stop. ConfigError for a path with a
                comma, which separates log.dirs, or that is not UTF-8
    zookeeper   "embedded": our own ZooKeeper server (`EmbeddedZooKeeper`), which needs no Java and
                never syncs to disk; "java": Apache's (`ZooKeeperServer`), for data that must last.
                None: that whose data is in `data_dir`; where there is none, "java" in a given
                `data_dir`, else "embedded". ConfigError for a directory with the other one's data
    ports       preferred ports of ZooKeeper and then of each broker; where one is taken or missing
                in the list, or is 0, a free one is chosen. ConfigError for what is no port
    cuttable    put a relay in front of every broker and of ZooKeeper, so that `cut` works. It costs
                some tens of microseconds per request and a copy of every byte. ConfigError with
                host.name or advertised.host.name, since clients must reach the relay

    One that the program drops is stopped, after a ResourceWarning.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, Any] | None = None,
        data_dir: Path | str | None = None,
        *,
        level: str | None = None,
        zookeeper: ZooKeeperKind | None = None,
        ports: Sequence[int] = (),
        cuttable: bool = False,
    ) -> None:
        if zookeeper not in (None, *ZOOKEEPERS):
            raise ConfigError(f"zookeeper: {zookeeper!r} is not one of {', '.join(ZOOKEEPERS)}")
        check_ports(ports)
        self._temporary = data_dir is None
        self._config = cluster_config(
            *(brokers, config or {}, level),
            kept=None if data_dir is None else kept_level(Path(data_dir)),
            cuttable=cuttable,
            is_temporary=self._temporary,
        )
        self.data_dir = _directory(data_dir)
        self._count = brokers
        self._guard = self._make_guard()
        self._ports = list(ports)
        self.zookeeper = self._make_zookeeper(zookeeper)
        self.session = KeptSession(self.zookeeper)
        """For what the cluster asks of ZooKeeper itself."""
        self.brokers: list[EmbeddedBroker] = []
        self._cuttable = cuttable
        self._relay: Relay | None = None
        self._cut: set[int] = set()
        self._session_ended = False
        self._faults: FaultRules | None = None
        # Not a method of this object: brokers would keep a dropped cluster alive.
        self._doings = Doings()
        self._note = self._doings.note

    def _make_guard(self) -> Guard:
        """The guard first, and then the temporary directory that it would remove."""
        with says_what_lacks():
            guard = Guard(self.data_dir if self._temporary else None)
            if self._temporary:
                make_temporary(self.data_dir)
        return guard

    def _make_zookeeper(self, kind: ZooKeeperKind | None) -> ZooKeeperProcess:
        directory = self.data_dir / "zookeeper"
        port = self._ports[0] if self._ports else 0
        if kind is None:
            kind = choose_zookeeper(self.data_dir, is_to_last=not self._temporary)
        if kind == "embedded":
            return EmbeddedZooKeeper(directory, preferred_port=port, guard=self._guard)
        return ZooKeeperServer(
            directory, preferred_port=port, durable=not self._temporary, guard=self._guard
        )

    @property
    def guard(self) -> Guard:
        """The guard, for further processes that work in `data_dir`: without it they outlive a kill
        -9 of this process, and fill the removed directory again."""
        return self._guard

    @property
    def _faults_directory(self) -> Path:
        return self.data_dir / "faults"

    @property
    def _ports_host(self) -> str:
        """The host on which a broker's port must be free."""
        everywhere = self._config.get("host.name") in ALL_INTERFACES
        return "0.0.0.0" if everywhere else self.zookeeper.host

    @property
    def level(self) -> str:
        """The release whose protocol its brokers speak, such as 0.11.0."""
        return self._config["api.level"]

    @property
    def bootstrap(self) -> str:
        """`host:port,host:port` of all brokers, for metadata.broker.list."""
        return ",".join(host_port(broker.host, broker.port) for broker in self.brokers)

    @property
    def processes(self) -> list[ManagedProcess]:
        """Brokers first, then ZooKeeper."""
        return [*(broker.process for broker in self.brokers), self.zookeeper.process]

    @says_what_lacks()
    def start(self) -> None:
        """Start all processes and wait until the cluster is ready (`await_ready`).

        KafkaError, with the end of the log of the process that failed.
        """
        warm()
        # Those of a cluster that was killed are not this one's.
        shutil.rmtree(self._faults_directory, ignore_errors=True)
        make_directory(self._faults_directory)
        self.zookeeper.start()
        with ExitStack() as held:
            if any(self._properties(number).parent.exists() for number in range(self._count)):
                held.enter_context(self._elections_held())
            self._start_brokers()
            self._await_first_registration()
        self.await_ready()

    @contextmanager
    def _elections_held(self) -> Iterator[None]:
        """Around the start of brokers that have data, until they are registered: no leader is
        elected meanwhile. If one cannot start, the others stop before they elect without it."""
        with held_elections(self.zookeeper.connect_string):
            try:
                yield
            except BaseException:
                self._stop_brokers()
                raise

    def _properties(self, number: int) -> Path:
        return self.data_dir / f"broker-{number}" / PROPERTIES

    def _start_again(self) -> None:
        """Start all brokers, none of which runs."""
        with self._elections_held():
            for broker in self.brokers:
                broker.start()
            self._await_registration(self.brokers)

    def _await_first_registration(self) -> None:
        """Wait until the brokers are registered, again with other ports if another process has
        taken one meanwhile."""
        for _ in range(PORT_ATTEMPTS - 1):
            try:
                self._await_registration(self.brokers)
                return
            except KafkaError:
                if all(b.running or is_free(self._ports_host, b.listen_port) for b in self.brokers):
                    raise
            logger.warning("a broker's port was taken; starting the brokers again")
            for broker in self.brokers:
                self.kill(broker)
            self._start_brokers()
        self._await_registration(self.brokers)

    def _await_registration(self, brokers: Sequence[EmbeddedBroker]) -> None:
        store = ClusterStore(self.session.client())
        deadline = time.monotonic() + START_S
        self._await(lambda: self._registered(store, brokers), brokers, deadline)

    def _start_brokers(self) -> None:
        host = self.zookeeper.host
        fresh = free_ports(2 * self._count, self._ports_host)
        ports = [self._wanted_port(number) or fresh.pop() for number in range(self._count)]
        listen_ports = list(ports)
        zookeeper_port = self.zookeeper.port
        if self._cuttable:
            listen_ports = [fresh.pop() for _ in ports]
            zookeeper_port, *ports = self._start_relay(ports, listen_ports)
        self.brokers = [
            EmbeddedBroker(
                number,
                port,
                listen_port=listen_port,
                host=host,
                directory=self.data_dir / f"broker-{number}",
                zookeeper_connect=host_port(host, zookeeper_port),
                config=self._config,
                guard=self._guard,
                faults=self._faults_directory,
                note=self._note,
            )
            for number, (port, listen_port) in enumerate(zip(ports, listen_ports, strict=True))
        ]
        if self._faults is not None:
            self._faults.running = self.brokers
        for broker in self.brokers:
            broker.start()

    def _start_relay(self, ports: Sequence[int], listen_ports: Sequence[int]) -> list[int]:
        """Open links to ZooKeeper (for brokers alone) and to each broker; returns their ports."""
        host = self.zookeeper.host
        self._stop_relay()
        self._relay = Relay(
            [
                LinkSpec("zookeeper", host, 0, self.zookeeper.port),
                *(
                    LinkSpec(f"broker-{number}", host, port, listen_port)
                    for number, (port, listen_port) in enumerate(
                        zip(ports, listen_ports, strict=True)
                    )
                ),
            ]
        )
        return self._relay.ports

    def _stop_relay(self) -> None:
        if self._relay is not None:
            self._relay.stop()
        self._relay = None
        self._cut.clear()

    def _wanted_port(self, number: int) -> int | None:
        """The port of this broker in an earlier cluster on the same directory, else the preferred
        one, if it is free.

        After a crash its znode may still exist, and only a broker with the same address may take it
        over.
        """
        preferred = self._ports[number + 1 : number + 2]
        return kept_port(self._properties(number), "advertised.port", preferred, self._ports_host)

    def await_ready(self, brokers: Sequence[EmbeddedBroker] | None = None) -> None:
        """Wait until the brokers (None: all that were started) are registered, a controller is
        active, and each broker answers and is in its own metadata. KafkaError if one ends, or after
        START_S."""
        waited = [b for b in self.brokers if b.expected_running] if brokers is None else brokers
        if not waited:
            return
        deadline = time.monotonic() + START_S
        self._await_registration(waited)
        store = ClusterStore(self.session.client())
        self._await(lambda: store.controller() is not None, waited, deadline)
        has_topics = bool(store.topics())
        for broker in waited:
            # 0.8: a broker gets the list of brokers when it starts, but not before there is a
            # partition; it learns of a broker that starts later with the next partition change.
            expected = {(broker.id, broker.port)} if has_topics else set()
            self._await(partial(_knows, broker, expected), waited, deadline)

    def stop(self) -> None:
        """Stop brokers cleanly, then ZooKeeper, and remove temporary data. Harmless twice.

        Leaders and ISRs of kept data stay as they are: see `ended_elections`."""
        several = sum(broker.running for broker in self.brokers) > 1
        if self._zookeeper_responds():
            self.session.close()
        with ExitStack() as held:
            if several and not self._temporary and self._zookeeper_responds():
                held.enter_context(ended_elections(self.zookeeper.connect_string))
            self._stop_brokers()
        self.zookeeper.stop()
        self.session.close()
        self._stop_relay()
        if self._faults is not None:
            self._faults.close()
        self._guard.close()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _drop(self) -> None:
        is_whole = hasattr(self, "brokers")  # False after a refused argument
        if is_whole and (self.zookeeper.running or any(one.running for one in self.brokers)):
            end_dropped(self.stop)
            warn_unclosed(self)

    def _zookeeper_responds(self) -> bool:
        return self.zookeeper.running and not self.zookeeper.process.is_paused

    def _stop_brokers(self) -> None:
        if self._temporary:  # nothing of them stays
            for broker in self.brokers:
                broker.kill()
            return
        for broker in self.brokers:
            broker.begin_stop()
        for broker in self.brokers:
            broker.stop()

    def restart(self, broker: EmbeddedBroker | int) -> None:
        """Stop one broker cleanly (if it runs), start it again, and wait until it is ready. The
        other ones need not run."""
        broker = self.find(broker)
        broker.stop()
        broker.start()
        self.await_ready([broker])

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a topic and wait until every running broker knows its leaders, so that clients can
        use it at once."""
        admin = AdminClient(zk=self.session.client())
        created = admin.create_topic(name, partitions, replication_factor, config)
        self.wait.topic(name, TOPIC_S, partitions=len(created))

    @property
    def faults(self) -> FaultRules:
        """Rules that break requests: `cluster.faults.add("Fetch", topic="t", delay_ms=500)`
        (fault_rules.py)."""
        if self._faults is None:
            # Not at the top: most tests need none of its imports.
            from kafka08.embedded.fault_rules import FaultRules

            ids = range(self._count)
            level = Level.named(self.level)
            self._faults = FaultRules(self._faults_directory, level, ids, self._note)
            self._faults.running = self.brokers
        return self._faults

    def story(self, since: Mapping[Path, int], lines: int) -> str:
        """All that was done to the cluster, what rules hit, and the last lines of each log after
        its size in `since`, in one order of time."""
        events = [*self._doings.events, *([] if self._faults is None else self._faults.story())]
        for process in self.processes:
            said = process.logged_since(since.get(process.log, 0), lines)
            events += logged(process.name, said)
        return told(events, 3 * lines)

    def unused_rules(self) -> list[FaultRule]:
        """The fault rules of the present story that never hit a request."""
        return [] if self._faults is None else self._faults.unused()

    def begin_story(self) -> None:
        """Forget what was done so far."""
        self._doings.events.clear()

    @property
    def wait(self) -> Waits:
        """Waits for states: `cluster.wait.leader("t", other_than=1)` (waits.py)."""
        return Waits(self)

    def leader_of(self, topic: str, partition: int = 0) -> EmbeddedBroker:
        """The broker that leads the partition. KafkaError without a leader."""
        return self.brokers[self._state(topic, partition).leader]

    def followers_of(self, topic: str, partition: int = 0) -> list[EmbeddedBroker]:
        """The brokers in the partition's ISR except the leader, in the order of the ISR."""
        state = self._state(topic, partition)
        return [self.brokers[number] for number in state.isr if number != state.leader]

    def kill(self, broker: EmbeddedBroker | int, *, expire: bool = True) -> None:
        """SIGKILL. `expire`: also end its ZooKeeper session, so that the cluster notices now and
        not after zookeeper.session.timeout.ms."""
        broker = self.find(broker)
        broker.kill()
        if expire:
            self.expire_session(broker)

    def pause(self, broker: EmbeddedBroker | int) -> None:
        """SIGSTOP: its connections stay open, but it does not respond until `resume`."""
        self.find(broker).pause()

    def resume(self, broker: EmbeddedBroker | int) -> None:
        self.find(broker).resume()

    def expire_session(self, broker: EmbeddedBroker | int) -> None:
        """Expire the broker's ZooKeeper session on the server. Its znodes go at once; it registers
        again if it runs. No effect if it is not registered."""
        broker = self.find(broker)
        registration = self.session.client().stat(paths.broker(broker.id))
        if registration is not None:
            self._note(f"expires the session of broker {broker.id}")
            self._session_ended = True
            end_session(self.zookeeper.connect_string, registration.ephemeral_owner)

    def corrupt_tail(
        self, broker: EmbeddedBroker | int, topic: str, partition: int = 0, size: int = 16
    ) -> Path:
        """Flip all bits in the last `size` bytes of the broker's newest segment of the partition;
        returns the file. A killed broker finds the damage at its start; a running one serves it."""
        broker = self.find(broker)
        self._note(f"corrupts [{topic},{partition}] on broker {broker.id}")
        return corrupt_tail(broker.partition_directory(topic, partition), size)

    def break_disk(self, broker: EmbeddedBroker | int, **fault: Any) -> None:
        """Let the broker's disk fail until `repair_disk`: full=True, failing_fsync=True, or
        delay_ms=20 for each write (`kafka08.faults.disk.DiskFault`). A broker that meets one of the
        first two halts, which is no failure of the cluster until it is started again. ConfigError.
        """
        broker = self.find(broker)
        if self.faults.break_disk(broker.id, **fault).is_fatal:
            broker.may_halt = True

    def repair_disk(self, broker: EmbeddedBroker | int) -> None:
        """Undo `break_disk`."""
        self.faults.repair_disk(self.find(broker).id)

    def cut(self, broker: EmbeddedBroker | int) -> None:
        """Cut the broker's network: to clients, other brokers and ZooKeeper, until `restore`.

        No connection is closed and no byte is lost: bytes in flight wait, as in a network that
        retransmits packets. Needs cuttable=True, and Linux for connections that the broker opens.
        """
        if self._relay is None:
            raise KafkaError(
                "cut needs a cluster that was created with cuttable=True (kafka08 up --cuttable)"
            )
        broker = self.find(broker)
        self._note(f"cuts broker {broker.id}")
        self._cut.add(broker.id)
        self._apply_cuts()

    def restore(self, broker: EmbeddedBroker | int) -> None:
        """Undo `cut`."""
        if self._cut:
            broker = self.find(broker)
            self._note(f"restores broker {broker.id}")
            self._cut.discard(broker.id)
            self._apply_cuts()

    def reset_connections(self, broker: EmbeddedBroker | int) -> None:
        """Reset every connection that others have to the broker, as a firewall does that forgot
        them: bytes in flight are lost, both sides see an error, and may connect again at once.
        Needs cuttable=True."""
        if self._relay is None:
            raise KafkaError("reset_connections needs a cluster with cuttable=True")
        broker = self.find(broker)
        self._note(f"resets the connections of broker {broker.id}")
        self._relay.reset([f"broker-{broker.id}"])

    def heal(self) -> None:
        """Undo every fault except damaged files: remove rules, repair disks, restore networks,
        resume paused brokers, start stopped ones, and wait until all are registered and ready, and
        no partition waits for its leader. Fast if there is no fault."""
        if self._faults is not None:
            self._faults.clear()
        faulty = bool(self._cut) or self._session_ended
        if self._cut:
            self._cut.clear()
            self._apply_cuts()
        zookeeper = self.zookeeper.process
        if zookeeper.is_paused or not zookeeper.running:
            faulty = True
            # Resumed before, ZooKeeper would expire the sessions that it could not hear a moment
            # later; started now, it gives each its whole timeout.
            zookeeper.kill()
            self.zookeeper.restart()
        if self.brokers and not any(broker.running for broker in self.brokers):
            faulty = True
            self._start_again()
        for broker in self.brokers:
            faulty = faulty or broker.is_paused or not broker.running
            if broker.is_paused:
                broker.resume()
            if not broker.running:
                broker.start()
        if faulty:
            self.await_ready()
            self._session_ended = False
            with suppress(KafkaError):  # a test may have damaged a topic so that none can lead it
                self.wait.led(LED_S)

    def reset(self) -> None:
        """Make the cluster as new: heal it, and delete all topics, groups, offsets and overrides.
        Brokers keep running, with their log files. KafkaError if topics are not gone in time."""
        if self._config["delete.topic.enable"].lower() != "true":
            raise ConfigError("delete.topic.enable: a reset needs true, the default of the cluster")
        self.heal()
        deadline = time.monotonic() + RESET_S

        def pause(left: list[str]) -> None:
            self.check_alive()
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"not deleted after {RESET_S:.0f} s: {some_of(left)}. See the log of the "
                    "controller"
                )
            time.sleep(_POLL_S)

        delete_all(self.session.client(), pause)

    def find(self, broker: EmbeddedBroker | int) -> EmbeddedBroker:
        """The broker, which may be given by its id. KafkaError if there is none of that id."""
        if isinstance(broker, EmbeddedBroker):
            return broker
        for known in self.brokers:
            if known.id == broker:
                return known
        ids = ", ".join(str(known.id) for known in self.brokers)
        raise KafkaError(f"there is no broker {broker!r}; the cluster has: {ids or 'none yet'}")

    def _state(self, topic: str, partition: int) -> LeaderAndIsr:
        tp = TopicPartition(topic, partition)
        state = ClusterStore(self.session.client()).leader_and_isr([tp]).get(tp)
        if state is None or state.leader == NO_LEADER:
            raise KafkaError(f"{tp} has no leader")
        return state

    def _apply_cuts(self) -> None:
        assert self._relay is not None, "cuts need a relay"
        cut = [self.brokers[number] for number in sorted(self._cut)]
        self._relay.cut([(f"broker-{broker.id}", broker.process.pid or 0) for broker in cut])

    def check_alive(self) -> None:
        """KafkaError, with the end of its log, for a process that ended unexpectedly."""
        self.zookeeper.check_alive()
        for broker in self.brokers:
            broker.check_alive()

    def _registered(self, store: ClusterStore, wanted: Sequence[EmbeddedBroker]) -> bool:
        registrations = store.registrations()
        ports = {broker.id: broker.port for broker in reachable(registrations).values()}
        return all(
            ports.get(broker.id) == broker.port
            # After kill -9 the former znode stays until its session ends.
            and registrations[broker.id].timestamp_ms >= broker.started_ms
            for broker in wanted
        )

    def _await(
        self, condition: Callable[[], bool], brokers: Sequence[EmbeddedBroker], deadline: float
    ) -> None:
        """Wait for a condition while these brokers start."""
        while not condition():
            self.zookeeper.check_alive()
            for broker in brokers:
                broker.check_alive()
            if time.monotonic() > deadline:
                late = [b for b in brokers if not b.accepts_connections()] or list(brokers)
                reports = "\n\n".join(b.process.describe_failure() for b in late)
                raise KafkaError(f"the cluster is not ready after {START_S:.0f} s\n{reports}")
            time.sleep(_POLL_S)


def choose_zookeeper(data_dir: Path, *, is_to_last: bool) -> ZooKeeperKind:
    """The kind whose data is in a cluster's directory; where there is none, "java" for data that is
    to last, else "embedded"."""
    directory = data_dir / "zookeeper"
    if EmbeddedZooKeeper.has_data_in(directory):
        return "embedded"
    return "java" if is_to_last or ZooKeeperServer.has_data_in(directory) else "embedded"


def _directory(data_dir: Path | str | None) -> Path:
    """The absolute directory; a new path for None. ConfigError for one with a comma."""
    directory = Path(data_dir).absolute() if data_dir else temporary_path("kafka08-cluster-")
    if "," in str(directory):
        raise ConfigError(
            f"data_dir: {str(directory)!r}: a comma separates directories in log.dirs. Use a "
            "directory without one"
        )
    return directory


def _knows(broker: EmbeddedBroker, expected: set[tuple[int, int]]) -> bool:
    """Whether this broker responds, with the `expected` ids and ports in its list of brokers."""
    with connection_to(broker) as connection:
        known = metadata(connection)
    if known is None:
        return False
    return expected <= {(other.broker_id, other.port) for other in known.brokers}
