"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.embedded.test_process import state_of
from tests.waiting import until

COMMAND = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
INI = "[pytest]\nkafka08_brokers = 1\nkafka08_config =\n    num.partitions=2\n"


def environ() -> dict[str, str]:
    """Ours, without what pytest-xdist and pytest tell the processes below them."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}


def write(tmp_path: Path, source: str) -> None:
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "test_it.py").write_text(textwrap.dedent(source))


def run(tmp_path: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    write(tmp_path, source)
    return subprocess.run(
        [*COMMAND, *options],
        cwd=tmp_path,
        env=environ(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_each_test_gets_a_new_topic_and_a_healed_cluster(tmp_path: Path) -> None:
    """One cluster serves all tests of a session; a failure shows what the brokers logged during the
    test."""
    result = run(
        tmp_path,
        """
        import pytest
        from kafka08.admin import AdminClient

        def partitions(cluster, topic):
            with AdminClient(cluster.zookeeper.connect_string) as admin:
                return len(admin.describe_topics([topic])[0].partitions)

        def test_first(kafka08_cluster, kafka08_topic):
            assert kafka08_topic == "test-first-0"
            assert partitions(kafka08_cluster, kafka08_topic) == 1

        @pytest.mark.kafka08_topic(partitions=3)
        @pytest.mark.parametrize("x", [1])
        def test_killer(kafka08_cluster, kafka08_topic, x):
            assert partitions(kafka08_cluster, kafka08_topic) == 3
            kafka08_cluster.kill(kafka08_cluster.leader_of(kafka08_topic))

        @pytest.mark.kafka08_topic(4)
        def test_that_fails(kafka08_cluster, kafka08_topic):
            assert partitions(kafka08_cluster, kafka08_topic) == 4
            assert kafka08_cluster.leader_of(kafka08_topic).running
            raise AssertionError("on purpose")

        def test_without_a_cluster():
            raise AssertionError("on purpose")
        """,
    )
    assert "2 failed, 2 passed" in result.stdout, result.stdout
    assert result.stdout.count("kafka08 cluster in ") == 1
    shown = result.stdout.partition("kafka08 cluster in ")[2]
    assert "Created log for partition [test-that-fails-2,0]" in shown
    assert "Created log for partition [test-first-0,0]" not in shown


@pytest.mark.parametrize(
    ("argument", "options", "started"),
    [("kafka08_cluster", (), 2), ("", (), 0), ("kafka08_cluster", ("--collect-only",), 0)],
)
def test_brokers_are_imported_while_other_tests_run(
    argument: str, options: tuple[str, ...], started: int, tmp_path: Path
) -> None:
    """The fork servers start when a collected test needs a cluster, and for no other reason."""
    (tmp_path / "conftest.py").write_text(
        "from kafka08.embedded import fork_server\n"
        "def pytest_sessionfinish():\n"
        "    print('started:', len(fork_server._current))\n"
    )
    source = f"""
        import pytest

        def test_other():
            pytest.exit("enough")

        def test_it({argument}):
            pass
        """
    result = run(tmp_path, source, *options)
    assert f"started: {started}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("partitions='x'", "partitions='x' is not a number; give 1 or more"),
        ("1, 0", "replication_factor=0 is not a number; give 1 or more"),
        ("1, 1, {}, 4", "it takes partitions, replication_factor, config, not 4 arguments"),
        ("2, partitions=2", "partitions is given twice"),
        ("config='retention.ms=1'", "config='retention.ms=1' is not a dict of topic overrides"),
        ("count=1", "count is none of its arguments partitions, replication_factor, config"),
    ],
)
def test_a_wrong_argument_of_the_marker_is_named(arguments: str, says: str, tmp_path: Path) -> None:
    """With the marker and the test, and no traceback."""
    result = run(
        tmp_path,
        f"""
        import pytest
        from types import SimpleNamespace

        @pytest.fixture
        def kafka08_cluster():
            return SimpleNamespace(brokers=[])

        @pytest.mark.kafka08_topic({arguments})
        def test_it(kafka08_topic):
            pass
        """,
    )
    assert f"@pytest.mark.kafka08_topic of test_it.py::test_it: {says}" in result.stdout
    assert "Traceback" not in result.stdout
    assert "create_topic" not in result.stdout


def test_a_topic_outlives_its_leader(tmp_path: Path) -> None:
    """Each broker has a replica, unless the marker sets another replication factor: the topic
    accepts writes after its leader is killed."""
    result = run(
        tmp_path,
        """
        import pytest
        from kafka08.producer import KeyedMessage, Producer, ProducerConfig

        def send(cluster, topic):
            keys = {"metadata.broker.list": cluster.bootstrap, "request.required.acks": "-1",
                    "message.send.max.retries": "50"}
            with Producer(ProducerConfig(keys)) as producer:
                producer.send([KeyedMessage(topic, b"value")])

        def test_plain(kafka08_cluster, kafka08_topic):
            kafka08_cluster.kill(kafka08_cluster.leader_of(kafka08_topic))
            send(kafka08_cluster, kafka08_topic)

        @pytest.mark.kafka08_topic(2)
        def test_marked(kafka08_cluster, kafka08_topic):
            kafka08_cluster.kill(kafka08_cluster.leader_of(kafka08_topic, 1))
            send(kafka08_cluster, kafka08_topic)

        @pytest.mark.kafka08_topic(1, 1)
        def test_of_one_replica(kafka08_cluster, kafka08_topic):
            assert kafka08_cluster.followers_of(kafka08_topic) == []
        """,
        "-o",
        "kafka08_brokers=2",
    )
    assert "3 passed" in result.stdout, result.stdout


def test_a_cluster_that_cannot_be_healed_is_one_error(tmp_path: Path) -> None:
    """The test that broke the cluster gets the error; fixtures are torn down and the next test
    runs."""
    result = run(
        tmp_path,
        """
        def test_breaks_it(kafka08_cluster, monkeypatch):
            def fail():
                raise RuntimeError("cannot heal")
            monkeypatch.setattr(kafka08_cluster, "heal", fail)

        def test_next(kafka08_cluster):
            kafka08_cluster.heal()
        """,
    )
    assert "2 passed, 1 error" in result.stdout, result.stdout
    assert "RuntimeError: cannot heal" in result.stdout


def test_logs_are_kept_on_request(tmp_path: Path) -> None:
    """With an option the output of each process is kept when its directory goes."""
    source = "def test_it(kafka08_cluster): kafka08_cluster.kill(0)"
    assert run(tmp_path, source, "--kafka08-logs", "logs").returncode == 0
    [cluster] = (tmp_path / "logs").iterdir()
    assert sorted(log.name for log in cluster.iterdir()) == ["ZooKeeper.log", "broker-0.log"]
    assert "started (kafka.server.KafkaServer)" in (cluster / "broker-0.log").read_text()


def test_an_impossible_configuration_is_an_error(tmp_path: Path) -> None:
    """A test that was skipped for a mistake would be missed."""
    source = "def test_it(kafka08_cluster): pass"
    refused = run(tmp_path, source, "-o", "kafka08_config=listeners=PLAINTEXT://:1")
    assert refused.returncode == 1
    assert "listeners: each broker has its own port" in refused.stdout


@pytest.mark.parametrize("brokers", ["x", "0", "-1"])
def test_an_invalid_number_of_brokers_is_misuse(tmp_path: Path, brokers: str) -> None:
    """The error has key and value, and comes before any test runs."""
    result = run(tmp_path, "def test_it(): pass", "-o", f"kafka08_brokers={brokers}")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: kafka08_brokers: '{brokers}' is not a number of brokers" in result.stderr


def test_an_invalid_level_is_misuse(tmp_path: Path) -> None:
    """The error lists the levels, and comes before anything starts."""
    result = run(tmp_path, "def test_it(): pass", "-o", "kafka08_level=0.10.1")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    expected = "ERROR: kafka08_level: '0.10.1' is not one of 0.8.2, "
    assert expected in result.stderr
    test = "def test_it(kafka08_cluster): pass"
    keys = ("-o", "kafka08_level=0.9.0", "-o", "kafka08_config=api.level=0.8.2")
    result = run(tmp_path, test, *keys)
    assert "1 error" in result.stdout, result.stdout
    assert "level: '0.9.0', but api.level is '0.8.2' in config" in result.stdout


def test_workers_of_xdist_have_clusters_of_their_own(tmp_path: Path) -> None:
    """Tests that run at the same time do not see each other's faults."""
    result = run(
        tmp_path,
        """
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        def test_one(kafka08_cluster, kafka08_topic, n, worker_id):
            with open(f"{worker_id}.txt", "a") as addresses:
                addresses.write(kafka08_cluster.bootstrap)
        """,
        "-n2",
        "--dist=each",
    )
    assert "4 passed" in result.stdout, result.stdout
    assert len({path.read_text() for path in tmp_path.glob("gw*.txt")}) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_remains_of_an_interrupted_run(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C in a test ends in a clean stop; after a killed pytest the guard cleans up."""
    write(
        tmp_path,
        """
        import time
        def test_waits(kafka08_cluster):
            processes = [*kafka08_cluster.processes, kafka08_cluster._relay]
            with open("pids.part", "w") as file:
                print(*(p.pid for p in processes), kafka08_cluster.data_dir, file=file)
            __import__("os").rename("pids.part", "pids")
            time.sleep(100)
        """,
    )
    with subprocess.Popen(
        COMMAND,
        cwd=tmp_path,
        env=environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as pytest_run:
        until((tmp_path / "pids").exists, "the test runs")
        *pids, directory = (tmp_path / "pids").read_text().split()
        assert len(pids) == 3
        os.killpg(pytest_run.pid, number)
        pytest_run.wait(30)
    until(lambda: not any(state_of(int(pid)) for pid in pids), "all processes ended")
    until(lambda: not Path(directory).exists(), "the directory is gone")


def test_the_plugin_imports_no_client() -> None:
    """Every pytest of an environment with kafka08 loads the plugin, which imports no client, no
    kazoo and no gevent."""
    program = "import sys, kafka08.embedded.pytest_plugin; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in loaded if name.startswith("kafka08")}
    assert ours == {"kafka08", "kafka08.embedded", "kafka08.embedded.pytest_plugin"}
    assert not {"kazoo", "gevent", "click"}.intersection(loaded)


def test_one_test_runs_at_several_levels(tmp_path: Path) -> None:
    """The marker goes before the ini key; one cluster for each level serves all its tests."""
    (tmp_path / "pytest.ini").write_text(INI + "kafka08_levels = 0.9.0 0.10.2\n")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import pytest
            from kafka08.network.connection import Connection
            from kafka08.protocol.api_versions import ApiVersionsRequest

            seen = []

            def level(cluster):
                [line] = [l for l in (cluster.data_dir / "broker-0" / "server.properties")
                          .read_text().splitlines() if l.startswith("api.level=")]
                seen.append((id(cluster), line[10:]))
                return line[10:]

            @pytest.mark.kafka08_levels("0.8.2", "0.10.2")
            def test_marked(kafka08_cluster, kafka08_topic, request):
                assert level(kafka08_cluster) == request.node.callspec.params["kafka08_cluster"]

            def test_plain(kafka08_cluster, kafka08_topic, request):
                assert level(kafka08_cluster) in ("0.9.0", "0.10.2")

            def test_without():
                assert 4 == len(seen)
                assert 3 == len(set(seen))
            """
        )
    )
    command = [*COMMAND, "-v"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environ(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("'0.10.1'", "'0.10.1' is not one of 0.8.2, 0.9.0, 0.10.2, 0.11.0"),
        ("'0.8.2', '0.8.2'", "a level is given twice"),
        ("", "give levels alone"),
        ("levels='0.8.2'", "give levels alone"),
    ],
)
def test_a_wrong_level_of_the_marker_is_named(arguments: str, says: str, tmp_path: Path) -> None:
    """At collection, before anything starts."""
    result = run(
        tmp_path,
        f"""
        import pytest

        @pytest.mark.kafka08_levels({arguments})
        def test_it(kafka08_cluster):
            pass
        """,
    )
    assert f"@pytest.mark.kafka08_levels of test_it.py::test_it: {says}" in result.stdout
    assert "1 error" in result.stdout


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("kafka08_levels = 0.8.2 1.0", "kafka08_levels: '1.0' is not one of"),
        ("kafka08_levels = 0.8.2\nkafka08_level = 0.9.0", "give one of them"),
    ],
)
def test_wrong_levels_of_the_configuration_are_named(lines: str, says: str, tmp_path: Path) -> None:
    """A usage error, as for any wrong key."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{lines}\n")
    done = subprocess.run(
        COMMAND, cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False
    )
    assert says in done.stderr
    assert 4 == done.returncode
