//! Chunked segments by message offset: with an index, without one, and with one that is stale, cut off, foreign or lying.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::common::chunked::{
    Record, content, finish, lenient, noise, push_chunk, push_records, scan, segment, stored_frame,
    value,
};
use crate::common::counting::Counting;
use crate::common::source;
use proptest::prelude::*;
use seglake::Error;
use seglake::format::chunked::{ITEM_BYTES, Index, Item, build_index};
use seglake::format::{
    FORMATS, Filter, IfExists, IndexSource, Lookup, Options, RecordId, detect, lookup,
};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::{BytesSource, Source};
use seglake::verbs;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");

fn rebuilt(bytes: &[u8]) -> Vec<u8> {
    let mut index = Vec::new();
    build_index(source(bytes), &lenient(), |item| {
        index.extend_from_slice(&item.encode());
        Ok(())
    })
    .unwrap();
    index
}

#[test]
fn golden_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(Path::new(VECTORS).join("chunked")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let case: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let expected = &case["index"];
        if expected.is_null() {
            continue;
        }
        seen += 1;
        let log = fs::read(path.with_extension("bin")).unwrap();
        let index = BytesSource::new(fs::read(path.with_extension("index")).unwrap());
        for window_bytes in [1, 33, 1 << 20] {
            let options = lenient().window_bytes(window_bytes);
            let read = Index::read(&*source(&log), &index, &options).unwrap();
            let spans = read.spans.iter();
            let ledger: serde_json::Value = spans
                .map(|span| serde_json::json!([span.start, span.end, span.kind, span.cause]))
                .collect();
            let items: serde_json::Value = read
                .items
                .iter()
                .map(|item| serde_json::json!({"offset": item.offset, "file_offset": item.file_offset}))
                .collect();
            assert_eq!(expected["size"], read.size, "{path:?}");
            assert_eq!(expected["ledger"], ledger, "{path:?}");
            assert_eq!(expected["items"], items, "{path:?}");
        }
        let destination = folder.path().join(format!("built {seen}"));
        let indexed = verbs::index(
            source(&log),
            &lenient(),
            Some(&destination),
            IfExists::Overwrite,
            |_| Ok(()),
        )
        .unwrap();
        let built = fs::read(&destination).unwrap();
        assert_eq!(expected["rebuilt"], hex::encode(&built), "{path:?}");
        assert_eq!(
            (indexed.size, indexed.items * 20),
            (built.len() as u64, built.len() as u64)
        );
    }
    assert!(seen >= 12, "{seen} golden indexes");
}

#[test]
fn an_index_in_which_nothing_verifies_is_corrupt() {
    let log = segment(2, 3, 10);
    let mut index = rebuilt(&log);
    for item in index.chunks_mut(ITEM_BYTES) {
        item[3] ^= 1;
    }
    index.push(7);
    let read = Index::read(&*source(&log), &BytesSource::new(index), &lenient()).unwrap();
    let span = |start, end, kind, cause| Span::new(start, end, kind, Some(cause));
    assert_eq!(
        read.spans,
        [
            span(0, 40, Kind::Corrupt, Cause::ChecksumMismatch),
            span(40, 41, Kind::TornTail, Cause::TruncatedHeader)
        ]
    );
}

#[test]
fn the_index_verb_replaces_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.chunks");
    fs::write(&path, segment(3, 3, 10)).unwrap();
    let open = || {
        let file = seglake::source::open_regular(&path).unwrap();
        Arc::new(seglake::source::FileSource::new(file, &path).unwrap())
    };
    let index = path.with_extension("index");
    let indexed = verbs::index(open(), &lenient(), None, IfExists::Error, |_| Ok(())).unwrap();
    assert_eq!((indexed.items, indexed.report.summary.records), (3, 9));
    assert_eq!(fs::metadata(&index).unwrap().len(), 60);
    assert!(matches!(
        verbs::index(open(), &lenient(), None, IfExists::Error, |_| Ok(())),
        Err(Error::Io { .. })
    ));
    fs::write(&index, b"stale").unwrap();
    let mut told = Vec::new();
    verbs::index(open(), &lenient(), None, IfExists::Overwrite, |done| {
        told.push(done);
        Ok(())
    })
    .unwrap();
    assert!(
        told.is_sorted() && told.last() == Some(&open().len()),
        "{told:?}"
    );
    assert_eq!(fs::metadata(&index).unwrap().len(), 60);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left behind"
    );
    let unnamed = verbs::index(source(b""), &lenient(), None, IfExists::Error, |_| Ok(()));
    assert!(matches!(unnamed, Err(Error::Usage(_))));
}

/// Of a log that was cut off, the index is the only list of what is missing.
#[test]
fn an_index_that_knows_more_than_the_segment_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.chunks");
    let index = path.with_extension("index");
    let open = || {
        let file = seglake::source::open_regular(&path).unwrap();
        Arc::new(seglake::source::FileSource::new(file, &path).unwrap())
    };
    let whole = segment(5, 3, 10);
    fs::write(&path, &whole).unwrap();
    verbs::index(open(), &lenient(), None, IfExists::Error, |_| Ok(())).unwrap();
    let items = fs::read(&index).unwrap();
    let last = Index::read(&*open(), &*source(&items), &lenient()).unwrap();
    assert_eq!(last.beyond, None);
    let last = *last.items.last().unwrap();
    // Cut off, or zeros from there on.
    let cut = whole.len() - 300;
    let zeroed = [&whole[..cut], &[0; 300]].concat();
    for bytes in [&whole[..cut], &zeroed] {
        fs::write(&path, bytes).unwrap();
        let read = Index::read(&*open(), &*source(&items), &lenient()).unwrap();
        assert_eq!(read.beyond, Some(last));
        for overwrite in [false, true] {
            let refused = verbs::index(
                open(),
                &lenient(),
                None,
                IfExists::overwrite_if(overwrite),
                |_| Ok(()),
            )
            .unwrap_err();
            let expected = format!("a chunk at {}", last.file_offset);
            assert!(refused.to_string().contains(&expected), "{refused}");
            assert_eq!(fs::read(&index).unwrap(), items);
        }
    }
    // Elsewhere it replaces nothing.
    let other = folder.path().join("other");
    verbs::index(
        open(),
        &lenient(),
        Some(&other),
        IfExists::Error,
        |_| Ok(()),
    )
    .unwrap();
    assert!(fs::read(&other).unwrap().len() < items.len());
    let same = verbs::index(open(), &lenient(), Some(&path), IfExists::Overwrite, |_| {
        Ok(())
    });
    assert!(matches!(same, Err(Error::Usage(_))));
}

fn with_index(index: &[u8], strict: bool) -> Options {
    lenient()
        .index(IndexSource::Source(source(index)))
        .strict(strict)
}

/// A message offset and its value.
type Own = (i64, Vec<u8>);

/// Those that are found.
fn get(lookup: &dyn Lookup, offsets: &[i64]) -> seglake::Result<Vec<Option<Own>>> {
    let ids: Vec<_> = offsets
        .iter()
        .map(|offset| RecordId::from(*offset))
        .collect();
    let mut found = Vec::new();
    lookup.get(&ids)?.each(|record| {
        found.push(record.map(|(rows, row)| {
            let seglake::format::Value::Int64(offset) = rows.field(row, 0) else {
                panic!()
            };
            (offset, rows.value(row).to_vec())
        }));
    });
    Ok(found)
}

fn expected(records: &[Record], offset: i64) -> Option<Own> {
    let record = records.iter().find(|record| record.offset == offset);
    record.map(|record| (offset, record.value.clone()))
}

proptest! {
    /// Whatever the index says, and whatever is damaged, the answer is that of a scan.
    #[test]
    fn lookups_agree_with_a_scan(
        gaps in prop::collection::vec(0i64..4, 1..12),
        flips in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4), 0..4),
        from in 0_u64..60, len in 0_u64..30,
        unused in 0usize..300,
    ) {
        let (mut log, mut next) = (Vec::new(), 0);
        for gap in gaps {
            next += gap;
            let records: Vec<_> = (next..next + 3).map(|offset| (offset, value(offset, 40))).collect();
            push_records(&mut log, next, &records);
            next += 3;
        }
        let mut index = rebuilt(&log);
        log.resize(log.len() + unused, 0);
        for flip in flips {
            let at = flip.index(log.len());
            log[at] ^= 4;
        }
        for (place, how) in spoils {
            if index.len() < ITEM_BYTES { break }
            let at = place.index(index.len() / ITEM_BYTES) * ITEM_BYTES;
            match how {
                0 => index.truncate(at + 7),
                1 => index[at + 12] ^= 1,
                2 => { index.drain(at..(at + ITEM_BYTES).min(index.len())); }
                _ => if let Some(item) = index[at..].first_chunk().and_then(Item::decode) {
                    let lie = Item { offset: item.offset, file_offset: item.file_offset + 0x80 };
                    index[at..at + ITEM_BYTES].copy_from_slice(&lie.encode());
                }
            }
        }
        let (records, _) = scan(source(&log), &lenient()).unwrap();
        let offsets: Vec<_> = (-1..next + 3).rev().chain([2, 2, i64::MAX, i64::MIN]).collect();
        let all: Vec<_> = offsets.iter().map(|offset| expected(&records, *offset)).collect();
        for options in [lenient(), with_index(&index, false)] {
            let lookup = lookup(source(&log), &options).unwrap();
            prop_assert_eq!(&get(&*lookup, &offsets).unwrap(), &all);
            for (offset, found) in offsets.iter().zip(&all) {
                prop_assert_eq!(&get(&*lookup, &[*offset]).unwrap()[0], found);
            }
            let wanted = Filter::default().at_least("offset", from).below("offset", from + len);
            let (ranged, _) = finish(lookup.range(&wanted).unwrap()).unwrap();
            let within = records.iter().filter(|record| (from..from + len).contains(&record.offset.cast_unsigned()));
            prop_assert!(ranged.iter().eq(within));
        }
    }
}

#[test]
fn only_the_chunks_needed_are_read() {
    let (chunks, value_len) = (1000, 500);
    let log = segment(chunks, 10, value_len);
    let (index, chunk_bytes) = (rebuilt(&log), log.len() as u64 / 1000);
    let counting = Counting::new(log);
    let indexed = lookup(counting.clone(), &with_index(&index, true)).unwrap();
    let small = 8 * 21;
    let window = Options::default().window_bytes as u64;
    assert!(window > chunk_bytes);
    for offset in [0, 5, 4711, 9999] {
        let options = with_index(&index, true).window_bytes(1);
        let indexed = lookup(counting.clone(), &options).unwrap();
        assert_eq!(
            get(&*indexed, &[offset]).unwrap()[0],
            Some((offset, value(offset, value_len)))
        );
        let read = counting.take().0;
        assert!(
            read <= chunk_bytes + 0x80 + small,
            "{read} bytes read for message offset {offset}"
        );
    }
    // A miss reads headers alone. If nothing follows, it reads none.
    assert_eq!(
        get(&*indexed, &[10_000, i64::MAX, -1]).unwrap(),
        [None, None, None]
    );
    assert!(counting.take().0 <= small);
    // Without an index all headers in front are read, once.
    let options = lenient().window_bytes(1);
    let hopping = lookup(counting.clone(), &options).unwrap();
    assert!(get(&*hopping, &[9999]).unwrap()[0].is_some());
    let read = counting.take().0;
    assert!(
        (1000 * 21..=1001 * 21 + chunk_bytes + 0x80 + small).contains(&read),
        "{read}"
    );
    assert!(get(&*hopping, &[4711]).unwrap()[0].is_some());
    assert!(counting.take().0 <= chunk_bytes + 0x80 + small);
    // Several records of one chunk cost that chunk once.
    let options = with_index(&index, true).window_bytes(1);
    let indexed = lookup(counting.clone(), &options).unwrap();
    let found = get(&*indexed, &[5003, 5001, 5003, 5009]).unwrap();
    assert!(found.iter().all(Option::is_some));
    assert!(counting.take().0 <= chunk_bytes + 0x80 + small);
    // A range reads the chunks in it and the next header.
    let wanted = Filter::default()
        .at_least("offset", 2995)
        .below("offset", 3005);
    let (records, _) = finish(indexed.range(&wanted).unwrap()).unwrap();
    assert_eq!(records.len(), 10);
    let read = counting.take().0;
    assert!(read <= 2 * (chunk_bytes + 0x100) + small, "{read}");
    // Times alone do not narrow the range. Message offsets beside them do.
    let wanted = wanted.at_least("timestamp", 30_000);
    let (records, _) = finish(indexed.range(&wanted).unwrap()).unwrap();
    assert_eq!(records.len(), 5);
    assert!(counting.take().0 <= 2 * (chunk_bytes + 0x100) + small);
}

#[test]
fn an_index_that_lies_is_found_out() {
    let mut log = segment(6, 4, 50);
    let index = rebuilt(&log);
    // A body that contains a segment of its own, aligned and uncompressed, and items that point into it.
    let inner = {
        let mut inner = Vec::new();
        push_records(
            &mut inner,
            8,
            &[
                (0, b"forged"),
                (0, b"forged"),
                (0, b"forged"),
                (0, b"forged"),
            ],
        );
        inner
    };
    let at = log.len();
    let forged_at = (0..0x80)
        .find_map(|fill| {
            let body = [noise(3, 200 + fill), inner.clone()].concat();
            let payload = stored_frame(&content(&[(0, body)]));
            let place = payload
                .windows(21)
                .position(|bytes| bytes == &inner[..21])?
                + 21;
            if place % 0x80 != 0 {
                return None;
            }
            push_chunk(&mut log, 24, 1, &payload);
            Some(at + place)
        })
        .unwrap();
    let lie = Item {
        offset: 8,
        file_offset: i64::try_from(forged_at).unwrap(),
    };
    for place in 0..6 {
        let mut index = index.clone();
        index[place * ITEM_BYTES..][..ITEM_BYTES].copy_from_slice(&lie.encode());
        let lookup = lookup(source(&log), &with_index(&index, true)).unwrap();
        for offset in 0..24 {
            assert_eq!(
                get(&*lookup, &[offset]).unwrap()[0],
                Some((offset, value(offset, 50))),
                "{place}"
            );
        }
    }
    // Another segment's index, an empty one, and one that cannot be read.
    struct Broken;
    impl Source for Broken {
        fn len(&self) -> u64 {
            1000
        }
        fn path(&self) -> Option<&Path> {
            None
        }
        fn read_exact_at(&self, _: u64, _: &mut [u8]) -> seglake::Result<()> {
            Err(Error::io(
                None,
                "cannot read".to_owned(),
                std::io::Error::other("broken"),
            ))
        }
    }
    let foreign = rebuilt(&segment(9, 3, 70));
    let sources: [Arc<dyn Source>; 3] = [source(&foreign), source(&[]), Arc::new(Broken)];
    for index in sources {
        let options = lenient().index(IndexSource::Source(index)).strict(true);
        let lookup = lookup(source(&log), &options).unwrap();
        assert_eq!(get(&*lookup, &[9]).unwrap()[0], Some((9, value(9, 50))));
        assert_eq!(get(&*lookup, &[25]).unwrap()[0], None);
    }
}

#[test]
fn damage_where_a_record_might_have_stood_is_an_error_when_strict() {
    let mut log = segment(6, 4, 50);
    let index = rebuilt(&log);
    let (_, ledger) = scan(source(&log), &lenient()).unwrap();
    let third = ledger
        .iter()
        .filter(|span| span.kind == Kind::Chunk)
        .nth(3)
        .unwrap();
    let at = usize::try_from(third.start).unwrap();
    for (place, cause) in [
        (at + 40, Cause::PayloadInvalid),
        (at + 5, Cause::HeaderChecksumMismatch),
    ] {
        log[place] ^= 1;
        let strict = lookup(source(&log), &with_index(&index, true)).unwrap();
        let Err(Error::Damage(damage)) = get(&*strict, &[13]) else {
            panic!("{cause}")
        };
        assert_eq!((damage.offset, damage.cause), (third.start, cause));
        assert_eq!(get(&*strict, &[3]).unwrap()[0], Some((3, value(3, 50))));
        assert_eq!(
            get(&*strict, &[22]).unwrap()[0],
            Some((22, value(22, 50))),
            "the index leads past it"
        );
        let lenient = lookup(source(&log), &with_index(&index, false)).unwrap();
        assert_eq!(
            get(&*lenient, &[13, 17]).unwrap(),
            [None, Some((17, value(17, 50)))]
        );
        log[place] ^= 1;
    }
}

#[test]
fn an_index_beside_the_segment_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.chunks");
    fs::write(&path, segment(6, 4, 50)).unwrap();
    fs::write(path.with_extension("index"), b"not an index").unwrap();
    let file = seglake::source::open_regular(&path).unwrap();
    let source = Arc::new(seglake::source::FileSource::new(file, &path).unwrap());
    let options = lenient().index(IndexSource::Beside);
    for _ in 0..2 {
        let lookup = lookup(source.clone(), &options).unwrap();
        assert_eq!(get(&*lookup, &[21]).unwrap()[0], Some((21, value(21, 50))));
        verbs::index(source.clone(), &options, None, IfExists::Overwrite, |_| {
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn identifiers_of_other_columns_are_refused() {
    let lookup = lookup(source(&segment(1, 3, 10)), &lenient()).unwrap();
    for id in [
        RecordId::from([0; 16]),
        RecordId::from("1"),
        RecordId::new([]),
        RecordId::new([1.into(), 1.into()]),
    ] {
        assert!(matches!(lookup.get(&[id]), Err(Error::Usage(_))));
    }
    let partitions = Filter::default().among("partition", vec![1]);
    assert!(matches!(lookup.range(&partitions), Err(Error::Usage(_))));
    assert_eq!(get(&*lookup, &[]).unwrap().len(), 0);
}

#[test]
fn segments_are_recognised_and_others_are_not_claimed() {
    let detected = |bytes: &[u8]| detect(&*source(bytes), &Options::default()).unwrap();
    let log = segment(3, 3, 50);
    let found = detected(&log);
    assert_eq!(
        (found.format.map(|format| format.name), found.certain),
        (Some("chunked"), true)
    );
    for damaged in [1, 20] {
        let mut log = log.clone();
        log[damaged] ^= 1;
        let found = detected(&log);
        assert_eq!(
            (found.format.map(|format| format.name), found.certain),
            (Some("chunked"), false)
        );
    }
    let mut seen = 0;
    for other in ["active", "sealed", "tenant", "oplog"] {
        for entry in fs::read_dir(Path::new(VECTORS).join(other)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "bin") {
                seen += 1;
                let found = detected(&fs::read(&path).unwrap());
                let claimed = found.format.is_some_and(|format| format.name == "chunked");
                assert!(!claimed, "{path:?}: {}", found.reason);
            }
        }
    }
    assert!(seen > 160 && FORMATS.iter().any(|format| format.name == "chunked"));
}

/// The greatest message offset, and times before all that a UUID can have.
#[test]
fn filters_reach_the_ends_of_offsets_and_times() {
    let mut log = Vec::new();
    push_records(
        &mut log,
        5,
        &[(i64::MIN, &b"old"[..]), (-20_000_000_000_000_000, b"1336")],
    );
    push_records(
        &mut log,
        i64::MAX - 1,
        &[(0, &b"last but one"[..]), (1, b"last")],
    );
    let (all, _) = scan(source(&log), &lenient()).unwrap();
    assert_eq!(all.len(), 4);
    let since = |offset: u64| offset..u64::MAX;
    let last = i64::MAX.cast_unsigned();
    let offsets = |offsets: Range<u64>| {
        Filter::default()
            .at_least("offset", offsets.start)
            .below("offset", offsets.end)
    };
    let until = |micros| Filter::default().below("timestamp", micros);
    let cases = [
        (offsets(since(0)), 0..4),
        (offsets(since(6)), 1..4),
        (offsets(since(last)), 3..4),
        (offsets(0..last), 0..3),
        (offsets(0..last + 1), 0..4),
        (offsets(since(last + 1)), 0..0),
        (until(i64::MIN), 0..0),
        (until(i64::MIN + 1), 0..1),
        (until(-15_000_000_000_000_000), 0..2),
        (until(i64::MAX), 0..4),
    ];
    for (wanted, expected) in cases {
        for prune in [false, true] {
            let options = lenient().filter(wanted.clone()).prune(prune);
            let (found, _) = scan(source(&log), &options).unwrap();
            assert_eq!(found, all[expected.clone()], "{wanted:?}");
        }
    }
}
