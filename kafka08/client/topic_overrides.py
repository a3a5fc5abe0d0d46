"""The overrides of topics, as brokers from 0.11 on describe them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafka08.client.cluster import ClusterClient
from kafka08.errors import AdminError, UnsupportedVersion, error_of
from kafka08.protocol.describe_configs import TOPIC, DescribeConfigsRequest, DescribedResource

TOPICS_AT_ONCE: Final = 200
"""In a request for overrides: the response has all keys of each."""


def overrides_of(cluster: ClusterClient, names: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """topic → its overrides; None from brokers before 0.11. AdminError for a topic that a broker
    does not describe."""
    found = {}
    for first in range(0, max(1, len(names)), TOPICS_AT_ONCE):
        some = names[first : first + TOPICS_AT_ONCE]
        request = DescribeConfigsRequest([DescribedResource(TOPIC, n, None) for n in some])
        try:
            response: Any = cluster.ask_any(request, (0, 1))
        except UnsupportedVersion:
            return None
        for resource in response.resources:
            error = error_of(resource.error_code)
            if error is not None:
                raise AdminError(f"Topic {resource.resource_name}: {resource.message or error}")
            found[resource.resource_name] = {
                config.key: config.value or ""
                for config in resource.configs
                if not config.is_default
            }
    return found
