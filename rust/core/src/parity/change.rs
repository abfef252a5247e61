//! What becomes of a file and its sidecar, in the order of the sidecar.

use crate::error::{Error, Result};
use crate::saturating::saturating_usize;

/// A change to a file or its sidecar. Those of the sidecar come in its order and make up the whole new sidecar.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// These bytes belong at this offset of the file. Where that is after its end, the file grows, with zeros between.
    File {
        /// The place of the first byte.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The sidecar goes on with these bytes of the old one.
    Kept {
        /// The first byte.
        start: u64,
        /// The offset after the last byte.
        end: u64,
    },
    /// The sidecar goes on with this head of a new frame. In a frame that is appended, heads are written last (rule 17).
    Head(&'a [u8]),
    /// The sidecar goes on with these new bytes.
    New(&'a [u8]),
}

impl Change<'_> {
    /// Makes the change to a file in memory. Changes of the sidecar have no effect.
    ///
    /// # Errors
    /// [`Error::Usage`] if the offset is too large for a buffer.
    pub fn apply_to_file(&self, file: &mut Vec<u8>) -> Result<()> {
        let Self::File { offset, bytes } = self else {
            return Ok(());
        };
        let start = saturating_usize(*offset);
        let end = start
            .checked_add(bytes.len())
            .filter(|end| isize::try_from(*end).is_ok());
        let Some(end) = end else {
            return Err(Error::Usage(format!(
                "expected an offset in a buffer, found {offset}"
            )));
        };
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(target) = file.get_mut(start..end) {
            target.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Adds to a new sidecar in memory. `old` is the sidecar as it was. Changes of the file have no effect.
    pub fn append_to_sidecar(&self, old: &[u8], new: &mut Vec<u8>) {
        match self {
            Self::File { .. } => {}
            Self::Kept { start, end } => {
                let rest = old.get(saturating_usize(*start)..).unwrap_or_default();
                let len = saturating_usize(end.saturating_sub(*start));
                new.extend_from_slice(rest.get(..len).unwrap_or(rest));
            }
            Self::Head(bytes) | Self::New(bytes) => new.extend_from_slice(bytes),
        }
    }
}
