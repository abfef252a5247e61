"""From the arguments of callers to a run. Importing this needs neither Spark nor Arrow, so that these can be named."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .engine import EngineChoice
from .result import IngestError, IngestProgress, IngestResult

if TYPE_CHECKING:
    from seglake._types import DialectName

__all__ = ["TARGET_FILE_BYTES", "require", "run"]

TARGET_FILE_BYTES: Final = 128 << 20


def run(
    engine: EngineChoice,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dst: str | os.PathLike[str],
    *,
    format: str | None,
    dialect: DialectName | None,
    key: str | os.PathLike[str] | None,
    limits: Mapping[str, int] | None,
    target_file_bytes: int,
    progress: Callable[[IngestProgress], object] | None,
) -> IngestResult:
    """Checks the arguments that all engines have, and ingests."""
    from seglake._formats import FormatOptions, limit_options

    from .driver import IngestDriver

    own = dict(limits or {})
    for name, number in (("target_file_bytes", target_file_bytes), *own.items()):
        if number < 1:
            raise ValueError(f"{name} is {number}: expected at least 1")
    record_bytes = own.pop("record_bytes", None)
    unknown = [name for name in own if name not in limit_options()]
    if unknown:
        known = ", ".join(["record_bytes", *limit_options()])
        raise ValueError(f"limits has no {unknown[0]!r}: there are {known}")
    driver = IngestDriver(
        sources=[os.fspath(each) for each in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)],
        destination=dst,
        format=format,
        format_options=FormatOptions(dialect, None, tuple(own.items())),
        record_bytes=record_bytes,
        key_file=None if key is None else os.fspath(key),
        target_file_bytes=target_file_bytes,
        progress=progress,
    )
    return driver.run(engine)


def require(packages: Sequence[str], extra: str) -> None:
    """Checks that packages and file locks are there.

    Raises:
        IngestError: they are not.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise IngestError(f"the ingest needs {' and '.join(missing)}: pip install {extra}")
    if importlib.util.find_spec("fcntl") is None:
        raise IngestError("the ingest needs Linux or macOS: this system lacks the file locks that it works with")
