//! Finding messages by the table of contents: hits, misses, what proves them, and how little is read.

use crate::common;
use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::source;
use crate::tenant_segments::{Message, Segment, collect, encode, lenient, scan, varied};
use seglake::Error;
use seglake::format::tenant::Contents;
use seglake::format::{
    Filter, Options, RecordId, Scalar, Start, Step, Value, lookup, open, tenant,
};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;
use seglake::verbs::Report;

fn id(message: &Message) -> RecordId {
    message_id(message.partition, &message.tenant, message.index)
}

fn message_id(partition: u32, tenant: &[u8], index: impl Into<Scalar>) -> RecordId {
    RecordId::new([partition.into(), tenant.into(), index.into()])
}

fn options(strict: bool) -> Options {
    lenient().strict(strict)
}

type Found = Vec<Option<(u64, Vec<u8>)>>;

/// The positions and bodies of the messages found.
fn get(source: Arc<dyn Source>, ids: &[RecordId], options: &Options) -> seglake::Result<Found> {
    let hits = lookup(source, options)?.get(ids)?;
    let mut found = Vec::new();
    let mut place = 0;
    hits.each(|hit| {
        found.push(hit.map(|(rows, row)| {
            let columns = tenant::FORMAT.columns(options.dialect);
            for (column, value) in ids[place].values().iter().enumerate() {
                assert_eq!(rows.field(row, column), value.value(columns[column].kind));
            }
            let Value::Text(tenant) = rows.field(row, 1) else {
                panic!("columns moved");
            };
            assert_eq!(rows.field(row, 3), Value::Binary(rows.value(row)));
            assert_eq!(rows.weight(row), rows.value(row).len() + tenant.len());
            (rows.position(row), rows.value(row).to_vec())
        }));
        place += 1;
    });
    Ok(found)
}

fn expected(messages: &[Message]) -> Found {
    let of = |message: &Message| Some((message.position, message.value.clone()));
    messages.iter().map(of).collect()
}

/// Identifiers of messages that do not exist: no such partition, tenant, index.
fn absent(message: &Message) -> [RecordId; 4] {
    let tenant = message.tenant.clone();
    let of = |partition, tenant: Vec<u8>, index: u64| message_id(partition, &tenant, index);
    [
        of(message.partition + 1, tenant.clone(), 0),
        of(message.partition, b"nobody".to_vec(), 0),
        of(message.partition, tenant.clone(), 1 << 20),
        of(message.partition, tenant, u64::MAX),
    ]
}

#[test]
fn every_message_is_found_and_nothing_else() {
    for version in [1, 2] {
        let segment = varied(version, 16 << 10);
        for strict in [true, false] {
            let mut ids: Vec<_> = segment.messages.iter().map(id).collect();
            let mut all = expected(&segment.messages);
            // In any order, some twice, with absent ones in between.
            ids.reverse();
            all.reverse();
            ids.extend(absent(&segment.messages[9]));
            all.extend([const { None }; 4]);
            ids.push(id(&segment.messages[3]));
            all.extend(expected(&segment.messages[3..4]));
            for window_bytes in [16, 1 << 20] {
                let options = options(strict).window_bytes(window_bytes);
                let counting = Counting::new(segment.bytes.clone());
                assert_eq!(get(counting, &ids, &options).unwrap(), all);
            }
        }
    }
    let other = lookup(source(&varied(2, 100).bytes), &lenient()).unwrap();
    let refused = other.get(&[RecordId::from(1)]);
    assert!(matches!(refused, Err(Error::Usage(_))));
}

/// The table of contents is remembered here and there, so that a look-up need not go through all of it.
#[test]
fn of_thousands_of_entries_each_is_found_and_little_is_read() {
    for version in [1, 2] {
        let all: Vec<_> = (0..3000_u32)
            .map(|number| {
                // An entry of version 1 is a partition, one of version 2 a tenant.
                let partition = if version == 1 { number } else { number / 1000 };
                let tenant = format!("{number:04}").into_bytes();
                (partition, tenant, number.to_be_bytes().to_vec())
            })
            .collect();
        let segment = encode(version, &all);
        let counting = Counting::new(segment.bytes.clone());
        let options = options(true).window_bytes(1 << 10);
        let lookup = lookup(counting.clone(), &options).unwrap();
        lookup.get(&[id(&segment.messages[0])]).unwrap();
        counting.take();
        for message in segment.messages.iter().step_by(37) {
            let hits = lookup.get(&[id(message)]).unwrap();
            hits.each(|hit| {
                let (rows, row) = hit.unwrap();
                assert_eq!(rows.position(row), message.position);
            });
            let read = counting.take().0;
            assert!(read < 20_000, "{read} bytes read");
        }
    }
}

/// The block of a message: where it begins and ends.
fn block(segment: &Segment, place: usize) -> std::ops::Range<u64> {
    let message = &segment.messages[place];
    let first = segment
        .messages
        .iter()
        .find(|other| other.block_end == message.block_end)
        .unwrap();
    first.position - 8 - message.tenant.len() as u64..message.block_end
}

#[test]
fn reading_one_tenant_touches_the_table_and_its_block_alone() {
    let segment = varied(2, 600 << 10);
    let counting = Counting::new(segment.bytes.clone());
    let lookup = lookup(counting.clone(), &options(true)).unwrap();
    let place = segment.messages.len() / 2;
    let block = block(&segment, place);
    let front = segment.toc_end + 4;
    lookup.get(&[id(&segment.messages[place])]).unwrap();
    let read = counting.take().0;
    assert!(
        read <= front + (block.end - block.start),
        "{read} bytes for a table of {front} and a block of {block:?}"
    );
    // The table is read once.
    lookup.get(&[id(&segment.messages[place])]).unwrap();
    assert_eq!(counting.take().0, block.end - block.start);
    lookup.get(&absent(&segment.messages[place])[..2]).unwrap();
    assert_eq!(counting.take().0, 0, "the table alone proves a miss");

    let message = &segment.messages[place];
    let wanted = Filter::default()
        .among("partition", vec![message.partition])
        .among("tenant", vec![message.tenant.clone()]);
    let mut walk = lookup.range(&wanted).unwrap();
    let mut records = Vec::new();
    let mut ledger = Vec::new();
    while walk.step().unwrap() == Step::More {
        ledger.extend_from_slice(walk.spans());
        collect(&*walk, &mut records);
    }
    let (first, front) = ledger.split_first().unwrap();
    assert_eq!(
        (first.start, first.end, first.kind),
        (block.start, block.end, Kind::Block)
    );
    // Head, its own entry, the table's CRC-32 and the number of partitions: entries that were not followed are not known.
    let bytes: u64 = front.iter().map(Span::len).sum();
    assert_eq!(bytes, 10 + 32 + message.tenant.len() as u64 + 4 + 4);
    let is_sound = |span: &Span| span.kind == Kind::Header && !span.is_damage();
    assert!(front.iter().all(is_sound), "{ledger:?}");
    let all = segment
        .messages
        .iter()
        .filter(|other| other.block_end == message.block_end);
    assert!(records.iter().eq(all));
    assert_eq!(counting.take().0, block.end - block.start);
}

#[test]
fn contents_are_read_from_the_table_alone() {
    for version in [1, 2] {
        let segment = varied(version, 64 << 10);
        let counting = Counting::new(segment.bytes.clone());
        let contents = Contents::read(counting.clone(), &options(true)).unwrap();
        assert_eq!(contents.is_proven(), version == 2);
        assert_eq!(contents.partitions(), [0, 3, 7, 900, 901]);
        assert_eq!(contents.tenants().len(), 23);
        assert_eq!(
            contents.blocks(),
            seglake::format::tenant::blocks(source(&segment.bytes), &lenient()).unwrap()
        );
        if version == 2 {
            assert!(counting.take().0 <= segment.toc_end + 4);
        }
        // A damaged table: the file is walked, or the damage is an error.
        let mut damaged = segment.bytes.clone();
        damaged[6] ^= 1;
        let read = Contents::read(source(&damaged), &options(false)).unwrap();
        assert!(!read.is_proven());
        assert_eq!(read.partitions(), contents.partitions());
        let strict = Contents::read(source(&damaged), &options(true));
        assert!(matches!(strict, Err(Error::Damage(_))));
    }
}

#[test]
fn a_damaged_block_is_an_error_where_it_is_looked_for() {
    for version in [1, 2] {
        let segment = varied(version, 8 << 10);
        let place = segment.messages.len() / 2;
        let hit = block(&segment, place);
        let mut damaged = segment.bytes.clone();
        // The tenant ID's length: seen by structure too.
        damaged[usize::try_from(hit.start).unwrap() + 4] ^= 0x80;
        let ids = [id(&segment.messages[place])];
        let strict = get(source(&damaged), &ids, &options(true));
        let Err(Error::Damage(damage)) = strict else {
            panic!("{strict:?}")
        };
        assert!(damage.offset <= hit.start);
        assert_eq!(
            get(source(&damaged), &ids, &options(false)).unwrap(),
            [None]
        );
        // Others are found all the same: those of other partitions in version 1.
        let partition = segment.messages[place].partition;
        let other = segment
            .messages
            .iter()
            .position(|message| message.partition != partition)
            .unwrap();
        let other = &segment.messages[other..=other];
        for strict in [true, false] {
            let found = get(source(&damaged), &[id(&other[0])], &options(strict));
            assert_eq!(found.unwrap(), expected(other));
        }
    }
}

#[test]
fn under_a_damaged_table_the_blocks_are_searched() {
    let segment = varied(2, 8 << 10);
    let mut damaged = segment.bytes.clone();
    // The number of messages of the first entry. Nothing is lost.
    damaged[10 + 8 + segment.messages[0].tenant.len()] ^= 1;
    let ids: Vec<_> = segment.messages.iter().map(id).collect();
    for strict in [true, false] {
        let found = get(source(&damaged), &ids, &options(strict)).unwrap();
        assert_eq!(found, expected(&segment.messages));
    }
    let absent = absent(&segment.messages[0]);
    let missed = get(source(&damaged), &absent, &options(false)).unwrap();
    assert_eq!(missed, [const { None }; 4]);
    let Err(Error::Damage(damage)) = get(source(&damaged), &absent, &options(true)) else {
        panic!("a miss that nothing proves")
    };
    assert_eq!(
        (damage.offset, damage.cause),
        (0, Cause::HeaderChecksumMismatch)
    );
}

/// A block that is not where its entry says is found after the block before it, by look-ups and by walks.
#[test]
fn a_block_that_has_moved_is_found_where_damage_is_skipped() {
    let segment = varied(2, 8 << 10);
    let place = segment.messages.len() / 2;
    let moved = block(&segment, place);
    // Entries that name another offset for the block, in a sound table.
    let needle = moved.start.to_be_bytes();
    let toc_end = usize::try_from(segment.toc_end).unwrap();
    let at = (0..toc_end - 8)
        .find(|at| segment.bytes[*at..at + 8] == needle)
        .unwrap();
    let mut damaged = segment.bytes.clone();
    // One byte less of it, from its second byte on: no two entries mean the same bytes.
    damaged[at..at + 8].copy_from_slice(&(moved.start + 1).to_be_bytes());
    let len = moved.end - moved.start - 1;
    damaged[at + 8..at + 16].copy_from_slice(&len.to_be_bytes());
    segment.seal(&mut damaged);
    let (records, _) = scan(source(&damaged), &lenient()).unwrap();
    assert_eq!(records, segment.messages);
    let ids: Vec<_> = segment.messages.iter().map(id).collect();
    let found = get(source(&damaged), &ids, &options(false)).unwrap();
    assert_eq!(found, expected(&segment.messages));
    let strict = get(source(&damaged), &ids, &options(true));
    assert!(matches!(strict, Err(Error::Damage(_))));
    let ranged = lookup(source(&damaged), &options(false)).unwrap();
    let mut walk = ranged.range(&Filter::default()).unwrap();
    let mut records = Vec::new();
    while walk.step().unwrap() == Step::More {
        collect(&*walk, &mut records);
    }
    assert_eq!(records, segment.messages);
}

#[test]
fn look_ups_in_every_damaged_file_agree_with_the_walk() {
    for version in [1, 2] {
        let all: Vec<_> = (0..12_u32)
            .map(|number| {
                let tenant = vec![b'a' + u8::try_from(number % 3).unwrap()];
                (number % 2, tenant, number.to_be_bytes().to_vec())
            })
            .collect();
        let segment = encode(version, &all);
        let ids: Vec<_> = segment.messages.iter().map(id).collect();
        for bit in 0..segment.bytes.len() * 8 {
            let mut damaged = segment.bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (records, _) = scan(source(&damaged), &lenient()).unwrap();
            let walked: Found = ids
                .iter()
                .map(|wanted| {
                    let found = records.iter().find(|record| id(record) == *wanted);
                    found.map(|record| (record.position, record.value.clone()))
                })
                .collect();
            let found = get(source(&damaged), &ids, &options(false)).unwrap();
            assert_eq!(found, walked, "version {version}, bit {bit}");
            for (wanted, walked) in ids.iter().zip(&walked) {
                match get(
                    source(&damaged),
                    std::slice::from_ref(wanted),
                    &options(true),
                ) {
                    Ok(found) => assert_eq!(found, std::slice::from_ref(walked)),
                    Err(Error::Damage(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

/// Version 1: a number of tenants that was emitted as good and the next one are one range in a walk of the whole
/// file.
#[test]
fn no_byte_is_given_twice_where_pruning_falls_back_to_a_walk() {
    let uint = |number: u32| number.to_be_bytes();
    let partition = [&uint(1)[..], &uint(1), &uint(1), b"t", &uint(2), b"hi"].concat();
    let mut bytes = [&b"TSEG"[..], &1_u16.to_be_bytes(), &uint(3)].concat();
    // The second partition is empty, and the third one's length is wrong.
    for (id, offset, length) in [(1, 74_u64, 19_u64), (5, 93, 4), (9, 97, 0)] {
        bytes.extend_from_slice(&uint(id));
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
    }
    bytes.extend([&uint(3)[..], &partition, &uint(0), &partition].concat());
    let (all, ledger) = scan(source(&bytes), &options(false)).unwrap();
    assert_eq!(all.len(), 2);
    let is_one = |span: &Span| (span.start, span.end, span.kind) == (93, 101, Kind::Header);
    assert!(ledger.iter().any(is_one));
    let pruned = options(false)
        .prune(true)
        .filter(Filter::default().among("partition", vec![1, 5, 9]));
    let (found, mut spans) = scan(source(&bytes), &pruned).unwrap();
    assert_eq!(found, all);
    assert!(spans.iter().any(Span::is_damage));
    spans.sort_by_key(|span| span.start);
    common::assert_covers(&spans, bytes.len());
}

/// What a report remembers of where it has gaps does not grow with them.
#[test]
fn a_report_of_many_gaps_is_short() {
    let messages: Vec<_> = (0..2000)
        .flat_map(|partition| [b"a", b"b"].map(|tenant| (partition, tenant.to_vec(), vec![1])))
        .collect();
    let pruned = options(false)
        .prune(true)
        .filter(Filter::default().among("tenant", vec![b"b".to_vec()]));
    let source = source(&encode(2, &messages).bytes);
    let mut report = Report::of(&tenant::FORMAT, &*source);
    let mut walk = open(source, &pruned, Start::Beginning).unwrap();
    while walk.step().unwrap() == Step::More {
        report.add(&*walk);
    }
    assert_eq!(report.summary.records, 2000);
    assert!(report.summary.bytes < report.summary.size);
    assert!(format!("{report:?}").len() < 5000, "{report:?}");
}

/// With a damaged table the first look-up walks through the file. The next ones know where the blocks are.
#[test]
fn with_a_damaged_table_only_the_first_look_up_reads_the_file() {
    let segment = varied(2, 300 << 10);
    let mut bytes = segment.bytes.clone();
    bytes[14] ^= 0x40; // the first tenant's length in the table
    let (found, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(found, segment.messages);
    let counting = Counting::new(bytes);
    let lookup = lookup(counting.clone(), &options(false)).unwrap();
    let ids: Vec<_> = segment.messages.iter().map(id).collect();
    lookup.get(&ids[..1]).unwrap();
    assert!(counting.take().0 >= segment.bytes.len() as u64 / 2);
    for (wanted, message) in ids.iter().zip(&segment.messages).step_by(97) {
        let hits = lookup.get(std::slice::from_ref(wanted)).unwrap();
        hits.each(|hit| assert_eq!(hit.unwrap().0.value(hit.unwrap().1), message.value));
        let (read, own) = (counting.take().0, message.block_end - segment.toc_end);
        assert!(read <= own.min(100 << 10) + (16 << 10), "{read} bytes");
    }
    let missed = lookup.get(&absent(&segment.messages[0])).unwrap();
    missed.each(|hit| assert!(hit.is_none()));
    assert!(counting.take().0 < 16 << 10);
}

/// A missing message may have been where the damage is. The error of each miss is the same, and the file is read
/// only for the first.
#[test]
fn with_a_damaged_table_a_strict_miss_is_the_first_damage_each_time() {
    let segment = varied(2, 300 << 10);
    let mut bytes = segment.bytes.clone();
    bytes[14] ^= 0x40; // the first tenant's length in the table
    let len = bytes.len() as u64;
    let counting = Counting::new(bytes);
    let lookup = lookup(counting.clone(), &options(true)).unwrap();
    let mut read = Vec::new();
    let mut raised = Vec::new();
    for wanted in absent(&segment.messages[0]) {
        let Err(Error::Damage(damage)) = lookup.get(&[wanted]) else {
            panic!("a miss that is not proven");
        };
        raised.push((damage.offset, damage.cause, damage.to_string()));
        read.push(counting.take().0);
    }
    raised.dedup();
    assert_eq!(raised.len(), 1, "{raised:?}");
    assert!(
        read[0] >= len / 2 && read[1..].iter().all(|read| *read < 16 << 10),
        "{read:?}"
    );
}
