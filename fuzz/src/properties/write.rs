//! Writing is the inverse of reading: records that are written again read the same, byte for byte if the format leaves
//! no choice. Appending to a file loses nothing of it, whatever its damage.

use std::fs;
use std::path::Path;

use seglake::Error;
use seglake::format::{
    Checked, Dialect, Format, IfExists, Options, Value, WriteOptions, active, chunked, create,
    tenant,
};
use seglake::ledger::{Kind, Span};
use seglake::verbs::verify;

use super::scan::{End, Plain, Record, Scan, ended, whole};
use super::{Draw, format_of};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let folder = super::folder();
    let mut draw = Draw::of(bytes);
    for (options, scan) in ended(format, bytes) {
        writes_what_was_read(&scan, bytes, &options, folder.path());
        if format.is_appended_to() {
            appends(&scan, bytes, &options, folder.path(), &mut draw);
        }
    }
}

/// The options to write a file like this one.
fn write_options(scan: &Scan, bytes: &[u8], options: &Options) -> WriteOptions {
    let report = verify(whole(bytes), options, |_| Ok(())).unwrap();
    let unused = |span: &Span| matches!(span.kind, Kind::Record | Kind::Unused);
    WriteOptions::default()
        .dialect(options.dialect)
        .set("trailer", report.summary.checked == Checked::Checksum)
        .set(
            "version",
            if bytes.get(4..6) == Some(&[0, 1]) {
                1
            } else {
                2
            },
        )
        .set(
            "preallocate",
            if scan.spans.iter().all(unused) {
                bytes.len() as u64
            } else {
                0
            },
        )
        .set("chunk_records", 3)
        .set("index", false)
        .concerning(options.format.unwrap())
}

fn writes_what_was_read(scan: &Scan, bytes: &[u8], options: &Options, folder: &Path) {
    let format = format_of(options);
    // Incomplete records are refused, and so are old versions.
    let old = |record: &Record| {
        options.dialect == Dialect::Autobase
            && matches!(record.fields[1], Plain::UInt64(version) if version < 2)
    };
    let records: Vec<_> = scan
        .records
        .iter()
        .filter(|record| record.cause.is_none() && !old(record))
        .map(|record| record.content(options))
        .collect();
    let mut blocks = Vec::new();
    if *format == tenant::FORMAT {
        blocks = tenant::blocks(whole(bytes), options).unwrap();
        blocks.retain(|block| block.messages == 0);
    }
    let write_options = write_options(scan, bytes, options);
    let write = |records: &[Vec<Plain>]| {
        let path = folder.join("written");
        let mut writer = create(format, &path, &write_options).unwrap();
        for block in &blocks {
            let tenant = Value::Text(&block.tenant);
            let fields = [
                Value::Int64(block.partition.into()),
                tenant,
                Value::Null,
                Value::Null,
            ];
            writer.write(&fields).unwrap();
        }
        for record in records {
            let values: Vec<_> = record.iter().map(Plain::value).collect();
            if let Err(error) = writer.write(&values) {
                panic!("{error}: {record:?}");
            }
        }
        writer.close().unwrap();
        drop(writer);
        let written = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        written
    };
    let written = write(&records);
    let again = Scan::of(&written, &options.clone().strict(true));
    assert_eq!(again.end, End::Done);
    let read: Vec<_> = again
        .records
        .iter()
        .map(|record| record.content(options))
        .collect();
    assert!(
        same(&read, &records, options),
        "{read:?} was read, and {records:?} written"
    );
    assert_eq!(write(&read), written, "writing it again changes nothing");
    if is_canonical(scan, bytes, options) {
        assert_eq!(written, bytes);
    }
}

/// Whether they are the same records, except for which of them declares a key.
fn same(some: &[Vec<Plain>], others: &[Vec<Plain>], options: &Options) -> bool {
    let len = if options.dialect == Dialect::Draft11 {
        8
    } else {
        usize::MAX
    };
    let compared = |record: &Vec<Plain>| record.iter().take(len).cloned().collect::<Vec<_>>();
    some.iter().map(compared).eq(others.iter().map(compared))
}

/// Whether these records can be written in one way only, and were written so.
fn is_canonical(scan: &Scan, bytes: &[u8], options: &Options) -> bool {
    let is_sound = scan.spans.iter().all(|span| !span.is_damage());
    let format = format_of(options);
    is_sound
        && match format.name {
            "active" | "sealed" => true,
            // A partition without tenants cannot be written.
            "tenant" => {
                let contents = tenant::Contents::read(whole(bytes), options).unwrap();
                let mut partitions: Vec<_> = contents
                    .blocks()
                    .iter()
                    .map(|block| block.partition)
                    .collect();
                partitions.dedup();
                contents.partitions() == partitions
            }
            // Frames depend on the compressor, and integers may be longer than needed.
            _ => false,
        }
}

/// Opening a file for appending either fails and leaves it unchanged, or everything in it stays and the new records
/// come after it.
fn appends(scan: &Scan, bytes: &[u8], options: &Options, folder: &Path, draw: &mut Draw) {
    let format = format_of(options);
    // A longer file, and one that is walked from its end, has a larger search budget. So more records may be found, or
    // none be missing.
    if scan.is_limited() {
        return;
    }
    let path = folder.join("appended");
    fs::write(&path, bytes).unwrap();
    let write_options = WriteOptions::default()
        .if_exists(IfExists::Append)
        .dialect(options.dialect)
        .set("zero_torn_tail", draw.below(2) == 0)
        .set("preallocate", draw.below(2000) as u64)
        .set("chunk_records", 1)
        .concerning(format);
    let appended = match create(format, &path, &write_options) {
        Err(Error::Damage(damage)) => {
            assert!(scan.spans.iter().any(|span| span.is_damage()), "{damage}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "{damage}");
            None
        }
        Err(Error::Format { message, .. }) => {
            assert!(scan.records.is_empty(), "{message}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "{message}");
            None
        }
        Err(error) => panic!("{error}"),
        Ok(mut writer) => {
            let fields: Vec<_> = own_record(options).collect();
            // There may be no greater UUID or message offset.
            let full = match writer.write(&fields) {
                Ok(_) => false,
                Err(Error::Usage(_)) => true,
                Err(error) => panic!("{error}"),
            };
            writer.close().unwrap();
            Some(usize::from(!full))
        }
    };
    if let Some(appended) = appended {
        let written = fs::read(&path).unwrap();
        let new = Scan::of(&written, options);
        if *format == active::FORMAT && hides_in_old_damage(scan, &new) {
            return fs::remove_file(&path).unwrap();
        }
        // New records can show that damage before them is not a torn tail. Then it is searched.
        if new.is_limited() {
            let index = path.with_extension(chunked::INDEX_EXTENSION);
            return [path, index]
                .iter()
                .filter(|path| path.exists())
                .for_each(|path| fs::remove_file(path).unwrap());
        }
        assert_eq!(
            new.records.len(),
            scan.records.len() + appended,
            "{:?}",
            new.spans
        );
        assert_eq!(new.records[..scan.records.len()], scan.records);
        if *format == chunked::FORMAT {
            let mut rebuilt = Vec::new();
            let put = |item: chunked::Item| {
                rebuilt.extend(item.encode());
                Ok(())
            };
            chunked::build_index(whole(&written), options, put).unwrap();
            let index = path.with_extension(chunked::INDEX_EXTENSION);
            assert_eq!(fs::read(&index).unwrap(), rebuilt);
            fs::remove_file(index).unwrap();
        }
    }
    fs::remove_file(&path).unwrap();
}

/// Whether records are missing in a range that begins with old damage. Lengths that led nowhere can lead to the new
/// records, or to their end. Then they are trusted (rule 10), and the bytes in between are not searched.
fn hides_in_old_damage(scan: &Scan, new: &Scan) -> bool {
    let was_damage = |start: u64| {
        let mut damage = scan.spans.iter().filter(|span| span.is_damage());
        damage.any(|span| (span.start..span.end).contains(&start))
    };
    let mut grown = new
        .spans
        .iter()
        .filter(|span| span.is_damage() && was_damage(span.start));
    grown.any(|span| !scan.spans.contains(span))
}

/// A record to append, with only the required fields.
fn own_record(options: &Options) -> impl Iterator<Item = Value<'static>> {
    let columns = options.format.unwrap().columns(options.dialect);
    columns.iter().map(|column| match column.name {
        "type" => Value::Text(b"appended"),
        "value" => Value::Binary(b"appended"),
        "checkpointer" | "abi" | "batch" => Value::UInt64(1),
        "version" => Value::UInt64(2),
        "clock" => Value::List(Vec::new()),
        "timestamp" if !column.optional => Value::Timestamp(0),
        "shard" | "level" => Value::Int64(1),
        "sequence" => Value::UInt64(1),
        _ => Value::Null,
    })
}
