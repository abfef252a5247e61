//! What reading a sealed segment may take: large messages in pieces, the limits of the options, the search budget, an interrupt.

use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::sealed::{
    Record, contents, first_damage, lenient, scan_sorted, segment, varied,
};
use crate::common::{Windowed, assert_covers, scan, source, strict_error, uuid};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Options, Start, Step, open};
use seglake::ledger::Cause;
use seglake::source::Source;

#[test]
fn messages_larger_than_a_window_are_checked_in_pieces() {
    let large = vec![0x5a; 9 << 20];
    let records: Vec<Record> = vec![
        (uuid(1), b"small".to_vec(), b"1".to_vec()),
        (uuid(2), b"large".to_vec(), large.clone()),
        (uuid(3), b"small".to_vec(), b"2".to_vec()),
    ];
    for trailer in [true, false] {
        let mut bytes = segment(&Key::DEFAULT, &records, trailer);
        let read = |bytes: &[u8], options: &Options| {
            scan_sorted(Arc::new(Windowed(bytes.to_vec())), options)
        };
        assert_eq!(contents(&read(&bytes, &lenient()).unwrap().0), records);
        let without_values = lenient().values(false);
        assert_eq!(read(&bytes, &without_values).unwrap().0.len(), 3);
        for limited in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
            let options = lenient().record_bytes(1 << 20);
            let mut walk = open(limited, &options, Start::Beginning).unwrap();
            assert_eq!(
                walk.step().unwrap(),
                Step::More,
                "what is in front of it is given out"
            );
            let error = walk.step().unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Limit {
                        option: "record_bytes",
                        ..
                    }
                ),
                "{error}"
            );
        }
        bytes[5 << 20] ^= 1;
        let (kept, ledger) = read(&bytes, &lenient()).unwrap();
        assert_eq!(
            (kept.len(), first_damage(&ledger).is_some()),
            if trailer { (2, true) } else { (3, false) }
        );
    }
}

#[test]
fn an_interrupt_ends_the_reading() {
    let bytes = varied(1 << 10, true);
    let interrupt = Some(seglake::format::Interrupt::new(|| true));
    let options = lenient().interrupt(interrupt);
    assert!(matches!(
        scan(source(&bytes), &options),
        Err(Error::Interrupted)
    ));
}

#[test]
fn opening_takes_a_few_short_reads() {
    for trailer in [true, false] {
        for len in [16 << 10, 256 << 10] {
            let counting = Counting::new(varied(len, trailer));
            open(counting.clone(), &lenient(), Start::Beginning).unwrap();
            let read = counting.take().0;
            assert!(read < 2000, "{read} bytes of a file of {len}");
        }
    }
}

#[test]
fn a_sound_file_is_read_little_more_than_once() {
    let bytes = varied(300 << 10, true);
    let (records, _) = scan(source(&bytes), &lenient()).unwrap();
    let counting = Counting::new(bytes.clone());
    scan(counting.clone(), &lenient().window_bytes(10_000)).unwrap();
    // The index and the checksums are read once more for the index hash.
    let most = bytes.len() + 32 * records.len() + 20_000;
    let read = counting.take().0;
    assert!(
        read <= most as u64,
        "{read} bytes read, {most} expected at most"
    );
}

/// Claims of more than any file has: bounded work, and no memory for claimed bytes.
#[test]
fn hostile_claims_cost_nothing() {
    let records: Vec<Record> = (0..5)
        .map(|tick| (uuid(tick), b"t".to_vec(), vec![3; 20]))
        .collect();
    for trailer in [true, false] {
        let sound = segment(&Key::DEFAULT, &records, trailer);
        let numbers = [
            u64::MAX,
            u64::MAX - 23,
            u64::from(u32::MAX),
            1 << 63,
            sound.len() as u64,
            24,
            48,
            0,
        ];
        // Every offset of the index, the count and the other numbers of the trailer.
        let places = (0..6)
            .map(|entry| 24 * entry + 16)
            .chain((sound.len() - 32..sound.len()).step_by(8));
        for place in places {
            for number in numbers {
                let mut bytes = sound.clone();
                bytes[place..place + 8].copy_from_slice(&number.to_be_bytes());
                for read in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
                    let (_, ledger) = scan_sorted(read.clone(), &lenient()).unwrap();
                    assert_covers(&ledger, bytes.len());
                    let raised =
                        strict_error(read, &lenient()).map(|damage| (damage.offset, damage.cause));
                    assert_eq!(raised, first_damage(&ledger), "{number} at {place}");
                }
            }
        }
        for record in 0..5 {
            let length = 24 * 6 + record * 26 + 2;
            let mut bytes = sound.clone();
            bytes[length..length + 4].copy_from_slice(&u32::MAX.to_be_bytes());
            let (kept, ledger) =
                scan_sorted(Arc::new(Windowed(bytes.clone())), &lenient()).unwrap();
            assert_eq!(kept.len(), 4, "{ledger:?}");
            assert_covers(&ledger, bytes.len());
        }
    }
}

/// Many entries point at the same megabyte, which none of their checksums fits: hashing it for each must end.
#[test]
fn hashing_in_vain_stays_within_the_search_budget() {
    let stray = 260;
    let mut records: Vec<Record> = (0..stray + 3)
        .map(|tick| (uuid(tick), vec![], vec![]))
        .collect();
    records[0].2 = vec![0x5a; 1 << 20];
    let last = records.len() - 1;
    records[last].2 = vec![0x5a; 1 << 20];
    let mut bytes = segment(&Key::DEFAULT, &records, true);
    let data_start = 24 * (records.len() + 1);
    for entry in 0..usize::try_from(stray).unwrap() {
        let place = 24 * entry + 16;
        bytes[place..place + 8].copy_from_slice(&(data_start as u64).to_be_bytes());
    }
    bytes[data_start + 100] ^= 1;
    let counting = Counting::new(bytes);
    let (records, ledger) = scan_sorted(counting.clone(), &lenient()).unwrap();
    assert_covers(&ledger, usize::try_from(counting.len()).unwrap());
    let causes: Vec<_> = ledger.iter().filter_map(|span| span.cause).collect();
    let trailer = Cause::HeaderChecksumMismatch;
    assert_eq!(
        causes,
        [Cause::ChecksumMismatch, Cause::SearchLimit, trailer]
    );
    assert_eq!(
        records.len(),
        2,
        "the small messages behind could still be hashed"
    );
    let budget = (256 << 20) + 2 * counting.len();
    let (read, _) = counting.take();
    assert!(
        read <= budget + 4 * counting.len(),
        "{read} bytes read for a budget of {budget}"
    );
    let raised = strict_error(counting, &lenient()).unwrap();
    assert_eq!(
        (raised.offset, raised.cause),
        (data_start as u64, Cause::ChecksumMismatch)
    );
}

/// Without a trailer a message is good by where it ends. Entries that all name the same message, which ends far
/// away, cost two looks each. This many of them leave nothing of the search budget for the sound ones after them.
#[test]
fn looking_in_vain_stays_within_the_search_budget() {
    for (stray, sound) in [(1000, 10), (300_000, 0)] {
        let mut records: Vec<Record> = (0..stray + 10)
            .map(|tick| (uuid(tick), vec![], vec![]))
            .collect();
        records[0].2 = vec![0; 64 << 10];
        let mut bytes = segment(&Key::DEFAULT, &records, false);
        let data_start = 24 * (stray + 11);
        let index = usize::try_from(24 * stray).unwrap();
        for entry in bytes[..index].chunks_exact_mut(24) {
            entry[16..].copy_from_slice(&data_start.to_be_bytes());
        }
        let (found, ledger) = scan_sorted(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        assert_eq!(found.len(), sound, "{stray}");
    }
}
