"""A file system of its own for tests, which loses what was not synced: a second opinion on the calls that writers make.

`protocol` serves it to the kernel, which hands it every call of any process, however it was made. `journal` notes
them, and tells what a folder may hold after a loss of power at any moment. `writers` write, `checks` hold what is left
against what was promised, and `python -m tests.losing_disk` runs all of it.
"""
