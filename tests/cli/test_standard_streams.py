"""Standard streams that the parent process has closed, or whose encoding lacks letters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Commands, Inspector


@pytest.mark.parametrize("words", ["topic list", "broker list --json", "--help", "--version"])
def test_lost_output_is_a_failure(kafka08: Commands, inspect: Inspector, words: str) -> None:
    """With `>&-` the output is lost, as on a full disk. (Python drops it, and the exit code was
    0.)"""
    inspect.create_topic(f"closed-{abs(hash(words))}")
    for redirection, why in (
        (">&-", "standard output is closed"),
        (">/dev/full", "No space left on device"),
    ):
        done = kafka08.shell(f"kafka08 {words} {redirection}")
        assert (1, f"Error: {why}\n") == (done.code, done.err)


def test_a_command_that_prints_nothing_needs_no_stdout(
    kafka08: Commands, inspect: Inspector
) -> None:
    """Nor stdin; and a reader that ends early is no error of its own."""
    topic = inspect.create_topic("unprinted")
    done = kafka08.shell(f"echo a | kafka08 produce {topic} >&-")
    assert (0, f"Sent 1 message to {topic}\n") == (done.code, done.err)
    done = kafka08.shell("kafka08 top --once <&- | true")
    assert "" == done.err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_socket_becomes_a_standard_stream(closed: str) -> None:
    """The next descriptor is 3 or above: what a library writes to descriptor 1 or 2 would be sent
    to a broker."""
    program = (
        "import socket, sys; from kafka08.cli.standard_streams import open_closed_streams; "
        "open_closed_streams(); sys.exit(socket.socket().fileno())"
    )
    shell = f'exec "{sys.executable}" -c "{program}" {closed}'
    assert subprocess.run(["bash", "-c", shell], check=False).returncode >= 3


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("show('größe 漢')", b"gr\xf6\xdfe \\u6f22\n"),
        ("pass_on('größe 漢\\n')", "größe 漢\n".encode()),
    ],
)
def test_a_locale_without_a_letter_ends_no_command(call: str, written: bytes) -> None:
    """What people read is escaped, as `group list` of a name; what programs read, such as
    `metrics`, is UTF-8 everywhere. (Both ended in a traceback.)"""
    program = (
        "from kafka08.cli.standard_streams import escape_what_stdout_lacks; "
        f"from kafka08.cli.echo import pass_on, show; escape_what_stdout_lacks(); {call}"
    )
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=60)
    assert done.stdout == written
