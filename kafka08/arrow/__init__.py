"""Topics as Arrow data: exact ranges of offsets, planned and read as record batches.

    import polars as pl
    from kafka08.arrow import scan

    with scan("localhost:9092", "pages", group="report") as pages:
        frame = pl.DataFrame(pages)
        pages.commit()

`scan` gives an object with the Arrow PyCapsule interface, which pyarrow, Polars, pandas and DuckDB
read. kafka08.spark reads through the same modules: `options`, `bounds` and `plan` decide without a
cluster, `resolve` asks the brokers, `range_reader` and `batches` read one range. Needs pyarrow.
Users: docs/arrow.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.arrow.ranges import OffsetRange, ranges_from_json, ranges_to_json
from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kafka08.arrow.topic_scan import Scan, scan
else:  # ranges work without pyarrow
    __getattr__ = lazy_exports(__name__, {"topic_scan": ("Scan", "scan")})

__all__ = ["OffsetRange", "Scan", "ranges_from_json", "ranges_to_json", "scan"]
