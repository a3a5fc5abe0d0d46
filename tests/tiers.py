"""Which tests have a tier of their own, by path or test. tests/conftest.py marks them."""

from __future__ import annotations

from typing import Final

PAGES: Final = ("tests/docs/test_pages.py", "tests/compose/", "tests/demo/test_demo.py")
"""Tests of what a reader runs: `scripts/test-pages`."""

FAULTS: Final = (
    "tests/migration/test_live.py",
    "tests/cli/test_consume_polling.py::test_a_signal_ends_it_although_no_broker_answers",
    "tests/cli/test_early_signals.py",
    "tests/embedded/test_faults.py",
    "tests/integration/test_coordinator_failover.py",
    "tests/integration/test_group_histories.py",
    "tests/integration/test_network_cuts.py",
    "tests/integration/test_producer_faults.py",
    "tests/integration/test_replication_faults.py",
    "tests/interop/test_consumer_groups.py",
    "tests/interop/test_live_migration.py",
    "tests/interop/test_mixed_clusters.py",
    "tests/mirror/test_two_clusters.py",
)
"""Tests that kill, pause or cut off processes, and wait for real timeouts: `scripts/test-faults`.
They take seconds each, most of them without work. The first one takes longest."""
