"""Planted defects of expiring offsets, and of brokers whose controller compares ids alone."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.broker.groups import offset_cache, offset_manager
from kafka08.broker.groups.offset_cache import OffsetCache
from kafka08.broker.process.missed_restart import MissedRestart
from kafka08.protocol.offset_records import encode_value
from kafka08.simulation.plan import Fault
from tests.simulation.planted.defect import LONG, PLAIN, planted

EXPIRING = {**PLAIN, "expiring": True}
IDS_ONLY = {**LONG, "ids_only": True}


def expires(plan: Any) -> bool:
    """Whether brokers look for expired offsets while a run lasts."""
    return bool(plan.level != "0.8.2")


@planted(
    "offsets never expire",
    "offsets",
    "which expired",
    (),
    seed=0,
    needs=expires,
    settings=EXPIRING,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetCache, "expired", lambda *_: [])


@planted(
    "offsets expire too early",
    "offsets",
    "not the one acknowledged",
    (),
    seed=0,
    needs=expires,
    settings=EXPIRING,
)
def _(patch: pytest.MonkeyPatch) -> None:
    is_expired = offset_cache._is_expired
    patch.setattr(
        offset_cache,
        "_is_expired",
        lambda value, now_ms, keep_ms: is_expired(value, now_ms + 2 * 60 * 60_000, keep_ms),
    )


@planted(
    "the record of an offset lacks its expiry",
    "offsets",
    "which expired",
    (Fault.KILL,),
    seed=1,
    needs=expires,
    settings=EXPIRING,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offset_manager, "encode_value", lambda committed, **_: encode_value(committed))


@planted(
    "a broker does not notice that its restart was missed",
    "ours",
    "in sync",
    (Fault.KILL,),
    seed=0,
    needs=lambda plan: plan.brokers > 1,
    settings=IDS_ONLY,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MissedRestart, "start", lambda _: None)


@planted(
    "a broker whose restart was missed comes back at once",
    "ours",
    "in sync",
    (Fault.KILL,),
    seed=0,
    needs=lambda plan: plan.brokers > 1,
    settings=IDS_ONLY,
)
def _(patch: pytest.MonkeyPatch) -> None:
    register_anew = RegistrationKeeper.register_anew
    patch.setattr(RegistrationKeeper, "register_anew", lambda self, _: register_anew(self, 0.0))
