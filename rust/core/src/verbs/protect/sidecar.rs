//! Writes a sidecar, in place or anew (rules 16 and 17).

use std::io::{BufWriter, Write as _};
use std::path::Path;

use super::SidecarChange;
use crate::bug::OrBug;
use crate::disk::{DiskRef, Handle};
use crate::engine::each_piece;
use crate::error::{Error, Result};
use crate::output::{LockedFile, NewFile};
use crate::parity::Change;
use crate::source::FileSource;
use crate::walk::Options;

/// How much is written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A sidecar that is put together from ranges of the old one and new bytes.
pub(in crate::verbs) struct Assembly<'a> {
    disk: &'a DiskRef,
    /// The file that is covered.
    file: &'a Path,
    path: &'a Path,
    old: Option<&'a LockedFile>,
    /// The length of the old one.
    old_bytes: u64,
    /// The ranges of the old one that stay, as long as nothing is written.
    kept: Vec<(u64, u64)>,
    output: Option<Output<'a>>,
}

enum Output<'a> {
    New {
        file: NewFile,
        out: BufWriter<Handle>,
        old: Option<Box<FileSource>>,
    },
    AppendedFrames(AppendedFrames<'a>),
}

impl<'a> Assembly<'a> {
    /// A sidecar that is written anew.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::verbs) fn anew(
        disk: &'a DiskRef,
        file: &'a Path,
        path: &'a Path,
        old: Option<&'a LockedFile>,
    ) -> Result<Self> {
        let mut assembly = Self {
            disk,
            file,
            path,
            old,
            old_bytes: 0,
            kept: Vec::new(),
            output: None,
        };
        assembly.output = Some(assembly.new_file()?);
        Ok(assembly)
    }

    /// A sidecar that is changed in place if its old bytes stay where they are.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn of(disk: &'a DiskRef, file: &'a Path, old: &'a LockedFile) -> Result<Self> {
        Ok(Self {
            disk,
            file,
            path: old.path(),
            old: Some(old),
            old_bytes: old.len()?,
            kept: Vec::new(),
            output: None,
        })
    }

    fn new_file(&self) -> Result<Output<'a>> {
        let mut file = NewFile::create_like(self.disk, self.path, self.old.is_some(), self.file)?;
        let out = BufWriter::with_capacity(PIECE_BYTES, file.file().another());
        Ok(Output::New {
            file,
            out,
            old: self.old.map(LockedFile::source).transpose()?.map(Box::new),
        })
    }

    /// Adds what comes next.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::verbs) fn add(&mut self, change: Change<'_>) -> Result<()> {
        match (change, &mut self.output) {
            (Change::File { .. }, _) => Ok(()),
            (Change::Kept { start, end }, None) => {
                match self.kept.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => self.kept.push((start, end)),
                }
                Ok(())
            }
            (change, None) => {
                let mut output = self.begin()?;
                output.add(change)?;
                self.output = Some(output);
                Ok(())
            }
            (change, Some(output)) => output.add(change),
        }
    }

    /// Begins to write, with what stays of the old one.
    fn begin(&self) -> Result<Output<'a>> {
        if let (Some(old), Some(end)) = (self.old, self.stays_up_to()) {
            return Ok(Output::AppendedFrames(AppendedFrames::begin(
                old,
                end,
                self.old_bytes,
            )?));
        }
        let mut output = self.new_file()?;
        for (start, end) in &self.kept {
            output.add(Change::Kept {
                start: *start,
                end: *end,
            })?;
        }
        Ok(output)
    }

    /// Where the part ends that stays where it is; `None` if other parts stay, too.
    fn stays_up_to(&self) -> Option<u64> {
        match self.kept.as_slice() {
            [] => None, // a new sidecar would begin at 0, and must not be there in part
            [(0, end)] => Some(*end),
            _ => None,
        }
    }

    /// Ends it: it is complete and synced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::verbs) fn finish(mut self) -> Result<SidecarChange> {
        if self.output.is_none() {
            if self.stays_up_to() == Some(self.old_bytes) {
                return Ok(SidecarChange::Unchanged);
            }
            self.output = Some(self.begin()?);
        }
        match self.output {
            Some(Output::New { file, mut out, .. }) => {
                let flushed = out.flush();
                flushed.map_err(|error| unwritten(self.path, error))?;
                file.commit()?;
                Ok(match self.old_bytes {
                    0 => SidecarChange::Created,
                    _ => SidecarChange::Rewritten,
                })
            }
            Some(Output::AppendedFrames(appended)) => {
                appended.finish()?;
                Ok(SidecarChange::Extended)
            }
            None => Ok(SidecarChange::Unchanged),
        }
    }
}

impl Output<'_> {
    fn add(&mut self, change: Change<'_>) -> Result<()> {
        match (self, change) {
            (_, Change::File { .. }) => Ok(()),
            (Self::New { file, out, .. }, Change::Head(bytes) | Change::New(bytes)) => {
                let written = out.write_all(bytes);
                written.map_err(|error| unwritten(file.path(), error))
            }
            (Self::New { file, out, old }, Change::Kept { start, end }) => {
                let old = old.as_ref().or_bug("a sidecar to keep bytes of")?;
                each_piece(&**old, &Options::default(), start..end, |bytes| {
                    let written = out.write_all(bytes);
                    written.map_err(|error| unwritten(file.path(), error))
                })
            }
            (Self::AppendedFrames(appended), Change::Head(bytes)) => appended.add_head(bytes),
            (Self::AppendedFrames(appended), Change::New(bytes)) => appended.add(bytes),
            (Self::AppendedFrames(_), Change::Kept { .. }) => {
                None.or_bug("what stays before what is new")
            }
        }
    }
}

/// The error if a new sidecar cannot be written.
fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot write the new sidecar", error)
}

/// Frames that are appended. Their heads are zeros until everything else is synced, so after a loss of power there are
/// complete frames and then a torn tail.
struct AppendedFrames<'a> {
    file: &'a LockedFile,
    /// The length without what is not certain yet; `None` if all is.
    certain: Option<u64>,
    /// Bytes that are not written yet, and where they belong.
    buffer: Vec<u8>,
    at: u64,
    /// The heads and their places: two for each frame.
    heads: Vec<(u64, Vec<u8>)>,
}

impl<'a> AppendedFrames<'a> {
    fn begin(file: &'a LockedFile, start: u64, old_bytes: u64) -> Result<Self> {
        if start < old_bytes {
            file.set_len(start)?;
        }
        Ok(Self {
            file,
            certain: Some(start),
            buffer: Vec::new(),
            at: start,
            heads: Vec::new(),
        })
    }

    fn add_head(&mut self, bytes: &[u8]) -> Result<()> {
        let place = self.at + self.buffer.len() as u64;
        self.heads.push((place, bytes.to_vec()));
        self.add(&vec![0; bytes.len()])
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Rule 17: each head is written after a sync of what comes before it in its frame's order (everything else, copy
    /// 1, copy 0) and of the same head of the frame before. The frames share syncs.
    fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.file.sync()?;
        let heads = std::mem::take(&mut self.heads);
        let (mut before, mut frames) = (None, heads.as_chunks::<2>().0.iter());
        loop {
            let frame = frames.next();
            // Frames whose second head is synced are certain. The others have no head, but for this one.
            self.certain = frame.map(|[first, _]| first.0);
            let first = before.map(|[first, _]: &[_; 2]| first);
            let second = frame.map(|[_, second]| second);
            if first.is_none() && second.is_none() {
                return Ok(());
            }
            for (place, bytes) in [second, first].into_iter().flatten() {
                self.file.write(bytes, *place)?;
            }
            self.file.sync()?;
            before = frame;
        }
    }
}

impl Drop for AppendedFrames<'_> {
    fn drop(&mut self) {
        // After an error, which is reported. A torn tail counts for nothing, but a head whose sync failed may be read
        // now and be lost later, when frames follow it.
        if let Some(certain) = self.certain {
            let _ = self.file.set_len(certain);
        }
    }
}
