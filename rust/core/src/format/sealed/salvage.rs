//! Salvages the good messages of a damaged segment: writes a new index, the messages, and the checksums that
//! verified them. A segment that lacks some of its checksums gets none: they would make unproven bytes look
//! proven.

use super::front::TERMINATOR;
use super::layout::{ENTRY_BYTES, UUID_BYTES};
use super::open;
use super::trailer::Foot;
use crate::checksum::Incremental;
use crate::cursor::fields;
use crate::engine::Salvage;
use crate::engine::salvage::Entries;
use crate::error::Result;
use crate::output::Spool;
use crate::record::Checked;
use crate::walk::{Begin, Step, Walk};

/// What is spilled of a message: UUID, beginning, end, checksum.
type Spilled = ([u8; UUID_BYTES], u64, u64, u64);
/// How many bytes that is.
const SPILLED_BYTES: usize = UUID_BYTES + 3 * 8;
/// How much of the index is written at once: whole entries and checksums.
const PIECE_BYTES: usize = ENTRY_BYTES << 12;

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let mut walk = open::walk(salvage.source(), salvage.options(), Begin::Beginning)?;
    let front = *walk.scan().front();
    let (mut kept, mut count, mut first) = (salvage.aside()?, 0_u64, None);
    while walk.step()? == Step::More {
        let scan = walk.scan_mut();
        for message in &scan.messages {
            let (checksum, _) = scan.checker.reader.checksum(message.number)?;
            first.get_or_insert(message.position);
            count += 1;
            let out = kept.buffer();
            out.extend_from_slice(&message.uuid);
            for number in [message.position, message.end(), checksum] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            kept.flush_if_full()?;
        }
        salvage.surveyed(walk.offset())?;
    }
    let mut hasher = Incremental::new(&front.key);
    put_index(salvage, &mut kept, count, first, &mut hasher)?;
    let mut messages = Entries::new(&mut kept)?;
    while let Some(bytes) = messages.next()? {
        let (_, position, end, _): Spilled = fields::<_, SPILLED_BYTES>(&bytes);
        salvage.carry(position..end)?;
    }
    let is_verified = front.checked() == Checked::Checksum;
    let Some(trailer) = front.trailer.filter(|_| is_verified) else {
        return Ok(());
    };
    let is_whole = count == front.entries;
    let mut at = trailer.start;
    let mut put = |salvage: &mut Salvage<'_>, bytes: &[u8]| {
        let instead = Some(at).filter(|_| is_whole);
        at += bytes.len() as u64;
        salvage.put(bytes, instead)
    };
    let checksum = |(.., checksum): Spilled, out: &mut Vec<u8>| {
        out.extend_from_slice(&checksum.to_be_bytes());
    };
    each_piece(&mut kept, checksum, &[], |piece| {
        hasher.update(piece);
        put(salvage, piece)
    })?;
    let foot = Foot::new(&front.key, count, hasher.finish());
    put(salvage, &foot.to_bytes())
}

/// Writes entries and terminator. `first` is where the first message was.
fn put_index(
    salvage: &mut Salvage<'_>,
    kept: &mut Spool,
    count: u64,
    first: Option<u64>,
    hasher: &mut Incremental,
) -> Result<()> {
    let until = match first {
        Some(first) => first,
        None => salvage.source().len(),
    };
    let mut offset = (count + 1) * ENTRY_BYTES as u64;
    let entry = |(uuid, position, end, _): Spilled, out: &mut Vec<u8>| {
        out.extend_from_slice(&uuid);
        out.extend_from_slice(&offset.to_be_bytes());
        offset += end - position;
    };
    each_piece(kept, entry, &TERMINATOR, |piece| {
        hasher.update(piece);
        salvage.put_in_front(piece, until)
    })
}

/// Passes to `put`, in pieces, what `lay` adds for each message, and then `last`.
fn each_piece(
    kept: &mut Spool,
    mut lay: impl FnMut(Spilled, &mut Vec<u8>),
    last: &[u8],
    mut put: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (mut messages, mut piece) = (Entries::new(kept)?, Vec::new());
    while let Some(bytes) = messages.next()? {
        lay(fields::<_, SPILLED_BYTES>(&bytes), &mut piece);
        if piece.len() >= PIECE_BYTES {
            put(&piece)?;
            piece.clear();
        }
    }
    piece.extend_from_slice(last);
    put(&piece)
}
