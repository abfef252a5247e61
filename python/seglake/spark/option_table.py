"""The options of the data source, each once: parsing, refusals and the tables in the documents go by this table."""

import difflib
import fnmatch
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, partial
from typing import Any, Final, Literal, get_args
from zoneinfo import ZoneInfo

import seglake
from seglake import _values as values
from seglake._types import DialectName, FormatOption
from seglake.read.filters import MOST_OFFSET, MOST_PARTITION, plain
from seglake.read.formats import LOCATION_COLUMNS, UuidType, column_names, limit_options

from .formats import Uint64Type, write_options

__all__ = [
    "STORE_PREFIX",
    "Mode",
    "Option",
    "OptionValues",
    "Purpose",
    "Secret",
    "camel_case",
    "options_of",
    "purposes",
    "refuse_unknown",
]

Purpose = Literal["reading", "writing", "streaming"]
"""What the data source is used for."""
Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
"""What becomes of damage."""

_KEY_BYTES: Final = 32
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"g": 1 << 30, "m": 1 << 20, "k": 1 << 10}
# What Spark adds to the user's own options, the longer list where a table of the catalog is read.
_FROM_SPARK: Final = frozenset(
    {"path", "paths", "owner", "provider", "location", "comment", "external", "is_managed_location"}
)
# Options of the stores of files elsewhere begin so; what follows depends on the store.
STORE_PREFIX: Final = "fs."
# What Python, the command line and other sources call something, in lower case and without "_", and what it is here.
_ELSEWHERE: Final = {
    "checkpoint": "stateLocation",
    "columns": ".select(...), or .schema(...), which also decodes no others",
    "endtime": "until",
    "filter": "where",
    "filters": "where",
    "format": "segmentFormat",
    "glob": "pathGlobFilter",
    "ifexists": '.mode("overwrite") of the writer',
    "includefilepaths": "metadataColumns",
    "key": "keyFile, or secretKey for the key itself",
    "limits": "recordBytes",
    "options": "dialect, index, recordBytes, chunkBytes, each an option of its own",
    "ondamage": "mode, which is PERMISSIVE, DROPMALFORMED or FAILFAST, or repair",
    "overwrite": '.mode("overwrite") of the writer',
    "password": "secretKey",
    "recursive": "recursiveFileLookup",
    "start": "startingFrom",
    "startingoffsets": "startingFrom",
    "starttime": "since",
    "storageoptions": f"{STORE_PREFIX}region and the like, each an option of its own",
    "to": "segmentFormat",
}
# The catalog passes each option of a table a second time, under this prefix.
_TABLE_PREFIX: Final = "option."


class Secret:
    """A key that no `repr`, log line or error message shows."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(...)"

    def reveal(self) -> bytes:
        """Returns the key itself."""
        return self._value


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes:
        name: its name.
        kind: which values it takes, in the words of the documents.
        about: what it does, likewise.
        read: reads its value from text; raises ValueError where it is none.
        default: its value where it is not given.
        otherwise: what the documents say of the default where that is None.
        is_zoned: whether `read` takes the zone of times, too.
    """

    name: str
    kind: str
    about: str
    read: Callable[..., Any]
    default: Any = None
    otherwise: str = "none"
    is_zoned: bool = False

    @property
    def shown_default(self) -> str:
        """The default in the words of the documents."""
        if self.default is None:
            return self.otherwise
        if isinstance(self.default, bool):
            return f"`{str(self.default).lower()}`"
        if self.kind == "bytes":
            unit = next((unit for unit, size in _UNITS.items() if self.default and self.default % size == 0), "")
            return f"`{self.default // _UNITS.get(unit, 1)}{unit}`"
        return f"`{self.default}`"


def _segment_format(text: str) -> str:
    try:
        column_names(text.lower())
    except ValueError as error:
        raise values.WrongValueError(text, f"the name of a format: {error}") from None
    return text.lower()


def _metadata_columns(text: str) -> tuple[str, ...]:
    names = tuple(values.comma_list(text.lower()))
    if not set(names) <= set(LOCATION_COLUMNS) or len(set(names)) < len(names):
        raise values.WrongValueError(text, f"{' or '.join(LOCATION_COLUMNS)}, or both with a comma between them")
    return names


def _starting_from(text: str) -> str:
    if text.lower() in ("start", "now"):
        return text.lower()
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise values.WrongValueError(text, "start, now, or a UUID") from None


def _sidecar(text: str) -> str | None:
    beside = text.lower()
    return values.not_empty(text) if beside not in ("auto", "none") else None if beside == "none" else beside


def _index(text: str) -> bool:
    return values.one_of(text, ("beside", "none")) == "beside"


def _glob(text: str) -> str:
    try:
        re.compile(fnmatch.translate(values.not_empty(text)))
    except re.error as error:
        raise values.WrongValueError(text, f"a pattern of file names such as *.active ({error})") from None
    return text


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise values.WrongValueError(text, "the name of a time zone such as Europe/Berlin or UTC") from None


def _modification_time(text: str, zone: tzinfo | None) -> float:
    """Reads a time as seconds since 1970, as the modification times of files are."""
    return (values.moment(text, zone) - _EPOCH) / timedelta(seconds=1)


def _key_files(text: str) -> tuple[str, ...]:
    expected = 'a path, or several with commas or as a JSON list: ["/keys/new", "/keys/old"]'
    found = values.texts(text, expected)
    if not found or not all(found):
        raise values.WrongValueError(text, expected)
    return found


def _secret(text: str) -> Secret:
    # The message must not show the value, not even a wrong one: it may be the key with a character too many.
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * _KEY_BYTES}}}", text):
        raise ValueError(f"option secretKey is not {2 * _KEY_BYTES} hexadecimal digits: it has {len(text)} characters")
    return Secret(bytes.fromhex(text))


def _reading() -> Iterator[Option]:
    formats = tuple(seglake.formats().names)
    size = partial(values.size, least=1)
    bound = (
        "Only records from then on, or before then. A time is ISO 8601, without an offset in the zone of `timeZone` or "
        "in UTC, to the microsecond; a date, `today` or `yesterday`, of that zone or UTC; or `1h`, `7d`, `2w` for that "
        "long before the load. UUIDs are for `active` and `sealed`; `tenant`, `oplog` and `tfrecord` have no times."
    )
    offsets = "Only messages of these offsets, the second not included. For `chunked`."
    modified = "Only files modified after or before."
    yield Option(
        "segmentFormat",
        _code(*formats),
        "The format of all files. Active and sealed files are read together without it, files of other two formats "
        "never. Naming it spares the driver from opening every file.",
        _segment_format,
        otherwise="found for each file",
    )
    yield _one_of(
        "dialect",
        DialectName,
        "How an oplog's messages are laid out. The file does not say it.",
        otherwise="`draft`",
    )
    yield _one_of("mode", Mode, "What becomes of damage, see below.", "PERMISSIVE")
    yield Option(
        "columnNameOfCorruptRecord",
        "string",
        "The name of the column that reports damage.",
        values.not_empty,
        "_corrupt_record",
    )
    yield Option(
        "metadataColumns",
        "`path`, `position`, or both with a comma",
        "Columns that say where each record is: its file, and the offset at which it begins. They follow the format's "
        "own columns. A schema that you give has to have them.",
        _metadata_columns,
    )
    yield _one_of(
        "uuidType",
        UuidType,
        "How UUIDs come: `1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3`, or 16 bytes.",
        otherwise="`string`, or as the schema has it",
    )
    yield _one_of(
        "uint64Type",
        Uint64Type,
        "How an oplog's numbers come, see above.",
        otherwise="`bigint`, or as the schema has it",
    )
    yield Option("since", "time, or UUID of version 6", bound, values.bound, is_zoned=True)
    yield Option("until", "time, or UUID of version 6", bound, values.bound, is_zoned=True)
    yield Option(
        "where",
        "conditions of SQL",
        "Only records for which they are true, such as `type LIKE 'order.%' AND timestamp >= '2024-01-10'`, as "
        "[`--where`](cli.md#conditions) takes them.",
        plain,
        is_zoned=True,
    )
    yield Option("startOffset", "number", offsets, partial(values.whole_number, least=0, most=MOST_OFFSET))
    yield Option("endOffset", "number", offsets, partial(values.whole_number, least=0, most=MOST_OFFSET))
    yield Option(
        "partitions",
        "numbers with commas",
        "Only these partitions. For `tenant`.",
        partial(values.numbers, most=MOST_PARTITION),
        otherwise="all",
    )
    yield Option(
        "tenants",
        "names with commas, or a JSON list",
        "Only these tenants, written as the column `tenant` shows them. For `tenant`.",
        partial(
            values.names,
            expected='tenant IDs with commas between them, such as AA,UA, or a JSON list: ["AA", "UA"]',
        ),
        otherwise="all",
    )
    yield Option(
        "types",
        "types with commas, or a JSON list",
        "Only records of these types, written as the column `type` shows them. For `active` and `sealed`.",
        partial(
            values.names,
            expected='types with commas between them, such as order,sale, or a JSON list: ["order", "sale"]',
        ),
        otherwise="all",
    )
    yield Option("pathGlobFilter", "pattern", "Only files of such names.", _glob)
    yield Option("recursiveFileLookup", "boolean", "Look into folders below those named, too.", values.flag, False)
    yield Option("modifiedAfter", "time", modified, _modification_time, is_zoned=True)
    yield Option("modifiedBefore", "time", modified, _modification_time, is_zoned=True)
    yield Option("timeZone", "name of a zone", "The zone of times without an offset, instead of UTC.", _zone)
    yield Option(
        "ignoreMissingFiles",
        "boolean",
        "Leave out files that are gone when they are to be read, instead of failing.",
        values.flag,
        False,
    )
    yield Option(
        "ignoreCorruptFiles",
        "boolean",
        "Leave out files that cannot be read at all, with a line in the log, whatever the [mode](#damage): those of "
        "another key, of no format, and those that fail to be read.",
        values.flag,
        False,
    )
    yield Option(
        "keyFile",
        "a path, or several with commas or as a JSON list",
        "The file of the key: 64 hexadecimal digits or 32 bytes. Only the executors read it. Of several, the first "
        "that fits is taken for each file.",
        _key_files,
    )
    yield Option("secretKey", "64 hexadecimal digits", "The key itself.", _secret)
    yield Option(
        "index",
        _code("beside", "none"),
        "Whether the index beside a log is used. It makes a choice of records faster, and nothing else. For `chunked`.",
        _index,
        otherwise="`beside`",
    )
    yield Option(
        "sidecar",
        "`auto`, `none`, or a path",
        "The [parity sidecars](parity.md#reading-with-a-sidecar) that files are checked by: those beside files that "
        "are mounted, none, or that of the only file.",
        _sidecar,
        "auto",
    )
    yield Option(
        "repair",
        "boolean",
        "Whether records that a sidecar restores are given, see [below](#damage). Nothing is written. Not in mode "
        "`FAILFAST`.",
        values.flag,
        False,
    )
    yield Option("recordBytes", "bytes", "A larger record is an error.", size, otherwise="`2147483647`")
    for option in limit_options().values():
        yield _declared(option, "open_options")
    yield Option(
        "maxPartitionBytes",
        "bytes",
        "About the most that one task reads. Larger files are read by several tasks, but for `active`, `oplog` "
        "and `tfrecord` files and what cannot be [split](#large-files), which are never split.",
        size,
        128 << 20,
    )
    yield Option(
        "openCostInBytes",
        "bytes",
        "What opening a file counts for when files are packed into tasks.",
        values.size,
        otherwise="`128k`; `4m` for remote files",
    )
    yield Option(
        "minPartitionNum",
        "number",
        "Make about this many tasks if the files allow it.",
        partial(values.whole_number, least=1, most=10**9 - 1),
        otherwise="the driver's cores",
    )


def _streaming() -> Iterator[Option]:
    """The options of streams beside those of reading."""
    most = "A batch takes no more than this, but at least one segment or file. With `Trigger.Once` it takes all."
    yield Option(
        "stateLocation",
        "path",
        "The folder of the stream's states. Needed for [files](#streams-of-files), and for them alone.",
        values.not_empty,
    )
    yield Option(
        "startingFrom",
        "`start`, `now`, or a UUID",
        "Where the first batch begins: at the first record, after what is there, or, in a log, after the record of "
        "this UUID. A query that has a checkpoint goes on where that says.",
        _starting_from,
        "start",
    )
    yield Option(
        "minStatesToRetain",
        "number",
        "How many states stay in `stateLocation`. Give at least `spark.sql.streaming.minBatchesToRetain` of the "
        "session, which a source in Python is not told. For files.",
        partial(values.whole_number, least=2, most=10**9 - 1),
        100,
    )
    yield Option(
        "maxFilesPerTrigger",
        "number",
        f"{most} In segments or files.",
        partial(values.whole_number, least=1, most=10**9 - 1),
        otherwise="no limit",
    )
    yield Option(
        "maxBytesPerTrigger",
        "bytes",
        f"{most} In bytes of segments or files.",
        partial(values.size, least=1),
        otherwise="no limit",
    )


def _writing() -> Iterator[Option]:
    as_for_reading = "as for reading"
    yield Option(
        "segmentFormat",
        as_for_reading,
        "The format to write.",
        _segment_format,
        otherwise="none, it has to be given",
    )
    yield Option(
        "maxRecordsPerFile",
        "number",
        "The most records of a file.",
        partial(values.whole_number, least=1, most=10**18 - 1),
        otherwise="no limit",
    )
    yield Option(
        "maxBytesPerFile",
        "bytes",
        "The most bytes that a file's records have, before compression and without what the format adds; a number "
        "counts 8. A record that has more is alone in its file.",
        partial(values.size, least=1),
        otherwise="no limit",
    )
    yield Option("successFile", "boolean", "Write an empty file `_SUCCESS` in the end.", values.flag, True)
    yield Option(
        "columnNameOfCorruptRecord",
        "string",
        "The column of the frame that reports damage.",
        values.not_empty,
        "_corrupt_record",
    )
    key = "The key of the checksums. For `active` and `sealed`."
    yield Option("keyFile", as_for_reading, key, values.not_empty, otherwise="as for [reading](#keys)")
    yield Option("secretKey", as_for_reading, key, _secret, otherwise="as for [reading](#keys)")
    yield Option(
        "dialect",
        as_for_reading,
        "How messages are laid out. For `oplog`.",
        partial(values.one_of, known=get_args(DialectName)),
        otherwise="`draft`",
    )
    for option in write_options().values():
        yield _declared(option, "create_options")


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _one_of(name: str, names: Any, about: str, default: str | None = None, *, otherwise: str = "none") -> Option:
    known: tuple[str, ...] = get_args(names)
    return Option(name, _code(*known), about, partial(values.one_of, known=known), default, otherwise)


def _declared(option: FormatOption, where: str) -> Option:
    """An option that formats declare, as their own words have it."""
    formats = [format.name for format in seglake.formats() if option.name in getattr(format, where)]
    kind = "boolean" if option.kind == "flag" else option.kind
    if kind == "number":
        kind = f"number from {option.minimum} to {option.maximum}"
    about = f"{option.about[0].upper()}{option.about[1:]}. For {' and '.join(f'`{name}`' for name in formats)}."
    return Option(camel_case(option.name), kind, about, partial(values.option_value, option), option.default)


@cache
def _options() -> dict[Purpose, dict[str, Option]]:
    """The options, by their names in lower case."""
    reading = {option.name.lower(): option for option in _reading()}
    return {
        "reading": reading,
        "writing": {option.name.lower(): option for option in _writing()},
        "streaming": reading | {option.name.lower(): option for option in _streaming()},
    }


def options_of(purpose: Purpose) -> list[Option]:
    """Returns the options of a purpose: those of Spark, and those that formats declare."""
    return list(_options()[purpose].values())


class OptionValues:
    """The options that were given for a purpose, by name regardless of case.

    Raises:
        ValueError: a name is that of no option, or of one for another purpose.
    """

    def __init__(self, given: Mapping[str, str], purpose: Purpose) -> None:
        self._given = given
        self._known = _options()[purpose]
        _refuse_foreign(given, purpose)
        self._zone: tzinfo | None = self.given("timeZone")

    def get(self, name: str) -> Any:
        """Returns an option's value, the default where it is not given.

        Raises:
            ValueError: it cannot be what is given. The message names the option; it never shows a secret.
        """
        return self.given(name) if name.lower() in self._given else self._known[name.lower()].default

    def given(self, name: str, read: Callable[..., Any] | None = None) -> Any:
        """Returns an option's value, None where it is not given.

        Args:
            name: the option.
            read: reads the text in the place of what the table says.

        Raises:
            ValueError: as `get`.
        """
        text = self._given.get(name.lower())
        if text is None:
            return None
        option = self._known[name.lower()]
        read = read or option.read
        try:
            return read(text, self._zone) if option.is_zoned else read(text)
        except values.WrongValueError as error:
            raise _wrong(name, text, error.expected) from None

    def key(self) -> tuple[Any, Secret | None]:
        """Returns what option keyFile names and the key itself, of which at most one is given.

        Raises:
            ValueError: both are, or the key is none. The message never shows it.
        """
        key_file, key = self.get("keyFile"), self.get("secretKey")
        if key_file is not None and key is not None:
            raise ValueError("options keyFile and secretKey are both given: give one of them")
        return key_file, key


def _wrong(name: str, text: str, expected: str) -> ValueError:
    return ValueError(f"option {name} is {text!r}: expected {expected}")


def purposes(given: Collection[str]) -> set[Purpose]:
    """Returns what all of these names, in lower case, are options of."""
    return {
        purpose for purpose, options in _options().items() if all(name in options or _is_no_own(name) for name in given)
    }


def refuse_unknown(given: Collection[str]) -> None:
    """Refuses names, in lower case, that are options of nothing.

    Raises:
        ValueError: there is one.
    """
    known = {name: option.name for options in _options().values() for name, option in options.items()}
    for name in given:
        if name in known or _is_no_own(name):
            continue
        meant = _ELSEWHERE.get(name.replace("_", ""))
        near = difflib.get_close_matches(name, known, n=1)
        meant = meant or (known[near[0]] if near else None)
        reading = [option.name for option in options_of("reading")]
        writing, streaming = (
            ", ".join(option.name for option in options_of(purpose) if option.name not in reading)
            for purpose in ("writing", "streaming")
        )
        hint = (
            f"Did you mean {meant}?"
            if meant
            else f"The options are {', '.join(reading)}; those of writing alone {writing}; those of streams alone "
            f"{streaming}."
        )
        raise ValueError(f"unknown option {name!r}. {hint}")


def _refuse_foreign(given: Collection[str], purpose: Purpose) -> None:
    """Refuses names, in lower case, that are no options of this purpose.

    Raises:
        ValueError: there is one. The message says whether it is one of the other.
    """
    refuse_unknown(given)
    for other, options in _options().items():
        for name in given:
            if name in options and name not in _options()[purpose]:
                raise ValueError(f"option {options[name].name} is for {other}, and this is {purpose}: leave it out")


def camel_case(name: str) -> str:
    """Returns the name of an option that is called `name` in Python."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _is_no_own(name: str) -> bool:
    """Tells whether an option is one of Spark's or of a store."""
    return name in _FROM_SPARK or name.startswith((_TABLE_PREFIX, STORE_PREFIX))
