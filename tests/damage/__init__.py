"""Damages files in every way, reads them by every way there is, and holds what comes back against what was written.

`python -m tests.damage` runs it; docs/damage.md says what is tried and what came of it.
"""
