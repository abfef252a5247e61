//! The columns of each dialect.

use crate::record::{Column, ColumnKind, Order};
use crate::spec::Dialect;

// The indices of columns: those of all dialects, and after them those of `autobase`.
pub(crate) const SEQ: usize = 0;
pub(crate) const VERSION: usize = 1;
pub(crate) const CHECKPOINTER: usize = 2;
pub(crate) const CHECKPOINT: usize = 3;
pub(crate) const CLOCK: usize = 4;
pub(crate) const ABI: usize = 5;
pub(crate) const BATCH: usize = 6;
pub(crate) const VALUE: usize = 7;
pub(crate) const KEYS: usize = 8;
pub(crate) const MAX_SUPPORTED_VERSION: usize = 9;
pub(crate) const OPTIMISTIC: usize = 10;
pub(crate) const DIGEST: usize = 11;
pub(crate) const TRACE: usize = 12;
pub(crate) const EXTRA: usize = 13;
pub(crate) const FLAGS: usize = 14;

/// The columns of a dialect, in the order in which they are shown and written.
pub(crate) const fn columns(dialect: Dialect) -> &'static [Column] {
    match dialect {
        Dialect::Draft => DRAFT,
        Dialect::Draft11 => DRAFT_11,
        Dialect::Autobase => AUTOBASE,
    }
}

const fn uint(name: &'static str) -> Column {
    Column::new(name, ColumnKind::UInt64)
}

const fn binary(name: &'static str) -> Column {
    Column::new(name, ColumnKind::Binary)
}

const fn list(name: &'static str, item: &'static ColumnKind) -> Column {
    Column::new(name, ColumnKind::List(item))
}

/// A column that may be left out when writing.
const fn optional(column: Column) -> Column {
    Column::optional(column.name, column.kind)
}

const SEQ_COLUMN: Column = Column::optional("seq", ColumnKind::Int64).in_order(Order::Counting);
const KEYS_COLUMN: Column = Column::optional("keys", ColumnKind::List(&ColumnKind::Binary));

const TREE: ColumnKind = ColumnKind::Struct(&[binary("tree_hash"), uint("length")]);
const HEAD: ColumnKind = ColumnKind::Struct(&[binary("key"), uint("length")]);
const REFERENCE: ColumnKind =
    ColumnKind::Struct(&[binary("key"), uint("length"), uint("seq"), uint("offset")]);

const fn draft(entry: &'static ColumnKind) -> [Column; 9] {
    [
        SEQ_COLUMN,
        uint("version"),
        uint("checkpointer"),
        Column::optional("checkpoint", TREE),
        list("clock", entry),
        uint("abi"),
        uint("batch"),
        binary("value"),
        KEYS_COLUMN,
    ]
}

const DRAFT: &[Column] = &draft(&HEAD);
const DRAFT_11: &[Column] = &draft(&REFERENCE);

const CHECKPOINTER_KIND: ColumnKind =
    ColumnKind::Struct(&[uint("checkpointer"), binary("signature"), uint("length")]);
const CHECKPOINT_KIND: ColumnKind = ColumnKind::Struct(&[
    Column::new("system", CHECKPOINTER_KIND),
    Column::new("encryption", CHECKPOINTER_KIND),
    list("user", &CHECKPOINTER_KIND),
]);
const DIGEST_KIND: ColumnKind = ColumnKind::Struct(&[uint("pointer"), binary("key")]);
const VIEW: ColumnKind = ColumnKind::Struct(&[uint("view"), list("blocks", &ColumnKind::UInt64)]);
const TRACE_KIND: ColumnKind = ColumnKind::Struct(&[
    list("system", &ColumnKind::UInt64),
    list("encryption", &ColumnKind::UInt64),
    list("user", &VIEW),
]);

const AUTOBASE: &[Column] = &[
    SEQ_COLUMN,
    uint("version"),
    optional(uint("checkpointer")),
    Column::optional("checkpoint", CHECKPOINT_KIND),
    list("clock", &HEAD),
    optional(uint("abi")),
    uint("batch"),
    optional(binary("value")),
    KEYS_COLUMN,
    optional(uint("max_supported_version")),
    Column::optional("optimistic", ColumnKind::Boolean),
    Column::optional("digest", DIGEST_KIND),
    Column::optional("trace", TRACE_KIND),
    optional(binary("extra")),
    optional(uint("flags")),
];
