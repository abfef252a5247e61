//! Every file operation of every verb fails once, or from then on: the error is clear, nothing is left over, no
//! damage gets worse.

use crate::fault_samples;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::fault_samples::{
    all_or_nothing, assert_tells, contents, faults, hitches, listing, options, run, sample, source,
    write,
};
use seglake::Error;
use seglake::faults::{Fault, How, Operation, inject};
use seglake::format::{
    self, FORMATS, Format, IfExists, Lookup, Options, RecordId, Start, Step, WriteOptions, active,
    chunked, sealed, tenant,
};
use seglake::source::Source;
use seglake::verbs::{self, ConvertOptions, SealOptions};

const RECORDS: u64 = 24;

fn write_whole(folder: &Path, format: &Format, options: &WriteOptions) -> seglake::Result<()> {
    let path = folder.join("new");
    let mut writer = format::create(format, &path, options)?;
    for number in 0..RECORDS {
        write(&mut *writer, format, number)?;
    }
    writer.flush()?;
    writer.sync()?;
    writer.close()
}

#[test]
fn writing_whole() {
    let (one, two) = (1, 2);
    for (format, version) in [
        (&sealed::FORMAT, two),
        (&tenant::FORMAT, one),
        (&tenant::FORMAT, two),
    ] {
        for overwrite in [false, true] {
            let options = options(format)
                .set("version", version)
                .if_exists(IfExists::overwrite_if(overwrite))
                .concerning(format);
            let prepare = |folder: &Path| {
                if overwrite {
                    fs::write(folder.join("new"), b"what was there before").unwrap();
                }
            };
            let name = format!("{format:?} {version}, overwrite: {overwrite}");
            all_or_nothing(&name, prepare, |folder| {
                write_whole(folder, format, &options)
            });
        }
    }
}

/// After any error closing again continues, and what was written is kept.
#[test]
fn closing_again() {
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        let written = |folder: &Path| {
            let mut writer = format::create(format, folder.join("new"), &options(format)).unwrap();
            for number in 0..RECORDS {
                let _ = write(&mut *writer, format, number); // the record is kept, it says
            }
            writer
        };
        let work = |folder: &Path| {
            let mut writer = written(folder);
            let first = writer.close();
            (first.is_err(), writer.close())
        };
        let (folder, _, operations) = run(|_| (), work, None);
        let complete = listing(folder.path());
        let created = run(
            |_| (),
            |folder| drop(format::create(format, folder.join("new"), &options(format))),
            None,
        );
        let mut failed = 0;
        for fault in faults(&operations)
            .into_iter()
            .filter(|fault| !fault.lasting && fault.at >= created.2.len())
        {
            let (folder, (has_failed, again), _) = run(|_| (), work, Some(fault));
            failed += usize::from(has_failed);
            match again {
                Ok(()) => {}
                // Only its name was not synced, and now it is in the way of itself.
                Err(error) => assert!(
                    error.to_string().contains("cannot open for writing"),
                    "{error}"
                ),
            }
            assert!(listing(folder.path()) == complete, "{format:?}, {fault:?}");
        }
        assert!(failed > 5, "{format:?}: {failed}");
    }
}

#[test]
fn sealing() {
    for trailer in [false, true] {
        let prepare = |folder: &Path| sample(&folder.join("old.active"), &active::FORMAT, RECORDS);
        let work = |folder: &Path| {
            let seal = SealOptions::default()
                .trailer(trailer)
                .if_exists(IfExists::Error);
            let old = source(&folder.join("old.active"))?;
            verbs::seal(
                old,
                &Options::default(),
                folder.join("new.sealed"),
                &seal,
                |_| Ok(()),
            )
            .map(drop)
        };
        all_or_nothing(&format!("seal, trailer: {trailer}"), prepare, work);
    }
}

#[test]
fn converting() {
    for format in FORMATS {
        for overwrite in [false, true] {
            let new = format!("new.{}", format.extension);
            let prepare = |folder: &Path| {
                sample(&folder.join("old"), format, RECORDS);
                if overwrite {
                    fs::write(folder.join(&new), b"what was there before").unwrap();
                }
            };
            let work = |folder: &Path| {
                let conversion = ConvertOptions::to(format)
                    .write(options(format).set("index", !overwrite).concerning(format))
                    .if_exists(IfExists::overwrite_if(overwrite));
                let old = source(&folder.join("old"))?;
                let options = Options::default().format(*format);
                verbs::convert(old, &options, folder.join(&new), &conversion, |_| Ok(())).map(drop)
            };
            all_or_nothing(
                &format!("convert to {format:?}, overwrite: {overwrite}"),
                prepare,
                work,
            );
        }
    }
}

/// On a file system without links a new file is renamed, but does not replace one that has appeared meanwhile.
#[test]
fn converting_without_links() {
    const EPERM: i32 = 1;
    for format in FORMATS {
        let new = format!("new.{}", format.extension);
        for is_in_the_way in [false, true] {
            let prepare = |folder: &Path| sample(&folder.join("old"), format, RECORDS);
            let work = |folder: &Path| {
                let conversion = ConvertOptions::to(format).write(options(format));
                let old = source(&folder.join("old"))?;
                let options = Options::default().format(*format);
                let appear = |_| {
                    if is_in_the_way {
                        fs::write(folder.join(&new), b"of somebody else").unwrap();
                    }
                    Ok(())
                };
                verbs::convert(old, &options, folder.join(&new), &conversion, appear).map(drop)
            };
            let (_, _, operations) = run(prepare, work, None);
            let links = operations.iter().rposition(|own| *own == Operation::Rename);
            let fault = Fault {
                at: links.unwrap(),
                lasting: false,
                how: How::Fails(EPERM),
            };
            let (folder, done, _) = run(prepare, work, Some(fault));
            let found = fs::read(folder.path().join(&new)).unwrap();
            if is_in_the_way {
                let error = done.unwrap_err();
                assert!(
                    matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists),
                    "{error}"
                );
                assert_eq!(found, b"of somebody else");
                assert_eq!(
                    listing(folder.path()).len(),
                    if format.name == "chunked" { 3 } else { 2 }
                );
            } else {
                done.unwrap();
                assert_eq!(
                    contents(&folder.path().join(&new), format).0.len() as u64,
                    RECORDS
                );
            }
        }
    }
}

#[test]
fn indexing() {
    for overwrite in [false, true] {
        let prepare = |folder: &Path| {
            sample(&folder.join("log.chunks"), &chunked::FORMAT, RECORDS);
            let index = folder.join("log.index");
            fs::remove_file(&index).unwrap();
            if overwrite {
                fs::write(index, b"what was there before").unwrap();
            }
        };
        let work = |folder: &Path| {
            let log = source(&folder.join("log.chunks"))?;
            verbs::index(
                log,
                &Options::default(),
                None,
                IfExists::overwrite_if(overwrite),
                |_| Ok(()),
            )
            .map(drop)
        };
        all_or_nothing(&format!("index, overwrite: {overwrite}"), prepare, work);
    }
}

/// All values of a walk, and how it ended.
fn walked(source: Arc<dyn Source>, options: &Options) -> (Vec<Vec<u8>>, seglake::Result<()>) {
    let mut values = Vec::new();
    let mut walk = match format::open(source, options, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => return (values, Err(error)),
    };
    let mut failed = Ok(());
    loop {
        match walk.step() {
            Ok(Step::More) => {
                let rows = walk.rows();
                values.extend((0..rows.len()).map(|row| rows.value(row).to_vec()));
            }
            Ok(_) => return (values, failed),
            // A reader that continues gets the rest, the end, or the error again, but nothing that is not in the
            // file.
            Err(error) if failed.is_ok() => failed = Err(error),
            Err(_) => return (values, failed),
        }
    }
}

#[test]
fn walking() {
    for format in FORMATS {
        let folder = fault_samples::folder();
        let path = folder.path().join("sample");
        sample(&path, format, RECORDS);
        for strict in [false, true] {
            let options = Options::default().format(*format).strict(strict);
            let work = || match source(&path) {
                Ok(source) => walked(source, &options),
                Err(error) => (Vec::new(), Err(error)),
            };
            let ((values, done), operations) = inject(None, work);
            done.unwrap();
            assert_eq!(values.len() as u64, RECORDS);
            for fault in hitches(&operations) {
                let ((given, done), _) = inject(Some(fault), work);
                done.unwrap();
                assert_eq!(given, values, "{format:?}, {fault:?}");
            }
            for fault in faults(&operations) {
                let ((given, done), _) = inject(Some(fault), work);
                assert_tells(&done.unwrap_err(), fault, folder.path());
                let mut rest = values.iter();
                let in_order = given.iter().all(|value| rest.any(|own| own == value));
                assert!(in_order, "{format:?}, {fault:?}: {given:?}");
            }
        }
    }
}

#[test]
fn verifying() {
    for format in FORMATS {
        let folder = fault_samples::folder();
        let path = folder.path().join("sample");
        sample(&path, format, RECORDS);
        let options = Options::default().format(*format);
        let verify = || verbs::verify(source(&path)?, &options, |_| Ok(()));
        let ledger =
            || verbs::Ledger::new(source(&path)?, &options)?.collect::<seglake::Result<Vec<_>>>();
        let (report, operations) = inject(None, verify);
        assert_eq!(report.unwrap().summary.records, RECORDS);
        for fault in faults(&operations) {
            // An I/O error is not damage, so nothing is reported.
            let (report, _) = inject(Some(fault), verify);
            assert_tells(&report.unwrap_err(), fault, folder.path());
        }
        let (spans, operations) = inject(None, ledger);
        assert!(!spans.unwrap().is_empty());
        for fault in faults(&operations) {
            let (spans, _) = inject(Some(fault), ledger);
            assert_tells(&spans.unwrap_err(), fault, folder.path());
        }
    }
}

fn ids(format: &Format) -> Vec<RecordId> {
    (0..=RECORDS)
        .map(|number| fault_samples::id(format, number))
        .collect()
}

fn looked_up(lookup: &dyn Lookup, id: &RecordId) -> seglake::Result<Option<Vec<u8>>> {
    let hits = lookup.get(std::slice::from_ref(id))?;
    let mut value = None;
    hits.each(|hit| value = hit.map(|(rows, row)| rows.value(row).to_vec()));
    Ok(value)
}

/// What a look-up has proven of an index stays valid when reading fails. The same look-up continues afterwards.
#[test]
fn looking_up() {
    for format in FORMATS {
        let folder = fault_samples::folder();
        let path = folder.path().join(format!("sample.{}", format.extension));
        sample(&path, format, RECORDS);
        let options = Options::default().format(*format);
        let ids = ids(format);
        let expected: Vec<_> = (0..RECORDS)
            .map(|number| Some(fault_samples::value(number)))
            .chain([None])
            .collect();
        let work = || {
            let lookup = format::lookup(source(&path)?, &options)?;
            let mut failed = Vec::new();
            for (id, expected) in ids.iter().zip(&expected) {
                match looked_up(&*lookup, id) {
                    Ok(value) => assert_eq!(value, *expected, "{format:?}"),
                    Err(error) => {
                        failed.push(error);
                        let again = looked_up(&*lookup, id);
                        match again {
                            Ok(value) => assert_eq!(value, *expected, "{format:?}"),
                            Err(error) => failed.push(error),
                        }
                    }
                }
            }
            Ok::<_, seglake::Error>(failed)
        };
        let (failed, operations) = inject(None, work);
        assert!(failed.unwrap().is_empty());
        // Each search reads for itself. There are so many operations that every seventh suffices.
        for fault in faults(&operations)
            .into_iter()
            .filter(|fault| !fault.lasting && fault.at % 7 < 2)
        {
            let (failed, _) = inject(Some(fault), work);
            match failed {
                Err(error) => assert_tells(&error, fault, folder.path()),
                Ok(failed) => {
                    assert!(failed.len() <= 1, "{format:?}, {fault:?}: {failed:?}");
                    failed
                        .iter()
                        .for_each(|error| assert_tells(error, fault, folder.path()));
                }
            }
        }
    }
}

#[test]
fn a_file_that_shrinks() {
    for format in FORMATS {
        let folder = fault_samples::folder();
        let path = folder.path().join("sample");
        sample(&path, format, RECORDS);
        let opened = source(&path).unwrap();
        let half = fs::metadata(&path).unwrap().len() / 2;
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(half)
            .unwrap();
        let options = Options::default().format(*format).strict(false);
        let (_, done) = walked(opened, &options);
        let error = done.unwrap_err().to_string();
        assert!(error.contains("shrank"), "{format:?}: {error}");
    }
}
