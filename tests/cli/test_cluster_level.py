"""`broker start --level-file`: the level that the brokers of a cluster share."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.cli.broker import share_level
from kafka08.cli.cluster_level import FORMER, TRACES, create, settle_level
from kafka08.errors import ConfigError
from kafka08.levels import NEWEST


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a cluster that has not started yet."""
    return tmp_path / "cluster" / "level"


@pytest.fixture(autouse=True)
def _directories(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".bashrc").touch()


def used(tmp_path: Path, trace: str = TRACES[0]) -> Path:
    """The log directory of a broker that has run."""
    (tmp_path / "used").mkdir(exist_ok=True)
    (tmp_path / "used" / trace).touch()
    return tmp_path / "used"


def test_a_new_cluster_has_the_newest_level(file: Path, tmp_path: Path) -> None:
    """The first broker writes it, and the others take it, as after a restart without the option."""
    level, why = settle_level(file, None, [tmp_path / "new"])
    assert (level, "is new" in why) == (str(NEWEST), True)
    assert settle_level(file, None, [used(tmp_path)])[0] == str(NEWEST)
    assert ["level"] == [path.name for path in file.parent.iterdir()]


@pytest.mark.parametrize("trace", TRACES)
def test_data_without_a_file_keeps_its_level(file: Path, tmp_path: Path, trace: str) -> None:
    """Brokers of 0.11.0 on volumes of 0.10.2 would write what no broker of 0.10.2 can read. Those
    that join later have no data, and get that level too."""
    level, why = settle_level(file, None, [used(tmp_path, trace)])
    assert level == FORMER
    assert "stays at level 0.10.2, that of its data. --level raises it" in why
    level, why = settle_level(file, None, [tmp_path / "new"])
    assert level == FORMER
    assert "has level 0.10.2, by" in why


def test_a_level_is_raised_for_all(file: Path, tmp_path: Path) -> None:
    """The level that one broker is given is that of the others, once they start again."""
    assert settle_level(file, "0.9.0", [used(tmp_path)])[0] == "0.9.0"
    level, why = settle_level(file, "0.11.0", [tmp_path / "new"])
    assert level == "0.11.0"
    assert "raised from 0.9.0 to 0.11.0" in why
    assert settle_level(file, None, [used(tmp_path)])[0] == "0.11.0"


def test_a_level_is_never_lowered(file: Path, tmp_path: Path) -> None:
    """A broker of a lower level cannot read the data: it does not start, and says the way out."""
    settle_level(file, None, [tmp_path / "new"])
    with pytest.raises(ConfigError, match=r"0\.10\.2, but the brokers have data of level 0\.11\.0"):
        settle_level(file, "0.10.2", [tmp_path / "new"])
    assert file.read_text() == "0.11.0\n"


def test_two_first_brokers_agree(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds no file, and another broker writes it before this one does."""

    def after_another(to: Path, level: str) -> bool:
        assert create(to, FORMER)
        return create(to, level)

    monkeypatch.setattr("kafka08.cli.cluster_level.create", after_another)
    assert settle_level(file, None, [tmp_path / "new"])[0] == FORMER
    assert ["level"] == [path.name for path in file.parent.iterdir()]


def test_a_file_of_a_later_release_is_refused(file: Path) -> None:
    """A level that this release does not know is not taken for none."""
    file.write_text("1.0.0\n")
    with pytest.raises(ConfigError, match=r"has '1\.0\.0', which is not one of 0\.8\.2, .*later"):
        settle_level(file, None, [])


def test_a_file_that_cannot_be_written_is_named(file: Path) -> None:
    """An operator learns which directory is missing, or not this user's."""
    with pytest.raises(ConfigError, match=r"--level-file: cannot use .*gone/level: no such file"):
        settle_level(file.parent / "gone" / "level", None, [])


def test_a_broker_gets_the_level_of_its_log_directories(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All directories of log.dirs count, a level in the configuration is one that was asked for,
    and one that there is not is left to the broker, which refuses it."""
    properties = {"log.dirs": f"{tmp_path / 'new'}, {used(tmp_path)}"}
    share_level(file, properties)
    assert properties["api.level"] == FORMER
    assert "stays at level 0.10.2" in capsys.readouterr().err
    share_level(file, asked := {"api.level": "0.11.0"})
    assert asked == {"api.level": "0.11.0"}
    assert file.read_text() == "0.11.0\n"
    share_level(file, wrong := {"api.level": "0.12"})
    assert wrong == {"api.level": "0.12"}
