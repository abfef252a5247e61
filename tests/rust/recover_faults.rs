//! Every file operation of recovering, and of undoing it, fails once, and from then on: a clear error, and the folder is as it
//! was.
#![cfg(unix)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod fault_samples;

use std::fs;
use std::path::Path;

use fault_samples::{assert_tells, faults, hitches, listing, run, sample, source};
use seglake::faults::{Fault, Operation};
use seglake::format::{FORMATS, Format, Options};
use seglake::verbs::{self, Recovery};

const RECORDS: u64 = 12;

/// A file of this format, its last record damaged, and perhaps files that are in the way.
fn prepare(folder: &Path, format: &'static Format, in_the_way: &[&str]) {
    let path = folder.join(format!("old.{}", format.extension));
    sample(&path, format, RECORDS);
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.len() - bytes.len() / 5;
    bytes[place] ^= 0x10;
    if format.name == "oplog" {
        bytes.truncate(place);
    }
    fs::write(&path, bytes).unwrap();
    for name in in_the_way {
        fs::write(folder.join(name), format!("what was in {name}")).unwrap();
    }
}

fn recover(folder: &Path, format: &'static Format, overwrite: bool) -> seglake::Result<()> {
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    let recovery = Recovery {
        overwrite,
        ..Recovery::default()
    };
    let old = source(&folder.join(format!("old.{}", format.extension)))?;
    let new = folder.join(format!("new.{}", format.extension));
    let recovered = verbs::recover(old, &options, &new, &recovery, |_| Ok(()))?;
    assert!(recovered.is_lossy());
    Ok(())
}

/// What fails leaves the folder as it was; what does not fail does all.
fn all_or_nothing(
    name: &str,
    prepare: impl Fn(&Path) + Copy,
    work: impl Fn(&Path) -> seglake::Result<()> + Copy,
) {
    let (folder, done, operations) = run(prepare, work, None);
    done.unwrap();
    let complete = listing(folder.path());
    let before = {
        let folder = fault_samples::folder();
        prepare(folder.path());
        listing(folder.path())
    };
    assert!(before.len() <= complete.len() && before != complete);
    for fault in hitches(&operations) {
        let (folder, done, _) = run(prepare, work, Some(fault));
        done.unwrap();
        assert!(listing(folder.path()) == complete, "{name}, {fault:?}");
    }
    let mut failed = 0;
    for fault in faults(&operations) {
        let (folder, done, _) = run(prepare, work, Some(fault));
        let after = listing(folder.path());
        let Err(error) = done else {
            assert!(after == complete, "{name}, {fault:?}: {:?}", after.keys());
            continue;
        };
        failed += 1;
        assert_tells(&error, fault, folder.path());
        if error.to_string().contains("complete and in its place") {
            assert!(after == complete, "{name}, {fault:?}: {:?}", after.keys());
            continue;
        }
        if is_stuck(&operations, fault, &after, &before) {
            continue;
        }
        assert!(
            after == before,
            "{name}, {fault:?}: {error}: {:?}",
            after.keys()
        );
    }
    assert!(
        failed * 10 > operations.len() * 9,
        "{name}: {failed} of {operations:?}"
    );
}

/// Where nothing can be renamed any more, nothing can be renamed back: what was there is still there, under another name.
fn is_stuck(
    operations: &[Operation],
    fault: Fault,
    after: &std::collections::BTreeMap<String, Vec<u8>>,
    before: &std::collections::BTreeMap<String, Vec<u8>>,
) -> bool {
    fault.lasting
        && operations[fault.at] == Operation::Rename
        && before
            .values()
            .all(|content| after.values().any(|own| own == content))
}

#[test]
fn recovering() {
    for &format in FORMATS {
        let prepared = move |folder: &Path| prepare(folder, format, &[]);
        all_or_nothing(format.name, prepared, move |folder| {
            recover(folder, format, false)
        });
    }
}

#[test]
fn recovering_over_other_files() {
    for format in [FORMATS[0], FORMATS[3]] {
        let new = format!("new.{}", format.extension);
        let quarantine = format!("{new}.quarantine");
        let manifest = format!("{quarantine}.manifest.jsonl");
        let in_the_way = [new.as_str(), &quarantine, &manifest, "new.index"];
        let prepared = |folder: &Path| prepare(folder, format, &in_the_way);
        all_or_nothing(format.name, prepared, |folder| {
            recover(folder, format, true)
        });
    }
}

#[test]
fn undoing() {
    let format = FORMATS[0];
    let prepared = |folder: &Path| {
        prepare(folder, format, &[]);
        recover(folder, format, false).unwrap();
    };
    all_or_nothing("undo", prepared, |folder| {
        let recovered = source(&folder.join("new.active"))?;
        let undone = folder.join("undone.active");
        verbs::undo_recover(
            &recovered,
            None,
            &undone,
            false,
            &Options::default(),
            |_, _| Ok(()),
        )?;
        let old = fs::read(folder.join("old.active")).unwrap();
        assert!(fs::read(undone).unwrap() == old);
        Ok(())
    });
}
