//! The bytes that a repair writes (rule 18).

use super::bytes::{Files, PIECE_BYTES};
use super::encode::Encoding;
use super::judge::{BlockState, FrameState, JudgedBand};
use super::ledger::{Content, FileKind};
use super::report::{Inspection, Options, Report};
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
            Self::New(bytes) => new.extend_from_slice(bytes),
        }
    }
}

/// Gives the changes that repair a file and its sidecar, and reports what was damaged. If the report is a refusal,
/// there are no changes.
///
/// # Errors
/// [`Error::Io`] if bytes cannot be read; errors of `give`. What was given until then is right.
pub fn repair(
    files: Files<'_>,
    options: Options,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<Report> {
    let inspection = Inspection::new(&files, options)?;
    if inspection.refused.is_some() {
        return inspection.report(&mut |_, _| Ok(()));
    }
    let keeps_all = inspection
        .gaps()
        .iter()
        .any(|span| span.kind == FileKind::Unverified);
    let mut encoding = None;
    inspection.report(&mut |range, band| {
        if let Some(band) = band {
            give_blocks(band, give)?;
            if band.state == FrameState::Repaired {
                let encoding = encoding.get_or_insert_with(|| Encoding::new(band.current.set));
                return give_frame(band, encoding, give);
            }
        }
        let end = range.end.min(files.sidecar.len());
        match range.content {
            Content::Corrupt | Content::TornTail if !keeps_all => Ok(()),
            _ => give(Change::Kept {
                start: range.start,
                end,
            }),
        }
    })
}

/// Gives the repaired blocks of a band.
fn give_blocks(
    band: &JudgedBand<'_>,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<()> {
    let current = &band.current;
    let mut buffer = Vec::with_capacity(current.geometry.block_bytes.min(PIECE_BYTES));
    band.runs(&mut |range, state| {
        if state != BlockState::Repaired {
            return Ok(());
        }
        buffer.resize(range.len(), 0);
        let start = current.band_start;
        band.known
            .read(current.files, start, range.start, &mut buffer)?;
        give(Change::File {
            offset: start + range.start as u64,
            bytes: &buffer,
        })
    })
}

/// Gives the frame of a band, encoded anew.
fn give_frame(
    band: &JudgedBand<'_>,
    encoding: &mut Encoding,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<()> {
    let current = &band.current;
    let head = current.frame.head(current.set, false);
    encoding.frame(
        &head,
        &mut |start, buffer| {
            band.known
                .read(current.files, current.band_start, start, buffer)
        },
        &mut |bytes| give(Change::New(bytes)),
    )
}
