//! New files: their names while they are written, how much of them is in memory, and what happens if a name is taken.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::fault_samples::{EIO, contents, folder, listing, options, sample, source, write};
use seglake::Error;
use seglake::faults::{Fault, How, Operation, inject};
use seglake::format::{
    self, FORMATS, Format, IfExists, Options, Value, WriteOptions, active, chunked, oplog, sealed,
};
use seglake::verbs::{self, ConvertOptions, RecoverOptions};

const EPERM: i32 = 1;
const EEXIST: i32 = 17;
const EOPNOTSUPP: i32 = 95;
const RECORDS: u64 = 12;

/// The numbers of the operations of this kind.
fn places(operations: &[Operation], kind: Operation) -> Vec<usize> {
    let all = operations.iter().enumerate();
    all.filter(|(_, own)| **own == kind)
        .map(|(at, _)| at)
        .collect()
}

fn once(at: usize, number: i32) -> Option<Fault> {
    Some(Fault {
        at,
        lasting: false,
        how: How::Fails(number),
    })
}

fn io_error(result: seglake::Result<()>) -> (Option<std::path::PathBuf>, std::io::Error) {
    match result {
        Err(Error::Io { path, source, .. }) => (path, source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_file_has_a_hidden_name_until_it_is_complete() {
    let longest = "n".repeat(255);
    let just = "n".repeat(200);
    let hidden = format!(".{just}.");
    for (name, begins) in [
        ("new", ".new."),
        (just.as_str(), hidden.as_str()),
        (longest.as_str(), ".seglake."),
    ] {
        let folder = folder();
        let path = folder.path().join(name);
        let mut writer = format::create(&sealed::FORMAT, &path, &options(&sealed::FORMAT)).unwrap();
        write(&mut *writer, &sealed::FORMAT, 0).unwrap();
        let names: Vec<_> = listing(folder.path()).into_keys().collect();
        let [own] = names.as_slice() else {
            panic!("{names:?}")
        };
        assert!(own.starts_with(begins) && own.ends_with(".tmp"), "{own}");
        writer.close().unwrap();
        let names: Vec<_> = listing(folder.path()).into_keys().collect();
        assert_eq!(names, [name]);
    }
}

/// Bytes that do not compress, the same each time.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}

/// A writer's buffer is bounded: four mebibytes are not all written at the end.
#[test]
fn writers_write_before_they_are_asked_to() {
    const VALUE_BYTES: usize = 700 << 10;
    let value = noise(VALUE_BYTES);
    for format in [
        &active::FORMAT,
        &sealed::FORMAT,
        &chunked::FORMAT,
        &oplog::FORMAT,
    ] {
        let folder = folder();
        let options = WriteOptions::default()
            .set("chunk_records", 1)
            .concerning(format);
        let path = folder.path().join("new");
        let mut writer = format::create(format, &path, &options).unwrap();
        let mut put = |number: u64| {
            let (value, one, zero) = (Value::Binary(&value), Value::UInt64(1), Value::UInt64(0));
            let fields = match format.name {
                "chunked" => vec![Value::Null, Value::Timestamp(0), value],
                "oplog" => {
                    let (clock, null) = (Value::List(Vec::new()), Value::Null);
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
                _ => vec![
                    Value::Uuid(crate::common::uuid(number)),
                    Value::Null,
                    Value::Text(b"type"),
                    value,
                ],
            };
            writer.write(&fields).unwrap();
        };
        let (_, operations) = inject(None, || (0..6).for_each(&mut put));
        let writes = places(&operations, Operation::Write).len();
        assert!((2..=6).contains(&writes), "{format:?}: {operations:?}");
    }
}

/// Converts `old`, an active segment, into `new`.
fn convert(
    old: &Path,
    new: &Path,
    to: &'static Format,
    overwrite: bool,
    progress: impl Fn(),
) -> seglake::Result<()> {
    let lost = ["uuid".to_owned(), "type".to_owned()];
    let drop = if to.name == "chunked" { &lost[..] } else { &[] };
    let conversion = ConvertOptions::to(to)
        .write(options(to))
        .drop(drop)
        .if_exists(IfExists::overwrite_if(overwrite));
    let options = Options::default().format(&active::FORMAT);
    verbs::convert(source(old)?, &options, new, &conversion, |_| {
        progress();
        Ok(())
    })?;
    Ok(())
}

#[test]
fn an_error_of_reading_names_the_file_that_is_read() {
    let (from, to) = (folder(), folder());
    let old = from.path().join("old.active");
    sample(&old, &active::FORMAT, RECORDS);
    let new = to.path().join("new.active");
    let work = || convert(&old, &new, &active::FORMAT, true, || ());
    let (done, operations) = inject(None, work);
    done.unwrap();
    let reads = places(&operations, Operation::Read);
    assert!(!reads.is_empty());
    let mut of_old = 0;
    for at in reads {
        let (done, _) = inject(once(at, EIO), work);
        let (path, _) = io_error(done);
        // While the new file is read back, its final name is given, not the temporary one.
        assert!([&old, &new].contains(&path.as_ref().unwrap()), "{path:?}");
        of_old += usize::from(path.as_ref() == Some(&old));
    }
    assert!(of_old > 0);
}

/// Where a file system has no links, files are renamed.
#[test]
fn a_file_gets_its_name_without_links() {
    for number in [EPERM, EOPNOTSUPP] {
        for to in [&active::FORMAT, &chunked::FORMAT] {
            let from = folder();
            let old = from.path().join("old.active");
            sample(&old, &active::FORMAT, RECORDS);
            let work = |into: &Path| convert(&old, &into.join("new.chunks"), to, false, || ());
            let whole = folder();
            let (done, operations) = inject(None, || work(whole.path()));
            done.unwrap();
            let names: Vec<_> = listing(whole.path()).into_keys().collect();
            let renames = places(&operations, Operation::Rename);
            assert_eq!(renames.len(), names.len());
            for at in renames {
                let into = folder();
                let (done, _) = inject(once(at, number), || work(into.path()));
                done.unwrap();
                assert!(listing(into.path()).keys().eq(&names));
                assert_eq!(
                    listing(into.path())["new.chunks"].len(),
                    listing(whole.path())["new.chunks"].len()
                );
            }
        }
    }
}

/// A file that appears under the name meanwhile is not replaced, with links or without.
#[test]
fn a_file_that_appears_meanwhile_stays() {
    for number in [None, Some(EPERM), Some(EEXIST)] {
        let folder = folder();
        let old = folder.path().join("old.active");
        sample(&old, &active::FORMAT, RECORDS);
        let new = folder.path().join("new.active");
        let work = || {
            convert(&old, &new, &active::FORMAT, false, || {
                fs::write(&new, b"another's").unwrap();
            })
        };
        let (done, operations) = inject(None, work);
        assert_eq!(io_error(done).1.kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&new).unwrap();
        let place = places(&operations, Operation::Rename)[0];
        let fault = number.and_then(|number| once(place, number));
        let (done, _) = inject(fault, work);
        assert_eq!(io_error(done).1.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&new).unwrap(), b"another's");
        assert_eq!(listing(folder.path()).len(), 2);
    }
}

/// A link fails because the name is taken. The other file is removed right afterwards, but naming is not tried again.
#[test]
fn a_name_that_was_taken_stays_refused() {
    let folder = folder();
    let old = folder.path().join("old.active");
    sample(&old, &active::FORMAT, RECORDS);
    let new = folder.path().join("new.active");
    let work = || convert(&old, &new, &active::FORMAT, false, || ());
    let (done, operations) = inject(None, work);
    done.unwrap();
    fs::remove_file(&new).unwrap();
    let place = places(&operations, Operation::Rename)[0];
    let (done, _) = inject(once(place, EEXIST), work);
    assert_eq!(io_error(done).1.kind(), ErrorKind::AlreadyExists);
    assert!(!new.exists());
}

/// The main file gets its name last: the new files beside it do no harm as long as it is the old one.
#[test]
fn the_file_itself_is_replaced_last() {
    let folder = folder();
    let old = folder.path().join("old.active");
    sample(&old, &active::FORMAT, RECORDS);
    let (new, index) = (
        folder.path().join("new.chunks"),
        folder.path().join("new.index"),
    );
    let work = || convert(&old, &new, &chunked::FORMAT, true, || ());
    let (done, operations) = inject(None, work);
    done.unwrap();
    let renames = places(&operations, Operation::Rename);
    assert_eq!(renames.len(), 2);
    for (at, is_index_new) in renames.into_iter().zip([false, true]) {
        fs::write(&new, b"old chunks").unwrap();
        fs::write(&index, b"old index").unwrap();
        let (done, _) = inject(once(at, EIO), work);
        io_error(done);
        assert_eq!(fs::read(&new).unwrap(), b"old chunks");
        assert_eq!(fs::read(&index).unwrap() != b"old index", is_index_new);
    }
}

/// Replaced files are kept aside by links until all new files have their names. Without links they are not kept.
/// Any other failure of a link is an error.
#[test]
fn recovering_over_a_file_keeps_it_aside_if_it_can() {
    let prepare = |folder: &Path| {
        let old = folder.join("old.active");
        sample(&old, &active::FORMAT, RECORDS);
        let mut bytes = fs::read(&old).unwrap();
        bytes[100] ^= 1;
        fs::write(&old, bytes).unwrap();
        fs::write(folder.join("new.active"), b"before").unwrap();
    };
    let work = |folder: &Path| {
        let recovery = RecoverOptions::default().if_exists(IfExists::Overwrite);
        let old = source(&folder.join("old.active"))?;
        let options = Options::default();
        let new = folder.join("new.active");
        verbs::recover(old, &options, &new, &recovery, |_| Ok(())).map(drop)
    };
    let run = |fault| {
        let folder = folder();
        prepare(folder.path());
        let (done, operations) = inject(fault, || work(folder.path()));
        (folder, done, operations)
    };
    let (whole, done, operations) = run(None);
    done.unwrap();
    let complete = listing(whole.path());
    // One link more than there are new files: the one that keeps the old file.
    let renames = places(&operations, Operation::Rename);
    assert_eq!(renames.len(), complete.len());
    let mut kept = 0;
    for at in renames {
        let (folder, done, _) = run(once(at, EIO));
        io_error(done);
        assert_eq!(
            fs::read(folder.path().join("new.active")).unwrap(),
            b"before"
        );
        assert_eq!(listing(folder.path()).len(), 2);
        for number in [EPERM, EOPNOTSUPP] {
            let (folder, done, _) = run(once(at, number));
            kept += usize::from(done.is_ok());
            let after = listing(folder.path());
            assert_eq!(after == complete, done.is_ok());
        }
    }
    assert_eq!(kept, 2, "the link alone may be missing");
}

/// An index has no item of a chunk that may not have been written.
#[test]
fn no_index_item_without_its_chunk() {
    let work = |folder: &Path| {
        let path = folder.join("log.chunks");
        let mut writer =
            format::create(&chunked::FORMAT, &path, &options(&chunked::FORMAT)).unwrap();
        for number in 0..4 {
            write(&mut *writer, &chunked::FORMAT, number).unwrap();
        }
    };
    let whole = folder();
    let (_, operations) = inject(None, || work(whole.path()));
    let path = whole.path().join("log.chunks");
    assert_eq!(contents(&path, &chunked::FORMAT).0.len(), 4);
    assert!(!listing(whole.path())["log.index"].is_empty());
    // The log is written first, by dropping the writer.
    let first = places(&operations, Operation::Write)[0];
    let folder = folder();
    inject(once(first, EIO), || work(folder.path()));
    assert!(listing(folder.path())["log.index"].is_empty());
}

/// Closing ends a writer: it takes no more, and another one can have the file while the first is not dropped yet.
#[test]
fn a_writer_that_was_closed_or_abandoned_writes_nothing() {
    for &format in FORMATS {
        for is_closed in [true, false] {
            let folder = folder();
            let path = folder.path().join("new");
            let mut ended = format::create(format, &path, &options(format)).unwrap();
            write(&mut *ended, format, 0).unwrap();
            for _ in 0..2 {
                match is_closed {
                    true => ended.close().unwrap(),
                    false => ended.abandon().unwrap(),
                }
            }
            let refused = write(&mut *ended, format, 1).unwrap_err();
            assert!(matches!(refused, Error::Usage(_)), "{format:?}: {refused}");
            assert!(refused.to_string().contains("closed"), "{refused}");
            if format.is_appended_to() {
                let append = options(format).if_exists(IfExists::Append);
                let mut next = format::create(format, &path, &append).unwrap();
                write(&mut *next, format, 1).unwrap();
                next.close().unwrap();
                drop(ended);
                assert_eq!(contents(&path, format).0.len(), 2, "{format:?}");
            }
        }
    }
}
