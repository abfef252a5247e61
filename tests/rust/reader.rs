//! The reader of the front page gives what the walk, the look-up, the report and the ledger give.

use std::fs;
use std::sync::Arc;

use crate::common::{lenient, scan, segment, source, uuid};
use crate::vectors::cases;
use seglake::checksum::Key;
use seglake::format::{FORMATS, Filter, Rows, Start, Step, active, open};
use seglake::source::BytesSource;
use seglake::verbs::{Ledger, verify};
use seglake::{Error, OnDamage, Options, Reader, Record, RecordId, Result, Value};

/// A copy of all fields of a record.
fn copied(record: &Record) -> String {
    let columns = record.columns().iter();
    let fields: Vec<_> = columns.map(|own| record.field(own.name).unwrap()).collect();
    let place = (record.position(), record.timestamp(), record.cause());
    format!("{place:?} {:?} {fields:?}", record.value())
}

/// The same of a row that lies in a window.
fn borrowed(rows: &dyn Rows, row: usize, columns: usize) -> String {
    let fields: Vec<_> = (0..columns).map(|column| rows.field(row, column)).collect();
    let place = (rows.position(row), rows.timestamp(row), rows.cause(row));
    format!("{place:?} {:?} {fields:?}", rows.value(row))
}

#[test]
fn records_report_and_ledger_are_those_of_the_rooms_below() {
    for case in cases() {
        let bytes = source(&case.bytes);
        let reader = Reader::new(bytes.clone(), case.options.clone()).unwrap();
        let mut walk = open(bytes.clone(), &case.options, Start::Beginning).unwrap();
        let mut expected = Vec::new();
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            let columns = reader.columns().len();
            expected.extend((0..rows.len()).map(|row| borrowed(&*rows, row, columns)));
        }
        let mut records = reader.records();
        let found: Result<Vec<_>> = records.by_ref().map(|one| Ok(copied(&one?))).collect();
        assert_eq!(found.unwrap(), expected, "{}", case.name);

        let report = verify(bytes.clone(), &case.options, |_| Ok(())).unwrap();
        for found in [records.report(), &reader.verify().unwrap()] {
            assert_eq!(found.summary.totals, report.summary.totals, "{}", case.name);
            assert_eq!(found.summary.damage, report.summary.damage, "{}", case.name);
            assert_eq!(
                found.summary.checked, report.summary.checked,
                "{}",
                case.name
            );
            assert_eq!(
                found.summary.wrong_key(),
                report.summary.wrong_key(),
                "{}",
                case.name
            );
        }
        let ledger: Result<Vec<_>> = reader.ledger().unwrap().collect();
        let expected: Result<Vec<_>> = Ledger::new(bytes, &case.options).unwrap().collect();
        assert_eq!(ledger.unwrap(), expected.unwrap(), "{}", case.name);
    }
}

#[test]
fn reading_strictly_ends_with_the_first_damage() {
    let mut bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let third = scan(source(&bytes), &lenient()).unwrap().0[2].position;
    bytes[usize::try_from(third).unwrap() + 20] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.active");
    fs::write(&path, &bytes).unwrap();

    let reader = seglake::open(&path).unwrap();
    assert_eq!(reader.format(), &active::FORMAT);
    let mut records = reader.records();
    assert!(records.by_ref().take(2).all(|record| record.is_ok()));
    match records.next() {
        Some(Err(Error::Damage(damage))) => assert_eq!(damage.offset, third),
        other => panic!("no damage: {other:?}"),
    }
    assert!(records.next().is_none());
    assert_eq!(reader.on_damage(OnDamage::Skip).records().count(), 2);
    assert_eq!(seglake::verify(&path).unwrap().summary.records, 2);
}

#[test]
fn an_error_of_beginning_to_read_is_the_first_item() {
    let wanted = Filter::default().among("partition", vec![1]);
    let options = Options::default().filter(wanted.clone());
    let bytes = Arc::new(BytesSource::new(segment(&Key::DEFAULT, &[("a", "1")])));
    let reader = Reader::new(bytes.clone(), options).unwrap();
    let plain = Reader::new(bytes, Options::default()).unwrap();
    for mut records in [reader.records(), plain.range(&wanted)] {
        assert!(matches!(records.next(), Some(Err(Error::Usage(_)))));
        assert!(records.next().is_none());
    }
}

#[test]
fn records_are_looked_up_in_the_order_asked_for() {
    let bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    let reader = Reader::new(source(&bytes), Options::default()).unwrap();
    let records: Result<Vec<_>> = reader.records().collect();
    let ids: Vec<_> = records.unwrap().iter().map(id).collect();
    let asked = [
        ids[1].clone(),
        RecordId::from(uuid(1 << 40)),
        ids[0].clone(),
    ];
    let found = reader.get_many(&asked).unwrap();
    let values: Vec<_> = found.iter().flatten().map(Record::value).collect();
    assert_eq!(values, [b"2", b"1"]);
    assert!(found[1].is_none());
    assert_eq!(reader.get(&asked[2]).unwrap().unwrap().value(), b"1");
    let other = reader.get(&RecordId::from(0));
    assert!(matches!(other, Err(Error::Usage(_))));
}

fn id(record: &Record) -> RecordId {
    match record.field("uuid") {
        Some(Value::Uuid(uuid)) => RecordId::from(uuid),
        other => panic!("not a UUID: {other:?}"),
    }
}

#[test]
fn a_file_of_any_format_is_created_empty_and_sound() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join("new").with_extension(format.extension);
        seglake::create(format, &path).unwrap().close().unwrap();
        assert!(seglake::create(format, &path).is_err());
        let report = seglake::verify(&path).unwrap();
        assert!(report.is_sound() && *report.format == ***format);
        assert_eq!(seglake::open(&path).unwrap().records().count(), 0);
    }
}

/// Whoever shows an error with its sources, as `{:#}` of anyhow does, shows each of them once.
#[test]
fn the_sources_of_an_error_are_not_in_its_message() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Reader::open(folder.path().join("missing"), Options::default());
    let missing = missing.map(drop).unwrap_err();
    let partial = Error::Partial {
        path: folder.path().to_path_buf(),
        written: Vec::new(),
        source: Box::new(Error::Usage("the others".to_owned())),
    };
    for error in [missing, partial] {
        let message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            assert!(!message.contains(&inner.to_string()), "{message}");
            source = inner.source();
        }
    }
}
