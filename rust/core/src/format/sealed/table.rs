//! A table from times to entries, so that a look-up begins near what it looks for. Time is divided into intervals
//! of equal length, each with its entries. An interval with many entries, as from a burst, is divided once more.

use std::ops::Range;

use super::LOOKUP_TABLE_BYTES;
use super::front::Front;
use super::index::{each_piece, read_array};
use super::layout::{ENTRY_BYTES, Entry, UUID_BYTES};
use super::search::Search;
use crate::bug::OrBug;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::saturating::saturating_u64;
use crate::source::Source;
use crate::uuid6;
use crate::walk::Options;

/// Offsets are stored in units of this many bytes: they only say what to prefetch.
const OFFSET_UNIT: u64 = CACHE_LINE_BYTES as u64;

const PLACE_BYTES: u64 = size_of::<Slot>() as u64;
const DIVISION_BYTES: u64 = size_of::<Division>() as u64;
/// The most memory that a table takes for each entry.
const MAX_BYTES_PER_ENTRY: u64 = 5;
/// This part of the memory is for the division of the whole time, so that some is left to divide crowded intervals.
const FIRST_SHARE: u64 = 2;

/// Where an interval of time begins. Both numbers are adjacent, because one memory access is most of a look-up's
/// cost.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The number of the first entry that is not earlier.
    entry: u32,
    /// Where its message begins, in [`OFFSET_UNIT`]s, used only to guess where the interval's messages begin. For
    /// a crowded interval: the number of its division, 0 if it has none.
    offset: u32,
}

impl Slot {
    fn new(entry: u32, offset: u64) -> Self {
        let offset = u32::try_from(offset / OFFSET_UNIT).unwrap_or(u32::MAX);
        Self { entry, offset }
    }
}

/// Intervals of time of equal length, from the first to the last of some entries.
#[derive(Clone, Copy, Debug)]
struct Division {
    /// The times of these entries, in ticks.
    first: u64,
    last: u64,
    /// The number of intervals in a tick, times 2^64.
    scale: u64,
    /// The length of an interval in ticks, rounded down.
    width: u64,
    /// The index of its places, one more than intervals. The last is after all entries.
    begin: usize,
    count: usize,
}

/// The index of a time's place in a division, and how far the time is from there to the next place, in units of
/// 2^-32.
type Spot = (usize, u64);

impl Division {
    /// Divides this time into up to `intervals` intervals, at most one for each tick.
    fn new(intervals: u64, first: u64, last: u64, begin: usize) -> Option<Self> {
        let whole = last.checked_sub(first)? + 1; // times have 60 bits, so this does not overflow
        let intervals = intervals.min(whole);
        Some(Self {
            first,
            last,
            scale: scale(intervals, whole),
            width: whole / intervals.max(1),
            begin,
            count: usize::try_from(intervals + 1).ok()?,
        })
    }

    /// Where a time is. `None` before the first and after the last.
    fn spot(&self, time: u64) -> Option<Spot> {
        let since = time.checked_sub(self.first).filter(|_| time <= self.last)?;
        let scaled = u128::from(since) * u128::from(self.scale);
        let place = usize::try_from(scaled >> u64::BITS).ok()?;
        let part = u64::try_from((scaled >> u32::BITS) & u128::from(u32::MAX)).ok()?;
        Some((place, part))
    }
}

/// For each interval of time the first entry that is not earlier, so the entries between two places have the times
/// of that interval. Built only for an index whose UUIDs ascend, so a search between two places finds what a
/// search of all would.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The first division is of the whole time, each other of a crowded interval of it.
    divisions: Vec<Division>,
    /// The places of all divisions.
    places: Vec<Slot>,
}

/// The undivided interval that a time is in.
struct Interval {
    begin: Slot,
    end: Slot,
    /// How far the time is from its begin to its end, in units of 2^-32.
    part: u64,
    times: Range<u64>,
}

impl Interval {
    const fn entries(&self) -> u32 {
        self.end.entry.saturating_sub(self.begin.entry)
    }

    /// The approximate entry of the time, and its message's offset. `None` for a crowded interval, which has no
    /// offset.
    fn near(&self) -> Option<Near> {
        let between = |from: u32, to: u32| {
            u64::from(from) + ((u64::from(to.saturating_sub(from)) * self.part) >> u32::BITS)
        };
        (self.entries() <= LIMITS.crowd_entries).then(|| Near {
            number: between(self.begin.entry, self.end.entry),
            offset: between(self.begin.offset, self.end.offset) * OFFSET_UNIT,
        })
    }
}

impl Table {
    /// The interval that this UUID's time is in. `None` if the table does not help.
    #[inline]
    fn interval(&self, uuid: &[u8; UUID_BYTES]) -> Option<Interval> {
        // Times order only UUIDs of one version.
        let time = Some(uuid6::ticks(uuid)).filter(|_| uuid[6] >> 4 == 6)?;
        let interval = self.within(self.divisions.first()?, time)?;
        let number = usize::try_from(interval.begin.offset).ok()?;
        let Some(division) = self
            .divisions
            .get(number)
            .filter(|_| interval.entries() > LIMITS.crowd_entries && number > 0)
        else {
            return Some(interval);
        };
        // The time may be between the interval's begin and its first entry, or between its last entry and its end.
        let beyond = if time < division.first {
            interval.begin
        } else if time > division.last {
            interval.end
        } else {
            return self.within(division, time);
        };
        Some(Interval {
            begin: beyond,
            end: beyond,
            ..interval
        })
    }

    /// The interval of a division that a time is in.
    #[inline]
    fn within(&self, division: &Division, time: u64) -> Option<Interval> {
        let (place, part) = division.spot(time)?;
        let [begin, end] = *self.places.get(division.begin + place..)?.first_chunk()?;
        let begins = division
            .first
            .saturating_add(division.width.saturating_mul(place as u64));
        Some(Interval {
            begin,
            end,
            part,
            times: begins..begins.saturating_add(division.width),
        })
    }

    /// A search for this UUID among the entries that can have its time, and about where it will end. `None` if the
    /// table does not help.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<(Search, Option<Near>)> {
        let interval = self.interval(uuid)?;
        let among = u64::from(interval.begin.entry)..u64::from(interval.end.entry);
        let near = interval.near();
        Some((Search::new(*uuid, among, interval.times), near))
    }

    /// Prefetches the part of the table that [`search`](Self::search) looks at first.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some(all) = self.divisions.first()
            && let Some((place, _)) = all.spot(uuid6::ticks(uuid))
        {
            prefetch_item(&self.places, place);
        }
    }
}

/// About where something is, in bytes from the beginning of the file. Used only to prefetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// The approximate number of its entry.
    pub(super) number: u64,
    /// The approximate offset of its message.
    pub(super) offset: u64,
}

/// `intervals / whole` times 2^64, for `intervals` of at most `whole`. Rounded down, so that every number below
/// `whole` maps to less than `intervals`.
fn scale(intervals: u64, whole: u64) -> u64 {
    let scale = (u128::from(intervals) << u64::BITS) / u128::from(whole);
    saturating_u64(scale)
}

impl Table {
    /// Reads the index once, and its crowded intervals once more. `None` if UUIDs do not ascend, if there
    /// are too few or too many entries, or if too little memory is allowed.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn build(
        source: &dyn Source,
        options: &Options,
        front: &Front,
    ) -> Result<Option<Self>> {
        let Ok(entries) = u32::try_from(front.entries) else {
            return Ok(None);
        };
        let allowed = options.bytes(&LOOKUP_TABLE_BYTES);
        let intervals = (front.entries / LIMITS.entries_per_place)
            .min((allowed / FIRST_SHARE / PLACE_BYTES).saturating_sub(1));
        if front.unreadable.is_some() || intervals < 2 {
            return Ok(None);
        }
        let mut building = Building {
            source,
            options,
            front,
            allowed: allowed.min(front.entries.saturating_mul(MAX_BYTES_PER_ENTRY)),
            table: Self::default(),
        };
        if building.divide(0..entries, intervals)?.is_none() {
            return Ok(None);
        }
        building.divide_crowds()?;
        let mut table = building.table;
        table.places.shrink_to_fit();
        Ok(Some(table))
    }
}

/// A table that is being built.
struct Building<'a> {
    source: &'a dyn Source,
    options: &'a Options,
    front: &'a Front,
    /// The most memory that it may take, in bytes.
    allowed: u64,
    table: Table,
}

impl Building<'_> {
    /// How much memory the table takes so far.
    fn used(&self) -> u64 {
        let Table { divisions, places } = &self.table;
        divisions.len() as u64 * DIVISION_BYTES + places.len() as u64 * PLACE_BYTES
    }

    /// Adds a division of these entries, and returns its number. `None` if their UUIDs do not ascend, or all have
    /// the same time.
    fn divide(&mut self, entries: Range<u32>, intervals: u64) -> Result<Option<usize>> {
        let Range { start, end } = entries;
        let at = |number: u32| self.front.entry_at(u64::from(number));
        let entry = |number| {
            let bytes = read_array(self.source, at(number))?;
            Ok(Entry::parse(u64::from(number), &bytes))
        };
        let (first, last) = (entry(start)?, entry(end - 1)?);
        let places = &mut self.table.places;
        let times = [first, last].map(|entry| uuid6::ticks(&entry.uuid));
        let division = Division::new(intervals, times[0], times[1], places.len());
        // A single interval would gain nothing.
        let Some(division) = division.filter(|division| division.count > 2) else {
            return Ok(None);
        };
        match places.is_empty() {
            true => places.reserve_exact(division.count),
            false => places.reserve(division.count),
        }
        if !self.fill(&division, start..end)? {
            self.table.places.truncate(division.begin);
            return Ok(None);
        }
        let after = match u64::from(end) == self.front.entries {
            true => self.front.data_end,
            false => entry(end)?.offset,
        };
        let places = &mut self.table.places;
        places.resize(division.begin + division.count, Slot::new(end, after));
        self.table.divisions.push(division);
        Ok(Some(self.table.divisions.len() - 1))
    }

    /// Adds the places of a division, up to the last of its entries. `false` if the entries do not ascend.
    fn fill(&mut self, division: &Division, entries: Range<u32>) -> Result<bool> {
        let (mut number, mut before, mut ascends) = (entries.start, None, true);
        let places = &mut self.table.places;
        let mut add = |entry: &[u8; ENTRY_BYTES]| {
            let entry = Entry::parse(u64::from(number), entry);
            let uuid = u128::from_be_bytes(entry.uuid);
            if before.is_some_and(|before| before >= uuid) || !uuid6::is_v6(&entry.uuid) {
                return None;
            }
            before = Some(uuid);
            let (place, _) = division.spot(uuid6::ticks(&entry.uuid))?;
            if place >= division.count {
                return None;
            }
            let place = division.begin + place;
            if place >= places.len() {
                places.resize(place + 1, Slot::new(number, entry.offset));
            }
            number = number.checked_add(1)?;
            Some(())
        };
        let [start, end] =
            [entries.start, entries.end].map(|number| self.front.entry_at(u64::from(number)));
        each_piece(self.source, self.options, start, end, |bytes| {
            ascends = bytes.as_chunks().0.iter().all(|entry| add(entry).is_some());
            ascends
        })?;
        Ok(ascends)
    }

    /// The crowded intervals of a division: the index of each place, and its entries.
    fn crowds(&self, division: &Division) -> impl Iterator<Item = (usize, Range<u32>)> {
        let places = self.table.places.get(division.begin..);
        let places = places.and_then(|places| places.get(..division.count));
        let intervals = places
            .or_bug_default("the places of each division")
            .windows(2)
            .zip(division.begin..);
        intervals.filter_map(|(interval, place)| {
            let [begin, end] = interval.first_chunk()?;
            (end.entry.saturating_sub(begin.entry) > LIMITS.crowd_entries)
                .then_some((place, begin.entry..end.entry))
        })
    }

    /// Divides the crowded intervals of the whole time, as far as memory allows and their times differ.
    fn divide_crowds(&mut self) -> Result<()> {
        let all = self.table.divisions.first();
        let crowds: Vec<_> = all.into_iter().flat_map(|all| self.crowds(all)).collect();
        for (place, entries) in crowds {
            let intervals = entries.len() as u64 / LIMITS.entries_per_place;
            let needed = DIVISION_BYTES + (intervals + 1) * PLACE_BYTES;
            let division = match self.used() + needed <= self.allowed {
                true => self.divide(entries, intervals)?,
                false => None,
            };
            let number = division.and_then(|number| u32::try_from(number).ok());
            if let Some(place) = self.table.places.get_mut(place) {
                place.offset = number.unwrap_or_default();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use uuid::{Timestamp, Uuid};

    use crate::engine::WriteOptions;
    use crate::format::sealed::Writer;
    use crate::format::sealed::open;
    use crate::source::{BytesSource, Source};
    use crate::walk::Options;

    /// UUIDs of bursts: each with this many, this many ticks apart, followed by a pause of two to the given power.
    fn bursts(sizes: &[(u32, u64, u32)]) -> Vec<Uuid> {
        let (mut tick, mut uuids) = (1, Vec::new());
        for (size, apart, pause) in sizes {
            for _ in 0..*size {
                tick += apart;
                uuids.push(Uuid::new_v6(
                    Timestamp::from_gregorian_time(tick, 0),
                    &[0; 6],
                ));
            }
            tick += 1 << pause;
        }
        uuids
    }

    /// The table of a segment of empty messages, in at most this many bytes.
    fn table(uuids: &[Uuid], allowed: usize) -> Option<Table> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.sealed");
        let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
        for uuid in uuids {
            writer.append(uuid, b"", b"").unwrap();
        }
        writer.close().unwrap();
        let source: Arc<dyn Source> = Arc::new(BytesSource::new(std::fs::read(path).unwrap()));
        let options = Options::default().set("lookup_table_bytes", allowed);
        let front = open::front(&source, &options, None).unwrap();
        Table::build(&*source, &options, &front).unwrap()
    }

    #[test]
    fn crowds_are_divided_until_few_are_left_as_far_as_memory_goes() {
        let uuids = bursts(&[
            (4000, 500, 40),
            (3000, 900, 39),
            (5000, 300, 41),
            (50, 1 << 30, 20),
            (4000, 700, 40),
        ]);
        for allowed in [1 << 20, 40_000, 5_000, 100] {
            let table = table(&uuids, allowed).unwrap();
            let memory = size_of_val(&*table.places) + size_of_val(&*table.divisions);
            // The first division alone is allowed what its places need.
            assert!(
                memory <= allowed + size_of::<Division>(),
                "{memory} of {allowed}"
            );
            let mut most = 0;
            for (number, uuid) in uuids.iter().enumerate() {
                let interval = table.interval(uuid.as_bytes()).unwrap();
                let entries = interval.begin.entry..interval.end.entry;
                assert!(entries.contains(&u32::try_from(number).unwrap()));
                most = most.max(interval.entries());
            }
            assert_eq!(
                most <= LIMITS.crowd_entries,
                allowed == 1 << 20,
                "{most} with {allowed}"
            );
        }
    }

    #[test]
    fn of_one_time_there_is_nothing_to_divide() {
        let one = |number: u64| Uuid::from_u64_pair(0x1ee0_0000_0000_6000, (1 << 63) + number);
        let alike: Vec<_> = (0..1000).map(one).collect();
        assert!(table(&alike, 1 << 20).is_none());
        let mut all = bursts(&[(1000, 5, 3)]);
        all.extend(alike);
        all.sort_unstable();
        let table = table(&all, 1 << 20).unwrap();
        let interval = table.interval(one(500).as_bytes()).unwrap();
        assert_eq!(interval.entries(), 1000);
        assert!(interval.near().is_none());
    }

    proptest::proptest! {
        #[test]
        fn every_time_has_a_place_and_places_ascend(whole in 1..1_u64 << 60, intervals in 2..1_u64 << 32, time: u64, later: u64) {
            let division = Division::new(intervals, 0, whole - 1, 0).unwrap();
            let (time, later) = (time % whole, later % whole);
            let (time, later) = (time.min(later), time.max(later));
            let (spot, after) = (division.spot(time).unwrap(), division.spot(later).unwrap());
            proptest::prop_assert!(spot <= after && after.0 <= division.count - 2);
        }
    }
}
