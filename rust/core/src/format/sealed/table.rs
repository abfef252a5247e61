//! A table from times to the entries that have them, so that a look-up begins next to what it looks for: stretches of time, all of
//! one length, each with its entries. Where many share a stretch, as those of a burst do, it is divided once more.

use std::ops::Range;

use super::layout::UUID_BYTES;
use super::search::Search;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_item};
use crate::saturating::saturating_u64;
use crate::uuid6;

/// Offsets are kept in units of so many bytes: they say what to ask for.
const OFFSET_UNIT: u64 = CACHE_LINE_BYTES as u64;

/// Where a stretch of time begins. Both numbers side by side, since one look at memory is most of what a look-up takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The number of the first entry that is not earlier.
    pub(super) entry: u32,
    /// Where its message begins, in [`OFFSET_UNIT`]s: for guessing where those of the stretch do, and nothing else. Of a crowded
    /// stretch the number of its division, 0 if it has none.
    pub(super) offset: u32,
}

impl Place {
    pub(super) fn new(entry: u32, offset: u64) -> Self {
        let offset = u32::try_from(offset / OFFSET_UNIT).unwrap_or(u32::MAX);
        Self { entry, offset }
    }
}

/// Stretches of time, all of one length, from the first to the last of some entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// The times of these entries, in ticks.
    pub(super) first: u64,
    pub(super) last: u64,
    /// How many stretches a tick is, before they are joined, times 2^64.
    pub(super) scale: u64,
    /// They are joined, two to the power of this many.
    pub(super) joined: u32,
    /// How many ticks a stretch is long, rounded down.
    pub(super) width: u64,
    /// Where its places are: one more than there are stretches, the last behind all entries.
    pub(super) begin: usize,
    pub(super) count: usize,
}

/// A time's place in a division, and how far it is from there to the next one, in 2^32ths.
type Spot = (usize, u64);

impl Division {
    /// So many stretches of this time, as far as it has ticks.
    pub(super) fn new(stretches: u64, first: u64, last: u64, begin: usize) -> Option<Self> {
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
    pub(super) fn spot(&self, time: u64) -> Option<Spot> {
        let since = time.checked_sub(self.first).filter(|_| time <= self.last)?;
        let scaled = (u128::from(since) * u128::from(self.scale)) >> self.joined;
        let place = usize::try_from(scaled >> u64::BITS).ok()?;
        let part = u64::try_from((scaled >> u32::BITS) & u128::from(u32::MAX)).ok()?;
        Some((place, part))
    }
}

/// For each stretch of time the first entry that is not earlier: all that stands between two of them has one of these times. Only
/// made of an index whose UUIDs ascend, so that who searches between two places finds what he would have found among all.
#[derive(Debug)]
pub(super) struct Table {
    /// The first is of the whole time, each other of a crowded stretch of one in front of it.
    pub(super) divisions: Vec<Division>,
    /// Those of all divisions.
    pub(super) places: Vec<Place>,
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
        let options = Options {
            lookup_table_bytes: allowed,
            ..Options::default()
        };
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
