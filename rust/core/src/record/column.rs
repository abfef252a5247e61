//! Columns of records, their kinds and values, how records are verified, and how UUIDs appear.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::words::names;

/// The order of a column's values in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// In any order.
    #[default]
    Any,
    /// Each is greater than the one before.
    Ascending,
    /// They count up by 1 from 0: in all records, or in those with the same values of the other identifying columns.
    Counting,
}

names! {
    Order {
        Any = "any",
        Ascending = "ascending",
        Counting = "counting",
    }
}

/// A column of a format's records, or a field of a structured column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name, the same in Arrow, Python, Spark and the command line.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: ColumnKind,
    /// Whether it may be omitted in writing and in a conversion: it follows from other columns, or may be null. What a
    /// [`Writer`](crate::format::Writer::write) makes of the present time is not optional: a conversion may not.
    pub optional: bool,
    /// The order of its values in a sound file.
    #[doc(hidden)] // public for the Python extension
    pub order: Order,
}

impl Column {
    /// A column of this name and kind.
    pub(crate) const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: false,
            order: Order::Any,
        }
    }

    /// A column that may be omitted in writing.
    pub(crate) const fn optional(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: true,
            order: Order::Any,
        }
    }

    /// The same column, with values in this order.
    #[must_use]
    pub(crate) const fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
}

/// The kind of a column's values. Any value may also be [`Value::Null`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// 16 bytes in network byte order.
    Uuid,
    /// Microseconds since 1970-01-01 UTC, signed.
    Timestamp,
    /// Bytes shown as text, see [`text::escape`](crate::text::escape).
    Text,
    /// Bytes.
    Binary,
    /// A signed 64-bit integer.
    Int64,
    /// An unsigned 64-bit integer.
    UInt64,
    /// A Boolean value.
    Boolean,
    /// Any number of values of one kind, in order.
    List(&'static Self),
    /// One value of each of these fields.
    Struct(&'static [Column]),
}

impl ColumnKind {
    /// The kind's name, for machines: `uuid`, `timestamp`, `text`, `binary`, `int64`, `uint64`, `boolean`, `list` or `struct`.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Timestamp => "timestamp",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Boolean => "boolean",
            Self::List(_) => "list",
            Self::Struct(_) => "struct",
        }
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value of a record: of a [`ColumnKind`], or null.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A UUID's 16 bytes in network byte order.
    Uuid([u8; 16]),
    /// Microseconds since 1970-01-01 UTC.
    Timestamp(i64),
    /// Bytes that should be text.
    Text(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// A signed 64-bit integer.
    Int64(i64),
    /// An unsigned 64-bit integer.
    UInt64(u64),
    /// A Boolean value.
    Boolean(bool),
    /// Values of one kind.
    List(Vec<Self>),
    /// The values of a structure's fields, in their order.
    Struct(Vec<Self>),
}

impl<'a> Value<'a> {
    /// Whether there is no value.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value, or null if there is none.
    pub(crate) fn or_null(value: Option<Self>) -> Self {
        value.unwrap_or(Self::Null)
    }

    /// The bytes of text or binary values.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Text(bytes) | Self::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, if it is text and UTF-8.
    #[must_use]
    pub const fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text),
                Err(_) => None,
            },
            _ => None,
        }
    }

    /// The UUID.
    #[must_use]
    pub const fn as_uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(uuid) => Some(Uuid::from_bytes(*uuid)),
            _ => None,
        }
    }

    /// The number of a signed integer or a timestamp, and of an unsigned integer that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int64(number) | Self::Timestamp(number) => Some(*number),
            Self::UInt64(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The number of an unsigned integer, and of a signed one that fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::UInt64(number) => Some(*number),
            Self::Int64(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The Boolean value.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }
}

/// Makes values of Rust's types.
macro_rules! value_from {
    ($($kind:ty => $variant:ident, $value:ident: $given:expr;)*) => {
        $(impl<'a> From<$kind> for Value<'a> {
            fn from($value: $kind) -> Self {
                Self::$variant($given)
            }
        })*
    };
}

value_from! {
    &'a str => Text, text: text.as_bytes();
    &'a [u8] => Binary, bytes: bytes;
    Uuid => Uuid, uuid: uuid.into_bytes();
    i64 => Int64, number: number;
    u64 => UInt64, number: number;
    bool => Boolean, value: value;
}

/// How records are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Checked {
    /// By a checksum for each.
    Checksum,
    /// By their structure alone: lengths and offsets are consistent.
    Structure,
    /// By their structure, and their bytes by a parity sidecar.
    Parity,
}

names! {
    Checked {
        Checksum = "checksum",
        Structure = "structure",
        Parity = "parity",
    }
}

/// How UUIDs appear in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UuidType {
    /// As fixed-size binary of 16 bytes, in network byte order.
    #[default]
    Fixed,
    /// The same, as Arrow's extension type `arrow.uuid`.
    Extension,
    /// The same bytes as plain binary.
    Binary,
    /// As hyphenated lower-case text.
    Text,
}
