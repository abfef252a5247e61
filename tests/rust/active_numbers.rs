//! The numbers that a walk of an active segment reports, and how many bytes it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::counting::Counting;
use crate::common::{Windowed, lenient, scan, segment, source, strict_error, uuid};
use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::error::Finding;
use seglake::format::{Interrupt, Options, Start, Step, active, detect, open};
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
fn a_truncated_header_reports_how_much_it_needs() {
    let first = segment(&Key::DEFAULT, &[("type", "value")]);
    let both = segment(&Key::DEFAULT, &[("type", "value"), ("longer", "value")]);
    for available in 1..27 {
        let bytes = &both[..first.len() + available];
        let damage = strict_error(source(bytes), &lenient()).unwrap();
        // If the byte with the type's length is missing, the type is empty.
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
        let options = lenient().keys(vec![key]);
        let damage = strict_error(source(&bytes), &options).unwrap();
        let stored = u64::from_be_bytes(*bytes[at..].first_chunk().unwrap());
        let computed = (key == Key::DEFAULT).then(|| hash(&key, &bytes[..at]));
        assert_eq!(damage.finding, Finding::Checksum { stored, computed });
    }
}

/// Without its key a file is likely an active segment if the bytes after the first record fit.
#[test]
fn a_segment_is_detected_without_its_key_by_what_follows_the_first_record() {
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
fn a_large_record_is_read_once_where_it_is_not_emitted() {
    let value = vec![b'v'; 9 << 20];
    let bytes = segment(&Key::DEFAULT, &[("type", &value)]);
    let len = bytes.len() as u64;
    let options = |values, record_bytes| {
        lenient()
            .values(values)
            .record_bytes(record_bytes)
            .window_bytes(1 << 16)
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

/// Under its key a segment is certainly detected if its first record fits in a window. Detection reads no more.
#[test]
fn a_segment_is_detected_by_its_first_checksum_if_a_window_holds_it() {
    let bytes = segment(&Key::DEFAULT, &[("type", "value"), ("type", "value")]);
    let total = bytes.len() / 2;
    for (window_bytes, is_certain) in [(total - 1, false), (total, true), (total + 1, true)] {
        for cut in [total, total + 3, bytes.len()] {
            let options = Options::default().window_bytes(window_bytes);
            let mut bytes = bytes[..cut].to_vec();
            if cut == total + 3 {
                bytes[total..].fill(0);
            }
            let found = detect(&Windowed(bytes), &options).unwrap();
            assert_eq!(found.format, Some(&active::FORMAT), "{found:?}");
            assert_eq!(found.certain, is_certain, "{window_bytes}: {found:?}");
        }
    }
}

/// The first record settles which key the file is under, also where it is too large to be read before it is checked.
#[test]
fn a_large_record_settles_the_key() {
    let value = vec![b'v'; 9 << 20];
    let keys = [1, 2, 3].map(|byte| Key::new(&[byte; 32]));
    for key in keys {
        let messages = [("large", value.as_slice()), ("small", b"value")];
        let mut bytes = segment(&key, &messages);
        let options = lenient().keys(keys.to_vec()).window_bytes(1 << 16);
        let values = |bytes: &[u8]| {
            let (records, _) = scan(Arc::new(Windowed(bytes.to_vec())), &options).unwrap();
            let lens = records.iter().map(|record| record.value.len());
            lens.collect::<Vec<_>>()
        };
        assert_eq!(values(&bytes), [9 << 20, 5]);
        bytes[1 << 20] ^= 1;
        assert_eq!(values(&bytes), [5]);
    }
}

/// A search looks at whether to stop before each mebibyte that it goes through.
#[test]
fn a_search_can_be_interrupted() {
    const MIB: usize = 1 << 20;
    let mut bytes = segment(&Key::DEFAULT, &[("type", "value")]);
    bytes[20] ^= 1;
    // No version-6 UUID is in these, and no zero byte.
    bytes.resize(9 * MIB, 0x55);
    let asked = |stop_at: usize| {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let interrupt =
            Interrupt::new(move || counter.fetch_add(1, Ordering::Relaxed) + 1 == stop_at);
        let options = lenient().interrupt(interrupt);
        let source = Counting::new(bytes.clone());
        let scanned = scan(source.clone(), &options);
        let read = usize::try_from(source.take().0).unwrap();
        (scanned.map(drop), asked.load(Ordering::Relaxed), read)
    };
    let (whole, times, read) = asked(0);
    whole.unwrap();
    assert!(times > 10 && times < 40, "asked {times} times");
    assert!(read > 9 * MIB);
    let (stopped, times, less) = asked(6);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert_eq!(times, 6);
    assert!(less < read, "{less} of {read} bytes");
}

/// Without a verified record before it, damage at the offset where a walk begins does not suggest another key.
#[test]
fn only_the_first_record_speaks_of_the_key() {
    let bytes = segment(&Key::new(&[7; 32]), &[("type", "value"); 20]);
    for (start, is_suspect) in [(0, true), (bytes.len() / 20, false)] {
        let options = lenient().strict(true);
        let mut walk = open(source(&bytes), &options, Start::Offset(start as u64)).unwrap();
        let Err(Error::Damage(damage)) = walk.step() else {
            panic!("damage is raised")
        };
        assert_eq!(damage.cause, Cause::ChecksumMismatch);
        assert_eq!(damage.wrong_key, is_suspect, "from {start} on");
    }
}

/// A large first record suggests another key as a small one does, unless its checksum was not written yet.
#[test]
fn a_large_first_record_shows_a_wrong_key() {
    let value = vec![b'v'; 2 << 20];
    let mut bytes = segment(&Key::new(&[7; 32]), &[("large", value.as_slice())]);
    let suspects = |bytes: &[u8]| {
        let source = Arc::new(Windowed(bytes.to_vec()));
        strict_error(source, &lenient()).unwrap().wrong_key
    };
    assert!(suspects(&bytes));
    let at = bytes.len() - CHECKSUM_BYTES;
    bytes[at..].fill(0);
    bytes.push(1);
    assert!(!suspects(&bytes));
}

/// The longest type there is hides no header.
#[test]
fn a_segment_is_detected_by_a_record_with_the_longest_type() {
    let bytes = segment(&Key::DEFAULT, &[([b't'; 255], "value"), ([b't'; 255], "")]);
    let found = detect(&Windowed(bytes), &Options::default()).unwrap();
    assert!(
        found.certain && found.format == Some(&active::FORMAT),
        "{found:?}"
    );
}
