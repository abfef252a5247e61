"""`seglake extract`: bytes of a file, for a closer look."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from seglake.write.new_file import new_file

from . import options
from .failure import Status, Trouble, telling_of_existing
from .help_groups import Command
from .inputs import Input, check_destination, opened
from .render import count, printable
from .terminal import is_terminal

_BLOCK_BYTES = 1 << 20

_EXAMPLES = """
\b
Examples:
  seglake extract --range 308:411 --hex damaged.active
  seglake extract --range 0x134:0x19b damaged.active part.bin
  seglake extract --range :4096 s3://bucket/january.sealed | xxd | head
  seglake extract --range :308 --range 411: damaged.active > rest.bin
  seglake extract --range :4096 --range +512 --range 4096: cut.sealed filled.sealed
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Copy bytes out of a file, whatever its state.")
@click.argument("source", metavar="SRC", type=options.PATH)
@click.argument("destination", metavar="[DST]", required=False, type=options.PATH)
@click.option(
    "--range",
    "wanted",
    metavar="START:END",
    multiple=True,
    required=True,
    callback=options.byte_ranges,
    help="From offset START up to END, without it; decimal or 0x hexadecimal; the file's ends where left out. Given "
    "again, ranges follow each other; +N is N zeros between them.",
)
@click.option("--hex", "as_hex", is_flag=True, help="Write a hexdump with the offsets in SRC; on a terminal always.")
@options.overwrite
@options.spool_limit
@options.debug
def command(
    source: str,
    wanted: Sequence[tuple[int, int | None] | int],
    destination: str | None,
    as_hex: bool,
    overwrite: bool,
    spool_limit: int,
) -> int:
    """Copy bytes out of SRC to DST or standard output, as they are, whatever its format and state.

    `seglake verify` tells the offsets of what is damaged. SRC is a path, a URI such as s3://bucket/key, of which no
    more than the range is read, or - for standard input.

    Exit status: 0 done, 2 error.
    """
    with opened(source, spool_limit=spool_limit) as file:
        ranges = [_within(file, own) for own in wanted]
        if destination is None:
            as_hex = as_hex or is_terminal(sys.stdout)
            if as_hex and any(isinstance(own, int) for own in ranges):
                raise Trouble("--range +N: zeros have no offset to show: write to a file, or through a pipe")
            _copy(file, ranges, sys.stdout.buffer.write, as_hex=as_hex)
            return Status.SOUND
        check_destination(file, destination)
        with telling_of_existing(), new_file(destination, replace=overwrite) as new:
            _copy(file, ranges, new.write, as_hex=as_hex)
    said = (
        count(own, "zero") if isinstance(own, int) else f"{count(own[1] - own[0], 'byte')} from offset {own[0]:,}"
        for own in ranges
    )
    click.echo(f"{printable(destination)}: {', '.join(said)}", err=True)
    return Status.SOUND


def _within(file: Input, wanted: tuple[int, int | None] | int) -> tuple[int, int] | int:
    """The range with both ends, if it is within the file, or how many zeros."""
    size = file.size
    if isinstance(wanted, int):
        return wanted
    start, end = wanted[0], size if wanted[1] is None else wanted[1]
    if max(start, end) > size:
        raise Trouble(
            f"{printable(file.label)}: expected a range within its {count(size, 'byte')}, found {start:,} to {end:,}"
        )
    return start, end


def _copy(file: Input, ranges: Iterable[tuple[int, int] | int], write: Callable[[bytes], Any], *, as_hex: bool) -> None:
    """Write the bytes of ranges, and zeros.

    Raises:
        Trouble: the file has become shorter.
    """
    with file.bytes() as read_at:
        for own in ranges:
            if isinstance(own, int):
                for at in range(0, own, _BLOCK_BYTES):
                    write(bytes(min(own - at, _BLOCK_BYTES)))
                continue
            offset, end = own
            while offset < end:
                block = read_at(offset, min(end - offset, _BLOCK_BYTES))
                if not block:
                    raise Trouble(f"{printable(file.label)}: has become shorter: it ended at offset {offset:,}")
                write(hexdump(block, offset).encode("ascii") if as_hex else block)
                offset += len(block)


_ROW_BYTES = 16
_PLAIN = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in range(256))


def hexdump(block: bytes, offset: int) -> str:
    """Rows of 16 bytes, each ended by a line break: offset, the bytes in two groups of eight, what of them is ASCII."""
    return "".join(_row(block[at : at + _ROW_BYTES], offset + at) for at in range(0, len(block), _ROW_BYTES))


def _row(row: bytes, offset: int) -> str:
    text = row.decode("latin-1").translate(_PLAIN)
    return f"{offset:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{text}|\n"
