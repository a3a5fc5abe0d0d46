"""Guard: ends child processes when this process ends, however it ends.

A guard is a small shell in a session of its own, which reads the ids of our child processes from a
pipe. When we end unexpectedly (kill -9, a crash), the pipe closes, and the shell kills them and
removes the temporary directory. It gets each id with the start time of its process (identity.py):
the id of a process that has ended may belong to another one by then. Unlike PR_SET_PDEATHSIG this
does not depend on the thread that started a process, needs no code before exec, and works for a
JVM.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafka08.embedded.identity import started_at
from kafka08.lifecycle import ProcessBound

_SCRIPT = """
started() {
    if read -r stat <"/proc/$1/stat"; then
        set -- ${stat##*) }
        echo "${20}"
    else
        set -- $(ps -o lstart= -p "$1")
        IFS=_
        echo "$*"
    fi
}
guarded=
while read -r word process; do
    case $word in
    add) guarded="$guarded $process" ;;
    drop)
        left=
        for p in $guarded; do [ "${p%%=*}" = "$process" ] || left="$left $p"; done
        guarded=$left ;;
    done) exit 0 ;;
    esac
done
for p in $guarded; do
    [ "$(started "${p%%=*}")" = "${p#*=}" ] && kill -9 "${p%%=*}"
done
[ -z "$1" ] || { sleep 0.2; rm -rf -- "$1"; }
"""


class Guard(ProcessBound):
    """Processes that must not outlive this one, and at most one temporary directory."""

    def __init__(self, temporary: Path | None = None) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "kafka08-guard", str(temporary or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            text=True,
            bufsize=1,
        )

    def _abandon(self) -> None:
        # The guard acts when this pipe has no writer left: a forked process must not be one.
        assert self._shell.stdin is not None
        self._shell.stdin.close()

    def add(self, pid: int) -> None:
        """Kill this process when we end; no effect if it has ended already."""
        if (started := started_at(pid)) is not None:
            self._send_line(f"add {pid}={started}")

    def drop(self, pid: int) -> None:
        """The process was waited for; its id may be reused."""
        self._send_line(f"drop {pid}")

    def close(self) -> None:
        """End the guard without killing anything."""
        if self._shell.returncode is None:
            self._send_line("done")
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.wait()

    def _send_line(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n")
