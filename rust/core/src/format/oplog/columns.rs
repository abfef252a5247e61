//! What the messages of each dialect have.

use crate::format::{Column, ColumnKind, Dialect};

/// The columns of a dialect, in the order in which they are shown and written.
pub(super) const fn columns(dialect: Dialect) -> &'static [Column] {
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

/// Messages can be written without this column.
const fn optional(column: Column) -> Column {
    Column::optional(column.name, column.kind)
}

const SEQ: Column = Column::optional("seq", ColumnKind::Int64);
const KEYS: Column = Column::optional("keys", ColumnKind::List(&ColumnKind::Binary));

const TREE: ColumnKind = ColumnKind::Struct(&[binary("tree_hash"), uint("length")]);
const HEAD: ColumnKind = ColumnKind::Struct(&[binary("key"), uint("length")]);
const REFERENCE: ColumnKind =
    ColumnKind::Struct(&[binary("key"), uint("length"), uint("seq"), uint("offset")]);

const fn draft(entry: &'static ColumnKind) -> [Column; 9] {
    [
        SEQ,
        uint("version"),
        uint("checkpointer"),
        Column::optional("checkpoint", TREE),
        list("clock", entry),
        uint("abi"),
        uint("batch"),
        binary("value"),
        KEYS,
    ]
}

const DRAFT: &[Column] = &draft(&HEAD);
const DRAFT_11: &[Column] = &draft(&REFERENCE);

const CHECKPOINTER: ColumnKind =
    ColumnKind::Struct(&[uint("checkpointer"), binary("signature"), uint("length")]);
const CHECKPOINT: ColumnKind = ColumnKind::Struct(&[
    Column::new("system", CHECKPOINTER),
    Column::new("encryption", CHECKPOINTER),
    list("user", &CHECKPOINTER),
]);
const DIGEST: ColumnKind = ColumnKind::Struct(&[uint("pointer"), binary("key")]);
const VIEW: ColumnKind = ColumnKind::Struct(&[uint("view"), list("blocks", &ColumnKind::UInt64)]);
const TRACE: ColumnKind = ColumnKind::Struct(&[
    list("system", &ColumnKind::UInt64),
    list("encryption", &ColumnKind::UInt64),
    list("user", &VIEW),
]);

const AUTOBASE: &[Column] = &[
    SEQ,
    uint("version"),
    optional(uint("checkpointer")),
    Column::optional("checkpoint", CHECKPOINT),
    list("clock", &HEAD),
    optional(uint("abi")),
    uint("batch"),
    optional(binary("value")),
    KEYS,
    optional(uint("max_supported_version")),
    Column::optional("optimistic", ColumnKind::Boolean),
    Column::optional("digest", DIGEST),
    Column::optional("trace", TRACE),
    optional(binary("extra")),
    optional(uint("flags")),
];
