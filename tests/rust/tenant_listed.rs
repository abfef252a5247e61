//! After a table of contents that does not lead to the blocks: the first look-up scans the file, and later ones read only the wanted
//! blocks. Ranges and pruned passes scan it.

use proptest::prelude::*;

use crate::common::counting::Counting;
use crate::common::source;
use crate::tenant_segments::{
    Message, Segment, collect, encode, lenient, scan, strict_error, varied,
};
use seglake::Error;
use seglake::format::{
    Filter, Lookup, RecordId, Start, Step, Unproven, Walk, lookup, open, tenant,
};
use seglake::ledger::{Cause, Kind, Span};

fn of(partition: u32, tenant: &[u8]) -> Filter {
    Filter::default()
        .among("partition", vec![partition])
        .among("tenant", vec![tenant.to_vec()])
}

/// What a walk gives.
fn read(mut walk: Box<dyn Walk>) -> seglake::Result<(Vec<Message>, Vec<Span>)> {
    let (mut messages, mut spans) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        collect(&*walk, &mut messages);
        spans.extend_from_slice(walk.spans());
    }
    Ok((messages, spans))
}

fn range(lookup: &dyn Lookup, filter: &Filter) -> seglake::Result<(Vec<Message>, Vec<Span>)> {
    read(lookup.range(filter)?)
}

/// A segment whose table of contents does not lead to its blocks, though all of them are found.
fn damaged(version: u16, bytes: usize) -> (Segment, Vec<u8>) {
    let segment = varied(version, bytes);
    let mut bytes = segment.bytes.clone();
    match version {
        1 => bytes[14 + 20 + 7] ^= 1, // the second partition's offset
        _ => bytes[14] ^= 0x40,       // the first tenant's length
    }
    let (found, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(found, segment.messages);
    (segment, bytes)
}

/// What one tenant has, and how many bytes of the file lie between the first and the last of it.
fn own(segment: &Segment, place: usize) -> (Filter, Vec<Message>) {
    let wanted = &segment.messages[place];
    let is_own =
        |other: &&Message| (other.partition, &other.tenant) == (wanted.partition, &wanted.tenant);
    let own = segment.messages.iter().filter(is_own).cloned().collect();
    (of(wanted.partition, &wanted.tenant), own)
}

fn id(message: &Message) -> RecordId {
    let Message {
        partition,
        tenant,
        index,
        ..
    } = message;
    RecordId::new([(*partition).into(), tenant[..].into(), (*index).into()])
}

/// That a look-up finds a message.
fn assert_found(lookup: &dyn Lookup, message: &Message) {
    let hits = lookup.get(&[id(message)]).unwrap();
    hits.each(|hit| {
        let (rows, row) = hit.unwrap();
        assert_eq!(rows.position(row), message.position);
        assert_eq!(rows.value(row), message.value);
    });
    assert_eq!(hits.unproven, None, "it is found");
}

#[test]
fn only_the_first_look_up_reads_the_file() {
    for version in [1, 2] {
        let (segment, bytes) = damaged(version, 400 << 10);
        let len = bytes.len() as u64;
        let counting = Counting::new(bytes);
        let own_lookup = lookup(counting.clone(), &lenient()).unwrap();
        for place in [0, 700, 1, segment.messages.len() - 1] {
            assert_found(&*own_lookup, &segment.messages[place]);
            let read = counting.take().0;
            match place {
                0 => assert!(read >= len - (1 << 10), "version {version}: {read}"),
                // A block has a fifth of a 23rd of the file; of version 1 a partition is gone through, a fifth.
                _ if version == 2 => assert!(read <= len / 20, "{read} of {len}"),
                _ => assert!(read <= len / 2, "{read} of {len}"),
            }
        }
        let none = RecordId::new([4_u32.into(), b"nobody"[..].into(), 0_u32.into()]);
        let hits = own_lookup.get(&[none]).unwrap();
        assert_eq!(hits.places, [None]);
        assert_eq!(hits.unproven, Some(Unproven::Damage));
        assert!(counting.take().0 < 1 << 10);
        // Another look-up of the file knows nothing of it.
        let other = lookup(counting.clone(), &lenient()).unwrap();
        assert_found(&*other, &segment.messages[700]);
        assert!(counting.take().0 >= len / 2);
        // A range gives all that there is of a tenant, and the ledger of the file, each time.
        let (filter, expected) = own(&segment, 700);
        let first = range(&*own_lookup, &filter).unwrap();
        assert_eq!(first.0, expected);
        assert!(first.1.iter().any(Span::is_damage));
        assert!(range(&*own_lookup, &filter).unwrap() == first);
    }
}

/// If there are more blocks than are listed, each look-up scans the file.
#[test]
fn more_blocks_than_are_listed_are_found_all_the_same() {
    for (count, is_listed) in [(60_000_u32, true), (70_000, false)] {
        for version in [1, 2] {
            let all: Vec<_> = (0..count)
                .map(|number| {
                    // A unit of version 1 is a partition, one of version 2 a block.
                    let (partition, tenant) = match version {
                        1 => (number, b"t".to_vec()),
                        _ => (number / 1000, format!("{:03}", number % 1000).into_bytes()),
                    };
                    (partition, tenant, number.to_be_bytes().repeat(4))
                })
                .collect();
            let segment = encode(version, &all);
            let mut bytes = segment.bytes.clone();
            bytes[if version == 1 { 14 + 20 + 7 } else { 14 }] ^= 0x40;
            let (whole, _) = scan(source(&bytes), &lenient()).unwrap();
            assert!(whole.len() + 1 >= count as usize);
            let len = bytes.len() as u64;
            let counting = Counting::new(bytes);
            let lookup = lookup(counting.clone(), &lenient()).unwrap();
            assert_found(&*lookup, &whole[0]);
            for message in whole.iter().step_by(9973) {
                counting.take();
                assert_found(&*lookup, message);
                let read = counting.take().0;
                assert_eq!(
                    read < len / 3,
                    is_listed,
                    "version {version}: {read} of {len}"
                );
            }
        }
    }
}

/// The front is read, so that its damage is met: by ranges as by pruned passes, each time, and before any record.
#[test]
fn read_strictly_damage_of_the_front_is_an_error() {
    let strict = lenient().strict(true);
    for (version, at) in [
        (1, 0),
        (1, 6),
        (1, usize::MAX),
        (1, 14 + 20 + 7),
        (2, 0),
        (2, 4),
        (2, 14),
        (2, usize::MAX),
    ] {
        let segment = varied(version, 100 << 10);
        let number_of_partitions = usize::try_from(segment.toc_end).unwrap();
        let mut bytes = segment.bytes.clone();
        bytes[if at == usize::MAX {
            number_of_partitions
        } else {
            at
        }] ^= 0x40;
        let whole = strict_error(source(&bytes)).unwrap();
        let (filter, expected) = own(&segment, 9);
        let counting = Counting::new(bytes.clone());
        let options = strict.clone().prune(true).filter(filter.clone());
        let lookup = lookup(counting.clone(), &options).unwrap();
        for time in 0..4 {
            counting.take();
            let mut walk = match time {
                3 => open(counting.clone(), &options, Start::Beginning).unwrap(),
                _ => lookup.range(&filter).unwrap(),
            };
            for _ in 0..2 {
                let Err(Error::Damage(damage)) = walk.step() else {
                    panic!("damage at {at} of version {version}: no error");
                };
                assert_eq!(damage.to_string(), whole.to_string());
            }
            let read = counting.take().0;
            assert!(
                ![1, 2].contains(&time) || read == 0,
                "{read} bytes the {time}th time"
            );
        }
        // What is proven is looked up all the same, and what is skipped is read.
        let skipping = lenient().prune(true).filter(filter.clone());
        let (found, spans) = scan(source(&bytes), &skipping).unwrap();
        assert_eq!(found, expected);
        assert!(spans.iter().any(Span::is_damage));
    }
}

/// Damage to the front of a segment, and sometimes elsewhere: bits flipped, bytes overwritten or swapped with others.
fn damages() -> impl Strategy<Value = Vec<(bool, prop::sample::Index, u8, u8)>> {
    let one = (
        prop::bool::weighted(0.85),
        any::<prop::sample::Index>(),
        0..3_u8,
        any::<u8>(),
    );
    prop::collection::vec(one, 1..4)
}

fn small(version: u16) -> Segment {
    let all: Vec<_> = (0..48_u32)
        .map(|number| {
            let tenant = format!("t{}", number % 4).into_bytes();
            (number % 3 * 5, tenant, vec![7; number as usize % 9])
        })
        .collect();
    encode(version, &all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is damaged: ranges, pruned passes and look-ups give what the whole walk does.
    #[test]
    fn look_ups_give_what_the_whole_walk_does(
        version in 1..=2_u16,
        damages in damages(),
        wanted in prop::collection::vec(prop::sample::select(vec![0, 5, 10, 77]), 0..3),
        tenants in prop::collection::vec(prop::sample::select(vec!["t0", "t3", "none"]), 0..3),
        window_bytes in prop::sample::select(vec![16_usize, 1 << 20]),
    ) {
        let segment = small(version);
        let mut bytes = segment.bytes.clone();
        let front = usize::try_from(segment.toc_end).unwrap() + 4;
        for (is_of_front, index, kind, value) in damages {
            let at = index.index(if is_of_front { front } else { bytes.len() });
            match kind {
                0 => bytes[at] ^= 1 << (value % 8),
                1 => bytes[at] = value,
                _ => bytes.swap(at, index.index(front)),
            }
        }
        let mut filter = Filter::default();
        if !wanted.is_empty() {
            filter = filter.among("partition", wanted.clone());
        }
        if !tenants.is_empty() {
            filter = filter.among("tenant", tenants.iter().map(|own| own.as_bytes().to_vec()).collect::<Vec<_>>());
        }
        let is_own = |own: &Message| {
            (wanted.is_empty() || wanted.contains(&own.partition))
                && (tenants.is_empty() || tenants.iter().any(|tenant| tenant.as_bytes() == own.tenant))
        };
        let (all, ledger) = scan(source(&bytes), &lenient()).unwrap();
        let expected: Vec<_> = all.iter().filter(|own| is_own(own)).cloned().collect();

        let options = lenient().window_bytes(window_bytes);
        let own = lookup(source(&bytes), &options).unwrap();
        let mut told = Vec::new();
        for _ in 0..3 {
            let (found, spans) = range(&*own, &filter).unwrap();
            prop_assert_eq!(&found, &expected);
            for span in &spans {
                let is_of = |other: &&Span| {
                    (other.kind, other.cause) == (span.kind, span.cause) && other.start <= span.start && span.end <= other.end
                };
                prop_assert!(ledger.iter().any(|other| is_of(&other)), "{span:?} of {ledger:?}");
            }
            let mut places: Vec<_> = spans.iter().map(|span| (span.start, span.end)).collect();
            places.sort_unstable();
            prop_assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
            let blocks = spans.iter().filter(|span| span.kind == Kind::Block).count();
            prop_assert!(expected.is_empty() || blocks > 0);
            told.push(spans.iter().any(Span::is_damage));
        }
        prop_assert!(told[1..].iter().all(|told_later| *told_later == told[0]), "{told:?}");
        for record in &all {
            own.get(&[id(record)]).unwrap().each(|hit| {
                let (rows, row) = hit.unwrap();
                assert_eq!((rows.position(row), rows.value(row)), (record.position, &record.value[..]));
            });
        }
        let missing = [RecordId::new([77_u32.into(), b"t9"[..].into(), 0_u32.into()])];
        let fresh = lookup(source(&bytes), &options).unwrap();
        prop_assert_eq!(own.get(&missing).unwrap().unproven, fresh.get(&missing).unwrap().unproven);

        let strict = options.strict(true).prune(true).filter(filter.clone());
        let raised = strict_error(source(&bytes));
        let own = lookup(source(&bytes), &strict).unwrap();
        let mut results = Vec::new();
        for time in 0..4 {
            let walk = match time {
                0 | 1 => own.range(&filter).unwrap(),
                _ if filter.is_empty() => continue,
                _ => open(source(&bytes), &strict, Start::Beginning).unwrap(),
            };
            results.push(match read(walk) {
                Ok((found, _)) => {
                    prop_assert_eq!(found, expected.clone());
                    None
                }
                Err(Error::Damage(damage)) => Some(damage.to_string()),
                Err(other) => panic!("{other}"),
            });
        }
        results.dedup();
        prop_assert_eq!(results.len(), 1, "{:?}", results);
        prop_assert!(results[0].is_none() || raised.is_some());
    }
}

/// Where nothing is verified, a miss is unproven, each time.
#[test]
fn of_a_file_in_which_nothing_is_verified_the_damage_is_known() {
    let mut bytes = varied(2, 2 << 10).bytes;
    let len = bytes.len() as u64;
    bytes[10..].fill(0xff);
    let counting = Counting::new(bytes);
    let own = lookup(counting.clone(), &lenient().format(&tenant::FORMAT)).unwrap();
    let (found, spans) = range(&*own, &of(3, b"t")).unwrap();
    assert!(found.is_empty());
    let [span] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (span.start, span.end, span.cause),
        (0, len, Some(Cause::LengthOutOfBounds))
    );
    for time in 0..3 {
        counting.take();
        let id = RecordId::new([3_u32.into(), b"t"[..].into(), 0_u32.into()]);
        assert_eq!(own.get(&[id]).unwrap().unproven, Some(Unproven::Damage));
        assert!(time == 0 || counting.take().0 == 0);
    }
}
