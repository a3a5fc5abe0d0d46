"""Mutation testing by sample: small defects, drawn from a seed, and the tests that reach them.

Coverage with a context for each test says which tests run a line (in their own process: what only
a broker process runs is not drawn). A mutant meets those tests alone, up to MAX_TESTS of them, and
ends at the first failure.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
MAX_TESTS: Final = 40
TIMEOUT_S: Final = 300
SKIPPED: Final = ("cli", "demo", "embedded", "simulation", "spark")
"""Packages that tests run as processes, or that only tests use."""
COPIED: Final = (
    "kafka08",
    "tests",
    "benchmarks",
    "scripts",
    "docs",
    "setup.cfg",
    "pyspark_kafka08",
)
COVERAGE: Final = """\
[run]
source = kafka08
concurrency = thread, gevent
dynamic_context = test_function
data_file = {data}
"""
SWAPS: Final[dict[type[ast.AST], str]] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
"""Comparison → its mutant."""


@dataclass(frozen=True)
class Mutant:
    """One small defect: `old` at `start` of the text of `path` becomes `new`."""

    path: Path
    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {shown(self.old)} → {shown(self.new)}"


def shown(code: str) -> str:
    return " ".join(code.split())[:60]


def mutants_of(path: Path, text: str) -> Iterator[Mutant]:
    """Every mutant of a file: comparisons, `and` and `or`, `not`, numbers, conditions, and calls
    whose result nobody uses."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    encoded = text.encode()

    def made(node: ast.expr | ast.stmt, new: str) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        old = encoded[start : starts[node.end_lineno - 1] + node.end_col_offset].decode()
        return Mutant(path, node.lineno, start, old, new)

    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left, [operator], [right]) if type(operator) in SWAPS:
                swapped = SWAPS[type(operator)]
                yield made(node, f"({ast.unparse(left)} {swapped} {ast.unparse(right)})")
            case ast.BoolOp(operator, values):
                word = " or " if isinstance(operator, ast.And) else " and "
                yield made(node, "(" + word.join(f"({ast.unparse(v)})" for v in values) + ")")
            case ast.UnaryOp(ast.Not(), operand):
                yield made(node, f"({ast.unparse(operand)})")
            case ast.Constant(int(value)) if not isinstance(value, bool):
                yield made(node, str(value + 1))
            case ast.If(test=test):
                yield made(test, "True")
                yield made(test, "False")
            case ast.Expr(ast.Call()):
                yield made(node, "pass")
            case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
                yield made(value, "None")


def tests_by_line(data: Path) -> dict[tuple[str, int], list[str]]:
    """(file below the root, line) → the tests that run it, as pytest names them."""
    from coverage.numbits import numbits_to_nums

    found: dict[tuple[str, int], list[str]] = {}
    with sqlite3.connect(data) as connection:
        rows = connection.execute(
            "select file.path, context.context, numbits from line_bits "
            "join file on file.id = file_id join context on context.id = context_id"
        )
        for path, context, bits in rows:
            if (nodeid := nodeid_of(context)) is None or not path.startswith(str(ROOT)):
                continue
            for line in numbits_to_nums(bits):
                found.setdefault((str(Path(path).relative_to(ROOT)), line), []).append(nodeid)
    return found


def nodeid_of(context: str) -> str | None:
    """`tests.log.test_log.test_append` → `tests/log/test_log.py::test_append`; None if no test."""
    parts = context.split(".")
    files = [n for n, part in enumerate(parts[:-1]) if part.startswith("test_")]
    if parts[0] != "tests" or not files:
        return None
    return "/".join(parts[: files[0] + 1]) + ".py::" + "::".join(parts[files[0] + 1 :])


def measure(data: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".rc") as settings:
        settings.write(COVERAGE.format(data=data))
        settings.flush()
        run = ["-m", "coverage", "run", f"--rcfile={settings.name}", "-m", "pytest", "-q"]
        chosen = ["--tier", "test", "-m", "not interop", "-p", "no:cacheprovider", "tests"]
        left_out = [f"--ignore=tests/{name}" for name in (*SKIPPED, "integration", "docs")]
        subprocess.run([sys.executable, *run, *chosen, *left_out], cwd=ROOT, check=False)


def draw(count: int, seed: int, reached: dict[tuple[str, int], list[str]]) -> list[Mutant]:
    """`count` mutants on lines that a test reaches, spread over the packages by their size."""
    mutants = [
        mutant
        for path in sorted({path for path, _ in reached})
        if path.split("/")[1] not in SKIPPED
        for mutant in mutants_of(Path(path), (ROOT / path).read_text())
        if (path, mutant.line) in reached
    ]
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def is_killed(mutant: Mutant, tests: list[str], copy: Path) -> bool:
    """Whether one of the tests fails on a copy of the project that has the defect."""
    path = copy / mutant.path
    original = path.read_bytes()
    end = mutant.start + len(mutant.old.encode())
    path.write_bytes(original[: mutant.start] + mutant.new.encode() + original[end:])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True  # it waits for ever, which a test run notices
    finally:
        path.write_bytes(original)
    return done.returncode != 0


def main() -> int:
    made = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    made.add_argument("--count", type=int, default=60)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--coverage", type=Path, default=ROOT / ".coverage.mutants")
    options = made.parse_args()
    if not options.coverage.exists():
        measure(options.coverage)
    reached = tests_by_line(options.coverage)
    survivors = []
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for mutant in draw(options.count, options.seed, reached):
            tests = sorted(set(reached[str(mutant.path), mutant.line]))
            some = sorted(chance.sample(tests, min(MAX_TESTS, len(tests))))
            killed = is_killed(mutant, some, copy)
            print("killed  " if killed else "SURVIVED", mutant, f"({len(some)} tests)", flush=True)
            if not killed:
                survivors.append(mutant)
    print(f"{len(survivors)} of {options.count} survived, seed {options.seed}:")
    print(*survivors, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
