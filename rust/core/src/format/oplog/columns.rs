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

const fn without(column: Column) -> Column {
    Column::optional(column.name, column.kind)
}

/// The columns that all dialects have.
const fn shared(checkpoint: &'static [Column], clock: &'static ColumnKind) -> [Column; 9] {
    [
        Column::optional("seq", ColumnKind::Int64),
        uint("version"),
        uint("checkpointer"),
        Column::optional("checkpoint", ColumnKind::Struct(checkpoint)),
        Column::new("clock", ColumnKind::List(clock)),
        uint("abi"),
        uint("batch"),
        binary("value"),
        Column::optional("keys", ColumnKind::List(&ColumnKind::Binary)),
    ]
}

const DRAFT: &[Column] = &shared(TREE, &HEAD);
const DRAFT_11: &[Column] = &shared(TREE, &REFERENCE);
const AUTOBASE: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i] = shared(CHECKPOINT, &HEAD);
    [
        a,
        b,
        without(c),
        d,
        e,
        without(f),
        g,
        without(h),
        i,
        without(uint("max_supported_version")),
        Column::optional("optimistic", ColumnKind::Boolean),
        Column::optional("digest", ColumnKind::Struct(DIGEST)),
        Column::optional("trace", ColumnKind::Struct(TRACE)),
        without(binary("extra")),
        without(uint("flags")),
    ]
};

const TREE: &[Column] = &[binary("tree_hash"), uint("length")];
const HEAD: ColumnKind = ColumnKind::Struct(&[binary("key"), uint("length")]);
const REFERENCE: ColumnKind =
    ColumnKind::Struct(&[binary("key"), uint("length"), uint("seq"), uint("offset")]);

const UINTS: ColumnKind = ColumnKind::List(&ColumnKind::UInt64);
const CHECKPOINTER: ColumnKind =
    ColumnKind::Struct(&[uint("checkpointer"), binary("signature"), uint("length")]);
const CHECKPOINT: &[Column] = &[
    Column::new("system", CHECKPOINTER),
    Column::new("encryption", CHECKPOINTER),
    Column::new("user", ColumnKind::List(&CHECKPOINTER)),
];
const DIGEST: &[Column] = &[uint("pointer"), binary("key")];
const TRACE: &[Column] = &[
    Column::new("system", UINTS),
    Column::new("encryption", UINTS),
    Column::new("user", ColumnKind::List(&VIEW)),
];
const VIEW: ColumnKind = ColumnKind::Struct(&[uint("view"), Column::new("blocks", UINTS)]);
