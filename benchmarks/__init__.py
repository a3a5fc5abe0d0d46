"""Figures beside a real Kafka 0.8.2.2 broker: `scripts/bench` runs `python -m benchmarks`.

`load.py` has the raw load over sockets, `subjects.py` starts a JVM broker and one of ours,
`broker_cases.py` has the cases, `__main__.py` runs them in turn and prints the table.
"""
