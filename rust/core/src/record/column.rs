//! What records are made of: columns, their kinds, and values.

/// How the values of a column follow one another in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// In any order.
    #[default]
    Any,
    /// Each is greater than the one before.
    Ascending,
    /// From 0, each is greater by 1 than the one before: of all records, or of those with the same values of the other columns
    /// that records are found by.
    Counting,
}

impl Order {
    /// The name that callers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Ascending => "ascending",
            Self::Counting => "counting",
        }
    }
}

/// One column of a format's records, or one field of a structured column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name, the same in Arrow, Python, Spark and the command line.
    pub name: &'static str,
    /// What its values are.
    pub kind: ColumnKind,
    /// Whether records can be written without: it follows from the rest, or may be missing.
    pub optional: bool,
    /// How its values follow one another in a file that is sound.
    pub order: Order,
}

impl Column {
    /// A column of this name and kind.
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: false,
            order: Order::Any,
        }
    }

    /// A column that records can be written without.
    #[must_use]
    pub const fn optional(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: true,
            order: Order::Any,
        }
    }

    /// The same, with values in this order.
    #[must_use]
    pub(crate) const fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
}

/// What a column's values are. Any value may also be [`Value::Null`]. Another kind is a breaking change: what converts values
/// has to know each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A truth value.
    Boolean,
    /// Values of one kind, any number of them, in order.
    List(&'static Self),
    /// One value of each of these fields.
    Struct(&'static [Column]),
}

impl ColumnKind {
    /// The kind's name, for machines: `uuid`, `timestamp`, `text`, `binary`, `int64`, `uint64`, `boolean`, `list` or `struct`.
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

/// One value of one record: of a [`ColumnKind`], or null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A UUID's 16 bytes in network byte order.
    Uuid([u8; 16]),
    /// Microseconds since 1970-01-01 UTC.
    Timestamp(i64),
    /// Bytes that are meant to be text.
    Text(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// A signed 64-bit integer.
    Int64(i64),
    /// An unsigned 64-bit integer.
    UInt64(u64),
    /// A truth value.
    Boolean(bool),
    /// Values of one kind.
    List(Vec<Self>),
    /// The values of a structure's fields, in their order.
    Struct(Vec<Self>),
}
