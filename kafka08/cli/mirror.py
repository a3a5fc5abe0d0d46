"""`kafka08 mirror`: copies topics of one cluster to another, like MirrorMaker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafka08.cli.echo import say
from kafka08.cli.failures import own_options
from kafka08.cli.options import Whole, example, given, json_option, read_config, topic_filter
from kafka08.cli.progress import copy_until_stopped
from kafka08.cli.signals import StopRequest, handles_stop_signals
from kafka08.cli.table import show_json
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.mirror import Mirror

ON_FAILURE: Final = ("abort", "skip")


@click.command(
    epilog=example(
        "kafka08 mirror --source-zookeeper old:2181 --target-bootstrap new:9092 --group mirror "
        "--whitelist 'page.*'"
    )
)
@click.option(
    "--source-zookeeper", metavar="HOST:PORT[,..][/chroot]", help="ZooKeeper of the source."
)
@click.option("--target-bootstrap", metavar="HOST:PORT[,..]", help="Some brokers of the target.")
@click.option("--whitelist", metavar="RE", help="Every topic whose whole name matches.")
@click.option("--blacklist", metavar="RE", help="Every topic whose whole name does not match.")
@click.option("--group", metavar="G", help="The group at the source; one for each target.")
@click.option(
    "--streams",
    "--num.streams",
    "streams",
    default=1,
    show_default=True,
    type=Whole(1),
    help="Threads that copy.",
)
@click.option(
    "--producers",
    "--num.producers",
    "producers",
    default=1,
    show_default=True,
    type=Whole(1),
    help="Producers, shared by the streams.",
)
@click.option(
    "--on-failure",
    type=click.Choice(ON_FAILURE),
    default="abort",
    show_default=True,
    help="What to do when the target refuses a message permanently.",
)
@click.option(
    "--keep-partitions",
    is_flag=True,
    help="Keep partition numbers, which the target must have; else partition by key.",
)
@click.option(
    "--consumer-config",
    "--consumer.config",
    "consumer_config",
    type=click.Path(dir_okay=False),
    help="A .properties file for the consumer at the source.",
)
@click.option(
    "--producer-config",
    "--producer.config",
    "producer_config",
    type=click.Path(dir_okay=False),
    help="A .properties file for the producer at the target, with the new producer's keys.",
)
@click.option(
    "--consumer-override",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one key of the consumer; overrides options and file.",
)
@click.option(
    "--producer-override",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one key of the producer; overrides options and file.",
)
@json_option("One JSON object at the end: messages, bytes, skipped, resent.")
@click.option("--progress", is_flag=True, help="Print the progress each second, on stderr.")
@handles_stop_signals
@own_options(bootstrap="--target-bootstrap", zookeeper="--source-zookeeper")
def mirror(
    source_zookeeper: str | None,
    target_bootstrap: str | None,
    whitelist: str | None,
    blacklist: str | None,
    group: str | None,
    streams: int,
    producers: int,
    on_failure: str,
    keep_partitions: bool,
    consumer_config: str | None,
    producer_config: str | None,
    consumer_override: tuple[str, ...],
    producer_override: tuple[str, ...],
    as_json: bool,
    progress: bool,
) -> None:
    """Copy topics of one cluster to another until stopped; keys and their order are kept.

    It commits only messages that the target has acknowledged: after a crash it copies some messages
    again and loses none. While the target does not respond, it waits. SIGTERM and Ctrl-C commit the
    copied messages and leave the group. It does not copy offsets of consumer groups; `kafka08
    migrate mirror` does, within a cluster.
    """
    stopping = StopRequest()
    from kafka08.consumer import ConsumerConfig
    from kafka08.mirror import Mirror, MirrorSettings, OnFailure
    from kafka08.mirror.settings import SOURCE_DEFAULTS, TARGET_DEFAULTS
    from kafka08.producer import KafkaProducerConfig
    from kafka08.producer.kafka_producer_config import SERIALIZERS_OF_BYTES

    topics = topic_filter(whitelist, blacklist)
    source = read_config(
        consumer_config,
        consumer_override,
        SOURCE_DEFAULTS,
        given({"zookeeper.connect": source_zookeeper, "group.id": group}),
    )
    target = read_config(
        producer_config,
        producer_override,
        TARGET_DEFAULTS,
        given({"bootstrap.servers": target_bootstrap}),
    )
    require(source, "zookeeper.connect", "--source-zookeeper", "--consumer-config")
    require(source, "group.id", "--group", "--consumer-config")
    require(target, "bootstrap.servers", "--target-bootstrap", "--producer-config")
    made = Mirror(
        ConsumerConfig(source),
        KafkaProducerConfig({**target, **SERIALIZERS_OF_BYTES}),
        topics,
        MirrorSettings(streams, producers, OnFailure(on_failure), keep_partitions),
    )
    say_if_refused(source["zookeeper.connect"])
    try:
        copy_until_stopped(made, stopping, shows_progress=progress)
    finally:
        if as_json:
            show_json(made.counts._asdict())
        say(summary(made))


def say_if_refused(connect: str) -> None:
    """Say that no ZooKeeper of the source takes connections now: it may be about to start, so the
    mirror waits for it for zookeeper.connection.timeout.ms."""
    from kafka08.zk.paths import split_connect
    from kafka08.zk.reachability import explain, is_refused

    hosts, _ = split_connect(connect)
    if is_refused(hosts):
        say(f"Waiting for ZooKeeper of the source: {explain(hosts)}")


def require(properties: dict[str, str], key: str, option: str, file: str) -> None:
    """UsageError if the key is missing everywhere."""
    if key not in properties:
        raise click.UsageError(f"Missing option '{option}', or {key} in {file}.")


def summary(mirror: Mirror) -> str:
    counts = mirror.counts
    text = f"Copied {counted(counts.messages, 'message')} ({counts.bytes} bytes)"
    if counts.resent:
        text += f"; sent {counts.resent} again"
    if counts.skipped:
        text += f"; skipped {counts.skipped} that the target refused"
    return text
