"""Where logs start and end, by their leaders, which are asked side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka08.client import ClusterClient
from kafka08.client.log_offsets import offsets_or_errors
from kafka08.errors import KafkaError
from kafka08.listing import some_of
from kafka08.observe.layout import Layout, States
from kafka08.observe.snapshot import PartitionState
from kafka08.protocol.fetch import READ_COMMITTED, READ_UNCOMMITTED
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, NO_LEADER, TopicPartition
from kafka08.zk import paths

Client = ClusterClient | KafkaError
"""A client, or why no broker can be asked."""


def read_logs(
    cluster: Client,
    layout: Layout,
    partitions: Mapping[TopicPartition, tuple[int, ...]],
    states: States,
    failed: list[str],
    *,
    starts: bool = True,
    stable: bool = False,
) -> dict[TopicPartition, PartitionState]:
    """The `partitions`, each with its replicas, and where there are transactions `stable` offsets
    if wanted. What is unknown is added to `failed`, with its reason."""
    led = layout.led(states)
    committed: Mapping[TopicPartition, int | str] = {}
    if stable and layout.has_transactions:
        # First, so that none is above its log's end.
        committed = read_offsets(cluster, led, LATEST_OFFSET, READ_COMMITTED)
    ends = read_offsets(cluster, led, LATEST_OFFSET)
    first = read_offsets(cluster, led, EARLIEST_OFFSET) if starts else {}
    found = {}
    silent: dict[str, list[TopicPartition]] = {}
    for tp, replicas in partitions.items():
        state, start, end = states.get(tp), first.get(tp), ends.get(tp)
        stable_end = committed.get(tp)
        unreadable = None
        fault = layout.faults.get(paths.partition_state(*tp), "") if layout.faults else ""
        if fault:
            unreadable = "its state cannot be read"
        elif state is None:
            unreadable = "it has not had a leader yet"
        elif tp not in ends:
            unreadable = "it has no live leader"
        elif isinstance(why := end if isinstance(end, str) else start, str):
            silent.setdefault(why, []).append(tp)
            unreadable = why
        found[tp] = PartitionState(
            NO_LEADER if state is None else layout.leader_of(state),
            replicas,
            () if state is None else state.isr,
            start if isinstance(start, int) else None,
            end if isinstance(end, int) else None,
            unreadable,
            state,
            fault,
            stable_end if isinstance(stable_end, int) else None,
        )
    failed.extend(f"offsets of {some_of(tps)}: {why}" for why, tps in silent.items())
    return found


def read_offsets(
    cluster: Client,
    partitions: Collection[TopicPartition],
    time: int,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, int | str]:
    """partition → offset, or why it is unknown."""
    if isinstance(cluster, KafkaError):
        return dict.fromkeys(partitions, str(cluster))
    found = offsets_or_errors(cluster, dict.fromkeys(partitions, time), isolation=isolation)
    return {tp: known_offset(result) for tp, result in found.items()}


def known_offset(result: list[int] | KafkaError) -> int | str:
    """The offset in a response, or why it has none. Pure."""
    if isinstance(result, KafkaError):
        return str(result)
    return result[0] if result and result[0] >= 0 else "its leader has none"
