"""The names of options: which there are, and what is said of others."""

import difflib
from collections.abc import Collection
from functools import cache
from typing import Final, Literal

from .formats import limit_options, write_options

__all__ = ["STORE_PREFIX", "Purpose", "camel_case", "options_of", "purposes", "refuse_foreign", "refuse_unknown"]

Purpose = Literal["reading", "writing"]
"""What the data source is used for."""

_READING: Final = (
    "segmentFormat",
    "dialect",
    "mode",
    "columnNameOfCorruptRecord",
    "metadataColumns",
    "uuidType",
    "uint64Type",
    "since",
    "until",
    "startOffset",
    "endOffset",
    "partitions",
    "tenants",
    "types",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedAfter",
    "modifiedBefore",
    "timeZone",
    "ignoreMissingFiles",
    "checksumSecretFile",
    "checksumSecret",
    "index",
    "recordBytes",
    "maxPartitionBytes",
    "openCostInBytes",
    "minPartitionNum",
)
_WRITING: Final = (
    "segmentFormat",
    "dialect",
    "maxRecordsPerFile",
    "maxBytesPerFile",
    "successFile",
    "columnNameOfCorruptRecord",
    "checksumSecretFile",
    "checksumSecret",
)
# What Spark adds to the user's own options, the longer list where a table of the catalog is read.
_FROM_SPARK: Final = frozenset(
    {"path", "paths", "owner", "provider", "location", "comment", "external", "is_managed_location"}
)
# Options of the stores of files elsewhere begin so; what follows depends on the store.
STORE_PREFIX: Final = "fs."
# The catalog passes each option of a table a second time, under this prefix.
_TABLE_PREFIX: Final = "option."


def options_of(purpose: Purpose) -> list[str]:
    """Returns the names of the options of a purpose, as they are written in the documents."""
    return list(_options()[purpose].values())


@cache
def _options() -> dict[Purpose, dict[str, str]]:
    """The names of the options, by what they are in lower case: those of Spark, and those that formats declare."""
    reading = [*_READING, *map(camel_case, limit_options())]
    writing = [*_WRITING, *map(camel_case, write_options())]
    return {
        "reading": {name.lower(): name for name in reading},
        "writing": {name.lower(): name for name in writing},
    }


def purposes(given: Collection[str]) -> set[Purpose]:
    """Returns what all of these names, in lower case, are options of."""
    return {
        purpose
        for purpose, options in _options().items()
        if all(name in options or _is_from_spark(name) or _is_for_store(name, purpose) for name in given)
    }


def refuse_unknown(given: Collection[str]) -> None:
    """Refuses names, in lower case, that are options of nothing.

    Raises:
        ValueError: there is one.
    """
    known = {name: option for options in _options().values() for name, option in options.items()}
    for name in given:
        if name in known or _is_from_spark(name) or _is_for_store(name, "reading"):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        reading = options_of("reading")
        more = [option for option in options_of("writing") if option not in reading]
        hint = (
            f"Did you mean {known[near[0]]}?"
            if near
            else f"The options are {', '.join(reading)}; those of writing alone {', '.join(more)}."
        )
        raise ValueError(f"unknown option {name!r}. {hint}")


def refuse_foreign(given: Collection[str], purpose: Purpose) -> None:
    """Refuses names, in lower case, that are no options of this purpose.

    Raises:
        ValueError: there is one. The message says whether it is one of the other.
    """
    refuse_unknown(given)
    for name in given:
        if name.startswith(STORE_PREFIX) and not _is_for_store(name, purpose):
            raise ValueError(f"option {name} is for reading, and this is {purpose}: leave it out")
    for other, options in _options().items():
        for name in given:
            if name in options and name not in _options()[purpose]:
                raise ValueError(f"option {options[name]} is for {other}, and this is {purpose}: leave it out")


def camel_case(name: str) -> str:
    """Returns the name of an option that is called `name` in Python."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _is_for_store(name: str, purpose: Purpose) -> bool:
    """Tells whether an option is one of a store: those are read from only."""
    return purpose == "reading" and name.startswith(STORE_PREFIX)


def _is_from_spark(name: str) -> bool:
    return name in _FROM_SPARK or name.startswith(_TABLE_PREFIX)
