"""How many threads read, where that is not said."""

import os
from typing import Final

__all__ = ["MOST_THREADS", "thread_count"]

MOST_THREADS: Final = 8
"""Each has a file's window and batches in memory, so a machine with very many cores is not to have one for each."""


def thread_count(threads: int | None) -> int:
    """Returns how many threads there are to be; None is one for each core of this process, as far as these help.

    Raises:
        ValueError: they are less than one.
    """
    if threads is None:
        # Not all cores of the machine, where a container or `taskset` allows fewer.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(cores, MOST_THREADS)
    if threads < 1:
        raise ValueError(f"threads is {threads}: it is at least 1")
    return threads
