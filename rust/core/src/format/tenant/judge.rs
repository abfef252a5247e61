//! The verdicts: rule 22 on blocks (version 2), and rule 24 on partitions (version 1). Each check is made only
//! here, in the order of the rules: first where something would be, then what it is, then whether it is in order.

use super::front::Front;
use super::layout::{Decoder, Shape};
use super::toc::Entry;
use crate::error::Result;
use crate::ledger::Cause;

/// A good value, or the cause why it is damage.
type Checked<T> = std::result::Result<T, Cause>;

/// Whether what the entry names ends after the end of the file.
pub(super) const fn is_beyond(front: &Front, entry: &Entry) -> bool {
    entry.fields.block_end() > front.len
}

/// Rule 22, before anything is hashed: whether an entry's block can be at the entry's offset, after `good_end`.
pub(super) fn block_place(front: &Front, entry: &Entry, good_end: u64) -> Checked<()> {
    if !front.in_bounds(entry.offset) {
        return Err(Cause::OffsetOutOfBounds);
    }
    if entry.offset < good_end {
        return Err(Cause::OutOfOrder);
    }
    match is_beyond(front, entry) {
        true => Err(Cause::LengthOutOfBounds),
        false => Ok(()),
    }
}

/// Rule 22: the verdict on a block with this CRC-32, which includes its partition's ID. It was decoded from all of
/// its bytes.
pub(super) fn block(entry: &Entry, crc: u32, decoder: &Decoder) -> Checked<Shape> {
    if crc != entry.crc {
        return Err(Cause::ChecksumMismatch);
    }
    if !decoder.is_done() && !decoder.is_between() {
        return Err(Cause::LengthOutOfBounds);
    }
    match decoder.is_done() && decoder.offset() == entry.length {
        true => Ok(decoder.shape()),
        false => Err(Cause::CountMismatch),
    }
}

/// Rule 23: whether a block proves an entry without a checksum of the table: its tenant ID is as long as the
/// entry's.
pub(super) fn block_proves(front: &Front, entry: &Entry, shape: &Shape) -> bool {
    front.is_sound() || shape.tenant_len == entry.tenant.len
}

/// The result of decoding at a place where a partition might begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Partition {
    /// It decodes: this many tenants, up to this offset, and whether they ascend.
    Whole {
        tenants: u32,
        end: u64,
        ascends: bool,
    },
    /// The file ends inside the number of tenants.
    Truncated,
    /// It extends past the end of the file: this many tenants are whole and ascend, up to this offset.
    Beyond { tenants: u32, end: u64 },
    /// The budget did not suffice.
    Unaffordable,
}

/// Rule 24, before anything is decoded: whether an entry's partition can be at the entry's offset, after
/// `good_end`. `id_ascends` is called only if the offset is in bounds.
pub(super) fn partition_place(
    front: &Front,
    entry: &Entry,
    good_end: u64,
    id_ascends: impl FnOnce() -> Result<bool>,
) -> Result<Checked<()>> {
    if !front.in_bounds(entry.offset) {
        return Ok(Err(Cause::OffsetOutOfBounds));
    }
    Ok(match id_ascends()? && entry.offset >= good_end {
        true => Ok(()),
        false => Err(Cause::OutOfOrder),
    })
}

/// Rule 24: the number of tenants of a partition that was decoded at its entry's offset, and where it ends.
pub(super) const fn partition(decoded: Partition) -> Checked<(u32, u64)> {
    match decoded {
        Partition::Unaffordable => Err(Cause::SearchLimit),
        Partition::Truncated => Err(Cause::TruncatedHeader),
        Partition::Beyond { .. } => Err(Cause::LengthOutOfBounds),
        Partition::Whole { ascends: false, .. } => Err(Cause::OutOfOrder),
        Partition::Whole { tenants, end, .. } => Ok((tenants, end)),
    }
}

/// Rule 24: whether a partition's ID is greater than the last good one's, and does not exceed the ID of the next
/// entry that is evidence.
pub(super) fn id_ascends(id: u32, last: Option<u32>, next: Option<u32>) -> bool {
    let after = |id: u32| last.is_none_or(|last| id > last);
    after(id) && next.is_none_or(|next| next >= id || !after(next))
}

/// Rule 25: whether the file ends inside the partition that an entry names.
pub(super) fn is_cut(front: &Front, entry: &Entry) -> bool {
    is_beyond(front, entry) && front.last_within == Some(entry.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tenant::layout::{Name, TocEntry};
    use crate::format::tenant::probe::block_crc_of;

    /// The verdict on a block of these bytes, for an entry whose CRC-32 differs by this much.
    fn judged(bytes: &[u8], other_crc: u32) -> Checked<Shape> {
        let computed = block_crc_of(7, bytes);
        let entry = Entry {
            at: 10,
            end: 42,
            tenant: Name::empty(),
            fields: TocEntry {
                partition: 7,
                messages: 1,
                offset: 100,
                length: bytes.len() as u64,
                crc: computed ^ other_crc,
                ..TocEntry::default()
            },
        };
        let mut decoder = Decoder::default();
        decoder.feed(bytes);
        block(&entry, computed, &decoder)
    }

    #[test]
    fn a_block_is_its_checksum_then_its_lengths() {
        let sound = [0, 0, 0, 1, 0, 0, 0, 1, b't', 0, 0, 0, 2, b'h', b'i'];
        let shape = judged(&sound, 0);
        assert_eq!(shape.map(|shape| (shape.messages, shape.len)), Ok((1, 15)));
        let one_more = [&sound[..], b"!"].concat();
        for (bytes, cause) in [
            (&one_more[..], Cause::CountMismatch),
            (&sound[..9], Cause::CountMismatch),
            (&sound[..8], Cause::LengthOutOfBounds),
            (&sound[..12], Cause::LengthOutOfBounds),
            (&sound[..14], Cause::LengthOutOfBounds),
            (&[][..], Cause::LengthOutOfBounds),
        ] {
            assert_eq!(judged(bytes, 0), Err(cause), "{bytes:?}");
            let mismatch = Err(Cause::ChecksumMismatch);
            assert_eq!(judged(bytes, 1), mismatch, "{bytes:?}");
        }
    }

    #[test]
    fn an_id_is_in_order_unless_it_is_in_the_way_of_the_next_one() {
        for (id, last, next, ascends) in [
            (5, None, None, true),
            (5, Some(4), None, true),
            (5, Some(5), None, false),
            (5, Some(3), Some(6), true),
            (5, Some(3), Some(5), true),
            (5, Some(3), Some(4), false),
            (5, Some(3), Some(3), true),
            (5, None, Some(4), false),
        ] {
            let found = id_ascends(id, last, next);
            assert_eq!(found, ascends, "{id} after {last:?}, before {next:?}");
        }
    }
}
