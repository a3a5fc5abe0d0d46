"""AdminClient: creates, lists, describes, alters, moves and deletes topics. Source:
kafka.admin.AdminUtils and the commands beside it, 0.8.2.2.

A method writes to ZooKeeper and returns; the controller does the rest asynchronously. A refused
operation raises AdminError (a bad override ConfigError) and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing

from kafka08.admin.brokers import BrokerDescription, brokers_of, chosen
from kafka08.admin.description import PartitionDescription, TopicDescription
from kafka08.admin.moves import (
    Moves,
    MoveStatus,
    cancelled,
    check_exist,
    check_moves,
    format_moves,
    plan_moves,
    statuses,
)
from kafka08.assignment import (
    NO_RACKS,
    assign_added_partitions,
    assign_replicas,
    check_assignment,
)
from kafka08.client import ClusterClient
from kafka08.client.cluster import PROBE_S
from kafka08.errors import (
    AdminError,
    BadVersion,
    NodeExists,
    NoNode,
    NoSuchTopicOrPartition,
    TopicExists,
    ZooKeeperError,
)
from kafka08.levels import Level
from kafka08.lifecycle import Closeable
from kafka08.listing import some_of
from kafka08.nearest import did_you_mean
from kafka08.profile import topic_overrides
from kafka08.runtime import Runtime
from kafka08.runtime.threads import THREADS
from kafka08.structs import INTERNAL_TOPICS, NO_LEADER, TopicPartition
from kafka08.topic_config import check_names, override_texts, parse_topic_config
from kafka08.topic_name import colliding, deletion_fault_of, fault_of, max_length_at
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create, Delete, Set
from kafka08.zk.store import ClusterStore, newest_of

ZOOKEEPER_TIMEOUT_MS = 10_000
"""For the connection and for the session."""
_POLL_S = 0.02
CONFIG_ROUNDS = 20
"""How often a change of overrides, or of a reassignment, is made again because another tool, or the
controller, was faster."""
_ROUND_S = 0.2

Assignment = Mapping[int, Sequence[int]]


class AdminClient(Closeable):
    """The operations of kafka-topics and of the tools that move partitions and leaders. Give either
    a connect string, for a session of its own, or a started client, which the caller closes. Usable
    in a `with` statement.

    is_patient   as ZkClient's, for a session of its own
    """

    def __init__(
        self,
        zookeeper: str | None = None,
        *,
        zk: ZkClient | None = None,
        is_patient: bool = True,
        runtime: Runtime = THREADS,
    ) -> None:
        if (zookeeper is None) == (zk is None):
            raise TypeError("AdminClient needs either zookeeper=... or zk=...")
        self._own: ZkClient | None = None
        if zookeeper is not None:
            self._own = ZkClient(
                zookeeper,
                session_timeout_ms=ZOOKEEPER_TIMEOUT_MS,
                adapter=runtime.zookeeper,
                name="admin",
                is_patient=is_patient,
                clock=runtime,
            )
            self._own.start()
        client = zk or self._own
        assert client is not None
        self._zk = client
        self._store = ClusterStore(client)
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<AdminClient {self._zk.connect}>"

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, object] | None = None,
        assignment: Assignment | None = None,
        *,
        rack_aware: bool = True,
        dry_run: bool = False,
    ) -> dict[int, tuple[int, ...]]:
        """Create a topic; returns its partition → replicas. AdminError for a name that the newest
        live broker's release does not allow.

        config        overrides, checked by name and value as the newest live broker knows them; in
                      a cluster under the safe profile they are added to that profile's
                      (kafka08.profile)
        assignment    partition → replicas instead of the two counts; its brokers may be down
        rack_aware    spread replicas over the racks of the brokers (broker.rack), if they have any
        dry_run       check everything and change nothing
        """
        overrides = override_texts(config or {})
        registrations, existing, profile = self._store.new_topic_needs()
        level = newest_of(registrations)
        if fault := fault_of(name, max_length_at(level)):
            raise AdminError(fault)
        if overrides:
            parse_topic_config(overrides, level)
        if assignment is not None:
            check_assignment(assignment)
        if name in existing:
            raise TopicExists(f'Topic "{name}" already exists.')
        if level >= Level.V0_9_0 and (others := colliding(name, existing)):
            raise AdminError(
                f'Topic "{name}" collides with existing topics: {", ".join(others)}. Give a name '
                "that differs in more than . and _"
            )
        if assignment is None:
            live = {number: one.rack for number, one in registrations.items()}
            assignment = assign_replicas(
                list(live),
                partitions,
                replication_factor,
                racks=live if rack_aware else NO_RACKS,
                rng=self._runtime.random,
            )
        chosen = {number: tuple(replicas) for number, replicas in sorted(assignment.items())}
        if not dry_run:
            defaults = topic_overrides(profile, len(chosen[0]))
            try:
                self._store.create_topic(name, chosen, {**defaults, **overrides})
            except NodeExists:
                raise TopicExists(f'Topic "{name}" already exists.') from None
        return chosen

    def await_leaders(self, name: str, timeout_ms: int = 10_000) -> None:
        """Wait until every partition of the topic has a leader; AdminError after `timeout_ms`.
        Brokers learn of the leaders a moment later, so clients may still have to retry."""
        deadline = self._runtime.monotonic() + timeout_ms / 1000
        while True:
            [topic] = self.describe_topics([name])
            waiting = [p.partition for p in topic.partitions if p.leader in {None, NO_LEADER}]
            if not waiting:
                return
            if self._runtime.monotonic() > deadline:
                raise AdminError(
                    f"Topic {name}: no leader after {timeout_ms} ms for partitions {waiting}. "
                    "Check that a controller and the replicas' brokers are running"
                )
            self._runtime.sleep(_POLL_S)

    def list_topics(self) -> list[str]:
        """Names of all topics, sorted, including those marked for deletion."""
        return self._store.topics()

    def topics_marked_for_deletion(self) -> list[str]:
        """Names, sorted, of topics whose deletion is pending (for ever on brokers of levels 0.8.2
        and 0.9.0 without delete.topic.enable)."""
        return self._store.topics_to_delete()

    def live_brokers(self) -> list[int]:
        """Ids of the brokers that are registered, ascending."""
        return self._store.live_broker_ids()

    def silent_brokers(self) -> dict[int, str]:
        """Broker id → why it does not respond, of those that are registered. All are asked at the
        same time. ZooKeeperError."""
        brokers = self._store.brokers()
        if not brokers:
            return {}
        addresses = [(broker.host, broker.port) for broker in brokers.values()]
        with closing(ClusterClient(addresses, runtime=self._runtime)) as client:
            silent = client.find_silent(PROBE_S)
        found = {i: silent.get((broker.host, broker.port)) for i, broker in brokers.items()}
        return {broker_id: why for broker_id, why in found.items() if why is not None}

    def check_registered(self) -> None:
        """NoBrokersAvailable, with the clusters that there are, if no broker is registered: the
        chroot may be wrong, or missing."""
        self._store.broker_addresses()

    def describe_brokers(self, broker_ids: Sequence[int] | None = None) -> list[BrokerDescription]:
        """The named brokers (None: all that are registered or have replicas) by id, according to
        ZooKeeper; AdminError for one that is neither."""
        controller = self._store.controller()
        found = brokers_of(
            self._store.registrations(),
            None if controller is None else controller.broker_id,
            self.describe_topics(),
        )
        return chosen(found, broker_ids)

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """The named topics (None: all that can be read, sorted) according to ZooKeeper; AdminError
        for a missing one."""
        store = self._store
        assignments = store.readable_assignments() if names is None else store.assignments(names)
        for name in names or ():
            if name not in assignments:
                raise self._absent_topic(name)
        states = self._store.leader_and_isr(
            TopicPartition(name, number)
            for name, assignment in assignments.items()
            for number in assignment
        )
        configs = self._store.topic_configs(assignments)
        doomed = set(self._store.topics_to_delete())

        def partition(name: str, number: int, replicas: tuple[int, ...]) -> PartitionDescription:
            state = states.get(TopicPartition(name, number))
            if state is None:
                return PartitionDescription(number, None, replicas, ())
            return PartitionDescription(number, state.leader, replicas, state.isr)

        return [
            TopicDescription(
                name,
                tuple(partition(name, number, rs) for number, rs in assignment.items()),
                configs.get(name, {}),
                marked_for_deletion=name in doomed,
            )
            for name, assignment in assignments.items()
        ]

    def overrides(self, name: str) -> dict[str, str]:
        """The topic's overrides in ZooKeeper; {} if it has none, or if their znode cannot be read
        (which is logged as an error)."""
        return self._store.topic_configs([name]).get(name, {})

    def alter_topic(
        self,
        name: str,
        *,
        config: Mapping[str, object] | None = None,
        delete_config: Sequence[str] = (),
        partitions: int | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        rack_aware: bool = True,
        dry_run: bool = False,
    ) -> dict[int, tuple[int, ...]]:
        """Change a topic's overrides, add partitions, or both; returns partition → replicas of the
        added ones. Brokers apply new overrides while they run.

        config         overrides to set
        delete_config  overrides to remove; ConfigError for an unknown name, unset ones are ignored.
                       AdminError if the topic's overrides cannot be read
        partitions     the new number of partitions
        assignment     replicas of each partition that is added; default: spread over all brokers
        rack_aware     as for `create_topic`
        """
        if fault := fault_of(name):
            raise AdminError(fault)
        node = self._zk.get_or_none(paths.topic(name))
        if node is None:
            raise self._absent_topic(name)
        existing = dict(sorted(nodes.decode_assignment(node.data).items()))
        added: dict[int, tuple[int, ...]] = {}
        if partitions is not None:
            # Read after the assignment, which is written only if no move has begun since.
            self.check_not_moved([name])
            added = self._partitions_to_add(name, existing, partitions, assignment, rack_aware)
        altered = None
        if config or delete_config:
            altered = self._altered_config(name, config or {}, delete_config)
        if not dry_run:
            if added:
                text = nodes.encode_assignment({**existing, **added})
                self._write_assignment(name, node.created_zxid, text, node.version)
            if altered is not None:
                self._write_config(name, node.created_zxid, altered, config or {}, delete_config)
        return added

    def _write_assignment(self, name: str, created_zxid: int, text: str, version: int) -> None:
        """Write it unless it has changed: the controller changes it while it moves partitions."""
        try:
            self._write_while_it_lives(name, created_zxid, Set(paths.topic(name), text, version))
        except BadVersion:
            raise AdminError(
                f"The assignment of {name} changed after it was read; try again"
            ) from None

    def _write_while_it_lives(self, name: str, created_zxid: int, write: Create | Set) -> None:
        """Write to a znode of the topic that this transaction created. AdminError if the topic was
        deleted; NoNode, BadVersion, NodeExists of the write.

        A topic that was deleted and created again has the same versions as the former one, perhaps
        while the write is on its way. So the write also removes a znode below the topic's, which a
        deletion of the topic would have removed."""
        path = paths.topic(name)
        gone = AdminError(f"Topic {name} was deleted after it was read; try again if it exists")
        try:
            fence = self._zk.create(
                f"{path}/change_", ephemeral=True, sequence=True, make_parents=False
            )
        except NoNode:
            raise gone from None
        try:
            stat = self._zk.stat(path)
            if stat is None or stat.created_zxid != created_zxid:
                raise gone
            self._zk.multi([Delete(fence), write])
        except (AdminError, BadVersion, NodeExists, NoNode) as error:
            self._zk.delete(fence, missing_ok=True)
            is_gone = isinstance(error, NoNode) and error.path == fence
            raise (gone if is_gone else error) from None

    def _partitions_to_add(
        self,
        name: str,
        existing: Mapping[int, Sequence[int]],
        total: int,
        assignment: Sequence[Sequence[int]] | None,
        rack_aware: bool,
    ) -> dict[int, tuple[int, ...]]:
        if name in INTERNAL_TOPICS:
            raise AdminError(f"The number of partitions of {name} cannot be changed.")
        racks = self._store.live_racks()
        live = list(racks)
        if assignment is None:
            return assign_added_partitions(live, existing, total, racks if rack_aware else NO_RACKS)
        added = {len(existing) + n: tuple(replicas) for n, replicas in enumerate(assignment)}
        if len(existing) + len(added) != total:
            raise AdminError(
                f"{total} partitions need {total - len(existing)} more, not {len(added)}"
            )
        check_assignment({**existing, **added})
        check_assignment(dict(enumerate(added.values())), live)
        return added

    def _altered_config(
        self, name: str, config: Mapping[str, object], delete_config: Sequence[str]
    ) -> Create | Set:
        """The write of the topic's overrides after the change, on condition that they are still as
        they are now: another tool may alter other keys at the same time."""
        path = paths.topic_config(name)
        node = self._zk.get_or_none(path)
        try:
            stored = nodes.decode_topic_config(None if node is None else node.data)
        except ZooKeeperError as error:
            raise AdminError(
                f"{path}: {error}. Without its overrides a change of one would drop all others: "
                "restore the text, or create the znode again with "
                f"{nodes.encode_topic_config({})}"
            ) from None
        level = self._store.newest_level()
        check_names([key for key in delete_config if key not in stored], level)
        overrides = {key: value for key, value in stored.items() if key not in delete_config}
        overrides |= override_texts(config)
        parse_topic_config(overrides, level)
        text = nodes.encode_topic_config(overrides)
        return Create(path, text) if node is None else Set(path, text, node.version)

    def _write_config(
        self,
        name: str,
        created_zxid: int,
        altered: Create | Set,
        config: Mapping[str, object],
        delete_config: Sequence[str],
    ) -> None:
        """The overrides first, made again if another tool has changed them, then the notification
        that makes brokers read them."""
        for _ in range(CONFIG_ROUNDS):
            try:
                self._write_while_it_lives(name, created_zxid, altered)
            except (BadVersion, NodeExists, NoNode) as error:
                refusal = error
                altered = self._altered_config(name, config, delete_config)
            else:
                self._store.announce_config_change(name)
                return
        raise refusal

    # Moving partitions

    def plan_moves(
        self, topics: Sequence[str], brokers: Sequence[int], *, rack_aware: bool = True
    ) -> Moves:
        """Plan to spread the partitions of `topics` over `brokers`, and over their racks if they
        have any and `rack_aware`; changes nothing."""
        current = self._store.assignments(topics)
        for name in topics:
            if name not in current:
                raise self._absent_topic(name)
        self.check_not_moved(topics)
        racks = self._store.live_racks() if rack_aware else NO_RACKS
        return plan_moves(current, brokers, self._runtime.random, racks)

    def check_not_moved(self, topics: Collection[str]) -> None:
        """AdminError if partitions of the topics are being moved. Their replicas are old and new
        ones together until the move ends: what is planned by them gets too many, for good."""
        if moved := sorted(tp for tp in self._store.reassignments() if tp.topic in topics):
            raise AdminError(
                f"A partition reassignment is in progress of {some_of(moved)}: its old and new "
                "replicas are assigned together until it ends; wait for that (kafka08 partition "
                "reassign --plan FILE --verify), or end it (--cancel)"
            )

    def assigned(self, partitions: Iterable[TopicPartition]) -> Moves:
        """The current replicas of these partitions; a missing partition is left out."""
        wanted = list(partitions)
        current = self._store.assignments(sorted({tp.topic for tp in wanted}))
        return {
            tp: current[tp.topic][tp.partition]
            for tp in wanted
            if tp.partition in current.get(tp.topic, {})
        }

    def move_partitions(self, moves: Moves) -> None:
        """Request moves from the controller; `move_statuses` reports their progress. AdminError
        while an earlier request is in progress, for a missing partition, or for an illegal list of
        replicas."""
        check_moves(moves)
        check_exist(moves, self.assigned(moves))
        self._request(paths.REASSIGN_PARTITIONS, format_moves(moves), "A partition reassignment")

    def cancelled_moves(self) -> Moves:
        """Where the partitions of the reassignment in progress stay if it is cancelled: see
        `moves.cancelled`. AdminError if there is none."""
        requested = self._store.reassignments()
        states = self._store.leader_and_isr(requested)
        in_sync = {tp: state.isr for tp, state in states.items()}
        found = cancelled(requested, self.assigned(requested), in_sync, self.live_brokers())
        if not found:
            raise AdminError("No partition reassignment is in progress that could be cancelled")
        return found

    def cancel_moves(self, moves: Moves) -> None:
        """Have partitions that are being moved go to these replicas instead; `move_statuses` shows
        their progress. AdminError for one that is not being moved, or no longer.

        A controller does not look again at a move that it has begun. So in one transaction the
        request is changed, on condition of its version, and /controller removed: the broker that
        becomes the controller then reads the request."""
        check_moves(moves)
        path = paths.REASSIGN_PARTITIONS
        for _ in range(CONFIG_ROUNDS):
            node = self._zk.get_or_none(path)
            requested = {} if node is None else nodes.decode_reassignment(node.data)
            if node is None or not moves.keys() <= requested.keys():
                ended = sorted(moves.keys() - requested.keys())
                raise AdminError(f"{some_of(ended)}: no reassignment is in progress (any more)")
            text = format_moves({**requested, **moves})
            try:
                self._zk.multi([Set(path, text, node.version), Delete(paths.CONTROLLER)])
            except (BadVersion, NoNode):  # it went on meanwhile, or a controller is being elected
                self._runtime.sleep(_ROUND_S)
            else:
                return
        raise AdminError("the reassignment or the controller changes all the time; try again")

    def move_statuses(self, moves: Moves) -> dict[TopicPartition, MoveStatus]:
        """The status of each move, sorted."""
        under_way = self._store.reassignments()
        return statuses(moves, under_way, self.assigned(moves))

    def elect_preferred(
        self, partitions: Sequence[TopicPartition] | None = None, *, dry_run: bool = False
    ) -> int:
        """Ask the controller to elect the preferred replicas of partitions (None: of all) where
        they are in sync; returns the number of partitions in the request. AdminError while an
        earlier request is in progress, or for a missing partition. `dry_run`: check only."""
        existing = dict.fromkeys(
            TopicPartition(topic, number)
            for topic, assignment in self._store.readable_assignments().items()
            for number in assignment
        )
        wanted = list(existing if partitions is None else partitions)
        check_exist(wanted, existing)
        if wanted and not dry_run:
            text = nodes.encode_preferred_election(wanted)
            self._request(paths.PREFERRED_ELECTION, text, "A preferred replica election")
        return len(wanted)

    def _absent_topic(self, name: str) -> AdminError:
        nearest = did_you_mean(name, self._store.topics())
        return NoSuchTopicOrPartition(f"Topic {name} does not exist{nearest}")

    def _request(self, path: str, text: str, what: str) -> None:
        try:
            self._zk.create(path, text)
        except NodeExists:
            raise AdminError(f"{what} is in progress; try again when it is done") from None

    def delete_topic(self, name: str, *, dry_run: bool = False) -> bool:
        """Ask the controller to delete a topic (it does so only with delete.topic.enable=true).

        False if that was requested before. AdminError for a missing topic, and from 0.9 on for an
        internal one.
        """
        if not self._zk.exists(paths.topic(name)):
            raise self._absent_topic(name)
        if (fault := deletion_fault_of(name)) and self._store.newest_level() >= Level.V0_9_0:
            raise AdminError(fault)
        if dry_run:
            return not self._zk.exists(paths.delete_topic(name))
        try:
            self._zk.create(paths.delete_topic(name), nodes.encode_delete_topic())
        except NodeExists:
            return False
        return True
