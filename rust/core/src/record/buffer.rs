//! Buffers for columns, laid out as Arrow's, and how values are appended: one, or many at once. For many, memory is reserved once, and
//! a text that repeats is escaped once.

use std::iter::repeat_n;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::{ColumnKind, UuidType, Value};
use crate::bug::OrBug;
use crate::saturating::saturating_i32;
use crate::text::escape;

/// A column that is being filled, with values of its kind. A value of another kind is appended as null.
///
/// The `extend` methods append the values of many records, at a fraction of the cost of [`push`](Self::push).
#[derive(Debug)]
pub struct ColumnBuffer {
    values: Values,
    /// The number of values.
    pub(crate) len: usize,
    /// Whether each value is not null. Empty while no value is null.
    valid: Vec<bool>,
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

    /// Appends a value: text [escaped](escape), and null for each field that a structure lacks.
    pub fn push(&mut self, value: &Value<'_>) {
        match (&mut self.values, value) {
            (Values::Fixed16(values), Value::Uuid(uuid)) => values.push(*uuid),
            (Values::Int64(values), Value::Timestamp(number) | Value::Int64(number)) => {
                values.push(*number);
            }
            (Values::UInt64(values), Value::UInt64(number)) => values.push(*number),
            (Values::Boolean(values), Value::Boolean(truth)) => values.push(*truth),
            (Values::Binary { offsets, data }, Value::Uuid(uuid)) => {
                data.extend_from_slice(uuid);
                offsets.push(offset(data.len()));
            }
            (Values::Binary { offsets, data }, Value::Binary(bytes)) => {
                data.extend_from_slice(bytes);
                offsets.push(offset(data.len()));
            }
            (Values::Text { offsets, data }, Value::Uuid(uuid)) => {
                push_hyphenated(data, uuid);
                offsets.push(offset(data.len()));
            }
            (Values::Text { offsets, data }, Value::Text(bytes)) => {
                data.push_str(&escape(bytes));
                offsets.push(offset(data.len()));
            }
            (Values::List { offsets, items }, Value::List(list)) => {
                list.iter().for_each(|item| items.push(item));
                offsets.push(offset(items.len));
            }
            (Values::Struct(fields), Value::Struct(values)) => {
                for (place, field) in fields.iter_mut().enumerate() {
                    field.push(values.get(place).unwrap_or(&Value::Null));
                }
            }
            _ => return self.push_nulls(1),
        }
        self.count(1);
    }

    /// Adds `values` values that are not null.
    fn count(&mut self, values: usize) {
        self.len += values;
        if !self.valid.is_empty() {
            self.valid.resize(self.len, true);
        }
    }

    /// Reserves memory in an empty column for `rows` values, of `bytes` bytes together if they are bytes. Then it does
    /// not grow, and each value is copied once.
    #[cfg(feature = "arrow")]
    pub(crate) fn reserve(&mut self, rows: usize, bytes: usize) {
        match &mut self.values {
            Values::Fixed16(values) => values.reserve_exact(rows),
            Values::Int64(values) => values.reserve_exact(rows),
            Values::Binary { offsets, data } => {
                offsets.reserve_exact(rows);
                data.reserve_exact(bytes);
            }
            Values::Text { offsets, .. } => offsets.reserve_exact(rows),
            Values::UInt64(_) | Values::Boolean(_) | Values::List { .. } | Values::Struct(_) => {}
        }
    }

    /// Appends so many nulls.
    pub fn push_nulls(&mut self, times: usize) {
        if times == 0 {
            return;
        }
        let run = |offsets: &mut Vec<i32>| {
            let last = offsets.last().copied();
            let last = last.or_bug_default("one more offset than there are values");
            offsets.extend(repeat_n(last, times));
        };
        match &mut self.values {
            Values::Fixed16(values) => values.extend(repeat_n([0; 16], times)),
            Values::Int64(values) => values.extend(repeat_n(0, times)),
            Values::UInt64(values) => values.extend(repeat_n(0, times)),
            Values::Boolean(values) => values.extend(repeat_n(false, times)),
            Values::Binary { offsets, .. }
            | Values::Text { offsets, .. }
            | Values::List { offsets, .. } => run(offsets),
            Values::Struct(fields) => {
                fields.iter_mut().for_each(|field| field.push_nulls(times));
            }
        }
        self.valid.resize(self.len, true);
        self.len += times;
        self.valid.resize(self.len, false);
    }

    /// Appends UUIDs, given in network byte order.
    pub fn extend_uuids<'a>(&mut self, uuids: impl Iterator<Item = &'a [u8; 16]> + Clone) {
        let more = match &mut self.values {
            Values::Fixed16(values) => {
                let before = values.len();
                values.extend(uuids);
                values.len() - before
            }
            Values::Text { offsets, data } => {
                let before = offsets.len();
                data.reserve(uuids.clone().count().saturating_mul(Hyphenated::LENGTH));
                offsets.extend(uuids.map(|uuid| {
                    push_hyphenated(data, uuid);
                    offset(data.len())
                }));
                offsets.len() - before
            }
            _ => return uuids.for_each(|uuid| self.push(&Value::Uuid(*uuid))),
        };
        self.count(more);
    }

    /// Appends signed integers.
    pub fn extend_int64(&mut self, numbers: impl Iterator<Item = i64>) {
        let Values::Int64(values) = &mut self.values else {
            return numbers.for_each(|number| self.push(&Value::Int64(number)));
        };
        let before = values.len();
        values.extend(numbers);
        let more = values.len() - before;
        self.count(more);
    }

    /// Appends unsigned integers, some of which are null.
    pub fn extend_optional_uint64(&mut self, numbers: impl Iterator<Item = Option<u64>>) {
        let Self { values, len, valid } = self;
        let Values::UInt64(values) = values else {
            return numbers
                .for_each(|number| self.push(&Value::or_null(number.map(Value::UInt64))));
        };
        values.extend(numbers.map(|number| {
            if number.is_none() || !valid.is_empty() {
                valid.resize(*len, true);
                valid.push(number.is_some());
            }
            *len += 1;
            number.unwrap_or(0) // the slot of a null
        }));
    }

    /// Appends byte strings.
    pub fn extend_bytes<'a>(&mut self, runs: impl Iterator<Item = &'a [u8]>) {
        let more = match &mut self.values {
            Values::Binary { offsets, data } => {
                let before = offsets.len();
                offsets.extend(runs.map(|run| {
                    data.extend_from_slice(run);
                    offset(data.len())
                }));
                offsets.len() - before
            }
            _ => return runs.for_each(|run| self.push(&Value::Binary(run))),
        };
        self.count(more);
    }

    /// Appends bytes that should be text, [escaped](escape).
    pub fn extend_text<'a>(&mut self, texts: impl Iterator<Item = &'a [u8]>) {
        self.extend_optional_text(texts.map(Some));
    }

    /// As [`extend_text`](Self::extend_text), for texts some of which are null.
    pub fn extend_optional_text<'a>(&mut self, texts: impl Iterator<Item = Option<&'a [u8]>>) {
        let mut texts = texts.peekable();
        while let Some(text) = texts.next() {
            let Some(text) = text else {
                self.push_nulls(1);
                continue;
            };
            let mut times = 1;
            let same = |next: &Option<&[u8]>| next.is_some_and(|next| is_same(next, text));
            while texts.next_if(same).is_some() {
                times += 1;
            }
            self.push_str_times(&escape(text), times);
        }
    }

    /// Appends a text `times` times.
    pub(crate) fn push_str_times(&mut self, text: &str, times: usize) {
        match &mut self.values {
            Values::Text { offsets, data } => {
                let (start, len) = (data.len(), text.len());
                grow(data, len.saturating_mul(times), offsets, times);
                push_times(data, text, times);
                offsets.extend((1..=times).map(|count| offset(start + count * len)));
            }
            _ => return self.push_nulls(times),
        }
        self.count(times);
    }
}

/// Appends a UUID as text.
fn push_hyphenated(data: &mut String, uuid: &[u8; 16]) {
    let hyphenated = Uuid::from_bytes(*uuid).hyphenated();
    data.push_str(hyphenated.encode_lower(&mut [0; Hyphenated::LENGTH]));
}

/// An offset within a batch. [`Batches`](crate::columns::Batches) ends a batch before its data reaches 2^31 bytes.
fn offset(bytes: usize) -> i32 {
    saturating_i32(bytes)
}

/// Whether two texts are equal. For 4 to 16 bytes, as most types have, it makes no call.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    fn ends<const N: usize>(text: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
        (text.first_chunk(), text.last_chunk())
    }
    a.len() == b.len()
        && match a.len() {
            4..=8 => ends::<4>(a) == ends::<4>(b),
            9..=16 => ends::<8>(a) == ends::<8>(b),
            _ => a == b,
        }
}

/// Appends a text `times` times by doubling what is appended: a few long copies instead of many short ones.
fn push_times(data: &mut String, text: &str, times: usize) {
    let start = data.len();
    let end = start + text.len() * times;
    if times > 0 {
        data.push_str(text);
    }
    while data.len() < end {
        let more = (data.len() - start).min(end - data.len());
        data.extend_from_within(start..start + more);
    }
}

/// The most memory that is reserved for texts to come, in bytes.
const MAX_EXPECTED_BYTES: usize = 4 << 20;

/// Reserves `bytes` more, for `rows` texts. If the data must grow, it grows once: to the size for as many texts as
/// `offsets` has room for, if they are as long as those so far.
fn grow(data: &mut String, bytes: usize, offsets: &Vec<i32>, rows: usize) {
    if data.capacity() - data.len() < bytes {
        let needed = data.len().saturating_add(bytes);
        let each = needed / (offsets.len() - 1).saturating_add(rows).max(1);
        let expected = each.saturating_mul(offsets.capacity());
        let expected = expected.min(MAX_EXPECTED_BYTES).max(needed);
        data.reserve(expected - data.len());
    }
}
