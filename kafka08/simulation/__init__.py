"""A whole cluster in one process and one thread, from one seed.

The code of brokers and clients is the real one; time, chance, tasks, the network and ZooKeeper are
simulated, and every choice is drawn from the seed, so a run can be repeated. `run.simulate` is one
run; start reading there. Below it: `scheduler` (who runs next, and the time), `waiting` (locks,
events, queues), `network` and `streams`, `zookeeper`, `process`, and `runtime`, which makes a
Runtime of them. docs/simulation.md says what is simulated and what is not.
"""
