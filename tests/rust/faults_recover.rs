//! Every file operation of recovering, and of undoing that, fails once and from then on: all of the files are there, or none.
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

use fault_samples::{all_or_nothing, all_or_nothing_but, sample, source};
use seglake::faults::{Fault, Operation};
use seglake::format::{FORMATS, Format, Options};
use seglake::verbs::{self, Recovery};

const RECORDS: u64 = 24;

/// A sample with damage that costs records.
fn damaged(path: &Path, format: &Format) {
    sample(path, format, RECORDS);
    let mut bytes = fs::read(path).unwrap();
    if format.name == "oplog" {
        // In its middle the messages behind it would have to be renumbered.
        bytes.truncate(bytes.len() - 3);
    } else {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
    }
    fs::write(path, bytes).unwrap();
}

fn recovered(folder: &Path, format: &'static Format, overwrite: bool) -> seglake::Result<()> {
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    let recovery = Recovery {
        overwrite,
        ..Recovery::default()
    };
    let old = source(&folder.join("old"))?;
    verbs::recover(old, &options, &folder.join("new"), &recovery, |_| Ok(())).map(drop)
}

#[test]
fn recovering() {
    for format in FORMATS {
        for overwrite in [false, true] {
            let prepare = |folder: &Path| {
                damaged(&folder.join("old"), format);
                if overwrite {
                    for name in ["new", "new.quarantine", "new.quarantine.manifest.jsonl"] {
                        fs::write(folder.join(name), b"what was there before").unwrap();
                    }
                }
            };
            let work = |folder: &Path| recovered(folder, format, overwrite);
            // Where no name can be changed any more, what was there before cannot be given back its own.
            let hopeless = |fault: Fault, operation: Operation| {
                overwrite && fault.lasting && operation == Operation::Rename
            };
            all_or_nothing_but(
                &format!("recover {format:?}, overwrite: {overwrite}"),
                hopeless,
                prepare,
                work,
            );
        }
    }
}

#[test]
fn undoing() {
    for format in FORMATS {
        let prepare = |folder: &Path| {
            damaged(&folder.join("old"), format);
            recovered(folder, format, false).unwrap();
        };
        let work = |folder: &Path| {
            let new = source(&folder.join("new"))?;
            let undone = verbs::undo_recover(
                &new,
                None,
                &folder.join("again"),
                false,
                &Options::default(),
                |_, _| Ok(()),
            );
            undone.map(drop)
        };
        all_or_nothing(&format!("undo {format:?}"), prepare, work);
    }
}
