//! A selection of columns, and their Arrow types: also unsigned 64-bit numbers for readers without such a type.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::arrays::{array, field, internal};
use crate::error::{Error, Result};
use crate::record::{Column, ColumnBuffer, ColumnKind, Rows, UuidType};
use crate::spec::Spec;
use crate::text::escape;
use crate::walk::{Hits, Options};

/// The most bytes that a `binary` or `utf8` column can have.
pub(super) const MAX_DATA_BYTES: usize = i32::MAX as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    /// One of the format's columns, by its place among them.
    Field(usize),
    /// The file's path.
    Path,
    /// The record's offset in its file.
    Position,
    /// The cause of damage in a record that is emitted all the same.
    Cause,
}

/// A selection of columns, and their Arrow types.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The columns of the records that it is of.
    columns: &'static [Column],
    chosen: Vec<(Chosen, ColumnKind)>,
    uuids: UuidType,
    /// How unsigned 64-bit numbers appear.
    uint64: Uint64Type,
    /// The places of the columns that identify a record.
    identifying: Vec<usize>,
    schema: SchemaRef,
    /// Whether the records' values are selected.
    #[doc(hidden)]
    pub values: bool,
}

impl Selection {
    /// Selects the columns of these names, in this order; `None` selects all of the format's. Any format also has the
    /// columns `path`, `position` and `cause` (of damage in a record that is emitted all the same).
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name, and for a name that occurs twice.
    pub fn new(
        format: &Spec,
        options: &Options,
        names: Option<&[String]>,
        uuids: UuidType,
    ) -> Result<Self> {
        let columns = format.columns(options.dialect);
        let all: Vec<_> = columns
            .iter()
            .map(|column| column.name.to_owned())
            .collect();
        let names = names.unwrap_or(&all);
        let (mut chosen, mut fields) = (Vec::new(), Vec::new());
        for (place, name) in names.iter().enumerate() {
            if names.iter().take(place).any(|earlier| earlier == name) {
                return Err(Error::Usage(format!(
                    "the column {name:?} is selected twice: select it once"
                )));
            }
            let column = columns
                .iter()
                .enumerate()
                .find(|(_, column)| column.name == name);
            let (choice, kind) = match (column, name.as_str()) {
                (Some((place, column)), _) => (Chosen::Field(place), column.kind),
                (None, "path") => (Chosen::Path, ColumnKind::Text),
                (None, "position") => (Chosen::Position, ColumnKind::Int64),
                (None, "cause") => (Chosen::Cause, ColumnKind::Text),
                (None, _) => {
                    let message = format!(
                        "there is no column {name:?} in {} records: expected one of {}, path, position, cause",
                        format.name,
                        all.join(", ")
                    );
                    return Err(Error::Usage(message));
                }
            };
            chosen.push((choice, kind));
            fields.push(field(name, kind, uuids));
        }
        let values = names.iter().any(|name| name == "value");
        let is_identifying =
            |(_, name): &(usize, &String)| format.identifier.contains(&name.as_str());
        let identifying = names.iter().enumerate().filter(is_identifying);
        let identifying = identifying.map(|(place, _)| place).collect();
        Ok(Self {
            columns,
            chosen,
            uuids,
            uint64: Uint64Type::default(),
            identifying,
            schema: Arc::new(Schema::new(fields)),
            values,
        })
    }

    /// The columns as Arrow fields.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same columns, with unsigned 64-bit numbers as this type, also within lists and structures. For readers without such a
    /// type, like Spark.
    #[must_use]
    pub fn with_uint64(mut self, uint64: Uint64Type) -> Self {
        let fields = self.schema.fields().iter();
        let fields: Vec<_> = fields.map(|field| uint64.field(field)).collect();
        self.schema = Arc::new(Schema::new(fields));
        self.uint64 = uint64;
        self
    }

    /// Refuses records of other columns: the places of the chosen ones would be those of others.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(crate) fn check(&self, columns: &[Column]) -> Result<()> {
        if self.columns == columns {
            return Ok(());
        }
        let names = |columns: &[Column]| {
            let names: Vec<_> = columns.iter().map(|column| column.name).collect();
            names.join(", ")
        };
        Err(Error::Usage(format!(
            "expected records of {}, of which the columns were selected, found records of {}: select with the format and options that the file is read with",
            names(self.columns),
            names(columns)
        )))
    }

    /// Empty columns.
    pub(super) fn buffers(&self) -> Vec<ColumnBuffer> {
        let empty = |(_, kind): &(Chosen, ColumnKind)| ColumnBuffer::new(*kind, self.uuids);
        self.chosen.iter().map(empty).collect()
    }

    /// Appends rows to the columns.
    pub(super) fn fill(
        &self,
        columns: &mut [ColumnBuffer],
        rows: &dyn Rows,
        range: &Range<usize>,
        path: &str,
    ) {
        for (column, (chosen, _)) in columns.iter_mut().zip(&self.chosen) {
            match chosen {
                Chosen::Field(place) => rows.fill(range.clone(), *place, column),
                Chosen::Path => column.push_str_times(path, range.len()),
                Chosen::Position => rows.fill_positions(range.clone(), column),
                Chosen::Cause => rows.fill_causes(range.clone(), column),
            }
        }
    }

    /// The record batch of filled columns.
    pub(super) fn batch(
        &self,
        columns: Vec<ColumnBuffer>,
        rows: usize,
        path: Option<&Path>,
    ) -> Result<RecordBatch> {
        let fields = self.schema.fields();
        let columns = columns.into_iter().zip(fields);
        let arrays = columns.map(|(column, field)| array(column, field.data_type()));
        let arrays = arrays
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(internal)?;
        if self.uint64 == Uint64Type::Int64 {
            for ((array, field), (_, kind)) in arrays.iter().zip(fields).zip(&self.chosen) {
                if let Some(found) = find_too_large(array, *kind, field.name()) {
                    return Err(self.too_large(found, &arrays, path));
                }
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(internal)
    }

    fn too_large(&self, found: TooLarge, arrays: &[ArrayRef], path: Option<&Path>) -> Error {
        let columns = self.identifying.iter().filter_map(|place| {
            let (field, array) = (self.schema.fields().get(*place)?, arrays.get(*place)?);
            Some((field.name().as_str(), array))
        });
        Error::Number {
            path: path.map(Path::to_path_buf),
            record: record_name(columns, found.row),
            field: found.field,
            value: found.value,
        }
    }

    /// The result of a look-up as a record batch. It has one row for each identifier of the request, and that row is
    /// all null if no record was found.
    ///
    /// # Errors
    /// [`Error::Usage`] for records of another format, and if the values do not fit into one batch.
    #[doc(hidden)]
    pub fn hits(&self, hits: &Hits, path: Option<&Path>) -> Result<RecordBatch> {
        if let Some(columns) = hits.columns {
            self.check(columns)?;
        }
        let text = path_text(path);
        let (mut columns, mut bytes) = (self.buffers(), 0_usize);
        hits.runs(|found, count| {
            bytes = bytes.saturating_add(text.len().saturating_mul(count));
            if let Some((rows, range)) = &found {
                let weights = range.clone().map(|row| rows.weight(row));
                bytes = weights.fold(bytes, usize::saturating_add);
            }
            match found {
                Some((rows, range)) if bytes <= MAX_DATA_BYTES => {
                    self.fill(&mut columns, rows, &range, &text);
                }
                _ => columns
                    .iter_mut()
                    .for_each(|column| column.push_nulls(count)),
            }
        });
        if bytes > MAX_DATA_BYTES {
            return Err(Error::Usage(format!(
                "the records that were looked up have {bytes} bytes, more than one Arrow batch holds: look up fewer"
            )));
        }
        self.batch(columns, hits.places.len(), path)
    }
}

/// A path as text: unchanged if it is Unicode, else [escaped](escape), so that different paths give different texts. Empty if there is
/// none.
pub(super) fn path_text(path: Option<&Path>) -> String {
    let Some(path) = path else {
        return String::new();
    };
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => escape(path.as_os_str().as_encoded_bytes()).into_owned(),
    }
}

/// The digits of 2^64-1.
const DIGITS: u8 = 20;

/// The Arrow type of unsigned 64-bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uint64Type {
    /// `uint64`.
    #[default]
    UInt64,
    /// `int64`. A number above 2^63-1 is an [`Error::Number`](crate::Error::Number).
    Int64,
    /// `decimal128(20, 0)`, which has all of them.
    Decimal,
}

impl Uint64Type {
    /// A field with unsigned 64-bit numbers as this type.
    fn field(self, field: &Field) -> Field {
        let data_type = self.data_type(field.data_type());
        field.clone().with_data_type(data_type)
    }

    fn data_type(self, data_type: &DataType) -> DataType {
        match (data_type, self) {
            (DataType::UInt64, Self::Int64) => DataType::Int64,
            (DataType::UInt64, Self::Decimal) => DataType::Decimal128(DIGITS, 0),
            (DataType::List(items), _) => DataType::List(Arc::new(self.field(items))),
            (DataType::Struct(fields), _) => {
                DataType::Struct(fields.iter().map(|field| self.field(field)).collect())
            }
            _ => data_type.clone(),
        }
    }
}

/// A number that an `int64` cannot store: its row, its field (`clock.length`) and its value.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge {
    row: usize,
    field: String,
    value: u64,
}

/// The first number of a column above 2^63-1, where unsigned numbers are signed ones. That of a list has the list's row.
fn find_too_large(array: &ArrayRef, kind: ColumnKind, field: &str) -> Option<TooLarge> {
    match kind {
        ColumnKind::UInt64 => {
            let mut numbers = array.as_primitive::<Int64Type>().iter();
            let row = numbers.position(|number| number.is_some_and(i64::is_negative))?;
            let value = array.as_primitive::<Int64Type>().value(row).cast_unsigned();
            let field = field.to_owned();
            Some(TooLarge { row, field, value })
        }
        ColumnKind::List(items) => {
            let list = array.as_list::<i32>();
            let found = find_too_large(list.values(), *items, field)?;
            let is_in_front = |end: &i32| usize::try_from(*end).is_ok_and(|end| end <= found.row);
            let ends = list.value_offsets().get(1..)?;
            let row = ends.partition_point(is_in_front);
            Some(TooLarge { row, ..found })
        }
        ColumnKind::Struct(fields) => {
            let mut columns = array.as_struct().columns().iter().zip(fields);
            columns.find_map(|(column, inner)| {
                find_too_large(column, inner.kind, &format!("{field}.{}", inner.name))
            })
        }
        _ => None,
    }
}

/// What a record is called in an error: the values of these columns, as far as they are numbers.
fn record_name<'a>(columns: impl Iterator<Item = (&'a str, &'a ArrayRef)>, row: usize) -> String {
    let named = columns.filter_map(|(name, array)| {
        let numbers = array.as_primitive_opt::<Int64Type>()?;
        Some(format!("{name} {}, ", numbers.value(row)))
    });
    named.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::format::active;
    use crate::private::Sealed;
    use crate::record::Value;

    /// Rows that record which of their columns were read.
    #[derive(Default)]
    struct Asked(RefCell<Vec<usize>>);

    impl Sealed for Asked {}

    impl Rows for Asked {
        fn len(&self) -> usize {
            3
        }

        fn position(&self, row: usize) -> u64 {
            row as u64
        }

        fn end(&self, row: usize) -> u64 {
            row as u64 + 1
        }

        fn value(&self, _: usize) -> &[u8] {
            &[0; 100]
        }

        fn field(&self, _: usize, column: usize) -> Value<'_> {
            self.0.borrow_mut().push(column);
            Value::Null
        }
    }

    #[test]
    fn a_path_is_shown_as_it_is_where_it_is_text() {
        assert_eq!(
            path_text(Some(Path::new("logs/a \u{e4}.seg"))),
            "logs/a \u{e4}.seg"
        );
    }

    #[test]
    fn columns_that_are_not_asked_for_are_not_touched() {
        let options = Options::default();
        for (names, touched) in [
            (&["timestamp"][..], &[1][..]),
            (&["value", "uuid"], &[3, 0]),
            (&["position", "path", "cause"], &[]),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let selection =
                Selection::new(&active::FORMAT, &options, Some(&names), UuidType::Fixed).unwrap();
            let (rows, mut columns) = (Asked::default(), selection.buffers());
            selection.fill(&mut columns, &rows, &(0..3), "a path");
            let expected: Vec<_> = touched.iter().flat_map(|column| [*column; 3]).collect();
            assert_eq!(rows.0.into_inner(), expected);
            let batch = selection.batch(columns, 3, None).unwrap();
            assert_eq!((batch.num_columns(), batch.num_rows()), (names.len(), 3));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod uint64_tests {
    use arrow_array::Array as _;
    use arrow_array::types::{Decimal128Type, UInt64Type};

    use super::*;
    use crate::record::Value;

    const MOST: u64 = 1 << 63;
    const LENGTH: ColumnKind =
        ColumnKind::Struct(&[Column::optional("length", ColumnKind::UInt64)]);
    const CLOCK: ColumnKind = ColumnKind::List(&LENGTH);

    /// Lists of structures of a number: [], [0, null], null, [2^63-1, `last`].
    fn lists(last: u64, uint64: Uint64Type) -> ArrayRef {
        let mut column = ColumnBuffer::new(CLOCK, UuidType::Fixed);
        let number = |number| Value::Struct(vec![number]);
        column.push(&Value::List(Vec::new()));
        let few = vec![number(Value::UInt64(0)), number(Value::Null)];
        column.push(&Value::List(few));
        column.push(&Value::Null);
        let most = [MOST - 1, last].map(|value| number(Value::UInt64(value)));
        column.push(&Value::List(most.into()));
        let to = uint64.field(&field("clock", CLOCK, UuidType::Fixed));
        array(column, to.data_type()).unwrap()
    }

    #[test]
    fn numbers_within_lists_and_structures_are_converted() {
        let plain = lists(u64::MAX, Uint64Type::UInt64);
        for (uint64, most) in [
            (Uint64Type::UInt64, u64::MAX),
            (Uint64Type::Int64, MOST - 1),
            (Uint64Type::Decimal, u64::MAX),
        ] {
            let made = lists(most, uint64);
            assert_eq!(made.nulls(), plain.nulls());
            let list = made.as_list::<i32>();
            assert_eq!(list.offsets(), plain.as_list::<i32>().offsets());
            let numbers = list.values().as_struct().column(0);
            let found: Vec<Option<i128>> = match uint64 {
                Uint64Type::UInt64 => {
                    let numbers = numbers.as_primitive::<UInt64Type>().iter();
                    numbers.map(|number| number.map(i128::from)).collect()
                }
                Uint64Type::Int64 => {
                    let numbers = numbers.as_primitive::<Int64Type>().iter();
                    numbers.map(|number| number.map(i128::from)).collect()
                }
                Uint64Type::Decimal => {
                    assert_eq!(*numbers.data_type(), DataType::Decimal128(20, 0));
                    numbers.as_primitive::<Decimal128Type>().iter().collect()
                }
            };
            let some = |number: u64| Some(i128::from(number));
            assert_eq!(found, [some(0), None, some(MOST - 1), some(most)]);
        }
    }

    #[test]
    fn the_first_number_that_is_too_large_is_found() {
        let within = |last| find_too_large(&lists(last, Uint64Type::Int64), CLOCK, "clock");
        assert_eq!(within(MOST - 1), None);
        let (row, field, value) = (3, "clock.length".to_owned(), MOST);
        assert_eq!(within(MOST), Some(TooLarge { row, field, value }));
        let mut plain = ColumnBuffer::new(ColumnKind::UInt64, UuidType::Fixed);
        [Value::Null, Value::UInt64(5), Value::UInt64(u64::MAX)]
            .iter()
            .for_each(|value| plain.push(value));
        let plain = array(plain, &DataType::Int64).unwrap();
        let found = find_too_large(&plain, ColumnKind::UInt64, "batch").unwrap();
        assert_eq!((found.row, found.value), (2, u64::MAX));
    }
}
