"""Sequences of requests that a broker of the JVM and ours must answer with the same bytes.

    pair.py         one broker of each, with equal topics
    talk.py         sends the requests of one sequence to one of them, and writes a transcript
    frames.py       requests and messages made by hand, field by field
    sequence.py     what a sequence is
    of_*.py         the sequences, by area

Start with sequence.py. test_differences_on_jvm.py runs them.
"""
