"""`kafka08 consume --zookeeper`: as a member of a group that lives in ZooKeeper."""

from __future__ import annotations

import logging
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING

from kafka08.cli.echo import say
from kafka08.cli.message_output import output_descriptor
from kafka08.cli.options import given, read_client_config
from kafka08.cli.printer import POLL_MS, Printer
from kafka08.cli.printing import Printing
from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.errors import KafkaError
from kafka08.listing import counted
from kafka08.nearest import did_you_mean
from kafka08.zk.reachability import check_not_refused

if TYPE_CHECKING:
    from kafka08.consumer import KafkaStream
    from kafka08.consumer.subscription import TopicFilter

logger = logging.getLogger(__name__)


def consume_streams(
    source: str | TopicFilter,
    printing: Printing,
    *,
    group: str | None,
    from_beginning: bool,
    threads: int,
) -> None:
    """Print the messages of `source` as a member of a group, and commit printed messages."""
    options = given({"group.id": group})
    if from_beginning:
        options["auto.offset.reset"] = "smallest"
    properties = read_client_config("zookeeper", "zookeeper.connect", options=options)
    temporary = "group.id" not in properties
    properties.setdefault("group.id", f"console-consumer-{random.randrange(10**9)}")
    config = ConsumerConfig(properties)
    with printing.stopping.waiting():
        check_not_refused(config.zookeeper_connect)
    printer = Printer(output_descriptor(), printing, idle_limit_ms=config.consumer_timeout_ms)
    with printing.stopping.waiting():
        connector = ConsumerConnector(config.with_changes(consumer_timeout_ms=POLL_MS))
    with ExitStack() as leaving:
        if temporary:
            leaving.callback(remove_group, connector)
        leaving.callback(connector.shutdown)
        streams = open_streams(connector, source, threads)
        if not connector.assignment and connector.stall_cause is None:
            say(f"Waiting: {reason_to_wait(source, config)}")
        printer.run(connector, streams)
    say(f"Consumed {counted(printer.count, 'message')}")
    if printer.failure is not None:
        raise printer.failure


def open_streams(
    connector: ConsumerConnector, source: str | TopicFilter, threads: int
) -> list[KafkaStream[bytes, bytes]]:
    if isinstance(source, str):
        return connector.create_message_streams({source: threads})[source]
    return connector.create_message_streams_by_filter(source, threads)


def reason_to_wait(source: str | TopicFilter, config: ConsumerConfig) -> str:
    """Why a member that has joined owns no partition, and how that can change."""
    from kafka08.admin import AdminClient

    with AdminClient(config.zookeeper_connect) as admin:
        topics = admin.list_topics()
    if isinstance(source, str) and source not in topics:
        near = did_you_mean(source, topics)
        return f"topic {source} does not exist; messages are printed once it is created{near}"
    if not isinstance(source, str) and not any(source.allows(topic) for topic in topics):
        return f"no topic matches {source!r}; messages are printed once one is created"
    wanted = f"topic {source}" if isinstance(source, str) else f"the topics of {source!r}"
    return (
        f"other members of group {config.group_id} own every partition of {wanted}; "
        f"kafka08 group describe {config.group_id} shows them"
    )


def remove_group(connector: ConsumerConnector) -> None:
    """Remove a temporary group from ZooKeeper. A failure is only a warning."""
    try:
        connector.delete_group()
    except KafkaError as error:
        logger.warning("%s was left in ZooKeeper: %s", connector.config.group_id, error)
