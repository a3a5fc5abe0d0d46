"""A public name that changed still works, and says its new name."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from kafka08.cli.options import RenamedOption
from kafka08.consumer import SimpleConsumer
from kafka08.doctor import SnapshotReader
from kafka08.errors import ConfigError
from kafka08.exporter import ClusterReader, Watch
from kafka08.groups import Member
from kafka08.log import OffsetCheckpoint
from kafka08.migration import OffsetMigration
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage, Order
from tests.test_layout import ROOT


def test_the_former_name_works_and_warns(tmp_path: Path) -> None:
    """The warning points to the caller's line."""
    checkpoint = OffsetCheckpoint(tmp_path / "c")
    checkpoint.write({TopicPartition("t", 0): 5})
    with pytest.warns(DeprecationWarning, match=r"OffsetCheckpoint\.read_offsets") as warned:
        assert checkpoint.read() == {TopicPartition("t", 0): 5}
    assert warned[0].filename == __file__


@pytest.mark.parametrize(
    "owner", [ClusterReader, OffsetCheckpoint, SimpleConsumer, SnapshotReader, Watch]
)
def test_former_read_methods_have_distinct_names(owner: type) -> None:
    """The former name works for one release."""
    alias = owner.read  # type: ignore[attr-defined]
    assert alias.__wrapped__.__name__ in {
        "read_view",
        "read_offsets",
        "read_range",
        "read_snapshot",
    }


def former_reads(text: str) -> list[str]:
    """Calls of `read` of an object that the module makes of one of these classes."""
    owners = "ClusterReader|OffsetCheckpoint|SimpleConsumer|SnapshotReader|Watch"
    made = re.findall(rf"\b(\w+) = (?:{owners})\(", text)
    made += re.findall(rf"\b(?:{owners})\(.*\) as (\w+)", text)
    names = "|".join(sorted(set(made)))
    return re.findall(rf"\b(?:{names})\.read\(", text) if made else []


def test_the_package_itself_uses_the_new_names() -> None:
    """The alias goes in the next release, and what calls it would break then."""
    assert ["r.read("] == former_reads("with Watch(a, b=None) as r:\n    r.read()")
    files = [
        path
        for directory in ("kafka08", "benchmarks", "scripts", "examples")
        for path in (ROOT / directory).rglob("*.py")
    ]
    assert {} == {str(path): found for path in files if (found := former_reads(path.read_text()))}


def test_the_former_name_of_a_parameter() -> None:
    """The function gets its value; the warning has both names and the caller's line."""
    with (
        pytest.warns(
            DeprecationWarning, match="answer_patience_s .* confirmation_timeout_s"
        ) as warned,
        pytest.raises(ConfigError, match="no/group"),
    ):
        OffsetMigration(group="no/group", answer_patience_s=1)  # type: ignore[call-arg]
    assert warned[0].filename == __file__


def test_the_former_name_of_an_attribute() -> None:
    """It has the same value, with a warning."""
    order = Order(1, OffsetStorage.DUAL)
    with pytest.warns(DeprecationWarning, match=r"Member\.answer is renamed to Member\.confirmed"):
        assert Member("g_a", None, 1, confirmed=order).answer is order


def test_the_former_name_of_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the same type and default, and is not in the help; the warning goes to stderr."""

    @click.command()
    @click.option("--new", cls=RenamedOption, former="--old", type=int, default=7)
    def command(new: int) -> None:
        click.echo(repr(new))

    for words, value, warning in (
        (["--old", "5"], 5, "--old is renamed to --new"),
        (["--new", "6"], 6, ""),
        ([], 7, ""),
    ):
        command.main(words, standalone_mode=False)
        out, err = capsys.readouterr()
        assert (f"{value}\n", warning) == (out, err[: len(warning)])
        assert bool(err) == bool(warning)
    assert "--old" not in command.get_help(click.Context(command))
