"""What a run consists of: sizes, settings and faults, drawn from its seed.

Swarm testing: a run does not have a little of everything but much of some things and nothing of
others, so that over many runs each combination comes up.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import get_args

from kafka08.client.requests import StorageName
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.zookeeper import ADDRESS


class Fault(enum.Enum):
    """What may befall a run."""

    KILL = "a broker or member is killed, or its host loses power"
    RESTART = "a broker is stopped cleanly and started again"
    SUSPEND = "a process does nothing for a while, as after SIGSTOP"
    CUT = "nothing goes from one host to others, or back"
    RESET = "a connection is reset"
    SESSION = "a connection to ZooKeeper is lost, with its replies"
    ZOOKEEPER = "ZooKeeper is down"
    CLOCK = "a wall clock steps"
    MOVE = "partitions are moved to other brokers"
    ELECT = "preferred replicas are elected"


@dataclass(frozen=True)
class Plan:
    """disorder         see Scheduler
    native_seconds   see World
    skew_ms          how far wall clocks may be apart from the world's
    trouble_seconds  how long the phase with faults lasts
    faults           how frequent each kind is beside the others
    fault_pause_seconds, fault_seconds   from one fault to the next, and to its repair, on average
    silent_share     how often a host loses power instead of a process being killed
    calm_network     what the network is like afterwards: as bad as before, a large log would not be
                     copied within any time-out
    members          of the consumer group
    offsets_storage  the group's
    """

    brokers: int
    partitions: int
    replication_factor: int
    new_producers: int
    old_producers: int
    retries: int
    in_flight: int
    pause_seconds: float
    disorder: float
    native_seconds: float
    skew_ms: int
    trouble_seconds: float
    network: NetworkSettings
    calm_network: NetworkSettings
    profile: str
    broker_properties: Mapping[str, str]
    faults: Mapping[Fault, float]
    fault_pause_seconds: float
    fault_seconds: float
    silent_share: float
    members: int
    offsets_storage: StorageName


def draw_plan(seed: int, profile: str) -> Plan:
    """The plan of a seed."""
    random = Random(f"{seed}/plan")
    brokers = random.choice([1, 2, 3, 3, 3])
    session_ms = random.choice([4000, 6000])
    return Plan(
        brokers=brokers,
        partitions=random.choice([1, 2, 4]),
        replication_factor=random.randint(1, brokers),
        new_producers=random.randint(1, 2),
        old_producers=random.randint(0, 1),
        retries=random.choice([0, 3, 1000]),
        in_flight=random.choice([1, 5]),
        pause_seconds=random.choice([0.01, 0.05, 0.2]),
        disorder=random.choice([0.0, 0.1, 0.5, 1.0]),
        native_seconds=random.choice([0.001, 0.05, 1.0]),
        skew_ms=random.choice([0, 100, 10_000]),
        trouble_seconds=random.choice([10.0, 30.0, 60.0]),
        network=NetworkSettings(
            delay_seconds=random.choice([0.0001, 0.001, 0.02]),
            slow_share=random.choice([0.0, 0.0, 0.001, 0.02]),
            slow_seconds=random.choice([0.05, 1.0, 4.0]),
            piece_share=random.choice([0.0, 0.01, 0.5]),
            buffer_bytes=random.choice([1000, 16_384, 262_144]),
        ),
        calm_network=NetworkSettings(),
        profile=profile,
        broker_properties={
            "zookeeper.connect": ADDRESS,
            "zookeeper.session.timeout.ms": str(session_ms),
            "kafka08.profile": profile,
            "auto.create.topics.enable": "false",
            "log.segment.bytes": str(random.choice([4096, 65_536, 1 << 20])),
            "log.index.size.max.bytes": "4096",
            "replica.lag.time.max.ms": random.choice(["2000", "10000"]),
            "replica.socket.timeout.ms": "5000",
            "controller.socket.timeout.ms": "5000",
            "offsets.topic.num.partitions": "2",
            "log.cleaner.dedupe.buffer.size": "4194304",
        },
        faults={
            kind: random.choice([0, 0, 1, 5]) if kind is not Fault.CLOCK else random.choice([0, 1])
            for kind in Fault
        },
        fault_pause_seconds=random.choice([0.5, 2.0, 10.0]),
        fault_seconds=random.choice([0.1, 1.0, 5.0, 15.0]),
        silent_share=random.choice([0.0, 0.5]),
        members=random.choice([0, 1, 2, 3]),
        offsets_storage=random.choice(get_args(StorageName)),
    )
