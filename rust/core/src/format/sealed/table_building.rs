//! Making a table of an index.

use std::ops::Range;

use super::front::Front;
use super::index::each_piece;
use super::layout::Entry;
use super::reader::read_array;
use super::table::{Division, Place, Table};
use crate::bug::OrBug;
use crate::engine::Options;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::uuid6;

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
        let allowed = options.lookup_table_bytes as u64;
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
            table: Self {
                divisions: Vec::new(),
                places: Vec::new(),
            },
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
        let entry = |number| Ok(Entry::parse(&read_array(self.source, at(number))?));
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
        let mut filling = Filling {
            division,
            places,
            number: start,
            before: None,
        };
        let mut ascends = true;
        each_piece(self.source, self.options, at(start), at(end), |bytes| {
            let mut entries = bytes.as_chunks().0.iter().map(Entry::parse);
            ascends = entries.all(|entry| filling.add(&entry).is_some());
            ascends
        })?;
        if !ascends {
            places.truncate(division.begin);
            return Ok(None);
        }
        let behind = match u64::from(end) == self.front.entries {
            true => self.front.data_end,
            false => entry(end)?.offset,
        };
        places.resize(division.begin + division.count, Place::new(end, behind));
        self.table.divisions.push(division);
        self.join_if_crowded(u64::from(end - start));
        Ok(Some(self.table.divisions.len() - 1))
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

/// A division that entries are added to.
struct Filling<'a> {
    division: Division,
    places: &'a mut Vec<Place>,
    number: u32,
    before: Option<u128>,
}

impl Filling<'_> {
    /// Adds the next entry; `None` if it does not ascend.
    fn add(&mut self, entry: &Entry) -> Option<()> {
        let uuid = u128::from_be_bytes(entry.uuid);
        if self.before.is_some_and(|before| before >= uuid) || !uuid6::is_v6(&entry.uuid) {
            return None;
        }
        self.before = Some(uuid);
        let (place, _) = self.division.spot(uuid6::ticks(&entry.uuid))?;
        if place >= self.division.count {
            return None;
        }
        let place = self.division.begin + place;
        if place >= self.places.len() {
            let begins = Place::new(self.number, entry.offset);
            self.places.resize(place + 1, begins);
        }
        self.number = self.number.checked_add(1)?;
        Some(())
    }
}
