"""Responses of level 0.11.0 that differ from 0.10.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol.create_topics import CreateTopicsRequest, NewTopic, TopicConfigEntry
from kafka08.protocol.metadata import MetadataRequest
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import World


def world_of(tmp_path: Path, **keys: Any) -> World:
    return World(tmp_path, api_level="0.11.0", **keys)


class TestMetadata:
    @pytest.mark.parametrize(
        ("version", "allows", "code"), [(3, True, 5), (4, True, 5), (4, False, 3)]
    )
    def test_a_request_may_forbid_the_creation(
        self, tmp_path: Path, version: int, allows: bool, code: int
    ) -> None:
        """Version 4 has a flag; without it an unknown topic is 3, and is not created."""
        world = world_of(tmp_path)
        request = MetadataRequest(["new"], allow_auto_topic_creation=allows, version=version)
        (topic,) = world.client.call(request).topics
        assert code == topic.error_code
        assert allows == ("new" in world.store.topics())

    def test_an_internal_topic_is_created_all_the_same(self, tmp_path: Path) -> None:
        """The flag is for topics of clients."""
        world = world_of(tmp_path)
        request = MetadataRequest([OFFSETS_TOPIC], allow_auto_topic_creation=False, version=4)
        (topic,) = world.client.call(request).topics
        assert (5, True) == (topic.error_code, topic.is_internal)
        assert OFFSETS_TOPIC in world.store.topics()


class TestCreateTopics:
    def test_a_null_value_fails_its_topic_alone(self, tmp_path: Path) -> None:
        """As captured, it is -1 without a text; the other topic is created."""
        world = world_of(tmp_path)
        world.lead("there")
        world.controller.is_active = True
        bad = NewTopic("bad", 1, 1, [], [TopicConfigEntry("retention.ms", None)])
        good = NewTopic("good", 1, 1, [], [])
        request = CreateTopicsRequest([bad, good], 0, version=2)
        results = {one.topic: one for one in world.client.call(request).topics}
        assert (-1, None) == (results["bad"].error_code, results["bad"].message)
        assert ["good"] == world.store.topics()
