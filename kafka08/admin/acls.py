"""Access control entries: who may, or may not, do what with which resource of a cluster."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka08.client.cluster import ClusterClient
from kafka08.errors import AdminError, SecurityDisabled, error_of
from kafka08.protocol.describe_acls import ANY, DescribeAclsRequest

RESOURCES: Final = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional_id",
    6: "delegation_token",
    7: "user",
}
PATTERNS: Final = {3: "literal", 4: "prefixed"}
OPERATIONS: Final = {
    2: "all",
    3: "read",
    4: "write",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "cluster_action",
    10: "describe_configs",
    11: "alter_configs",
    12: "idempotent_write",
    13: "create_tokens",
    14: "describe_tokens",
    15: "two_phase_commit",
}
ALLOW: Final = 3


class Acl(NamedTuple):
    """An entry, in Kafka's words in small letters; "type 9" and the like for one that is later than
    this client.

    resource_type   topic, group, cluster, transactional_id, delegation_token or user
    resource_name   * is every one of its type
    pattern         literal, or prefixed: every name that begins so
    principal       as User:alice; User:* is everybody
    host            * is any
    operation       all, read, write, …
    is_allowed      False: it is denied, whatever another entry allows
    """

    resource_type: str
    resource_name: str
    pattern: str
    principal: str
    host: str
    operation: str
    is_allowed: bool


def describe_acls(cluster: ClusterClient, principal: str | None) -> list[Acl]:
    """All entries, or those of a principal, sorted. AdminError from brokers without an authorizer,
    or where the client may not describe the cluster; UnsupportedVersion before 0.11."""
    request = DescribeAclsRequest(ANY, None, principal, None, ANY, ANY)
    response: Any = cluster.ask_any(request, (0, 1))
    error = error_of(response.error_code)
    if isinstance(error, SecurityDisabled):
        raise AdminError("The brokers have no authorizer, so there are no ACLs")
    if error is not None:
        raise AdminError(f"ACLs: {response.message or error}") from error
    return sorted(
        Acl(
            _word(RESOURCES, resource.resource_type),
            resource.resource_name,
            _word(PATTERNS, resource.pattern_type),
            acl.principal,
            acl.host,
            _word(OPERATIONS, acl.operation),
            acl.permission_type == ALLOW,
        )
        for resource in response.resources
        for acl in resource.acls
    )


def _word(words: dict[int, str], number: int) -> str:
    return words.get(number, f"type {number}")
