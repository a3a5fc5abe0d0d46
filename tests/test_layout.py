"""The packages of ARCHITECTURE.md as a test: who may import whom, and what only its home may use.

A failure names the file, the import and the rule. Change the table only together with
ARCHITECTURE.md, and with a reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.in_turn import in_turn

ROOT = Path(__file__).parent.parent
NAME = re.compile(r"`(\w+)`")
COMMON = {
    "errors",
    "log_limit",
    "stop_signals",
    "structs",
    "clock",
    "config",
    "assignment",
    "hashing",
    "levels",
    "exposition",
    "extras",
    "lazy_exports",
    "lifecycle",
    "listing",
    "metrics",
    "nearest",
    "printable",
    "rate_limiter",
    "profile",
    "protocol_version",
    "runtime",
    "safety",
    "topic_config",
    "topic_name",
    "waiting",
}
CLIENT_SIDE = {"client", "protocol", "network.connection", "kernel"}

MAY_IMPORT: dict[str, set[str]] = {
    "format": set(),
    "kernel": {"format"},
    "protocol": {"format", "kernel"},
    "log": {"format", "protocol", "kernel"},
    "faults": {"protocol"},
    "network": {"protocol"},
    "runtime": {"zk"},
    "zk": set(),
    "broker": {
        "format",
        "protocol",
        "kernel",
        "log",
        "network.connection",
        "network.connection_quotas",
        "network.forwarding",
        "network.server_connection",
        "network.server",
        "zk",
    },
    "broker.settings": set(),
    "broker.cluster": set(),
    "broker.replica": set(),
    "broker.purgatory": {"broker.replica"},
    "broker.replication": {
        "broker.cluster",
        "broker.purgatory",
        "broker.replica",
        "broker.settings",
    },
    "broker.appends": {"broker.purgatory", "broker.replica", "broker.replication"},
    "broker.groups": {
        "broker.appends",
        "broker.purgatory",
        "broker.replica",
        "broker.replication",
        "broker.settings",
    },
    "broker.controller": {"broker.cluster", "broker.settings"},
    "broker.transactions": {
        "broker.appends",
        "broker.cluster",
        "broker.purgatory",
        "broker.replication",
        "broker.settings",
    },
    "broker.topics": {"broker.cluster", "broker.groups", "broker.purgatory", "broker.settings"},
    "broker.requests": {
        "broker.appends",
        "broker.cluster",
        "broker.controller",
        "broker.groups",
        "broker.purgatory",
        "broker.replica",
        "broker.replication",
        "broker.settings",
        "broker.topics",
        "broker.transactions",
    },
    "broker.process": {
        "broker.appends",
        "broker.cluster",
        "broker.controller",
        "broker.groups",
        "broker.purgatory",
        "broker.replica",
        "broker.replication",
        "broker.requests",
        "broker.settings",
        "broker.topics",
        "broker.transactions",
    },
    "client": {"protocol", "network.connection", "network.session"},
    "producer": CLIENT_SIDE | {"format", "network.session", "network.tls", "producer.old"},
    "producer.old": set(),
    "consumer": CLIENT_SIDE | {"consumer.fetching", "format", "zk"},
    "consumer.fetching": set(),
    "consumer.group": {"consumer.fetching"},
    "consumer.zookeeper": {"consumer.fetching"},
    "admin": {"client", "consumer", "network.connection", "observe", "protocol", "zk"},
    "migration": {"admin", "client", "consumer", "observe", "zk"},
    "mirror": {"admin", "client", "consumer", "observe", "producer", "protocol", "zk"},
    "observe": {"client", "format", "protocol", "network.connection", "consumer", "zk"},
    "groups": {"client", "consumer", "observe", "protocol", "zk"},
    "arrow": CLIENT_SIDE | {"consumer", "format", "zk"},
    "spark": CLIENT_SIDE | {"arrow", "format", "observe"},
    "doctor": {
        "broker.settings",
        "client",
        "consumer",
        "groups",
        "log.checkpoint",
        "log.names",
        "network.connection",
        "observe",
        "producer",
        "protocol",
        "zk",
    },
    "exporter": {"client", "consumer", "observe", "producer"},
    "pages": {"admin", "client", "consumer", "doctor", "exporter", "groups", "observe"},
    "otel": {"client", "consumer", "producer"},
    "embedded": {
        "zk",
        "admin",
        "broker.process",
        "broker.requests",
        "broker.settings",
        "faults",
        "groups",
        "network.connection",
        "network.forwarding",
        "network.server_connection",
        "observe",
        "protocol",
    },
    "simulation": {
        "admin",
        "broker",
        "client",
        "consumer",
        "log",
        "migration",
        "mirror",
        "producer",
        "protocol",
        "zk",
    },
    "demo": {"kernel", "admin", "client", "consumer", "embedded", "migration", "producer", "spark"},
    "cli": {"*"},
}
"""Package → packages (or modules) it may import, besides itself and COMMON. A package in another
(`a.b`) may also import what `a` may, and the files that lie beside it."""

HOMES: dict[str, tuple[str, ...]] = {
    "gevent": (
        *(f"kafka08/runtime/{name}.py" for name in ("greenlets", "green_stream", "green_http")),
        "kafka08/zk/kazoo_adapter/green_handler.py",
    ),
    "greenlet": ("kafka08/simulation/", "kafka08/runtime/asyncio_loop.py"),
    "kazoo": ("kafka08/zk/kazoo_adapter/",),
    "click": ("kafka08/cli/",),
    # The demo's job is a program as a user would write it.
    "pyspark": ("kafka08/spark/", "pyspark_kafka08/", "kafka08/demo/spark_reader.py"),
    "matplotlib": ("kafka08/demo/chart.py",),
    "prometheus_client": ("kafka08/exposition.py",),
    "opentelemetry": ("kafka08/otel/",),
    "cryptography": ("kafka08/client/key_stores.py",),
}
"""Library → the only places that may import it."""

REAL_WORLD = {"time", "random", "threading", "uuid", "secrets", "socket", "select", "selectors"}
"""Modules that brokers and clients reach through their Runtime alone, so that another world can
take the place of the real one."""
IN_ANY_WORLD = ("broker", "network", "client", "producer", "consumer", "zk", "admin", "migration",
                "observe", "groups", "log", "protocol", "doctor",
                "exporter", "pages", "mirror")  # fmt: skip
"""The packages that this holds for."""
REAL_WORLD_DOORS = (
    "kafka08/broker/process/main.py",
    # They wait for kazoo's own sockets.
    "kafka08/zk/kazoo_adapter/handlers.py",
    "kafka08/zk/kazoo_adapter/green_handler.py",
    # What a real ZooKeeper's port says, for an error.
    "kafka08/zk/reachability.py",
    # The server for tests is a process of its own; all of it but this and its entry point is pure.
    "kafka08/zk/server/driver.py",
    "kafka08/zk/server/__main__.py",
)
FILE_MODULES = {"shutil", "mmap", "fcntl", "tempfile", "glob", "io"}
"""Modules that brokers leave to their Disk, and with them every function of `os` and the methods
of FILE_METHODS."""
FILE_METHODS = {
    *("chmod", "exists", "expanduser", "glob", "hardlink_to", "is_dir", "is_file", "is_mount"),
    *("is_symlink", "iterdir", "lchmod", "lstat", "mkdir", "open", "read_bytes", "read_text"),
    *("readlink", "rename", "resolve", "rglob", "rmdir", "samefile", "stat", "symlink_to"),
    *("touch", "unlink", "write_bytes", "write_text"),
}
"""Methods of a Path that use the file system."""
NOT_PATHS = {"disk", "zk", "runtime", "connection", "self"}
"""Others with methods of these names: a variable or attribute so called, with or without "_"."""
ON_ANY_DISK = ("log", "broker", "network")
"""The packages that this holds for."""
GREENLETS = "kafka08.runtime.greenlets"
"""Only the entry point of a broker makes that Runtime: an import of it imports gevent."""

MODEL_MAY_IMPORT = (
    "__future__",
    "collections",
    "dataclasses",
    "enum",
    "re",
    "typing",
    "kafka08.errors",
    "kafka08.zk.errors",
    "kafka08.zk.model",
    "kafka08.zk.operations",
    "kafka08.zk.path_check",
    "kafka08.zk.zookeeper",
)
"""All that kafka08/zk/model may import."""


def sources() -> list[Path]:
    return sorted((ROOT / "kafka08").rglob("*.py")) + sorted(
        (ROOT / "pyspark_kafka08").rglob("*.py")
    )


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, which several rules read: leave it as it is."""
    return ast.parse(path.read_text())


def imports(path: Path, *, for_types: bool = True) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of every import of a file, inside functions too.

    for_types   also those that only a type checker makes
    """
    nodes = list(ast.walk(parsed(path)))
    unmade = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if not for_types and node in unmade:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: use absolute imports"
            assert node.module is not None
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def package_of(path: Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "kafka08" and len(parts) > 2 else None


def inner_package_of(path: Path) -> str | None:
    """The innermost package of MAY_IMPORT that has the file."""
    inner = ".".join(path.relative_to(ROOT).parts[1:3])
    return inner if inner in MAY_IMPORT else package_of(path)


def packages_imported(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, name, the entry of MAY_IMPORT that allows it) of each import from another package."""
    package, inner = package_of(path), inner_package_of(path)
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "kafka08" or len(parts) == 1 or parts[1] in {"__version__"} | COMMON:
            continue
        module = ".".join(parts[1:3])
        if parts[1] == package:
            if module in MAY_IMPORT and module != inner and path.name != "__init__.py":
                yield line, name, module
        else:
            yield line, name, module if module in MAY_IMPORT.get(package or "", ()) else parts[1]


@in_turn("path", sources())
def test_no_import_crosses_a_wall(path: Path) -> None:
    """A package imports only what its row of MAY_IMPORT allows."""
    package, inner = package_of(path), inner_package_of(path)
    if package is None or inner is None:
        return
    allowed = MAY_IMPORT[package] | MAY_IMPORT[inner]
    for line, name, entry in packages_imported(path):
        assert entry in allowed or "*" in allowed, (
            f"{path.relative_to(ROOT)}:{line} imports {name}, but {inner} may import only "
            f"{', '.join(sorted(allowed | COMMON))}"
        )


@in_turn("package", MAY_IMPORT)
def test_no_unused_permission(package: str) -> None:
    """Each import that a row of MAY_IMPORT permits occurs in the package."""
    used = {
        entry
        for path in sources()
        if package in {package_of(path), inner_package_of(path)}
        for *_, entry in packages_imported(path)
    }
    assert not MAY_IMPORT[package] - used - {"*"}, f"{package} may import what it does not"


def test_no_circle() -> None:
    """Packages that import each other, directly or through others, would be one package."""
    tuple(TopologicalSorter(MAY_IMPORT).static_order())


def drawn(number: int) -> dict[str, set[str]]:
    """The arrows of a flowchart in ARCHITECTURE.md."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    chart = re.findall(r"```mermaid\nflowchart TB\n(.*?)```", page, re.DOTALL)[number]
    lines = [line.strip().split(" --> ") for line in chart.splitlines()]
    return {package: set(targets.split(" & ")) for package, targets in lines}


def without_detours(packages: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no path over other packages replaces."""

    def reached(package: str) -> set[str]:
        return packages[package].union(*(reached(other) for other in packages[package]))

    shortest = {
        package: targets - set().union(*(reached(other) for other in targets))
        for package, targets in packages.items()
    }
    return {package: targets for package, targets in shortest.items() if targets}


def test_the_page_draws_the_packages() -> None:
    """The first picture of ARCHITECTURE.md has the arrows of MAY_IMPORT, without detours."""
    packages = {
        package: {entry.split(".")[0] for entry in allowed} - {package, "*"}
        for package, allowed in MAY_IMPORT.items()
        if "." not in package
    }
    assert without_detours(packages) == drawn(0)


def test_the_page_draws_the_rooms_of_the_broker() -> None:
    """The second picture of ARCHITECTURE.md has the arrows between them, without detours."""
    packages = {
        package.removeprefix("broker."): {entry.removeprefix("broker.") for entry in allowed}
        for package, allowed in MAY_IMPORT.items()
        if package.startswith("broker.")
    }
    assert without_detours(packages) == drawn(1)


TOP = """
    .ci .dockerignore .github .gitignore ARCHITECTURE.md CHANGELOG.md CODE_OF_CONDUCT.md
    CONTRIBUTING.md Dockerfile LICENSE MANIFEST.in README.md SECURITY.md benchmarks changes
    docker-compose.yml docs examples image kafka08 mkdocs.yml pyproject.toml pyspark_kafka08
    requirements-dev.lock ruff.toml scripts setup.cfg setup.py tests
"""


def test_the_top_level_has_no_other_files() -> None:
    """As git knows it: what a measurement writes into a checkout is not committed with the rest."""
    line = ["git", "-C", str(ROOT), "ls-files"]
    listed = subprocess.run(line, capture_output=True, check=True, text=True).stdout.splitlines()
    assert set(TOP.split()) == {name.partition("/")[0] for name in listed}


def test_a_package_of_rooms_has_no_other_files() -> None:
    """Each file of the broker is in one of its packages."""
    assert ["__init__.py"] == [path.name for path in (ROOT / "kafka08/broker").glob("*.py")]


def test_the_page_lists_every_module_for_all() -> None:
    """The table of ARCHITECTURE.md, COMMON and the directory name the same modules."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    table = page.partition("Every package may use these modules:")[2].partition("\n\nTwo rules")[0]
    listed = {name for row in table.splitlines() for name in NAME.findall(row[: row.find(" | ")])}
    assert {path.stem for path in (ROOT / "kafka08").glob("*.py")} - {"__init__"} == listed
    assert COMMON - {"runtime"} == listed


@in_turn("path", sources())
def test_libraries_stay_in_their_homes(path: Path) -> None:
    """gevent, kazoo, click and pyspark are imported only where HOMES says."""
    relative = str(path.relative_to(ROOT))
    for line, name in imports(path):
        homes = HOMES.get(name.split(".")[0])
        assert homes is None or relative.startswith(homes), (
            f"{relative}:{line} imports {name}; its only homes are {', '.join(homes or ())}"
        )


PRINTS = {"click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write"}
"""Calls that print text as it is, whatever a name of a cluster does to a terminal."""


@in_turn("path", sorted((ROOT / "kafka08/cli").glob("*.py")))
def test_commands_print_through_one_place(path: Path) -> None:
    """kafka08/cli/echo.py, which escapes what is not printable."""
    if path.name == "echo.py":
        return
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name | ast.Attribute):
            assert ast.unparse(node) not in PRINTS, (
                f"{path.name}:{node.lineno} prints by {ast.unparse(node)}: use show, say or "
                "pass_on of kafka08/cli/echo.py"
            )


@in_turn("path", sources())
def test_the_world_is_met_through_a_runtime(path: Path) -> None:
    """Brokers and clients take time, chance, threads and sockets from their Runtime."""
    relative = str(path.relative_to(ROOT))
    if package_of(path) not in IN_ANY_WORLD or relative in REAL_WORLD_DOORS:
        return
    for line, name in imports(path, for_types=False):
        assert name.split(".")[0] not in REAL_WORLD, (
            f"{relative}:{line} imports {name}; take it from the Runtime that you were given"
        )
        assert not name.startswith(GREENLETS), (
            f"{relative}:{line} imports {name}; only broker/process/main.py makes that Runtime"
        )


@in_turn("path", sources())
def test_files_are_met_through_a_disk(path: Path) -> None:
    """Brokers and logs take files from their Disk: no `open`, no `os`, no method of a Path that
    asks the system."""
    relative = str(path.relative_to(ROOT))
    if package_of(path) not in ON_ANY_DISK or relative in REAL_WORLD_DOORS:
        return
    for line, name in imports(path, for_types=False):
        assert name.split(".")[0] not in FILE_MODULES | {"os"}, (
            f"{relative}:{line} imports {name}; use the Disk that you were given"
        )
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name | ast.Attribute):
            assert not reaches_files(node), (
                f"{relative}:{node.lineno} uses {ast.unparse(node)}; use the Disk that you were "
                "given"
            )


def reaches_files(node: ast.Name | ast.Attribute) -> bool:
    """Whether it is the function `open`, or such a method of what may be a Path."""
    if isinstance(node, ast.Name):
        return node.id == "open"
    owner = node.value
    named = owner.attr if isinstance(owner, ast.Attribute) else ast.unparse(owner)
    return node.attr in FILE_METHODS and named.lstrip("_") not in NOT_PATHS


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("open", True),
        ("path.exists", True),
        ("self.path.stat", True),
        ("(directory / name).touch", True),
        ("path.with_suffix", False),
        ("self._disk.exists", False),
        ("disk.open", False),
    ],
)
def test_the_ban_on_files_knows_a_path_from_a_disk(code: str, is_found: bool) -> None:
    """The test distinguishes them by the name of the variable."""
    node = ast.parse(code, mode="eval").body
    assert isinstance(node, ast.Name | ast.Attribute)
    assert is_found == reaches_files(node)


@in_turn("path", sorted((ROOT / "kafka08/zk/model").glob("*.py")))
def test_the_model_of_zookeeper_is_pure(path: Path) -> None:
    """It takes time and connections from its World: no clock, chance, thread or socket, and of this
    project only the values of operations, their errors and the interface."""
    for line, name in imports(path):
        assert name.startswith(MODEL_MAY_IMPORT), f"{path.relative_to(ROOT)}:{line} imports {name}"


@in_turn("path", sources())
def test_lines_stay_readable(path: Path) -> None:
    """Files stay under 650 lines; a longer one hides a second noun."""
    assert len(path.read_text().splitlines()) <= 650, f"{path} is too long: which noun moved in?"
