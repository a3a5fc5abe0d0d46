"""CheckedSet: a fetched set of a range, and the result of its CRC check."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.consumer.fetching.fetched import FetchedSet


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CheckedSet(FetchedSet):
    """A fetched set of complete entries whose CRCs are correct.

    has_wrappers   whether some entries are compressed sets or batches of records: values cannot be
                   used where they are
    is_verified    whether all CRCs are checked; those inside of compressed sets are not
    """

    has_wrappers: bool = True
    is_verified: bool = False
