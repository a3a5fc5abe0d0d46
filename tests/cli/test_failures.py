"""kafka08.cli.failures: every failure has one form, an exit code, and advice where one is known."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.cli.failures import ADVICE, FAILED, MISUSE, report
from kafka08.cli.topic_offsets import report_unknown
from kafka08.errors import (
    ConfigError,
    FailedToSend,
    KafkaError,
    LeaderNotAvailable,
    MessageSizeTooLarge,
    ZooKeeperUnreachable,
)
from kafka08.extras import EXTRAS, missing_extra
from kafka08.structs import TopicPartition, host_port
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector
from tests.network.secured import SecuredPort, server_context


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KafkaError("no"), FAILED, "Error: no\n"),
        (ConfigError("port: 'x'"), MISUSE, "Error: port: 'x'\n"),
        (OSError(errno.ENOSPC, "No space left on device"), FAILED, "Error: No space left on"),
        (
            PermissionError(errno.EACCES, "Permission denied", "f"),
            FAILED,
            "Error: Permission denied: f",
        ),
        (
            ZooKeeperUnreachable("h:1"),
            FAILED,
            "Error: h:1\nTry: check that ZooKeeper is running at that address, or give",
        ),
    ],
)
def test_errors_and_exit_codes(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is on stderr, without a number of the operating system. Misuse is 2, a failure
    1."""
    assert code == report(error)
    out, err = capsys.readouterr()
    assert "" == out
    assert err.startswith(said)


def test_the_advice_is_that_of_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    """An error that only says that something failed gets the advice for its cause."""
    error = FailedToSend("1 of 1")
    error.__cause__ = MessageSizeTooLarge("[t,0]")
    report(error)
    assert ADVICE[MessageSizeTooLarge] in capsys.readouterr().err


def test_advice_for_a_class_comes_before_that_for_its_base() -> None:
    """The first matching class gives the advice, so a class must come before its base."""
    kinds = list(ADVICE)
    for place, kind in enumerate(kinds):
        assert not any(issubclass(kind, earlier) for earlier in kinds[:place]), kind


@pytest.mark.parametrize(
    ("library", "extra"),
    sorted((library, extra) for library, extra in EXTRAS.items() if library != "click"),
)
def test_a_missing_extra_is_named(library: str, extra: str) -> None:
    """The error for a missing library names the extra and how to install it, without a stack
    trace."""
    program = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from kafka08.cli.failures import fail\n"
        "from kafka08.extras import missing_extra\n"
        f"try:\n    import {library}\n"
        "except ModuleNotFoundError as error:\n    fail(missing_extra(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert 1 == done.returncode
    assert f"needs {library}" in done.stderr
    assert f"pip install 'kafka08[{extra}]'" in done.stderr


def test_spark_read_without_spark_is_an_error(tmp_path: Path) -> None:
    """`spark read` says so when PySpark is missing."""
    program = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['py4j'] = None\n"
        "sys.argv[1:] = ['spark', 'read', 't', '--bootstrap', 'h:1', '--output', 'x']\n"
        "from kafka08.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert 1 == done.returncode
    assert "Traceback" not in done.stderr
    assert "which is not installed" in done.stderr


@pytest.mark.parametrize("library", ["click", "gevent"])
def test_an_entry_point_names_its_extra(tmp_path: Path, library: str) -> None:
    """The command without click, and a broker without gevent, name their extras. The plain install
    has neither."""
    (tmp_path / "b.properties").write_text("broker.id=1\nzookeeper.connect=h:1\n")
    module, extra = {"click": ("cli", "cli"), "gevent": ("broker.process.main", "broker")}[library]
    program = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"sys.argv[1:] = ['b.properties']\n"
        f"from kafka08.{module} import main\nsys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert 1 == done.returncode
    assert "Traceback" not in done.stderr
    assert f"this needs {library}, which is not installed" in done.stderr
    assert f"pip install 'kafka08[{extra}]'" in done.stderr


def test_another_missing_module_is_a_bug() -> None:
    """Any other missing module is a bug and keeps its stack trace."""
    assert missing_extra(ModuleNotFoundError("no", name="kafka08.nonsense")) is None


def test_a_mistyped_name_has_a_near_one(kafka08: Commands, inspect: Inspector) -> None:
    """The error for an unknown topic or group has the nearest name in the cluster."""
    topic = group = inspect.create_topic("nearby-name")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    for line in (
        "topic describe nearby-naem",
        "topic delete nearby-naem",
        "topic alter nearby-naem --partitions 3",
        "group describe nearby-naem",
        "offsets get nearby-naem",
        "offsets lag nearby-naem",
    ):
        done = kafka08.refused(*line.split())
        assert 1 == done.code
        assert "did you mean nearby-name?" in done.err, line


def test_unknown_offsets_have_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """`topic offsets` names each partition whose offset is unknown, and says once what to do."""
    down = LeaderNotAvailable("no leader")
    assert FAILED == report_unknown({TopicPartition("t", n): [[7], down] for n in range(2)})
    err = capsys.readouterr().err
    assert [1, 1] == [err.count(f"Unknown: [t,{n}]: {down}") for n in range(2)]
    assert 1 == err.count(f"Try: {ADVICE[LeaderNotAvailable]}")
    assert 0 == report_unknown({TopicPartition("t", 0): [[7]]})


@pytest.mark.parametrize("command", ["topic list", "group list", "doctor", "consume t"])
def test_another_servers_address_is_named(kafka08: Commands, command: str) -> None:
    """ZooKeeper given as a broker: the advice says so, and where each address belongs. (`consume`
    tried for ever.)"""
    zookeeper = kafka08.cluster.zookeeper.connect_string
    done = kafka08.refused(*command.split(), "--bootstrap", zookeeper)
    assert 1 == done.code
    advised = "kafka08 doctor" if command == "group list" else f"{zookeeper} is a ZooKeeper server"
    assert advised in done.err.partition("Try: ")[2]


def test_a_broker_is_no_zookeeper(kafka08: Commands) -> None:
    """The advice says so, without the wait for a session."""
    [broker, *_] = kafka08.cluster.bootstrap.split(",")
    done = kafka08.refused("topic", "list", "--zookeeper", broker)
    assert "closes the connection without a reply" in done.err
    assert "within" not in done.err
    assert f"Try: {broker} is a Kafka broker" in done.err


def test_tls_and_its_absence_are_named(kafka08: Commands, tmp_path: Path) -> None:
    """The advice names security.protocol, whichever side speaks TLS."""
    with SecuredPort(("127.0.0.1", 1), tls=server_context()) as port:
        at = host_port(*port.address)
        done = kafka08.refused("topic", "list", "--bootstrap", at)
    assert f"{at} speaks TLS" in done.err
    assert "set security.protocol" in done.err.partition("Try: ")[2]
    [broker, *_] = kafka08.cluster.bootstrap.split(",")
    (tmp_path / "c").write_text("security.protocol=SSL\n")
    done = kafka08.refused(
        "topic", "list", "--bootstrap", broker, "--command-config", tmp_path / "c"
    )
    assert f"Try: {broker} is a listener without TLS" in done.err


@pytest.mark.parametrize(
    ("line", "act"),
    [
        ("topic create acts", "kafka08 topic describe TOPIC"),
        ("topic create new --replication-factor 9", "kafka08 broker list"),
        ("topic alter acts --partitions 1", "give more partitions than"),
        ("topic list --zookeeper {zookeeper}/absent", "with its chroot"),
        ("broker ping 127.0.0.1:1", "check that a broker is running"),
        ("perf produce --topics acts --messages 1 --bootstrap 127.0.0.1:1", "check that a broker"),
    ],
)
def test_each_failure_has_an_act(
    kafka08: Commands, inspect: Inspector, line: str, act: str
) -> None:
    """Behind cause and place there is one thing to do."""
    if not inspect.store.assignments(["acts"]):
        inspect.create_topic("acts")
    line = line.format(zookeeper=kafka08.cluster.zookeeper.connect_string)
    done = kafka08.refused(*line.split())
    assert 1 == done.code
    assert act in done.err.partition("Try: ")[2]
