//! The numbers that a walk of an active segment reports, and how many bytes it reads.

use crate::common::counting::Counting;
use crate::common::{lenient, segment, source, strict_error, uuid};
use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::error::Finding;
use seglake::format::{Options, Start, Step, active, detect, open};
use seglake::ledger::{Cause, RecordRun};

const CHECKSUM_BYTES: usize = 8;

/// Sound records are reported as one run, without a range for each.
#[test]
fn sound_records_are_one_run() {
    let bytes = segment(&Key::DEFAULT, &[("a", "one"), ("b", ""), ("", "three")]);
    let mut walk = open(source(&bytes), &lenient(), Start::Beginning).unwrap();
    assert_eq!(walk.step().unwrap(), Step::More);
    let run = RecordRun {
        start: 0,
        end: bytes.len() as u64,
        records: 3,
    };
    assert_eq!(walk.record_run(), Some(run));
}

#[test]
fn a_header_cut_short_tells_how_much_it_needs() {
    let first = segment(&Key::DEFAULT, &[("type", "value")]);
    let both = segment(&Key::DEFAULT, &[("type", "value"), ("longer", "value")]);
    for available in 1..27 {
        let bytes = &both[..first.len() + available];
        let damage = strict_error(source(bytes), &lenient()).unwrap();
        // If the byte with the type's length is missing, the type counts as empty.
        let type_bytes = if available > 16 { 6 } else { 0 };
        let finding = Finding::Truncated {
            needed: 16 + 1 + type_bytes + 4,
            available: available as u64,
        };
        assert_eq!(
            (damage.cause, damage.finding),
            (Cause::TruncatedHeader, finding)
        );
        assert_eq!(damage.offset, first.len() as u64);
    }
}

/// The expected checksum of damaged bytes is shown for the public key only: for a secret key it would help a forger.
#[test]
fn a_checksum_under_a_secret_key_stays_secret() {
    for key in [Key::DEFAULT, Key::new(&[7; 32])] {
        let mut bytes = segment(&key, &[("type", "value")]);
        let at = bytes.len() - CHECKSUM_BYTES;
        bytes[20] ^= 1;
        let options = Options {
            keys: vec![key],
            ..lenient()
        };
        let damage = strict_error(source(&bytes), &options).unwrap();
        let stored = u64::from_be_bytes(*bytes[at..].first_chunk().unwrap());
        let computed = (key == Key::DEFAULT).then(|| hash(&key, &bytes[..at]));
        assert_eq!(damage.finding, Finding::Checksum { stored, computed });
    }
}

/// Without its key a file is likely an active segment if the bytes after the first record fit.
#[test]
fn a_segment_is_told_without_its_key_by_what_follows_the_first_record() {
    let key = Key::new(&[7; 32]);
    let one = segment(&key, &[("type", "value")]);
    let with = |more: &[u8]| [one.as_slice(), more].concat();
    let (greater, equal, less) = (uuid(1001), uuid(1000), uuid(999));
    let mut other_version = greater;
    other_version[6] ^= 0x10;
    for (bytes, is_likely) in [
        (one.clone(), true),
        (with(&greater), true),
        (with(&equal), false),
        (with(&less), false),
        (with(&other_version), false),
        (with(&[0; 16]), true),
        (with(&[0; 500]), true),
        (with(&[0; 3]), true),
        (with(&[0; 15]), true),
        (with(&[0, 0, 1]), false),
        (with(&greater[..15]), false),
        (with(&[1; 500]), false),
    ] {
        let found = detect(&*source(&bytes), &Options::default()).unwrap();
        let reason = "the first record's UUID and lengths fit";
        let is_active = found.format == Some(&active::FORMAT);
        assert!(!found.certain);
        assert_eq!(
            is_active && found.reason.contains(reason),
            is_likely,
            "{found:?}"
        );
    }
}

/// A record that spans many windows is read a second time only if its value is returned.
#[test]
fn a_large_record_is_read_once_where_it_is_not_given_out() {
    let value = vec![b'v'; 9 << 20];
    let bytes = segment(&Key::DEFAULT, &[("type", &value)]);
    let len = bytes.len() as u64;
    let options = |values, max_record_bytes| Options {
        values,
        max_record_bytes,
        window_bytes: 1 << 16,
        ..lenient()
    };
    for (options, reads, is_refused) in [
        (options(true, len), 2, false),
        (options(false, len), 1, false),
        (options(false, len - 1), 1, false),
        (options(true, len - 1), 1, true),
    ] {
        let source = Counting::new(bytes.clone());
        let mut walk = open(source.clone(), &options, Start::Beginning).unwrap();
        let step = walk.step();
        assert_eq!(matches!(step, Err(Error::Limit { .. })), is_refused);
        let (read, _) = source.take();
        assert_eq!((read + len / 2) / len, reads, "{read} bytes of {len}");
    }
}
