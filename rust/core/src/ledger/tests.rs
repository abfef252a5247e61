//! Tests of tilings and totals together.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SORTS: [(Kind, Option<Cause>); 7] = [
    (Kind::Record, None),
    (Kind::Record, Some(Cause::ChecksumMismatch)),
    (Kind::Chunk, None),
    (Kind::Corrupt, Some(Cause::ChecksumMismatch)),
    (Kind::Corrupt, Some(Cause::SearchLimit)),
    (Kind::TornTail, Some(Cause::SearchLimit)),
    (Kind::Unused, None),
];

/// Adjacent ranges of so many bytes; some are empty.
fn pieces() -> impl Strategy<Value = Vec<(u64, (Kind, Option<Cause>))>> {
    prop::collection::vec((1..5_u64, prop::sample::select(&SORTS[..])), 0..30)
}

fn span(start: u64, end: u64, (kind, cause): (Kind, Option<Cause>)) -> Span {
    Span {
        start,
        end,
        kind,
        cause,
    }
}

/// The ledger's ranges for these pieces, from `start` on.
fn laid(start: u64, pieces: &[(u64, (Kind, Option<Cause>))]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut at = start;
    for &(len, sort) in pieces {
        let joins = !matches!(sort.0, Kind::Record | Kind::Chunk | Kind::Block);
        match spans.last_mut() {
            Some(last) if joins && (last.kind, last.cause) == sort => last.end += len,
            _ => spans.push(span(at, at + len, sort)),
        }
        at += len;
    }
    spans
}

proptest! {
    #[test]
    fn ranges_cover_and_join(start in 0..100_u64, pieces in pieces(), pauses: u32) {
        let mut tiling = Tiling::resume(start, None);
        let (mut spans, mut at) = (Vec::new(), start);
        for (place, &(len, (kind, cause))) in pieces.iter().enumerate() {
            at += len;
            tiling.cover(at, kind, cause, &mut spans);
            // Covered bytes are not covered again.
            tiling.cover(at, Kind::Header, None, &mut spans);
            tiling.cover(at - 1, Kind::Header, None, &mut spans);
            prop_assert_eq!(tiling.pending().is_some(), kind.joins());
            if pauses >> (place % 32) & 1 == 1 {
                tiling = Tiling::resume(at, tiling.pending());
            }
        }
        tiling.finish(&mut spans);
        prop_assert_eq!(tiling.pending(), None);
        prop_assert_eq!(spans, laid(start, &pieces));
    }

    #[test]
    fn totals_are_sums(pieces in pieces(), more in pieces()) {
        let (spans, others) = (laid(0, &pieces), laid(7, &more));
        let sums = |spans: &[Span]| {
            let mut sums = BTreeMap::new();
            for span in spans {
                let sum: &mut (u64, u64) = sums.entry((span.kind, span.cause)).or_default();
                *sum = (sum.0 + span.end - span.start, sum.1 + 1);
            }
            let rows = sums.into_iter();
            let rows = rows.map(|((kind, cause), (bytes, ranges))| Total { kind, cause, bytes, ranges });
            rows.collect::<Vec<_>>()
        };
        let mut totals = Totals::default();
        let is_damaged = totals.add_all(&spans);
        prop_assert_eq!(is_damaged, spans.iter().any(|span| span.cause.is_some()));
        prop_assert_eq!(totals.is_sound(), !is_damaged);
        prop_assert_eq!(totals.rows(), sums(&spans));
        prop_assert_eq!(totals.bytes(), pieces.iter().map(|(len, _)| len).sum::<u64>());
        let mut single = Totals::default();
        spans.iter().for_each(|span| single.add(span));
        prop_assert_eq!(&single, &totals);
        let mut other = Totals::default();
        other.add_all(&others);
        totals.merge(&other);
        prop_assert_eq!(totals.rows(), sums(&[spans, others].concat()));
    }
}

#[test]
fn records_are_ranges_of_their_own() {
    let torn = (Kind::TornTail, Some(Cause::TruncatedHeader));
    let mut tiling = Tiling::default();
    let mut spans = Vec::new();
    tiling.cover(3, torn.0, torn.1, &mut spans);
    assert_eq!(tiling.cover_run(9, 2), None, "a range is pending");
    tiling.cover_records([5, 9].into_iter(), &mut spans);
    let records = [(3, 5), (5, 9)].map(|(start, end)| span(start, end, SORTS[0]));
    assert_eq!(spans, [span(0, 3, torn), records[0], records[1]]);
    let run = tiling.cover_run(20, 4);
    let expected = RecordRun {
        start: 9,
        end: 20,
        records: 4,
    };
    assert_eq!(run, Some(expected));
    assert_eq!(expected.span(), span(9, 20, SORTS[0]));
    tiling.cover(21, Kind::Record, None, &mut spans);
    assert_eq!(spans.last(), Some(&span(20, 21, SORTS[0])));
    let mut totals = Totals::default();
    totals.add_records(&expected);
    totals.add_all(&spans);
    let row = |kind, cause, bytes, ranges| Total {
        kind,
        cause,
        bytes,
        ranges,
    };
    let rows = [row(Kind::Record, None, 18, 7), row(torn.0, torn.1, 3, 1)];
    assert_eq!(totals.rows(), rows);
}

#[test]
fn a_range_that_was_cut_in_two_is_counted_once() {
    let mut totals = Totals::default();
    let cut = (Kind::Header, None);
    let spans = [span(0, 5, cut), span(5, 9, SORTS[3]), span(9, 12, cut)];
    totals.add_all(&spans);
    let before = totals.clone();
    totals.join(&span(3, 7, SORTS[4]));
    assert_eq!(totals, before, "there is none like it");
    totals.join(&span(3, 7, cut));
    let rows = totals.rows().iter();
    let rows: Vec<_> = rows.map(|row| (row.kind, row.bytes, row.ranges)).collect();
    assert_eq!(rows, [(Kind::Header, 8, 1), (Kind::Corrupt, 4, 1)]);
}

#[test]
fn a_range_without_bytes_has_none() {
    assert_eq!(span(5, 9, SORTS[0]).len(), 4);
    assert_eq!(span(5, 5, SORTS[0]).len(), 0);
    assert!(!span(5, 9, SORTS[0]).is_damage());
    assert!(span(5, 9, SORTS[1]).is_damage());
}

#[test]
fn joining_takes_a_range_from_its_own_kind_and_cause() {
    let sorts = [
        (Kind::Header, None),
        (Kind::Header, Some(Cause::BadMagic)),
        (Kind::Record, None),
        (Kind::Corrupt, Some(Cause::BadMagic)),
    ];
    let spans = sorts.map(|sort| span(0, 8, sort));
    for joined in &spans {
        let mut totals = Totals::default();
        totals.add_all(&spans);
        totals.join(joined);
        for total in totals.rows() {
            let is_joined = (total.kind, total.cause) == (joined.kind, joined.cause);
            assert_eq!(total.ranges, u64::from(!is_joined), "{joined:?}: {total:?}");
        }
    }
}
