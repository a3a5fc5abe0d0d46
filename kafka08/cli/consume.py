"""`kafka08 consume`: the messages of topics on stdout, as a member of a group, or of one partition
without a group."""

from __future__ import annotations

import errno
import logging
import random
import re
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kafka08.cli.options import (
    client_bootstrap_option,
    client_zookeeper_option,
    config_options,
    example,
    json_option,
    legal_topic,
    read_client_config,
)
from kafka08.cli.rendering import FORMATS
from kafka08.cli.signals import handles_stop_signals, stop_event
from kafka08.errors import KafkaError
from kafka08.listing import counted
from kafka08.nearest import did_you_mean
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaStream
    from kafka08.consumer.subscription import TopicFilter

logger = logging.getLogger(__name__)


def offset_text(_: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuses what `consume_partition.start_of` does not know."""
    if value in {"earliest", "latest"} or re.fullmatch(r"-?\d+", value):
        return value
    raise click.BadParameter(f"{value!r} is not N, -N, earliest or latest", param=parameter)


@click.command(epilog=example("kafka08 consume words --group readers --from-beginning"))
@click.argument("topic", required=False, callback=legal_topic)
@click.option("--whitelist", metavar="RE", help="Every topic whose whole name matches.")
@click.option("--blacklist", metavar="RE", help="Every topic whose whole name does not match.")
@click.option("--group", metavar="G", help="The group; default: a new one, removed at the end.")
@click.option("--from-beginning", is_flag=True, help="Where nothing is committed: the earliest.")
@click.option("--max-messages", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Streams.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text")
@json_option("The same as --format json.")
@click.option(
    "--skip-message-on-error",
    is_flag=True,
    help="Go on behind a damaged message, and name it on stderr, instead of ending with an error.",
)
@click.option(
    "--partition",
    type=click.IntRange(0),
    help="Only this partition, without a group; with --bootstrap ZooKeeper is not needed.",
)
@click.option(
    "--offset",
    callback=offset_text,
    metavar="N|-N|earliest|latest",
    default="earliest",
    show_default=True,
    help="With --partition: where to begin; -N: N before the log end.",
)
@click.option("--no-wait-at-logend", is_flag=True, help="With --partition: stop at the log end.")
@config_options
@client_bootstrap_option
@client_zookeeper_option
@handles_stop_signals
def consume(
    topic: str | None,
    whitelist: str | None,
    blacklist: str | None,
    group: str | None,
    from_beginning: bool,
    max_messages: int | None,
    threads: int,
    form: str,
    as_json: bool,
    skip_message_on_error: bool,
    partition: int | None,
    offset: str,
    no_wait_at_logend: bool,
    **_: object,
) -> None:
    """Print the messages of TOPIC, or of all topics matched by a pattern, until stopped.

    SIGTERM and Ctrl-C commit what was printed, give the partitions back and leave the group.
    consumer.timeout.ms stops it after so much silence.

    With --partition it reads one partition of TOPIC from an offset on. It joins no group, commits
    nothing, and follows the leader of the partition when that moves.
    """
    stopping = stop_event()
    form = "json" if as_json else form
    check_mode(click.get_current_context(), by_partition=partition is not None)
    if partition is not None:
        from kafka08.cli.consume_partition import consume_partition

        assert topic is not None, "check_mode"
        consume_partition(
            TopicPartition(topic, partition),
            offset,
            FORMATS[form],
            output_descriptor(),
            max_messages=max_messages,
            stop_at_end=no_wait_at_logend,
            skip_damaged=skip_message_on_error,
            stopping=stopping,
        )
        return
    from kafka08.cli.printer import POLL_MS, Printer
    from kafka08.consumer import ConsumerConfig, ConsumerConnector

    source = read_source(topic, whitelist, blacklist)
    options = {} if group is None else {"group.id": group}
    if from_beginning:
        options["auto.offset.reset"] = "smallest"
    properties = read_client_config("zookeeper", "zookeeper.connect", options=options)
    temporary = "group.id" not in properties
    properties.setdefault("group.id", f"console-consumer-{random.randrange(10**9)}")
    config = ConsumerConfig(properties)
    printer = Printer(
        output_descriptor(),
        FORMATS[form],
        max_messages,
        idle_limit_ms=config.consumer_timeout_ms,
        skip_damaged=skip_message_on_error,
        stopping=stopping,
    )
    connector = ConsumerConnector(config.with_changes(consumer_timeout_ms=POLL_MS))
    with ExitStack() as leaving:
        if temporary:
            leaving.callback(remove_group, connector)
        leaving.callback(connector.shutdown)
        streams = open_streams(connector, source, threads)
        if not connector.assignment and connector.stall_cause is None:
            click.echo(f"Waiting: {reason_to_wait(source, config)}", err=True)
        printer.run(connector, streams)
    click.echo(f"Consumed {counted(printer.count, 'message')}", err=True)
    if printer.failure is not None:
        raise printer.failure


def check_mode(context: click.Context, *, by_partition: bool) -> None:
    """UsageError for options that do not go together: of a group, and of one partition."""
    of_group = ("whitelist", "blacklist", "group", "from_beginning", "threads")
    of_partition = ("offset", "no_wait_at_logend")
    for name in of_group if by_partition else of_partition:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            how = "cannot be used with" if by_partition else "needs"
            raise click.UsageError(f"{option} {how} --partition", context)
    if by_partition and context.params["topic"] is None:
        raise click.UsageError("--partition needs a TOPIC", context)


def read_source(
    topic: str | None, whitelist: str | None, blacklist: str | None
) -> str | TopicFilter:
    """The topic, or the pattern of topics. Raises UsageError, ConfigError (a bad pattern)."""
    from kafka08.consumer import Blacklist, Whitelist

    if sum(choice is not None for choice in (topic, whitelist, blacklist)) != 1:
        raise click.UsageError("name one of: TOPIC, --whitelist, --blacklist")
    if whitelist == "":
        raise click.UsageError("--whitelist '' matches no topic")
    if topic is not None:
        return topic
    return Blacklist(blacklist or "") if whitelist is None else Whitelist(whitelist)


def open_streams(
    connector: ConsumerConnector, source: str | TopicFilter, threads: int
) -> list[KafkaStream[bytes, bytes]]:
    if isinstance(source, str):
        return connector.create_message_streams({source: threads})[source]
    return connector.create_message_streams_by_filter(source, threads)


def reason_to_wait(source: str | TopicFilter, config: ConsumerConfig) -> str:
    """Why a member that has joined owns no partition, and what would change that."""
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


def output_descriptor() -> int:
    """Where stdout goes, past Python's buffers. Raises OSError when it is closed."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return sys.stdout.fileno()


def remove_group(connector: ConsumerConnector) -> None:
    """Leave no trace of a group that was made for this run. A failure is only a warning."""
    try:
        connector.delete_group()
    except KafkaError as error:
        logger.warning("%s was left in ZooKeeper: %s", connector.config.group_id, error)
