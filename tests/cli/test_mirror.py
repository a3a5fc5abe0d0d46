"""`kafka08 mirror`: refusals before any message is read. tests/mirror has the rest."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Commands

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


def test_the_advice_has_the_options_of_this_command(kafka08: Commands) -> None:
    """It has no --bootstrap and no --zookeeper, which the advice used to name."""
    zookeeper = kafka08.environ["KAFKA08_ZOOKEEPER"]
    source = ("--source-zookeeper", zookeeper, "--target-bootstrap", "127.0.0.1:1")
    done = kafka08("mirror", *source, *GROUP, *ALL, code=1)
    assert "no broker responded: 127.0.0.1:1" in done.err
    assert "or give other ones with --target-bootstrap\n" in done.err
    nowhere = ("--source-zookeeper", "127.0.0.1:1", "--target-bootstrap", "127.0.0.1:1")
    soon = ("--consumer-override", "zookeeper.connection.timeout.ms=200")
    done = kafka08("mirror", *nowhere, *soon, *GROUP, *ALL, code=1)
    assert "or give another one with --source-zookeeper;" in done.err
