"""The functions of the extension that read a file, with `storage_options=`: settings of its URI's store."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import seglake._native as native

from .stores import Stores, scheme_of

__all__ = [
    "convert",
    "coverage",
    "detect",
    "identity",
    "index",
    "open",
    "recover",
    "resume",
    "seal",
    "undo_recover",
    "verify",
    "verify_parity",
]

_SOURCES = ("source", "recovered")
_OPTIONS = inspect.Parameter("storage_options", inspect.Parameter.KEYWORD_ONLY, default=None)

_DOCUMENTED = """storage_options: settings of the store of a URI by the keys of `object_store`, as delta-rs and polars
    take them. What is not given comes from the environment. With them, an index or sidecar is named by a URI, too."""


def _taking_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the argument `storage_options`, which counts where the first one is a URI."""

    @wraps(function)
    def call(*given: Any, storage_options: Mapping[str, Any] | None = None, **named: Any) -> Any:
        source = given[0] if given else next((named[name] for name in _SOURCES if name in named), None)
        if storage_options is not None and isinstance(source, str) and scheme_of(source) is not None:
            named["filesystem"] = Stores(named.get("filesystem"), storage_options)
        return function(*given, **named)

    signature = inspect.signature(function)
    parameters = [*signature.parameters.values(), _OPTIONS]
    call.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    call.__module__ = "seglake"
    call.__doc__ = f"{function.__doc__}\n\n{_DOCUMENTED}"
    return call  # pyright: ignore[reportReturnType]


if TYPE_CHECKING:
    from ._native import (
        convert,
        coverage,
        detect,
        identity,
        index,
        open,
        recover,
        resume,
        seal,
        undo_recover,
        verify,
        verify_parity,
    )
else:
    globals().update({name: _taking_options(getattr(native, name)) for name in __all__})
