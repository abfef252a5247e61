//! Behind a table of contents that does not lead to the blocks: what one read proved, later ones of the open file go by.

use std::sync::Arc;

use proptest::prelude::*;

use crate::common::counting::Counting;
use crate::common::source;
use crate::tenant_segments::{
    Message, Segment, collect, encode, lenient, scan, strict_error, varied,
};
use seglake::Error;
use seglake::format::{Filter, Lookup, Options, RecordId, Start, Step, Walk, lookup, open, tenant};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;

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

#[test]
fn only_the_first_range_reads_the_file() {
    for version in [1, 2] {
        let (segment, bytes) = damaged(version, 400 << 10);
        let len = bytes.len() as u64;
        let counting = Counting::new(bytes);
        let lookup = lookup(counting.clone(), &lenient()).unwrap();
        for place in [0, 700, 1, segment.messages.len() - 1] {
            let (filter, expected) = own(&segment, place);
            assert_eq!(range(&*lookup, &filter).unwrap().0, expected);
            let read = counting.take().0;
            match place {
                0 => assert!(read >= len - (1 << 10), "version {version}: {read}"),
                // A block has a fifth of a 23rd of the file; of version 1 a partition is gone through, a fifth.
                _ if version == 2 => assert!(read <= len / 20, "{read} of {len}"),
                _ => assert!(read <= len / 2, "{read} of {len}"),
            }
        }
        let none = of(4, b"nobody");
        let (found, spans) = range(&*lookup, &none).unwrap();
        assert!(found.is_empty() && counting.take().0 < 1 << 10);
        assert!(
            spans.iter().any(Span::is_damage),
            "a miss shows that there is damage"
        );
        // Look-ups go by the same.
        let message = &segment.messages[700];
        let key = [
            message.partition.into(),
            message.tenant[..].into(),
            message.index.into(),
        ];
        let hits = lookup.get(&[RecordId::new(key)]).unwrap();
        hits.each(|hit| assert_eq!(hit.unwrap().0.value(hit.unwrap().1), message.value));
        assert!(counting.take().0 <= len / 2);
        // All of it is read when it is wanted.
        assert_eq!(
            range(&*lookup, &Filter::default()).unwrap().0,
            segment.messages
        );
    }
}

/// Passes that prune, opened with the same options, share it; of another file, or with other options, nothing is known.
#[test]
fn pruned_reads_of_the_open_file_share_what_one_proved() {
    for version in [1, 2] {
        let (segment, bytes) = damaged(version, 400 << 10);
        let len = bytes.len() as u64;
        let counting = Counting::new(bytes.clone());
        let options = lenient().prune(true);
        let pass = |source: Arc<dyn Source>, options: &Options, place| {
            let (filter, expected) = own(&segment, place);
            let options = options.clone().filter(filter);
            let found = scan(source, &options).unwrap().0;
            assert_eq!(found, expected);
            counting.take().0
        };
        let costs: Vec<_> = (0..3)
            .map(|_| pass(counting.clone(), &options, 700))
            .collect();
        assert!(costs[0] >= len / 2 && costs[1..].iter().all(|cost| *cost <= len / 2));
        assert!(version == 1 || costs[2] <= len / 20, "{costs:?}");
        let other = pass(counting.clone(), &lenient().prune(true), 700);
        assert!(other >= len / 2);
        let copy = Counting::new(bytes);
        pass(copy.clone(), &options, 700);
        assert!(copy.take().0 >= len / 2);
        // A look-up with these options knows of it as well.
        pass(counting.clone(), &options, 3);
        let lookup = lookup(counting.clone(), &options).unwrap();
        let (filter, expected) = own(&segment, 9);
        assert_eq!(range(&*lookup, &filter).unwrap().0, expected);
        assert!(counting.take().0 <= len / 2);
    }
}

/// Where they are many, every n-th is remembered, and those between two of them are found from there on.
#[test]
fn of_many_blocks_some_are_remembered() {
    const COUNT: u32 = 40_000;
    for version in [1, 2] {
        let all: Vec<_> = (0..COUNT)
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
        assert!(whole.len() + 1 >= COUNT as usize);
        let len = bytes.len() as u64;
        let counting = Counting::new(bytes);
        let lookup = lookup(counting.clone(), &lenient()).unwrap();
        range(&*lookup, &of(0, b"")).unwrap();
        for message in whole.iter().step_by(997) {
            counting.take();
            let (found, _) = range(&*lookup, &of(message.partition, &message.tenant)).unwrap();
            assert_eq!(found, std::slice::from_ref(message));
            let key = [
                message.partition.into(),
                message.tenant[..].into(),
                0_u32.into(),
            ];
            let hits = lookup.get(&[RecordId::new(key)]).unwrap();
            hits.each(|hit| assert_eq!(hit.unwrap().0.position(hit.unwrap().1), message.position));
            let read = counting.take().0;
            assert!(read < len / 3, "version {version}: {read} of {len}");
        }
        assert_eq!(range(&*lookup, &Filter::default()).unwrap().0, whole);
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
                0 | 2 => lookup.range(&filter).unwrap(),
                _ => open(counting.clone(), &options, Start::Beginning).unwrap(),
            };
            for _ in 0..2 {
                let Err(Error::Damage(damage)) = walk.step() else {
                    panic!("damage at {at} of version {version}: no error");
                };
                assert_eq!(damage.to_string(), whole.to_string());
            }
            let read = counting.take().0;
            assert!(time == 0 || read == 0, "{read} bytes the {time}th time");
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

    /// Whatever is damaged: the first range, later ones, pruned passes and look-ups give what the whole walk does.
    #[test]
    fn what_is_remembered_gives_what_the_whole_walk_does(
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
        for record in all.iter().step_by(5) {
            let id = RecordId::new([record.partition.into(), record.tenant[..].into(), record.index.into()]);
            own.get(&[id]).unwrap().each(|hit| {
                let (rows, row) = hit.unwrap();
                assert_eq!((rows.position(row), rows.value(row)), (record.position, &record.value[..]));
            });
        }

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

/// Where nothing counts, nothing is remembered but the damage.
#[test]
fn of_a_file_in_which_nothing_counts_the_damage_is_remembered() {
    let mut bytes = varied(2, 2 << 10).bytes;
    let len = bytes.len() as u64;
    bytes[10..].fill(0xff);
    let counting = Counting::new(bytes);
    let own = lookup(counting.clone(), &lenient().format(&tenant::FORMAT)).unwrap();
    for time in 0..2 {
        let (found, spans) = range(&*own, &of(3, b"t")).unwrap();
        assert!(found.is_empty());
        let [span] = spans.as_slice() else {
            panic!("{spans:?}")
        };
        assert_eq!(
            (span.start, span.end, span.cause),
            (0, len, Some(Cause::LengthOutOfBounds))
        );
        assert!(time == 0 || counting.take().0 == 0);
        counting.take();
    }
}
