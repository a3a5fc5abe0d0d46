"""The record of a control batch: the marker that ends a transaction. Pure.

    key     version:i16  type:i16 (0 abort, 1 commit; there may be others)
    value   version:i16  coordinator_epoch:i32

Source: org.apache.kafka.common.record.ControlRecordType, EndTransactionMarker 0.11.0.2.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

KEY: Final = Struct(">hh")
VALUE: Final = Struct(">hi")
ABORT: Final = 0
COMMIT: Final = 1
