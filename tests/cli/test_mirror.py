"""`kafka08 mirror`: refusals before any message is read. tests/mirror has the rest."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner

from kafka08.cli.mirror import mirror
from kafka08.mirror import MirrorCounts
from kafka08.producer import KafkaProducerConfig
from tests.cli.conftest import Commands
from tests.waiting import until

SOURCE = ("--source-zookeeper", "h:2181")
TARGET = ("--target-bootstrap", "h:9092")
GROUP = ("--group", "g")
WHOLE = (*SOURCE, *TARGET, *GROUP)
ALL = ("--whitelist", ".*")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (WHOLE, "Give one of --whitelist and --blacklist."),
        ((*WHOLE, *ALL, "--blacklist", "x"), "Give one of --whitelist and --blacklist."),
        ((*WHOLE, "--whitelist", ""), "--whitelist '' matches no topic"),
        ((*TARGET, *GROUP, *ALL), "Missing option '--source-zookeeper', or zookeeper.connect in"),
        ((*SOURCE, *GROUP, *ALL), "Missing option '--target-bootstrap', or bootstrap.servers in"),
        ((*SOURCE, *TARGET, *ALL), "Missing option '--group', or group.id in --consumer-config"),
        ((*WHOLE, *ALL, "--producer-override", "acks=0"), "acks: with 0"),
        ((*WHOLE, *ALL, "--consumer-override", "auto.commit.enable=false"), "auto.commit.enable"),
    ],
    ids=str,
)
def test_misuse_is_an_error(kafka08: Commands, arguments: tuple[str, ...], said: str) -> None:
    """Misuse gives exit code 2. KAFKA08_ZOOKEEPER and KAFKA08_BOOTSTRAP are not used as source and
    target, because they name one cluster."""
    done = kafka08.refused("mirror", *arguments)
    assert 2 == done.code
    assert said in done.err


class NoSignals(threading.Event):
    """A StopRequest that leaves the signals of the tests alone."""

    waiting = nullcontext


@pytest.mark.parametrize("name", ["org.apache.kafka.common.serialization.StringSerializer", "Own"])
def test_bytes_are_copied_whatever_the_serializers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The serializers of a producer's file are not used: a string's one takes no bytes. MirrorMaker
    sets its own too."""
    made: list[KafkaProducerConfig] = []

    class Copier:
        counts = MirrorCounts()

        def __init__(self, _: object, target: KafkaProducerConfig, *rest: object) -> None:
            made.append(target)

        def run(self, *_: Any, **__: Any) -> None:
            """It is stopped at once."""

    monkeypatch.setattr("kafka08.mirror.Mirror", Copier)
    monkeypatch.setattr("kafka08.cli.mirror.StopRequest", NoSignals)
    keys = [f"--producer-override={key}.serializer={name}" for key in ("key", "value")]
    done = CliRunner().invoke(mirror, [*WHOLE, *ALL, *keys])
    assert done.exit_code == 0, done.output
    assert made[0].serializers() == (None, None)


def test_the_advice_has_the_options_of_this_command(kafka08: Commands) -> None:
    """It has no --bootstrap and no --zookeeper, which the advice used to name."""
    zookeeper = kafka08.environ["KAFKA08_ZOOKEEPER"]
    source = ("--source-zookeeper", zookeeper, "--target-bootstrap", "127.0.0.1:1")
    done = kafka08("mirror", *source, *GROUP, *ALL, code=1)
    assert "no broker responded: cannot connect to 127.0.0.1:1: " in done.err
    assert "or give other ones with --target-bootstrap\n" in done.err
    nowhere = ("--source-zookeeper", "127.0.0.1:1", "--target-bootstrap", "127.0.0.1:1")
    soon = ("--consumer-override", "zookeeper.connection.timeout.ms=200")
    done = kafka08("mirror", *nowhere, *soon, *GROUP, *ALL, code=1)
    assert "or give another one with --source-zookeeper;" in done.err


def test_a_source_that_is_waited_for_is_named_at_once(kafka08: Commands) -> None:
    """It may be about to start; whoever mistyped its address need not wait."""
    nowhere = ("--source-zookeeper", "127.0.0.1:1", "--target-bootstrap", "127.0.0.1:1")
    running = kafka08.start("mirror", *nowhere, *GROUP, *ALL)
    said = "Waiting for ZooKeeper of the source: 127.0.0.1:1: connection refused\n"
    until(lambda: said == running.err)
    assert None is running.popen.poll()
