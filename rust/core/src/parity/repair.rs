//! The bytes that a repair writes (rule 18).

use super::bytes::{Files, PIECE_BYTES};
use super::change::Change;
use super::encode::Encoding;
use super::judge::JudgedBand;
use super::ledger::{Content, FileKind, SidecarKind};
use super::report::{Inspection, Options, Report};
use crate::error::Result;

/// Gives the changes that repair a file and its sidecar, and reports what was damaged. If the report is a refusal,
/// there are no changes.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if bytes cannot be read; errors of `give`. What was given until then is right.
pub fn repair(
    files: Files<'_>,
    options: Options,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<Report> {
    let inspection = Inspection::new(&files, options)?;
    if inspection.refused.is_some() {
        return inspection.report(&mut |_, _| Ok(()));
    }
    let gaps = inspection.gaps();
    let keeps_all = gaps.iter().any(|span| span.kind == FileKind::Unverified);
    let mut encoding = None;
    inspection.report(&mut |range, band| {
        if let Some(band) = band {
            give_blocks(band, give)?;
            if band.kind == SidecarKind::Repaired {
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
    band.runs(&mut |range, kind| {
        if kind != FileKind::Repaired {
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
        give,
    )
}
