"""Files that appear when they are complete: single ones, and many at once, with a lock and a manifest.

`new_file` writes one file. `manifest` makes many visible together, and puts in order what a publisher that died has
left; `store` is what it asks of the storage. `durable` hands files and folders to the disk.
"""
