"""The replicas of one broker: role, epochs, ISR, HW (`partition`), and what they count (`traffic`).

Nothing here does I/O but to the local log, and nothing switches.
"""
