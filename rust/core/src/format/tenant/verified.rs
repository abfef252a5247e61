//! The units of a file whose table of contents does not lead to them, as one scan through the file verified them:
//! blocks, or partitions of version 1. A look-up keeps the list, so that only its first search reads the whole file.

use std::cmp::Ordering;

use super::VERSION_1;
use super::block::Name;
use super::front::Segment;
use super::judge::GoodPartition;
use super::rows::GoodBlock;
use super::toc::{Entry, TOC_START};
use super::walk::{TenantScan, TenantWalk};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::walk::{Step, Walk};

/// What a scan through a whole file verified.
#[derive(Debug)]
pub(super) struct VerifiedBlocks {
    /// The entries that would describe the units. They ascend by partition and tenant. Version 1: without tenants.
    units: Vec<Entry>,
    is_v1: bool,
    /// Whether any range of the file is damaged.
    pub(super) is_damaged: bool,
}

impl VerifiedBlocks {
    /// Scans a file past all damage.
    pub(super) fn scan(segment: &Segment) -> Result<Self> {
        let mut verified = Self {
            units: Vec::new(),
            is_v1: segment.front.version == VERSION_1,
            is_damaged: false,
        };
        let mut walk = TenantWalk::new(TenantScan::of_blocks(segment));
        loop {
            let step = walk.step()?;
            verified.is_damaged |= walk.found_damage();
            let found = walk.scan().found();
            if verified.is_listed() {
                let units = &mut verified.units;
                match verified.is_v1 {
                    true => units.extend(found.good_partitions().iter().map(of_partition)),
                    false => units.extend(found.good().iter().map(of_block)),
                }
            }
            if step != Step::More {
                return Ok(verified);
            }
        }
    }

    /// Whether all units are listed. If not, they were too many.
    pub(super) fn is_listed(&self) -> bool {
        self.units.len() <= LIMITS.listed_tenant_units
    }

    /// The unit that has the messages of a tenant, if there is one.
    pub(super) fn find(
        &self,
        source: &dyn Source,
        partition: u32,
        tenant: &[u8],
    ) -> Result<Option<&Entry>> {
        let mut compared = Ok(());
        let place = self.units.binary_search_by(|unit| {
            let order = unit.partition.cmp(&partition);
            if order != Ordering::Equal || self.is_v1 {
                return order;
            }
            match unit.tenant.order(source, tenant) {
                Ok(order) => order,
                Err(error) => {
                    compared = Err(error);
                    Ordering::Equal
                }
            }
        });
        compared.map(|()| self.units.get(place.ok()?))
    }
}

fn of_block(good: &GoodBlock) -> Entry {
    let tenant = good.tenant.up_to(LIMITS.signpost_tenant_bytes);
    Entry::new(TOC_START, &good.entry, tenant)
}

fn of_partition(good: &GoodPartition) -> Entry {
    Entry {
        at: TOC_START,
        end: TOC_START,
        partition: good.partition,
        tenant: Name::empty(),
        messages: good.tenants,
        offset: good.at,
        length: good.end - good.at,
        crc: 0,
    }
}
