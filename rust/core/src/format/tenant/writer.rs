//! Writes a whole segment: messages in any order, grouped, after a table of contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::front::COUNT_BYTES;
use super::groups::{Group, Groups};
use super::layout::{TocEntry, block_header, file_header, v1_entry};
use super::toc::{TOC_START, V1_ENTRY_BYTES, V2_ENTRY_BYTES};
use super::{COLUMNS, FORMAT, MEMORY_BYTES, VERSION, VERSION_1, VERSION_2};
use crate::bug::OrBug;
use crate::disk::Handle;
use crate::engine;
use crate::engine::WriteOptions;
use crate::engine::writer::missing;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::output::{NewFile, WriteBuffer};
use crate::record::{Column, RecordId, Value};

/// Collects messages, and writes them as a segment when it is closed. Until then no file has its name.
///
/// Messages of one tenant in one partition keep the order in which they are written. Beyond `memory_bytes`,
/// messages are spilled to a temporary file in the same folder. The segment is the same, byte for byte. Tenant IDs stay in memory.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    options: WriteOptions,
    version: u16,
    groups: Groups,
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
            groups: Groups::default(),
            options: options.clone(),
            version: u16::try_from(options.number(&VERSION)).or_bug("a version is 1 or 2")?,
            closed: false,
        })
    }

    /// Adds a message of a tenant in a partition. If `index` is given, it must be the number of messages that the
    /// tenant has there so far. Returns the index.
    ///
    /// # Errors
    /// [`Error::Usage`] for another index, a tenant ID or value of more than 2^32-1 bytes, more than 2^32-1
    /// messages, too many tenants, or a closed writer. Nothing is added then. [`Error::Io`] if the temporary file could
    /// not be written. The message is added then.
    pub fn append(
        &mut self,
        partition: u32,
        tenant: &[u8],
        index: Option<u64>,
        value: &[u8],
    ) -> Result<u64> {
        self.check_open()?;
        let most = self.most_tenants_bytes();
        let index = self.groups.push(partition, tenant, index, value, most)?;
        if self.groups.bytes > self.options.bytes(&MEMORY_BYTES) {
            self.groups.spill(self.options.on(), &self.path)?;
        }
        Ok(index)
    }

    /// Adds a tenant to a partition. It is written even if it gets no messages.
    ///
    /// # Errors
    /// [`Error::Usage`] for a tenant ID of more than 2^32-1 bytes, too many tenants, or a closed writer.
    pub fn add_tenant(&mut self, partition: u32, tenant: &[u8]) -> Result<()> {
        self.check_open()?;
        let most = self.most_tenants_bytes();
        self.groups.name(partition, tenant, most).map(|_| ())
    }

    /// How much memory the tenants may take.
    fn most_tenants_bytes(&self) -> u64 {
        let bytes = self.options.bytes(&MEMORY_BYTES);
        bytes.max(LIMITS.written_tenants_bytes)
    }

    fn check_open(&self) -> Result<()> {
        match self.closed {
            true => Err(Error::Usage(
                "the writer is closed: create another segment".to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Writes the segment, and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`]. [`Error::Usage`] for more blocks than fit into a segment. [`Error::Interrupted`]. All messages
    /// stay, and closing again writes the file anew.
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
        self.abandon();
        Ok(())
    }

    /// Discards everything: the segment and the temporary file.
    pub fn abandon(&mut self) {
        self.out = None;
        self.closed = true;
        self.groups = Groups::default();
    }

    fn write_segment(&self, file: &Handle) -> Result<()> {
        let all = self.groups.partitions();
        let ids = || all.values().flat_map(BTreeMap::keys);
        let (partitions, blocks) = (count(all.len())?, count(ids().count())?);
        let (entries, toc_bytes) = match self.version {
            VERSION_1 => (partitions, V1_ENTRY_BYTES * u64::from(partitions)),
            _ => {
                let ids_bytes: u64 = ids().map(|id| id.len() as u64).sum();
                let entries_bytes = V2_ENTRY_BYTES * u64::from(blocks) + ids_bytes;
                (blocks, entries_bytes + COUNT_BYTES)
            }
        };
        let mut toc = Vec::new();
        file_header(&mut toc, self.version, entries);
        let mut data = Section::new(&self.path, file, TOC_START + toc_bytes);
        data.write(&partitions.to_be_bytes())?;
        for (partition, tenants) in all {
            let start = data.at();
            data.write(&count(tenants.len())?.to_be_bytes())?;
            for (tenant, group) in tenants {
                let entry = self.write_block(&mut data, *partition, tenant, group)?;
                if self.version == VERSION_2 {
                    entry.head(&mut toc);
                    toc.extend_from_slice(tenant);
                    entry.tail(&mut toc);
                }
            }
            if self.version == VERSION_1 {
                v1_entry(&mut toc, *partition, start, data.at() - start);
            }
        }
        data.flush()?;
        if self.version == VERSION_2 {
            let crc = crc32fast::hash(&toc);
            toc.extend_from_slice(&crc.to_be_bytes());
        }
        let mut front = Section::new(&self.path, file, 0);
        front.write(&toc)?;
        front.flush()
    }

    /// Writes a block. Returns its entry of the table of contents.
    fn write_block(
        &self,
        data: &mut Section<'_>,
        partition: u32,
        tenant: &[u8],
        group: &Group,
    ) -> Result<TocEntry> {
        let (offset, mut head) = (data.at(), Vec::new());
        let tenant_len = u32::try_from(tenant.len()).or_bug("a checked length")?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&partition.to_be_bytes());
        block_header(&mut head, group.messages, tenant_len);
        let mut put = |bytes: &[u8]| {
            crc.update(bytes);
            data.write(bytes)
        };
        put(&head)?;
        put(tenant)?;
        let interrupt = self.options.interrupt.as_ref();
        self.groups.read(group, interrupt, put)?;
        Ok(TocEntry {
            partition,
            tenant_len,
            messages: group.messages,
            offset,
            length: data.at() - offset,
            crc: crc.finalize(),
        })
    }
}

/// A number of partitions or tenants as it is stored.
fn count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| {
        Error::Usage(format!(
            "there are more than {} partitions, or tenants in partitions: write several segments",
            u32::MAX
        ))
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
        self.buffer.write_to(self.file).map_err(|error| {
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
        let id = [partition.into(), tenant.into(), index.into()];
        Ok(Some(RecordId::new(id)))
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
