//! Batches have the walk's records, column by column, for any batch limits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use seglake::Error;
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Format, Options};
use seglake::ledger::Span;
use seglake::source::Source;
use seglake::text::escape;
use seglake::verbs::verify;

use super::scan::{End, Plain, Record, Scan, is_limited, whole, windowed};
use super::{Draw, format_of, readings};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for options in readings(format) {
        let chosen = Chosen::new(&options, &mut draw);
        for strict in [false, true] {
            let options = options.clone().strict(strict);
            let scan = Scan::of(bytes, &options);
            let selection = chosen.selection(&options);
            let source = match draw.below(2) {
                0 => whole(bytes),
                _ => windowed(bytes),
            };
            let read = Read::new(source, &options, &selection, &chosen, bytes);
            chosen.is_the_walk(&read, &scan, &options);
            let is_same = read.is_limited() == scan.is_limited();
            if let (End::Done, false, true) = (&scan.end, strict, is_same) {
                let report = verify(whole(bytes), &options, |_| Ok(())).unwrap();
                assert_eq!(
                    read.totals,
                    format!("{:?} {}", report.summary.totals, report.summary.records)
                );
            }
        }
    }
}

/// Columns in any order, the form of UUIDs, and the limits of a batch.
pub(super) struct Chosen {
    names: Vec<String>,
    uuids: UuidType,
    pub(super) limits: Limits,
}

impl Chosen {
    pub(super) fn new(options: &Options, draw: &mut Draw) -> Self {
        let columns = options.format.unwrap().columns(options.dialect).iter();
        let mut names: Vec<_> = columns.map(|column| column.name.to_owned()).collect();
        names.extend(["path", "position", "cause"].map(str::to_owned));
        for place in 0..names.len() {
            let other = draw.below(names.len());
            names.swap(place, other);
        }
        if draw.below(2) == 0 {
            names.truncate(draw.below(names.len() + 1));
        }
        Self {
            names,
            uuids: *draw.of_these(&[UuidType::Fixed, UuidType::Binary, UuidType::Text]),
            limits: Limits::default()
                .bytes(*draw.of_these(&[1, 20, 100, 1000, 8 << 20]))
                .rows(*draw.of_these(&[1, 2, 5, 1 << 17])),
        }
    }

    pub(super) fn selection(&self, options: &Options) -> Selection {
        let format = format_of(options);
        Selection::new(format, options, Some(&self.names), self.uuids).unwrap()
    }

    /// Rows, damage and end are those of a walk.
    pub(super) fn is_the_walk(&self, read: &Read, scan: &Scan, options: &Options) {
        // Where the search budget is exhausted depends on how the file is read.
        if read.is_limited() != scan.is_limited() {
            return;
        }
        assert_eq!(read.end, scan.end);
        let rows: Vec<_> = read.batches.iter().flat_map(rows).collect();
        let expected = scan.records.iter();
        let expected: Vec<_> = expected.map(|record| self.row(record, options)).collect();
        assert_eq!(rows, expected, "{:?}", self.names);
        let damage = scan.ledger().into_iter().filter(Span::is_damage);
        assert_eq!(read.damage, damage.collect::<Vec<_>>());
    }

    /// A record as it appears in Arrow.
    fn row(&self, record: &Record, options: &Options) -> Vec<Plain> {
        let columns = options.format.unwrap().columns(options.dialect);
        let cell = |name: &String| match name.as_str() {
            "path" => Plain::Text(Vec::new()),
            "position" => Plain::Int64(record.position.cast_signed()),
            "cause" => {
                let cause = record.cause.map(|cause| cause.to_string().into_bytes());
                cause.map_or(Plain::Null, Plain::Text)
            }
            _ => {
                let place = columns.iter().position(|column| column.name == name);
                self.cell(&record.fields[place.unwrap()])
            }
        };
        self.names.iter().map(cell).collect()
    }

    fn cell(&self, value: &Plain) -> Plain {
        match (value, self.uuids) {
            (Plain::Uuid(uuid), UuidType::Binary) => Plain::Binary(uuid.to_vec()),
            (Plain::Uuid(uuid), UuidType::Text) => {
                let digits = |bytes: &[u8]| {
                    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                    digits.collect::<String>()
                };
                let groups = [0..4, 4..6, 6..8, 8..10, 10..16].map(|own| digits(&uuid[own]));
                Plain::Text(groups.join("-").into_bytes())
            }
            (Plain::Text(bytes), _) => Plain::Text(escape(bytes).into_owned().into_bytes()),
            (Plain::List(items), _) => {
                Plain::List(items.iter().map(|item| self.cell(item)).collect())
            }
            (Plain::Struct(fields), _) => {
                Plain::Struct(fields.iter().map(|field| self.cell(field)).collect())
            }
            _ => value.clone(),
        }
    }
}

/// All batches of a file.
pub(super) struct Read {
    batches: Vec<RecordBatch>,
    damage: Vec<Span>,
    pub(super) totals: String,
    end: End,
}

impl Read {
    /// As [`Scan::is_limited`].
    fn is_limited(&self) -> bool {
        is_limited(&self.damage, &self.end)
    }

    /// Reads a source and closes it.
    fn new(
        source: Arc<dyn Source>,
        options: &Options,
        selection: &Selection,
        chosen: &Chosen,
        bytes: &[u8],
    ) -> Self {
        let batches = Batches::new(source, options, selection.clone(), chosen.limits).unwrap();
        let read = Self::of(batches, selection, chosen).unwrap();
        assert!(read.batches.len() <= bytes.len() + read.rows() + 1);
        read
    }

    /// Reads all batches. If the options are refused, returns the message.
    pub(super) fn of(
        mut batches: Batches,
        selection: &Selection,
        chosen: &Chosen,
    ) -> Result<Self, String> {
        let (mut all, mut damage) = (Vec::new(), Vec::new());
        let end = loop {
            match batches.next_batch() {
                Ok(None) => break End::Done,
                Err(Error::Usage(why)) => return Err(why),
                Err(error) => break End::of(error),
                Ok(Some(batch)) => {
                    let rows = batch.records.num_rows();
                    assert_eq!(batch.records.schema(), *selection.schema());
                    assert!(rows > 0 || !batch.damage.is_empty(), "an empty batch");
                    assert!(rows <= chosen.limits.rows);
                    assert!(rows <= 1 || batch.value_bytes <= chosen.limits.bytes);
                    damage.extend(batch.damage);
                    all.push(batch.records);
                }
            }
        };
        assert!(
            batches.next_batch().unwrap().is_none(),
            "it goes on after {end:?}"
        );
        damage.sort_by_key(|span| (span.start, span.end));
        let report = batches.report();
        Ok(Self {
            batches: all,
            damage,
            totals: format!("{:?} {}", report.summary.totals, report.summary.records),
            end,
        })
    }

    /// Panics if the rows, the damage or the end differ. Batches may have other boundaries.
    pub(super) fn assert_is(&self, expected: &Self) {
        assert_eq!(self.end, expected.end);
        let all = |read: &Self| read.batches.iter().flat_map(rows).collect::<Vec<_>>();
        assert_eq!(all(self), all(expected));
        assert_eq!(self.damage, expected.damage);
        if self.end == End::Done {
            assert_eq!(self.totals, expected.totals);
        }
    }

    pub(super) fn is_damaged(&self) -> bool {
        !self.damage.is_empty() || self.end != End::Done
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<Plain>> {
    let row = |row| {
        batch
            .columns()
            .iter()
            .map(|column| cell(column, row))
            .collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// One value of an array.
fn cell(array: &dyn Array, row: usize) -> Plain {
    if array.is_null(row) {
        return Plain::Null;
    }
    match array.data_type() {
        DataType::FixedSizeBinary(16) => {
            Plain::Uuid(array.as_fixed_size_binary().value(row).try_into().unwrap())
        }
        DataType::Timestamp(..) => {
            Plain::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8 => Plain::Text(array.as_string::<i32>().value(row).into()),
        DataType::Binary => Plain::Binary(array.as_binary::<i32>().value(row).into()),
        DataType::Int64 => Plain::Int64(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Plain::UInt64(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Boolean => Plain::Boolean(array.as_boolean().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Plain::List((0..items.len()).map(|row| cell(&items, row)).collect())
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter();
            Plain::Struct(fields.map(|field| cell(field, row)).collect())
        }
        other => panic!("no column is of type {other}"),
    }
}
