"""Access lists: who may do what with a znode.

The schemes are world, auth (the identities of the connection that writes the list), digest, and ip
(whole addresses, no networks).

Source: ZooDefs.Perms, PrepRequestProcessor.fixupACL, ZooKeeperServer.checkACL 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final

from kafka08.zk.model.messages import OPEN_ACL, Acl, Code, Identity, Refused

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16
NO_IDENTITIES: Final[frozenset[Identity]] = frozenset()
_ADDRESS: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]*")
_ANYONE: Final = Identity("world", "anyone")


def check_access(acl: tuple[Acl, ...], wanted: int, identities: Set[Identity]) -> None:
    """Refused with NO_AUTH unless the list grants one of the permissions in `wanted`."""
    if acl is OPEN_ACL:
        return
    for perms, scheme, name in acl:
        who = Identity(scheme, name)
        if perms & wanted and (who == _ANYONE or who in identities):
            return
    raise Refused(Code.NO_AUTH)


def fix_acl(acl: tuple[Acl, ...], identities: Set[Identity]) -> tuple[Acl, ...]:
    """The list as it is stored. Refused with INVALID_ACL if it is empty or has an entry for
    nobody."""
    if acl is OPEN_ACL:
        return acl
    fixed = tuple(dict.fromkeys(entry for given in acl for entry in _stored(given, identities)))
    if not fixed:
        raise Refused(Code.INVALID_ACL)
    return OPEN_ACL if fixed == OPEN_ACL else fixed


def readable_acl(acl: tuple[Acl, ...], identities: Set[Identity]) -> tuple[Acl, ...]:
    """The list as its reader gets it: without the hashes of passwords, unless the reader may change
    it. Refused with NO_AUTH for one who may neither read nor change the znode."""
    check_access(acl, READ | ADMIN, identities)
    try:
        check_access(acl, ADMIN, identities)
    except Refused:
        return tuple(_without_hash(entry) for entry in acl)
    return acl


def _stored(entry: Acl, identities: Set[Identity]) -> Iterator[Acl]:
    perms, scheme, name = entry
    if scheme == "auth":
        own = sorted(identity for identity in identities if identity.scheme != "ip")
        if not own:
            raise Refused(Code.INVALID_ACL)
        yield from (Acl(perms, *identity) for identity in own)
    elif (scheme, name) == _ANYONE or _is_named(scheme, name):
        yield entry
    else:
        raise Refused(Code.INVALID_ACL)


def _is_named(scheme: str, name: str) -> bool:
    if scheme == "digest":
        return name.count(":") == 1
    return scheme == "ip" and _ADDRESS.fullmatch(name) is not None


def _without_hash(entry: Acl) -> Acl:
    if entry.scheme != "digest":
        return entry
    return entry._replace(id=entry.id.partition(":")[0] + ":x")
