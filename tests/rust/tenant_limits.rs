//! What reading a tenant segment may take: large blocks in pieces, the limits of the options, the search budget, an interrupt.

use std::path::Path;
use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::{Windowed, assert_covers, source};
use crate::tenant_segments::{collect, encode, lenient, scan, strict_error, varied};
use seglake::Error;
use seglake::format::{Start, Step, open};
use seglake::ledger::{Cause, Span};
use seglake::source::Source;
use seglake::verbs::verify;

/// Blocks of many windows are verified in one pass and emitted in a second.
#[test]
fn blocks_larger_than_memory_are_verified_before_anything_is_emitted() {
    let large: Vec<_> = (0..4000_u32)
        .map(|number| (1, b"large".to_vec(), number.to_be_bytes().repeat(30)))
        .collect();
    let mut all = vec![(0, b"small".to_vec(), b"1".to_vec())];
    all.extend(large);
    all.push((2, b"small".to_vec(), b"2".to_vec()));
    let segment = encode(2, &all);
    let options = lenient().window_bytes(4 << 10);
    let windowed = || Arc::new(Windowed(segment.bytes.clone()));
    let (records, _) = scan(windowed(), &options).unwrap();
    assert_eq!(records, segment.messages);
    let mut walk = open(windowed(), &options, Start::Beginning).unwrap();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        let bytes: usize = (0..rows.len()).map(|row| rows.value(row).len()).sum();
        assert!(bytes <= 8 << 10, "{bytes} bytes in a step");
    }
    let mut damaged = segment.bytes.clone();
    let at = usize::try_from(segment.messages[3000].position).unwrap();
    damaged[at + 10] ^= 1;
    let (records, spans) = scan(Arc::new(Windowed(damaged)), &options).unwrap();
    assert_eq!(records.len(), 2);
    assert!(
        spans
            .iter()
            .any(|span| span.cause == Some(Cause::ChecksumMismatch))
    );
}

/// Returns other bytes from the second read of an offset on.
struct Changing(Vec<u8>, u64, std::sync::atomic::AtomicU32);

impl Source for Changing {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        let place = self.1.checked_sub(offset);
        if let Some(place) = place.filter(|place| *place < buffer.len() as u64) {
            let looks = self.2.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if looks > 0 {
                buffer[usize::try_from(place).unwrap()] ^= 1;
            }
        }
        Ok(())
    }
}

#[test]
fn the_emitted_bytes_are_the_verified_ones() {
    let all: Vec<_> = (0..2000_u32)
        .map(|number| (1, b"large".to_vec(), number.to_be_bytes().repeat(30)))
        .collect();
    let segment = encode(2, &all);
    let options = lenient().window_bytes(4 << 10);
    let position = segment.messages[1500].position + 20;
    let changing = Arc::new(Changing(segment.bytes.clone(), position, 0.into()));
    let mut walk = open(changing, &options, Start::Beginning).unwrap();
    let mut records = Vec::new();
    let error = loop {
        match walk.step() {
            Ok(Step::More) => collect(&*walk, &mut records),
            Ok(_) => panic!("the change was not noticed"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("changed"), "{error}");
    assert_eq!(records, segment.messages[..records.len()]);
}

#[test]
fn a_message_that_is_too_large_is_a_limit_and_no_damage() {
    let all = [
        (0, b"a".to_vec(), vec![1; 10]),
        (0, b"b".to_vec(), vec![2; 5000]),
    ];
    for version in [1, 2] {
        let segment = encode(version, &all);
        let options = lenient().record_bytes(1000);
        let mut walk = open(source(&segment.bytes), &options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        for _ in 0..3 {
            match walk.step() {
                Ok(Step::More) => collect(&*walk, &mut records),
                Ok(_) => panic!("given out all the same"),
                Err(Error::Limit { option, needed, .. }) => {
                    assert_eq!((option, needed), ("record_bytes", 5001));
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(records, segment.messages[..1]);
        let report = verify(source(&segment.bytes), &options, |_| Ok(())).unwrap();
        assert_eq!((report.summary.records, report.is_sound()), (2, true));
    }
}

#[test]
fn an_interrupt_ends_the_reading() {
    let interrupt = Some(seglake::format::Interrupt::new(|| true));
    let options = lenient().interrupt(interrupt);
    let scanned = scan(source(&varied(2, 1 << 10).bytes), &options);
    assert!(matches!(scanned, Err(Error::Interrupted)));
}

/// A segment whose every entry names the rest of the file, so that checking each costs all of it.
fn hostile(sound: bool) -> Vec<u8> {
    let entries = 40_000_u32;
    let mut bytes = b"TSEG\0\x02".to_vec();
    bytes.extend_from_slice(&entries.to_be_bytes());
    let data = 10 + u64::from(entries) * 32 + 4 + 8;
    for entry in 0..entries {
        bytes.extend_from_slice(&entry.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&(data + u64::from(entry)).to_be_bytes());
        bytes.extend_from_slice(&(60_000 + u64::from(entry % 7)).to_be_bytes());
        bytes.extend_from_slice(&entry.to_be_bytes());
    }
    let crc = crc32fast::hash(&bytes) ^ u32::from(!sound);
    bytes.extend_from_slice(&crc.to_be_bytes());
    bytes.extend_from_slice(&entries.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.resize(bytes.len() + 110_000, 0);
    bytes
}

/// What is hashed in vain stays within the budget.
#[test]
fn hostile_entries_stay_within_the_search_budget() {
    let counting = Counting::new(hostile(true));
    let (records, spans) = scan(counting.clone(), &lenient()).unwrap();
    assert_eq!(records, []);
    let mut spans = spans;
    spans.sort_by_key(|span| span.start);
    assert_covers(&spans, usize::try_from(counting.len()).unwrap());
    assert!(
        spans
            .iter()
            .any(|span| span.cause == Some(Cause::SearchLimit))
    );
    let budget = (256 << 20) + 2 * counting.len();
    let read = counting.take().0;
    assert!(
        read <= budget + 4 * counting.len(),
        "{read} bytes read for a budget of {budget}"
    );
}

/// Good blocks to the end of the file, and then two entries that name the first one again. They are out of order,
/// so all blocks are pending until too many are. Also returns how many bytes a block and its count take.
fn disordered(blocks: usize) -> (Vec<u8>, usize) {
    let own = block(b't', b"own");
    let step = 4 + own.len();
    let data = 10 + (blocks + 2) * ENTRY_BYTES + 4 + 4;
    let entries: Vec<_> = (0..blocks + 2)
        .map(|number| {
            let place = if number < blocks { number } else { 0 };
            let partition = u32::try_from(number).unwrap();
            entry(partition, b't', 1, data + place * step + 4, &own)
        })
        .collect();
    let mut bytes = front(&entries, u32::try_from(blocks).unwrap() + 2);
    for _ in 0..blocks {
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&own);
    }
    (bytes, step)
}

/// No byte is left that could say that the last entries were not looked at, so they do.
#[test]
fn entries_that_are_not_looked_at_are_damage_also_where_no_byte_is_left() {
    // Each block is pending with its count: 2 × 2,048 pass the limit of 4,096.
    for blocks in 2045..2050 {
        let (bytes, _) = disordered(blocks);
        let (records, mut spans) = scan(source(&bytes), &lenient()).unwrap();
        spans.sort_by_key(|span| span.start);
        assert_covers(&spans, bytes.len());
        assert_eq!(records.len(), blocks);
        let first = u64::try_from(10 + blocks * ENTRY_BYTES).unwrap();
        let damage: Vec<_> = spans.iter().filter(|span| span.is_damage()).collect();
        assert_eq!(damage[0].start, first, "{blocks}: {damage:?}");
    }
}

#[test]
fn where_the_search_budget_ends_the_strict_error_is_of_the_ledgers_first_damage() {
    for sound in [true, false] {
        let bytes = hostile(sound);
        let (_, mut spans) = scan(source(&bytes), &lenient()).unwrap();
        spans.sort_by_key(|span| span.start);
        let first = spans.iter().find(|span| span.is_damage()).unwrap();
        let error = strict_error(source(&bytes)).unwrap();
        assert_eq!(
            (error.offset, Some(error.cause)),
            (first.start, first.cause)
        );
    }
}

/// An entry of the table of contents, and the block that it names: one message, or none.
fn entry(partition: u32, tenant: u8, messages: u32, at: usize, block: &[u8]) -> Vec<u8> {
    let mut covered = partition.to_be_bytes().to_vec();
    covered.extend_from_slice(block);
    let mut out = partition.to_be_bytes().to_vec();
    out.extend_from_slice(&1_u32.to_be_bytes());
    out.push(tenant);
    out.extend_from_slice(&messages.to_be_bytes());
    out.extend_from_slice(&(at as u64).to_be_bytes());
    out.extend_from_slice(&(block.len() as u64).to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&covered).to_be_bytes());
    out
}

/// A block of this tenant with one message of these bytes.
fn block(tenant: u8, value: &[u8]) -> Vec<u8> {
    let mut out = 1_u32.to_be_bytes().to_vec();
    out.extend_from_slice(&1_u32.to_be_bytes());
    out.push(tenant);
    out.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
    out.extend_from_slice(value);
    out
}

const ENTRY_BYTES: usize = 33;

/// The front of a segment with these entries and one tenant in each of this many partitions.
fn front(entries: &[Vec<u8>], partitions: u32) -> Vec<u8> {
    let mut out = b"TSEG\0\x02".to_vec();
    out.extend_from_slice(&u32::try_from(entries.len()).unwrap().to_be_bytes());
    out.extend(entries.iter().flatten());
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_be_bytes());
    out.extend_from_slice(&partitions.to_be_bytes());
    out
}

/// The first block is far away. Then come more failing entries than may be pending, then one that names a good
/// block before the first one. A good block never lies before the end of the last one, however much is pending.
#[test]
fn blocks_stay_in_order_however_many_ranges_wait() {
    for failing in [100, 2046, 2047, 2048, 5000] {
        let data = 10 + (failing + 3) * ENTRY_BYTES + 4 + 4;
        let (early, late) = (block(b't', b"early"), block(b't', b"late"));
        // Two blocks before the late one, then the bytes that the failing entries name, each followed by a gap.
        let late_at = data + 4 + early.len() + 4 + early.len() + 4;
        let garbage = late_at + late.len() + 4;
        let mut entries = vec![entry(0, b't', 1, late_at, &late)];
        for number in 0..failing {
            let partition = u32::try_from(number + 1).unwrap();
            entries.push(entry(partition, b't', 1, garbage + number * 20, &[1; 10]));
        }
        let last = u32::try_from(failing).unwrap();
        entries.push(entry(last + 1, b't', 1, data + 4, &early));
        let second = data + 4 + early.len() + 4;
        entries.push(entry(last + 2, b't', 1, second, &early));
        let mut bytes = front(&entries, last + 3);
        assert_eq!(bytes.len(), data);
        for part in [&early, &early, &late] {
            bytes.extend_from_slice(&1_u32.to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes.resize(garbage + failing * 20, 0);
        let (records, mut spans) = scan(source(&bytes), &lenient()).unwrap();
        spans.sort_by_key(|span| span.start);
        assert_covers(&spans, bytes.len());
        let values: Vec<_> = records.iter().map(|record| &record.value[..]).collect();
        assert_eq!(values, [b"late"], "{failing}");
    }
}

/// Many blocks are pending when the search ends, and only laying them shows the first damage.
#[test]
fn where_too_many_blocks_are_pending_the_strict_error_is_of_the_ledgers_first_damage() {
    for damaged in [None, Some(7)] {
        let blocks = 2100;
        let (mut bytes, step) = disordered(blocks);
        if let Some(number) = damaged {
            let end = bytes.len() - (blocks - number - 1) * step;
            bytes[end - 1] ^= 1;
        }
        let (_, mut spans) = scan(source(&bytes), &lenient()).unwrap();
        spans.sort_by_key(|span| span.start);
        assert_covers(&spans, bytes.len());
        let first = spans.iter().find(|span| span.is_damage()).unwrap();
        let error = strict_error(source(&bytes)).unwrap();
        assert_eq!(
            (error.offset, Some(error.cause)),
            (first.start, first.cause)
        );
    }
}

/// All entries but the first name the same block after the last good one. Its CRC-32 matches, but its long tenant
/// ID does not ascend, which takes comparing all of it.
#[test]
fn comparing_long_tenant_ids_in_vain_stays_within_the_search_budget() {
    let id = |last: u8| [&vec![b'a'; 1 << 20][..], &[last]].concat();
    let block = |id: &[u8]| {
        let len = u32::try_from(id.len()).unwrap();
        [&0_u32.to_be_bytes()[..], &len.to_be_bytes(), id].concat()
    };
    let (high, low) = (block(&id(b'b')), block(&id(b'a')));
    let crc = |block: &[u8]| crc32fast::hash(&[&1_u32.to_be_bytes()[..], block].concat());
    let lying = 1000_u32;
    let toc_end = 10 + 32 + id(b'b').len() + usize::try_from(lying).unwrap() * 32 + 4;
    let mut bytes = b"TSEG\0\x02".to_vec();
    bytes.extend_from_slice(&(lying + 1).to_be_bytes());
    let mut put = |id: &[u8], offset: usize, len: usize, crc: u32| {
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(id.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(&0_u32.to_be_bytes());
        bytes.extend_from_slice(&(offset as u64).to_be_bytes());
        bytes.extend_from_slice(&(len as u64).to_be_bytes());
        bytes.extend_from_slice(&crc.to_be_bytes());
    };
    put(&id(b'b'), toc_end + 8, high.len(), crc(&high));
    for _ in 0..lying {
        put(b"", 1, 5, crc(&low));
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_be_bytes());
    assert_eq!(bytes.len(), toc_end);
    bytes.extend_from_slice(&1_u32.to_be_bytes());
    bytes.extend_from_slice(&(lying + 1).to_be_bytes());
    bytes.extend_from_slice(&[high, low].concat());
    let counting = Counting::new(bytes);
    let (_, spans) = scan(counting.clone(), &lenient()).unwrap();
    assert!(spans.iter().any(Span::is_damage));
    let budget = (256 << 20) + 2 * counting.len();
    let read = counting.take().0;
    assert!(
        read <= budget + 8 * counting.len(),
        "{read} bytes read for a budget of {budget}"
    );
}

/// A step ends after a number of ranges. Strictly, also if damage is the last of them.
#[test]
fn strict_reading_emits_no_damage_when_a_step_is_full() {
    let empty = [&0_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), b"t"].concat();
    // Two ranges a block: 16,384 end a step.
    for blocks in 8189..8194 {
        let data = 10 + (blocks + 3) * ENTRY_BYTES + 4 + 4;
        let step = 4 + empty.len();
        let mut entries: Vec<_> = (0..blocks)
            .map(|number| {
                let partition = u32::try_from(number).unwrap();
                entry(partition, b't', 0, data + number * step + 4, &empty)
            })
            .collect();
        let bad = block(b't', b"bad");
        let last = u32::try_from(blocks).unwrap();
        entries.push(entry(last, b't', 1, data + blocks * step + 4, &bad));
        let bad_end = data + blocks * step + 4 + bad.len();
        // Ranges are emitted once the entry after them is known.
        for number in 0..2 {
            let partition = last + 1 + u32::try_from(number).unwrap();
            entries.push(entry(
                partition,
                b't',
                0,
                bad_end + number * step + 4,
                &empty,
            ));
        }
        let mut bytes = front(&entries, last + 3);
        for part in std::iter::repeat_n(&empty, blocks).chain([&bad, &empty, &empty]) {
            bytes.extend_from_slice(&1_u32.to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes[bad_end - 1] ^= 1;
        let error = strict_error(source(&bytes)).unwrap();
        assert_eq!(error.cause, Cause::ChecksumMismatch, "{blocks}");
    }
}

/// Every entry leads into the same long chain of lengths, which runs past the end of the file. Following it is
/// charged too.
#[test]
fn lengths_followed_in_vain_stay_within_the_search_budget() {
    let (entries, fields) = (1300_u32, 256_usize);
    let mut bytes = b"TSEG\0\x02".to_vec();
    bytes.extend_from_slice(&entries.to_be_bytes());
    let data = 10 + u64::from(entries) * 32 + 4 + 8;
    for entry in 0..entries {
        bytes.extend_from_slice(&entry.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&(data + 12 * u64::from(entry)).to_be_bytes());
        bytes.extend_from_slice(&12_u64.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_be_bytes());
    bytes.extend_from_slice(&entries.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    // A thousand messages each, no tenant ID, and a first message that reaches over the other entries' blocks.
    for entry in 0..entries {
        let first = 12 * (entries - 1 - entry);
        for number in [1000, 0, first] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }
    // Messages so long that the length of the next one has to be fetched.
    for field in 0..fields {
        let len = [4096, 5000][field % 2];
        bytes.extend_from_slice(&u32::try_from(len).unwrap().to_be_bytes());
        bytes.resize(bytes.len() + len, 0);
    }
    let (records, spans) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(records, []);
    let causes: Vec<_> = spans.iter().filter_map(|span| span.cause).collect();
    assert!(causes.contains(&Cause::SearchLimit), "{causes:?}");
}

/// Following lengths that are near each other costs no more of the budget than twice the bytes that are passed.
#[test]
fn a_block_of_many_messages_that_moved_is_found() {
    let all: Vec<_> = (0..300_000_u32)
        .map(|number| (1, b"large".to_vec(), number.to_be_bytes().repeat(2)))
        .collect();
    let segment = encode(2, &all);
    let mut bytes = segment.bytes.clone();
    let (at, len) = segment.numbers()[3 + 3];
    bytes[at..at + len].copy_from_slice(&20_u64.to_be_bytes());
    segment.seal(&mut bytes);
    let (records, _) = scan(source(&bytes), &lenient()).unwrap();
    assert!(records == segment.messages, "{} messages", records.len());
}

#[test]
fn a_step_emits_at_most_65_536_messages() {
    let all: Vec<_> = (0..70_000).map(|_| (1, b"many".to_vec(), vec![])).collect();
    let segment = encode(2, &all);
    let mut walk = open(source(&segment.bytes), &lenient(), Start::Beginning).unwrap();
    let mut records = Vec::new();
    while walk.step().unwrap() == Step::More {
        assert!(walk.rows().len() <= 1 << 16, "{}", walk.rows().len());
        collect(&*walk, &mut records);
    }
    assert!(records == segment.messages);
}

/// The table of contents is damaged, and each entry names a small block far from the one before. Fetching it is
/// charged too.
#[test]
fn blocks_fetched_in_vain_stay_within_the_search_budget() {
    let entries = 300_000_u32;
    let mut bytes = b"TSEG\0\x02".to_vec();
    bytes.extend_from_slice(&entries.to_be_bytes());
    let data = 10 + u64::from(entries) * 32 + 4 + 8;
    for entry in 0..entries {
        bytes.extend_from_slice(&entry.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let place = u64::from(entry % 2) * 10_000;
        bytes.extend_from_slice(&(data + place).to_be_bytes());
        bytes.extend_from_slice(&8_u64.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
    }
    // The checksum of the table of contents is 0 too, and the blocks have no messages.
    bytes.resize(bytes.len() + 12 + 20_000, 0);
    let (records, spans) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(records, []);
    let causes: Vec<_> = spans.iter().filter_map(|span| span.cause).collect();
    assert!(causes.contains(&Cause::SearchLimit), "{causes:?}");
}
