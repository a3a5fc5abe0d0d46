"""Ranges of the messages that a job, which stores its offsets itself, has not read yet."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.arrow.ranges import OffsetRange


def ranges_until_now(
    bootstrap: str, topic: str, next_offsets: Mapping[int, int] | None = None
) -> list[OffsetRange]:
    """A range for each partition of `topic`, sorted by number: from its next offset (the earliest,
    for a partition without one) to the log end now. Ranges may be empty.

    bootstrap   host:port,host:port of some brokers
    DataLost, listing every range, if retention was faster or a log ends before its next offset.
    """
    from kafka08.arrow.options import parse_read_options  # kafka08.spark imports this module
    from kafka08.arrow.resolve import Resolver

    stored = dict(next_offsets or {})
    resolver = Resolver(
        parse_read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": topic})
    )
    with resolver.deadline():
        partitions = resolver.partitions()
        earliest = resolver.log_offsets.earliest(partitions)
        latest = resolver.log_offsets.latest_up_to(
            {tp: stored.get(tp.partition, 0) for tp in partitions}
        )
        wanted = []
        for tp in partitions:
            start = stored.get(tp.partition, earliest[tp])
            # A log that ends before `start` has lost messages: with this range `clamp` reports it.
            wanted.append(OffsetRange(*tp, min(start, latest[tp]), max(start, latest[tp])))
        return resolver.available(wanted)
