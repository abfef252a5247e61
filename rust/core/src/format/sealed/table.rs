//! A table from times to the entries that have them, so that a look-up begins next to what it looks for: stretches of time, all of
//! one length, each with its entries. Where many share a stretch, as those of a burst do, it is divided once more.

use std::ops::Range;

use super::LOOKUP_TABLE_BYTES;
use super::front::Front;
use super::index::{each_piece, read_array};
use super::layout::{ENTRY_BYTES, Entry, UUID_BYTES};
use super::search::Search;
use crate::bug::OrBug;
use crate::engine::Options;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::saturating::saturating_u64;
use crate::source::Source;
use crate::uuid6;

/// Offsets are kept in units of so many bytes: they say what to ask for.
const OFFSET_UNIT: u64 = CACHE_LINE_BYTES as u64;

const PLACE_BYTES: u64 = size_of::<Place>() as u64;
const DIVISION_BYTES: u64 = size_of::<Division>() as u64;
/// A crowd is divided so many times at most: each time its entries are read once more.
const MAX_DEPTH: u32 = 6;
/// Where more than one of so many entries stand in crowded stretches, ...
const CROWDED: u64 = 8;
/// ... stretches are joined, two to the power of this many: that leaves memory to divide those that need it.
const JOINED: u32 = 4;
/// The most memory that a table takes for each entry.
const MAX_BYTES_PER_ENTRY: u64 = 4;

/// Where a stretch of time begins. Both numbers side by side, since one look at memory is most of what a look-up takes.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of the first entry that is not earlier.
    entry: u32,
    /// Where its message begins, in [`OFFSET_UNIT`]s: for guessing where those of the stretch do, and nothing else. Of a crowded
    /// stretch the number of its division, 0 if it has none.
    offset: u32,
}

impl Place {
    fn new(entry: u32, offset: u64) -> Self {
        let offset = u32::try_from(offset / OFFSET_UNIT).unwrap_or(u32::MAX);
        Self { entry, offset }
    }
}

/// Stretches of time, all of one length, from the first to the last of some entries.
#[derive(Clone, Copy, Debug)]
struct Division {
    /// The times of these entries, in ticks.
    first: u64,
    last: u64,
    /// How many stretches a tick is, before they are joined, times 2^64.
    scale: u64,
    /// They are joined, two to the power of this many.
    joined: u32,
    /// How many ticks a stretch is long, rounded down.
    width: u64,
    /// Where its places are: one more than there are stretches, the last behind all entries.
    begin: usize,
    count: usize,
}

/// A time's place in a division, and how far it is from there to the next one, in 2^32ths.
type Spot = (usize, u64);

impl Division {
    /// So many stretches of this time, as far as it has ticks.
    fn new(stretches: u64, first: u64, last: u64, begin: usize) -> Option<Self> {
        let whole = last.checked_sub(first)? + 1; // 60 bits: this does not overflow
        let stretches = stretches.min(whole);
        Some(Self {
            first,
            last,
            scale: scale(stretches, whole),
            joined: 0,
            width: whole / stretches.max(1),
            begin,
            count: usize::try_from(stretches + 1).ok()?,
        })
    }

    /// Where a time is; `None` in front of the first and behind the last.
    fn spot(&self, time: u64) -> Option<Spot> {
        let since = time.checked_sub(self.first).filter(|_| time <= self.last)?;
        let scaled = (u128::from(since) * u128::from(self.scale)) >> self.joined;
        let place = usize::try_from(scaled >> u64::BITS).ok()?;
        let part = u64::try_from((scaled >> u32::BITS) & u128::from(u32::MAX)).ok()?;
        Some((place, part))
    }
}

/// For each stretch of time the first entry that is not earlier: all that stands between two of them has one of these times. Only
/// made of an index whose UUIDs ascend, so that who searches between two places finds what he would have found among all.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The first is of the whole time, each other of a crowded stretch of one in front of it.
    divisions: Vec<Division>,
    /// Those of all divisions.
    places: Vec<Place>,
}

/// The stretch that a time is in, which is not divided.
struct Stretch {
    begin: Place,
    end: Place,
    /// How far the time is from its begin to its end, in 2^32ths.
    part: u64,
    times: Range<u64>,
}

impl Stretch {
    const fn entries(&self) -> u32 {
        self.end.entry.saturating_sub(self.begin.entry)
    }

    /// About which entry the time's is, and where its message begins. Of a crowd nothing is near, and it has no offset.
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
    /// The stretch that this UUID's time is in; `None` where the table does not help.
    #[inline]
    fn stretch(&self, uuid: &[u8; UUID_BYTES]) -> Option<Stretch> {
        // Times order only UUIDs of one version.
        let time = Some(uuid6::ticks(uuid)).filter(|_| uuid[6] >> 4 == 6)?;
        let mut number = 0;
        let mut own = self.divisions.first()?;
        loop {
            let (place, part) = own.spot(time)?;
            let [begin, end] = *self.places.get(own.begin + place..)?.first_chunk()?;
            let begins = own
                .first
                .saturating_add(own.width.saturating_mul(place as u64));
            let stretch = Stretch {
                begin,
                end,
                part,
                times: begins..begins.saturating_add(own.width),
            };
            let inner = usize::try_from(begin.offset).ok()?;
            // Divisions come behind those that they divide, so this ends.
            let Some(division) = self
                .divisions
                .get(inner)
                .filter(|_| stretch.entries() > LIMITS.crowd_entries && inner > number)
            else {
                return Some(stretch);
            };
            (number, own) = (inner, division);
            // Between the stretch's begin and its first entry, or its last entry and its end.
            let beyond = if time < own.first {
                begin
            } else if time > own.last {
                end
            } else {
                continue;
            };
            return Some(Stretch {
                begin: beyond,
                end: beyond,
                ..stretch
            });
        }
    }

    /// A search for this UUID among the entries that can have its time, and about where it will end; `None` where the table
    /// does not say.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<(Search, Option<Near>)> {
        let stretch = self.stretch(uuid)?;
        let among = u64::from(stretch.begin.entry)..u64::from(stretch.end.entry);
        let near = stretch.near();
        Some((Search::new(*uuid, among, stretch.times), near))
    }

    /// Asks for the part of the table that [`search`](Self::search) will look at first.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some(all) = self.divisions.first()
            && let Some((place, _)) = all.spot(uuid6::ticks(uuid))
        {
            prefetch_item(&self.places, place);
        }
    }
}

/// About where something is, in bytes from the start of the file: to ask for both before the entry is there, and for nothing else.
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
    saturating_u64(scale)
}

impl Table {
    /// Reads the index once, and what of it is crowded some times more. `None` where its UUIDs do not ascend, where there are too
    /// few or too many entries, or too little memory is allowed.
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
        let stretches = (front.entries / LIMITS.entries_per_place)
            .min((allowed / PLACE_BYTES).saturating_sub(1));
        if front.unreadable.is_some() || stretches < 2 {
            return Ok(None);
        }
        let mut building = Building {
            source,
            options,
            front,
            allowed: allowed.min(front.entries.saturating_mul(MAX_BYTES_PER_ENTRY)),
            table: Self::default(),
        };
        if building.divide(0..entries, stretches)?.is_none() {
            return Ok(None);
        }
        building.table.places.shrink_to_fit(); // if stretches were joined
        building.divide_crowds()?;
        let mut table = building.table;
        table.places.shrink_to_fit();
        Ok(Some(table))
    }
}

/// A table that is being made.
struct Building<'a> {
    source: &'a dyn Source,
    options: &'a Options,
    front: &'a Front,
    /// How much memory it may take, in bytes.
    allowed: u64,
    table: Table,
}

impl Building<'_> {
    /// How much memory the table takes by now.
    fn used(&self) -> u64 {
        let Table { divisions, places } = &self.table;
        divisions.len() as u64 * DIVISION_BYTES + places.len() as u64 * PLACE_BYTES
    }

    /// Adds a division of these entries, and gives its number. `None` where their UUIDs do not ascend, or are all of one time.
    fn divide(&mut self, entries: Range<u32>, stretches: u64) -> Result<Option<usize>> {
        let Range { start, end } = entries;
        let at = |number: u32| self.front.entry_at(u64::from(number));
        let entry = |number| {
            let bytes = read_array(self.source, at(number))?;
            Ok(Entry::parse(u64::from(number), &bytes))
        };
        let (first, last) = (entry(start)?, entry(end - 1)?);
        let places = &mut self.table.places;
        let times = [first, last].map(|entry| uuid6::ticks(&entry.uuid));
        let division = Division::new(stretches, times[0], times[1], places.len());
        // Of one stretch nothing would be gained.
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
        let behind = match u64::from(end) == self.front.entries {
            true => self.front.data_end,
            false => entry(end)?.offset,
        };
        let places = &mut self.table.places;
        places.resize(division.begin + division.count, Place::new(end, behind));
        self.table.divisions.push(division);
        self.join_if_crowded(u64::from(end - start));
        Ok(Some(self.table.divisions.len() - 1))
    }

    /// Adds the places of a division up to that of the last of its entries. `false` where these do not ascend.
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
                places.resize(place + 1, Place::new(number, entry.offset));
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

    /// The crowded stretches of a division: where their places are, and their entries.
    fn crowds(&self, division: &Division) -> impl Iterator<Item = (usize, Range<u32>)> {
        let places = self.table.places.get(division.begin..);
        let places = places.and_then(|places| places.get(..division.count));
        let stretches = places
            .or_bug_default("the places of each division")
            .windows(2)
            .zip(division.begin..);
        stretches.filter_map(|(stretch, place)| {
            let [begin, end] = stretch.first_chunk()?;
            (end.entry.saturating_sub(begin.entry) > LIMITS.crowd_entries)
                .then_some((place, begin.entry..end.entry))
        })
    }

    /// Joins the stretches of the last division, which is of so many entries, where many of these are crowded in some, and so most
    /// stretches are empty.
    fn join_if_crowded(&mut self, entries: u64) {
        let Some(last) = self.table.divisions.last().copied() else {
            return;
        };
        let crowded = self.crowds(&last).map(|(_, entries)| entries.len() as u64);
        let stretches = last.count - 1;
        if crowded.sum::<u64>() <= entries / CROWDED || stretches >> JOINED < 2 {
            return;
        }
        let joined = stretches.div_ceil(1 << JOINED);
        let places = &mut self.table.places;
        let behind = places.last().copied();
        for place in 0..joined {
            if let Some(begin) = places.get(last.begin + (place << JOINED)).copied()
                && let Some(own) = places.get_mut(last.begin + place)
            {
                *own = begin;
            }
        }
        places.truncate(last.begin + joined);
        places.extend(behind);
        if let Some(own) = self.table.divisions.last_mut() {
            own.joined = JOINED;
            own.width = own.width.saturating_mul(1 << JOINED);
            own.count = joined + 1;
        }
    }

    /// Divides what is crowded, as far as memory is allowed and it is not all of one time.
    fn divide_crowds(&mut self) -> Result<()> {
        let (mut from, mut depth) = (0, 0);
        while from < self.table.divisions.len() {
            let divisions = self.table.divisions.iter().skip(from);
            let crowds: Vec<_> = divisions.flat_map(|own| self.crowds(own)).collect();
            from = self.table.divisions.len();
            for (place, entries) in crowds {
                let stretches = entries.len() as u64 / LIMITS.entries_per_place;
                let needed = DIVISION_BYTES + (stretches + 1) * PLACE_BYTES;
                let is_allowed = self.used() + needed <= self.allowed;
                let division = match is_allowed && depth < MAX_DEPTH {
                    true => self.divide(entries, stretches)?,
                    false => None,
                };
                let number = division.and_then(|number| u32::try_from(number).ok());
                if let Some(place) = self.table.places.get_mut(place) {
                    place.offset = number.unwrap_or_default();
                }
            }
            depth += 1;
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

    use crate::engine::{Options, WriteOptions};
    use crate::format::sealed::Writer;
    use crate::format::sealed::open;
    use crate::source::{BytesSource, Source};

    /// UUIDs of bursts of bursts: so many each, so many ticks apart, with a pause of two to some power behind it.
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

    /// The table of a segment of empty messages, in at most so many bytes.
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
        let front = open::front(&source, &options).unwrap();
        Table::build(&*source, &options, &front).unwrap()
    }

    #[test]
    fn crowds_are_divided_until_few_are_left_as_far_as_memory_goes() {
        let uuids = bursts(&[
            (4000, 1, 20),
            (3000, 2, 36),
            (5000, 1, 4),
            (2500, 7, 50),
            (4000, 100, 10),
            (1, 1, 54),
            (2500, 3, 8),
        ]);
        for allowed in [1 << 20, 40_000, 5_000, 100] {
            let table = table(&uuids, allowed).unwrap();
            let memory = size_of_val(&*table.places) + size_of_val(&*table.divisions);
            // The first division stands alone, and is allowed what the places need.
            assert!(
                memory <= allowed + size_of::<Division>(),
                "{memory} of {allowed}"
            );
            let mut most = 0;
            for (number, uuid) in uuids.iter().enumerate() {
                let stretch = table.stretch(uuid.as_bytes()).unwrap();
                let entries = stretch.begin.entry..stretch.end.entry;
                assert!(entries.contains(&u32::try_from(number).unwrap()));
                most = most.max(stretch.entries());
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
        let stretch = table.stretch(one(500).as_bytes()).unwrap();
        assert_eq!(stretch.entries(), 1000);
        assert!(stretch.near().is_none());
    }

    proptest::proptest! {
        #[test]
        fn every_time_has_a_place_and_places_ascend(whole in 1..1_u64 << 60, stretches in 2..1_u64 << 32, joined in 0..5_u32, time: u64, later: u64) {
            let division = Division::new(stretches, 0, whole - 1, 0).unwrap();
            let division = Division { joined, ..division };
            let (time, later) = (time % whole, later % whole);
            let (time, later) = (time.min(later), time.max(later));
            let (spot, behind) = (division.spot(time).unwrap(), division.spot(later).unwrap());
            proptest::prop_assert!(spot <= behind && behind.0 <= (division.count - 2) >> joined);
        }
    }
}
