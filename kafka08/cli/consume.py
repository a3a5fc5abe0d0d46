"""`kafka08 consume`: prints the messages of topics, as a member of a group, or of one partition
without a group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kafka08.cli.echo import say
from kafka08.cli.options import (
    Whole,
    client_bootstrap_option,
    client_zookeeper_option,
    config_options,
    example,
    json_option,
    legal_topic,
    read_config,
    topic_filter,
)
from kafka08.cli.printing import Printing, Render
from kafka08.cli.rendering import FORMATS, by_template, check_template, with_columns
from kafka08.cli.signals import Stopped, StopRequest, handles_stop_signals
from kafka08.cli.times import is_time
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.consumer.subscription import TopicFilter


def offset_text(_: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuses a text that `consume_partition.start_of` cannot parse."""
    if value in {"earliest", "latest"} or re.fullmatch(r"-?\d+", value) or is_time(value):
        return value
    raise click.BadParameter(
        f"{value!r} is not N, -N, earliest, latest or @TIME, a time since 1970", param=parameter
    )


def format_text(_: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuses a text that is neither the name of a format nor a template."""
    if value not in FORMATS:
        if "%" not in value:
            raise click.BadParameter(
                f"{value!r} is not one of {', '.join(FORMATS)}, nor a template with %s",
                param=parameter,
            )
        try:
            check_template(value)
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from error
    return value


def until_text(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuses a text that `consume_polling.find_end` cannot parse."""
    if value is None or value == "end" or value.isdecimal() or is_time(value):
        return value
    raise click.BadParameter(
        f"{value!r} is not N, @TIME or end; a time is since 1970", param=parameter
    )


@contextmanager
def stopped_at_start() -> Iterator[None]:
    """Around the command: a signal that came before it could read ends it as later ones do."""
    try:
        yield
    except Stopped:
        say("Consumed 0 messages")


@click.command(epilog=example("kafka08 consume words --group readers --from-beginning"))
@click.argument("topic", required=False, callback=legal_topic)
@click.option("--whitelist", metavar="RE", help="Every topic whose whole name matches.")
@click.option("--blacklist", metavar="RE", help="Every topic whose whole name does not match.")
@click.option("--group", metavar="G", help="The group; default: a temporary one.")
@click.option(
    "--from-beginning", is_flag=True, help="Without a committed offset: start at the earliest."
)
@click.option("--max-messages", type=Whole(1), help="Stop after this many messages.")
@click.option("--threads", default=1, show_default=True, type=Whole(1), help="Number of streams.")
@click.option("--assignor", metavar="NAME", help="The strategy: range, roundrobin, sticky.")
@click.option(
    "--format",
    "form",
    metavar="text|json|hex|TEMPLATE",
    callback=format_text,
    default="text",
    help=r"Or a template like kcat's: '%t %p %o %T %k %s\n'.",
)
@click.option("--print-key", is_flag=True, help="Print the key and a tab before the value.")
@click.option(
    "--print-timestamp",
    is_flag=True,
    help="Print the timestamp in ms and a tab before key and value. With --partition, JSON has "
    "timestamps with this option only.",
)
@json_option("The same as --format json.")
@click.option(
    "--skip-message-on-error",
    is_flag=True,
    help="Skip a damaged message, with a warning on stderr, instead of ending with an error.",
)
@click.option(
    "--partition",
    type=Whole(0),
    help="Read this partition only, without a group; with --bootstrap it needs no ZooKeeper.",
)
@click.option(
    "--offset",
    callback=offset_text,
    metavar="N|-N|@TIME|earliest|latest",
    default="earliest",
    show_default=True,
    help="With --partition: where to start; -N: N before the log end.",
)
@click.option(
    "--until",
    callback=until_text,
    metavar="N|@TIME|end",
    help="With --partition: stop before this offset, this time, or the current log end.",
)
@click.option(
    "--last",
    type=Whole(1),
    metavar="N",
    help="Print the last N messages of each partition (or of --partition) and end. Joins no group.",
)
@click.option("--no-wait-at-logend", is_flag=True, help="With --partition: stop at the log end.")
@config_options
@client_bootstrap_option
@client_zookeeper_option
@handles_stop_signals
@stopped_at_start()
def consume(
    topic: str | None,
    whitelist: str | None,
    blacklist: str | None,
    group: str | None,
    from_beginning: bool,
    max_messages: int | None,
    threads: int,
    assignor: str | None,
    form: str,
    print_key: bool,
    print_timestamp: bool,
    until: str | None,
    as_json: bool,
    skip_message_on_error: bool,
    partition: int | None,
    offset: str,
    last: int | None,
    no_wait_at_logend: bool,
    **_: object,
) -> None:
    """Print the messages of TOPIC, or of all topics that match a pattern, until stopped.

    SIGTERM and Ctrl-C commit the printed messages, release the partitions and leave the group. It
    also stops after consumer.timeout.ms without a message.

    With --bootstrap instead of --zookeeper it joins a group with a coordinator, which needs brokers
    from 0.9 on; from 0.10 on messages have timestamps.

    With --partition it reads one partition of TOPIC from an offset on, with --last the newest
    messages of each. It joins no group, commits nothing, and follows leaders when they move.
    """
    stopping = StopRequest()
    render = render_of("json" if as_json else form, key=print_key, timestamp=print_timestamp)
    context = click.get_current_context()
    polls = is_polling(context)
    check_mode(context, polls=polls)
    source = read_source(topic, whitelist, blacklist)
    printing = Printing(render, max_messages, skip_message_on_error, stopping)
    needs_times = print_timestamp or "%T" in form or offset.startswith("@")
    if last is not None:
        from kafka08.cli.consume_partition import consume_last

        assert topic is not None, "check_mode"
        if reads_committed(context):
            say("Warning: --last prints messages of open and of aborted transactions too")
        consume_last(topic, partition, last, printing, timestamps=polls and needs_times)
        return
    if partition is not None:
        assert topic is not None, "check_mode"
        tp = TopicPartition(topic, partition)
        if polls and (needs_times or until is not None or reads_committed(context)):
            from kafka08.cli.consume_polling import consume_range

            consume_range(tp, offset, until, printing, stop_at_end=no_wait_at_logend)
        else:
            from kafka08.cli.consume_partition import consume_partition

            consume_partition(tp, offset, printing, stop_at_end=no_wait_at_logend)
        return
    if polls:
        from kafka08.cli.consume_polling import consume_group

        consume_group(
            source, printing, group=group, assignor=assignor, from_beginning=from_beginning
        )
    else:
        from kafka08.cli.consume_streams import consume_streams

        consume_streams(
            source, printing, group=group, from_beginning=from_beginning, threads=threads
        )


def render_of(form: str, *, key: bool, timestamp: bool) -> Render:
    """The function that renders a batch as lines."""
    if form not in FORMATS:
        return by_template(form)
    if (key or timestamp) and form == "text":
        return with_columns(key=key, timestamp=timestamp)
    if key or (timestamp and form != "json"):
        raise click.UsageError(f"--print-key and --print-timestamp are not for --format {form}")
    return FORMATS[form]


def is_polling(context: click.Context) -> bool:
    """Whether to use brokers alone: --bootstrap is given, and --zookeeper is not, or only in the
    environment. Of two addresses in the environment those of the brokers, for what they alone
    can do."""
    typed = {
        name
        for name in ("bootstrap", "zookeeper")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if context.params["bootstrap"] is None or "zookeeper" in typed:
        return False
    needs_brokers = context.params["until"] is not None or context.params["offset"][:1] == "@"
    if "bootstrap" in typed or (context.params["partition"] is not None and needs_brokers):
        return True
    configured = read_config(context.params["config_file"], context.params["overrides"])
    return context.params["zookeeper"] is None and "zookeeper.connect" not in configured


def reads_committed(context: click.Context) -> bool:
    """Whether --config or --override asks for committed messages alone."""
    configured = read_config(context.params["config_file"], context.params["overrides"])
    return configured.get("isolation.level") == "read_committed"


def check_mode(context: click.Context, *, polls: bool) -> None:
    """UsageError for options that cannot be combined: of a group, of one partition, and --last."""
    of_group = ("whitelist", "blacklist", "group", "from_beginning", "threads", "assignor")
    of_partition = ("offset", "no_wait_at_logend", "until")
    by_partition = context.params["partition"] is not None
    by_last = context.params["last"] is not None
    offset = context.params["offset"]
    if not polls:
        for name, is_given in (
            ("--assignor", context.params["assignor"] is not None),
            ("--until", context.params["until"] is not None),
            (f"--offset {offset}", offset.startswith("@")),
        ):
            if is_given:
                source = context.get_parameter_source("zookeeper")
                is_set = " (KAFKA08_ZOOKEEPER is set)" * (source is ParameterSource.ENVIRONMENT)
                raise click.UsageError(
                    f"{name} needs --bootstrap without --zookeeper{is_set}, and brokers from 0.9 "
                    "on",
                    context,
                )
    elif context.get_parameter_source("threads") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--threads needs --zookeeper; start several members instead", context
        )
    mode = "--last" if by_last else "--partition"
    how = "cannot be used with" if by_last or by_partition else "needs"
    refused = of_group if by_partition else of_partition
    for name in (*of_group, *of_partition) if by_last else refused:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {how} {mode}", context)
    if (by_last or by_partition) and context.params["topic"] is None:
        raise click.UsageError(f"{mode} needs a TOPIC", context)


def read_source(
    topic: str | None, whitelist: str | None, blacklist: str | None
) -> str | TopicFilter:
    """The topic, or the pattern of topics. Raises UsageError, ConfigError (a bad pattern)."""
    if sum(choice is not None for choice in (topic, whitelist, blacklist)) != 1:
        raise click.UsageError("Give one of TOPIC, --whitelist and --blacklist.")
    return topic if topic is not None else topic_filter(whitelist, blacklist)
