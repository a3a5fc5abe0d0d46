"""The plan of a run: sizes, settings and faults, drawn from its seed.

Swarm testing: a run has many faults of some kinds and none of others, so that many runs together
have each combination.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Final, get_args

from kafka08.client.requests import StorageName
from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation.expiring_offsets import CHECK_MS as EXPIRY_CHECK_MS
from kafka08.simulation.kept_topic import COMPACT, DELETE
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.zookeeper import ADDRESS


class Fault(enum.Enum):
    """A kind of fault."""

    KILL = "a broker or member is killed, or its host loses power"
    RESTART = "a broker is stopped cleanly and started again"
    SUSPEND = "a process does nothing for a while, as after SIGSTOP"
    CUT = "nothing goes from one host to others, or back"
    RESET = "a connection is reset"
    SESSION = "a connection to ZooKeeper is lost, with its replies, now or at the next write"
    ZOOKEEPER = "ZooKeeper is down"
    CLOCK = "a wall clock steps"
    MOVE = "partitions are moved to other brokers"
    ELECT = "preferred replicas are elected"
    MIGRATE = "steps of a migration of the group's offsets"
    EXPIRE = "a ZooKeeper session is ended at once"
    ENSEMBLE = "the ensemble loses its leader; requests on their way may be done"
    HALF_OPEN = "a connection carries nothing any more, and neither end hears of it"
    DISK_FULL = "a broker's disk is full"
    DISK_ERROR = "a broker's disk fails now and then"
    DISK_SLOW = "a broker's disk is slow, and holds up its process"
    LATE = "the controller's requests of one kind are late, and it may end meanwhile"
    INTERRUPT = "partitions are moved, and the controller is killed between two writes of it"
    ISR = "a follower stops for a while, and the leaders' next changes of ISRs meet a fault"
    OUTAGE = "brokers have no ZooKeeper for longer than their sessions last"
    BLACKOUT = "all brokers lose power at once, perhaps with all members and ZooKeeper"
    TOPIC = "topics without clients are created, extended, written to and deleted"
    CONFIGURE = "a limit of a topic, or of a broker that then starts again, is changed"
    STRAY = "files of strangers are among a broker's"
    STRANGER = "znodes of strangers are among the cluster's"
    TWIN = "a second process of a broker's id starts elsewhere, perhaps on a copy of its directory"
    DESCRIPTORS = "a broker can open no more files and connections"
    REFUSE = "a host refuses the connections of another one, as behind a firewall that rejects them"
    DOMINO = "brokers lose power one after the other, seconds apart, until none is left"
    SLEEP = "a member does nothing for longer than its session lasts"
    ROLL = "a broker loses power while it syncs the segment before one that it has just begun"


WEIGHTS: Final[Mapping[Fault, tuple[float, ...]]] = {
    Fault.CLOCK: (0, 1),
    Fault.MIGRATE: (0, 0, 1, 3),
    **dict.fromkeys((Fault.DISK_FULL, Fault.DISK_ERROR, Fault.DISK_SLOW), (0, 0, 0, 1)),
}
"""The weights of a kind among the others, where they are not 0, 0, 1 and 5."""
DIRECTED: Final = (Fault.LATE, Fault.INTERRUPT)
"""Kinds of several events that rarely come together by chance. They have random numbers of their
own, so the plan of a seed without them is the same as before there were any."""
ADDED: Final = (Fault.ISR, Fault.OUTAGE, Fault.BLACKOUT)
"""Kinds that are added to the faults of a plan, in about half of all plans, with random numbers of
their own: the other faults of a seed are the same as before there were any."""
ADDED_NUMBER: Final = 1000
"""The number of the first added fault: more than a plan has others."""
ADDED_COUNTS: Final = (*(0,) * 8, 1, 2)
TOPIC_NUMBER: Final = 2000
"""The number of the first change of a topic."""
TOPIC_COUNTS: Final = (0, 0, 0, 4, 10)
"""A topic must be there before it can be extended or deleted, so few changes show little."""
SUNDRY: Final = (
    Fault.CONFIGURE,
    Fault.STRAY,
    Fault.STRANGER,
    Fault.DESCRIPTORS,
    Fault.TWIN,
)
"""Kinds that are added like ADDED, with random numbers of their own again."""
SUNDRY_NUMBER: Final = 3000
"""The number of the first of them."""
SUNDRY_COUNTS: Final = (*(0,) * 4, 1, 3)
FURTHER: Final = (Fault.REFUSE, Fault.ROLL, Fault.DOMINO, Fault.SLEEP)
"""Kinds that are added like ADDED, with random numbers of their own again."""
FURTHER_NUMBER: Final = 4000
"""The number of the first of them."""
FURTHER_COUNTS: Final = (0, 0, 1, 2)
ADDED_SHARE: Final = 0.7
"""Added faults begin in this share of the phase with faults, so that the cluster has to work
after most of them while other faults happen."""
KILLED: Final = "killed"
SUSPENDED: Final = "suspended"
RESTARTED: Final = "killed, and starts at once"
AWAY: Final = ("", "", "", KILLED, SUSPENDED, RESTARTED)
CLEANUPS: Final = ("", "", "", DELETE, COMPACT)
MIRRORS: Final = (*(0,) * 8, 1, 2)
TRANSACTIONS: Final = (0, 0, 1, 2)
EXPIRING_SHARE: Final = 0.4
"""Of the plans of levels from 0.9.0 on: 0.8 looks for expired offsets every ten minutes."""
IDS_ONLY_SHARE: Final = 0.2
MEMBERS_FIRST_SHARE: Final = 0.2
LATE_SHARE: Final = 0.3
REFUSES_SHARE: Final = 0.3
LOAD_BYTES: Final = (*("5242880",) * 3, "1000")
"""offsets.load.buffer.size: with a small one a coordinator loads for long."""
BURST_S: Final = 0.05
"""The mean pause between faults of a burst: short enough to hit what the first one has begun."""


@dataclass(frozen=True)
class PlannedFault:
    """at        its time, in seconds since the start of the phase with faults
    seconds   its duration, if it has one
    number    names its random numbers: they are the same in a run without the earlier faults
    """

    number: int
    kind: Fault
    at: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """disorder         see Scheduler
    salt             changes all random numbers but those of the plan
    windows          the times with disorder: (from, to) in seconds; None: always
    native_seconds   see World
    skew_ms          the largest difference of a wall clock from the simulated time
    faults_seconds   the duration of the phase with faults
    faults           in the order of their times
    silent_share     the share of kills in which the host loses power
    loses_writes     whether a disk then loses unsynced writes. If so, brokers with the safe profile
                     sync each message before they acknowledge it
    final_network    the network after the faults; a bad one would not copy a large log in time
    members          the number of members of the consumer group
    offsets_storage  of the group
    coordinated      whether the members are KafkaConsumers, of a group with a coordinator
    cleanup          of the topic of which brokers do not keep everything; "": there is none
    mirrors          the number of mirrors of the clients' topic to a second cluster
    expiring         whether offsets of other groups expire
    transactions     the number of transactional ids of writers, at level 0.11.0
    ids_only         whether controllers compare ids of brokers alone, as those of the JVM
    members_first    whether the group's members start before the topic is made
    late             whether the group subscribes to a topic that is made in the end
    refuses          whether brokers refuse some of the clients' large messages for good
    away             what happens to one broker after the faults: the others must go on. "": nothing
    """

    brokers: int
    partitions: int
    replication_factor: int
    new_producers: int
    old_producers: int
    async_producers: int
    retries: int
    in_flight: int
    pause_seconds: float
    disorder: float
    native_seconds: float
    skew_ms: int
    faults_seconds: float
    network: NetworkSettings
    final_network: NetworkSettings
    profile: str
    level: str
    broker_properties: Mapping[str, str]
    faults: Sequence[PlannedFault]
    silent_share: float
    loses_writes: bool
    members: int
    offsets_storage: StorageName
    coordinated: bool = False
    away: str = ""
    cleanup: str = ""
    mirrors: int = 0
    expiring: bool = False
    transactions: int = 0
    ids_only: bool = False
    members_first: bool = False
    late: bool = False
    refuses: bool = False
    windows: Sequence[tuple[float, float]] | None = None
    salt: int = 0

    def to_json(self, seed: int) -> str:
        """The text from which `from_json` makes the same seed and plan."""
        fields = {"seed": seed, **asdict(self)}
        return json.dumps(fields, default=lambda kind: kind.name, indent=1)

    @classmethod
    def from_json(cls, text: str) -> tuple[int, Plan]:
        """The seed and the plan. ValueError if the text is not of `to_json`."""
        try:
            found = json.loads(text)
            seed = int(found.pop("seed"))
            networks = {key: NetworkSettings(**found[key]) for key in ("network", "final_network")}
            faults = tuple(
                PlannedFault(**{**fault, "kind": Fault[fault["kind"]]}) for fault in found["faults"]
            )
            windows = found["windows"] and tuple((start, end) for start, end in found["windows"])
            plan = cls(**{**found, **networks, "faults": faults, "windows": windows})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"it does not contain the plan of a run: {error}") from error
        return seed, plan


RECORDS_LEVEL: Final = "0.11.0"


def draw_plan(seed: int, profile: str) -> Plan:
    """The plan of a seed."""
    random = Random(f"{seed}/plan")
    loses_writes = random.random() < 0.3
    faults_seconds = random.choice([10.0, 30.0, 60.0])
    brokers = random.choice([1, 2, 3, 3, 3])
    session_ms = random.choice([4000, 6000])
    level = random.choice(["0.8.2", "0.8.2", "0.9.0", "0.10.2"])
    return Plan(
        brokers=brokers,
        partitions=random.choice([1, 2, 4]),
        replication_factor=random.randint(1, brokers),
        new_producers=random.randint(1, 2),
        old_producers=random.randint(0, 1),
        async_producers=random.choice([0, 0, 1]),
        retries=random.choice([0, 3, 1000]),
        in_flight=random.choice([1, 5]),
        # Long runs with much traffic would take most of the time of all runs.
        pause_seconds=random.choice([0.01 if faults_seconds < 30 else 0.03, 0.05, 0.2]),
        disorder=random.choice([0.0, 0.1, 0.5, 1.0]),
        # A sync takes as long as a native job, and the safe profile then syncs each message.
        native_seconds=random.choice(
            [0.001, 0.05, 0.05 if loses_writes and profile == SAFE else 1.0]
        ),
        skew_ms=random.choice([0, 100, 10_000]),
        faults_seconds=faults_seconds,
        network=NetworkSettings(
            delay_seconds=random.choice([0.0001, 0.001, 0.02]),
            slow_share=random.choice([0.0, 0.0, 0.001, 0.02]),
            slow_seconds=random.choice([0.05, 1.0, 4.0]),
            piece_share=random.choice([0.0, 0.01, 0.5]),
            buffer_bytes=random.choice([1000, 16_384, 262_144]),
        ),
        final_network=NetworkSettings(),
        profile=profile,
        level=level,
        broker_properties={
            "zookeeper.connect": ADDRESS,
            "zookeeper.session.timeout.ms": str(session_ms),
            "kafka08.profile": profile,
            "api.level": level,
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            "log.segment.bytes": str(random.choice([4096, 65_536, 1 << 20])),
            "log.index.size.max.bytes": "4096",
            "replica.lag.time.max.ms": random.choice(["2000", "10000"]),
            "replica.socket.timeout.ms": "5000",
            "controller.socket.timeout.ms": "5000",
            "offsets.topic.num.partitions": "2",
            "offsets.retention.check.interval.ms": str(EXPIRY_CHECK_MS),
            "log.cleaner.dedupe.buffer.size": "4194304",
            "offsets.load.buffer.size": Random(f"{seed}/loads").choice(LOAD_BYTES),
            **({"log.flush.interval.messages": "1"} if loses_writes and profile == SAFE else {}),
        },
        faults=with_added(
            draw_faults(
                random, faults_seconds, draw_weights(random, Random(f"{seed}/directed faults"))
            ),
            seed,
            faults_seconds,
        ),
        silent_share=random.choice([0.0, 0.5]),
        loses_writes=loses_writes,
        members=random.choice([0, 1, 2, 3]),
        offsets_storage=random.choice(get_args(StorageName)),
        away=Random(f"{seed}/away").choice(AWAY) if brokers > 1 else "",
        cleanup=Random(f"{seed}/cleanup").choice(CLEANUPS),
        mirrors=Random(f"{seed}/mirrors").choice(MIRRORS),
        expiring=level != "0.8.2" and Random(f"{seed}/expiring").random() < EXPIRING_SHARE,
        transactions=Random(f"{seed}/transactions").choice(TRANSACTIONS),
        members_first=Random(f"{seed}/members first").random() < MEMBERS_FIRST_SHARE,
        late=Random(f"{seed}/late topic").random() < LATE_SHARE,
        refuses=Random(f"{seed}/refusals").random() < REFUSES_SHARE,
        ids_only=Random(f"{seed}/controllers").random() < IDS_ONLY_SHARE,
    )


def with_coordinator(plan: Plan, level: str) -> Plan:
    """The same plan with brokers of `level`, and KafkaConsumers as members of the group."""
    properties = {**plan.broker_properties, "api.level": level}
    return replace(
        plan,
        level=level,
        broker_properties=properties,
        # A migration is for groups whose members live in ZooKeeper.
        faults=tuple(fault for fault in plan.faults if fault.kind is not Fault.MIGRATE),
        members=max(plan.members, 1),
        offsets_storage="kafka",
        coordinated=True,
    )


def with_record_batches(plan: Plan) -> Plan:
    """The same plan with brokers of level 0.11.0: logs have record batches and leader epochs, and
    new producers that retry are idempotent."""
    properties = {
        **plan.broker_properties,
        "api.level": RECORDS_LEVEL,
        # Fewer brokers than this would never have groups.
        "offsets.topic.replication.factor": str(plan.brokers),
    }
    if plan.profile == CLASSIC:
        # The default of 0.8: else a follower whose leader has lost messages halts for good.
        properties["unclean.leader.election.enable"] = "true"
    return replace(plan, level=RECORDS_LEVEL, broker_properties=properties)


def with_faults(plan: Plan, seed: int, kinds: Collection[Fault]) -> Plan:
    """The same plan with faults of these kinds alone, drawn again."""
    weights = {kind: 1 for kind in Fault if kind in kinds}
    faults = draw_faults(Random(f"{seed}/faults"), plan.faults_seconds, weights)
    return replace(plan, faults=faults)


def draw_weights(random: Random, directed: Random) -> dict[Fault, float]:
    """How frequent each kind is in a run: some are absent, some rare, some frequent. `directed`
    draws those of DIRECTED."""
    return {
        kind: (directed if kind in DIRECTED else random).choice(WEIGHTS.get(kind, (0, 0, 1, 5)))
        for kind in Fault
        if kind not in {*ADDED, *SUNDRY, *FURTHER, Fault.TOPIC}
    }


def with_added(
    faults: Sequence[PlannedFault], seed: int, faults_seconds: float
) -> tuple[PlannedFault, ...]:
    """These faults, a few of ADDED, SUNDRY and FURTHER at any time, and in some plans changes of
    topics."""
    added, topics = Random(f"{seed}/added faults"), Random(f"{seed}/topics")
    sundry = Random(f"{seed}/sundry faults")
    kinds = [kind for kind in ADDED for _ in range(added.choice(ADDED_COUNTS))]
    changes = [Fault.TOPIC] * topics.choice(TOPIC_COUNTS)
    others = [kind for kind in SUNDRY for _ in range(sundry.choice(SUNDRY_COUNTS))]
    random = Random(f"{seed}/further faults")
    further = [kind for kind in FURTHER for _ in range(random.choice(FURTHER_COUNTS))]
    found = _with(faults, kinds, ADDED_NUMBER, added, faults_seconds)
    found = _with(found, changes, TOPIC_NUMBER, topics, faults_seconds)
    found = _with(found, others, SUNDRY_NUMBER, sundry, faults_seconds)
    return _with(found, further, FURTHER_NUMBER, random, faults_seconds)


def _with(
    faults: Sequence[PlannedFault],
    kinds: Sequence[Fault],
    first_number: int,
    random: Random,
    faults_seconds: float,
) -> tuple[PlannedFault, ...]:
    added = [
        PlannedFault(
            first_number + number,
            kind,
            random.random() * faults_seconds * ADDED_SHARE,
            random.expovariate(1 / random.choice([0.1, 1.0, 5.0])),
        )
        for number, kind in enumerate(kinds)
    ]
    return tuple(sorted([*faults, *added], key=lambda fault: fault.at))


def draw_faults(
    random: Random, faults_seconds: float, weights: Mapping[Fault, float]
) -> tuple[PlannedFault, ...]:
    """Faults for so many seconds, each kind as frequent as its weight. In some runs they come in
    bursts."""
    pause_seconds = random.choice([0.5, 2.0, 10.0])
    fault_seconds = random.choice([0.1, 1.0, 5.0, 15.0])
    burst_share = random.choice([0.0, 0.0, 0.5])
    faults: list[PlannedFault] = []
    at = random.expovariate(1 / pause_seconds)
    while any(weights.values()) and at < faults_seconds:
        [kind] = random.choices(list(weights), list(weights.values()))
        faults.append(PlannedFault(len(faults), kind, at, random.expovariate(1 / fault_seconds)))
        follows = random.random() < burst_share
        at += random.expovariate(1 / (BURST_S if follows else pause_seconds))
    return tuple(faults)
