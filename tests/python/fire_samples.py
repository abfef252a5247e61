"""Files of every format for processes under fire: large enough to be read in several windows."""

import contextlib
import hashlib
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cli_samples import EXTENSIONS, fields

import seglake

FORMATS = tuple(EXTENSIONS)
RECORDS = 110
BYTES = 40_000


def value(number: int) -> bytes:
    """The value of record `number`: not to be compressed, so that chunked files are as large as the others."""
    return hashlib.shake_256(b"%d" % number).digest(BYTES)


def write(writer: seglake.Writer, format: str, number: int) -> Any:
    """Writes record `number`. A tenant's messages stay in the order of their numbers."""
    own = fields(format, number)
    if format == "tenant":
        own = {"partition": number // 100, "tenant": f"tenant {number // 10 % 10}"}
    return writer.write(value=value(number), **own)


def sample(folder: Path, format: str, **options: Any) -> Path:
    """Writes a file of `RECORDS` records."""
    path = folder / f"sample.{EXTENSIONS[format]}"
    how: dict[str, Any] = {
        "format": format,
        **({"options": {"chunk_records": 7}} if format == "chunked" else {}),
        **options,
    }
    with seglake.create(path, **how) as writer:
        for number in range(RECORDS):
            write(writer, format, number)
    return path


def expected() -> list[bytes]:
    """The values of a sample's records."""
    return [value(number) for number in range(RECORDS)]


def values(records: Any) -> list[bytes]:
    """The values of records."""
    return [record.value for record in records]


def ids(path: Path | str) -> list[Any]:
    """What each record of a file is found by."""
    reader = seglake.open(path)
    own = seglake.formats()[reader.format].identifier
    found = [tuple(getattr(record, name) for name in own) for record in reader]
    return [id if len(id) > 1 else id[0] for id in found]


@contextlib.contextmanager
def raises(*errors: type[BaseException], text: str = "") -> Iterator[None]:
    """As pytest has it, for processes that do without."""
    try:
        yield
    except errors as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"none of {errors} was raised")


def forked(work: Callable[[], None]) -> None:
    """Does `work` in a fork of this process, and waits for that to end well."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
