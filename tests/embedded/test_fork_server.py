"""Servers that are forked: each is a process as if it had been executed, and none remains."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kafka08.embedded import EmbeddedCluster, fork_server
from kafka08.embedded.fork_server import ForkServer
from tests.embedded.test_process import state_of
from tests.waiting import until


def test_forked_brokers_share_nothing() -> None:
    """No socket, pipe or file is open in two brokers, or in one and the process that forked it,
    which has no thread and no event loop; what output and input go to is not theirs alone."""
    with EmbeddedCluster(brokers=2) as cluster:
        server = server_of("broker")
        pids = [server, *(broker.process.pid or 0 for broker in cluster.brokers)]
        # Each broker opens the cluster's log of matches itself.
        log = str(cluster.data_dir / "faults" / "matches")
        opened = [open_things(pid) - {log} for pid in pids]
        assert len(opened[0] | opened[1] | opened[2]) == sum(map(len, opened))
        assert all(any("eventpoll" in what for what in one) for one in opened[1:])
        assert not any("eventpoll" in what for what in opened[0])
        assert 1 == len(list(Path(f"/proc/{server}/task").iterdir()))
        assert all(os.getsid(pid) == pid for pid in pids)


def test_a_forked_server_imports_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it needs was imported before the fork, but for small parts of gevent and kazoo. With
    PYTHONPROFILEIMPORTTIME a process says what it imports."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with EmbeddedCluster(brokers=1) as cluster:
        cluster.create_topic("t")
        lines = [line for process in cluster.processes for line in read_log(process.log)]
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    assert not {name for name in imported if not name.startswith(("gevent.", "kazoo."))}


def read_log(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_forked_brokers_draw_other_numbers() -> None:
    """Random sources are seeded again in each process: two brokers that drew the same ids would be
    one to others."""
    program = """
        import os, random, uuid
        fork = os.fork
        from kafka08.broker.process.main import import_broker
        import_broker()
        for _ in range(2):
            if not fork():
                from kafka08.runtime.greenlets import GeventRuntime
                drawn = random.random(), uuid.uuid4(), GeventRuntime().random.random()
                os.write(1, " ".join(map(str, [*drawn, ""])).encode())
                os._exit(0)
        import time
        from gevent.monkey import get_original
        for _ in range(2):
            get_original("os", "wait")()
    """
    drawn = run(program).split()
    assert len(drawn) == len(set(drawn)) == 6


def test_the_end_of_the_fork_server_ends_its_brokers() -> None:
    """However it ends, and a cluster whose brokers died starts them again by the next one."""
    with EmbeddedCluster(brokers=1) as cluster:
        broker = cluster.brokers[0]
        pid = broker.process.pid
        server = server_of("broker")
        os.kill(server, signal.SIGKILL)
        until(lambda: not broker.running, "the broker ended")
        until(lambda: not state_of(pid or 0), "its process is gone")
        assert broker.process.exit_code == -signal.SIGKILL
        cluster.restart(0)
        assert server_of("broker") != server


@pytest.mark.parametrize("moment", ["starting", "started"])
def test_no_fork_server_outlives_its_parent(moment: str, tmp_path: Path) -> None:
    """A kill -9 of the parent ends it, also while it imports and brokers wait to be forked, and
    while a process that the parent has forked lives on; nothing stays in the directory."""
    program = f"""
        import os, signal, sys, tempfile, threading, time, warnings
        warnings.simplefilter("ignore")  # Python 3.12: a fork beside threads
        tempfile.tempdir = {str(tmp_path)!r}
        from kafka08.embedded import EmbeddedCluster, fork_server
        def end():
            pids = [server.pid for server in fork_server._current.values()]
            if not (forked := os.fork()):
                os.closerange(1, 3)
                time.sleep(100)
            print(*pids, forked, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if {moment!r} == "starting":
            started = fork_server.ForkServer.start
            def start(self, *rest):
                if len(fork_server._current) == 2 and self is fork_server._current["broker"]:
                    threading.Timer(0.05, end).start()
                return started(self, *rest)
            fork_server.ForkServer.start = start
        cluster = EmbeddedCluster(brokers=1)
        cluster.start()
        end()
    """
    *servers, forked = map(int, run(program, status=-signal.SIGKILL).split())
    try:
        assert len(servers) == 2
        until(lambda: not any(state_of(pid) for pid in servers), "the fork servers ended")
        until(lambda: not list(tmp_path.iterdir()), "the directory is gone")
        assert state_of(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_broker_gets_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that was set after the first cluster reaches the brokers of the next one; the
    fork server with the former environment ends with the last of its brokers."""
    with EmbeddedCluster(brokers=1) as first:
        former = server_of("broker")
        monkeypatch.setenv("KAFKA08_TEST_VARIABLE", "now")
        with EmbeddedCluster(brokers=1) as second:
            assert server_of("broker") != former
            environ = Path(f"/proc/{second.brokers[0].process.pid}/environ").read_bytes()
            assert b"KAFKA08_TEST_VARIABLE=now" in environ.split(b"\0")
        assert first.brokers[0].running
        assert state_of(former)
    until(lambda: not state_of(former), "the former one ended")


def test_a_fork_server_stays_for_the_next_cluster() -> None:
    """One for each kind serves all clusters of a process, whatever test sets it up."""
    with EmbeddedCluster(brokers=1):
        servers = server_of("broker"), server_of("zookeeper")
    with EmbeddedCluster(brokers=1):
        assert servers == (server_of("broker"), server_of("zookeeper"))


def test_without_a_fork_server_brokers_are_executed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If it cannot start, a warning says why, and the cluster takes longer."""
    monkeypatch.setattr(fork_server, "MODULE", "kafka08.embedded.no_such_module")
    monkeypatch.setenv("KAFKA08_TEST_VARIABLE", "so that a new one starts")
    with EmbeddedCluster(brokers=1) as cluster:
        command = Path(f"/proc/{cluster.brokers[0].process.pid}/cmdline").read_text()
    assert "kafka08.embedded.broker_process" in command
    assert "broker 0 is executed, which takes longer: " in caplog.text
    assert "no_such_module" in caplog.text


def test_a_fork_server_without_descriptors_ends_no_cluster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next broker is executed; the server goes on with those that it has."""
    with EmbeddedCluster(brokers=1) as first:
        server = server_of("broker")
        used = len(list(Path(f"/proc/{server}/fd").iterdir()))
        former = resource.prlimit(server, resource.RLIMIT_NOFILE)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (used, former[1]))
        try:
            with EmbeddedCluster(brokers=1):
                assert "does not fork: it has no descriptor left" in caplog.text
        finally:
            resource.prlimit(server, resource.RLIMIT_NOFILE, former)
        assert first.brokers[0].running
        assert server == server_of("broker")


def test_a_signal_at_the_first_moment_is_a_clean_stop(tmp_path: Path) -> None:
    """Between the fork and the broker's own handlers signals are held."""
    with EmbeddedCluster(brokers=1, data_dir=tmp_path, zookeeper="embedded") as cluster:
        broker = cluster.brokers[0]
        broker.stop()
        for _ in range(10):
            broker.start()
            assert broker.stop() == 0


def test_a_program_ends_its_fork_servers() -> None:
    """A program that has closed its clusters leaves no process, and ends without a warning."""
    program = """
        import warnings
        warnings.simplefilter("error")
        from kafka08.embedded import EmbeddedCluster, fork_server
        with EmbeddedCluster(brokers=1):
            print(*(server.pid for server in fork_server._current.values()))
    """
    pids = [int(pid) for pid in run(program).split()]
    assert len(pids) == 2
    assert not any(state_of(pid) for pid in pids)


def server_of(kind: fork_server.Kind) -> int:
    server: ForkServer = fork_server._current[kind]
    return server.pid


def open_things(pid: int) -> set[str]:
    """What a process has opened, besides standard input, output and errors."""
    links = [path.readlink() for path in Path(f"/proc/{pid}/fd").iterdir() if int(path.name) > 2]
    return {f"{pid} {link}" if str(link).startswith("anon_inode") else str(link) for link in links}


def run(program: str, status: int = 0) -> str:
    """Run a program; its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (status, "") == (done.returncode, done.stderr)
    return done.stdout
