//! The one conversion of a file's lengths to lengths in memory that may cut them off.

/// So many bytes as a length in memory; what no memory can hold is `usize::MAX`, which nothing that is read is as long as.
pub(crate) fn saturating_usize(bytes: impl TryInto<usize>) -> usize {
    bytes.try_into().unwrap_or(usize::MAX)
}
