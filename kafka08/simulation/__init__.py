"""A whole cluster in one process and one thread, from one seed.

Brokers and clients run their real code. Time, randomness, tasks, network, disks and ZooKeeper are
simulated, and every choice is drawn from the seed, so a run can be repeated. Start reading at
`run.simulate`, which makes one run. Below it: `scheduler` (the next task, and the time), `waiting`
(locks, events, queues), `network` and `streams`, `memory_disk`, `zookeeper`, `process`, and
`runtime`, the Runtime made of them. docs/simulation.md lists what is not simulated.
"""
