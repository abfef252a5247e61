//! Finds a position among sorted UUIDs: guesses by time, as if times were evenly spread, and halves where they are
//! not. A table from times to entries, once there is one, says where to begin: time is divided into intervals of equal
//! length, each with its entries, and an interval with many entries, as from a burst, once more.

use std::cmp::Ordering;
use std::ops::Range;

use super::LOOKUP_TABLE_BYTES;
use super::front::{Front, each_piece, read_array};
use super::layout::{ENTRY_BYTES, Entry, UUID_BYTES};
use crate::bug::OrBug;
use crate::cursor::fields;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::saturating::{saturating_u64, saturating_usize};
use crate::source::Source;
use crate::uuid6;
use crate::walk::Options;

/// How many more looks a search may take than halving would.
const SPARE_LOOKS: u32 = 3;
/// This few positions are read at once: they are adjacent in memory.
const FEW: u64 = 12;
/// This many bad guesses in a row end the guessing.
const MAX_MISSES: u32 = 2;

/// Offsets are stored in units of this many bytes: they only say what to prefetch.
const OFFSET_UNIT: u64 = CACHE_LINE_BYTES as u64;

const PLACE_BYTES: u64 = size_of::<Slot>() as u64;
const DIVISION_BYTES: u64 = size_of::<Division>() as u64;
/// The most memory that a table takes for each entry.
const MAX_BYTES_PER_ENTRY: u64 = 5;
/// This part of the memory is for the division of the whole time, so that some is left to divide crowded intervals.
const FIRST_SHARE: u64 = 2;

/// A search for the first of some ascending UUIDs that is at least the target one. It says where it wants to look,
/// and the caller says which UUID is there, so that many searches can take turns.
///
/// Evenly spread times take a handful of looks. Any other spread takes at most [`SPARE_LOOKS`] more than halving:
/// a guess is made only while halving could still make up for it. If UUIDs do not ascend, the answer is some
/// position, found as fast.
#[derive(Clone, Debug)]
pub(super) struct Search {
    target: [u8; UUID_BYTES],
    /// The answer is at least `low` and at most `high`.
    low: u64,
    high: u64,
    /// A time not later than any from `low` on, and one not earlier than any before `high`.
    below: u64,
    above: u64,
    looks_left: u32,
    /// Consecutive guesses that should have narrowed the search, and did not.
    misses: u32,
    next: Look,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    place: u64,
    /// Whether it is a guess near the answer, not just the middle.
    is_guess: bool,
}

/// How many looks halving takes among this many positions.
const fn halvings(places: u64) -> u32 {
    u64::BITS - places.leading_zeros()
}

impl Search {
    /// A search among the UUIDs with these numbers, whose times are within `times`. The answer is one of the
    /// numbers, or the end if all are smaller.
    pub(super) fn new(target: [u8; UUID_BYTES], among: Range<u64>, times: Range<u64>) -> Self {
        let mut search = Self {
            target,
            low: among.start,
            high: among.end.max(among.start),
            below: times.start,
            above: times.end,
            looks_left: 0,
            misses: 0,
            next: Look {
                place: among.start,
                is_guess: false,
            },
        };
        search.looks_left = halvings(search.high - search.low) + SPARE_LOOKS;
        search.choose();
        search
    }

    /// The UUID that is searched for.
    pub(super) const fn target(&self) -> &[u8; UUID_BYTES] {
        &self.target
    }

    /// Where to look next. `None` once the answer is known.
    pub(super) const fn place(&self) -> Option<u64> {
        if self.low < self.high {
            Some(self.next.place)
        } else {
            None
        }
    }

    /// The answer, once it is known.
    pub(super) const fn answer(&self) -> u64 {
        self.low
    }

    /// Finishes a search with few positions left. `entries` are all entries. Compares all of them at once, so that
    /// no look waits for another. `false` if more than a few are left.
    pub(super) fn finish(&mut self, entries: &[[u8; ENTRY_BYTES]]) -> bool {
        let size = self.high - self.low;
        let place = |at| saturating_usize(at);
        let few = entries.get(place(self.low)..place(self.high));
        let Some(few) = few.filter(|_| size <= FEW) else {
            return false;
        };
        let target = u128::from_be_bytes(self.target);
        let is_smaller = |entry: &[u8; ENTRY_BYTES]| {
            let (uuid, _): ([u8; UUID_BYTES], u64) = fields(entry);
            u64::from(u128::from_be_bytes(uuid) < target)
        };
        self.low += few.iter().map(is_smaller).sum::<u64>();
        self.high = self.low;
        true
    }

    /// The first and last of the positions left, if they are few.
    pub(super) const fn few(&self) -> Option<[u64; 2]> {
        let size = self.high - self.low;
        if size > 0 && size <= FEW {
            Some([self.low, self.high - 1])
        } else {
            None
        }
    }

    /// Continues with the UUID at the position where it target to look.
    pub(super) fn saw(&mut self, uuid: &[u8; UUID_BYTES]) {
        let Look { place, is_guess } = self.next;
        let size = self.high - self.low;
        let time = uuid6::ticks(uuid);
        if !is_guess && self.misses >= MAX_MISSES && self.is_halfway(time) {
            self.misses = 0; // evenly spread here
        }
        match u128::from_be_bytes(*uuid).cmp(&u128::from_be_bytes(self.target)) {
            Ordering::Less => (self.low, self.below) = (place + 1, time),
            Ordering::Greater => (self.high, self.above) = (place, time),
            Ordering::Equal => (self.low, self.high) = (place, place),
        }
        if is_guess {
            let is_miss = self.high - self.low > size / 4;
            self.misses = if is_miss { self.misses + 1 } else { 0 };
        }
        self.looks_left = self.looks_left.saturating_sub(1);
        self.choose();
    }

    /// Whether the middle has about the time in the middle.
    fn is_halfway(&self, time: u64) -> bool {
        let whole = self.above.saturating_sub(self.below);
        let part = time.saturating_sub(self.below);
        part.abs_diff(whole / 2) <= whole / 16
    }

    fn choose(&mut self) {
        let size = self.high - self.low;
        let can_guess = size > FEW && self.misses < MAX_MISSES && self.looks_left > halvings(size);
        let guess = if can_guess { self.guess(size) } else { None };
        self.next = guess.unwrap_or(Look {
            place: self.low + size / 2,
            is_guess: false,
        });
    }

    /// Where the target time would be, and a little beyond, seen from the nearer end. Errors grow with the
    /// distance, and an answer between that end and the guess leaves few positions.
    fn guess(&self, size: u64) -> Option<Look> {
        let whole = self.above.checked_sub(self.below)?;
        let part = uuid6::ticks(&self.target)
            .checked_sub(self.below)?
            .min(whole);
        // 32 bits of both are precise enough.
        let spare = u64::BITS
            .saturating_sub(whole.leading_zeros())
            .saturating_sub(u32::BITS);
        let aim = size
            .checked_mul(part >> spare)?
            .checked_div(whole >> spare)?
            .min(size);
        let from_low = aim <= size / 2;
        let distance = if from_low { aim } else { size - aim };
        // From far away the guess is as near as it can be, and leaves many positions. The next guess is made from
        // nearby.
        let is_far = distance > size / 8;
        let beyond = match is_far {
            true => 0,
            false => (1 << (halvings(distance).div_ceil(2))) << (2 * self.misses),
        };
        let aim = if from_low {
            aim.saturating_add(beyond)
        } else {
            aim.saturating_sub(beyond)
        };
        Some(Look {
            place: self.low + aim.min(size - 1),
            is_guess: !is_far,
        })
    }
}

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
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use uuid::{Timestamp, Uuid};

    use crate::engine::WriteOptions;
    use crate::format::sealed::Writer;
    use crate::format::sealed::open;
    use crate::source::{BytesSource, Source};
    use crate::walk::Options;

    /// UUIDs of these times, with distinct, ascending second halves.
    fn uuids(times: impl IntoIterator<Item = u64>) -> Vec<[u8; UUID_BYTES]> {
        let uuid = |(number, time): (usize, u64)| {
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&time.to_be_bytes());
            uuid[8..].copy_from_slice(&(2 * number as u64 + 1).to_be_bytes());
            uuid
        };
        times.into_iter().enumerate().map(uuid).collect()
    }

    /// Searches for one UUID. Returns its position and the number of looks.
    fn look_for(uuids: &[[u8; UUID_BYTES]], target: [u8; UUID_BYTES]) -> (u64, u32) {
        let time = |uuid: Option<&[u8; UUID_BYTES]>| uuid.map_or(0, uuid6::ticks);
        let times = time(uuids.first())..time(uuids.last());
        let mut search = Search::new(target, 0..uuids.len() as u64, times);
        let mut looks = 0;
        while let Some(place) = search.place() {
            search.saw(&uuids[usize::try_from(place).unwrap()]);
            looks += 1;
        }
        (search.answer(), looks)
    }

    /// Searches for many of the UUIDs, and for the ones just above them. Returns the most looks, and the average.
    fn looks(uuids: &[[u8; UUID_BYTES]]) -> (u32, f64) {
        let (mut most, mut all, mut searches) = (0, 0, 0);
        for step in 0..uuids.len().min(2000) {
            let place = step * uuids.len() / uuids.len().min(2000);
            for (delta, after) in [(0_u128, 0), (1, 1)] {
                let target = u128::from_be_bytes(uuids[place]) + delta;
                let (found, count) = look_for(uuids, target.to_be_bytes());
                assert_eq!(found, place as u64 + after);
                (most, all, searches) = (most.max(count), all + count, searches + 1);
            }
        }
        (most, f64::from(all) / f64::from(searches))
    }

    /// A fixed sequence without a pattern.
    fn scattered() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(1_u64), |number| {
            Some(
                number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        })
    }

    #[test]
    fn evenly_spread_times_take_a_handful_of_looks() {
        let regular =
            uuids((0..1 << 18).map(|number| 0x1ee0_0000_0000_0000 + number * (1000 << 16)));
        let (most, average) = looks(&regular);
        assert!(average <= 4.0, "{most} at most, {average} on average");
        let mut times: Vec<_> = scattered().take(1 << 18).collect();
        times.sort_unstable();
        let (most, average) = looks(&uuids(times));
        assert!(average <= 7.0, "{most} at most, {average} on average");
    }

    #[test]
    fn no_spread_takes_more_looks_than_halving_and_a_few() {
        let count = 1_u64 << 16;
        let mut bursts: Vec<_> = scattered()
            .take(64)
            .flat_map(|start| (0..1024).map(move |at| start / 2 + at))
            .collect();
        bursts.sort_unstable();
        let spreads: [Vec<u64>; 6] = [
            std::iter::repeat_n(7, 1 << 16).collect(),
            (0..count)
                .map(|number| 1_u64 << (number * 63 / count))
                .collect(),
            (0..count)
                .map(|number| u64::MAX - (1_u64 << (63 - number * 63 / count)))
                .collect(),
            (0..count)
                .map(|number| {
                    if number + 1 == count {
                        u64::MAX
                    } else {
                        number
                    }
                })
                .collect(),
            scattered()
                .take(1 << 16)
                .map(|time| time >> (time % 64))
                .collect(),
            bursts,
        ];
        for mut times in spreads {
            times.sort_unstable();
            let uuids = uuids(times);
            let (most, average) = looks(&uuids);
            assert!(
                most <= halvings(count) + SPARE_LOOKS,
                "{most} at most, {average} on average"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn the_place_is_where_halving_finds_it(mut times: Vec<u64>, target: u64) {
            times.sort_unstable();
            let uuids = uuids(times);
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&target.to_be_bytes());
            let expected = uuids.partition_point(|each| *each < uuid) as u64;
            proptest::prop_assert_eq!(look_for(&uuids, uuid).0, expected);
        }

        #[test]
        fn what_does_not_ascend_ends_as_fast(times: Vec<u64>, target: u64) {
            let uuids = uuids(times);
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&target.to_be_bytes());
            let (found, count) = look_for(&uuids, uuid);
            proptest::prop_assert!(found <= uuids.len() as u64);
            proptest::prop_assert!(count <= halvings(uuids.len() as u64) + SPARE_LOOKS);
        }
    }

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
