"""A real Apache Kafka 0.8.2.2 (Scala, on the JVM) beside ours: ZooKeeper, brokers and tools.

    with JvmKafka(tmp_path, {"num.partitions": "2"}) as kafka:
        kafka.tool("kafka.admin.TopicCommand", "--list", "--zookeeper", kafka.zookeeper)
        kafka.bootstrap                     # "127.0.0.1:40213"

    JvmBroker(directory, 2, "127.0.0.1:2181/chroot").start()     # one more, in anybody's cluster

The jars come from Maven Central by `pom.xml` beside this file; where they lie is remembered in
`.jvm/` of the checkout. Every process dies with this one. Where Java, Maven or
the network is missing, `require_jvm()` skips the test, or fails it when CI=true.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.guard import Guard
from kafka08.embedded.java import find_java
from kafka08.embedded.ports import free_ports
from kafka08.embedded.process import ManagedProcess
from kafka08.errors import ConfigError
from kafka08.lifecycle import Startable
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.structs import NO_LEADER
from tests.waiting import until

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
POM_0_9_0 = HERE / "pom-0.9.0.1.xml"
POM_0_10_2 = HERE / "pom-0.10.2.2.xml"
POM_0_11 = HERE / "pom-0.11.0.3.xml"
POM_2_8 = HERE / "pom-2.8.2.xml"
POM_3_9 = HERE / "pom-3.9.1.xml"
CACHE = HERE.parent.parent / ".jvm"
ALL = "ALL-UNNAMED"
JAVA_FLAGS = (
    f"--add-opens=java.base/sun.nio.ch={ALL}",
    f"--add-exports=java.base/sun.nio.ch={ALL}",
    f"--add-opens=java.base/jdk.internal.ref={ALL}",
    f"--add-opens=java.base/java.nio={ALL}",
    "-XX:+UseSerialGC",
    f"-Dlog4j.configuration=file:{HERE / 'log4j.properties'}",
)
"""Options that 0.8.2.2 needs on Java 17 (it unmaps index buffers by reflection), and our logger."""
TOOL_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dkafka08.log.level=WARN")
SERVER_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dkafka08.log.level=INFO")
"""The quick compiler alone: a server of a test lives for seconds. Benchmarks have both."""
START_TIMEOUT_S = 60.0


class JvmMissing(Exception):
    """Java, Maven or the network is not there; says which."""


class ToolResult(NamedTuple):
    """The output of a finished tool. `rc` is its exit code."""

    rc: int
    stdout: str
    stderr: str


def require_jvm() -> None:
    """Skip the calling test if the JVM's Kafka cannot be run here; fail it when CI=true."""
    try:
        java()
        classpath()
    except JvmMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"tests against Kafka 0.8.2.2 cannot run: {missing}")
        pytest.skip(f"needs Kafka 0.8.2.2: {missing}")


@cache
def java() -> str:
    """The java executable, found as kafka08.embedded finds it."""
    try:
        return str(find_java())
    except ConfigError as error:
        raise JvmMissing(f"{error} (Debian: apt-get install openjdk-17-jre-headless)") from error


@cache
def guard() -> Guard:
    """Kills every JVM that is still running when this process is gone."""
    return Guard()


@cache
def classpath(pom: Path = POM) -> str:
    """The class path that `pom` means, 0.8.2.2's by default. Asks Maven once per checkout and
    version of the file."""
    remembered = CACHE / f"classpath-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}.txt"
    if remembered.exists():
        jars = remembered.read_text()
        if all(map(os.path.exists, jars.split(os.pathsep))):
            return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise JvmMissing("no mvn in PATH (Debian: apt-get install maven)")
    CACHE.mkdir(exist_ok=True)
    fresh = remembered.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [
            maven,
            "-B",
            "-q",
            "-f",
            str(pom),
            "dependency:build-classpath",
            f"-Dmdep.outputFile={fresh}",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise JvmMissing(f"Maven could not get the jars: {done.stdout[-800:].strip()}")
    fresh.rename(remembered)
    return remembered.read_text()


def command(
    main_class: str,
    *args: str,
    flags: Sequence[str] = TOOL_FLAGS,
    classes: Path | None = None,
    pom: Path = POM,
) -> list[str]:
    """The command line that runs `main_class`, found in `classes` or in the jars of `pom`; later
    flags win over earlier ones."""
    where = classpath(pom) if classes is None else f"{classes}{os.pathsep}{classpath(pom)}"
    return [java(), *JAVA_FLAGS, *flags, "-cp", where, main_class, *args]


def compiled(source: Path, pom: Path = POM) -> Path:
    """A directory with the classes of a Java file of ours, which is compiled with the jars of `pom`
    once per checkout and version of both. JvmMissing without a JDK."""
    version = hashlib.sha256(source.read_bytes() + pom.read_bytes()).hexdigest()[:12]
    classes = CACHE / f"{source.stem}-{version}"
    if not classes.exists():
        fresh = classes.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [
                *(java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"),
                *("-cp", classpath(pom), "-d", str(fresh), str(source)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise JvmMissing(f"{source.name} needs a JDK: {(done.stderr or done.stdout)[-800:]}")
        with suppress(OSError):  # another worker was faster
            fresh.rename(classes)
    return classes


def run_tool(
    main_class: str, *args: str, stdin: str = "", timeout_s: float = 60.0, pom: Path = POM
) -> ToolResult:
    """Run a tool of Kafka to its end; subprocess.TimeoutExpired if it does not come."""
    with subprocess.Popen(
        command(main_class, *args, pom=pom),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as tool:
        guard().add(tool.pid)
        try:
            stdout, stderr = tool.communicate(stdin, timeout_s)
        except BaseException:
            tool.kill()
            raise
        finally:
            tool.wait()
            guard().drop(tool.pid)
    return ToolResult(tool.returncode, stdout, stderr)


class JvmProcess(ManagedProcess):
    """One JVM in the background, its output in `log`; start and stop it as often as you like.

    `ready` says whether it answers yet. Stop and kill, pause and resume are ManagedProcess's.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        main_class: str,
        *args: str,
        ready: Callable[[], bool],
        flags: Sequence[str] = (),
        pom: Path = POM,
    ) -> None:
        line = command(main_class, *args, flags=(*SERVER_FLAGS, *flags), pom=pom)
        super().__init__(name, line, log=log, guard=guard())
        self._ready = ready
        self._log_start = 0

    def start(self) -> None:
        """Start and wait until it is ready; AssertionError with the end of its log if it dies."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        super().start()
        until(
            lambda: not self.running or self._ready(),
            f"start of {self.name}",
            explain=self.describe_failure,
        )
        assert self.running, self.describe_failure()

    def output(self) -> str:
        """Its output since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def knows_leaders(broker: JvmBroker, topic: str, partitions: int) -> bool:
    """Whether `broker` answers Metadata with a leader for each partition of `topic`."""
    leaders = [p.leader for t in metadata_of(broker, topic).topics for p in t.partitions]
    return len(leaders) == partitions and NO_LEADER not in leaders


def knows_brokers(broker: JvmBroker) -> bool:
    """Whether `broker` has heard of any live broker. Before, topics cannot be made by asking: from
    0.10 on their replication factor is called invalid."""
    return bool(metadata_of(broker).brokers)


def metadata_of(broker: JvmBroker, *topics: str) -> MetadataResponse:
    """The broker's Metadata response for these topics, for all if there are none."""
    with Connection("127.0.0.1", broker.port) as connection:
        response = connection.send(MetadataRequest([*topics]))
    assert isinstance(response, MetadataResponse)
    return response


def new_zookeeper(directory: Path) -> EmbeddedZooKeeper:
    """A ZooKeeper server of ours, to be started, with its port."""
    return EmbeddedZooKeeper(directory / "zookeeper", free_ports(1)[0], guard=guard())


class JvmZooKeeper(JvmProcess):
    """ZooKeeper 3.4.6, the one 0.8.2.2 ships, or that of `pom`. `connect_string` is its address."""

    def __init__(self, directory: Path, port: int | None = None, pom: Path = POM) -> None:
        self.port = port or free_ports(1)[0]
        self.connect_string = f"127.0.0.1:{self.port}"
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "zookeeper.properties"
        config.write_text(
            f"dataDir={directory / 'zookeeper'}\nclientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\ntickTime=500\nmaxClientCnxns=0\n"
            "minSessionTimeout=1000\nmaxSessionTimeout=60000\n"
            "admin.enableServer=false\n4lw.commands.whitelist=ruok\n"
        )
        super().__init__(
            "ZooKeeper",
            directory / "zookeeper.out",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(config),
            ready=self._is_ok,
            pom=pom,
        )

    def _is_ok(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"ruok")
                return probe.recv(4) == b"imok"
        except OSError:
            return False


class JvmBroker(JvmProcess):
    """A broker of 0.8.2.2, or of what `pom` says, on 127.0.0.1. `properties` are added to (and win
    over) DEFAULTS."""

    DEFAULTS: Mapping[str, str] = {
        "host.name": "127.0.0.1",
        "zookeeper.session.timeout.ms": "6000",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "1",
        "controlled.shutdown.max.retries": "1",
        "log.cleaner.dedupe.buffer.size": "2097152",
    }

    def __init__(
        self,
        directory: Path,
        broker_id: int,
        zookeeper: str,
        properties: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        pom: Path = POM,
    ) -> None:
        self.id = broker_id
        self.port = int((properties or {}).get("port", 0)) or free_ports(1)[0]
        self.log_dir = directory / f"logs-{broker_id}"
        self.address = f"127.0.0.1:{self.port}"
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / f"server-{broker_id}.properties"
        keys = {
            **self.DEFAULTS,
            **({"listeners": f"PLAINTEXT://{self.address}"} if pom == POM_3_9 else {}),
            "log.dirs": str(self.log_dir),
            **(properties or {}),
            "broker.id": str(broker_id),
            "port": str(self.port),
            "zookeeper.connect": zookeeper,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
        self.log_dir = Path(keys["log.dirs"])
        super().__init__(
            f"JVM broker {broker_id}",
            directory / f"broker-{broker_id}.out",
            "kafka.Kafka",
            str(config),
            ready=lambda: any(
                text in self.output()
                for text in (
                    f"[Kafka Server {broker_id}], started",
                    f"[KafkaServer id={broker_id}] started",
                )
            ),
            flags=flags,
            pom=pom,
        )


class JvmKafka(Startable):
    """ZooKeeper (unless one is given) and `brokers` brokers with ids 1, 2, …, as a context manager.

    zookeeper   a connect string to use instead of starting a ZooKeeper
    pom         says of which release the brokers are
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 1,
        zookeeper: str | None = None,
        pom: Path = POM,
    ) -> None:
        self._own_zookeeper = None if zookeeper else new_zookeeper(directory)
        self.zookeeper = zookeeper or (
            self._own_zookeeper.connect_string if self._own_zookeeper else ""
        )
        self.brokers = [
            JvmBroker(directory, broker_id, self.zookeeper, properties, pom=pom)
            for broker_id in range(1, brokers + 1)
        ]

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers, by commas."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self) -> None:
        if self._own_zookeeper:
            self._own_zookeeper.start()
        for broker in self.brokers:
            broker.start()

    def stop(self) -> None:
        """End everything at once. For a clean shutdown stop the brokers first."""
        for broker in self.brokers:
            broker.kill()
        if self._own_zookeeper:
            self._own_zookeeper.stop()

    def tool(
        self, main_class: str, *args: str, stdin: str = "", timeout_s: float = 60.0
    ) -> ToolResult:
        """`run_tool`; the tool is expected to succeed."""
        result = run_tool(main_class, *args, stdin=stdin, timeout_s=timeout_s)
        assert result.rc == 0, f"{main_class} {args}: {result}"
        return result

    def create_topic(self, topic: str, partitions: int = 1, replication_factor: int = 1) -> None:
        """Create by the JVM's TopicCommand, and wait until every broker knows all its leaders."""
        sizes = ["--partitions", str(partitions), "--replication-factor", str(replication_factor)]
        where = ["--zookeeper", self.zookeeper, "--topic", topic]
        self.tool("kafka.admin.TopicCommand", "--create", *where, *sizes)
        for broker in self.brokers:
            until(partial(knows_leaders, broker, topic, partitions), f"leaders of {topic}")
