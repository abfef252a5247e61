//! Encoding frames, and the changes that a file and its sidecar get, in the order of the sidecar.

use parity_code::{Matrix, Multiplier};

use super::bytes::{BlockHasher, PIECE_BYTES};
use super::layout::{Geometry, Head, Set};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::source::Source;

/// Gives the bytes of a new sidecar for the first `end` bytes of a file, in order: a frame for each band (rule 14). Each
/// byte of the file is read once.
///
/// # Errors
/// [`Error::Usage`] if the file has fewer bytes; [`Error::Io`] if they cannot be read; errors of `give`.
pub fn protect(
    file: &dyn Source,
    end: u64,
    set: Set,
    give: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if end > file.len() {
        return Err(Error::Usage(format!(
            "expected a file of at least {end} bytes to protect, found {}",
            file.len()
        )));
    }
    let mut encoding = Encoding::default();
    let mut band = 0;
    while let Some(head) = head(set, band, end) {
        let head = Head {
            covered: end,
            ..head
        };
        encoding.frame(
            &head,
            &mut reading(file, &head),
            &mut |change| match change {
                Change::Head(bytes) | Change::New(bytes) => give(bytes),
                Change::File { .. } | Change::Kept { .. } => Ok(()),
            },
        )?;
        band += 1;
    }
    file.confirm()
}

/// The head of a frame that covers a band as far as `end`; C is where it ends. `None` if `end` is not after its start.
pub(super) fn head(set: Set, band: u64, end: u64) -> Option<Head> {
    let start = set.band_start(band);
    let len = end.checked_sub(start)?.min(set.parameters.band_bytes());
    let len = u32::try_from(len).ok().filter(|len| *len > 0)?;
    Some(Head {
        set,
        is_second: false,
        band,
        len,
        covered: start + u64::from(len),
    })
}

/// Reads a band from a file, for [`Encoding::frame`].
pub(super) fn reading(
    file: &dyn Source,
    head: &Head,
) -> impl FnMut(usize, &mut [u8]) -> Result<()> {
    let start = head.set.band_start(head.band);
    move |at, buffer| file.read_exact_at(start + at as u64, buffer)
}

/// Encodes frames. Its memory is used again for each: new pages would take a sixth of the time.
#[derive(Default)]
pub(super) struct Encoding {
    buffer: Vec<u8>,
    parity: Vec<u8>,
}

impl Encoding {
    /// Gives the bytes of a frame. `read` fills a buffer with bytes of the band, from an offset within it on.
    pub(super) fn frame(
        &mut self,
        head: &Head,
        read: &mut dyn FnMut(usize, &mut [u8]) -> Result<()>,
        give: &mut dyn FnMut(Change<'_>) -> Result<()>,
    ) -> Result<()> {
        let (set, geometry) = (head.set, head.geometry());
        let matrix =
            Matrix::encoding(geometry.data, geometry.parity).or_bug("at most 256 points")?;
        // A block of each group: a column, and so each sum.
        let column_bytes = geometry.groups * geometry.block_bytes;
        let Self { buffer, parity } = self;
        parity.clear();
        parity.resize(geometry.parity_bytes(), 0);
        let mut sums: Vec<_> = parity.chunks_mut(column_bytes).collect();
        let mut hasher = BlockHasher::new(set, head.band);
        let mut table = Vec::with_capacity(geometry.entries());
        let piece = piece_blocks(&geometry);
        for first in (0..geometry.blocks).step_by(piece) {
            let end = (first + piece).min(geometry.blocks);
            let range = geometry.block(first).start..geometry.block(end - 1).end;
            // Zeroed for each piece only at the end, where the last block has padding.
            buffer.resize((end - first) * geometry.block_bytes, 0);
            let (bytes, padding) = buffer.split_at_mut(range.len());
            read(range.start, bytes)?;
            padding.fill(0);
            table.extend(hasher.hash(first, buffer, geometry.block_bytes));
            let columns: Vec<_> = buffer.chunks(column_bytes).collect();
            Multiplier::new().add(&matrix, first / geometry.groups, &columns, &mut sums);
        }
        set.mask(parity);
        table.extend(hasher.hash(geometry.blocks, parity, geometry.block_bytes));
        let table: Vec<u8> = table.into_iter().flat_map(u64::to_be_bytes).collect();
        let second = Head {
            is_second: true,
            ..*head
        };
        give(Change::Head(&head.bytes()))?;
        give(Change::New(&table))?;
        give(Change::New(parity))?;
        give(Change::Head(&second.bytes()))?;
        give(Change::New(&table))
    }
}

/// How many blocks are read, hashed and encoded at a time: about a piece, and whole columns. Eight columns at once are
/// encoded faster than one, so large columns make large pieces.
fn piece_blocks(geometry: &Geometry) -> usize {
    const COLUMNS: usize = 8;
    let column_bytes = geometry.groups * geometry.block_bytes;
    (PIECE_BYTES / column_bytes).max(COLUMNS) * geometry.groups
}

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
