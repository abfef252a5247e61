import os
import pickle
from pathlib import Path

import pytest

from seglake.spark.options import ReadOptions

HEX = "ab" * 32


def parse(**options: str) -> ReadOptions:
    return ReadOptions.parse({"path": "/logs", **options})


def test_defaults() -> None:
    options = parse()
    assert options.paths == ("/logs",)
    assert (options.segment_format, options.uuid_type, options.key, options.key_files) == (None, None, None, ())
    assert (options.mode, options.corrupt_column) == ("PERMISSIVE", "_corrupt_record")
    assert options.metadata_columns == ()
    assert (options.max_partition_bytes, options.open_cost_bytes) == (128 << 20, 128 << 10)
    assert options.min_partitions == (os.cpu_count() or 1)
    assert not options.ignore_missing_files
    assert not options.filter.recursive


def test_limits_are_those_that_formats_declare() -> None:
    options = parse(recordBytes="5", CHUNKBYTES="1k", lookupTableBytes="2m")
    limits = {"record_bytes": 5, "chunk_bytes": 1024, "lookup_table_bytes": 2 << 20}
    assert dict(options.format_options.limits) == limits
    assert options.format_options.arguments("sealed") == {"options": {"lookup_table_bytes": 2 << 20, "record_bytes": 5}}
    assert options.format_options.arguments("active") == {"options": {"record_bytes": 5}}
    assert parse(chunkBytes="1k").format_options.arguments("active") == {}
    with pytest.raises(ValueError, match="option chunkBytes is 'lots': expected a number of bytes"):
        parse(chunkBytes="lots")


def test_names_and_values_count_regardless_of_case() -> None:
    options = parse(MODE="failFast", recursivefilelookup="TRUE", UuidType="Binary", SEGMENTFORMAT="Active")
    assert (options.mode, options.filter.recursive) == ("FAILFAST", True)
    assert (options.uuid_type, options.segment_format) == ("binary", "active")


def test_several_paths() -> None:
    assert ReadOptions.parse({"paths": '["/a", "/b,c"]'}).paths == ("/a", "/b,c")


def test_what_spark_adds_for_tables_is_accepted() -> None:
    added = {
        "owner": "root",
        "provider": "seglake",
        "location": "file:/logs",
        "comment": "",
        "external": "true",
        "is_managed_location": "false",
        "option.mode": "FAILFAST",
    }
    assert parse(mode="FAILFAST", **added).mode == "FAILFAST"
    assert ReadOptions.parse({"location": "/warehouse/t"}).paths == ("/warehouse/t",)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"key": "key"}, r"unknown option 'key'. Did you mean keyFile, or secretKey for the key itself\?"),
        ({"format": "active"}, r"unknown option 'format'. Did you mean segmentFormat\?"),
        ({"startingOffsets": "0"}, r"Did you mean startingFrom\?"),
        ({"checkpoint": "/states"}, r"Did you mean stateLocation\?"),
        ({"mod": "FAILFAST"}, r"unknown option 'mod'. Did you mean mode\?"),
        ({"secretky": HEX}, r"unknown option 'secretky'. Did you mean secretKey\?"),
        ({"zzz": "1"}, r"unknown option 'zzz'. The options are segmentFormat, dialect, mode, "),
        ({"mode": "LENIENT"}, "option mode is 'LENIENT': expected PERMISSIVE, DROPMALFORMED or FAILFAST"),
        ({"segmentFormat": "parquet"}, "option segmentFormat is 'parquet': expected the name of a format: .*active"),
        ({"uuidType": "int"}, "option uuidType is 'int': expected string or binary"),
        ({"recursiveFileLookup": "yes"}, "option recursiveFileLookup is 'yes': expected true or false"),
        ({"ignoreMissingFiles": "1"}, "option ignoreMissingFiles is '1': expected true or false"),
        ({"columnNameOfCorruptRecord": ""}, "option columnNameOfCorruptRecord is '': expected something"),
        (
            {"metadataColumns": "path,offset"},
            "option metadataColumns is .*: expected path or position, or both with a comma",
        ),
        ({"metadataColumns": "path,path"}, "option metadataColumns is 'path,path': expected"),
        ({"metadataColumns": ""}, "option metadataColumns is '': expected"),
        ({"pathGlobFilter": ""}, "option pathGlobFilter is ''"),
        ({"modifiedAfter": "tomorrow"}, "option modifiedAfter is 'tomorrow': expected a time such as"),
        ({"timeZone": "Mars/Olympus"}, "option timeZone is 'Mars/Olympus': expected the name of a time zone"),
        ({"maxPartitionBytes": "lots"}, "option maxPartitionBytes is 'lots': expected a number of bytes"),
        ({"maxPartitionBytes": "0"}, "option maxPartitionBytes is '0': expected at least one byte"),
        ({"openCostInBytes": "-1"}, "option openCostInBytes is '-1'"),
        ({"minPartitionNum": "0"}, "option minPartitionNum is '0': expected a whole number from 1 to"),
        ({"where": "type = a OR type = b"}, "option where is 'type = a OR type = b': expected conditions that are"),
        ({"since": "2024-06-15T05:00:00.1234567Z"}, "option since is .*: expected a time in whole microseconds"),
        ({"secretKey": HEX, "keyFile": "/k"}, "keyFile and secretKey are both given"),
        ({"keyFile": "[]"}, r"option keyFile is '\[\]': expected a path, or several with commas"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse(**options)


def test_no_path() -> None:
    with pytest.raises(ValueError, match="no path is given"):
        ReadOptions.parse({})


def test_times() -> None:
    after = parse(modifiedAfter="1970-01-01T01:00:00+01:00").filter.modified_after
    before = parse(modifiedBefore="1970-01-02T00:00:00", timeZone="Europe/Berlin").filter.modified_before
    assert (after, before) == (0, 23 * 3600)


def test_metadata_columns() -> None:
    assert parse(metadataColumns="Position, path").metadata_columns == ("position", "path")


@pytest.mark.parametrize(("text", "size"), [("5", 5), ("128m", 128 << 20), ("1 GB", 1 << 30), ("3kb", 3 << 10)])
def test_sizes(text: str, size: int) -> None:
    assert parse(maxPartitionBytes=text).max_partition_bytes == size


@pytest.mark.parametrize("secret", [HEX[:-1], HEX + "a", "x" + HEX[1:], ""])
def test_a_wrong_secret_is_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match=f"option secretKey is not 64 .* it has {len(secret)} characters") as error:
        parse(secretKey=secret)
    assert error.value.__context__ is None
    assert not secret or secret not in str(error.value)


def test_a_secret_shows_in_no_repr_and_survives_pickling() -> None:
    options = pickle.loads(pickle.dumps(parse(secretKey=HEX)))
    assert options.key is not None
    assert options.key.reveal() == bytes.fromhex(HEX)
    shown = repr(options) + str(options.key) + f"{options.key!r}"
    assert HEX not in shown
    assert repr(bytes.fromhex(HEX))[2:-1] not in shown


def test_the_file_of_the_key_is_not_opened_while_parsing(tmp_path: Path) -> None:
    assert parse(keyFile=str(tmp_path / "none")).key_files == (str(tmp_path / "none"),)
    assert parse(keyFile="/new, /old").key_files == ("/new", "/old") == parse(keyFile='["/new", "/old"]').key_files
