"""The plan of a move: which topics are made or extended at the target, and what stands against it.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka08.admin import TopicDescription
from kafka08.topic_config import MIN_INSYNC

NOT_COPIED: Final = ("message.format.version", "segment.index.bytes")
"""Overrides about files, or about formats that the target may not know."""


@dataclass(frozen=True, slots=True)
class TopicStep:
    """One topic.

    partitions   it has at the source
    replicas     of the new topic at the target
    config       its overrides there
    left_out     overrides of the source that are not copied
    exists       partitions at the target; None: it is made
    refusals     why it cannot be moved
    """

    topic: str
    partitions: int
    replicas: int
    config: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    exists: int | None = None
    refusals: tuple[str, ...] = ()

    @property
    def does(self) -> str:
        if self.exists is None:
            return "create"
        return "add partitions" if self.exists < self.partitions else "none"

    def as_dict(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partitions": self.partitions,
            "replicas": self.replicas,
            "config": dict(self.config),
            "left_out": list(self.left_out),
            "step": self.does,
            "refusals": list(self.refusals),
        }


def step_of(
    topic: TopicDescription,
    there: TopicDescription | None,
    brokers: int,
    *,
    written: Collection[str],
    moved: Collection[str],
    replication_factor: int | None,
) -> TopicStep:
    """The step for a topic of the source.

    there     the topic of that name at the target
    brokers   number of brokers there
    written   topics there that have messages
    moved     topics of which this move has copied messages
    """
    replicas = replication_factor or min(topic.replication_factor, brokers)
    config = {key: value for key, value in topic.config.items() if key not in NOT_COPIED}
    least = config.get(MIN_INSYNC, "")
    if least.isdecimal() and int(least) > replicas:
        del config[MIN_INSYNC]
    refusals = []
    if replicas > brokers:
        refusals.append(f"{replicas} replicas need as many brokers, the target has {brokers}")
    if there is not None and len(there.partitions) > len(topic.partitions):
        refusals.append(
            f"it has {len(there.partitions)} partitions at the target, {len(topic.partitions)} here"
        )
    if topic.name in written and topic.name not in moved:
        refusals.append("it has messages at the target that this move has not copied")
    return TopicStep(
        topic.name,
        len(topic.partitions),
        replicas,
        config,
        tuple(key for key in topic.config if key not in config),
        None if there is None else len(there.partitions),
        tuple(refusals),
    )
