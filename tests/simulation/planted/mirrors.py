"""Planted defects of mirrors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.mirror import copying
from kafka08.mirror.copying import StreamCopier
from kafka08.simulation.plan import Fault
from tests.simulation.planted.defect import PLAIN, planted

MIRRORING = {**PLAIN, "mirrors": 1, "new_producers": 2, "pause_seconds": 0.05}


@planted(
    "a mirror asks for the next batch before the target has acknowledged one",
    "mirrors",
    "is not at the target",
    (Fault.KILL,),
    seed=1,
    settings=MIRRORING,
)
def _(patch: pytest.MonkeyPatch) -> None:
    send = StreamCopier._send

    def at_once(self: StreamCopier, *arguments: Any, **options: Any) -> Any:
        target = self._target

        class Forgotten:
            def send_many(self, *sent: Any, **how: Any) -> Any:
                target.send_many(*sent, **how)
                return self

            def failures(self) -> list[Any]:
                return []

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self, "_target", Forgotten())
            return send(self, *arguments, **options)

    patch.setattr(StreamCopier, "_send", at_once)


@planted("a mirror loses keys", "mirrors", "the target has", (), seed=0, settings=MIRRORING)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copying, "_keys_of", lambda _: None)


@planted(
    "a mirror gives its messages new times",
    "mirrors",
    "the target has",
    (),
    seed=0,
    settings=MIRRORING,
    needs=lambda plan: plan.level == "0.10.2",
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copying, "_times_of", lambda *_: None)
