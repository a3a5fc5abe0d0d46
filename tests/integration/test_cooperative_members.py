"""Cooperative members on brokers of ours, and what those say to static ones."""

from __future__ import annotations

import pytest

from kafka08.embedded import EmbeddedCluster
from kafka08.errors import UnsupportedVersion
from tests.integration.group_scenarios import Member, only_what_moves_is_revoked


def test_only_what_moves_is_revoked(cluster: EmbeddedCluster, topic: str) -> None:
    """What the scenario says."""
    only_what_moves_is_revoked(cluster.bootstrap, topic)


def test_static_members_need_later_brokers(cluster: EmbeddedCluster, topic: str) -> None:
    """The consumer says so instead of joining without its name."""
    member = Member(cluster.bootstrap, topic, group_instance_id="one")
    with pytest.raises(UnsupportedVersion, match=r"group\.instance\.id needs brokers from 2\.3"):
        member.consumer.poll(10)
    member.consumer.close()
