"""Requests that wait: `purgatory` parks them, `purgatories` has those of one broker by partition,
`delayed_fetch` and `delayed_produce` say what a fetch and a produce wait for."""
