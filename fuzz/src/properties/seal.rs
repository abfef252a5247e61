//! A sealed segment has every sound record of the active one, each with its checksum. If sealing fails, no file is
//! left. The active segment does not change.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Checked, Format, IfExists, Options, active, sealed};
use seglake::ledger::{Kind, Span};
use seglake::source::{FileSource, Source, open_regular};
use seglake::verbs::{Report, SealOptions, seal, verify};

use super::alike::told;
use super::recover::names;
use super::scan::{End, Scan, whole};
use super::{Draw, readings};

/// The content of the destination before sealing.
const OLDER: &[u8] = b"an older file";

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    assert_eq!(*format, active::FORMAT);
    let mut draw = Draw::of(bytes);
    for options in readings(format) {
        let mut keys = vec![Key::DEFAULT];
        if draw.below(4) == 0 {
            keys.insert(draw.below(2), Key::new(&[7; 32]));
        }
        let options = options
            .keys(keys)
            .window_bytes(*draw.of_these(&[1, 30, 300, 1 << 20]));
        let how = SealOptions::default()
            .trailer(draw.below(4) > 0)
            .if_exists(IfExists::overwrite_if(draw.below(4) == 0));
        for strict in [false, true] {
            let options = options.clone().strict(strict);
            seals(bytes, &options, &how);
        }
    }
}

fn seals(bytes: &[u8], options: &Options, how: &SealOptions) {
    let folder = super::folder();
    let path = folder.path().join("segment.active");
    let destination = folder.path().join("segment.sealed");
    fs::write(&path, bytes).unwrap();
    if how.if_exists == IfExists::Overwrite {
        fs::write(&destination, OLDER).unwrap();
    }
    let result = seal(file(&path), options, &destination, how, |_| Ok(()));
    assert!(
        fs::read(&path).unwrap() == bytes,
        "the active segment changed"
    );
    let found = verify(file(&path), options, |_| Ok(())).unwrap();
    let scan = Scan::of(bytes, options);
    match result {
        Ok(report) => {
            assert!(!found.summary.wrong_key(), "sealed under a wrong key");
            assert_eq!(scan.end, End::Done, "sealed what cannot be read");
            assert_eq!(told(&report), told(&found));
            assert_eq!(names(folder.path()).len(), 2);
            let sealed = fs::read(&destination).unwrap();
            holds(&sealed, &scan, bytes, options, how);
            refuses_to_replace(&path, options, &destination, how);
        }
        Err(error) => {
            is_expected(error, &scan, &found);
            let left = if how.if_exists == IfExists::Overwrite {
                2
            } else {
                1
            };
            assert_eq!(names(folder.path()).len(), left, "something is left behind");
            assert!(how.if_exists == IfExists::Error || fs::read(&destination).unwrap() == OLDER);
        }
    }
}

fn file(path: &Path) -> Arc<dyn Source> {
    Arc::new(FileSource::new(open_regular(path).unwrap(), path).unwrap())
}

/// Sealing fails only with a wrong key, or, in strict mode, at the first damage.
fn is_expected(error: Error, scan: &Scan, found: &Report) {
    let Error::Damage(damage) = error else {
        panic!("{error}");
    };
    if found.summary.wrong_key() && scan.end == End::Done {
        assert!(damage.wrong_key, "{damage}");
        return;
    }
    match scan.end {
        End::Damage { offset, cause, .. } => {
            assert_eq!((damage.offset, damage.cause), (offset, cause));
        }
        _ => panic!("{damage}, though reading ended with {:?}", scan.end),
    }
}

/// The sealed segment verifies, and has the records of the active one with their checksums.
fn holds(sealed: &[u8], active: &Scan, bytes: &[u8], options: &Options, how: &SealOptions) {
    let strict = options.clone().format(&sealed::FORMAT).strict(true);
    let read = Scan::of(sealed, &strict);
    assert_eq!(read.end, End::Done);
    let fields = |scan: &Scan| {
        let fields = scan.records.iter().map(|record| record.fields.clone());
        fields.collect::<Vec<_>>()
    };
    assert_eq!(fields(&read), fields(active));
    let report = verify(whole(sealed), &strict, |_| Ok(())).unwrap();
    assert_eq!(report.summary.checked == Checked::Checksum, how.trailer);
    if how.trailer {
        let ledger = active.ledger();
        let records = ledger.iter().filter(|span| span.kind == Kind::Record);
        let expected: Vec<_> = records.flat_map(|span| checksum(bytes, span)).collect();
        assert_eq!(checksums(sealed), expected);
    }
}

/// The checksum that ends an active record.
fn checksum(bytes: &[u8], record: &Span) -> [u8; 8] {
    let end = usize::try_from(record.end).unwrap();
    *bytes[..end].last_chunk().unwrap()
}

/// The checksums in a sealed segment's trailer.
fn checksums(sealed: &[u8]) -> &[u8] {
    let foot = sealed.len() - 32;
    let count = u64::from_be_bytes(*sealed[foot + 8..].first_chunk().unwrap());
    &sealed[foot - 8 * usize::try_from(count).unwrap()..foot]
}

/// An existing file is replaced only on request.
fn refuses_to_replace(path: &Path, options: &Options, destination: &Path, how: &SealOptions) {
    let before = fs::read(destination).unwrap();
    let how = (*how).if_exists(IfExists::Error);
    let result = seal(file(path), options, destination, &how, |_| Ok(()));
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    assert!(fs::read(destination).unwrap() == before);
}
