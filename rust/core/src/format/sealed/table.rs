//! A table from times to the entries that have them, so that a look-up begins next to what it looks for.

use super::front::Front;
use super::index::each_piece;
use super::reader::read_array;
use super::search::Search;
use super::{Entry, UUID_BYTES};
use crate::error::Result;
use crate::format::Options;
use crate::prefetch::prefetch_item;
use crate::source::Source;
use crate::uuid6;

/// So many entries share a place of the table where times are spread evenly and memory allows.
const ENTRIES_PER_PLACE: u64 = 2;
const PLACE_BYTES: u64 = size_of::<u32>() as u64;
/// Of one entry in so many the offset is kept.
const ENTRIES_PER_OFFSET: u64 = 64;

/// For each stretch of time, all of one length, the number of the first entry that is not earlier: all that stands between
/// two of them has one of these times. Only made of an index whose UUIDs ascend, so that who searches between two places finds
/// what he would have found among all.
#[derive(Debug)]
pub(super) struct Table {
    /// The time of the first entry, in ticks.
    first: u64,
    /// How many stretches a tick is, times 2^64.
    scale: u64,
    /// How many ticks a stretch is long, rounded down.
    width: u64,
    /// One more than there are stretches; the last is the number of entries.
    starts: Vec<u32>,
    /// Where the messages of some entries begin, for guessing where those between them do; empty where memory does not allow.
    offsets: Vec<u64>,
}

impl Table {
    /// Reads the index once. `None` where its UUIDs do not ascend, where there are too few or too many entries, or too little
    /// memory is allowed.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn build(
        source: &dyn Source,
        options: &Options,
        front: &Front,
    ) -> Result<Option<Self>> {
        let entries = front.entries;
        let allowed = options.lookup_table_bytes as u64;
        let offset_bytes = entries.div_ceil(ENTRIES_PER_OFFSET) * size_of::<u64>() as u64;
        let has_offsets = offset_bytes <= allowed / 8;
        let left = allowed - if has_offsets { offset_bytes } else { 0 };
        let stretches = (entries / ENTRIES_PER_PLACE).min((left / PLACE_BYTES).saturating_sub(1));
        if front.unreadable.is_some() || stretches < 2 || u32::try_from(entries).is_err() {
            return Ok(None);
        }
        let time_of = |number| {
            let entry = Entry::parse(&read_array(source, front.entry_at(number))?);
            Ok(uuid6::ticks(&entry.uuid))
        };
        let (first, last) = (time_of(0)?, time_of(entries - 1)?);
        let Some(whole) = last.checked_sub(first) else {
            return Ok(None);
        };
        let stretches = stretches.min(whole + 1); // 60 bits: this does not overflow
        let mut filling = Filling {
            table: Self {
                first,
                scale: scale(stretches, whole + 1),
                width: (whole + 1) / stretches,
                starts: Vec::new(),
                offsets: Vec::new(),
            },
            places: usize::try_from(stretches + 1).unwrap_or(usize::MAX),
            has_offsets,
            number: 0,
            before: None,
        };
        // There are bytes for twice as many entries.
        filling.table.starts.reserve_exact(filling.places);
        let mut ascends = true;
        each_piece(source, options, 0, front.entry_at(entries), |bytes| {
            let mut entries = bytes.as_chunks().0.iter().map(Entry::parse);
            ascends = entries.all(|entry| filling.add(&entry).is_some());
            ascends
        })?;
        Ok(ascends.then(|| filling.finish()))
    }

    /// The place of a time; `None` in front of the first.
    fn place_of(&self, time: u64) -> Option<usize> {
        let since = time.checked_sub(self.first)?;
        let place = (u128::from(since) * u128::from(self.scale)) >> u64::BITS;
        usize::try_from(place).ok()
    }

    /// Where the table is to be looked at for this UUID; `None` where it does not help.
    fn place(&self, uuid: &[u8; UUID_BYTES]) -> Option<usize> {
        // Times order only UUIDs of one version.
        (uuid[6] >> 4 == 6).then(|| self.place_of(uuid6::ticks(uuid)))?
    }

    /// A search for this UUID among the entries that can have its time; `None` where the table does not say.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<Search> {
        let place = self.place(uuid)?;
        let (start, end) = (self.starts.get(place)?, self.starts.get(place + 1)?);
        let begins = self
            .first
            .saturating_add(self.width.saturating_mul(place as u64));
        let times = begins..begins.saturating_add(self.width);
        Some(Search::new(
            *uuid,
            u64::from(*start)..u64::from(*end),
            times,
        ))
    }

    /// Asks for the part of the table that [`search`](Self::search) will look at.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some(place) = self.place(uuid) {
            prefetch_item(&self.starts, place);
        }
    }

    /// About where the message of entry number `number` begins, in bytes from the start of the file: to ask for it before its
    /// entry is there, and for nothing else.
    pub(super) fn offset_near(&self, number: u64) -> Option<u64> {
        let place = usize::try_from(number / ENTRIES_PER_OFFSET).ok()?;
        let (from, to) = (self.offsets.get(place)?, self.offsets.get(place + 1)?);
        let step = to.checked_sub(*from)? / ENTRIES_PER_OFFSET;
        from.checked_add(step * (number % ENTRIES_PER_OFFSET))
    }
}

/// `stretches`, which are no more than `whole`, by `whole`, times 2^64: so little less that all below `whole` comes to less than
/// `stretches`.
fn scale(stretches: u64, whole: u64) -> u64 {
    let scale = (u128::from(stretches) << u64::BITS) / u128::from(whole);
    u64::try_from(scale).unwrap_or(u64::MAX)
}

/// A table that entries are added to.
struct Filling {
    table: Table,
    /// How many numbers the table is to have.
    places: usize,
    has_offsets: bool,
    number: u32,
    before: Option<u128>,
}

impl Filling {
    /// Adds the next entry; `None` if it does not ascend.
    fn add(&mut self, entry: &Entry) -> Option<()> {
        let uuid = u128::from_be_bytes(entry.uuid);
        if self.before.is_some_and(|before| before >= uuid) || !uuid6::is_v6(&entry.uuid) {
            return None;
        }
        self.before = Some(uuid);
        let table = &mut self.table;
        let place = table.place_of(uuid6::ticks(&entry.uuid))?;
        if place >= self.places {
            return None;
        }
        if place >= table.starts.len() {
            table.starts.resize(place + 1, self.number);
        }
        if self.has_offsets && u64::from(self.number).is_multiple_of(ENTRIES_PER_OFFSET) {
            table.offsets.push(entry.offset);
        }
        self.number = self.number.checked_add(1)?;
        Some(())
    }

    fn finish(self) -> Table {
        let mut table = self.table;
        table.starts.resize(self.places, self.number);
        table
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn every_time_has_a_place_and_places_ascend(whole in 1..1_u64 << 60, stretches in 2..1_u64 << 32, time: u64, later: u64) {
            let stretches = stretches.min(whole);
            let table = Table {
                first: 0,
                scale: scale(stretches, whole),
                width: whole / stretches,
                starts: Vec::new(),
                offsets: Vec::new(),
            };
            let (time, later) = (time % whole, later % whole);
            let (time, later) = (time.min(later), time.max(later));
            let (place, behind) = (table.place_of(time).unwrap(), table.place_of(later).unwrap());
            proptest::prop_assert!(place <= behind && (behind as u64) < stretches);
        }
    }
}
