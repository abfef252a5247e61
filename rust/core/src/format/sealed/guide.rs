//! Where a search begins: between the ends of the index, or, once that has paid, between two places of a table.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::front::Front;
use super::layout::{Entry, UUID_BYTES};
use super::search::Search;
use super::table::{Near, Table};
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::source::Source;
use crate::uuid6;

/// What is known of where UUIDs stand in an index.
#[derive(Debug, Default)]
pub(super) struct Guide {
    /// The times of the first and the last entry, in ticks.
    ends: OnceLock<[u64; 2]>,
    /// Once it was made, or could not be.
    table: OnceLock<Option<Table>>,
    is_being_made: AtomicBool,
    looked_up: AtomicU64,
}

impl Guide {
    /// The table, if there is one.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.get().and_then(Option::as_ref)
    }

    /// Counts look-ups, and makes the table once it would have paid. Other threads go on without meanwhile.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn count(
        &self,
        lookups: usize,
        source: &dyn Source,
        options: &Options,
        front: &Front,
    ) -> Result<()> {
        if self.table.get().is_some() {
            return Ok(());
        }
        let lookups = lookups as u64;
        let before = self.looked_up.fetch_add(lookups, Ordering::Relaxed);
        let enough = (front.entries / LIMITS.entries_per_lookup).max(LIMITS.least_lookups);
        if before.saturating_add(lookups) < enough
            || self.is_being_made.swap(true, Ordering::AcqRel)
        {
            return Ok(());
        }
        let built = Table::build(source, options, front);
        self.is_being_made.store(false, Ordering::Release);
        let table = match built {
            Ok(table) => table,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // Looking up does without: what cannot be read may be far from what is looked for.
            Err(_) => None,
        };
        self.table.get_or_init(|| table);
        Ok(())
    }

    /// Makes the table now.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
    pub(super) fn prepare(
        &self,
        source: &dyn Source,
        options: &Options,
        front: &Front,
    ) -> Result<()> {
        if self.table.get().is_none() {
            let table = Table::build(source, options, front)?;
            self.table.get_or_init(|| table);
        }
        Ok(())
    }

    /// A search for the first of so many entries whose UUID is not smaller than this one, and about where it will end, if that is
    /// known; `entry` gives one by its number.
    pub(super) fn search(
        &self,
        uuid: &[u8; UUID_BYTES],
        entries: u64,
        entry: impl FnMut(u64) -> Result<Option<Entry>>,
    ) -> Result<(Search, Option<Near>)> {
        if let Some(search) = self.table().and_then(|table| table.search(uuid)) {
            return Ok(search);
        }
        let [first, last] = self.ends(entries, entry)?;
        Ok((Search::new(*uuid, 0..entries, first..last), None))
    }

    fn ends(
        &self,
        entries: u64,
        mut entry: impl FnMut(u64) -> Result<Option<Entry>>,
    ) -> Result<[u64; 2]> {
        if let Some(ends) = self.ends.get() {
            return Ok(*ends);
        }
        let mut time = |number| Ok(entry(number)?.map_or(0, |entry| uuid6::ticks(&entry.uuid)));
        let ends = [time(0)?, time(entries.saturating_sub(1))?];
        Ok(*self.ends.get_or_init(|| ends))
    }
}
