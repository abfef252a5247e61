"""Many files that appear at once, with a lock and a manifest.

`manifest` makes many visible together, and puts in order what a publisher that died has left; `store` is what it asks
of the storage.
"""
