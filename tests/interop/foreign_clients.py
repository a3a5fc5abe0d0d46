"""Clients that others wrote, each as a program of one shape, for brokers of ours.

    JAVA_3_9_1.run("produce", bootstrap, topic, "gzip", "0", "20")

The programs are in `programs/`. Each takes a verb, some brokers, a topic, and

    produce CODEC FIRST COUNT   sends COUNT values FIRST, FIRST + 1, …, each with the key k<value>,
                                and writes `sent COUNT` when all are acknowledged
    consume GROUP COUNT         reads as a member of GROUP from the log's start, committing as it
                                goes; leaves after COUNT messages, with 0 after SIGTERM. Writes
                                `assigned <partitions>`, `message <partition> <offset> <key> <value>
                                <timestamp>` and, at the end, `left`
    transact FIRST COUNT        under the topic's name as transactional id aborts a transaction of
                                that many messages, commits another one, and writes `aborted COUNT`
                                and `committed COUNT`
    admin GROUP                 creates the topic, lists topics and groups, describes GROUP, deletes
                                the topic; writes a line after each

They use their clients' defaults but for what `ForeignClient.settings` gives to them. What they need
comes from Maven Central, PyPI (the extra `dev`), npm and the Go module proxy, once per checkout.
Where it cannot be had a test is skipped, or fails when CI=true.

client_matrix.py tries them all at each level.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Final, NamedTuple

import pytest

from kafka08.lifecycle import Closeable
from tests.interop.jvm import (
    CACHE,
    POM_0_9_0,
    POM_0_10_2,
    TOOL_FLAGS,
    JvmMissing,
    command,
    compiled,
    guard,
)
from tests.interop.kraft_broker import POM_4_4

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "programs"
POM_3_9_1: Final = HERE / "pom-clients-3.9.1.xml"
CODECS: Final = ("none", "gzip", "snappy", "lz4")
TIMEOUT_S: Final = 60.0
LOG_BEGIN: Final = 30_000
LOG_END: Final = 1500
"""Characters of a program's log that a failure shows: how it joined its group, and its end."""
JAVA_TERMINATED: Final = 143
"""The exit code of a JVM after SIGTERM, whatever its shutdown hook has done."""

Command = Callable[[str], list[str]]
"""verb → the start of a command line."""


class Missing(Exception):
    """A client cannot be had here; says why."""


@contextmanager
def needed(client: str) -> Iterator[None]:
    """Skips the test, or fails it when CI=true, if the client cannot be had."""
    try:
        yield
    except (Missing, JvmMissing) as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{client} cannot be tried: {missing}")
        pytest.skip(f"needs {client}: {missing}")


@dataclass(frozen=True)
class ForeignClient:
    """A client in one version.

    settings    level → what its programs are told besides their arguments, `KEY=VALUE` as the
                client calls it; without the levels to which the client cannot speak
    of_verb     (level, verb) → the same, of one verb
    codecs      that it has without further libraries
    has_admin   whether there is a verb admin
    idempotent  with which `produce` is idempotent; None: it cannot be, nor transact
    committed   with which `consume` reads what is committed
    """

    name: str
    command: Command
    settings: Mapping[str, Sequence[str]]
    of_verb: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    codecs: Sequence[str] = CODECS
    has_admin: bool = True
    idempotent: Sequence[str] | None = ()
    committed: Sequence[str] = ()
    environment: Callable[[], Mapping[str, str]] = field(default=dict)

    def line(self, level: str, verb: str, *words: str) -> list[str]:
        """The command line. Raises Missing, JvmMissing."""
        settings = (*self.settings.get(level, ()), *self.of_verb.get((level, verb), ()))
        return [*self.command(verb), verb, *words, *settings]

    def run(self, level: str, verb: str, *words: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """The lines that the program wrote; AssertionError with its stderr if it failed."""
        with self.start(level, verb, *words) as program:
            return program.finished(timeout_s)

    def start(self, level: str, verb: str, *words: str) -> Program:
        """The program in the background. Skips the test, or fails it when CI=true, if the client
        cannot be had."""
        with needed(self.name):
            return Program(self.name, self.line(level, verb, *words), self.environment())

    def __str__(self) -> str:
        return self.name


class Delivered(NamedTuple):
    """A message that a program has read. `timestamp`: None of a client that knows none."""

    partition: int
    offset: int
    key: str
    value: str
    timestamp: int | None


def delivered(lines: Sequence[str]) -> list[Delivered]:
    """The messages in the output of `consume`."""
    rows = [line.split()[1:] for line in lines if line.startswith("message ")]
    return [
        Delivered(int(partition), int(offset), key, value, int(at) if at.isdecimal() else None)
        for partition, offset, key, value, at in rows
    ]


class Program(Closeable):
    """A running program; ended with the `with` block."""

    def __init__(self, name: str, line: Sequence[str], environment: Mapping[str, str]) -> None:
        self._name = name
        self._terminated = False
        self._stdout = tempfile.TemporaryFile("w+")  # noqa: SIM115 - close() closes both
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            line,
            stdout=self._stdout,
            stderr=self._stderr,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        guard().add(self._process.pid)

    def lines(self) -> list[str]:
        """The whole lines that it has written so far."""
        return _content(self._stdout).rpartition("\n")[0].splitlines()

    @property
    def assigned(self) -> int:
        """The partitions that `consume` got last."""
        counts = [line.split()[1] for line in self.lines() if line.startswith("assigned ")]
        return int(counts[-1]) if counts else 0

    def finished(self, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Its lines, once it has ended by itself."""
        wanted = {0, JAVA_TERMINATED} if self._terminated else {0}
        try:
            code: int | str = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = f"none after {timeout_s} s"
        log = _content(self._stderr)
        if len(log) > LOG_BEGIN + LOG_END:
            log = f"{log[:LOG_BEGIN]}\n…\n{log[-LOG_END:]}"
        said = f"{_content(self._stdout)[-500:]} {log}"
        assert code in wanted, f"{self._name}: exit code {code}: {said}"
        return self.lines()

    def terminate(self) -> None:
        """Ask it to leave, which SIGTERM means."""
        self._terminated = True
        self._process.terminate()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        guard().drop(self._process.pid)
        self._stdout.close()
        self._stderr.close()


def _content(file: IO[str]) -> str:
    """All of it; the position is the writer's own."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def _java(pom: Path) -> Command:
    def line(verb: str) -> list[str]:
        names = {"admin": "JavaAdmin.java", "transact": "JavaTransact.java"}
        source = PROGRAMS / names.get(verb, "JavaClient.java")
        classes = compiled(source, pom)
        return command(source.stem, flags=TOOL_FLAGS, classes=classes, pom=pom)

    return line


def _python(module: str) -> Command:
    return lambda _: [sys.executable, "-m", f"tests.interop.programs.{module}"]


def _kafkajs(_: str) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise Missing("no node in PATH (Debian: apt-get install nodejs npm)")
    return [node, str(PROGRAMS / "kafkajs_client.js")]


@cache
def node_modules() -> Mapping[str, str]:
    """Where npm has put what package.json names. Asks npm once per checkout and version of it."""
    wanted = PROGRAMS / "package.json"
    place = CACHE / f"npm-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    if not place.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise Missing("no npm in PATH (Debian: apt-get install npm)")
        fresh = place.with_suffix(f".{os.getpid()}")
        fresh.mkdir(parents=True)
        shutil.copy(wanted, fresh)
        _checked([npm, "install", "--no-audit", "--no-fund", "--silent"], fresh)
        with suppress(OSError):  # another worker was faster
            fresh.rename(place)
    return {"NODE_PATH": str(place / "node_modules")}


def _go(name: str) -> Command:
    return lambda _: [str(go_program(name))]


def go_program(name: str) -> Path:
    """One of PROGRAMS, built once per checkout and version. Missing without Go."""
    sources = sorted((PROGRAMS / name).iterdir())
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    program = CACHE / f"{name}-{version}"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            raise Missing("no go in PATH")
        fresh = program.with_suffix(f".{os.getpid()}")
        CACHE.mkdir(exist_ok=True)
        _checked([go, "build", "-o", str(fresh), "."], PROGRAMS / name)
        fresh.rename(program)
    return program


def _checked(line: Sequence[str], directory: Path) -> None:
    done = subprocess.run(
        line, cwd=directory, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode != 0:
        raise Missing(f"{' '.join(line)}: {(done.stderr or done.stdout)[-800:].strip()}")


JAVA_IDEMPOTENT: Final = ("enable.idempotence=true",)
"""Its keys, which librdkafka has as well."""
JAVA_COMMITTED: Final = ("isolation.level=read_committed",)
PYTHON_IDEMPOTENT: Final = ("enable_idempotence=True",)
PYTHON_COMMITTED: Final = ('isolation_level="read_committed"',)

CONFLUENT = ForeignClient(
    "confluent-kafka",
    _python("confluent_client"),
    {
        "0.11.0": (),
        "0.10.2": (),
        "0.9.0": ("api.version.request=false", "broker.version.fallback=0.9.0"),
    },
    # The default, 45 s, is above group.max.session.timeout.ms of 0.9.0.
    {("0.9.0", "consume"): ("session.timeout.ms=30000",)},
    idempotent=JAVA_IDEMPOTENT,
    committed=JAVA_COMMITTED,
)
KAFKA_PYTHON = ForeignClient(
    "kafka-python",
    _python("kafka_python_client"),
    {"0.11.0": (), "0.10.2": (), "0.9.0": ("api_version=(0,9)",)},
    idempotent=PYTHON_IDEMPOTENT,
    committed=PYTHON_COMMITTED,
)
AIOKAFKA = ForeignClient(
    "aiokafka",
    _python("aiokafka_client"),
    {"0.11.0": ()},
    idempotent=PYTHON_IDEMPOTENT,
    committed=PYTHON_COMMITTED,
)
JAVA_0_9_0 = ForeignClient(
    "java-0.9.0.1",
    _java(POM_0_9_0),
    {"0.11.0": (), "0.10.2": (), "0.9.0": ()},
    has_admin=False,
    idempotent=None,
)
JAVA_0_10_2 = ForeignClient(
    "java-0.10.2.2",
    _java(POM_0_10_2),
    {"0.11.0": (), "0.10.2": ()},
    has_admin=False,
    idempotent=None,
)
JAVA_3_9_1 = ForeignClient(
    "java-3.9.1",
    _java(POM_3_9_1),
    {"0.11.0": (), "0.10.2": ()},
    {("0.10.2", "produce"): ("enable.idempotence=false",)},
    idempotent=JAVA_IDEMPOTENT,
    committed=JAVA_COMMITTED,
)
JAVA_4_4_0 = ForeignClient(
    "java-4.4.0",
    _java(POM_4_4),
    {"0.11.0": ()},
    idempotent=JAVA_IDEMPOTENT,
    committed=JAVA_COMMITTED,
)
KAFKAJS = ForeignClient(
    "kafkajs",
    _kafkajs,
    {"0.11.0": (), "0.10.2": ()},
    codecs=("none", "gzip", "snappy"),
    idempotent=("idempotent=true",),
    environment=node_modules,
)
FRANZ_GO = ForeignClient(
    "franz-go",
    _go("franz_go"),
    {"0.11.0": (), "0.10.2": (), "0.9.0": ("max=0.9.0",)},
    committed=("isolation=read_committed",),
)
SARAMA = ForeignClient(
    "sarama",
    _go("sarama"),
    {"0.11.0": (), "0.10.2": ("version=0.10.2.0",)},
    idempotent=("idempotent=true",),
    committed=("isolation=read_committed",),
)

CLIENTS: Final = (CONFLUENT, KAFKA_PYTHON, JAVA_0_9_0, JAVA_0_10_2, JAVA_3_9_1, KAFKAJS)
"""Those of the tests."""
ALL: Final = (*CLIENTS, AIOKAFKA, JAVA_4_4_0, FRANZ_GO, SARAMA)
