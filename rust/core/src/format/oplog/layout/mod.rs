//! Bytes to fields and back: the parts that the messages of all dialects are made of.

pub(super) mod columns;
pub(super) mod compact;
pub(super) mod fields;
