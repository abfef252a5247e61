//! A file that changes while it is recovered is an error, and the files that were written are removed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{lenient, uuid};
use crate::recovery::{files, folder};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::active;
use seglake::source::Source;
use seglake::verbs::{self, RecoverOptions, Recovered};

/// How often recovering reads the file, for its progress.
const PASSES: u64 = 4;

struct Changing {
    before: Vec<u8>,
    after: Vec<u8>,
    is_changed: Arc<AtomicBool>,
}

impl Source for Changing {
    fn len(&self) -> u64 {
        self.before.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let bytes = if self.is_changed.load(Ordering::Relaxed) {
            &self.after
        } else {
            &self.before
        };
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        Ok(())
    }
}

/// Recovers a file whose content changes after so many passes. Also returns the files in the folder after that.
fn recover_changing(
    before: &[u8],
    after: &[u8],
    passes: u64,
) -> (seglake::Result<Recovered>, Vec<String>) {
    assert_eq!(before.len(), after.len());
    let is_changed = Arc::new(AtomicBool::new(false));
    let source = Arc::new(Changing {
        before: before.to_vec(),
        after: after.to_vec(),
        is_changed: is_changed.clone(),
    });
    let folder = folder();
    let checked = before.len() as u64 * passes / PASSES;
    let recovered = verbs::recover(
        source,
        &lenient(),
        folder.path().join("new"),
        &RecoverOptions::default(),
        |done| {
            is_changed.fetch_or(done >= checked, Ordering::Relaxed);
            Ok(())
        },
    );
    assert!(is_changed.load(Ordering::Relaxed));
    (recovered, files(folder.path()))
}

fn recover(before: &[u8], after: &[u8]) -> (seglake::Result<Recovered>, Vec<String>) {
    recover_changing(before, after, 1)
}

/// Records of these ticks, with values of this many bytes.
fn records(lengths: &[(u64, usize)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tick, length) in lengths {
        let value = vec![0x33; *length];
        active::encode(&mut bytes, &Key::DEFAULT, &uuid(*tick), b"t", &value).unwrap();
    }
    bytes
}

/// The bytes of a record beside its value.
fn overhead() -> usize {
    records(&[(0, 0)]).len()
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x10;
    bytes
}

fn assert_refused(before: &[u8], after: &[u8], said: &str) {
    let (recovered, left) = recover(before, after);
    let error = recovered.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("the new file does not read back as expected"),
        "{text}"
    );
    assert!(text.contains(said), "{text}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_that_stays_is_recovered() {
    let sound = records(&[(1, 100), (2, 100), (3, 100)]);
    let (recovered, left) = recover(&sound, &sound);
    assert_eq!(recovered.unwrap().output.summary.records, 3);
    assert_eq!(left, ["new"]);
    let damaged = flipped(&sound, sound.len() / 2);
    let (recovered, left) = recover(&damaged, &damaged);
    assert_eq!(recovered.unwrap().output.summary.records, 2);
    assert_eq!(
        left,
        ["new", "new.quarantine", "new.quarantine.manifest.jsonl"]
    );
}

#[test]
fn a_record_that_is_damaged_meanwhile() {
    let sound = records(&[(1, 100), (2, 100), (3, 100)]);
    let said = "3 records by checksum, found 2 by checksum, with 1 damaged ranges";
    assert_refused(&sound, &flipped(&sound, sound.len() / 2), said);
    let damaged = flipped(&sound, sound.len() / 2);
    let more = flipped(&damaged, sound.len() - 20);
    let said = "2 records by checksum, found 1 by checksum";
    assert_refused(&damaged, &more, said);
}

/// Nothing in it is damaged, but it has fewer records.
#[test]
fn two_records_that_are_one_meanwhile() {
    let sound = records(&[(1, 100), (2, 100), (3, 100)]);
    let fewer = records(&[(1, 100), (2, 200 + overhead())]);
    let said = "3 records by checksum, found 2 by checksum, with 0 damaged ranges";
    assert_refused(&sound, &fewer, said);
}

/// There are as many records, but damage among them.
#[test]
fn a_record_that_is_shorter_meanwhile() {
    let sound = records(&[(1, 100), (2, 100), (3, 100)]);
    let mut shorter = records(&[(1, 100), (2, 60)]);
    shorter.extend([0x44; 40]);
    shorter.extend(records(&[(3, 100)]));
    let said = "3 records by checksum, found 3 by checksum, with 1 damaged ranges";
    assert_refused(&sound, &shorter, said);
}

/// What was copied is sound, and is not what the file has.
#[test]
fn a_record_that_is_another_after_it_was_copied() {
    let sound = records(&[(1, 100), (2, 100), (3, 100)]);
    let other = records(&[(1, 100), (2, 100), (4, 100)]);
    for before in [sound.clone(), flipped(&sound, 20)] {
        let (recovered, left) = recover_changing(&before, &other, 2);
        let text = recovered.unwrap_err().to_string();
        assert!(text.contains("changed"), "{text}");
        assert!(left.is_empty(), "{left:?}");
    }
}
