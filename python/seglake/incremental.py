"""Reading what a file has got since it was read, and a file in parts: for those who build engines.

Example:
    >>> import seglake
    >>> orders = seglake.incremental.resume("orders.active", None)
    >>> orders.count_rows(), orders.position.identity == seglake.incremental.identity("orders.active")
    (3, True)
"""

from ._native import Part, Position, identity, resume

__all__ = ["Part", "Position", "identity", "resume"]
