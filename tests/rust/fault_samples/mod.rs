//! Small files of every format, their records, and every way in which an operation on them can fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use seglake::Error;
use seglake::faults::{Fault, How, Operation, inject};
use seglake::format::{
    self, Column, ColumnKind, FORMATS, Format, Options, RecordId, Scalar, Start, Step, Value,
    WriteOptions, Writer,
};
use seglake::ledger::Span;
use seglake::source::{FileSource, Source, open_regular};

use crate::common::uuid;

type Files = BTreeMap<String, Vec<u8>>;

pub(crate) const EIO: i32 = 5;
pub(crate) const EINTR: i32 = 4;
pub(crate) const ENOSPC: i32 = 28;

/// The value of record `number`.
pub(crate) fn value(number: u64) -> Vec<u8> {
    format!("value {number} ")
        .repeat(usize::try_from(number % 7).unwrap() + 1)
        .into_bytes()
}

/// The formats whose files are appended to.
pub(crate) fn appended() -> impl Iterator<Item = &'static Format> {
    let all = FORMATS.iter().copied();
    all.filter(|format| format.is_appended_to())
}

/// What texts of a record are.
const TEXT: &str = "tenant";

/// What signed numbers of a record are.
fn group(number: u64) -> i64 {
    i64::try_from(number / 5 % 256).unwrap()
}

/// What record `number` is found by, in files of these records alone.
pub(crate) fn id(format: &Format, number: u64) -> RecordId {
    id_among(format, number, value)
}

/// The same, in files of records with these values.
pub(crate) fn id_among(format: &Format, number: u64, value: fn(u64) -> Vec<u8>) -> RecordId {
    match format.name {
        "chunked" | "oplog" => number.into(),
        // Where it begins.
        "tfrecord" => {
            let lengths = (0..number).map(|before| 16 + value(before).len() as u64);
            lengths.sum::<u64>().into()
        }
        "tenant" => RecordId::new([group(number).into(), TEXT.into(), (number % 5).into()]),
        _ => {
            let value = |column: &Column| match column.kind {
                ColumnKind::Uuid => uuid(number).into(),
                ColumnKind::Int64 => group(number).into(),
                _ => number.into(),
            };
            let options = Options::default();
            let columns = format.identifying(options.dialect);
            RecordId::new(columns.map(value).collect::<Vec<Scalar>>())
        }
    }
}

/// Writes record `number`, the same each time.
pub(crate) fn write(writer: &mut dyn Writer, format: &Format, number: u64) -> seglake::Result<()> {
    write_value(writer, format, number, &value(number))
}

/// Writes record `number` with this value.
pub(crate) fn write_value(
    writer: &mut dyn Writer,
    format: &Format,
    number: u64,
    value: &[u8],
) -> seglake::Result<()> {
    let (value, one) = (Value::Binary(value), Value::UInt64(1));
    let fields = match format.name {
        "oplog" => {
            let clock = Value::List(Vec::new());
            let (zero, null) = (Value::UInt64(0), Value::Null);
            vec![
                null.clone(),
                one.clone(),
                one.clone(),
                null.clone(),
                clock,
                zero,
                one,
                value,
                null,
            ]
        }
        _ => {
            let field = |column: &Column| match column.kind {
                _ if column.optional => Value::Null,
                ColumnKind::Uuid => Value::Uuid(uuid(number)),
                ColumnKind::Timestamp => Value::Timestamp(0),
                ColumnKind::Text => Value::Text(TEXT.as_bytes()),
                ColumnKind::Int64 => Value::Int64(group(number)),
                ColumnKind::UInt64 => Value::UInt64(number),
                ColumnKind::Binary => value.clone(),
                kind => panic!("no samples of {kind:?}"),
            };
            writer.columns().iter().map(field).collect()
        }
    };
    writer.write(&fields).map(drop)
}

/// Small chunks, and messages that go to temporary files: so that there is more that can fail.
pub(crate) fn options(format: &Format) -> WriteOptions {
    WriteOptions::default()
        .set("chunk_records", 4)
        .set("memory_bytes", 600)
        .concerning(format)
}

/// Writes a file of `records` records, whole.
pub(crate) fn sample(path: &Path, format: &Format, records: u64) {
    let mut writer = format::create(format, path, &options(format)).unwrap();
    for number in 0..records {
        write(&mut *writer, format, number).unwrap();
    }
    writer.close().unwrap();
}

pub(crate) fn source(path: &Path) -> seglake::Result<Arc<dyn Source>> {
    Ok(Arc::new(FileSource::new(open_regular(path)?, path)?))
}

/// The values of a file's good records, and its ledger.
pub(crate) fn contents(path: &Path, format: &'static Format) -> (Vec<Vec<u8>>, Vec<Span>) {
    contents_of(source(path).unwrap(), format)
}

/// The same of a source.
pub(crate) fn contents_of(
    source: Arc<dyn Source>,
    format: &'static Format,
) -> (Vec<Vec<u8>>, Vec<Span>) {
    let options = Options::default().format(format).strict(false);
    let mut walk = format::open(source, &options, Start::Beginning).unwrap();
    let (mut values, mut spans) = (Vec::new(), Vec::new());
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        values.extend((0..rows.len()).map(|row| {
            let column = format
                .columns(options.dialect)
                .iter()
                .position(|own| own.name == "value");
            match rows.field(row, column.unwrap()) {
                Value::Binary(value) => value.to_vec(),
                other => panic!("{other:?}"),
            }
        }));
        spans.extend_from_slice(walk.spans());
    }
    (values, spans)
}

/// The names and contents of all files under a folder.
pub(crate) fn listing(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inside = listing(&entry.path());
            files.insert(format!("{name}/"), Vec::new());
            files.extend(
                inside
                    .into_iter()
                    .map(|(own, bytes)| (format!("{name}/{own}"), bytes)),
            );
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Every fault for work that performs these operations: each error that each of them can return.
pub(crate) fn faults(operations: &[Operation]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        let hows: &[How] = match operation {
            Operation::Read => &[How::Fails(EIO)],
            Operation::Write | Operation::Open | Operation::Truncate => {
                &[How::Fails(EIO), How::Fails(ENOSPC)]
            }
            _ => &[How::Fails(EIO)],
        };
        for how in hows {
            faults.extend([false, true].map(|lasting| Fault {
                at,
                lasting,
                how: *how,
            }));
        }
    }
    faults
}

/// Every fault that is none to the caller: reads and writes that do less than was asked for, or are interrupted.
pub(crate) fn hitches(operations: &[Operation]) -> Vec<Fault> {
    let is_transfer =
        |operation: &Operation| matches!(operation, Operation::Read | Operation::Write);
    let places = operations
        .iter()
        .enumerate()
        .filter(|(_, own)| is_transfer(own));
    places
        .flat_map(|(at, _)| {
            [How::Short, How::Fails(EINTR)].map(|how| Fault {
                at,
                lasting: false,
                how,
            })
        })
        .collect()
}

/// Asserts that an error names the file, the operation, and the system's error.
pub(crate) fn assert_tells(error: &Error, fault: Fault, folder: &Path) {
    let Error::Io {
        path,
        action,
        source,
        ..
    } = error
    else {
        panic!("{fault:?}: {error}")
    };
    let path = path.as_ref().unwrap();
    // A folder within it contains an unrelated file.
    assert_eq!(path.parent(), Some(folder), "{fault:?}: {error}");
    assert!(!action.is_empty());
    let How::Fails(number) = fault.how else {
        panic!("{fault:?}")
    };
    assert_eq!(source.raw_os_error(), Some(number), "{fault:?}: {error}");
}

/// A new folder, in memory where the machine has such a place: thousands of syncs of a disk take their time.
pub(crate) fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        return tempfile::tempdir_in(memory).unwrap();
    }
    tempfile::tempdir().unwrap()
}

/// Does `work` in a new folder that `prepare` fills, with a fault.
pub(crate) fn run<T>(
    prepare: impl Fn(&Path),
    work: impl Fn(&Path) -> T,
    fault: Option<Fault>,
) -> (tempfile::TempDir, T, Vec<Operation>) {
    let folder = self::folder();
    prepare(folder.path());
    let (done, operations) = inject(fault, || work(folder.path()));
    (folder, done, operations)
}

/// What goes wrong in making a new file leaves the folder as it was; what does not, makes the file as it would have been.
pub(crate) fn all_or_nothing(
    name: &str,
    prepare: impl Fn(&Path) + Copy,
    work: impl Fn(&Path) -> seglake::Result<()> + Copy,
) {
    try_all(name, false, prepare, work);
}

/// The same where several files are replaced. If no name can be changed any more, they cannot be given back their own: then all
/// that was there is there still, under whatever name.
pub(crate) fn all_or_nothing_replacing(
    name: &str,
    prepare: impl Fn(&Path) + Copy,
    work: impl Fn(&Path) -> seglake::Result<()> + Copy,
) {
    try_all(name, true, prepare, work);
}

fn try_all(
    name: &str,
    replaces: bool,
    prepare: impl Fn(&Path) + Copy,
    work: impl Fn(&Path) -> seglake::Result<()> + Copy,
) {
    let (folder, done, operations) = run(prepare, work, None);
    done.unwrap();
    let complete = listing(folder.path());
    let before = {
        let folder = self::folder();
        prepare(folder.path());
        listing(folder.path())
    };
    assert_ne!(before, complete);
    for fault in hitches(&operations) {
        let (folder, done, _) = run(prepare, work, Some(fault));
        done.unwrap();
        assert!(listing(folder.path()) == complete, "{name}, {fault:?}");
    }
    let mut failed = 0;
    for fault in faults(&operations) {
        let (folder, done, _) = run(prepare, work, Some(fault));
        failed += usize::from(done.is_err());
        // Then it cannot be undone, or nobody knows whether it may be.
        let is_stuck = replaces
            && fault.lasting
            && matches!(operations[fault.at], Operation::Rename | Operation::Stat);
        check_made(
            &format!("{name}, {fault:?}"),
            done.err().map(|error| (error, fault)),
            folder.path(),
            is_stuck,
            [&before, &complete],
        );
    }
    // Nearly every operation matters: without operations this test would pass.
    assert!(
        failed * 10 > operations.len() * 9,
        "{name}: {failed} of {operations:?}"
    );
}

fn check_made(
    name: &str,
    failure: Option<(Error, Fault)>,
    folder: &Path,
    is_stuck: bool,
    [before, complete]: [&Files; 2],
) {
    let after = listing(folder);
    let Some((error, fault)) = failure else {
        assert!(after == *complete, "{name}: {:?}", after.keys());
        return;
    };
    assert_tells(&error, fault, folder);
    let is_kept = |content| after.values().any(|own| own == content);
    if error.to_string().contains("complete and in its place") {
        assert!(after == *complete, "{name}: {:?}", after.keys());
    } else if is_stuck {
        assert!(before.values().all(is_kept), "{name}: {:?}", after.keys());
    } else {
        assert!(after == *before, "{name}: {error}: {:?}", after.keys());
    }
}
