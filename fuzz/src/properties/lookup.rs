//! A look-up is never silently wrong: it finds exactly the records of a walk. In strict mode it may fail instead, but
//! only for a damaged file.

use std::collections::BTreeMap;
use std::sync::Arc;

use seglake::format::{
    Column, ColumnKind, Format, Hits, IndexSource, Options, RecordId, Scalar, chunked, lookup,
    sealed, tenant,
};
use seglake::ledger::{Cause, Span};
use seglake::source::BytesSource;

use super::filter::Drawn;
use super::parts::overlap;
use super::scan::{End, Plain, Record, Scan, ended, whole, windowed};
use super::{Draw, format_of};

/// How many records are looked up one by one, each by a new look-up that has proven nothing.
const SINGLE: usize = 6;

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for (options, scan) in ended(format, bytes) {
        let window_bytes = *draw.of_these(&[1, 20, 50, 1 << 20]);
        let options = options.window_bytes(window_bytes);
        if *format == tenant::FORMAT {
            contents_are_the_walks(&scan, bytes, &options);
            if !names_its_blocks(bytes, &options) {
                continue;
            }
        }
        if *format == chunked::FORMAT && a_header_lies(&scan, bytes) {
            continue;
        }
        finds_what_the_walk_gives(&scan, bytes, &options, &mut draw);
        if *format == chunked::FORMAT {
            for index in indexes(bytes, &options, &mut draw) {
                let index = IndexSource::Source(Arc::new(BytesSource::new(index)));
                let options = options.clone().index(index);
                finds_what_the_walk_gives(&scan, bytes, &options, &mut draw);
            }
        }
    }
}

/// Whether the header of a chunk that is not good claims message offsets that the later good chunks do not follow.
/// Look-ups trust headers whose CRC matches, and no accident makes a false one.
fn a_header_lies(scan: &Scan, bytes: &[u8]) -> bool {
    let number = |at: u64, len: usize| {
        let start = usize::try_from(at).ok()?;
        let own = bytes.get(start..start + len)?;
        Some(
            own.iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    let is_bad = |span: &&Span| span.cause == Some(Cause::PayloadInvalid);
    scan.spans.iter().filter(is_bad).any(|span| {
        let end = number(span.start + 5, 8).zip(number(span.start + 13, 4));
        let end = end.map_or(0, |(start, records)| start.saturating_add(records));
        let mut behind = scan.records.iter().filter(|record| record.position > span.start);
        behind.any(|record| matches!(record.fields[0], Plain::Int64(offset) if offset.cast_unsigned() < end))
    })
}

/// A correct index, and a false one.
fn indexes(bytes: &[u8], options: &Options, draw: &mut Draw) -> [Vec<u8>; 2] {
    let mut items = Vec::new();
    let put = |item| {
        items.push(item);
        Ok(())
    };
    chunked::build_index(whole(bytes), options, put).unwrap();
    let rebuilt: Vec<u8> = items.iter().flat_map(chunked::Item::encode).collect();
    for _ in 0..1 + draw.below(3) {
        let (place, lie) = (draw.below(items.len()), draw.below(9));
        if let Some(item) = items.get_mut(place) {
            let by = i64::try_from(lie).unwrap() - 4;
            match draw.below(3) {
                0 => item.offset += by,
                1 => item.file_offset += by * 0x80,
                _ => drop(items.remove(place)),
            }
        }
    }
    let lying = items.iter().flat_map(chunked::Item::encode).collect();
    [rebuilt, lying]
}

/// Looks up records that exist and records that do not, one by one and together, and ranges of them.
pub(super) fn finds_what_the_walk_gives(
    scan: &Scan,
    bytes: &[u8],
    options: &Options,
    draw: &mut Draw,
) {
    let is_sound = scan.spans.iter().all(|span| !span.is_damage());
    let format = format_of(options);
    let mut ids: Vec<_> = EXTREMES
        .iter()
        .map(|extreme| extreme_id(format, options, *extreme))
        .collect();
    let mut first = BTreeMap::new();
    for record in &scan.records {
        let id = id(format, options, record);
        first.entry(id.clone()).or_insert(record);
        ids.extend([neighbour(&id, draw), id]);
    }
    let expected: Vec<_> = ids.iter().map(|id| first.get(id).copied()).collect();
    let strict = options.clone().strict(true);
    for _ in 0..SINGLE.min(ids.len()) {
        let place = draw.below(ids.len());
        let (wanted, expected) = (&ids[place..=place], &expected[place..=place]);
        let hits = get(bytes, options, wanted);
        agree(
            bytes,
            options,
            &hits.unwrap_or_else(|end| panic!("{wanted:?}: {end:?}")),
            expected,
        );
        match get(bytes, &strict, wanted) {
            Ok(hits) => agree(bytes, options, &hits, expected),
            Err(end) => assert!(!is_sound && matches!(end, End::Damage { .. }), "{end:?}"),
        }
    }
    let hits = get(bytes, options, &ids);
    agree(
        bytes,
        options,
        &hits.unwrap_or_else(|end| panic!("all: {end:?}")),
        &expected,
    );
    // No accident makes overlapping messages with matching checksums. Which of them is good depends on where reading
    // begins.
    let is_sealed = *options.format.unwrap() == *sealed::FORMAT;
    if is_sealed && options.keys.iter().any(|key| overlap(bytes, key)) {
        return;
    }
    for _ in 0..2 {
        ranges(scan, bytes, options, draw);
    }
}

/// Checks that hits are the walk's records. A sealed message is a hit if its checksum matches, whatever other entries
/// say. A walk may refuse it because of them, or find it in another place; no accident makes such an index with a
/// matching hash.
fn agree(bytes: &[u8], options: &Options, hits: &[Option<Record>], expected: &[Option<&Record>]) {
    let is_sealed = *options.format.unwrap() == *sealed::FORMAT;
    assert_eq!(hits.len(), expected.len());
    for (hit, expected) in hits.iter().zip(expected) {
        let proven = is_sealed && hit.as_ref().is_some_and(|hit| is_proven(bytes, hit));
        let same = hit.as_ref() == *expected;
        assert!(
            same || proven,
            "{hit:?} was found, and {expected:?} is there"
        );
    }
}

/// Whether the checksum of a sealed message is in the file.
fn is_proven(bytes: &[u8], record: &Record) -> bool {
    let encoded = record.encoded();
    let checksum = encoded.last_chunk::<8>().unwrap();
    bytes.windows(8).any(|bytes| bytes == checksum)
}

fn get(bytes: &[u8], options: &Options, ids: &[RecordId]) -> Result<Vec<Option<Record>>, End> {
    let lookup = match lookup(windowed(bytes), options) {
        Ok(lookup) => lookup,
        Err(error) => return Err(End::of(error)),
    };
    let plain = |hits: Hits| {
        let mut records = Vec::new();
        hits.each(|hit| records.push(hit.map(|(rows, row)| Record::of(rows, row, options))));
        records
    };
    lookup.get(ids).map(plain).map_err(End::of)
}

/// The identifier of a record.
pub(super) fn id(format: &Format, options: &Options, record: &Record) -> RecordId {
    let fields = format.columns(options.dialect).iter().zip(&record.fields);
    let named = |name: &&str| fields.clone().find(|(column, _)| column.name == *name);
    let value = |name: &&str| match named(name) {
        None if *name == "position" => record.position.into(),
        Some((_, Plain::Uuid(uuid))) => Scalar::Uuid(*uuid),
        Some((_, Plain::Int64(number))) => (*number).into(),
        Some((_, Plain::UInt64(number))) => (*number).into(),
        Some((_, Plain::Text(text))) => text.clone().into(),
        other => panic!("no record is found by {other:?}"),
    };
    let values: Vec<_> = format.identifier.iter().map(value).collect();
    RecordId::new(values)
}

/// The first and last numbers of each width, each with the byte that belongs to it.
const EXTREMES: [(i128, u8); 6] = [
    (i64::MIN as i128, 0),
    (-1, 0xff),
    (0, 0),
    (u32::MAX as i128, 0xff),
    (i64::MAX as i128, 0xff),
    (u64::MAX as i128, 0xff),
];

/// An identifier that hardly exists in a file.
fn extreme_id(format: &Format, options: &Options, (number, byte): (i128, u8)) -> RecordId {
    let value = |column: &Column| match column.kind {
        ColumnKind::Uuid => Scalar::Uuid([byte; 16]),
        ColumnKind::Int64 | ColumnKind::UInt64 => Scalar::Integer(number),
        _ => vec![byte].into(),
    };
    let values: Vec<_> = format.identifying(options.dialect).map(value).collect();
    RecordId::new(values)
}

/// An identifier near this one.
fn neighbour(id: &RecordId, draw: &mut Draw) -> RecordId {
    let up = draw.below(2) == 0;
    let mut values = id.values().to_vec();
    let place = draw.below(values.len());
    match &mut values[place] {
        Scalar::Uuid(uuid) => {
            let number = u128::from_be_bytes(*uuid);
            let next = match up {
                true => number.wrapping_add(1),
                false => number.wrapping_sub(1),
            };
            *uuid = next.to_be_bytes();
        }
        Scalar::Integer(number) => *number += if up { 1 } else { -1 },
        Scalar::Text(text) => text.push(0),
        other => panic!("what is near {other:?}?"),
    }
    RecordId::new(values)
}

/// A range has the walk's records within it, read by a walk and by a look-up.
fn ranges(scan: &Scan, bytes: &[u8], options: &Options, draw: &mut Draw) {
    let Some(drawn) = Drawn::of(scan, options, draw) else {
        return;
    };
    let expected: Vec<_> = scan
        .records
        .iter()
        .filter(|record| drawn.is_met(record))
        .collect();
    let walked = Scan::of(bytes, &options.clone().filter(drawn.filter.clone()));
    assert!(
        walked.records.iter().eq(expected.iter().copied()),
        "walked {drawn:?}"
    );
    // A walk may end where no matching record can follow.
    let is_part = |span: &Span| {
        let own = |whole: &Span| (whole.kind, whole.cause) == (span.kind, span.cause);
        let within = |whole: &Span| whole.start <= span.start && span.end <= whole.end;
        scan.spans.iter().any(|whole| own(whole) && within(whole))
    };
    assert!(
        walked.spans.iter().all(is_part),
        "{drawn:?} changes what ranges are: {:?}",
        walked.spans
    );
    let mut ranged = Scan::new();
    let mut walk = lookup(windowed(bytes), options)
        .unwrap()
        .range(&drawn.filter)
        .unwrap();
    ranged.finish(&mut *walk, options);
    assert_eq!(ranged.end, End::Done, "{drawn:?}");
    assert!(ranged.records.iter().eq(expected), "looked up {drawn:?}");
}

/// Whether the table of contents names all blocks that a walk finds, each correctly. If its checksum matches, it proves
/// that there are no others. No accident makes a false one, and look-ups trust it.
pub(super) fn names_its_blocks(bytes: &[u8], options: &Options) -> bool {
    let contents = tenant::Contents::read(windowed(bytes), options).unwrap();
    let is_named = |own: &tenant::Block| {
        let is_own = |block: &&tenant::Block| {
            (block.partition, &block.tenant) == (own.partition, &own.tenant)
        };
        let mut entries = contents.blocks().iter();
        let mut here = entries
            .clone()
            .filter(|block| block.position == own.position);
        entries.any(|block| is_own(&block)) && here.all(|block| is_own(&block))
    };
    !contents.is_proven()
        || tenant::blocks(windowed(bytes), options)
            .unwrap()
            .iter()
            .all(is_named)
}

/// The tenants, and how many messages each has, are those of the walk.
fn contents_are_the_walks(scan: &Scan, bytes: &[u8], options: &Options) {
    let mut blocks = Vec::new();
    for block in tenant::blocks(windowed(bytes), options).unwrap() {
        let messages =
            (0..block.messages).map(|index| (block.partition, block.tenant.clone(), index));
        blocks.extend(messages);
    }
    let walked: Vec<_> = scan
        .records
        .iter()
        .map(
            |record| match id(format_of(options), options, record).values() {
                [
                    Scalar::Integer(partition),
                    Scalar::Text(tenant),
                    Scalar::Integer(index),
                ] => (
                    u32::try_from(*partition).unwrap(),
                    tenant.clone(),
                    u32::try_from(*index).unwrap(),
                ),
                other => panic!("columns moved: {other:?}"),
            },
        )
        .collect();
    assert_eq!(blocks, walked);
}
