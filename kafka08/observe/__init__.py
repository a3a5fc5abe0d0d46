"""One snapshot of a cluster: what all views and verdicts on clusters and groups are made of.

`reader` reads it, from ZooKeeper and the brokers; `snapshot` has its values, of which `group` makes
the facts of one group and `lag` the lag, both pure. `coordinator_reader` knows groups that have a
coordinator, `commit_times` when offsets expire. Users: doctor, exporter, groups, migration, pages.
"""
