//! Parts of a file: together they give exactly what one walk of the whole gives, whatever is damaged.

use crate::common::format_of;
use crate::common::sealed as segments;
use crate::common::{chunked, source, uuid};
use crate::splitting::{compare, compare_all, joined, read};
use crate::tenant_segments;
use crate::vectors;
use proptest::prelude::*;
use seglake::checksum::Key;
use seglake::format::{Filter, Start, active, oplog, split};

#[test]
fn golden_files_read_the_same_in_parts() {
    let mut split = 0;
    for case in vectors::cases() {
        if case.bytes.len() > 64 << 10 {
            continue; // read again and again, a long one takes long
        }
        let most = compare_all(&case.bytes, &case.options);
        let format = format_of(&case.options);
        if [&active::FORMAT, &oplog::FORMAT].contains(&format) {
            assert_eq!(most, 1, "{}", case.name);
        }
        split += usize::from(most > 1);
    }
    assert!(split > 20, "only {split} vectors were split");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 1024 }))]

    /// Damage of any kind: where it is of the index or trailer, there is one part.
    #[test]
    fn sealed_segments((_, bytes) in segments::damaged()) {
        compare_all(&bytes, &segments::lenient());
    }

    /// Damage of the messages alone, which leaves parts.
    #[test]
    fn sealed_segments_with_damaged_messages(
        records in segments::records(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1_usize..60), 0..6),
    ) {
        let mut bytes = segments::segment(&Key::DEFAULT, &records, true);
        let data = 24 * (records.len() + 1)..bytes.len() - 32 - 8 * records.len();
        for (at, byte, len) in damage {
            if !data.is_empty() {
                let at = data.start + at.index(data.len());
                bytes[at..data.end.min(at + len)].fill(byte);
            }
        }
        let parts = compare_all(&bytes, &segments::lenient());
        prop_assert_eq!(parts, records.len().max(1));
    }

    #[test]
    fn tenant_segments(
        messages in tenant_segments::messages(),
        version in 1_u16..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1_usize..40), 0..5),
        in_data: bool,
    ) {
        let segment = tenant_segments::encode(version, &messages);
        let mut bytes = segment.bytes.clone();
        let from = if in_data { usize::try_from(segment.toc_end).unwrap() + 4 } else { 0 };
        for (at, byte, len) in damage {
            if from < bytes.len() {
                let at = from + at.index(bytes.len() - from);
                let end = bytes.len().min(at + len);
                bytes[at..end].fill(byte);
            }
        }
        let parts = compare_all(&bytes, &tenant_segments::lenient());
        prop_assert!(parts == 1 || version == 2);
    }

    #[test]
    fn chunked_segments(
        chunks in prop::collection::vec((0_i64..3, prop::collection::vec((any::<i64>(), 0_usize..300), 0..6)), 0..12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        unused in prop_oneof![Just(0_usize), 1..400_usize],
        in_header: bool,
    ) {
        let mut file = Vec::new();
        let (mut offset, mut payloads) = (0, Vec::new());
        for (gap, records) in &chunks {
            offset += gap;
            let own: Vec<_> = records.iter().map(|(time, len)| (*time, chunked::noise(offset.cast_unsigned(), *len))).collect();
            let start = file.len();
            chunked::push_records(&mut file, offset, &own);
            payloads.push(start + 21..file.len());
            offset += i64::try_from(own.len()).unwrap();
        }
        file.resize(file.len() + unused, 0);
        for (at, byte) in damage {
            if in_header && !file.is_empty() {
                let at = at.index(file.len());
                file[at] = byte;
            } else if !payloads.is_empty() {
                let payload = &payloads[at.index(payloads.len())];
                file[payload.start + at.index(payload.len())] ^= byte;
            }
        }
        let parts = compare_all(&file, &chunked::lenient());
        prop_assert!(in_header || parts == chunks.len().max(1));
    }

    /// A filter leaves out the same records in parts, and the same ranges where a walk ends early.
    #[test]
    fn filtered_records_of_sealed_segments(
        (_, bytes) in segments::damaged(),
        since in prop::option::of(900_u64..2000),
        until in prop::option::of(900_u64..2000),
    ) {
        let mut wanted = Filter::default();
        if let Some(since) = since {
            wanted = wanted.at_least("uuid", uuid(since));
        }
        if let Some(until) = until {
            wanted = wanted.below("uuid", uuid(until));
        }
        let options = segments::lenient().filter(wanted);
        let source = source(&bytes);
        let whole = read(&source, &options, Start::Beginning);
        for target in [1, 100, 700] {
            let parts = split(source.clone(), &options, target).unwrap();
            let (mut records, mut spans) = (Vec::new(), Vec::new());
            for part in &parts {
                let seen = read(&source, &options, Start::Part(part));
                records.extend(seen.records);
                spans.extend(seen.spans);
            }
            prop_assert_eq!(&records, &whole.records);
            prop_assert_eq!(joined(spans), joined(whole.spans.clone()));
        }
    }
}

/// Bodies that are whole records, chunks and files. None is taken for the file's own.
#[test]
fn bodies_that_contain_whole_files() {
    let inner = segments::varied(900, true);
    let records: Vec<_> = (1..12)
        .map(|tick| (uuid(tick * 50), b"copy".to_vec(), inner.clone()))
        .collect();
    let bytes = segments::segment(&Key::DEFAULT, &records, true);
    assert_eq!(compare_all(&bytes, &segments::lenient()), records.len());
    let inner = tenant_segments::varied(2, 600).bytes;
    let messages: Vec<_> = (0..12)
        .map(|number| {
            (
                number / 4,
                vec![b'a' + u8::try_from(number).unwrap()],
                inner.clone(),
            )
        })
        .collect();
    let bytes = tenant_segments::encode(2, &messages).bytes;
    assert_eq!(compare_all(&bytes, &tenant_segments::lenient()), 12);
    let inner = chunked::segment(3, 2, 100);
    let mut file = Vec::new();
    for chunk in 0..8 {
        let stored = chunked::stored_frame(&chunked::content(&[(chunk, &inner)]));
        chunked::push_chunk(&mut file, chunk, 1, &stored);
    }
    assert_eq!(compare_all(&file, &chunked::lenient()), 8);
    // The same, with some lengths damaged. The bodies' content is then returned or not, as in the whole walk.
    for at in (0..file.len()).step_by(0x80 * 3) {
        let mut file = file.clone();
        file[at + 22] ^= 1;
        compare_all(&file, &chunked::lenient());
    }
    let data = 24 * 12;
    let mut bytes = segments::segment(&Key::DEFAULT, &records, true);
    for at in (data + 5..bytes.len() - 200).step_by(997) {
        bytes[at] ^= 0x40;
    }
    compare_all(&bytes, &segments::lenient());
}

/// Every single byte of a message's lengths, each part's end and beginning among them.
#[test]
fn any_damaged_byte_of_a_sealed_segment() {
    let records: Vec<_> = (1..7)
        .map(|tick| (uuid(tick * 50), b"t".to_vec(), vec![0x11; 9]))
        .collect();
    let sound = segments::segment(&Key::DEFAULT, &records, true);
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x15;
        compare(&source(&bytes), &segments::lenient(), &[1, 100]);
    }
}

/// The same of the other formats that have parts.
#[test]
fn any_damaged_byte_of_a_tenant_segment_or_chunk() {
    let messages: Vec<_> = (0..6)
        .map(|number| {
            (
                number / 2,
                vec![b'a' + u8::try_from(number % 2).unwrap()],
                vec![7; 10],
            )
        })
        .collect();
    let tenant = tenant_segments::encode(2, &messages).bytes;
    let chunks = chunked::segment(5, 2, 30);
    for (sound, options) in [
        (tenant, tenant_segments::lenient()),
        (chunks, chunked::lenient()),
    ] {
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x15;
            compare(&source(&bytes), &options, &[1, 100]);
        }
    }
}
