//! A table from times to the entries that have them, so that a look-up begins next to what it looks for.

use super::front::Front;
use super::index::each_piece;
use super::reader::read_array;
use super::search::Search;
use super::{Entry, UUID_BYTES};
use crate::error::Result;
use crate::format::Options;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::source::Source;
use crate::uuid6;

/// So many entries share a place of the table where times are spread evenly and memory allows.
const ENTRIES_PER_PLACE: u64 = 4;
const PLACE_BYTES: u64 = size_of::<Place>() as u64;
/// Offsets are kept in units of so many bytes: they say what to ask for.
const OFFSET_UNIT: u64 = CACHE_LINE_BYTES as u64;

/// Where a stretch of time begins. Both numbers side by side, since one look at memory is most of what a look-up takes.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of the first entry that is not earlier.
    entry: u32,
    /// Where its message begins, in [`OFFSET_UNIT`]s: for guessing where those of the stretch do, and nothing else.
    offset: u32,
}

/// For each stretch of time, all of one length, the first entry that is not earlier: all that stands between two of them has
/// one of these times. Only made of an index whose UUIDs ascend, so that who searches between two places finds what he would
/// have found among all.
#[derive(Debug)]
pub(super) struct Table {
    /// The time of the first entry, in ticks.
    first: u64,
    /// How many stretches a tick is, times 2^64.
    scale: u64,
    /// How many ticks a stretch is long, rounded down.
    width: u64,
    /// One more than there are stretches; the last is behind all entries.
    places: Vec<Place>,
}

/// A time's place in the table, and how far it is from there to the next one, in 2^32ths.
type Spot = (usize, u64);

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
        let stretches =
            (entries / ENTRIES_PER_PLACE).min((allowed / PLACE_BYTES).saturating_sub(1));
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
                places: Vec::new(),
            },
            count: usize::try_from(stretches + 1).unwrap_or(usize::MAX),
            number: 0,
            before: None,
        };
        // There are bytes for four times as many entries.
        filling.table.places.reserve_exact(filling.count);
        let mut ascends = true;
        each_piece(source, options, 0, front.entry_at(entries), |bytes| {
            let mut entries = bytes.as_chunks().0.iter().map(Entry::parse);
            ascends = entries.all(|entry| filling.add(&entry).is_some());
            ascends
        })?;
        Ok(ascends.then(|| filling.finish(front.data_end)))
    }

    /// Where a time is in the table; `None` in front of the first.
    fn spot(&self, time: u64) -> Option<Spot> {
        let since = time.checked_sub(self.first)?;
        let scaled = u128::from(since) * u128::from(self.scale);
        let place = usize::try_from(scaled >> u64::BITS).ok()?;
        let part = u64::try_from((scaled >> u32::BITS) & u128::from(u32::MAX)).ok()?;
        Some((place, part))
    }

    /// Where the table is to be looked at for this UUID; `None` where it does not help.
    fn spot_of(&self, uuid: &[u8; UUID_BYTES]) -> Option<Spot> {
        // Times order only UUIDs of one version.
        (uuid[6] >> 4 == 6).then(|| self.spot(uuid6::ticks(uuid)))?
    }

    /// A search for this UUID among the entries that can have its time; `None` where the table does not say.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<Search> {
        let (place, _) = self.spot_of(uuid)?;
        let [start, end] = self.places.get(place..)?.first_chunk()?;
        let begins = self
            .first
            .saturating_add(self.width.saturating_mul(place as u64));
        let times = begins..begins.saturating_add(self.width);
        let among = u64::from(start.entry)..u64::from(end.entry);
        Some(Search::new(*uuid, among, times))
    }

    /// Asks for the part of the table that [`search`](Self::search) will look at.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some((place, _)) = self.spot_of(uuid) {
            prefetch_item(&self.places, place);
        }
    }

    /// About which entry this UUID's is, and where its message begins, in bytes from the start of the file: to ask for both
    /// before the entry is there, and for nothing else.
    pub(super) fn near(&self, uuid: &[u8; UUID_BYTES]) -> Option<Near> {
        let (place, part) = self.spot_of(uuid)?;
        let [start, end] = self.places.get(place..)?.first_chunk()?;
        let between = |from: u32, to: u32| {
            u64::from(from) + ((u64::from(to.saturating_sub(from)) * part) >> u32::BITS)
        };
        Some(Near {
            number: between(start.entry, end.entry),
            offset: between(start.offset, end.offset) * OFFSET_UNIT,
        })
    }
}

/// About where something is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// Its number among the entries.
    pub(super) number: u64,
    /// The offset of its message.
    pub(super) offset: u64,
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
    /// How many places the table is to have.
    count: usize,
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
        let (place, _) = table.spot(uuid6::ticks(&entry.uuid))?;
        if place >= self.count {
            return None;
        }
        if place >= table.places.len() {
            let begins = Place::new(self.number, entry.offset);
            table.places.resize(place + 1, begins);
        }
        self.number = self.number.checked_add(1)?;
        Some(())
    }

    /// The table, where the data ends at this offset.
    fn finish(self, data_end: u64) -> Table {
        let mut table = self.table;
        let behind = Place::new(self.number, data_end);
        table.places.resize(self.count, behind);
        table
    }
}

impl Place {
    fn new(entry: u32, offset: u64) -> Self {
        let offset = u32::try_from(offset / OFFSET_UNIT).unwrap_or(u32::MAX);
        Self { entry, offset }
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
                places: Vec::new(),
            };
            let (time, later) = (time % whole, later % whole);
            let (time, later) = (time.min(later), time.max(later));
            let (spot, behind) = (table.spot(time).unwrap(), table.spot(later).unwrap());
            proptest::prop_assert!(spot <= behind && (behind.0 as u64) < stretches);
        }
    }
}
