"""Many files of a mounted folder that appear together, by a manifest and a lock.

`manifest` makes them visible, and puts in order what a write that died has left; `folders` has the steps.
"""
