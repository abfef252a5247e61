"""Damage to small files and their parity sidecars, drawn by a number, with what the rules make of it.

`python -m tests.parity --help` says what can be done with it.
"""
