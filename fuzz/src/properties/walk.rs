//! For any bytes: no panic, every byte is in the ledger once, every record has a range of its own kind and in order,
//! and everything made of a walk agrees.

use seglake::format::{Format, Options, Order, active};
use seglake::ledger::{Cause, Kind, Span, Totals};
use seglake::verbs::{Ledger, Report, verify};

use super::readings;
use super::scan::{End, Plain, Record, Scan, begin, whole};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    for options in readings(format) {
        let mut walk = begin(whole(bytes), &options);
        let front_end = walk.front_end();
        let mut scan = Scan::new();
        scan.finish(&mut *walk, &options);
        if let End::Limit(_) = scan.end {
            continue;
        }
        assert_eq!(scan.end, End::Done);
        assert_eq!(
            walk.step().unwrap(),
            seglake::format::Step::Done,
            "once done, it stays so"
        );
        let ledger = scan.ledger();
        covers(&ledger, bytes);
        let behind = scan.spans.iter().filter(|span| span.start >= front_end);
        assert!(
            behind.is_sorted_by_key(|span| span.start),
            "{:?}",
            scan.spans
        );
        records_have_ranges(format, &scan.records, &ledger);
        records_ascend(format, &scan.records, &options);
        if *format == active::FORMAT {
            records_are_the_bytes(&scan.records, &ledger, bytes);
        }
        let given: Vec<Span> = Ledger::new(whole(bytes), &options)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(given, ledger, "the ledger is the walk's ranges");
        reports(&scan, &verify(whole(bytes), &options, |_| Ok(())).unwrap());
        without_values(&scan, bytes, &options);
    }
}

/// Ranges are adjacent, and have a cause exactly if they are damage.
fn covers(ledger: &[Span], bytes: &[u8]) {
    let mut at = 0;
    for (place, span) in ledger.iter().enumerate() {
        assert_eq!(span.start, at, "{ledger:?}");
        assert!(span.end > span.start || bytes.is_empty(), "{ledger:?}");
        at = span.end;
        let dangling = span.kind == Kind::Record && span.cause == Some(Cause::DanglingReference);
        let damage = matches!(span.kind, Kind::Corrupt | Kind::TornTail);
        assert_eq!(span.is_damage(), damage || dangling, "{ledger:?}");
        let last = place.checked_sub(1).map(|last| ledger[last]);
        let whole = matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block);
        assert!(
            whole || last.is_none_or(|last| (last.kind, last.cause) != (span.kind, span.cause)),
            "touching ranges of one kind and cause: {ledger:?}"
        );
    }
    assert_eq!(at, bytes.len() as u64, "{ledger:?}");
    let torn = ledger.iter().position(|span| span.kind == Kind::TornTail);
    let found = |span: &Span| matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block);
    assert!(
        torn.is_none_or(|torn| !ledger[torn..].iter().any(found)),
        "a torn tail with something behind it: {ledger:?}"
    );
}

/// Each record begins in a range that is not damage. If ranges are records, there is one for each.
fn records_have_ranges(format: &Format, records: &[Record], ledger: &[Span]) {
    let found: Vec<_> = ledger
        .iter()
        .filter(|span| matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block))
        .collect();
    for record in records {
        let place = found.partition_point(|span| span.end <= record.position);
        let span = found.get(place).copied();
        assert!(
            span.is_some_and(|span| span.start <= record.position && span.cause == record.cause),
            "{record:?} in {span:?}"
        );
    }
    if found.iter().any(|span| span.kind == Kind::Record) {
        let positions: Vec<_> = records.iter().map(|record| record.position).collect();
        let starts: Vec<_> = found.iter().map(|span| span.start).collect();
        assert_eq!(positions, starts, "{} ranges are its records", format.name);
    }
}

/// Records ascend by their identifier, if the format states an order for its last column.
fn records_ascend(format: &Format, records: &[Record], options: &Options) {
    let columns = format.columns(options.dialect);
    let place = |name: &&str| columns.iter().position(|column| column.name == *name);
    let names = format.identifier.iter().filter(|name| **name != "position");
    let places: Vec<_> = names.map(|name| place(name).unwrap()).collect();
    let is_ordered = places
        .last()
        .is_some_and(|last| columns[*last].order != Order::Any);
    let id = |record: &Record| -> Vec<Plain> {
        places
            .iter()
            .map(|place| record.fields[*place].clone())
            .collect()
    };
    let ascends = |pair: &[Record]| {
        (!is_ordered || id(&pair[0]) < id(&pair[1])) && pair[0].position <= pair[1].position
    };
    assert!(records.windows(2).all(ascends), "{records:?}");
    for record in records {
        if let Plain::Uuid(uuid) = &record.fields[0] {
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (6, 2), "{record:?}");
        }
    }
}

/// An active record's range is that record, encoded with its checksum.
fn records_are_the_bytes(records: &[Record], ledger: &[Span], bytes: &[u8]) {
    let ranges = ledger.iter().filter(|span| span.kind == Kind::Record);
    for (record, span) in records.iter().zip(ranges) {
        let start = usize::try_from(span.start).unwrap();
        let end = usize::try_from(span.end).unwrap();
        assert_eq!(record.encoded(), bytes[start..end], "{record:?}");
    }
}

/// A report sums up the walk.
fn reports(scan: &Scan, report: &Report) {
    let ledger = scan.ledger();
    let mut totals = Totals::default();
    ledger.iter().for_each(|span| totals.add(span));
    let damage: Vec<_> = ledger
        .iter()
        .filter(|span| span.is_damage())
        .copied()
        .collect();
    assert_eq!(report.summary.records, scan.records.len() as u64);
    assert_eq!(report.summary.bytes, report.summary.size);
    assert_eq!(report.is_sound(), damage.is_empty());
    assert_eq!(report.summary.damage, damage);
    assert_eq!(report.summary.totals, totals);
}

/// Records are the same whether or not their values are read.
fn without_values(scan: &Scan, bytes: &[u8], options: &Options) {
    let options = options.clone().values(false);
    let other = Scan::of(bytes, &options);
    assert_eq!(other.spans, scan.spans);
    let positions = |scan: &Scan| {
        let places = scan
            .records
            .iter()
            .map(|record| (record.position, record.cause));
        places.collect::<Vec<_>>()
    };
    assert_eq!(positions(&other), positions(scan));
}
