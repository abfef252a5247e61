//! The messages that a writer collects, by partition and tenant: in memory and, past a limit, in a temporary file.
//!
//! Each time that memory is full, the messages of each tenant become one more extent of the file. An extent begins with where the one
//! before it begins, so of a tenant only the place of its last extent stays in memory.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bug::OrBug;
use crate::cursor::fields;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::walk::Interrupt;

/// The approximate memory of a tenant apart from its messages and its ID, which the table of contents has once more.
const TENANT_BYTES: u64 = 160;
/// What precedes the messages of an extent: where the messages of the extent before begin, and how long they are.
const EXTENT_HEADER_BYTES: usize = 16;

/// The messages of one tenant in one partition.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) messages: u32,
    /// The length fields and contents that are in memory: the last ones.
    bytes: Vec<u8>,
    /// Where those in the last extent begin. 0 if there is none.
    spilled: u64,
}

/// The tenants of a partition, by ID.
pub(super) type Tenants = BTreeMap<Vec<u8>, Group>;

/// Messages by partition and tenant.
#[derive(Debug, Default)]
pub(super) struct Groups {
    partitions: BTreeMap<u32, Tenants>,
    /// How many bytes of memory the messages take.
    pub(super) bytes: u64,
    /// About how many the tenants take.
    tenants_bytes: u64,
    /// The extents. `None` before the first.
    spool: Option<Spool>,
}

impl Groups {
    /// The partitions and their tenants, ascending.
    pub(super) const fn partitions(&self) -> &BTreeMap<u32, Tenants> {
        &self.partitions
    }

    /// Appends a message to its tenant's, and returns its index.
    ///
    /// # Errors
    /// [`Error::Usage`] for an index that is not the next one, or more messages than fit into a block.
    pub(super) fn push(
        &mut self,
        partition: u32,
        tenant: &[u8],
        index: Option<u64>,
        value: &[u8],
        most: u64,
    ) -> Result<u64> {
        let value_len = u32::try_from(value.len()).map_err(|_| too_long("value", value.len()))?;
        let next = match self.group(partition, tenant) {
            Some(group) => group.messages,
            None => 0,
        };
        if let Some(index) = index.filter(|index| *index != u64::from(next)) {
            return Err(Error::Usage(format!(
                "index {index} is not the next one of this tenant in partition {partition}, which is {next}: write its \
                 messages in order, or leave index out"
            )));
        }
        let messages = next.checked_add(1).ok_or_else(|| {
            Error::Usage(format!(
                "partition {partition} has {next} messages of this tenant: no more fit into a block. Use another partition or tenant"
            ))
        })?;
        let group = self.name(partition, tenant, most)?;
        let before = group.bytes.capacity();
        if value.len() > before {
            group.bytes.reserve_exact(value.len() + 4);
        }
        group.bytes.extend_from_slice(&value_len.to_be_bytes());
        group.bytes.extend_from_slice(value);
        group.messages = messages;
        let grown = group.bytes.capacity() - before;
        self.bytes += grown as u64;
        Ok(next.into())
    }

    fn group(&self, partition: u32, tenant: &[u8]) -> Option<&Group> {
        self.partitions.get(&partition)?.get(tenant)
    }

    /// Adds the tenant if it is new, without messages. The tenants may take `most` bytes of memory.
    ///
    /// # Errors
    /// [`Error::Usage`] for a tenant ID that is too long, or too many tenants.
    pub(super) fn name(&mut self, partition: u32, tenant: &[u8], most: u64) -> Result<&mut Group> {
        u32::try_from(tenant.len()).map_err(|_| too_long("tenant ID", tenant.len()))?;
        if self.group(partition, tenant).is_none() {
            let needed = self.tenants_bytes + TENANT_BYTES + 2 * tenant.len() as u64;
            if needed > most {
                return Err(Error::Usage(format!(
                    "the tenants' IDs need {needed} bytes of memory, more than the {most} that they may take: write several \
                     segments, or raise memory_bytes above that"
                )));
            }
            self.tenants_bytes = needed;
            let tenants = self.partitions.entry(partition).or_default();
            tenants.insert(tenant.to_vec(), Group::default());
        }
        let tenants = self.partitions.get_mut(&partition);
        let group = tenants.and_then(|tenants| tenants.get_mut(tenant));
        group.or_bug("the tenant that was added")
    }

    /// Moves the messages into the temporary file, which is made in the folder of `path`. After an error those that are not in the file
    /// are still in memory.
    pub(super) fn spill(&mut self, disk: &DiskRef, path: &Path) -> Result<()> {
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::create(disk, path)?),
        };
        let groups = self.partitions.values_mut().flat_map(BTreeMap::values_mut);
        for group in groups.filter(|group| !group.bytes.is_empty()) {
            let bytes = std::mem::take(&mut group.bytes);
            self.bytes -= bytes.capacity() as u64;
            let out = spool.buffer();
            out.extend_from_slice(&group.spilled.to_be_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            group.spilled = spool.len();
            spool.buffer().extend_from_slice(&bytes);
            spool.flush_if_full()?;
        }
        Ok(())
    }

    /// Passes the length fields and contents of a tenant's messages to `out`, in their order.
    pub(super) fn read(
        &self,
        group: &Group,
        interrupt: Option<&Interrupt>,
        mut out: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut extents, mut start, mut piece) = (Vec::new(), group.spilled, Vec::new());
        let read = |at, len, piece: &mut Vec<u8>| {
            if interrupt.is_some_and(Interrupt::stops) {
                return Err(Error::Interrupted);
            }
            let spool = self.spool.as_ref().or_bug("a file of what was spilled")?;
            spool.read(at, len, piece)
        };
        while start > 0 {
            let header = start - EXTENT_HEADER_BYTES as u64;
            read(header, EXTENT_HEADER_BYTES, &mut piece)?;
            let header = piece.first_chunk::<EXTENT_HEADER_BYTES>();
            let (before, len): (u64, u64) = fields(header.or_bug("an extent's header")?);
            extents.push((start, len));
            start = before;
        }
        for (start, len) in extents.into_iter().rev() {
            let end = start + len;
            let mut at = start;
            while at < end {
                let most = LIMITS.spilled_read_bytes;
                read(at, saturating_usize(end - at).min(most), &mut piece)?;
                out(&piece)?;
                at += piece.len() as u64;
            }
        }
        out(&group.bytes)
    }
}

fn too_long(what: &str, len: usize) -> Error {
    Error::Usage(format!(
        "the {what} has {len} bytes: at most {} fit into a segment",
        u32::MAX
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tenants_that_need_too_much_memory_are_refused() {
        let mut groups = Groups::default();
        assert_eq!(groups.push(1, b"tenant", None, b"v", 180).unwrap(), 0);
        let refused = groups.push(2, b"other", None, b"v", 180);
        let is_named = |error: Error| error.to_string().contains("raise memory_bytes");
        assert!(refused.is_err_and(is_named));
        assert_eq!(groups.partitions().len(), 1);
        assert_eq!(groups.push(1, b"tenant", None, b"v", 180).unwrap(), 1);
    }
}
