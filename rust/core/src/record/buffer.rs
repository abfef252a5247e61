//! Buffers for columns, laid out as Arrow's.

use uuid::Uuid;
use uuid::fmt::Hyphenated;

#[cfg(feature = "arrow")]
use super::views::Views;
use super::{ColumnKind, UuidType, Value};
use crate::saturating::saturating_i32;
use crate::text::escape;

/// A column that is being filled. Values are appended with the method of the column's kind, or with
/// [`push`](Self::push). A value of another kind is appended as null.
///
/// The `extend` methods append the values of many records, at a fraction of the cost of the `push` methods.
#[derive(Debug)]
pub struct ColumnBuffer {
    pub(crate) values: Values,
    /// The number of values.
    pub(crate) len: usize,
    /// Whether each value is not null. Empty while no value is null.
    pub(crate) valid: Vec<bool>,
}

/// A column's values.
#[derive(Debug)]
pub enum Values {
    /// 16 bytes for each value.
    Fixed16(Vec<[u8; 16]>),
    /// Signed 64-bit integers.
    Int64(Vec<i64>),
    /// Unsigned 64-bit integers.
    UInt64(Vec<u64>),
    /// Boolean values.
    Boolean(Vec<bool>),
    /// Bytes of any length, UUIDs among them: value `i` is `data[offsets[i]..offsets[i + 1]]`.
    Binary {
        /// One more than values. The first is 0.
        offsets: Vec<i32>,
        /// The values, adjacent.
        data: Vec<u8>,
    },
    /// Text of any length, UUIDs hyphenated: value `i` is `data[offsets[i]..offsets[i + 1]]`.
    Text {
        /// One more than values. The first is 0.
        offsets: Vec<i32>,
        /// The values, adjacent.
        data: String,
    },
    /// Bytes or text of any length, as views.
    #[cfg(feature = "arrow")]
    Views(Views),
    /// Lists: value `i` is the items `offsets[i]..offsets[i + 1]`.
    List {
        /// One more than values. The first is 0.
        offsets: Vec<i32>,
        /// The items of all lists, adjacent.
        items: Box<ColumnBuffer>,
    },
    /// One column for each field.
    Struct(Vec<ColumnBuffer>),
}

impl ColumnBuffer {
    /// An empty column of this kind.
    #[must_use]
    pub fn new(kind: ColumnKind, uuids: UuidType) -> Self {
        Self::of(match (kind, uuids) {
            (ColumnKind::Uuid, UuidType::Fixed | UuidType::Extension) => {
                Values::Fixed16(Vec::new())
            }
            (ColumnKind::Uuid, UuidType::Text) | (ColumnKind::Text, _) => Values::Text {
                offsets: vec![0],
                data: String::new(),
            },
            (ColumnKind::Uuid, UuidType::Binary) | (ColumnKind::Binary, _) => Values::Binary {
                offsets: vec![0],
                data: Vec::new(),
            },
            (ColumnKind::Timestamp | ColumnKind::Int64, _) => Values::Int64(Vec::new()),
            (ColumnKind::UInt64, _) => Values::UInt64(Vec::new()),
            (ColumnKind::Boolean, _) => Values::Boolean(Vec::new()),
            (ColumnKind::List(kind), uuids) => Values::List {
                offsets: vec![0],
                items: Box::new(Self::new(*kind, uuids)),
            },
            (ColumnKind::Struct(fields), uuids) => Values::Struct(
                fields
                    .iter()
                    .map(|field| Self::new(field.kind, uuids))
                    .collect(),
            ),
        })
    }

    pub(crate) const fn of(values: Values) -> Self {
        Self {
            values,
            len: 0,
            valid: Vec::new(),
        }
    }

    /// The number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values, their number, and whether each is not null: `None` if no value is null.
    #[must_use]
    pub fn into_parts(self) -> (Values, usize, Option<Vec<bool>>) {
        let valid = Some(self.valid).filter(|valid| !valid.is_empty());
        (self.values, self.len, valid)
    }

    /// Appends any value.
    pub fn push(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.push_null(),
            Value::Uuid(uuid) => self.push_uuid(uuid),
            Value::Timestamp(number) | Value::Int64(number) => self.push_int64(*number),
            Value::UInt64(number) => self.push_uint64(*number),
            Value::Boolean(truth) => self.push_boolean(*truth),
            Value::Text(bytes) => self.push_text(bytes),
            Value::Binary(bytes) => self.push_bytes(bytes),
            Value::List(values) => self.push_list(values),
            Value::Struct(values) => self.push_struct(values),
        }
    }

    /// Appends a null.
    pub fn push_null(&mut self) {
        self.push_nulls(1);
    }

    /// Adds `values` values that are not null.
    pub(crate) fn count(&mut self, values: usize) {
        self.len += values;
        if !self.valid.is_empty() {
            self.valid.resize(self.len, true);
        }
    }

    /// Appends a UUID, given in network byte order.
    pub fn push_uuid(&mut self, uuid: &[u8; 16]) {
        match &mut self.values {
            Values::Fixed16(values) => {
                values.push(*uuid);
                self.count(1);
            }
            Values::Text { .. } => {
                let hyphenated = Uuid::from_bytes(*uuid).hyphenated();
                self.push_str(hyphenated.encode_lower(&mut [0; Hyphenated::LENGTH]));
            }
            _ => self.push_bytes(uuid),
        }
    }

    /// Appends a signed integer.
    pub fn push_int64(&mut self, value: i64) {
        match &mut self.values {
            Values::Int64(values) => values.push(value),
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends an unsigned integer.
    pub fn push_uint64(&mut self, value: u64) {
        match &mut self.values {
            Values::UInt64(values) => values.push(value),
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends a Boolean value.
    pub fn push_boolean(&mut self, value: bool) {
        match &mut self.values {
            Values::Boolean(values) => values.push(value),
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        match &mut self.values {
            Values::Binary { offsets, data } => {
                data.extend_from_slice(bytes);
                offsets.push(offset(data.len()));
            }
            #[cfg(feature = "arrow")]
            Values::Views(views) if !views.is_text() => views.push_bytes(bytes),
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        match &mut self.values {
            Values::Text { offsets, data } => {
                data.push_str(text);
                offsets.push(offset(data.len()));
            }
            #[cfg(feature = "arrow")]
            Values::Views(views) if views.is_text() => views.push_text(text, 1),
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends bytes that should be text, [escaped](escape).
    pub fn push_text(&mut self, bytes: &[u8]) {
        self.push_str(&escape(bytes));
    }

    /// Appends a list.
    pub fn push_list(&mut self, list: &[Value<'_>]) {
        match &mut self.values {
            Values::List { offsets, items } => {
                list.iter().for_each(|item| items.push(item));
                offsets.push(offset(items.len));
            }
            _ => return self.push_null(),
        }
        self.count(1);
    }

    /// Appends a structure: a value for each field. Missing fields are null.
    pub fn push_struct(&mut self, values: &[Value<'_>]) {
        match &mut self.values {
            Values::Struct(fields) => {
                for (place, field) in fields.iter_mut().enumerate() {
                    field.push(values.get(place).unwrap_or(&Value::Null));
                }
            }
            _ => return self.push_null(),
        }
        self.count(1);
    }
}

/// An offset within a batch. [`Batches`](crate::columns::Batches) ends a batch before its data reaches 2^31 bytes.
pub(crate) fn offset(bytes: usize) -> i32 {
    saturating_i32(bytes)
}
