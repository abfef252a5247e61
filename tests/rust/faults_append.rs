//! Every file operation of the appending writers fails once, or from then on: acknowledged records stay readable,
//! and the file can be appended to again.

use crate::fault_samples;
use std::fs;
use std::path::{Path, PathBuf};

use crate::fault_samples::{
    EIO, appended, assert_tells, contents, faults, hitches, listing, options, run, value, write,
};
use seglake::faults::{Fault, How, Operation};
use seglake::format::{self, Format, IfExists, Options, WriteOptions, active, chunked};
use seglake::ledger::Kind;
use seglake::{Error, verbs};

fn path(folder: &Path, format: &Format) -> PathBuf {
    folder.join(format!("log.{}", format.extension))
}

/// Records 0 to 4 that were there before.
fn existing(folder: &Path, format: &Format) {
    fault_samples::sample(&path(folder, format), format, 5);
}

/// How far a writer came.
#[derive(Debug, Default)]
struct Progress {
    /// It was opened.
    opened: bool,
    /// The writer acknowledged this many records.
    acknowledged: u64,
    failed: Option<Error>,
}

/// Appends records 5 to 13: flushed after 8, synced after 11, closed at the end.
fn append(folder: &Path, format: &Format, options: &WriteOptions) -> Progress {
    let mut progress = Progress::default();
    progress.failed = try_append(folder, format, options, &mut progress).err();
    progress
}

fn try_append(
    folder: &Path,
    format: &Format,
    options: &WriteOptions,
    progress: &mut Progress,
) -> seglake::Result<()> {
    let mut writer = format::create(format, path(folder, format), options)?;
    progress.opened = true;
    for number in 5..14 {
        match number {
            8 => writer.flush()?,
            11 => writer.sync()?,
            _ => {}
        }
        if matches!(number, 8 | 11) {
            progress.acknowledged = number;
        }
        write(&mut *writer, format, number)?;
    }
    writer.close()?;
    progress.acknowledged = 14;
    Ok(())
}

fn appending(format: &Format) -> WriteOptions {
    options(format)
        .if_exists(IfExists::Append)
        .set("preallocate", 3000)
        .concerning(format)
}

fn values(records: u64) -> Vec<Vec<u8>> {
    (0..records).map(value).collect()
}

#[test]
fn what_was_acknowledged_stays() {
    for format in appended() {
        for index in [true, false] {
            check_appending(format, index);
        }
    }
}

fn check_appending(format: &'static Format, index: bool) {
    let options = appending(format).set("index", index).concerning(format);
    let prepare = |folder: &Path| existing(folder, format);
    let work = |folder: &Path| append(folder, format, &options);
    let (folder, progress, operations) = run(prepare, work, None);
    assert!(progress.failed.is_none());
    let complete = listing(folder.path());
    assert_eq!(contents(&path(folder.path(), format), format).0, values(14));
    for fault in hitches(&operations) {
        let (folder, progress, _) = run(prepare, work, Some(fault));
        assert!(
            progress.failed.is_none(),
            "{format:?}, {fault:?}: {progress:?}"
        );
        assert!(listing(folder.path()) == complete, "{format:?}, {fault:?}");
    }
    let mut failed = 0;
    for fault in faults(&operations) {
        let (folder, progress, _) = run(prepare, work, Some(fault));
        let what = format!("{format:?}, index: {index}, {fault:?}, {progress:?}");
        if let Some(error) = &progress.failed {
            assert_tells(error, fault, folder.path());
            failed += 1;
        }
        check_after(folder.path(), format, progress.acknowledged.max(5), &what);
    }
    assert!(
        failed * 10 > operations.len() * 9,
        "{format:?}: {failed} of {operations:?}"
    );
}

/// Asserts that all acknowledged records are in the file, that it has none that were not written, and that it can
/// be opened and appended to.
fn check_after(folder: &Path, format: &'static Format, acknowledged: u64, what: &str) {
    let path = path(folder, format);
    let (kept, spans) = contents(&path, format);
    let records = kept.len() as u64;
    assert!(records >= acknowledged, "{what}: {records} records");
    assert_eq!(kept, values(records), "{what}");
    assert!(
        spans.iter().all(|span| span.kind != Kind::Corrupt),
        "{what}: {spans:?}"
    );

    let again = options(format)
        .if_exists(IfExists::Append)
        .set("zero_torn_tail", true);
    let mut writer = format::create(format, &path, &again).unwrap();
    write(&mut *writer, format, records).unwrap();
    writer.close().unwrap();
    drop(writer);
    let strict = Options::default().format(format);
    let report = verbs::verify(fault_samples::source(&path).unwrap(), &strict, |_| Ok(())).unwrap();
    assert_eq!(report.summary.records, records + 1, "{what}");
    assert!(report.is_sound(), "{what}: {:?}", report.summary.damage);
    let mut names: Vec<_> = listing(folder).into_keys().collect();
    names.retain(|name| *name != "log.index" && !name.ends_with(".quarantine"));
    assert_eq!(
        names,
        [path.file_name().unwrap().to_str().unwrap()],
        "{what}"
    );
    if format.name == "chunked" {
        let log = fault_samples::source(&path).unwrap();
        let index = fault_samples::source(&path.with_extension("index")).unwrap();
        let index = chunked::Index::read(&*log, &*index, &strict).unwrap();
        assert!(
            index.spans.iter().all(|span| span.cause.is_none()),
            "{what}"
        );
    }
}

/// A file that could not be opened for writing is not there afterwards, so that the next try does not find it in its way.
#[test]
fn a_new_file_that_cannot_be_begun_is_not_there() {
    for format in appended() {
        for append in [false, true] {
            let options = appending(format).if_exists(if append {
                IfExists::Append
            } else {
                IfExists::Error
            });
            let work = |folder: &Path| {
                let opened = format::create(format, path(folder, format), &options);
                opened.map(drop)
            };
            let (_, done, operations) = run(|_| (), work, None);
            done.unwrap();
            for fault in faults(&operations) {
                let (folder, done, _) = run(|_| (), work, Some(fault));
                match done {
                    Ok(()) => continue,
                    Err(error) => assert_tells(&error, fault, folder.path()),
                }
                let left = listing(folder.path());
                assert!(
                    left.is_empty(),
                    "{format:?}, {append}, {fault:?}: {:?}",
                    left.keys()
                );
            }
        }
    }
}

/// Where preallocating fails, an existing file is as long as it was.
#[test]
fn failed_preallocating_leaves_no_zeros() {
    let format = &active::FORMAT;
    let options = appending(format).set("preallocate", 4 << 20);
    let prepare = |folder: &Path| existing(folder, format);
    let work = |folder: &Path| format::create(format, path(folder, format), &options).map(drop);
    let (_, done, operations) = run(prepare, work, None);
    done.unwrap();
    let writes = operations
        .iter()
        .filter(|own| **own == Operation::Write)
        .count();
    assert!(writes > 3, "{operations:?}");
    for fault in faults(&operations) {
        let (folder, done, _) = run(prepare, work, Some(fault));
        if done.is_err() {
            let before = run(prepare, |_| (), None).0;
            assert!(
                listing(folder.path()) == listing(before.path()),
                "{fault:?}"
            );
        }
    }
}

/// Zeroing or cutting off a torn tail may fail at any point: it is one still, and the next try removes it.
#[test]
fn removing_a_torn_tail() {
    for format in appended() {
        let prepare = |folder: &Path| {
            existing(folder, format);
            let path = path(folder, format);
            let len = fs::metadata(&path).unwrap().len();
            // Within the last record. A chunk is followed by padding, which may be missing.
            let cut = if format.name == "chunked" {
                len - 0x80 + 30
            } else {
                len - 3
            };
            fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(cut)
                .unwrap();
        };
        let options = options(format)
            .if_exists(IfExists::Append)
            .set("zero_torn_tail", true);
        let work = |folder: &Path| format::create(format, path(folder, format), &options).map(drop);
        let (_, done, operations) = run(prepare, work, None);
        done.unwrap();
        for fault in faults(&operations).into_iter().chain(hitches(&operations)) {
            let (folder, _, _) = run(prepare, work, Some(fault));
            check_after(folder.path(), format, 4, &format!("{format:?}, {fault:?}"));
        }
    }
}

/// A failed flush can be called again. The file is then as if it had not failed.
#[test]
fn flushing_again() {
    for format in appended() {
        let options = appending(format);
        let work = |folder: &Path| {
            let mut writer = format::create(format, path(folder, format), &options).unwrap();
            let mut failed = 0;
            for number in 5..14 {
                write(&mut *writer, format, number).unwrap();
                if number % 3 == 0 && writer.flush().is_err() {
                    failed += 1;
                    writer.flush().unwrap();
                }
            }
            if writer.close().is_err() {
                failed += 1;
                writer.close().unwrap();
            }
            failed
        };
        let prepare = |folder: &Path| existing(folder, format);
        let (folder, failed, operations) = run(prepare, work, None);
        assert_eq!(failed, 0);
        let complete = listing(folder.path());
        let opened = run(
            prepare,
            |folder| drop(format::create(format, path(folder, format), &options).unwrap()),
            None,
        );
        let mut hit = 0;
        for fault in faults(&operations) {
            if fault.lasting || fault.at < opened.2.len() {
                continue;
            }
            let (folder, failed, _) = run(prepare, work, Some(fault));
            hit += failed;
            assert!(listing(folder.path()) == complete, "{format:?}, {fault:?}");
        }
        assert!(hit >= 8, "{format:?}: {hit}");
    }
}

/// After a failed sync every later call fails too, and says what to do. What was synced before is there.
#[test]
fn nothing_pretends_after_a_failed_sync() {
    for format in appended() {
        let work = |folder: &Path| {
            let mut writer =
                format::create(format, path(folder, format), &appending(format)).unwrap();
            for number in 5..8 {
                write(&mut *writer, format, number).unwrap();
            }
            if writer.sync().is_ok() {
                return false;
            }
            for attempt in 0..2 {
                let refused = [
                    write(&mut *writer, format, 8),
                    writer.sync(),
                    writer.flush(),
                    writer.close(),
                ];
                for done in refused {
                    let told = done.unwrap_err().to_string();
                    assert!(
                        told.contains("open the file again"),
                        "{format:?}, {attempt}: {told}"
                    );
                }
            }
            true
        };
        let prepare = |folder: &Path| existing(folder, format);
        let (_, failed, operations) = run(prepare, work, None);
        assert!(!failed);
        let syncs = operations
            .iter()
            .enumerate()
            .filter(|(_, own)| **own == Operation::Sync);
        let mut tried = 0;
        for (at, _) in syncs {
            let fault = Fault {
                at,
                lasting: false,
                how: How::Fails(EIO),
            };
            let (folder, failed, _) = run(prepare, work, Some(fault));
            assert!(failed, "{format:?}, {fault:?}");
            check_after(folder.path(), format, 5, &format!("{format:?}, {fault:?}"));
            tried += 1;
        }
        assert!(tried >= 2, "{format:?}: {operations:?}");
    }
}
