//! Finds messages by the table of contents: only it and the blocks that are asked for are read. If it does not lead to
//! them, one scan through the file lists the units that are verified.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::front::{Front, Segment};
use super::toc::Entry;
use super::walk::{TenantScan, TenantWalk};
use super::{FORMAT, VERSION_1};
use crate::error::{Damage, Result};
use crate::limits::LIMITS;
use crate::private::Sealed;
use crate::record::{OwnedRows, RecordId, Scalar, Value};
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Hits, Lookup, Options, Step, Unproven, Walk};

/// Looks up messages in one file. The table of contents is read and verified once.
pub(super) struct TocLookup {
    segment: Segment,
    /// If the table of contents leads to the blocks: places in it.
    signposts: OnceLock<Vec<Signpost>>,
    /// If the table of contents does not lead to the blocks: what a scan through the whole file verified.
    verified: OnceLock<VerifiedBlocks>,
    /// The first damage in the file, once a strict read met it.
    damage: Arc<OnceLock<Damage>>,
}

/// An entry: partition, tenant, where the entry begins, and how many are left from there on.
type Signpost = (u32, Arc<[u8]>, u64, u64);

/// A message that is asked for: partition, tenant and index, and its position in the request.
type Asked<'a> = (u32, &'a [u8], u64, usize);

impl TocLookup {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            segment: Segment::open(source, &options.clone().format(&FORMAT))?,
            signposts: OnceLock::new(),
            verified: OnceLock::new(),
            damage: Arc::default(),
        })
    }

    /// Every n-th entry, of as many as are kept at most.
    fn signposts(&self) -> Result<&[Signpost]> {
        if let Some(signposts) = self.signposts.get() {
            return Ok(signposts);
        }
        let (all, mut nth) = (self.segment.front.entries, LIMITS.signpost_stride);
        while nth * LIMITS.max_signposts < all {
            nth *= 2;
        }
        let (mut signposts, mut entries) = (Vec::new(), self.segment.entries());
        while let Some(entry) = entries.next(&*self.segment.source)? {
            let left = entries.left + 1;
            let is_listed = (all - left).is_multiple_of(nth)
                && entry.tenant.len <= LIMITS.signpost_tenant_bytes;
            if let Some(tenant) = entry.tenant.bytes().filter(|_| is_listed) {
                signposts.push((entry.partition, tenant.clone(), entry.at, left));
            }
        }
        Ok(self.signposts.get_or_init(|| signposts))
    }

    /// A pruned walk of one tenant's entry, if the table of contents names it.
    fn walk_tenant(
        &self,
        partition: u32,
        tenant: &[u8],
        options: Options,
    ) -> Result<Option<TenantWalk>> {
        let signposts = self.signposts()?;
        // Those of version 1 have empty IDs.
        let after =
            signposts.partition_point(|(listed, id, ..)| (*listed, &**id) <= (partition, tenant));
        let (at, left) = match after
            .checked_sub(1)
            .and_then(|before| signposts.get(before))
        {
            Some((.., at, left)) => (*at, *left),
            None => self.segment.front.place(),
        };
        let following = match signposts.get(after) {
            Some((.., following)) => *following,
            None => 0,
        };
        let is_v1 = self.segment.front.version == VERSION_1;
        let source = &*self.segment.source;
        let mut listed = self.segment.entries();
        (listed.at, listed.left) = (at, left - following);
        while let Some(entry) = listed.next(source)? {
            if entry.partition == partition && (is_v1 || entry.tenant.is(source, tenant)?) {
                let scan = TenantScan::prune(&self.segment.with(options), (entry.at, 1));
                return Ok(Some(TenantWalk::new(scan)));
            }
        }
        Ok(None)
    }

    /// Finds messages of one tenant, by the table of contents or among the verified units. Returns whether its block is
    /// damaged.
    fn get_of(
        &self,
        verified: Option<&VerifiedBlocks>,
        asked: &[Asked<'_>],
        hits: &mut Hits,
        found: &mut OwnedRows,
    ) -> Result<bool> {
        let Some(&(partition, tenant, ..)) = asked.first() else {
            return Ok(false);
        };
        let walk = match verified {
            None => {
                let options = self.options(filter(asked), self.segment.options.strict);
                self.walk_tenant(partition, tenant, options)?
            }
            Some(verified) => {
                let segment = self.segment.with(self.options(filter(asked), false));
                let is_v1 = segment.front.version == VERSION_1;
                let unit = verified.find(is_v1, partition, tenant);
                unit.map(|unit| TenantWalk::new(TenantScan::of_unit(&segment, unit)))
            }
        };
        match walk {
            Some(walk) => take_all(walk, asked.len(), asked, hits, found),
            None => Ok(false),
        }
    }

    fn options(&self, filter: Filter, strict: bool) -> Options {
        let options = self.segment.options.clone().filter(filter);
        options.values(true).strict(strict)
    }

    /// What a scan through the whole file verified.
    fn verified(&self) -> Result<&VerifiedBlocks> {
        if let Some(verified) = self.verified.get() {
            return Ok(verified);
        }
        let options = self.options(Filter::default(), false);
        let verified = VerifiedBlocks::scan(&self.segment.with(options))?;
        Ok(self.verified.get_or_init(|| verified))
    }

    /// Finds messages by walking the whole file.
    fn scan(&self, asked: &[Asked<'_>], hits: &mut Hits, found: &mut OwnedRows) -> Result<bool> {
        let segment = self.segment.with(self.options(filter(asked), false));
        let walk = TenantWalk::new(TenantScan::begin(&segment));
        // To the end, also if all are found: whether the file is damaged concerns identifiers that no message can have, too.
        take_all(walk, usize::MAX, asked, hits, found)
    }

    /// A scan that raises the file's first damage.
    fn refusing(&self) -> TenantScan {
        let options = self.options(Filter::default(), true);
        TenantScan::refusing(&self.segment.with(options), self.damage.clone())
    }
}

/// A filter for these partitions and tenants.
fn filter(asked: &[Asked<'_>]) -> Filter {
    let (mut partitions, mut tenants) = (Vec::new(), Vec::new());
    for of_tenant in asked.chunk_by(is_of_one_tenant) {
        partitions.extend(of_tenant.first().map(|one| one.0));
        tenants.extend(of_tenant.first().map(|one| one.1.to_vec()));
    }
    Filter::default()
        .among("partition", partitions)
        .among("tenant", tenants)
}

fn is_of_one_tenant(one: &Asked<'_>, other: &Asked<'_>) -> bool {
    (one.0, one.1) == (other.0, other.1)
}

/// Copies the requested messages from a walk, until this many places are filled. Returns whether it met damage.
fn take_all(
    mut walk: TenantWalk,
    mut missing: usize,
    asked: &[Asked<'_>],
    hits: &mut Hits,
    found: &mut OwnedRows,
) -> Result<bool> {
    let mut is_damaged = false;
    while missing > 0 && walk.step()? == Step::More {
        is_damaged |= walk.found_damage();
        missing -= take_rows(&walk, asked, hits, found);
    }
    Ok(is_damaged)
}

/// Copies the requested messages from a walk's last step. Returns how many positions they fill.
fn take_rows(
    walk: &TenantWalk,
    asked: &[Asked<'_>],
    hits: &mut Hits,
    found: &mut OwnedRows,
) -> usize {
    let rows = walk.rows();
    let mut filled = 0;
    for row in 0..rows.len() {
        let (Value::Int64(partition), Value::Text(tenant), Value::Int64(index)) =
            (rows.field(row, 0), rows.field(row, 1), rows.field(row, 2))
        else {
            continue;
        };
        let (Ok(partition), Ok(index)) = (u32::try_from(partition), u32::try_from(index)) else {
            continue;
        };
        let key = (partition, tenant, u64::from(index));
        let first = asked.partition_point(|one| (one.0, one.1, one.2) < key);
        let same = asked.iter().skip(first);
        let mut same = same
            .take_while(|one| (one.0, one.1, one.2) == key)
            .peekable();
        if same.peek().is_none() {
            continue;
        }
        let row = found.push(&*rows, row);
        for (.., place) in same {
            if let Some(place) = hits.places.get_mut(*place)
                && place.is_none()
            {
                *place = Some((0, row));
                filled += 1;
            }
        }
    }
    filled
}

impl Sealed for TocLookup {}

impl Lookup for TocLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let asked = ids.iter().enumerate().filter_map(|(place, id)| {
            let [
                Scalar::Integer(partition),
                Scalar::Text(tenant),
                Scalar::Integer(index),
            ] = id.values()
            else {
                return None;
            };
            // Records have no negative or greater ones.
            match (u32::try_from(*partition), u64::try_from(*index)) {
                (Ok(partition), Ok(index)) => Some((partition, tenant.as_slice(), index, place)),
                _ => None,
            }
        });
        let mut asked: Vec<Asked<'_>> = asked.collect();
        asked.sort_unstable();
        let Segment { options, front, .. } = &self.segment;
        let mut found = OwnedRows::new(FORMAT.columns(options.dialect));
        let mut hits = Hits {
            places: vec![None; ids.len()],
            ..Hits::default()
        };
        let verified = match front.is_searched() {
            true => Some(self.verified()?),
            false => None,
        };
        let mut block_is_damaged = false;
        let is_damaged = if front.leads_directly()
            || verified.is_some_and(|verified| verified.units.is_some())
        {
            for of_tenant in asked.chunk_by(is_of_one_tenant) {
                block_is_damaged |= self.get_of(verified, of_tenant, &mut hits, &mut found)?;
            }
            verified.is_some_and(|verified| verified.is_damaged)
        } else {
            self.scan(&asked, &mut hits, &mut found)?
        };
        if options.strict && is_damaged && hits.places.contains(&None) {
            // Missing messages might have been where the damage is.
            TenantWalk::new(self.refusing()).step()?;
        }
        if hits.places.contains(&None) {
            hits.unproven = Unproven::of(is_damaged || block_is_damaged, front.checked());
        }
        hits.sets.push(Box::new(found));
        Ok(hits)
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let Segment { options, front, .. } = &self.segment;
        let segment = self.segment.with(options.clone().filter(filter.clone()));
        let is_damaged = !front.leads_directly() || front.is_damaged();
        let scan = if options.strict && is_damaged {
            // The front is read, so that its damage is met.
            self.refusing()
        } else if front.leads_directly() {
            TenantScan::prune(&segment, front.place())
        } else {
            TenantScan::begin(&segment)
        };
        Ok(Box::new(TenantWalk::new(scan)))
    }
}

impl Front {
    /// Whether a look-up can use the table of contents: it can be trusted, its order says where to look, and no
    /// two of its entries name the same bytes.
    pub(super) fn leads_directly(&self) -> bool {
        self.is_sound() && self.ascending && self.disorder.is_none() && !self.is_count_wrong()
    }

    /// Whether a look-up searches the file for its blocks once. Not if the table leads to them, and not if the file cannot
    /// be read at all. Not for a table of version 2 with a matching CRC-32 either, which no damage produces: there its
    /// blocks depend on all of its entries.
    fn is_searched(&self) -> bool {
        !self.leads_directly() && !self.refused && (self.version == VERSION_1 || !self.is_sound())
    }
}

/// Entries by partition and tenant.
type Units = BTreeMap<(u32, Arc<[u8]>), Entry>;

/// What a scan through a whole file verified.
#[derive(Debug)]
struct VerifiedBlocks {
    /// The entries that would describe the units, by partition and tenant. Version 1: without tenants. `None` if they would take too
    /// much memory.
    units: Option<Units>,
    /// The total length of the tenants' IDs.
    id_bytes: usize,
    /// Whether any range of the file is damaged.
    is_damaged: bool,
}

impl VerifiedBlocks {
    /// Scans a file past all damage.
    fn scan(segment: &Segment) -> Result<Self> {
        let mut verified = Self {
            units: Some(Units::new()),
            id_bytes: 0,
            is_damaged: false,
        };
        let mut walk = TenantWalk::new(TenantScan::of_blocks(segment));
        loop {
            let step = walk.step()?;
            verified.is_damaged |= walk.found_damage();
            let found = &walk.scan().on.found;
            let units = match segment.front.version {
                VERSION_1 => &found.partitions,
                _ => &found.good,
            };
            units.iter().for_each(|unit| verified.add(unit));
            if step != Step::More {
                return Ok(verified);
            }
        }
    }

    fn add(&mut self, unit: &Entry) {
        let most = LIMITS.listed_tenant_units;
        if let (Some(units), Some(id)) = (&mut self.units, unit.tenant.bytes()) {
            self.id_bytes += id.len();
            units.insert((unit.partition, id.clone()), unit.clone());
            if units.len() <= most && self.id_bytes <= most * LIMITS.listed_tenant_bytes {
                return;
            }
        }
        self.units = None;
    }

    /// The unit that has the messages of a tenant, if there is one.
    fn find(&self, is_v1: bool, partition: u32, tenant: &[u8]) -> Option<&Entry> {
        let tenant = if is_v1 { &[] } else { tenant };
        self.units.as_ref()?.get(&(partition, tenant.into()))
    }
}
