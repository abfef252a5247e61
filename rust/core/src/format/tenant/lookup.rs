//! Finding messages by the table of contents: only it and the blocks that are asked for are read.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use super::FORMAT;
use super::VERSION_1;
use super::block::{BLOCK_HEADER_BYTES, Name};
use super::front::Front;
use super::layout::TocEntry;
use super::ranges::{self, count_is_wrong};
use super::walk::{TenantScan, TenantWalk};
use crate::bug::OrBug;
use crate::engine::{Filter, Hits, Lookup, Options, Step, Unproven, Walk};
use crate::error::{Damage, Error, Result};
use crate::limits::LIMITS;
use crate::own::Own;
use crate::record::{Checked, OwnedRows, RecordId, Scalar, Value};
use crate::source::Source;

/// Looks messages up in one file. The table of contents is read and checked once.
pub(super) struct TocLookup {
    source: Arc<dyn Source>,
    options: Options,
    known: OnceLock<Known>,
}

/// What is known of the file once it has been looked at.
struct Known {
    front: Arc<Front>,
    /// Some entries: partition, tenant, where the entry begins, and how many are left from there on.
    signposts: Vec<(u32, Arc<[u8]>, u64, u64)>,
    /// Version 2, where the table of contents does not lead there: what a walk through the whole file found.
    proven: OnceLock<Proven>,
    /// The first damage in the file, once a strict look-up met it.
    damage: OnceLock<Damage>,
}

/// The blocks that count, which ascend by partition and tenant.
struct Proven {
    blocks: Vec<TocEntry>,
    /// Whether others may be missing.
    is_damaged: bool,
}

/// A message that is asked for: partition, tenant and index, and its place among all that are.
type Asked<'a> = (u32, &'a [u8], u64, usize);

impl TocLookup {
    pub(super) fn new(source: Arc<dyn Source>, options: &Options) -> Self {
        Self {
            source,
            options: options.clone(),
            known: OnceLock::new(),
        }
    }

    fn known(&self) -> Result<&Known> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let front = Arc::new(Front::read(&*self.source, &self.options)?);
        let (mut signposts, mut stride) = (Vec::new(), LIMITS.signpost_stride);
        if front.leads_directly() {
            let mut entries = front.begin(&self.options);
            while let Some(entry) = entries.next(&*self.source)? {
                if signposts.len() >= LIMITS.max_signposts {
                    let mut is_kept = false;
                    signposts.retain(|_| {
                        is_kept = !is_kept;
                        is_kept
                    });
                    stride = stride.saturating_mul(2);
                }
                let left = entries.left + 1;
                if (front.entries - left).is_multiple_of(stride)
                    && entry.tenant.len <= LIMITS.signpost_tenant_bytes
                    && let Some(tenant) = entry.tenant.bytes()
                {
                    signposts.push((entry.partition, tenant.clone(), entry.at, left));
                }
            }
        }
        Ok(self.known.get_or_init(|| Known {
            front,
            signposts,
            proven: OnceLock::new(),
            damage: OnceLock::new(),
        }))
    }

    /// The walk through what one tenant has; `None` where the table of contents does not name it.
    fn walk_tenant(
        &self,
        known: &Known,
        partition: u32,
        tenant: &[u8],
        options: &Options,
    ) -> Result<Option<TenantWalk>> {
        let is_v1 = known.front.version == VERSION_1;
        let behind = known.signposts.partition_point(|(own, id, ..)| {
            if is_v1 {
                *own <= partition
            } else {
                (*own, &**id) <= (partition, tenant)
            }
        });
        let mut entries = known.front.begin(&self.options);
        if let Some((.., at, left)) = behind
            .checked_sub(1)
            .and_then(|place| known.signposts.get(place))
        {
            (entries.at, entries.left) = (*at, *left);
        }
        while let Some(entry) = entries.next(&*self.source)? {
            if entry.partition > partition {
                break;
            }
            if entry.partition == partition && (is_v1 || entry.tenant.is(&*self.source, tenant)?) {
                let (source, front) = (self.source.clone(), known.front.clone());
                let place = Some((entry.at, 1));
                let scan = TenantScan::prune(source, options, front, place);
                return Ok(Some(TenantWalk::new(scan)));
            }
        }
        Ok(None)
    }

    /// Finds messages of one tenant. Gives whether its block is damaged.
    fn get_of(
        &self,
        known: &Known,
        asked: &[Asked<'_>],
        hits: &mut Hits,
        found: &mut OwnedRows,
    ) -> Result<bool> {
        let Some(&(partition, tenant, ..)) = asked.first() else {
            return Ok(false);
        };
        let walk = match known.front.leads_directly() {
            true => {
                let options = self.options(filter(asked), self.options.strict);
                self.walk_tenant(known, partition, tenant, &options)?
            }
            false => self.walk_block(known, partition, tenant, filter(asked))?,
        };
        let Some(mut walk) = walk else {
            return Ok(false);
        };
        let (mut missing, mut is_damaged) = (asked.len(), false);
        while missing > 0 && walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            missing -= take_rows(&walk, asked, hits, found);
        }
        Ok(is_damaged)
    }

    fn options(&self, filter: Filter, strict: bool) -> Options {
        self.options
            .clone()
            .format(&FORMAT)
            .filter(filter)
            .values(true)
            .strict(strict)
    }

    /// The blocks that count, wherever they are.
    fn proven<'a>(&self, known: &'a Known) -> Result<&'a Proven> {
        if let Some(proven) = known.proven.get() {
            return Ok(proven);
        }
        let options = self.options(Filter::default(), false);
        let (source, front) = (self.source.clone(), known.front.clone());
        let mut walk = TenantWalk::new(TenantScan::of_blocks(source, &options, front, false));
        let (mut blocks, mut is_damaged) = (Vec::new(), false);
        while walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            let kept = walk.scan().found().kept().iter();
            blocks.extend(kept.map(|kept| kept.entry));
        }
        let proven = Proven { blocks, is_damaged };
        Ok(known.proven.get_or_init(|| proven))
    }

    /// The walk through the block of one tenant, where the table of contents does not lead there; `None` where none counts.
    fn walk_block(
        &self,
        known: &Known,
        partition: u32,
        tenant: &[u8],
        filter: Filter,
    ) -> Result<Option<TenantWalk>> {
        let blocks = &self.proven(known)?.blocks;
        let start = blocks.partition_point(|block| block.partition < partition);
        let end = blocks.partition_point(|block| block.partition <= partition);
        let mut own = blocks.get(start..end).or_bug("blocks that ascend")?;
        while let Some((before, [block, behind @ ..])) = own.split_at_checked(own.len() / 2) {
            let name_at = block.offset + BLOCK_HEADER_BYTES;
            let name = Name::read(&*self.source, name_at, block.tenant_len)?;
            own = match name.order(&*self.source, tenant)? {
                Ordering::Less => behind,
                Ordering::Greater => before,
                Ordering::Equal => {
                    let options = self.options(filter, false);
                    let (source, front) = (self.source.clone(), known.front.clone());
                    let scan = TenantScan::of_block(source, &options, front, block, name);
                    return Ok(Some(TenantWalk::new(scan)));
                }
            };
        }
        Ok(None)
    }

    /// Finds messages of version 1 by walking the whole file.
    fn scan(&self, asked: &[Asked<'_>], hits: &mut Hits, found: &mut OwnedRows) -> Result<bool> {
        let options = self.options(filter(asked), false);
        let mut walk = self.whole(&options)?;
        let mut is_damaged = false;
        while walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            take_rows(&walk, asked, hits, found);
        }
        Ok(is_damaged)
    }

    /// Reads the file strictly, up to its first damage, which is remembered.
    fn refuse_damage(&self, known: &Known) -> Result<()> {
        if let Some(damage) = known.damage.get() {
            return Err(Error::Damage(Box::new(damage.clone())));
        }
        let mut walk = self.whole(&self.options(Filter::default(), true))?;
        loop {
            match walk.step() {
                Ok(Step::More) => {}
                Ok(_) => return Ok(()),
                Err(error) => {
                    if let Error::Damage(damage) = &error {
                        known.damage.get_or_init(|| (**damage).clone());
                    }
                    return Err(error);
                }
            }
        }
    }

    fn whole(&self, options: &Options) -> Result<TenantWalk> {
        let front = self.known()?.front.clone();
        let scan = TenantScan::begin(self.source.clone(), options, front);
        Ok(TenantWalk::new(scan))
    }
}

/// The records of these partitions and tenants.
fn filter(asked: &[Asked<'_>]) -> Filter {
    let (mut partitions, mut tenants) = (Vec::new(), Vec::new());
    for of_tenant in asked.chunk_by(is_of_one_tenant) {
        partitions.extend(of_tenant.first().map(|own| own.0));
        tenants.extend(of_tenant.first().map(|own| own.1.to_vec()));
    }
    Filter::default()
        .among("partition", partitions)
        .among("tenant", tenants)
}

fn is_of_one_tenant(one: &Asked<'_>, other: &Asked<'_>) -> bool {
    (one.0, one.1) == (other.0, other.1)
}

/// Takes over the messages of a walk's last step that were asked for. Gives how many places they fill.
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
        let first = asked.partition_point(|own| (own.0, own.1, own.2) < key);
        let same = asked.iter().skip(first);
        let mut same = same
            .take_while(|own| (own.0, own.1, own.2) == key)
            .peekable();
        if same.peek().is_none() {
            continue;
        }
        let own = found.push(&*rows, row);
        for (.., place) in same {
            if let Some(place) = hits.places.get_mut(*place)
                && place.is_none()
            {
                *place = Some((0, own));
                filled += 1;
            }
        }
    }
    filled
}

impl Own for TocLookup {}

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
            // No record has a negative or larger one.
            let (partition, index) = (u32::try_from(*partition), u64::try_from(*index));
            Some((partition.ok()?, tenant.as_slice(), index.ok()?, place))
        });
        let mut asked: Vec<Asked<'_>> = asked.collect();
        asked.sort_unstable();
        let known = self.known()?;
        let mut found = OwnedRows::new(FORMAT.columns(&self.options));
        let mut hits = Hits {
            sets: Vec::new(),
            places: vec![None; ids.len()],
            unproven: None,
        };
        let leads_directly = known.front.leads_directly();
        let mut block_is_damaged = false;
        let is_damaged = if !leads_directly && known.front.version == VERSION_1 {
            self.scan(&asked, &mut hits, &mut found)?
        } else {
            for of_tenant in asked.chunk_by(is_of_one_tenant) {
                block_is_damaged |= self.get_of(known, of_tenant, &mut hits, &mut found)?;
            }
            !leads_directly && self.proven(known)?.is_damaged
        };
        if self.options.strict && is_damaged && hits.places.contains(&None) {
            // What was not found might have stood where the damage is.
            self.refuse_damage(known)?;
        }
        if hits.places.contains(&None) {
            let checked = match known.front.version {
                VERSION_1 => Checked::Structure,
                _ => Checked::Checksum,
            };
            hits.unproven = Unproven::of(is_damaged || block_is_damaged, checked);
        }
        hits.sets.push(Box::new(found));
        Ok(hits)
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let front = self.known()?.front.clone();
        // Damage that the front shows is reported with the rest of the file's, unless somebody only looks something up.
        let direct =
            front.leads_directly() && !(self.options.prune && ranges::front_is_damaged(&front));
        let options = self.options.clone().format(&FORMAT).filter(filter.clone());
        let source = self.source.clone();
        let scan = match direct {
            true => TenantScan::prune(source, &options, front, None),
            false => TenantScan::begin(source, &options, front),
        };
        Ok(Box::new(TenantWalk::new(scan)))
    }
}

impl Front {
    /// Whether a look-up can go by the table of contents: it is to be believed, its order says where to look, and no two of its
    /// entries mean the same bytes.
    pub(super) fn leads_directly(&self) -> bool {
        self.is_sound() && self.ascending && self.disorder.is_none() && !count_is_wrong(self)
    }
}
