"""Bounds: what no broker can avoid, so that a figure has a measure that is not the JVM's.

    .venv/bin/python -m scripts.benchmarks.bounds [--seconds 2]

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

from kafka08 import kernel
from kafka08.protocol import compression, message_set
from scripts.benchmarks import load, scratch

SOURCE: Final = Path(__file__).with_name("bounds.c")
KERNEL: Final = Path(kernel.__file__).parent
"""Has crc32.h, so that the sums cost the same."""
RUNS: Final[dict[str, tuple[str, ...]]] = {
    "produce, 200 partitions of 1.26 KB": ("produce", "200", "1260", "4", "4"),
    "produce, 16 KB sets": ("produce", "1", "16384", "4", "64"),
    "produce, 200 KB sets": ("produce", "1", "200000", "4", "5"),
    "three replicas, 16 KB sets": ("replicate", "16384", "12", "2"),
    "three replicas, 200 KB sets": ("replicate", "200000", "12", "2"),
    "three replicas, one in flight": ("replicate", "126", "1", "1"),
}
"""What is measured → the words for the program, without seconds and directory."""
SET_BYTES: Final = 200_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts.benchmarks.bounds", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run (default 2)")
    scratch.add_option(parser)
    options = parser.parse_args()
    with scratch.scratch(options) as directory:
        program = build(directory)
        for name, words in RUNS.items():
            line = [str(program), *words, str(options.seconds), str(directory)]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
            figures = json.loads(done.stdout)
            print(f"{name:36} " + "  ".join(f"{k} {v:.3f}" for k, v in figures.items()), flush=True)
    for codec, name in ((compression.SNAPPY, "snappy"), (compression.LZ4, "lz4")):
        for step, seconds in codec_steps(codec, options.seconds).items():
            print(f"{name}, {step:28} {seconds:.3f} s/GB of messages", flush=True)
    return 0


def build(directory: Path) -> Path:
    """Compile bounds.c; CalledProcessError if that fails."""
    program = directory / "bounds"
    compiler = os.environ.get("CC", "cc")
    line = [compiler, "-O2", f"-I{KERNEL}", str(SOURCE), "-o", str(program)]
    subprocess.run(line, check=True)
    return program


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


def timed(step: Callable[[], object], seconds: float) -> float:
    """CPU seconds of one call."""
    count, began, used = 0, time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds:
        step()
        count += 1
    return (time.process_time() - used) / count


if __name__ == "__main__":
    sys.exit(main())
