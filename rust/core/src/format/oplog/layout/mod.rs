//! Bytes to fields and back: what the messages of all dialects are made of.

pub(super) mod columns;
pub(super) mod compact;
pub(super) mod fields;
pub(super) mod heads;
