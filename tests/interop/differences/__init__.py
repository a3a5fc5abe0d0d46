"""Sequences of requests that brokers of the JVM and ours must answer with the same bytes.

    pair.py          one broker of each, with equal topics
    cluster_pair.py  two brokers of each, in two clusters
    talk.py          sends the requests of one sequence, and writes a transcript
    frames.py        requests and messages made by hand, field by field
    sequence.py      what a sequence is
    of_*.py          the sequences, by area; of_replicas.py and of_controllers.py for two brokers

Start with sequence.py. test_differences_on_jvm.py and test_cluster_differences_on_jvm.py run them.
"""
