//! Where a scan stands: in the table of contents, and behind which good block or partition.

use serde::{Deserialize, Serialize};

use super::block::Name;
use super::toc::Table;

/// Where blocks and partitions are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reach {
    /// Where their entries say, whatever is in front.
    InPlace,
    /// Also behind the last good one.
    Behind,
}

pub(super) struct Position {
    pub(super) table: Table,
    pub(super) reach: Reach,
    /// Where the last good block (version 1: partition) ends. Before the first it is where the number of partitions does, if
    /// that is known.
    pub(super) end: Option<u64>,
    /// Its partition and tenant, which the next one's are greater than. Version 1: the tenant is empty.
    pub(super) last: Option<(u32, Name)>,
    /// The search budget has ended.
    pub(super) is_limited: bool,
}

impl Position {
    pub(super) const fn new(table: Table, reach: Reach, end: Option<u64>) -> Self {
        Self {
            table,
            reach,
            end,
            last: None,
            is_limited: false,
        }
    }

    /// Goes on behind a good block or partition that ends at `end`. In place, what is in front of the next does not matter.
    pub(super) fn go_behind(&mut self, end: u64, last: (u32, Name)) {
        self.end = Some(end);
        if self.reach == Reach::Behind {
            self.last = Some(last);
        }
    }

    /// Where the last good block ends; 0 before the first.
    pub(super) fn good_end(&self) -> u64 {
        self.last.as_ref().and(self.end).unwrap_or(0)
    }

    /// The last good partition's ID.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.last.as_ref().map(|(partition, _)| *partition)
    }
}
