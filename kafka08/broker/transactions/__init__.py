"""Transactions of producers, decided without I/O; no broker uses them yet.

`transaction` is the state machine of one transactional id, `transactional_ids` those of one
partition of `__transaction_state` with what is to be appended, answered and sent, `marker_codes`
the reaction to the answers of partition leaders. Start with `transaction`.
"""
