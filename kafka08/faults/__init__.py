"""Faults by rule: which requests of clients and brokers go wrong, and how.

A rule is data (rule.py); which of the requests that match it are hit is a function of their order
(tally.py). Nothing here uses a socket or a clock: whoever handles requests, a broker or a proxy,
asks a rule about each and does what it says. kafka08/embedded/fault_injection.py does so in brokers
of an `EmbeddedCluster`.
"""
