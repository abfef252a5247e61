//! Finds where a file's data ends and its zeros begin.

use super::{Source, Window};
use crate::error::Result;
use crate::saturating::saturating_usize;

const PIECE_BYTES: usize = 1 << 20;

/// The offset after the last byte that is not zero. Reads backwards from the end, piece by piece, and calls `poll`
/// before each.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), and those of `poll`.
pub(crate) fn data_end(source: &dyn Source, poll: impl FnMut() -> Result<()>) -> Result<u64> {
    data_end_after(source, 0, poll)
}

/// The same, without looking at what is before `first`; `first` if all bytes from there on are zero.
///
/// # Errors
/// As [`data_end`].
pub(crate) fn data_end_after(
    source: &dyn Source,
    first: u64,
    mut poll: impl FnMut() -> Result<()>,
) -> Result<u64> {
    let mut window = Window::default();
    let mut end = source.len();
    while end > first {
        poll()?;
        let piece = saturating_usize(end - first).min(PIECE_BYTES);
        let start = end - piece as u64;
        let bytes = window.exact(source, start, piece, piece)?;
        if let Some(last) = last_nonzero(bytes) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(first)
}

fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 4096;
    let mut end = bytes.len();
    for block in bytes.rchunks(BLOCK) {
        let start = end - block.len();
        // Folding uses whole vectors. Only the one block with a nonzero byte is searched byte by byte.
        if block.iter().fold(0, |all, byte| all | byte) != 0 {
            return block
                .iter()
                .rposition(|byte| *byte != 0)
                .map(|place| start + place);
        }
        end = start;
    }
    None
}
