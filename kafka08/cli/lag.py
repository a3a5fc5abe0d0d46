"""The message of commands about partitions without a committed offset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka08.cli.echo import say
from kafka08.listing import some_of

if TYPE_CHECKING:
    from kafka08.observe.group import PartitionFacts


def warn_of_never_committed(partitions: Iterable[PartitionFacts]) -> None:
    """Name the partitions without an offset in either store on stderr, if there are any."""
    found = [p.topic_partition for p in partitions if p.never_committed and p.log_end is not None]
    if found:
        say(
            f"Never committed: {some_of(found)}; the lag counts from the log's start. A member "
            "starts there with auto.offset.reset=smallest (of a KafkaConsumer: earliest), at the "
            "log's end with largest (latest)",
        )
