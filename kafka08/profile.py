"""The profiles of a cluster: 0.8's own defaults, and one under which no acknowledgement is lost.

    classic   what a plain server.properties of 0.8.2.2 means
    safe      a replica that is not in sync never leads, and acks=-1 needs two in-sync replicas
              wherever a topic has two; the producer still chooses its acks

The profile is the broker key `kafka08.profile`. A broker under the safe one says so in ZooKeeper
(kafka08.zk.paths.PROFILE), so that our tools write the overrides of `topic_overrides` into the
topics that they create: with these in place JVM brokers keep the promise too.
"""

from __future__ import annotations

from typing import Final

CLASSIC: Final = "classic"
SAFE: Final = "safe"
PROFILES: Final = (CLASSIC, SAFE)

LEAST_IN_SYNC: Final = 2
"""In-sync replicas that acks=-1 needs under the safe profile."""


def broker_defaults(profile: str) -> dict[str, str]:
    """What a broker's keys are, unless they are given."""
    if profile != SAFE:
        return {}
    return {
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": str(LEAST_IN_SYNC),
    }


def topic_overrides(profile: str, replication_factor: int) -> dict[str, str]:
    """What is written into a new topic, unless it is given."""
    if profile != SAFE:
        return {}
    overrides = {"unclean.leader.election.enable": "false"}
    if replication_factor >= LEAST_IN_SYNC:
        overrides["min.insync.replicas"] = str(LEAST_IN_SYNC)
    return overrides
