//! What the ledger says of a tenant segment whose table of contents and blocks disagree, and where a walk of one can begin.

use crate::common::source;
use crate::tenant_segments::{Segment, encode, lenient, scan, strict_error};
use seglake::Error;
use seglake::format::{Filter, Start, Step, open};
use seglake::ledger::{Cause, Kind, Span};

/// Fields of an entry, by their place among its numbers.
const OFFSET: usize = 3;
const LENGTH: usize = 4;

/// One message in each of this many partitions.
fn partitions(count: u32) -> Segment {
    let messages: Vec<_> = (0..count)
        .map(|partition| (partition, b"t".to_vec(), partition.to_be_bytes().to_vec()))
        .collect();
    encode(2, &messages)
}

/// The offset and length of a field of an entry of version 2.
fn field(segment: &Segment, entry: usize, field: usize) -> (usize, usize) {
    segment.numbers()[3 + 6 * entry + field]
}

fn set(segment: &Segment, bytes: &mut [u8], entry: usize, name: usize, value: u64) {
    let (at, len) = field(segment, entry, name);
    bytes[at..at + len].copy_from_slice(&value.to_be_bytes()[8 - len..]);
}

/// Flips a bit of the message of this partition.
fn damage(segment: &Segment, bytes: &mut [u8], partition: usize) {
    bytes[usize::try_from(segment.messages[partition].position).unwrap() + 4] ^= 1;
}

/// Where the block of this partition is, which has one message.
fn block(segment: &Segment, partition: usize) -> (u64, u64) {
    let message = &segment.messages[partition];
    (message.position - 9, message.block_end)
}

fn ledger(bytes: &[u8]) -> Vec<Span> {
    let mut spans = scan(source(bytes), &lenient()).unwrap().1;
    spans.sort_by_key(|span| span.start);
    spans
}

#[test]
fn an_entry_that_names_no_byte_of_the_data_is_damage_itself() {
    let segment = partitions(3);
    let first = block(&segment, 0).0;
    for (name, value, cause) in [
        (LENGTH, 0, Cause::ChecksumMismatch),
        // It begins in the table of contents and reaches into the data.
        (OFFSET, first - 8, Cause::OffsetOutOfBounds),
    ] {
        let mut bytes = segment.bytes.clone();
        damage(&segment, &mut bytes, 0);
        set(&segment, &mut bytes, 0, name, value);
        segment.seal(&mut bytes);
        let entry = field(&segment, 0, 0).0 as u64..field(&segment, 1, 0).0 as u64;
        let spans = ledger(&bytes);
        let of_entry = spans.iter().find(|span| span.start == entry.start).unwrap();
        let found = (of_entry.end, of_entry.kind, of_entry.cause);
        assert_eq!(found, (entry.end, Kind::Corrupt, Some(cause)), "{spans:?}");
        let of_block = spans.iter().find(|span| span.end == block(&segment, 0).1);
        let of_block = of_block.unwrap();
        assert_eq!(of_block.cause, Some(Cause::Unreferenced), "{spans:?}");
        let raised = strict_error(source(&bytes)).unwrap();
        assert_eq!((raised.offset, raised.cause), (entry.start, cause));
    }
}

/// Entries that fail for the same cause and name adjacent bytes share one range. The second one has no bytes of it.
#[test]
fn an_entry_of_no_bytes_after_a_damaged_block_is_damage_itself() {
    let segment = encode(
        2,
        &[b"s", b"t"].map(|tenant| (0, tenant.to_vec(), b"value".to_vec())),
    );
    let mut bytes = segment.bytes.clone();
    damage(&segment, &mut bytes, 0);
    damage(&segment, &mut bytes, 1);
    set(&segment, &mut bytes, 1, LENGTH, 0);
    segment.seal(&mut bytes);
    let entry = field(&segment, 1, 0).0 as u64;
    let spans = ledger(&bytes);
    let of_entry = spans.iter().find(|span| span.start == entry);
    let cause = of_entry.map(|span| span.cause);
    assert_eq!(cause, Some(Some(Cause::ChecksumMismatch)), "{spans:?}");
}

/// Version 1: the entry points at the partition of the next entry.
#[test]
fn an_entry_that_names_the_next_partition_is_damage_itself() {
    let messages = [1, 2, 3].map(|partition| (partition, b"t".to_vec(), b"value".to_vec()));
    let segment = encode(1, &messages);
    let mut bytes = segment.bytes.clone();
    let numbers = segment.numbers();
    let of_entry = |entry: usize| numbers[3 + 3 * entry].0;
    let (own, next) = (of_entry(1), of_entry(2));
    bytes.copy_within(next + 4..next + 12, own + 4);
    bytes[own + 12..own + 20].fill(0xff);
    // Its own number of tenants, so that its partition is not found either.
    let at = usize::try_from(segment.messages[0].block_end).unwrap();
    bytes[at..at + 4].fill(0xff);
    let spans = ledger(&bytes);
    let marked = spans.iter().find(|span| span.start == own as u64);
    let marked = marked.map(|span| (span.end, span.cause));
    let cause = Some(Cause::IndexDisagrees);
    assert_eq!(marked, Some((next as u64, cause)), "{spans:?}");
}

#[test]
fn strict_reading_says_what_was_expected_and_what_was_found() {
    let segment = partitions(3);
    let raised = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = segment.bytes.clone();
        change(&mut bytes);
        let damage = strict_error(source(&bytes)).unwrap();
        let finding = damage.finding;
        (finding.expected(), finding.actual())
    };
    let (start, end) = block(&segment, 0);
    let (expected, actual) = raised(&|bytes| {
        damage(&segment, bytes, 0);
        set(&segment, bytes, 0, OFFSET, u64::MAX);
        segment.seal(bytes);
    });
    let least = format!("an offset of at least {start} ");
    assert!(expected.starts_with(&least), "{expected}");
    assert!(actual.contains(&u64::MAX.to_string()), "{actual}");

    let (_, actual) = raised(&|bytes| damage(&segment, bytes, 0));
    let mut bytes = segment.bytes.clone();
    damage(&segment, &mut bytes, 0);
    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap());
    let covered = [&0_u32.to_be_bytes(), &bytes[start..end]].concat();
    let computed = format!("{:08x}", crc32fast::hash(&covered));
    assert!(actual.contains(&computed), "{actual}");

    // The number of partitions is cut off.
    let segment = encode(2, &[]);
    let cut = usize::try_from(segment.toc_end).unwrap() + 3;
    let finding = strict_error(source(&segment.bytes[..cut])).unwrap().finding;
    let expected = finding.expected();
    assert!(expected.contains("a number of partitions"), "{expected}");
    assert_eq!(finding.actual(), "3 bytes left in the file");
}

#[test]
fn a_lost_block_between_two_partitions_is_not_a_number_of_tenants() {
    let segment = partitions(3);
    let mut bytes = segment.bytes.clone();
    bytes[usize::try_from(segment.toc_end).unwrap() - 1] ^= 1;
    damage(&segment, &mut bytes, 1);
    let [first, _, last] = [0, 1, 2].map(|partition| block(&segment, partition));
    let span = Span::new;
    let broken = Some(Cause::HeaderChecksumMismatch);
    assert_eq!(
        ledger(&bytes),
        [
            span(0, first.0, Kind::Corrupt, broken),
            span(first.0, first.1, Kind::Block, None),
            span(first.1, last.0, Kind::Corrupt, Some(Cause::Unreferenced)),
            span(last.0, last.1, Kind::Block, None),
        ]
    );
}

/// The entry states a greater length than its block has. The bytes after the block do not belong to it, whatever
/// the filter.
#[test]
fn no_walk_begins_after_the_block_that_an_entry_names() {
    let segment = partitions(3);
    let mut bytes = segment.bytes.clone();
    let (start, end) = block(&segment, 0);
    set(&segment, &mut bytes, 0, LENGTH, end - start + 3);
    segment.seal(&mut bytes);
    for wanted in [0, 1] {
        let options = lenient().filter(Filter::default().among("partition", vec![wanted]));
        let begin = |offset| -> seglake::Result<()> {
            let mut walk = open(source(&bytes), &options, Start::Offset(offset))?;
            while walk.step()? == Step::More {}
            Ok(())
        };
        begin(segment.messages[0].position).unwrap();
        for offset in [end, end + 2] {
            let refused = begin(offset);
            assert!(matches!(refused, Err(Error::Usage(_))), "{offset}");
        }
    }
}

/// The first entry names bytes of the table of contents, where no message begins.
#[test]
fn no_walk_begins_before_the_blocks() {
    for count in [2, 3, 9] {
        let segment = partitions(count);
        let mut bytes = segment.bytes.clone();
        set(&segment, &mut bytes, 0, OFFSET, 0);
        set(&segment, &mut bytes, 0, LENGTH, 49);
        segment.seal(&mut bytes);
        for strict in [false, true] {
            let options = lenient().strict(strict);
            for offset in 0..49 {
                let begun = open(source(&bytes), &options, Start::Offset(offset));
                let refused = begun.and_then(|mut walk| walk.step());
                let is_usage = matches!(refused, Err(Error::Usage(_)));
                assert!(is_usage, "{count}, {strict}, {offset}: {refused:?}");
            }
        }
    }
}

/// The entry by which a walk begins fails, and the next one names a good block before where the walk began. Damage
/// after it is still reported.
#[test]
fn a_walk_from_a_message_tells_of_damage_behind_it() {
    let segment = partitions(5);
    let mut bytes = segment.bytes.clone();
    let (third, end) = block(&segment, 2);
    // Entry 0 claims the third block and fails.
    set(&segment, &mut bytes, 0, OFFSET, third - 1);
    set(&segment, &mut bytes, 0, LENGTH, end - third + 1);
    segment.seal(&mut bytes);
    damage(&segment, &mut bytes, 3);
    let (_, all) = scan(source(&bytes), &lenient()).unwrap();
    let lost = all.iter().find(|span| span.start == block(&segment, 3).0);
    assert_eq!(
        lost.map(|span| span.cause),
        Some(Some(Cause::ChecksumMismatch))
    );
    let start = Start::Offset(segment.messages[2].position);
    let (mut found, mut strict) = (Vec::new(), None);
    let mut walk = open(source(&bytes), &lenient(), start).unwrap();
    while walk.step().unwrap() == Step::More {
        found.extend_from_slice(walk.spans());
    }
    assert!(found.iter().any(|span| Some(span) == lost), "{found:?}");
    let options = lenient().strict(true);
    let mut walk = open(source(&bytes), &options, start).unwrap();
    while strict.is_none() {
        match walk.step() {
            Ok(Step::More) => {}
            ended => strict = Some(ended),
        }
    }
    assert!(matches!(strict, Some(Err(Error::Damage(_)))), "{strict:?}");
}

/// Blocks are pending while a later entry may still name an earlier block. A few thousand pending ones end the
/// search. After the last entry that is out of order nothing is pending.
#[test]
fn entries_out_of_order_cost_blocks_only_where_too_many_are_pending() {
    // Two of one partition, so that an odd number is pending and an even limit is passed, not met.
    let mut messages = vec![(0, b"s".to_vec(), vec![])];
    messages.extend((0..5000_u32).map(|partition| {
        let value = partition.to_be_bytes().to_vec();
        (partition, b"t".to_vec(), value)
    }));
    let segment = encode(2, &messages);
    let last = messages.len() - 1;
    for (swapped, all_are_found) in [(1, true), (last - 1, false)] {
        let mut bytes = segment.bytes.clone();
        let ((one, len), (other, _)) = (
            field(&segment, swapped, OFFSET),
            field(&segment, swapped + 1, OFFSET),
        );
        for byte in 0..len {
            bytes.swap(one + byte, other + byte);
        }
        segment.seal(&mut bytes);
        let (found, spans) = scan(source(&bytes), &lenient()).unwrap();
        let limited = Some(Cause::SearchLimit);
        let is_limited = spans.iter().any(|span| span.cause == limited);
        assert_eq!(is_limited, !all_are_found, "{swapped}");
        if all_are_found {
            assert!(found == segment.messages);
        } else {
            assert!(found == segment.messages[..found.len()]);
            assert!((1000..4096).contains(&found.len()), "{}", found.len());
        }
    }
}

/// A block that moved to a place before damaged ones is looked for there only while few ranges are pending.
#[test]
fn after_thousands_of_damaged_blocks_a_moved_one_is_not_looked_for() {
    for (count, is_found) in [(10, true), (5000, false)] {
        // Two of one partition, so that an odd number is pending and an even limit is passed, not met.
        let value = |partition: u32| partition.to_be_bytes().to_vec();
        let mut messages = vec![(0, b"s".to_vec(), value(u32::MAX))];
        messages.extend((0..count).map(|partition| (partition, b"t".to_vec(), value(partition))));
        let segment = encode(2, &messages);
        let mut bytes = segment.bytes.clone();
        let all = 0..messages.len();
        let blocks = all.clone().map(|number| {
            let (start, end) = block(&segment, number);
            usize::try_from(start).unwrap()..usize::try_from(end).unwrap()
        });
        let blocks: Vec<_> = blocks.collect();
        bytes.copy_within(blocks[all.end - 1].clone(), blocks[0].start);
        for block in &blocks[1..] {
            bytes[block.end - 1] ^= 1;
        }
        // Another cause than that of the next entry, which would share its range.
        set(&segment, &mut bytes, 0, LENGTH, u64::MAX);
        segment.seal(&mut bytes);
        let found = scan(source(&bytes), &lenient()).unwrap().0;
        let found: Vec<_> = found.iter().map(|message| message.partition).collect();
        let expected = if is_found { vec![count - 1] } else { vec![] };
        assert_eq!(found, expected, "{count}");
    }
}
