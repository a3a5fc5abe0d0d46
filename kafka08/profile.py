"""The profiles of a cluster: 0.8's own defaults, or settings that lose no acknowledged message.

    classic   a plain server.properties of 0.8.2.2
    safe      a replica that is not in sync never leads, and acks=-1 needs two in-sync replicas
              if a topic has two; the producer still chooses its acks

The profile is the broker key `kafka08.profile`. A broker with the safe one records that in
ZooKeeper (kafka08.zk.paths.PROFILE), so that our tools add the overrides of `topic_overrides` to
new topics: with these JVM brokers keep the guarantee too.
"""

from __future__ import annotations

from typing import Final

CLASSIC: Final = "classic"
SAFE: Final = "safe"
PROFILES: Final = (CLASSIC, SAFE)

LEAST_IN_SYNC: Final = 2
"""In-sync replicas that acks=-1 needs under the safe profile."""


def broker_defaults(profile: str) -> dict[str, str]:
    """The defaults of a broker's keys."""
    if profile != SAFE:
        return {}
    return {
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": str(LEAST_IN_SYNC),
    }


def topic_overrides(profile: str, replication_factor: int) -> dict[str, str]:
    """The default overrides of a new topic."""
    if profile != SAFE:
        return {}
    overrides = {"unclean.leader.election.enable": "false"}
    if replication_factor >= LEAST_IN_SYNC:
        overrides["min.insync.replicas"] = str(LEAST_IN_SYNC)
    return overrides
