//! Messages grouped by partition and tenant: in memory, and, past a limit, in temporary files that are merged again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::Interrupt;
use crate::output::scratch_file;

/// So many runs become one, so that few files are open at once.
const FAN_IN: usize = 32;
/// How much is copied at once.
const PIECE_BYTES: usize = 256 << 10;
/// What a tenant takes in memory beside its ID and messages, about.
const TENANT_BYTES: u64 = 128;

/// The messages that one tenant in one partition has in one run.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) partition: u32,
    pub(super) tenant: Vec<u8>,
    pub(super) messages: u32,
    /// The index that was given for the first of them, if one was given for any.
    pub(super) first: Option<u64>,
    /// How many bytes they have, lengths and contents.
    pub(super) bytes: u64,
}

/// The messages of one tenant in memory.
#[derive(Debug, Default)]
struct Held {
    messages: u32,
    first: Option<u64>,
    bytes: Vec<u8>,
}

/// Messages in memory, by partition and tenant.
#[derive(Debug, Default)]
pub(super) struct Memory {
    tenants: BTreeMap<u32, BTreeMap<Vec<u8>, Held>>,
    /// About how many bytes all that takes.
    pub(super) bytes: u64,
}

impl Memory {
    /// Appends a message to its tenant's. `complete`: these are all that the tenant has so far. Gives the message's index, if that
    /// is known.
    ///
    /// # Errors
    /// [`Error::Usage`] for an index that is not the next one, or more messages than a block holds.
    pub(super) fn push(
        &mut self,
        partition: u32,
        tenant: &[u8],
        index: Option<u64>,
        value: &[u8],
        complete: bool,
    ) -> Result<Option<u64>> {
        let value_len = u32::try_from(value.len()).map_err(|_| too_long("value", value.len()))?;
        u32::try_from(tenant.len()).map_err(|_| too_long("tenant ID", tenant.len()))?;
        let held = self
            .tenants
            .get(&partition)
            .and_then(|tenants| tenants.get(tenant));
        let before = held.map_or(0, |held| held.messages);
        let first = held.and_then(|held| held.first).or(complete.then_some(0));
        let messages = before.checked_add(1).ok_or_else(|| {
            Error::Usage(format!(
                "partition {partition} has {before} messages of this tenant: no more fit in a block"
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
            _ => held.and_then(|held| held.first),
        };
        let tenants = self.tenants.entry(partition).or_default();
        if !tenants.contains_key(tenant) {
            tenants.insert(tenant.to_vec(), Held::default());
            self.bytes += TENANT_BYTES + tenant.len() as u64;
        }
        if let Some(held) = tenants.get_mut(tenant) {
            let before = held.bytes.capacity();
            if value.len() > before {
                held.bytes.reserve_exact(value.len() + 4);
            }
            held.bytes.extend_from_slice(&value_len.to_be_bytes());
            held.bytes.extend_from_slice(value);
            self.bytes += (held.bytes.capacity() - before) as u64;
            held.messages = messages;
            held.first = first;
        }
        Ok(next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    fn groups(&self) -> impl Iterator<Item = (Group, &[u8])> {
        self.tenants.iter().flat_map(|(partition, tenants)| {
            tenants.iter().map(|(tenant, held)| {
                let group = Group {
                    partition: *partition,
                    tenant: tenant.clone(),
                    messages: held.messages,
                    first: held.first,
                    bytes: held.bytes.len() as u64,
                };
                (group, held.bytes.as_slice())
            })
        })
    }
}

fn too_long(what: &str, len: usize) -> Error {
    Error::Usage(format!(
        "the {what} has {len} bytes: at most {} fit",
        u32::MAX
    ))
}

/// Groups in a temporary file, ascending by partition and tenant.
#[derive(Debug)]
struct Run(File);

/// Everything that was put into temporary files: runs that are older come first, and those of a higher level are older.
#[derive(Debug)]
pub(super) struct Spilled {
    levels: Vec<Vec<Run>>,
    path: PathBuf,
    interrupt: Option<Interrupt>,
}

impl Spilled {
    /// Nothing yet; files will be beside `path`.
    pub(super) fn new(path: &Path, interrupt: Option<Interrupt>) -> Self {
        Self {
            levels: Vec::new(),
            path: path.to_path_buf(),
            interrupt,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(Vec::is_empty)
    }

    /// Puts what is in memory into a new run. Where that fails memory is as it was.
    pub(super) fn add(&mut self, memory: &mut Memory) -> Result<()> {
        let mut out = self.begin()?;
        for (group, bytes) in memory.groups() {
            out.head(&group)?;
            out.write(bytes)?;
        }
        let run = out.finish()?;
        *memory = Memory::default();
        self.push(0, run)?;
        Ok(())
    }

    fn begin(&self) -> Result<RunWriter<'_>> {
        Ok(RunWriter {
            file: BufWriter::with_capacity(PIECE_BYTES, scratch_file(&self.path)?),
            path: &self.path,
        })
    }

    /// Adds a run; where there are many of a level they become one of the next.
    fn push(&mut self, level: usize, run: Run) -> Result<()> {
        let (mut level, mut run) = (level, Some(run));
        while let Some(own) = run.take() {
            if self.levels.len() <= level {
                self.levels.resize_with(level + 1, Vec::new);
            }
            let Some(runs) = self.levels.get_mut(level) else {
                break;
            };
            runs.push(own);
            if runs.len() < FAN_IN {
                break;
            }
            let merged = self.merge_level(level)?;
            if let Some(runs) = self.levels.get_mut(level) {
                runs.clear();
            }
            run = Some(merged);
            level += 1;
        }
        Ok(())
    }

    fn merge_level(&self, level: usize) -> Result<Run> {
        let runs = self.levels.get(level).map_or(&[][..], Vec::as_slice);
        let mut merge = Merge::of_runs(runs.iter(), &self.path, self.interrupt.as_ref())?;
        let mut out = self.begin()?;
        while let Some(group) = merge.next_group()? {
            out.head(&group)?;
            merge.copy(|bytes| out.write(bytes))?;
        }
        out.finish()
    }

    /// All groups, ascending, those of one tenant joined in the order in which they came.
    pub(super) fn merge<'a>(&'a self, memory: &'a Memory) -> Result<Merge<'a>> {
        let runs = self.levels.iter().rev().flatten();
        let mut merge = Merge::of_runs(runs, &self.path, self.interrupt.as_ref())?;
        merge.inputs.push(Input::memory(memory));
        Ok(merge)
    }
}

/// Writes a run.
struct RunWriter<'a> {
    file: BufWriter<File>,
    path: &'a Path,
}

impl RunWriter<'_> {
    fn head(&mut self, group: &Group) -> Result<()> {
        let tenant_len = u32::try_from(group.tenant.len())
            .map_err(|_| too_long("tenant ID", group.tenant.len()))?;
        let mut head = Vec::with_capacity(group.tenant.len() + 40);
        head.extend_from_slice(&group.partition.to_be_bytes());
        head.extend_from_slice(&tenant_len.to_be_bytes());
        head.extend_from_slice(&group.tenant);
        head.extend_from_slice(&group.messages.to_be_bytes());
        head.push(u8::from(group.first.is_some()));
        head.extend_from_slice(&group.first.unwrap_or_default().to_be_bytes());
        head.extend_from_slice(&group.bytes.to_be_bytes());
        self.write(&head)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| io(self.path, error))
    }

    fn finish(self) -> Result<Run> {
        let path = self.path;
        self.file
            .into_inner()
            .map(Run)
            .map_err(|error| io(path, error.into_error()))
    }
}

/// One of the sorted inputs of a merge, at one of its groups.
struct Input<'a> {
    head: Option<Group>,
    from: From<'a>,
}

enum From<'a> {
    /// A run, behind the head of its group, and how much of the file is left from there on.
    Run(BufReader<&'a File>, u64),
    /// Groups that are still in memory, and the bytes of this one.
    Memory(Box<dyn Iterator<Item = (Group, &'a [u8])> + 'a>, &'a [u8]),
}

impl<'a> Input<'a> {
    fn memory(memory: &'a Memory) -> Self {
        let mut input = Self {
            head: None,
            from: From::Memory(Box::new(memory.groups()), &[]),
        };
        if let From::Memory(groups, bytes) = &mut input.from
            && let Some((group, own)) = groups.next()
        {
            (input.head, *bytes) = (Some(group), own);
        }
        input
    }

    fn run(run: &'a Run) -> std::io::Result<Self> {
        let mut file = &run.0;
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut input = Self {
            head: None,
            from: From::Run(BufReader::new(file), len),
        };
        input.advance()?;
        Ok(input)
    }

    /// Goes on to the next group; the bytes of this one have been read or passed over.
    fn advance(&mut self) -> std::io::Result<()> {
        self.head = None;
        match &mut self.from {
            From::Memory(groups, bytes) => {
                if let Some((group, own)) = groups.next() {
                    (self.head, *bytes) = (Some(group), own);
                }
            }
            From::Run(_, 0) => {}
            From::Run(file, left) => {
                let partition = u32::from_be_bytes(read(file, left)?);
                let tenant_len = u32::from_be_bytes(read(file, left)?);
                let mut tenant = vec![0; usize::try_from(tenant_len).unwrap_or_default()];
                file.read_exact(&mut tenant)?;
                *left = left.saturating_sub(tenant_len.into());
                let messages = u32::from_be_bytes(read(file, left)?);
                let [has_first] = read(file, left)?;
                let first = u64::from_be_bytes(read(file, left)?);
                let bytes = u64::from_be_bytes(read(file, left)?);
                self.head = Some(Group {
                    partition,
                    tenant,
                    messages,
                    first: (has_first == 1).then_some(first),
                    bytes,
                });
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

fn read<const N: usize>(file: &mut impl Read, left: &mut u64) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    *left = left.saturating_sub(N as u64);
    Ok(bytes)
}

/// Groups of several sorted inputs, joined and ascending.
pub(super) struct Merge<'a> {
    inputs: Vec<Input<'a>>,
    /// The group that is next to be copied or passed over.
    current: Option<Group>,
    path: &'a Path,
    interrupt: Option<&'a Interrupt>,
    buffer: Vec<u8>,
}

impl<'a> Merge<'a> {
    fn of_runs(
        runs: impl Iterator<Item = &'a Run>,
        path: &'a Path,
        interrupt: Option<&'a Interrupt>,
    ) -> Result<Self> {
        let inputs = runs
            .map(Input::run)
            .collect::<std::io::Result<_>>()
            .map_err(|error| io(path, error))?;
        Ok(Self {
            inputs,
            current: None,
            path,
            interrupt,
            buffer: Vec::new(),
        })
    }

    /// The next group, joined. The one before has been copied, or is passed over.
    pub(super) fn next_group(&mut self) -> Result<Option<Group>> {
        if matches!(self.interrupt, Some(interrupt) if (interrupt.0)()) {
            return Err(Error::Interrupted);
        }
        if self.current.is_some() {
            self.pass()?;
        }
        let heads = self.inputs.iter().filter_map(|input| input.head.as_ref());
        let least = heads.min_by(|one, other| {
            (one.partition, &one.tenant).cmp(&(other.partition, &other.tenant))
        });
        let Some(mut joined) = least.cloned() else {
            return Ok(None);
        };
        (joined.messages, joined.bytes, joined.first) = (0, 0, None);
        for head in self.inputs.iter().filter(|input| input.is_at(&joined)) {
            let Some(head) = &head.head else { continue };
            let before = joined.messages;
            if let Some(first) = head.first {
                let own = first.checked_sub(before.into());
                if own.is_none() || joined.first.is_some() && joined.first != own {
                    return Err(Error::Usage(format!(
                        "index {first} was given for a message of a tenant in partition {} that is number {before}, counted from \
                         {}: write a tenant's messages in order, or leave index out",
                        joined.partition,
                        joined.first.unwrap_or_default()
                    )));
                }
                joined.first = own;
            }
            joined.messages = before.checked_add(head.messages).ok_or_else(|| {
                Error::Usage(format!(
                    "a tenant in partition {} has more than {} messages: no more fit in a block",
                    joined.partition,
                    u32::MAX
                ))
            })?;
            joined.bytes = joined.bytes.saturating_add(head.bytes);
        }
        self.current = Some(joined.clone());
        Ok(Some(joined))
    }

    /// Gives the bytes of the group's messages.
    pub(super) fn copy(&mut self, mut out: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(group) = self.current.take() else {
            return Ok(());
        };
        for input in self.inputs.iter_mut().filter(|input| input.is_at(&group)) {
            let bytes = input.head.as_ref().map_or(0, |head| head.bytes);
            match &mut input.from {
                From::Memory(_, bytes) => out(bytes)?,
                From::Run(file, left) => {
                    let mut rest = bytes;
                    while rest > 0 {
                        let piece = usize::try_from(rest).unwrap_or(usize::MAX).min(PIECE_BYTES);
                        self.buffer.resize(piece, 0);
                        file.read_exact(&mut self.buffer)
                            .map_err(|error| io(self.path, error))?;
                        if matches!(self.interrupt, Some(interrupt) if (interrupt.0)()) {
                            return Err(Error::Interrupted);
                        }
                        out(&self.buffer)?;
                        rest -= piece as u64;
                    }
                    *left = left.saturating_sub(bytes);
                }
            }
            input.advance().map_err(|error| io(self.path, error))?;
        }
        Ok(())
    }

    /// Goes on without looking at the group's messages.
    fn pass(&mut self) -> Result<()> {
        let Some(group) = self.current.take() else {
            return Ok(());
        };
        for input in self.inputs.iter_mut().filter(|input| input.is_at(&group)) {
            let bytes = input.head.as_ref().map_or(0, |head| head.bytes);
            if let From::Run(file, left) = &mut input.from {
                let offset = i64::try_from(bytes).unwrap_or(i64::MAX);
                file.seek_relative(offset)
                    .map_err(|error| io(self.path, error))?;
                *left = left.saturating_sub(bytes);
            }
            input.advance().map_err(|error| io(self.path, error))?;
        }
        Ok(())
    }
}

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot use a temporary file beside it", error)
}
