"""The level of the cluster of docker-compose.yml: what is new has the newest one, and volumes that
were made at another level keep it until it is raised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.compose.project import BROKERS

if TYPE_CHECKING:
    from tests.compose.project import ComposeProject

LEVEL = "KAFKA08_LEVEL"


@pytest.fixture(autouse=True)
def new(project: ComposeProject) -> Iterator[None]:
    """A cluster of its own before and after each test."""
    project.down(volumes=True)
    yield
    project.environ.pop(LEVEL, None)
    project.down(volumes=True)
    project.up()


def start(project: ComposeProject, level: str = "") -> datetime:
    """Start the brokers with this KAFKA08_LEVEL; when they began."""
    began = datetime.now(UTC)
    project.environ[LEVEL] = level
    project.up()
    return began


def await_said(project: ComposeProject, text: str, began: datetime) -> None:
    for broker in BROKERS:
        project.await_logged(broker, text, began)


def test_a_new_cluster_has_the_newest_level(project: ComposeProject) -> None:
    """An idempotent producer works, which needs record batches; after a restart nothing differs."""
    await_said(project, "has level 0.11.0", start(project))
    project.kafka08("topic", "create", "t", "--replication-factor=3")
    project.kafka08(
        "produce", "t", "--override=enable.idempotence=true", "--new-producer", text="a\n"
    )
    project.down(volumes=False)
    await_said(project, "has level 0.11.0, by", start(project))
    assert project.kafka08("consume", "t", "--from-beginning", "--max-messages=1") == "a\n"


def test_older_volumes_keep_their_level_until_it_is_raised(project: ComposeProject) -> None:
    """Volumes of 0.10.2, of before there was the volume `cluster`: their brokers stay there, a
    fourth one joins them there, KAFKA08_LEVEL raises all, and nothing lowers them again."""
    start(project, "0.10.2")
    project.kafka08("topic", "create", "t", "--replication-factor=3")
    project.kafka08("produce", "t", text="a\n")
    project.down(volumes=False)
    project.engine.volumes.get(f"{project.name}_cluster").remove()
    began = start(project)
    await_said(project, "level 0.10.2", began)
    said = [project.container(broker).logs(since=began) for broker in BROKERS]
    assert any(b"stays at level 0.10.2, that of its data" in text for text in said)

    began = datetime.now(UTC)
    project.compose("--profile", "five", "up", "-d", "kafka4")
    project.await_healthy("kafka4")
    project.await_logged("kafka4", "This cluster has level 0.10.2, by", began)
    project.compose("--profile", "five", "rm", "--stop", "--force", "kafka4")

    await_said(project, "level", start(project, "0.11.0"))
    await_said(project, "has level 0.11.0, by", start(project))
    assert project.kafka08("consume", "t", "--from-beginning", "--max-messages=1") == "a\n"

    began = datetime.now(UTC)
    project.environ[LEVEL] = "0.10.2"
    project.compose("up", "-d", "--no-deps", "kafka1")
    project.await_logged("kafka1", "the brokers have data of level 0.11.0", began)
