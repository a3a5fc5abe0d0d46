"""Term: one term of this broker as controller, from election to resignation.

It owns the context, the channels to brokers, and the watches. Its methods run in the controller's
greenlet, one at a time. Each starts by reading again (with a new watch) what may have changed,
because events may arrive late, merged or twice. A new term starts from ZooKeeper alone. Source:
kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from kafka08.broker.controller.broker_channel import ChannelManager
from kafka08.broker.controller.cluster_changes import ClusterChanges
from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leader_balance import imbalanced
from kafka08.broker.controller.leadership import Leadership
from kafka08.broker.controller.propagation import propagation_of
from kafka08.broker.controller.reassignment import Reassignments
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.broker.controller.request_batch import BrokerRequest, RequestBatch
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.broker.controller.state_changes import StateChanges
from kafka08.broker.controller.topic_deletion import RETRY_S, Awaited, TopicDeletion
from kafka08.broker.controller.unclean_elections import TopicUncleanElections
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import NoNode, ZooKeeperError
from kafka08.levels import Level
from kafka08.protocol.stop_replica import StopReplicaResponse
from kafka08.protocol.update_metadata import LiveBroker
from kafka08.runtime import BrokerRuntime, Cancellable
from kafka08.runtime.yielding import yielding
from kafka08.structs import Broker, TopicPartition
from kafka08.topic_name import fault_of
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Get, Node, WatchCallback, Watcher
from kafka08.zk.store import ClusterStore, reachable

logger = logging.getLogger(__name__)

T = TypeVar("T")

Assignment = dict[TopicPartition, tuple[int, ...]]
"""partition → its replicas, the preferred one first."""

FIRST_BALANCE_S: Final = 5.0
"""The delay between the start of a term and the first leader rebalance."""

Post = Callable[[str, Callable[[], None]], None]
"""Queues an event under a name, unless one of the same name is waiting."""


class Term:
    """An active controller.

    epoch               the controller epoch of this term, written before it began
    post                queues an event for the controller's greenlet
    on_znode_change     the callback of every watch: it must not refer to this term, since a watch
                        that never fires stays for as long as the session. It calls `znode_changed`
    ready               whether `begin` has initialized the cluster's state
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        config: BrokerConfig,
        store: ClusterStore,
        *,
        epoch: int,
        epoch_zk_version: int,
        post: Post,
        on_znode_change: WatchCallback,
    ) -> None:
        self.context = ControllerContext(
            epoch=epoch, epoch_zk_version=epoch_zk_version, propagation=propagation_of(config)
        )
        self._config = config
        self._store = store
        self._zk = store.zk
        self._post = post
        self._on_znode_change = on_znode_change
        self.ready = False
        self._closed = False
        self._changed_states: set[TopicPartition] = set()
        self._moved_away: set[PartitionReplica] = set()
        self._stopped: list[tuple[Awaited, PartitionReplica, StopReplicaResponse]] = []
        self._early_deletions: set[str] = set()
        """Topics with a request to delete them whose creation was not handled yet."""
        self._registrations: dict[int, nodes.BrokerRegistration] = {}
        self._correlation_id = 0
        self._runtime = runtime
        self._timers: dict[str, Cancellable] = {}
        """The next event of each name that a timer posts."""
        self._channels = ChannelManager(
            runtime,
            controller_id=config.broker_id,
            client_id=client_id(config),
            timeout_ms=config.controller_socket_timeout_ms,
            protocol=config.protocol_version,
            on_response=self._on_response,
        )
        self._in_turns = partial(yielding, runtime=runtime)
        self._leadership = Leadership(store, epoch_zk_version, self._in_turns)
        changes = StateChanges(
            self.context,
            self._leadership,
            TopicUncleanElections(store, default=config.unclean_leader_election_enable),
            self._send,
            controller_id=config.broker_id,
            in_turns=self._in_turns,
        )
        self._requests = RequestZnodes(store, epoch_zk_version, on_znode_change)
        self._deletion = TopicDeletion(
            self.context,
            changes,
            on_stopped=self._on_stopped,
            remove=self._requests.remove_topic,
            on_refused=partial(
                self._post_after, RETRY_S, "refused deletions", self.refused_deletions
            ),
        )
        self._changes = ClusterChanges(
            self.context,
            changes,
            self._deletion,
            self._in_turns,
            in_assignment_order=config.level >= Level.V0_10_2,
        )
        self._reassignments = Reassignments(
            self.context,
            changes,
            self._deletion,
            self._requests,
            self._on_moved_away,
            in_turns=self._in_turns,
        )

    def begin(self) -> None:
        """Read the whole cluster, in few bursts, and initialize its state."""
        context = self.context
        found = self._read_assignments(self._watch_topics())
        context.topics = set(found)
        context.assignments.update(merged(found))
        context.leadership = self._leadership.read_states(context.assignments)
        self._leadership.check_still_controller(context.leadership, context.epoch)
        self._registrations = self._read_registrations()
        context.brokers = self._reachable(self._registrations)
        context.listed = listed(self._registrations, context.brokers)
        for broker in context.brokers.values():
            self._channels.add(broker)
        if self._config.delete_topic_enable:
            context.topics_to_delete = context.topics.intersection(self._watch_deletions())
        context.history.add(f"began: {context}")
        self._changes.take_over()
        logger.info(
            "Broker %d is ready to serve as the new controller: %s", self._config.broker_id, context
        )
        if self._config.delete_topic_enable or self._config.level >= Level.V0_10_2:
            self.deletions_changed()
        self.reassignments_changed()
        self.elections_changed()
        if context.propagation.isr_changes:
            self.isrs_changed()
        if self._config.auto_leader_rebalance_enable:
            self._post_after(FIRST_BALANCE_S, "leader balance", self.balance_leaders)
        self.ready = True

    def close(self) -> None:
        """End the term: nothing more is sent, and later events are ignored. Never switches."""
        self._closed = True
        self._channels.close()
        for timer in self._timers.values():
            timer.cancel()

    # Events

    def brokers_changed(self) -> None:
        """Compare /brokers/ids with the context. A broker that registered again (it returned before
        its absence was noticed, which 0.8.2.2 misses) has both left and joined."""
        before, now = self._registrations, self._read_registrations()
        left = [i for i in before if before[i] != now.get(i)]
        joined = self._reachable({i: r for i, r in now.items() if before.get(i) != r})
        self._registrations = now
        # First what left: a broker that registered again gets a new channel and all states anew.
        if left:
            logger.info("Deleted brokers: %s, all live brokers: %s", left, sorted(now))
            for broker_id in left:
                self.context.brokers.pop(broker_id, None)
                self.context.listed.pop(broker_id, None)
                self._channels.remove(broker_id)
            self._changes.brokers_failed(left)
            self._reassignments.brokers_failed(left)
        if joined:
            logger.info(
                "Newly added brokers: %s, all live brokers: %s", sorted(joined), sorted(now)
            )
            self.context.listed.update(listed(now, joined))
            for broker in joined.values():
                self.context.brokers[broker.id] = broker
                self._channels.add(broker)
            self._changes.brokers_joined(joined.keys())
            self._reassignments.brokers_joined(joined.keys())

    def topics_changed(self) -> None:
        """Compare /brokers/topics with the context."""
        names = set(self._watch_topics())
        # First what is gone: a topic of the same name may exist again.
        gone = self.context.topics - names | self.context.topics_vanished
        if gone:
            self._reassignments.topics_vanished(gone)
            self._changes.topics_vanished(gone)
        new = self._read_assignments(names - self.context.topics)
        if new:
            assignments = merged(new)
            logger.info("New topics: %s with %d partitions", sorted(new), len(assignments))
            self.context.topics |= new.keys()
            self._changes.topics_created(assignments)
            if not self._early_deletions.isdisjoint(new):
                self.deletions_changed()

    def topic_changed(self, topic: str) -> None:
        """A topic's znode was written: it may have new partitions."""
        if topic not in self.context.topics:
            return
        added = {
            tp: replicas
            for tp, replicas in merged(self._read_assignments([topic])).items()
            if tp not in self.context.assignments
        }
        if added and self.context.is_queued_for_deletion(topic):
            logger.error("Skipping adding partitions for topic %s: it is being deleted", topic)
        elif added:
            logger.info("New partitions of %s: %s", topic, sorted(tp.partition for tp in added))
            self._changes.topics_created(added)

    def deletions_changed(self) -> None:
        """Compare /admin/delete_topics with the queue; removes requests for missing topics. Removes
        all without delete.topic.enable, as 0.10.2.2 does: earlier levels leave and do not watch
        them, and the topics are deleted once it is set."""
        wanted = set(self._watch_deletions())
        if not self._config.delete_topic_enable:
            for topic in sorted(wanted):
                logger.info("Removing %s since delete topic is disabled", paths.delete_topic(topic))
                self._requests.remove_deletion(topic)
            return
        self._early_deletions.clear()
        for topic in sorted(wanted - self.context.topics):
            if self._zk.exists(paths.topic(topic)):
                # The event of its creation is still to come, and calls this again.
                self._early_deletions.add(topic)
                continue
            logger.warning("Ignoring request to delete non-existing topic %s", topic)
            self._requests.remove_deletion(topic)
        new = wanted & self.context.topics - self.context.topics_to_delete
        if new:
            self.context.history.add(f"topics {sorted(new)} are to be deleted")
            self._deletion.enqueue(new)

    def reassignments_changed(self) -> None:
        """Start the requested moves."""
        wanted = self._requests.reassignments()
        if wanted:
            self._reassignments.begin(wanted)

    def states_changed(self) -> None:
        """State znodes of moving partitions were written: handle all since the last event."""
        self._reassignments.isr_changed(take_all(self._changed_states))

    def replicas_moved_away(self) -> None:
        """Brokers have deleted replicas that were moved away: handle all since the last event."""
        self._reassignments.stopped(take_all(self._moved_away))

    def replicas_stopped(self) -> None:
        """Brokers have responded for replicas to delete: handle all since the last event."""
        for stopped in self._in_turns(take_all(self._stopped)):
            self._deletion.replica_stopped(*stopped)

    def refused_deletions(self) -> None:
        """Start the deletions again that a broker or ZooKeeper has refused."""
        self._deletion.resume(())

    def isrs_changed(self) -> None:
        """Leaders have notified us of ISR changes: read these states and inform all brokers.
        Notifications that were read are removed, also unreadable ones."""
        names = self._zk.watch_children(paths.ISR_CHANGES, self._on_znode_change)
        if not names:
            return
        changed = self._requests.isr_changes(names)
        known = sorted(changed & self.context.leadership.keys())
        self._changes.isrs_changed(self._leadership.read_states(known))
        # Last: if this controller dies before, the next one finds them still there.
        self._requests.remove_isr_changes(names)

    def elections_changed(self) -> None:
        """Elect the preferred replicas of the requested partitions, if there is a request."""
        wanted = self._requests.preferred_elections()
        if wanted:
            self._changes.elect_preferred(wanted)
            self._requests.remove_preferred_elections()

    def balance_leaders(self) -> None:
        """Elect preferred replicas where needed, unless partitions are being moved."""
        if not self.context.reassigning:
            wanted = imbalanced(self.context, self._config.leader_imbalance_per_broker_percentage)
            self._changes.elect_preferred(wanted)
        seconds = self._config.leader_imbalance_check_interval_seconds
        self._post_after(seconds, "leader balance", self.balance_leaders)

    def registration(self, broker_id: int) -> nodes.BrokerRegistration | None:
        """The broker's registration as this term last read it in /brokers/ids. Never switches."""
        return self._registrations.get(broker_id)

    def shut_down(self, broker_id: int) -> set[TopicPartition]:
        """See ClusterChanges.shut_down."""
        return self._changes.shut_down(broker_id)

    # Reading, with watches

    def _watch_topics(self) -> list[str]:
        """Names in /brokers/topics, without illegal ones."""
        names = self._zk.watch_children(paths.BROKER_TOPICS, self._on_znode_change)
        faults = {name: fault for name in names if (fault := fault_of(name))}
        for name, fault in faults.items():
            logger.error(
                "%.300s is not a legal topic: %.300s. Delete that znode",
                paths.topic(name),
                fault,
            )
        return [name for name in names if name not in faults]

    def _watch_deletions(self) -> list[str]:
        return self._zk.watch_children(paths.DELETE_TOPICS, self._on_znode_change)

    def _read_registrations(self) -> dict[int, nodes.BrokerRegistration]:
        names = self._zk.watch_children(paths.BROKER_IDS, self._on_znode_change)
        return self._store.registrations(paths.numbers(names))

    def _reachable(
        self, registrations: Mapping[int, nodes.BrokerRegistration]
    ) -> dict[int, Broker]:
        return reachable(registrations, self._config.inter_broker_listener)

    def _read_assignments(self, topics: Iterable[str]) -> dict[str, Assignment]:
        """topic → its assignment, each watched. A topic that is gone is left out: it is new if it
        comes back. An unreadable one is logged, and has no partitions: one bad znode must not stop
        the controller."""
        znodes = {topic: paths.topic(topic) for topic in sorted(topics)}
        reads = [Get(path, Watcher(path, self._on_znode_change)) for path in znodes.values()]
        found: dict[str, Assignment] = {}
        for topic, reply in zip(znodes, self._zk.pipeline(reads), strict=True):
            if isinstance(reply, Node):
                found[topic] = partitions_of_znode(topic, reply.data)
            elif not isinstance(reply, NoNode):
                raise reply
        return found

    def znode_changed(self, path: str) -> None:
        """A watched znode has changed, perhaps one that an earlier term watched. Never switches."""
        acts = {
            paths.BROKER_IDS: self.brokers_changed,
            paths.BROKER_TOPICS: self.topics_changed,
            paths.DELETE_TOPICS: self.deletions_changed,
            paths.REASSIGN_PARTITIONS: self.reassignments_changed,
            paths.PREFERRED_ELECTION: self.elections_changed,
            paths.ISR_CHANGES: self.isrs_changed,
        }
        if path in acts:
            self._post_own(path, acts[path])
            return
        # `/brokers/topics/<t>`, or `/brokers/topics/<t>/partitions/<p>/state`
        topic, *rest = path.removeprefix(f"{paths.BROKER_TOPICS}/").split("/")
        if rest:
            self._changed_states.add(TopicPartition(topic, int(rest[1])))
            self._post_own("partition states", self.states_changed)
        else:
            self._post_own(path, lambda: self.topic_changed(topic))

    def _post_own(self, name: str, act: Callable[[], None]) -> None:
        """Post an event of this term; it does nothing once the term is over.

        Its name contains the epoch: an event of an earlier term that is still queued, and does
        nothing, must not block one of this term.
        """

        def act_while_controller() -> None:
            if not self._closed:
                act()

        self._post(f"{name} (epoch {self.context.epoch})", act_while_controller)

    def _post_after(self, seconds: float, name: str, act: Callable[[], None]) -> None:
        """Post an event of this term in a while, instead of one of that name which is due later."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self._runtime.call_later(seconds, self._post_own, name, act)

    # Sending

    def _send(self, batch: RequestBatch) -> None:
        requests = batch.requests(self._in_turns)
        if requests:
            self._channels.send(requests, self._correlation_id)
            self._correlation_id += 1

    def _on_response(self, request: BrokerRequest, response: Any) -> None:
        if request.on_stopped is not None and request.replica is not None:
            request.on_stopped(request.replica, response)

    def _on_stopped(
        self, awaited: Awaited, replica: PartitionReplica, response: StopReplicaResponse
    ) -> None:
        self._stopped.append((awaited, replica, response))
        self._post_own("replicas stopped", self.replicas_stopped)

    def _on_moved_away(self, replica: PartitionReplica, _: StopReplicaResponse) -> None:
        self._moved_away.add(replica)
        self._post_own("replicas moved away", self.replicas_moved_away)


def take_all(items: set[T] | list[T]) -> list[T]:
    """Remove and return all items. None is lost if others are added meanwhile."""
    taken = []
    while items:
        taken.append(items.pop())
    return taken


def listed(
    registrations: Mapping[int, nodes.BrokerRegistration], brokers: Iterable[int]
) -> dict[int, LiveBroker]:
    """id → its entry in UpdateMetadata, for the brokers whose listeners can be decoded."""
    found = {}
    for broker_id in brokers:
        registration = registrations[broker_id]
        try:
            listeners = registration.listeners()
        except ZooKeeperError as error:
            logger.error("%s: %s. Only its address is sent", paths.broker(broker_id), error)
        else:
            found[broker_id] = LiveBroker.of(broker_id, listeners, registration.rack)
    return found


def client_id(config: BrokerConfig) -> str:
    """The client id of a 0.8.2.2 controller."""
    host = config.host_name if config.host_name is not None else "null"
    return f"id_{config.broker_id}-host_{host}-port_{config.port}"


def merged(assignments: Mapping[str, Assignment]) -> Assignment:
    """The assignments of several topics as one."""
    return {tp: replicas for topic in assignments.values() for tp, replicas in topic.items()}


def partitions_of_znode(topic: str, text: str | None) -> Assignment:
    """The partitions in a topic's znode; none, with an error in the log, if it is unreadable."""
    try:
        assignment = nodes.decode_assignment(text)
    except ZooKeeperError as error:
        logger.error(
            "%s: %s. The topic has no leaders until you restore its former assignment",
            paths.topic(topic),
            error,
        )
        return {}
    return {TopicPartition(topic, number): replicas for number, replicas in assignment.items()}
