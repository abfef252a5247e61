//! Writes a whole segment: messages in any order, grouped, after a table of contents.

use std::io;
use std::path::{Path, PathBuf};

use super::front::COUNT_BYTES;
use super::layout::{TocEntry, block_header, file_header, v1_entry};
use super::runs::{Group, Memory, Merge, Spilled};
use super::toc::{TOC_START, V1_ENTRY_BYTES, V2_ENTRY_BYTES};
use super::{COLUMNS, FORMAT, MEMORY_BYTES, VERSION, VERSION_1, VERSION_2};
use crate::bug::OrBug;
use crate::disk::Handle;
use crate::engine;
use crate::engine::WriteOptions;
use crate::engine::writer::missing;
use crate::error::{Error, Result};
use crate::output::{NewFile, WriteBuffer};
use crate::record::{Column, RecordId, Value};

/// Collects messages, and writes them as a segment when it is closed. Until then no file has its name.
///
/// Messages of one tenant in one partition keep the order in which they are written. Beyond `memory_bytes`,
/// messages are spilled to temporary files in the same folder. The segment is the same, byte for byte. From then
/// on a wrong index may show only when the writer is closed.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    options: WriteOptions,
    version: u16,
    memory: Memory,
    spilled: Spilled,
    /// The new file. It exists already, and is written anew if closing is repeated.
    out: Option<NewFile>,
    closed: bool,
}

impl Writer {
    /// Begins a segment with the path `path`.
    ///
    /// # Errors
    /// [`Error::Usage`] for options that do not apply to the format or are out of bounds. [`Error::Io`] if the
    /// file exists without [`IfExists::Overwrite`](crate::format::IfExists::Overwrite), or its folder is not
    /// writable.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        Ok(Self {
            out: Some(NewFile::create(options.on(), path, options.overwrites())?),
            path: path.to_path_buf(),
            memory: Memory::default(),
            spilled: Spilled::new(path, options),
            options: options.clone(),
            version: u16::try_from(options.number(&VERSION)).or_bug("a version is 1 or 2")?,
            closed: false,
        })
    }

    /// Adds a message of a tenant in a partition. If `index` is given, it must be the number of messages that the
    /// tenant has there so far. Returns the index, if it is known without reading temporary files.
    ///
    /// # Errors
    /// [`Error::Usage`] for another index, a tenant ID or value of more than 2^32-1 bytes, more than 2^32-1
    /// messages, or a closed writer. Nothing is added then. [`Error::Io`] if a temporary file could not be
    /// written. The message is added then.
    pub fn append(
        &mut self,
        partition: u32,
        tenant: &[u8],
        index: Option<u64>,
        value: &[u8],
    ) -> Result<Option<u64>> {
        self.check_open()?;
        let complete = self.spilled.is_empty();
        let index = self
            .memory
            .push(partition, tenant, index, value, complete)?;
        self.spill_if_full()?;
        Ok(index)
    }

    /// Adds a tenant to a partition. It is written even if it gets no messages.
    ///
    /// # Errors
    /// [`Error::Usage`] for a tenant ID of more than 2^32-1 bytes, or a closed writer. [`Error::Io`] if a
    /// temporary file could not be written. The tenant is added then.
    pub fn add_tenant(&mut self, partition: u32, tenant: &[u8]) -> Result<()> {
        self.check_open()?;
        self.memory.name(partition, tenant)?;
        self.spill_if_full()
    }

    fn check_open(&self) -> Result<()> {
        match self.closed {
            true => Err(Error::Usage(
                "the writer is closed: create another segment".to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn spill_if_full(&mut self) -> Result<()> {
        if self.memory.bytes > self.options.bytes(&MEMORY_BYTES) {
            self.spilled.add(&mut self.memory)?;
        }
        Ok(())
    }

    /// Writes the segment, and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`]. [`Error::Usage`] for an index that turns out to be wrong, or more blocks than fit into a
    /// segment. [`Error::Interrupted`]. All messages stay, and closing again writes the file anew.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let mut out = match self.out.take() {
            Some(out) => out,
            None => NewFile::create(self.options.on(), &self.path, self.options.overwrites())?,
        };
        self.write_segment(out.file())?;
        out.commit()?;
        self.forget();
        Ok(())
    }

    /// Discards everything: the segment and the temporary files.
    pub fn abandon(&mut self) {
        self.out = None;
        self.forget();
    }

    fn forget(&mut self) {
        self.closed = true;
        self.memory = Memory::default();
        self.spilled = Spilled::new(&self.path, &self.options);
    }

    fn write_segment(&self, file: &Handle) -> Result<()> {
        let (version, plan) = (self.version, self.plan()?);
        let entries = match version {
            VERSION_1 => plan.partitions,
            _ => plan.blocks,
        };
        let mut toc = Section::new(&self.path, file, 0);
        let mut data = Section::new(&self.path, file, TOC_START + plan.toc_bytes);
        let (mut head, mut toc_crc) = (Vec::new(), crc32fast::Hasher::new());
        file_header(&mut head, version, entries);
        toc_crc.update(&head);
        toc.write(&head)?;
        data.write(&plan.partitions.to_be_bytes())?;
        let mut merge = self.spilled.merge(&self.memory)?;
        let mut partition = None::<Partition>;
        while let Some(group) = merge.next_group()? {
            if partition.as_ref().map(|open| open.id) != Some(group.partition) {
                self.end_partition(partition.take(), &mut data, &mut toc)?;
                partition = Some(Partition {
                    id: group.partition,
                    at: data.at(),
                    tenants: 0,
                });
                // Their number is written when it is known.
                data.write(&[0; 4])?;
            }
            if let Some(partition) = &mut partition {
                partition.tenants += 1; // at most as many as there are blocks
            }
            let entry = write_block(&mut data, &mut merge, &group, &mut head)?;
            if version == VERSION_2 {
                head.clear();
                entry.head(&mut head);
                head.extend_from_slice(&group.tenant);
                entry.tail(&mut head);
                toc_crc.update(&head);
                toc.write(&head)?;
            }
        }
        self.end_partition(partition.take(), &mut data, &mut toc)?;
        if version == VERSION_2 {
            toc.write(&toc_crc.finalize().to_be_bytes())?;
        }
        toc.flush()?;
        data.flush()
    }

    /// Writes the number of tenants, which is known now, and in version 1 the partition's entry.
    fn end_partition(
        &self,
        partition: Option<Partition>,
        data: &mut Section<'_>,
        toc: &mut Section<'_>,
    ) -> Result<()> {
        let Some(partition) = partition else {
            return Ok(());
        };
        data.patch(partition.at, partition.tenants.to_be_bytes())?;
        if self.version == VERSION_1 {
            let (mut entry, length) = (Vec::new(), data.at() - partition.at);
            v1_entry(&mut entry, partition.id, partition.at, length);
            toc.write(&entry)?;
        }
        Ok(())
    }

    /// Plans the table of contents. Of temporary files this reads only the headers of groups.
    fn plan(&self) -> Result<Layout> {
        let (mut partitions, mut blocks, mut tenants_bytes) = (0_u32, 0_u32, 0_u64);
        let mut merge = self.spilled.merge(&self.memory)?;
        let mut last = None;
        while let Some(Group {
            partition, tenant, ..
        }) = merge.next_group()?
        {
            blocks = blocks.checked_add(1).ok_or_else(|| {
                Error::Usage(format!(
                    "there are more than {} tenants in partitions: write several segments",
                    u32::MAX
                ))
            })?;
            if last != Some(partition) {
                partitions += 1; // at most as many as there are blocks
                last = Some(partition);
            }
            tenants_bytes += tenant.len() as u64;
        }
        let toc_bytes = match self.version {
            VERSION_1 => V1_ENTRY_BYTES * u64::from(partitions),
            _ => V2_ENTRY_BYTES * u64::from(blocks) + tenants_bytes + COUNT_BYTES,
        };
        Ok(Layout {
            partitions,
            blocks,
            toc_bytes,
        })
    }
}

struct Layout {
    partitions: u32,
    blocks: u32,
    /// From the first entry on, including the CRC-32.
    toc_bytes: u64,
}

/// The partition that is being written.
struct Partition {
    id: u32,
    /// Where its number of tenants is.
    at: u64,
    tenants: u32,
}

/// Writes a block. Returns its entry of the table of contents.
fn write_block(
    data: &mut Section<'_>,
    merge: &mut Merge<'_>,
    group: &Group,
    head: &mut Vec<u8>,
) -> Result<TocEntry> {
    let offset = data.at();
    let tenant_len = u32::try_from(group.tenant.len()).or_bug("a checked length")?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&group.partition.to_be_bytes());
    head.clear();
    block_header(head, group.messages, tenant_len);
    for bytes in [&*head, &group.tenant] {
        crc.update(bytes);
        data.write(bytes)?;
    }
    merge.copy(|bytes| {
        crc.update(bytes);
        data.write(bytes)
    })?;
    Ok(TocEntry {
        partition: group.partition,
        tenant_len,
        messages: group.messages,
        offset,
        length: data.at() - offset,
        crc: crc.finalize(),
    })
}

/// A part of the file that is written from beginning to end, with a buffer of its own.
struct Section<'a> {
    path: &'a Path,
    file: &'a Handle,
    buffer: WriteBuffer,
}

impl<'a> Section<'a> {
    const fn new(path: &'a Path, file: &'a Handle, start: u64) -> Self {
        let buffer = WriteBuffer::new(start);
        Self { path, file, buffer }
    }

    /// The offset of the next byte.
    const fn at(&self) -> u64 {
        self.buffer.end()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.bytes().extend_from_slice(bytes);
        if self.buffer.is_full() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let (bytes, at) = (self.buffer.len(), self.buffer.start());
        let written = self.buffer.write_to(self.file);
        self.written(written, bytes, at)
    }

    /// Overwrites four bytes that were written before.
    fn patch(&mut self, at: u64, bytes: [u8; 4]) -> Result<()> {
        let written = self.buffer.patch(self.file, at, bytes);
        self.written(written, bytes.len(), at)
    }

    fn written(&self, result: io::Result<()>, bytes: usize, at: u64) -> Result<()> {
        result.map_err(|error| {
            let action = format!("cannot write {bytes} bytes of the new file at offset {at}");
            Error::io(Some(self.path), action, error)
        })
    }
}

impl engine::Writer for Writer {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        let (partition, tenant, index, value) = match fields {
            [Value::Int64(partition), Value::Text(tenant), index, value] => {
                (partition, *tenant, index, value)
            }
            [Value::Int64(_), ..] => return Err(missing("tenant")),
            _ => return Err(missing("partition")),
        };
        let partition = u32::try_from(*partition).map_err(|_| {
            Error::Usage(format!(
                "there is no partition {partition}: IDs are from 0 to {}",
                u32::MAX
            ))
        })?;
        let index = match index {
            Value::Null => None,
            Value::Int64(index) => Some(u64::try_from(*index).map_err(|_| {
                Error::Usage(format!(
                    "index {index} is negative: leave index out, or count from 0"
                ))
            })?),
            other => {
                return Err(Error::Usage(format!("{other:?} is not an index")));
            }
        };
        let value = match value {
            Value::Binary(value) => *value,
            // There is no message to write, only a tenant.
            _ if index.is_none() => {
                self.add_tenant(partition, tenant)?;
                return Ok(None);
            }
            _ => return Err(missing("value")),
        };
        let index = self.append(partition, tenant, index, value)?;
        Ok(index.map(|index| RecordId::new([partition.into(), tenant.into(), index.into()])))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.close()
    }

    fn abandon(&mut self) -> Result<()> {
        self.abandon();
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
