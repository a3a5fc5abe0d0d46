"""CheckedSet: what a read of a range passes on, with what the check of its CRCs found out."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.consumer.fetched import FetchedSet


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CheckedSet(FetchedSet):
    """A fetched set of complete entries whose CRCs are correct.

    has_wrappers   whether some entries are compressed sets; the CRCs in them are not checked yet
    """

    has_wrappers: bool = True
