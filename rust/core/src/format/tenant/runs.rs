//! Messages grouped by partition and tenant: in memory, and, past a limit, in temporary files that are merged at
//! the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cursor::fields;
use crate::engine::WriteOptions;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window};

/// The approximate memory of a tenant apart from its ID and messages.
const TENANT_BYTES: u64 = 128;

/// The messages of one tenant in one partition in one run.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) partition: u32,
    pub(super) tenant: Vec<u8>,
    pub(super) messages: u32,
    /// The index that was given for the first of them, if one was given for any.
    pub(super) first: Option<u64>,
    /// The total length of their length fields and contents.
    pub(super) bytes: u64,
}

/// The messages of one tenant in memory.
#[derive(Debug, Default)]
struct Buffered {
    messages: u32,
    first: Option<u64>,
    bytes: Vec<u8>,
}

/// Messages in memory, by partition and tenant.
#[derive(Debug, Default)]
pub(super) struct Memory {
    tenants: BTreeMap<u32, BTreeMap<Vec<u8>, Buffered>>,
    /// About how many bytes that takes.
    pub(super) bytes: u64,
}

impl Memory {
    /// Appends a message to its tenant's. `complete`: these are all that the tenant has so far. Returns the
    /// message's index, if known.
    ///
    /// # Errors
    /// [`Error::Usage`] for an index that is not the next one, or more messages than fit into a block.
    pub(super) fn push(
        &mut self,
        partition: u32,
        tenant: &[u8],
        index: Option<u64>,
        value: &[u8],
        complete: bool,
    ) -> Result<Option<u64>> {
        let value_len = u32::try_from(value.len()).map_err(|_| too_long("value", value.len()))?;
        let buffered = self
            .tenants
            .get(&partition)
            .and_then(|tenants| tenants.get(tenant));
        let before = buffered.map_or(0, |buffered| buffered.messages);
        let stored_first = buffered.and_then(|buffered| buffered.first);
        let first = stored_first.or(complete.then_some(0));
        let messages = before.checked_add(1).ok_or_else(|| {
            Error::Usage(format!(
                "partition {partition} has {before} messages of this tenant: no more fit into a block. Use another partition or tenant"
            ))
        })?;
        let next = first.map(|first| first.saturating_add(before.into()));
        let first = match (index, next) {
            (Some(index), Some(next)) if index != next => {
                return Err(Error::Usage(format!(
                    "index {index} is not the next one of this tenant in partition {partition}, which is {next}: write its \
                     messages in order, or leave index out"
                )));
            }
            (Some(index), None) => Some(index.checked_sub(before.into()).ok_or_else(|| {
                Error::Usage(format!(
                    "index {index} is too low: {before} messages of this tenant in partition {partition} came before"
                ))
            })?),
            _ => stored_first,
        };
        self.name(partition, tenant)?;
        let tenants = self.tenants.entry(partition).or_default();
        if let Some(buffered) = tenants.get_mut(tenant) {
            let before = buffered.bytes.capacity();
            if value.len() > before {
                buffered.bytes.reserve_exact(value.len() + 4);
            }
            buffered.bytes.extend_from_slice(&value_len.to_be_bytes());
            buffered.bytes.extend_from_slice(value);
            self.bytes += (buffered.bytes.capacity() - before) as u64;
            buffered.messages = messages;
            buffered.first = first;
        }
        Ok(next)
    }

    /// Adds the tenant if it is new, without messages.
    ///
    /// # Errors
    /// [`Error::Usage`] for a tenant ID that is too long.
    pub(super) fn name(&mut self, partition: u32, tenant: &[u8]) -> Result<()> {
        u32::try_from(tenant.len()).map_err(|_| too_long("tenant ID", tenant.len()))?;
        let tenants = self.tenants.entry(partition).or_default();
        if !tenants.contains_key(tenant) {
            tenants.insert(tenant.to_vec(), Buffered::default());
            self.bytes += TENANT_BYTES + tenant.len() as u64;
        }
        Ok(())
    }

    fn groups(&self) -> impl Iterator<Item = (Group, &[u8])> {
        self.tenants.iter().flat_map(|(partition, tenants)| {
            tenants.iter().map(|(tenant, buffered)| {
                let group = Group {
                    partition: *partition,
                    tenant: tenant.clone(),
                    messages: buffered.messages,
                    first: buffered.first,
                    bytes: buffered.bytes.len() as u64,
                };
                (group, buffered.bytes.as_slice())
            })
        })
    }
}

fn too_long(what: &str, len: usize) -> Error {
    Error::Usage(format!(
        "the {what} has {len} bytes: at most {} fit into a segment",
        u32::MAX
    ))
}

/// The spilled messages, as runs: groups in a file, ascending by partition and tenant.
#[derive(Debug)]
pub(super) struct Spilled {
    /// Older runs come first. A run of a higher level is older.
    runs: Vec<(u32, FileSource)>,
    path: PathBuf,
    options: WriteOptions,
}

impl Spilled {
    /// Creates an empty list. Files will be beside `path`.
    pub(super) fn new(path: &Path, options: &WriteOptions) -> Self {
        Self {
            runs: Vec::new(),
            path: path.to_path_buf(),
            options: options.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Spills the memory into a new run. If that fails, memory is unchanged.
    pub(super) fn add(&mut self, memory: &mut Memory) -> Result<()> {
        let mut out = Spool::create(self.options.on(), &self.path)?;
        for (group, bytes) in memory.groups() {
            put_head(&mut out, &group)?;
            put(&mut out, bytes)?;
        }
        self.runs.push((0, out.source()?));
        *memory = Memory::default();
        self.merge_levels()
    }

    /// Merges many runs of a level into one of the next.
    fn merge_levels(&mut self) -> Result<()> {
        while let Some(&(level, _)) = self.runs.last() {
            let first = self.runs.partition_point(|(of_run, _)| *of_run > level);
            if self.runs.len() - first < LIMITS.max_merged_sort_runs {
                break;
            }
            let mut merge = self.merge_from(first)?;
            let mut out = Spool::create(self.options.on(), &self.path)?;
            while let Some(group) = merge.next_group()? {
                put_head(&mut out, &group)?;
                merge.copy(|bytes| put(&mut out, bytes))?;
            }
            let merged = out.source()?;
            drop(merge);
            self.runs.truncate(first);
            self.runs.push((level + 1, merged));
        }
        Ok(())
    }

    /// Merges the groups of the runs from this one on.
    fn merge_from(&self, first: usize) -> Result<Merge<'_>> {
        let runs = self.runs.iter().skip(first);
        let inputs = runs.map(|(_, run)| SortedRun::new(From::Run(run, 0, Window::default())));
        Ok(Merge {
            inputs: inputs.collect::<Result<_>>()?,
            current: None,
            options: &self.options,
            is_complete: false,
        })
    }

    /// All groups, ascending. Groups of one tenant are joined in the order in which they came.
    pub(super) fn merge<'a>(&'a self, memory: &'a Memory) -> Result<Merge<'a>> {
        let mut merge = self.merge_from(0)?;
        let groups = From::Memory(Box::new(memory.groups()), &[]);
        merge.inputs.push(SortedRun::new(groups)?);
        merge.is_complete = true;
        Ok(merge)
    }
}

/// Appends the header of a group's messages.
fn put_head(run: &mut Spool, group: &Group) -> Result<()> {
    let tenant_len =
        u32::try_from(group.tenant.len()).map_err(|_| too_long("tenant ID", group.tenant.len()))?;
    let out = run.buffer();
    out.extend_from_slice(&group.partition.to_be_bytes());
    out.extend_from_slice(&tenant_len.to_be_bytes());
    out.extend_from_slice(&group.messages.to_be_bytes());
    out.push(u8::from(group.first.is_some()));
    out.extend_from_slice(&group.first.unwrap_or_default().to_be_bytes());
    out.extend_from_slice(&group.bytes.to_be_bytes());
    put(run, &group.tenant)
}

fn put(run: &mut Spool, bytes: &[u8]) -> Result<()> {
    run.buffer().extend_from_slice(bytes);
    run.flush_if_full()
}

/// The length of the bytes before a group's tenant ID in a run.
const HEAD_BYTES: usize = 29;
type Head = (u32, u32, u32, u8, u64, u64);

/// One of the sorted inputs of a merge, at one of its groups.
struct SortedRun<'a> {
    head: Option<Group>,
    from: From<'a>,
}

enum From<'a> {
    /// A run, and the position of its next bytes: those of the group's messages.
    Run(&'a FileSource, u64, Window),
    /// Groups that are still in memory, and the bytes of this one.
    Memory(Box<dyn Iterator<Item = (Group, &'a [u8])> + 'a>, &'a [u8]),
}

impl<'a> SortedRun<'a> {
    fn new(from: From<'a>) -> Result<Self> {
        let mut input = Self { head: None, from };
        input.advance()?;
        Ok(input)
    }

    /// Advances to the next group. The bytes of this one were read or skipped.
    fn advance(&mut self) -> Result<()> {
        self.head = None;
        match &mut self.from {
            From::Memory(groups, bytes) => {
                if let Some((group, of_group)) = groups.next() {
                    (self.head, *bytes) = (Some(group), of_group);
                }
            }
            From::Run(file, at, _) if *at >= file.len() => {}
            From::Run(file, at, window) => {
                let read = LIMITS.sort_run_read_bytes;
                let head = window.exact_array::<HEAD_BYTES>(*file, *at, read)?;
                let (partition, tenant_len, messages, has_first, first, bytes): Head = fields(head);
                *at += HEAD_BYTES as u64;
                let tenant = window.exact(*file, *at, saturating_usize(tenant_len), read)?;
                self.head = Some(Group {
                    partition,
                    tenant: tenant.to_vec(),
                    messages,
                    first: (has_first == 1).then_some(first),
                    bytes,
                });
                *at += u64::from(tenant_len);
            }
        }
        Ok(())
    }

    /// Whether this input is at a group of that tenant.
    fn is_at(&self, group: &Group) -> bool {
        let head = self.head.as_ref();
        head.is_some_and(|head| (head.partition, &head.tenant) == (group.partition, &group.tenant))
    }
}

/// Groups of several sorted inputs, joined and ascending.
pub(super) struct Merge<'a> {
    inputs: Vec<SortedRun<'a>>,
    /// The group that is next to be copied or skipped.
    current: Option<Group>,
    options: &'a WriteOptions,
    /// Whether the inputs are complete, so that every tenant's first message is number 0.
    is_complete: bool,
}

impl<'a> Merge<'a> {
    /// The next group, joined. The one before was copied, or is skipped.
    pub(super) fn next_group(&mut self) -> Result<Option<Group>> {
        self.options.poll()?;
        self.end_group(|from, bytes| {
            if let From::Run(_, at, _) = from {
                *at += bytes;
            }
            Ok(())
        })?;
        let heads = self.inputs.iter().filter_map(|input| input.head.as_ref());
        let least = heads.min_by_key(|&head| (head.partition, &head.tenant));
        let Some(mut joined) = least.cloned() else {
            return Ok(None);
        };
        let (mut messages, mut bytes, mut first) = (0_u32, 0_u64, self.is_complete.then_some(0));
        let inputs = self.inputs.iter().filter(|input| input.is_at(&joined));
        for head in inputs.filter_map(|input| input.head.as_ref()) {
            if let Some(index) = head.first {
                let stated = index.checked_sub(messages.into());
                if stated.is_none() || first.is_some() && first != stated {
                    return Err(wrong_index(joined.partition, index, messages));
                }
                first = stated;
            }
            messages = messages.checked_add(head.messages).ok_or_else(|| {
                Error::Usage(format!(
                    "a tenant in partition {} has more than {} messages: no more fit into a block. Use another partition or tenant",
                    joined.partition,
                    u32::MAX
                ))
            })?;
            bytes = bytes.saturating_add(head.bytes);
        }
        (joined.messages, joined.bytes, joined.first) = (messages, bytes, first);
        self.current = Some(joined.clone());
        Ok(Some(joined))
    }

    /// Passes the bytes of the group's messages to `out`.
    pub(super) fn copy(&mut self, mut out: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let options = self.options;
        self.end_group(|from, bytes| {
            let (file, at, window) = match from {
                From::Memory(_, bytes) => return out(bytes),
                From::Run(file, at, window) => (*file, at, window),
            };
            let end = *at + bytes;
            while *at < end {
                options.poll()?;
                let most = LIMITS.sort_run_read_bytes;
                let piece = saturating_usize(end - *at).min(most);
                out(window.exact(file, *at, piece, most)?)?;
                *at += piece as u64;
            }
            Ok(())
        })
    }

    /// Advances past the group. `pass` skips this many bytes of messages, in each input that has some.
    fn end_group(&mut self, mut pass: impl FnMut(&mut From<'a>, u64) -> Result<()>) -> Result<()> {
        let Some(group) = self.current.take() else {
            return Ok(());
        };
        for input in self.inputs.iter_mut().filter(|input| input.is_at(&group)) {
            let bytes = input.head.as_ref().map_or(0, |head| head.bytes);
            pass(&mut input.from, bytes)?;
            input.advance()?;
        }
        Ok(())
    }
}

fn wrong_index(partition: u32, index: u64, before: u32) -> Error {
    Error::Usage(format!(
        "index {index} was given for a message of a tenant in partition {partition} that does not follow those before it, of \
         which {before} are at hand: write a tenant's messages in order, or leave index out"
    ))
}
