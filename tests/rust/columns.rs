//! Columns filled with many rows at once equal those filled row by row, and batches of them equal what was read.

use std::ops::Range;
use std::sync::Arc;

use crate::common::{self, source, uuid};
use crate::messages;
use crate::vectors::cases;
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use proptest::collection::vec;
use proptest::prelude::*;
use seglake::checksum::Key;
use seglake::columns::{Batches, ColumnBuffer, Limits, Selection, UuidType};
use seglake::format::{
    Column, ColumnKind, Dialect, FORMATS, Filter, Options, Room, Rows, Start, Step, active, lookup,
    open,
};
use seglake::source::Source;
use seglake::store::{LogOptions, LogReader, SegmentLog};
use seglake::text::escape;
use seglake::{Error, Value};

const UUID_TYPES: [UuidType; 3] = [UuidType::Fixed, UuidType::Binary, UuidType::Text];

/// The values of a filled column.
fn filled(kind: ColumnKind, uuids: UuidType, fill: impl FnOnce(&mut ColumnBuffer)) -> String {
    let mut buffer = ColumnBuffer::new(kind, uuids);
    fill(&mut buffer);
    format!("{:?}", buffer.into_parts())
}

/// Compares filling many rows at once with filling one row at a time.
fn hold(rows: &dyn Rows, columns: &[Column], range: &Range<usize>) {
    for (place, column) in columns.iter().enumerate() {
        for uuids in UUID_TYPES {
            let together = filled(column.kind, uuids, |buffer| {
                rows.fill(0..range.start, place, buffer);
                rows.fill(range.clone(), place, buffer);
            });
            let singly = filled(column.kind, uuids, |buffer| {
                (0..range.end).for_each(|row| buffer.push(&rows.field(row, place)));
            });
            assert_eq!(together, singly, "{}", column.name);
        }
    }
    let of = |fill: &dyn Fn(&mut ColumnBuffer)| filled(ColumnKind::Int64, UuidType::Fixed, fill);
    let together = of(&|buffer| rows.fill_positions(range.clone(), buffer));
    let singly = of(&|buffer| {
        for row in range.clone() {
            buffer.push(&Value::Int64(rows.position(row).cast_signed()));
        }
    });
    assert_eq!(together, singly);
    let of = |fill: &dyn Fn(&mut ColumnBuffer)| filled(ColumnKind::Text, UuidType::Fixed, fill);
    let together = of(&|buffer| rows.fill_causes(range.clone(), buffer));
    let singly = of(&|buffer| {
        for row in range.clone() {
            match rows.cause(row) {
                Some(cause) => buffer.push(&cause.as_str().into()),
                None => buffer.push(&Value::Null),
            }
        }
    });
    assert_eq!(together, singly);
    for (bytes, empty) in [(0, false), (0, true), (100, false), (usize::MAX, true)] {
        let room = Room {
            rows: range.len(),
            bytes,
            empty,
        };
        let (fitting, weight) = rows.fitting(range.start, room);
        let weights: Vec<_> = range.clone().map(|row| rows.weight(row)).collect();
        assert_eq!(weight, weights[..fitting].iter().sum::<usize>());
        let bodies = range.clone().map(|row| rows.value(row).len());
        assert!(
            weights
                .iter()
                .zip(bodies)
                .all(|(weight, body)| *weight >= body)
        );
        assert!(weight <= bytes || empty && fitting == 1);
        assert!(fitting == range.len() || weight + weights[fitting] > bytes);
    }
}

#[test]
fn golden_files_fill_columns_alike() {
    for case in cases() {
        let columns = case.options.format.unwrap().columns(case.options.dialect);
        let mut walk = open(source(&case.bytes), &case.options, Start::Beginning).unwrap();
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            let len = rows.len();
            for range in [0..len, len / 3..len, len / 2..len - len / 4] {
                hold(&*rows, columns, &range);
            }
        }
    }
}

/// Messages without a value, among others that have one, are null in a column.
#[test]
fn missing_values_fill_columns_alike() {
    let dialect = Dialect::Autobase;
    let values: [&[u8]; 7] = [b"a", b"b", b"", b"", b"c", b"", b"d"];
    let messages = values.map(|value| messages::Plain {
        value: value.to_vec(),
        ..messages::Plain::default()
    });
    let bytes = messages::file(dialect, &messages);
    let options = messages::lenient(dialect);
    let columns = options.format.unwrap().columns(options.dialect);
    let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
    assert_eq!(walk.step().unwrap(), Step::More);
    let rows = walk.rows();
    assert_eq!(rows.len(), values.len());
    for start in 0..=rows.len() {
        for end in start..=rows.len() {
            hold(&*rows, columns, &(start..end));
        }
    }
}

/// Types of which several come in a row, some of them no text.
fn types() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"order.created".to_vec()),
        Just(b"twelve bytes".to_vec()),
        Just(b"\xff\\a".to_vec()),
        Just(Vec::new()),
        vec(any::<u8>(), 0..40),
    ]
}

/// Types and values.
type Messages = Vec<(Vec<u8>, Vec<u8>)>;

/// A segment of messages of these types, each this many times in a row, and values.
fn segment() -> impl Strategy<Value = (Vec<u8>, Messages)> {
    let value = prop_oneof![
        vec(any::<u8>(), 0..20),
        vec(any::<u8>(), 0..300),
        vec(any::<u8>(), 5000..6000),
    ];
    vec((types(), vec(value, 1..20)), 0..12).prop_map(|runs| {
        let messages: Vec<_> = runs
            .into_iter()
            .flat_map(|(type_, values)| values.into_iter().map(move |value| (type_.clone(), value)))
            .collect();
        let (mut bytes, uuids) = (Vec::new(), seglake::uuid6::Generator::default());
        for (micros, (type_, value)) in (1_700_000_000_000_000..).zip(&messages) {
            let uuid = uuids.at(micros).unwrap();
            active::encode(&mut bytes, &Key::DEFAULT, uuid.as_bytes(), type_, value).unwrap();
        }
        (bytes, messages)
    })
}

fn of_active() -> Options {
    Options::default().format(&active::FORMAT)
}

/// All batches. Arrow validates each.
fn batches(source: Arc<dyn Source>, limits: Limits) -> Vec<RecordBatch> {
    let options = of_active();
    let selection = Selection::new(&active::FORMAT, &options, None, UuidType::Fixed).unwrap();
    let batches = Batches::new(source, &options, selection, limits).unwrap();
    let batches: Vec<_> = batches.map(Result::unwrap).collect();
    for column in batches.iter().flat_map(RecordBatch::columns) {
        column.to_data().validate_full().unwrap();
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_fill_columns_alike((bytes, messages) in segment(), cut: prop::sample::Index) {
        let mut walk = open(source(&bytes), &of_active(), Start::Beginning).unwrap();
        let mut seen = 0;
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            let start = cut.index(rows.len());
            hold(&*rows, active::FORMAT.columns(Dialect::default()), &(start..rows.len()));
            seen += rows.len();
        }
        prop_assert_eq!(seen, messages.len());
    }

    #[test]
    fn batches_are_what_was_written(
        (bytes, messages) in segment(),
        rows in 1..80_usize,
        limit in prop_oneof![1..100_usize, 100..20_000_usize],
    ) {
        let limits = Limits::default().bytes(limit).rows(rows);
        let mut messages = messages.iter();
        for batch in batches(source(&bytes), limits) {
            let (types, values) = (batch["type"].as_string::<i32>(), batch["value"].as_binary::<i32>());
            prop_assert!(batch.num_rows() <= rows);
            prop_assert!(values.value_data().len() <= limit || batch.num_rows() == 1);
            for row in 0..batch.num_rows() {
                let (type_, value) = messages.next().unwrap();
                prop_assert_eq!(types.value(row), &*escape(type_));
                prop_assert_eq!(values.value(row), value);
            }
        }
        prop_assert_eq!(messages.next(), None);
    }
}

/// A value that is not asked for may be of any size.
#[test]
fn a_record_that_is_too_large_has_its_other_columns() {
    let bytes = crate::common::segment(&Key::DEFAULT, &[("type", vec![7; 1000])]);
    let options = of_active().record_bytes(100);
    for (column, is_given) in [("uuid", true), ("value", false)] {
        let names = [column.to_owned()];
        let selection =
            Selection::new(&active::FORMAT, &options, Some(&names), UuidType::Fixed).unwrap();
        let limits = Limits::default().bytes(1 << 20).rows(10);
        let mut batches = Batches::new(source(&bytes), &options, selection, limits).unwrap();
        match batches.next().unwrap() {
            Ok(batch) => assert!(is_given && batch.num_rows() == 1),
            Err(error) => assert!(!is_given, "{error}"),
        }
    }
}

/// A selection has the places of columns: those of another format's records are others.
#[test]
fn a_selection_of_another_format_is_refused() {
    let options = Options::default().format(&active::FORMAT);
    let bytes = common::segment(&Key::DEFAULT, &[("type", "value")]);
    let hits = lookup(source(&bytes), &options).unwrap();
    let hits = hits.get(&[uuid(1000).into()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    SegmentLog::open(&folder, LogOptions::default()).unwrap();
    let log = LogReader::open(&folder, Options::default()).unwrap();
    for format in FORMATS {
        let selection = Selection::new(format, &Options::default(), None, UuidType::Fixed).unwrap();
        let limits = Limits::default();
        let is_same = format.columns(options.dialect) == active::FORMAT.columns(options.dialect);
        for read in [
            Batches::new(source(&bytes), &options, selection.clone(), limits).map(drop),
            Batches::ahead(
                source(&bytes),
                &options,
                selection.clone(),
                limits,
                Start::Beginning,
            )
            .map(drop),
            log.batches(&Filter::default(), selection.clone(), limits)
                .map(drop),
            selection.hits(&hits, None).map(drop),
        ] {
            match read {
                Ok(()) => assert!(is_same, "{format:?}"),
                Err(Error::Usage(refused)) => {
                    assert!(!is_same && refused.contains("records of uuid"), "{refused}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}
