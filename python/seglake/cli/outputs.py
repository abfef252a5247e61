"""Files that commands write: never over another one unless asked, never over the one that is being read."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .failure import Trouble, report_status, say
from .inputs import Input, is_uri
from .options import Command
from .render import count, exact_size, json_text, printable
from .report import skipped

if TYPE_CHECKING:
    from seglake import Report


def overwrite(command: Command) -> Command:
    """`--overwrite`."""
    return click.option(
        "--overwrite", is_flag=True, help="Replace the file if it exists, once the new one is complete."
    )(command)


def check_destination(source: Input, path: str) -> None:
    """Refuse what cannot be written to.

    Raises:
        Trouble: a URI, a folder, a device, a pipe, or the file that is being read.
    """
    shown = printable(path)
    if is_uri(path):
        raise Trouble(f"{shown}: only files on this machine are written: name a path, then copy the file there")
    if Path(path).is_dir():
        raise Trouble(f"{shown}: is a folder: name the file to write")
    if Path(path).exists() and not Path(path).is_file():
        raise Trouble(f"{shown}: is a device or a pipe: name the file to write, which would replace it")
    if source.is_same_file(path):
        raise Trouble(f"{shown}: is the file that is being read: name another one")


@contextmanager
def telling_of_existing() -> Generator[None]:
    """Say which option replaces a file where the block finds that it exists.

    Raises:
        Trouble: instead of FileExistsError.
    """
    try:
        yield
    except FileExistsError as error:
        where = "" if error.filename is None else f"{printable(os.fsdecode(error.filename))}: "
        raise Trouble(f"{where}exists already: nothing was written\n  next      --overwrite replaces it") from error


def tell_of(report: Report, source: Input, path: str, *, as_json: bool) -> int:
    """Say what was written where, and what of the source was skipped; return the exit status."""
    size = Path(path).stat().st_size
    if as_json:
        written = {"path": path, "bytes": size}
        click.echo(json_text({"written": written, "source": {**report.to_dict(), "path": source.path}}))
    else:
        click.echo(f"{printable(path)}: {count(report.records, 'record')}, {exact_size(size)}")
    if not report.ok:
        say(skipped(report, source.label))
    return report_status(report)
