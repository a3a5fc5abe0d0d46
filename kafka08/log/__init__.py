"""A partition on disk: segments of messages with sparse indexes, recovery, retention, checks.

Start reading at `log.py` (one partition), then `segment.py` and `offset_index.py` (its files),
`record_state.py` (producers and leader epochs of record batches), `loader.py` and `recovery.py`
(after a crash), `manager.py` (all logs of a broker), `cleaner.py`
(which log to compact), `cleaner_pass.py` (one pass) and `cleaner_plan.py` (its decisions). Nothing
here has a thread or a timer; clock, disk, directory and background work are passed in. The files
are those of Kafka 0.8.2.2: either broker can start on the other's.
"""
