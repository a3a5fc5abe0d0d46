"""Child processes: their end, their log, and that they do not outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.embedded.guard import Guard
from kafka08.embedded.ports import free_ports
from kafka08.embedded.process import ManagedProcess
from tests.waiting import until

WAIT_S = 20


def state_of(pid: int) -> str:
    """As ps has it: S, T (stopped), …; "" for a process that is gone or only waits to be reaped."""
    run = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    state = run.stdout.decode().strip()[:1]
    return "" if state == "Z" else state


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


def shell(script: str, tmp_path: Path, guard: Guard) -> ManagedProcess:
    return ManagedProcess("it", ["/bin/sh", "-c", script], log=tmp_path / "log", guard=guard)


def test_a_process_stops_by_sigterm(tmp_path: Path, guard: Guard) -> None:
    """stop() returns the exit code and may be repeated; the process can start again."""
    it = shell("trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", tmp_path, guard)
    assert (it.pid, it.exit_code, it.stop()) == (None, None, None)
    for _ in range(2):
        it.log.unlink(missing_ok=True)
        it.start()
        until(lambda: "up" in it.log_excerpt(), "the process is up")
        assert it.running
        assert it.stop() == 3
        assert it.stop() == 3
        assert it.log_excerpt() == "up\nbye"
    assert it.pid is None


def test_stop_sends_one_sigterm(tmp_path: Path, guard: Guard) -> None:
    """A second signal would end a broker at once, without closing its logs."""
    script = (
        "trap 'trap \"exit 9\" TERM; echo told; sleep 0.3; exit 5' TERM; "
        "echo up; while :; do sleep 0.01; done"
    )
    process = shell(script, tmp_path, guard)
    process.start()
    until(lambda: "up" in process.log_excerpt(), "the trap")
    process.begin_stop()
    until(lambda: "told" in process.log_excerpt(), "the first")
    assert 5 == process.stop()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, guard: Guard) -> None:
    """SIGKILL follows after the timeout; a paused process is resumed first."""
    it = shell("trap '' TERM; echo up; while :; do sleep 0.05; done", tmp_path, guard)
    it.start()
    until(lambda: "up" in it.log_excerpt(), "the process is up")
    it.pause()
    assert it.stop(timeout=0.2) == -signal.SIGKILL


def test_a_paused_process_is_resumed(tmp_path: Path, guard: Guard) -> None:
    """pause() and resume() send SIGSTOP and SIGCONT."""
    it = shell("sleep 60", tmp_path, guard)
    it.start()
    assert it.pid is not None
    pid = it.pid
    it.pause()
    until(lambda: state_of(pid) == "T", "it is stopped")
    it.resume()
    until(lambda: state_of(pid) != "T", "it goes on")
    it.kill()
    assert it.exit_code == -signal.SIGKILL


def test_a_process_that_ended_by_itself_has_no_id(tmp_path: Path, guard: Guard) -> None:
    """After the process ended its id is None, since another process may get that id."""
    it = shell("exit 7", tmp_path, guard)
    it.start()
    until(lambda: it.pid is None, "it ended")
    assert it.exit_code == 7


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path, guard: Guard) -> None:
    """The error has the name, the exit code, the log file and its last lines."""
    it = shell("for i in 1 2 3; do echo line $i; done; exit 7", tmp_path, guard)
    it.start()
    until(lambda: not it.running, "it ended")
    text = it.describe_failure()
    assert text.startswith("it ended with exit code 7; the end of ")
    assert text.endswith("line 1\nline 2\nline 3")
    assert it.log_excerpt(lines=1) == "line 3"
    it.stop()


def test_a_process_has_its_own_session(tmp_path: Path, guard: Guard) -> None:
    """Ctrl-C in the terminal reaches the parent's process group alone."""
    it = shell("sleep 60", tmp_path, guard)
    it.start()
    assert it.pid is not None
    assert os.getsid(it.pid) == it.pid != os.getsid(0)
    it.kill()


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(1)", "sys.exit()"])
def test_no_process_outlives_its_parent(tmp_path: Path, end: str) -> None:
    """If the parent is killed, crashes or just exits, the child and the temporary directory go
    too."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / "file").touch()
    program = f"""
        import os, sys, warnings
        from pathlib import Path
        from kafka08.embedded.guard import Guard
        from kafka08.embedded.process import ManagedProcess
        guard = Guard(temporary=Path(sys.argv[1]))
        log = Path(sys.argv[1] + ".log")
        keep = ManagedProcess("it", ["/bin/sleep", "600"], log=log, guard=guard)
        gone = ManagedProcess("it", ["/bin/sleep", "600"], log=log, guard=guard)
        keep.start()
        gone.start()
        gone.kill()
        print(keep.pid, flush=True)
        {end}
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(temporary)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    pid = int(run.stdout)
    until(lambda: not state_of(pid), "the child is gone")
    until(lambda: not temporary.exists(), "the directory is gone")


def test_the_guard_checks_the_start_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ended by itself stays in the guard's list. If another process with another
    start time has its id, the guard does not kill that."""
    guard = Guard()
    with (
        subprocess.Popen(["/bin/sleep", "60"]) as guarded,
        subprocess.Popen(["/bin/sleep", "60"]) as stranger,
    ):
        guard.add(guarded.pid)
        monkeypatch.setattr("kafka08.embedded.guard.started_at", lambda _: "1")
        guard.add(stranger.pid)
        assert guard._shell.stdin is not None
        guard._shell.stdin.close()
        assert guarded.wait(WAIT_S) == -signal.SIGKILL
        guard._shell.wait(WAIT_S)
        assert stranger.poll() is None
        stranger.kill()


def test_free_ports_differ_and_are_free() -> None:
    """Free ports lie below the range of outgoing connections, which therefore take none of them."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(10_000 <= port < 60_000 for port in ports)
