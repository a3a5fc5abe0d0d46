"""The id that the first broker of a cluster draws for it."""

from __future__ import annotations

import base64
import uuid
from random import Random


def new_cluster_id(rng: Random) -> str:
    """22 characters of URL-safe base64: a random UUID without its padding."""
    identifier = uuid.UUID(int=rng.getrandbits(128), version=4)
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")
