//! Finds a position among sorted UUIDs: guesses by time, as if times were evenly spread, and halves where they are
//! not. A table from times to entries, once there is one, says where to begin: time is divided into intervals of equal
//! length, each with its entries, and an interval with many entries, as from a burst, once more.

use std::cmp::Ordering;
use std::ops::Range;

use super::LOOKUP_TABLE_BYTES;
use super::front::{Segment, each_piece};
use super::layout::{Entry, UUID_BYTES};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::saturating::{saturating_u32, saturating_u64, saturating_usize};
use crate::source::read_array;
use crate::uuid6;

/// How many more looks a search may take than halving would.
const SPARE_LOOKS: u32 = 3;
/// Among so few positions a guess is no better than halving.
const FEW: u64 = 12;

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
/// Evenly spread times take a handful of looks. Any other spread takes at most [`SPARE_LOOKS`] more than halving: only
/// so many guesses may leave more than halving would. If UUIDs do not ascend, the answer is some position, found as
/// fast.
#[derive(Clone, Debug)]
pub(super) struct Search {
    target: [u8; UUID_BYTES],
    /// The answer is at least `low` and at most `high`.
    low: u64,
    high: u64,
    /// A time not later than any from `low` on, and one not earlier than any before `high`.
    below: u64,
    above: u64,
    /// How many guesses may still be worse than halving.
    spare_looks: u32,
    /// Where to look next, and whether that is a guess.
    next: u64,
    is_guess: bool,
}

/// How many looks halving takes among this many positions.
const fn halvings(places: u64) -> u32 {
    u64::BITS - places.leading_zeros()
}

impl Search {
    /// A search by halving among the UUIDs with these numbers. The answer is one of the numbers, or the end if all are
    /// smaller.
    pub(super) fn new(target: [u8; UUID_BYTES], among: Range<u64>) -> Self {
        let mut search = Self {
            target,
            low: among.start,
            high: among.end.max(among.start),
            below: 0,
            above: 0,
            spare_looks: 0,
            next: among.start,
            is_guess: false,
        };
        search.choose();
        search
    }

    /// The same search, by guesses: the times of its UUIDs are within `times`.
    pub(super) fn by_time(mut self, times: Range<u64>) -> Self {
        (self.below, self.above) = (times.start, times.end);
        self.spare_looks = SPARE_LOOKS;
        self.choose();
        self
    }

    /// The UUID that is searched for.
    pub(super) const fn target(&self) -> &[u8; UUID_BYTES] {
        &self.target
    }

    /// Where to look next. `None` once the answer is known.
    pub(super) const fn place(&self) -> Option<u64> {
        if self.low < self.high {
            Some(self.next)
        } else {
            None
        }
    }

    /// The answer, once it is known.
    pub(super) const fn answer(&self) -> u64 {
        self.low
    }

    /// Continues with the UUID at the position where it wanted to look.
    pub(super) fn saw(&mut self, uuid: &[u8; UUID_BYTES]) {
        let (size, place, time) = (self.high - self.low, self.next, uuid6::ticks(uuid));
        match u128::from_be_bytes(*uuid).cmp(&u128::from_be_bytes(self.target)) {
            Ordering::Less => (self.low, self.below) = (place + 1, time),
            Ordering::Greater => (self.high, self.above) = (place, time),
            Ordering::Equal => (self.low, self.high) = (place, place),
        }
        if self.is_guess && self.high - self.low > size / 2 {
            self.spare_looks -= 1;
        }
        self.choose();
    }

    fn choose(&mut self) {
        let size = self.high - self.low;
        let guess = match size > FEW && self.spare_looks > 0 {
            true => self.guess(size),
            false => None,
        };
        self.is_guess = guess.is_some();
        self.next = match guess {
            Some(guess) => guess,
            None => self.low + size / 2,
        };
    }

    /// Where the target time would be, and a little beyond, seen from the nearer end. Errors grow with the
    /// distance, and an answer between that end and the guess leaves few positions.
    fn guess(&self, size: u64) -> Option<u64> {
        let whole = self.above.checked_sub(self.below)?;
        let part = uuid6::ticks(&self.target).checked_sub(self.below)?;
        let aim = u128::from(size) * u128::from(part.min(whole));
        let aim = saturating_u64(aim.checked_div(u128::from(whole))?);
        let from_low = aim <= size / 2;
        let distance = if from_low { aim } else { size - aim };
        // From far away the guess is as near as it can be, and leaves many positions. The next guess is made from
        // nearby.
        let beyond = match distance > size / 8 {
            true => 0,
            false => 1 << halvings(distance).div_ceil(2),
        };
        let aim = match from_low {
            true => aim.saturating_add(beyond),
            false => aim.saturating_sub(beyond),
        };
        Some(self.low + aim.min(size - 1))
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
        let offset = saturating_u32(offset / OFFSET_UNIT);
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
    /// The index of its places, one more than intervals. The last is after all entries.
    begin: usize,
    count: usize,
}

impl Division {
    /// Divides this time into up to `intervals` intervals, at most one for each tick. `None` into fewer than two, which
    /// would gain nothing.
    fn new(intervals: u64, first: u64, last: u64, begin: usize) -> Option<Self> {
        let whole = last.checked_sub(first)? + 1; // times have 60 bits, so this does not overflow
        let intervals = intervals.min(whole);
        (intervals > 1).then(|| Self {
            first,
            last,
            scale: scale(intervals, whole),
            begin,
            count: saturating_usize(intervals + 1),
        })
    }

    /// The index of the interval that a time is in, and how far the time is from its begin to its end, in units of
    /// 2^-32. A time before the first is in the first interval, one after the last in the last.
    fn spot(&self, time: u64) -> (usize, u64) {
        let since = time.clamp(self.first, self.last) - self.first;
        let scaled = u128::from(since) * u128::from(self.scale);
        let interval = saturating_usize(scaled >> u64::BITS);
        let part = saturating_u64((scaled >> u32::BITS) & u128::from(u32::MAX));
        (interval, part)
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
}

impl Interval {
    const fn is_crowded(&self) -> bool {
        self.end.entry.saturating_sub(self.begin.entry) > LIMITS.crowd_entries
    }

    /// The approximate entry of the time, and its message's offset. `None` for a crowded interval, which has no
    /// offset.
    fn near(&self) -> Option<Near> {
        let between = |from: u32, to: u32| {
            u64::from(from) + ((u64::from(to.saturating_sub(from)) * self.part) >> u32::BITS)
        };
        (!self.is_crowded()).then(|| Near {
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
        let number = saturating_usize(interval.begin.offset);
        match self.divisions.get(number) {
            Some(division) if interval.is_crowded() && number > 0 => self.within(division, time),
            _ => Some(interval),
        }
    }

    /// The interval of a division that a time is in.
    #[inline]
    fn within(&self, division: &Division, time: u64) -> Option<Interval> {
        let (place, part) = division.spot(time);
        let [begin, end] = *self.places.get(division.begin + place..)?.first_chunk()?;
        Some(Interval { begin, end, part })
    }

    /// A search for this UUID among the entries that can have its time, and about where it will end. `None` if the
    /// table does not help.
    pub(super) fn search(&self, uuid: &[u8; UUID_BYTES]) -> Option<(Search, Option<Near>)> {
        let interval = self.interval(uuid)?;
        let among = u64::from(interval.begin.entry)..u64::from(interval.end.entry);
        Some((Search::new(*uuid, among), interval.near()))
    }

    /// Prefetches the part of the table that [`search`](Self::search) looks at first.
    pub(super) fn prefetch(&self, uuid: &[u8; UUID_BYTES]) {
        if let Some(all) = self.divisions.first() {
            prefetch_item(&self.places, all.spot(uuid6::ticks(uuid)).0);
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
    pub(super) fn build(segment: &Segment) -> Result<Option<Self>> {
        let front = &segment.front;
        let Ok(entries) = u32::try_from(front.entries) else {
            return Ok(None);
        };
        let allowed = segment.options.bytes(&LOOKUP_TABLE_BYTES);
        let intervals = (front.entries / LIMITS.entries_per_place)
            .min((allowed / FIRST_SHARE / PLACE_BYTES).saturating_sub(1));
        if front.unreadable.is_some() || intervals < 2 {
            return Ok(None);
        }
        let mut table = Self::default();
        if !table.divide(segment, 0..entries, intervals)? {
            return Ok(None);
        }
        table.divide_crowds(
            segment,
            allowed.min(front.entries.saturating_mul(MAX_BYTES_PER_ENTRY)),
        )?;
        table.places.shrink_to_fit();
        Ok(Some(table))
    }

    /// How much memory the table takes so far.
    fn used(&self) -> u64 {
        let (divisions, places) = (self.divisions.len() as u64, self.places.len() as u64);
        divisions * DIVISION_BYTES + places * PLACE_BYTES
    }

    /// Adds a division of these entries. `false` if their UUIDs do not ascend, or all have the same time.
    fn divide(&mut self, segment: &Segment, entries: Range<u32>, intervals: u64) -> Result<bool> {
        let entry = |number: u32| {
            let number = u64::from(number);
            let bytes = read_array(&*segment.source, segment.front.entry_at(number))?;
            Ok(Entry::parse(number, &bytes))
        };
        let Range { start, end } = entries;
        let (first, last) = (entry(start)?, entry(end - 1)?);
        let [first, last] = [first, last].map(|entry| uuid6::ticks(&entry.uuid));
        let begin = self.places.len();
        let Some(division) = Division::new(intervals, first, last, begin) else {
            return Ok(false);
        };
        self.places.reserve(division.count);
        if !self.fill(segment, &division, start..end)? {
            self.places.truncate(begin);
            return Ok(false);
        }
        let after = match u64::from(end) == segment.front.entries {
            true => segment.front.data_end,
            false => entry(end)?.offset,
        };
        let places = &mut self.places;
        places.resize(begin + division.count, Slot::new(end, after));
        self.divisions.push(division);
        Ok(true)
    }

    /// Adds the places of a division, up to the last of its entries. `false` if the entries do not ascend.
    fn fill(
        &mut self,
        segment: &Segment,
        division: &Division,
        entries: Range<u32>,
    ) -> Result<bool> {
        let places = &mut self.places;
        let [start, end] =
            [entries.start, entries.end].map(|number| segment.front.entry_at(number.into()));
        let (mut numbers, mut before, mut ascends) = (entries, None, true);
        each_piece(&*segment.source, &segment.options, start, end, |bytes| {
            for (entry, number) in bytes.as_chunks().0.iter().zip(&mut numbers) {
                let Entry { uuid, offset, .. } = Entry::parse(number.into(), entry);
                ascends &= before < Some(uuid) && uuid6::is_v6(&uuid);
                before = Some(uuid);
                let end = division.begin + division.spot(uuid6::ticks(&uuid)).0 + 1;
                if end > places.len() {
                    places.resize(end, Slot::new(number, offset));
                }
            }
            ascends
        })?;
        Ok(ascends)
    }

    /// Divides the crowded intervals of the whole time, as far as memory allows and their times differ.
    fn divide_crowds(&mut self, segment: &Segment, allowed: u64) -> Result<()> {
        let intervals = self.places.len().saturating_sub(1);
        for place in 0..intervals {
            let Some([begin, end, ..]) = self.places.get(place..) else {
                break;
            };
            let entries = begin.entry..end.entry;
            if entries.len() <= saturating_usize(LIMITS.crowd_entries) {
                continue;
            }
            let number = self.divisions.len();
            let intervals = entries.len() as u64 / LIMITS.entries_per_place;
            let needed = DIVISION_BYTES + (intervals + 1) * PLACE_BYTES;
            let is_divided =
                self.used() + needed <= allowed && self.divide(segment, entries, intervals)?;
            if let Some(place) = self.places.get_mut(place) {
                place.offset = if is_divided {
                    saturating_u32(number)
                } else {
                    0
                };
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
        let mut search = Search::new(target, 0..uuids.len() as u64).by_time(times);
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
        Table::build(&Segment::open(source, &options).unwrap()).unwrap()
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
                most = most.max(entries.len());
            }
            assert_eq!(
                most <= LIMITS.crowd_entries as usize,
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
        assert_eq!(interval.end.entry - interval.begin.entry, 1000);
        assert!(interval.near().is_none());
    }

    proptest::proptest! {
        #[test]
        fn every_time_has_a_place_and_places_ascend(whole in 1..1_u64 << 60, intervals in 2..1_u64 << 32, time: u64, later: u64) {
            let division = Division::new(intervals, 0, whole - 1, 0).unwrap();
            let (time, later) = (time % whole, later % whole);
            let (time, later) = (time.min(later), time.max(later));
            let (spot, after) = (division.spot(time), division.spot(later));
            proptest::prop_assert!(spot <= after && after.0 <= division.count - 2);
        }
    }
}
