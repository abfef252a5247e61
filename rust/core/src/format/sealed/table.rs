//! A table from times to the entries that have them, so that a look-up begins next to what it looks for.

use super::front::Front;
use super::index::each_piece;
use super::search::Search;
use super::{Entry, UUID_BYTES};
use crate::error::Result;
use crate::format::Options;
use crate::source::Source;
use crate::uuid6;

/// So many entries share a place of the table where times are spread evenly and memory allows.
const ENTRIES_PER_PLACE: u64 = 4;
const PLACE_BYTES: u64 = size_of::<u32>() as u64;

/// For each stretch of time, all of one length, the number of the first entry that is not earlier: all that stands between
/// two of them has one of these times. Only made of an index whose UUIDs ascend, so that who searches between two places finds
/// what he would have found among all.
#[derive(Debug)]
pub(super) struct Table {
    /// The time of the first entry, in ticks.
    first: u64,
    /// A stretch is two to the power of this long, in ticks.
    shift: u32,
    /// One more than there are stretches; the last is the number of entries.
    starts: Vec<u32>,
}

impl Table {
    /// Reads the index once. `None` where its UUIDs do not ascend, where there are too few or too many entries, or too little
    /// memory is allowed.
    pub(super) fn build(
        source: &dyn Source,
        options: &Options,
        front: &Front,
        [first, last]: [u64; 2],
    ) -> Result<Option<Self>> {
        let allowed = options.lookup_table_bytes as u64 / PLACE_BYTES;
        let most = (front.entries / ENTRIES_PER_PLACE).min(allowed.saturating_sub(2));
        let (Some(whole), Ok(count)) = (last.checked_sub(first), u32::try_from(front.entries))
        else {
            return Ok(None);
        };
        if most < 2 {
            return Ok(None);
        }
        let mut shift = 0;
        while whole >> shift >= most {
            shift += 1;
        }
        // As many as the memory that was allowed holds, and as the index has bytes for.
        let Ok(places) = usize::try_from((whole >> shift) + 2) else {
            return Ok(None);
        };
        let mut starts: Vec<u32> = Vec::with_capacity(places);
        let (mut number, mut before, mut ascends) = (0_u32, None::<u128>, true);
        each_piece(source, options, 0, front.entry_at(front.entries), |bytes| {
            for entry in bytes.as_chunks().0.iter().map(Entry::parse) {
                let uuid = u128::from_be_bytes(entry.uuid);
                ascends &= before.is_none_or(|before| before < uuid) && uuid6::is_v6(&entry.uuid);
                before = Some(uuid);
                let Some(place) = uuid6::ticks(&entry.uuid)
                    .checked_sub(first)
                    .and_then(|time| usize::try_from(time >> shift).ok())
                    .filter(|place| ascends && *place < places)
                else {
                    ascends = false;
                    break;
                };
                if place >= starts.len() {
                    starts.resize(place + 1, number);
                }
                number += 1;
            }
            ascends
        })?;
        if !ascends || number != count {
            return Ok(None);
        }
        starts.resize(places, count);
        Ok(Some(Self {
            first,
            shift,
            starts,
        }))
    }

    /// Where the table is to be looked at for this UUID; `None` where it does not help.
    fn place(&self, uuid: &[u8; UUID_BYTES]) -> Option<usize> {
        // Times order only UUIDs of one version.
        if uuid[6] >> 4 != 6 {
            return None;
        }
        let time = uuid6::ticks(uuid).checked_sub(self.first)?;
        usize::try_from(time >> self.shift).ok()
    }

    /// A search for this UUID among the entries that can have its time; `None` where the table does not say.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<Search> {
        let place = self.place(uuid)?;
        let (start, end) = (self.starts.get(place)?, self.starts.get(place + 1)?);
        let begins = self.first + ((place as u64) << self.shift);
        let times = begins..begins.saturating_add((1 << self.shift) - 1);
        Some(Search::new(
            *uuid,
            u64::from(*start)..u64::from(*end),
            times,
        ))
    }

    /// Asks for the part of the table that [`search`](Self::search) will look at.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some(place) = self.place(uuid) {
            crate::prefetch::prefetch_item(&self.starts, place);
        }
    }
}
