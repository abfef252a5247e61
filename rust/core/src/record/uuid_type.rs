//! How UUIDs appear in columns.

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
