"""--command-config: the keys for TLS and SASL of a tool that asks brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Commands


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "client.properties"
    found.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\ngroup.id=g\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="alice-secret";\n'
    )
    return found


def test_it_is_for_brokers_alone(
    kafka08: Commands, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ZooKeeper it is an error on the command line, and left alone in the environment."""
    zookeeper = ("--zookeeper", kafka08.cluster.zookeeper.connect_string)
    done = kafka08.refused("topic", "list", *zookeeper, "--command-config", file)
    assert (done.code, done.out) == (2, b"")
    assert "--command-config is for --bootstrap" in done.err
    kafka08.environ["KAFKA08_COMMAND_CONFIG"] = str(file)
    try:
        kafka08("topic", "list", *zookeeper)
    finally:
        del kafka08.environ["KAFKA08_COMMAND_CONFIG"]


@pytest.mark.parametrize("command", ["topic list", "offsets get g", "group list", "topic offsets"])
def test_a_mistake_in_it_is_named(command: str, kafka08: Commands, file: Path) -> None:
    """Before the first connection, by its key. Keys of other clients in the file are left alone."""
    where = ("--bootstrap", kafka08.cluster.bootstrap, "--command-config", file)
    file.write_text(file.read_text().replace("PLAIN\n", "PLANE\nsasl.mechansim=PLAIN\n"))
    done = kafka08.refused(*command.split(), *where)
    assert done.code == 2
    assert "sasl.mechanism: 'PLANE' is not one of PLAIN" in done.err
    assert "alice-secret" not in done.err
    file.unlink()
    assert "cannot read the configuration file" in kafka08.refused(*command.split(), *where).err


def test_a_key_that_looks_like_another_one_is_named(kafka08: Commands, file: Path) -> None:
    """Else what was to be encrypted would be sent in plain text without a word."""
    file.write_text("security.protocl=SSL\ngroup.id=g\n")
    where = ("--bootstrap", kafka08.cluster.bootstrap, "--command-config", file)
    done = kafka08("topic", "list", *where)
    assert "security.protocl is not valid; did you mean security.protocol?" in done.err
    assert "group.id" not in done.err
