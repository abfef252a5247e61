//! Payloads of chunked segments: frames that are not what they should be, large chunks, limits, hostile claims.

use std::sync::Arc;

use crate::common::chunked::{
    Record, assert_kinds, collect, content, frame, header, lenient, noise, push_chunk,
    push_records, scan, segment, strict_error,
};
use crate::common::{Windowed, assert_covers, source};
use seglake::Error;
use seglake::format::{Filter, Options, Start, Step, open};
use seglake::ledger::{Cause, Kind, Span};
use seglake::verbs::verify;

/// A chunk of records of many sizes, with small ones around it.
fn large() -> (Vec<u8>, Vec<Record>) {
    let sizes = [0, 1, 100_000, 5000, 4096, 300_000, 0, 12, 700_000, 4084];
    let own: Vec<_> = (0..)
        .zip(sizes)
        .map(|(at, size)| (at, noise(size as u64, size)))
        .collect();
    let mut bytes = segment(1, 3, 10);
    push_records(&mut bytes, 3, &own);
    push_records(&mut bytes, 13, &[(7, b"behind")]);
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(
        (records.len(), ledger.iter().any(Span::is_damage)),
        (14, false)
    );
    (bytes, records)
}

#[test]
fn a_large_chunk_is_emitted_in_steps() {
    let (bytes, all) = large();
    for window_bytes in [1000, 4096, 1 << 20] {
        let options = lenient().window_bytes(window_bytes);
        let (records, _) = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        assert!(records == all, "in windows of {window_bytes} bytes");
        let without = options.clone().values(false);
        let (records, _) = scan(source(&bytes), &without).unwrap();
        assert_eq!(records.len(), all.len());
        let wanted = Filter::default().at_least("offset", 5).below("offset", 12);
        let (records, _) = scan(source(&bytes), &options.clone().filter(wanted)).unwrap();
        assert!(records == all[5..12]);
        // A carry from within the chunk.
        let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        while walk.step().unwrap() == Step::More {
            collect(&*walk, &mut records);
            walk = open(
                source(&bytes),
                &options,
                Start::Carry(&walk.carry().unwrap()),
            )
            .unwrap();
        }
        assert!(records == all);
    }
    // Its last byte is of the content checksum: no record may come out before that was looked at.
    let (_, ledger) = scan(source(&bytes), &lenient()).unwrap();
    let mut damaged = bytes.clone();
    damaged[usize::try_from(ledger[2].end).unwrap() - 1] ^= 1;
    let (records, ledger) = scan(source(&damaged), &lenient()).unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(ledger[2].cause, Some(Cause::PayloadInvalid));
}

#[test]
fn a_readers_limits_are_no_damage() {
    let (bytes, _) = large();
    let limited = |options: &Options| match scan(source(&bytes), options) {
        Err(Error::Limit {
            option,
            needed,
            limit,
            ..
        }) => {
            assert!(needed > limit);
            option
        }
        other => panic!("{other:?}"),
    };
    let options = lenient().set("chunk_bytes", 1_000_000);
    assert_eq!(limited(&options), "chunk_bytes");
    // Ten records of 12 bytes each and their values are as much as it says.
    let content: usize = scan(source(&bytes), &lenient()).unwrap().0[3..13]
        .iter()
        .map(|record| 12 + record.value.len())
        .sum();
    for (limit_chunk_bytes, is_read) in [(content - 1, false), (content, true)] {
        let options = lenient().set("chunk_bytes", limit_chunk_bytes as u64);
        assert_eq!(scan(source(&bytes), &options).is_ok(), is_read);
    }
    assert_eq!(limited(&options.clone().strict(true)), "chunk_bytes");
    let verified = verify(source(&bytes), &options, |_| Ok(()));
    assert!(matches!(verified, Err(Error::Limit { .. })));
    let options = lenient().record_bytes(300_012);
    assert_eq!(limited(&options), "record_bytes");
    let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
    let mut records = Vec::new();
    while walk.step().is_ok() {
        collect(&*walk, &mut records);
    }
    assert_eq!(records.len(), 11, "the records in front of it");
    assert!(matches!(walk.step(), Err(Error::Limit { .. })));
    let verified = verify(source(&bytes), &options, |_| Ok(()));
    assert!(verified.unwrap().is_sound());
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let mut bytes = Vec::new();
    let zeros = vec![0; 96 << 20];
    push_records(&mut bytes, 0, &[(0, &zeros)]);
    assert!(bytes.len() < 64 << 10);
    let limited = lenient().set("chunk_bytes", 8 << 20);
    assert!(matches!(
        scan(source(&bytes), &limited),
        Err(Error::Limit { .. })
    ));
    assert!(matches!(
        verify(source(&bytes), &limited, |_| Ok(())),
        Err(Error::Limit { .. })
    ));
    // More content than its records account for is found without decompressing it all.
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, 1, &frame(&vec![0; 96 << 20]));
    let (_, ledger) = scan(source(&bytes), &limited).unwrap();
    assert_eq!(ledger[0].cause, Some(Cause::PayloadInvalid));
}

/// The reason in the error that strict reading raises for a payload.
fn reason(payload: &[u8], records: u32) -> String {
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, records, payload);
    push_records(&mut bytes, 10, &[(0, b"good")]);
    let mut actual = Vec::new();
    for window_bytes in [10, 1 << 20] {
        let options = lenient().window_bytes(window_bytes);
        let (records, ledger) = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        assert_eq!(
            (records.len(), ledger[0].cause),
            (1, Some(Cause::PayloadInvalid))
        );
        assert_eq!(ledger[0].end, 21 + payload.len() as u64);
        let raised = strict_error(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        assert!(raised.finding.expected().contains("one zstd frame"));
        actual.push(raised.finding.actual());
    }
    assert_eq!(actual[0], actual[1], "in pieces and in one go");
    actual.remove(0)
}

#[test]
fn payloads_that_are_not_exactly_one_good_frame_say_why() {
    let one = content(&[(1, b"value")]);
    let good = frame(&one);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut payload = good.clone();
        change(&mut payload);
        reason(&payload, 1)
    };
    assert!(with(|payload| payload.truncate(payload.len() - 1)).contains("truncated"));
    assert!(with(|payload| payload.truncate(4)).contains("cut off in its header"));
    assert!(with(Vec::clear).contains("not a zstd frame"));
    assert!(with(|payload| payload[0] ^= 1).contains("not a zstd frame"));
    assert!(with(|payload| payload.push(0)).contains("followed by 1 bytes"));
    assert!(with(|payload| payload.extend(payload.clone())).contains("followed by"));
    assert!(with(|payload| *payload.last_mut().unwrap() ^= 1).contains("checksum"));
    assert!(with(|payload| payload[4] &= !4).contains("without content checksum"));
    assert!(reason(&[0x5a, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], 0).contains("skippable"));
    // One of sixteen magics.
    assert!(reason(&[0x4a, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], 0).contains("not a zstd frame"));
    assert!(reason(&good, 2).contains("content of 1 records"));
    assert!(reason(&good, 0).contains("continues after"));
    assert!(reason(&frame(&one[..16]), 1).contains("inside record 1"));
    assert!(reason(&frame(&one[..5]), 1).contains("inside record 1"));
    // A last block that is empty, in a frame that says 50 bytes. The checksum is that of no bytes.
    let short = [
        0x28, 0xb5, 0x2f, 0xfd, 0x24, 50, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51,
    ];
    assert!(reason(&short, 0).contains("corruption"));
    // One raw block of a record of no body, then an empty last block, in a frame that says one byte fewer.
    let one_record = content(&[(1, b"")]);
    let len = u8::try_from(one_record.len()).unwrap();
    let mut long = vec![0x28, 0xb5, 0x2f, 0xfd, 0x24, len - 1, len << 3, 0, 0];
    long.extend_from_slice(&one_record);
    long.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0]);
    assert!(reason(&long, 1).contains("corruption"));
    // Frame headers: magic, descriptor (4: content checksum, 1: dictionary ID of one byte), window.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let head = |rest: &[u8]| reason(&[&magic, rest, &[0; 16]].concat(), 1);
    assert!(head(&[5, 0x58, 7]).contains("dictionary 7"));
    assert!(
        head(&[4, (17 << 3) + 1]).contains("150994944"),
        "one step above 128 MiB"
    );
    assert!(!head(&[4, 17 << 3]).contains("window"), "128 MiB");
    assert!(
        head(&[0xe4, 1, 0, 0, 8, 0, 0, 0, 0]).contains("window of 134217729"),
        "a single segment"
    );
    assert!(
        !head(&[5, 0x58, 0]).contains("dictionary"),
        "dictionary 0 is none"
    );
}

#[test]
fn a_frame_with_the_largest_window_is_read() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &content(&[(1, b"value")])).unwrap();
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, 1, &encoder.finish().unwrap());
    let (records, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(
        (records[0].timestamp, records[0].value.as_slice()),
        (1, b"value".as_slice())
    );
}

/// Damaged headers that falsely claim frames of much content, so that each trial is costly. What is decompressed
/// in vain stays within the budget, and the ledger says where the search ended.
#[test]
fn hostile_lengths_stay_within_the_search_budget() {
    // 64 MiB of zeros in a few KiB, with a wrong checksum at their end.
    let mut payload = frame(&vec![0; 64 << 20]);
    *payload.last_mut().unwrap() ^= 1;
    let mut bytes = Vec::new();
    for chunk in 0..8 {
        push_records(&mut bytes, chunk, &[(0, b"good")]);
        let at = bytes.len();
        push_chunk(&mut bytes, chunk, 1, &payload);
        bytes[at + 20] ^= 1; // the head crc
    }
    push_records(&mut bytes, 8, &[(0, b"good")]);
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_covers(&ledger, bytes.len());
    assert_kinds(&ledger);
    let last = ledger.last().unwrap();
    assert_eq!(last.cause, Some(Cause::SearchLimit));
    assert_eq!(records.len(), 5, "four frames of 64 MiB are tried whole");
    let damage = &ledger[ledger.len() - 2];
    assert_eq!(damage.cause, Some(Cause::HeaderChecksumMismatch));
    assert_eq!(
        damage.end - damage.start,
        0x80,
        "the next place for a header"
    );
    // Longer than 64 KiB, they are plausible candidates only where two headers follow.
    let tried = |behind: &[u8]| {
        let mut bytes = Vec::new();
        for chunk in 0..8 {
            push_records(&mut bytes, chunk, &[(0, b"good")]);
            let at = bytes.len();
            let payload = [payload.as_slice(), &noise(5, 65 << 10)].concat();
            push_chunk(&mut bytes, chunk, 1, &payload);
            bytes[at + 20] ^= 1;
            bytes.extend_from_slice(behind);
        }
        push_records(&mut bytes, 8, &[(0, b"good")]);
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        (records.len(), ledger.last().unwrap().cause)
    };
    assert_eq!(
        tried(&noise(6, 0x80)),
        (9, None),
        "implausible ones are passed over"
    );
}

#[test]
fn claims_of_everything_cost_nothing() {
    for (length, start, records) in [
        (u32::MAX, 0, u32::MAX),
        (u32::MAX, i64::MAX, 0),
        (0, 0, u32::MAX),
        (9, i64::MIN, u32::MAX),
    ] {
        let mut bytes = header(0, length, start, records);
        bytes.resize(4096, 0);
        let (found, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_eq!(found.len(), 0);
        assert_covers(&ledger, bytes.len());
        assert!(ledger[0].is_damage());
        bytes[20] ^= 1;
        let (_, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_eq!(ledger[0].kind, Kind::Corrupt, "nothing checks");
    }
    // A record that claims 4 GiB, and a frame that claims 2^64-1 bytes.
    let mut lying = content(&[(0, b"value")]);
    lying[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(reason(&frame(&lying), 1).contains("inside record 1"));
    let claims = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xc4, 0x58][..],
        &[0xff; 8],
        &[1, 0, 0],
        &[0; 4],
    ]
    .concat();
    assert!(reason(&claims, 0).contains("does not decode"));
}
