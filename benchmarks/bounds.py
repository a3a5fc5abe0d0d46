"""Bounds: what no broker can avoid, so that a figure has a measure that is not the JVM's.

    .venv/bin/python -m benchmarks.bounds [--seconds 2]

bounds.c receives, checks, numbers, writes and answers, without a protocol. For compressed sets the
codecs alone are timed: a leader of 0.8 has to unpack, number and pack each set again. Compare the
CPU; the rates are those of C on a machine that runs the load generator too.

`bounds consume`, which needs a running broker and is called by hand, fetches what the readers of
consumer_cases.py fetch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks import load, scratch
from benchmarks.level_cases import FETCH_BYTES, LOG_BYTES, fetch_frame, new_set
from benchmarks.subjects import cpu_seconds
from kafka08 import kernel
from kafka08.protocol import compression, message_set

SOURCE: Final = Path(__file__).with_name("bounds.c")
KERNEL: Final = Path(kernel.__file__).parent
"""Has crc32.h, so that the sums cost the same."""
RUNS: Final[dict[str, tuple[str, ...]]] = {
    "produce, 200 partitions of 1.26 KB": ("produce", "200", "1260", "4", "4"),
    "produce, 16 KB sets": ("produce", "1", "16384", "4", "64"),
    "produce, 200 KB sets": ("produce", "1", "200000", "4", "5"),
    "the same, 20 in flight": ("produce", "1", "200000", "4", "20"),
    "three replicas, 16 KB sets": ("replicate", "16384", "12", "2"),
    "three replicas, 200 KB sets": ("replicate", "200000", "12", "2"),
    "three replicas, one in flight": ("replicate", "126", "1", "1"),
    "three leaders, 16 KB, 12 conns": ("replicate", "16384", "4", "2"),
    "three leaders, 16 KB, 6 conns": ("replicate", "16384", "2", "2"),
}
"""What is measured → the words for the program, without seconds and directory."""
LEADERS: Final = {name: 3 for name in RUNS if name.startswith("three leaders")}
"""Programs at once: as in `scripts/bench --only replicated`, each leader has a third of the
connections."""
SET_BYTES: Final = 200_000
WRAPPER_VALUE: Final = 34
"""Where the value of a wrapper of magic 1 begins that has no key."""
FETCHED_HEAD_BYTES: Final = 68
"""Before the bytes of a fetch, with the size of the frame."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.bounds", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run (default 2)")
    scratch.add_option(parser)
    options = parser.parse_args()
    with scratch.scratch(options) as directory:
        program = build(directory)
        for name, words in RUNS.items():
            figures = play(program, words, options.seconds, directory, LEADERS.get(name, 1))
            print(f"{name:36} " + "  ".join(f"{k} {v:.3f}" for k, v in figures.items()), flush=True)
        for step in ("sendfile", "map", "remap", "read"):
            rate, used = fetched(program, step, options.seconds, directory)
            name = f"fetch of 1 MB, {step}"
            print(f"{name:36} mb_per_s {rate:.0f}  s_per_gb {used:.3f}", flush=True)
    for codec, name in ((compression.SNAPPY, "snappy"), (compression.LZ4, "lz4")):
        for step, seconds in codec_steps(codec, options.seconds).items():
            print(f"{name}, {step:28} {seconds:.3f} s/GB of messages", flush=True)
    for step, seconds in conversion_steps(compression.SNAPPY, options.seconds).items():
        print(f"fetch 0, snappy, {step:19} {seconds:.3f} s/GB that is sent", flush=True)
    return 0


def play(
    program: Path, words: tuple[str, ...], seconds: float, directory: Path, at_once: int
) -> dict[str, float]:
    """Figures of so many programs together: the sum of their requests, means of the rest."""
    started = []
    for number in range(at_once):
        own = directory / str(number)
        own.mkdir(exist_ok=True)
        line = [str(program), *words, str(seconds), str(own)]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
    found = []
    for process in started:
        printed, _ = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        found.append(json.loads(printed))
    requests = sum(figures["requests"] for figures in found)
    return {
        name: requests
        if name == "requests"
        else sum(figures[name] * figures["requests"] for figures in found) / requests
        for name in found[0]
    }


def build(directory: Path) -> Path:
    """Compile bounds.c; CalledProcessError if that fails."""
    program = directory / "bounds"
    compiler = os.environ.get("CC", "cc")
    line = [compiler, "-O2", f"-I{KERNEL}", str(SOURCE), "-o", str(program)]
    subprocess.run(line, check=True)
    return program


def fetched(program: Path, step: str, seconds: float, directory: Path) -> tuple[float, float]:
    """MB/s of the responses to one connection, two fetches ahead, and CPU seconds a GB: the load of
    the case "fetch 3"."""
    line = [str(program), "fetch", str(FETCH_BYTES), str(LOG_BYTES), step, str(directory)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = f"127.0.0.1:{int(server.stdout.readline())}"
        frame = fetch_frame("t", 0, 3)
        size = FETCH_BYTES + FETCHED_HEAD_BYTES
        stream = load.Stream(address, [frame], size, 2)
        used = cpu_seconds(server.pid)
        count, took = load.drive([stream], seconds)
        used = cpu_seconds(server.pid) - used
        server.kill()
    return count * size / took / 1e6, used / (count * size) * 1e9


def codec_steps(codec: int, seconds: float) -> dict[str, float]:
    """CPU seconds a GB of messages, for each step that a leader cannot leave out."""
    packed = load.compressed_set(100, SET_BYTES, codec)
    value = packed[26:]
    entries = bytearray(compression.decompress(codec, value, 1 << 20))
    steps: dict[str, Callable[[], object]] = {
        "check of the wrapper": lambda: kernel.validate(packed, message_set.NO_LIMIT),
        "unpacking": lambda: compression.decompress(codec, value, 1 << 20),
        "numbering": lambda: kernel.validate_and_assign(
            entries, 0, message_set.NO_LIMIT, verify_crc=False
        ),
        "packing": lambda: compression.compress(codec, entries),
    }
    each = seconds / len(steps)
    figures = {name: timed(step, each) / len(entries) * 1e9 for name, step in steps.items()}
    return figures | {"together": sum(figures.values())}


def conversion_steps(codec: int, seconds: float) -> dict[str, float]:
    """CPU seconds a GB of the response, for each step of a fetch of magic 0 that cannot be left out
    where the log has compressed sets of magic 1. Each set becomes one."""
    packed = new_set(SET_BYTES, codec)
    entries = compression.decompress(codec, packed[WRAPPER_VALUE:], 1 << 20)
    output = bytearray(len(entries))
    converted = bytes(output[: kernel.convert(entries, output, 0).written])
    steps: dict[str, Callable[[], object]] = {
        "unpacking": lambda: compression.decompress(codec, packed[WRAPPER_VALUE:], 1 << 20),
        "conversion": lambda: kernel.convert(entries, output, 0),
        "packing": lambda: compression.compress(codec, converted),
    }
    each, sent = seconds / len(steps), len(compression.compress(codec, converted))
    figures = {name: timed(step, each) / sent * 1e9 for name, step in steps.items()}
    return figures | {"together": sum(figures.values())}


def timed(step: Callable[[], object], seconds: float) -> float:
    """CPU seconds of one call."""
    count, began, used = 0, time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds:
        step()
        count += 1
    return (time.process_time() - used) / count


if __name__ == "__main__":
    sys.exit(main())
