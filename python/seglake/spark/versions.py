"""What the driver sends to executors says which version of this package made it."""

import pickle
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import seglake

__all__ = ["reduced"]


def reduced(make: Callable[..., Any], *arguments: object) -> tuple[object, ...]:
    """Returns what `__reduce__` of an object is to return that is sent to executors, which call `make(*arguments)`.

    The arguments are packed a second time, so that another version of this package says so, by RuntimeError, before it
    meets what it does not know.
    """
    return _made_by_version, (seglake.__version__, pickle.dumps((make, arguments)))


def _made_by_version(version: str, packed: bytes) -> object:
    """Makes the object on an executor.

    Raises:
        RuntimeError: the driver has another version of this package.
    """
    if version != seglake.__version__:
        raise RuntimeError(
            f"the driver has seglake {version}, and the executor on {socket.gethostname()} has {seglake.__version__} "
            f"in {Path(seglake.__file__).parent}: let both have the same version"
        )
    make, arguments = pickle.loads(packed)
    return make(*arguments)
