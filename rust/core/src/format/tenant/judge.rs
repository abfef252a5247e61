//! The verdicts: rule 22 on blocks (version 2), and rule 24 on partitions (version 1). Each check is made only
//! here, in the order of the rules: first where something would be, then what it is, then whether it is in order.

use std::cmp::Ordering;

use super::front::Front;
use super::layout::{Decoder, Name, Shape};
use super::toc::Entry;
use crate::error::Result;
use crate::ledger::Cause;
use crate::source::Source;

/// Why what an entry names is not good, with the numbers that an error needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The offset is out of bounds: before where the first block can begin, or after the end of the file.
    Offset { first: u64, len: u64 },
    /// The offset, or partition and tenant, do not ascend. Version 1: or the tenants within the partition.
    Order,
    /// Version 1: the partition's ID does not ascend.
    Id,
    /// It ends after the end of the file, which has this many bytes left.
    Beyond { left: u64 },
    /// Version 1: the file ends inside the number of tenants.
    Cut { left: u64 },
    /// A count or length in it leads past its end.
    Lengths,
    /// It ends where a further message should begin, or bytes are left over.
    Count,
    /// The CRC-32 in the entry, and the computed one.
    Checksum { stored: u32, computed: u32 },
    /// What is there is not what the entry says.
    Disagrees,
    /// The search ended before.
    Unsearched,
}

impl Fault {
    pub(super) const fn cause(self) -> Cause {
        match self {
            Self::Offset { .. } => Cause::OffsetOutOfBounds,
            Self::Order | Self::Id => Cause::OutOfOrder,
            Self::Beyond { .. } | Self::Lengths => Cause::LengthOutOfBounds,
            Self::Cut { .. } => Cause::TruncatedHeader,
            Self::Count => Cause::CountMismatch,
            Self::Checksum { .. } => Cause::ChecksumMismatch,
            Self::Disagrees => Cause::IndexDisagrees,
            Self::Unsearched => Cause::SearchLimit,
        }
    }

    /// The fault of an entry of which only the cause was stored. `crc` returns the CRC-32 of its block, and is
    /// called only for a mismatch.
    pub(super) fn again(
        cause: Cause,
        front: &Front,
        entry: &Entry,
        crc: impl FnOnce() -> Result<u32>,
    ) -> Result<Self> {
        Ok(match cause {
            Cause::OffsetOutOfBounds => Self::offset(front),
            Cause::OutOfOrder => Self::Order,
            Cause::LengthOutOfBounds => beyond(front, entry),
            Cause::TruncatedHeader => Self::Cut {
                left: left(front, entry),
            },
            Cause::CountMismatch => Self::Count,
            Cause::ChecksumMismatch => Self::Checksum {
                stored: entry.crc,
                computed: crc()?,
            },
            Cause::SearchLimit => Self::Unsearched,
            _ => Self::Disagrees,
        })
    }

    fn offset(front: &Front) -> Self {
        Self::Offset {
            first: front.first_block(),
            len: front.len,
        }
    }
}

type Checked<T> = std::result::Result<T, Fault>;

/// How much of the file is left from the entry's offset on.
const fn left(front: &Front, entry: &Entry) -> u64 {
    front.len.saturating_sub(entry.fields.offset)
}

/// Whether the offset in the entry is in bounds.
fn bounds(front: &Front, entry: &Entry) -> Checked<()> {
    match front.in_bounds(entry.offset) {
        true => Ok(()),
        false => Err(Fault::offset(front)),
    }
}

/// Whether what the entry names ends within the file.
const fn length(front: &Front, entry: &Entry) -> Checked<()> {
    match entry.fields.block_end() <= front.len {
        true => Ok(()),
        false => Err(Fault::Beyond {
            left: left(front, entry),
        }),
    }
}

/// Why what the entry names does not decode: it ends after the end of the file, or a length in it leads there.
const fn beyond(front: &Front, entry: &Entry) -> Fault {
    match length(front, entry) {
        Err(fault) => fault,
        Ok(()) => Fault::Lengths,
    }
}

/// Rule 22, before anything is hashed: whether an entry's block can be at the entry's offset, after `good_end`.
pub(super) fn block_place(front: &Front, entry: &Entry, good_end: u64) -> Checked<()> {
    bounds(front, entry)?;
    if entry.offset < good_end {
        return Err(Fault::Order);
    }
    length(front, entry)
}

/// Rule 22: the verdict on a block with this CRC-32, which includes its partition's ID. It was decoded from all of
/// its bytes.
pub(super) fn block(entry: &Entry, crc: u32, decoder: &Decoder) -> Checked<Shape> {
    if crc != entry.crc {
        return Err(Fault::Checksum {
            stored: entry.crc,
            computed: crc,
        });
    }
    if !decoder.is_done() {
        return Err(match decoder.is_between() {
            true => Fault::Count,
            false => Fault::Lengths,
        });
    }
    match decoder.offset() == entry.length {
        true => Ok(decoder.shape()),
        false => Err(Fault::Count),
    }
}

/// Rule 23: whether a block proves an entry without a checksum of the table: its tenant ID is as long as the
/// entry's.
pub(super) fn block_proves(front: &Front, entry: &Entry, shape: &Shape) -> bool {
    front.is_sound() || shape.tenant_len == entry.tenant.len
}

/// Rule 22, last check: whether (partition, tenant) is greater than the last good block's, if there is one.
pub(super) fn block_ascends(
    source: &dyn Source,
    last: Option<&(u32, Name)>,
    partition: u32,
    tenant: &Name,
) -> Result<bool> {
    let Some((last, last_tenant)) = last else {
        return Ok(true);
    };
    Ok(match partition.cmp(last) {
        Ordering::Equal => last_tenant.compare(source, tenant)? == Ordering::Less,
        order => order == Ordering::Greater,
    })
}

/// A good partition of version 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoodPartition {
    pub(super) partition: u32,
    /// The offset of its number of tenants.
    pub(super) at: u64,
    /// How many tenants are good: fewer than it states if the file was cut inside it.
    pub(super) tenants: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
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
    if let Err(fault) = bounds(front, entry) {
        return Ok(Err(fault));
    }
    if !id_ascends()? {
        return Ok(Err(Fault::Id));
    }
    Ok(match entry.offset < good_end {
        true => Err(Fault::Order),
        false => Ok(()),
    })
}

/// Rule 24: the number of tenants of a partition that was decoded at its entry's offset, and where it ends.
pub(super) fn partition(front: &Front, entry: &Entry, decoded: Partition) -> Checked<(u32, u64)> {
    match decoded {
        Partition::Unaffordable => Err(Fault::Unsearched),
        Partition::Truncated => Err(Fault::Cut {
            left: left(front, entry),
        }),
        Partition::Beyond { .. } => Err(beyond(front, entry)),
        Partition::Whole { ascends: false, .. } => Err(Fault::Order),
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
    length(front, entry).is_err() && front.last_within == Some(entry.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tenant::layout::TocEntry;
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
        let mut decoder = Decoder::new();
        decoder.feed(bytes);
        block(&entry, computed, &decoder)
    }

    #[test]
    fn a_block_is_its_checksum_then_its_lengths() {
        let sound = [0, 0, 0, 1, 0, 0, 0, 1, b't', 0, 0, 0, 2, b'h', b'i'];
        let shape = judged(&sound, 0);
        assert_eq!(shape.map(|shape| (shape.messages, shape.len)), Ok((1, 15)));
        let one_more = [&sound[..], b"!"].concat();
        for (bytes, fault) in [
            (&one_more[..], Fault::Count),
            (&sound[..9], Fault::Count),
            (&sound[..8], Fault::Lengths),
            (&sound[..12], Fault::Lengths),
            (&sound[..14], Fault::Lengths),
            (&[][..], Fault::Lengths),
        ] {
            assert_eq!(judged(bytes, 0), Err(fault), "{bytes:?}");
            let cause = judged(bytes, 1).map_err(Fault::cause);
            assert_eq!(cause, Err(Cause::ChecksumMismatch), "{bytes:?}");
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
