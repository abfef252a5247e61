//! Writes a sidecar, in place or anew (rules 16 and 17).

use std::io::{BufWriter, Write as _};
use std::path::Path;

use super::SidecarChange;
use crate::bug::OrBug;
use crate::disk::Handle;
use crate::engine::each_piece;
use crate::error::{Error, Result};
use crate::output::{LockedFile, NewFile};
use crate::parity::Change;
use crate::source::{FileSource, Source as _};
use crate::walk::Options;

/// How much is written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A sidecar that is put together from ranges of the old one and new bytes.
pub(in crate::verbs) struct Assembly<'a> {
    options: &'a Options,
    path: &'a Path,
    /// A file that may be read by those who may read the new sidecar.
    like: &'a Path,
    /// The old one, if there is one, and whether the new one takes its place.
    old: Option<FileSource>,
    replaces: bool,
    /// The old one, if frames may be appended to it.
    extended: Option<&'a LockedFile>,
    /// The ranges of the old one that stay, as long as nothing is written.
    kept: Vec<(u64, u64)>,
    output: Option<Output<'a>>,
}

enum Output<'a> {
    New {
        file: NewFile,
        out: BufWriter<Handle>,
    },
    AppendedFrames(AppendedFrames<'a>),
}

impl<'a> Assembly<'a> {
    /// A sidecar that is written anew, to `path`, once anything of `old` changes.
    pub(in crate::verbs) fn changed(
        options: &'a Options,
        [like, path]: [&'a Path; 2],
        old: Option<FileSource>,
        replaces: bool,
    ) -> Self {
        Self {
            options,
            path,
            like,
            old,
            replaces,
            extended: None,
            kept: Vec::new(),
            output: None,
        }
    }

    /// A sidecar that is written anew in any case.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::verbs) fn begun(mut self) -> Result<Self> {
        self.output = Some(self.begin()?);
        Ok(self)
    }

    /// The same, in place of `old` if there is one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn anew(
        options: &'a Options,
        paths: [&'a Path; 2],
        old: Option<&LockedFile>,
    ) -> Result<Self> {
        let source = old.map(LockedFile::source).transpose()?;
        Self::changed(options, paths, source, old.is_some()).begun()
    }

    /// A sidecar that is changed in place if its old bytes stay where they are.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn of(options: &'a Options, file: &'a Path, old: &'a LockedFile) -> Result<Self> {
        let source = Some(old.source()?);
        Ok(Self {
            extended: Some(old),
            ..Self::changed(options, [file, old.path()], source, true)
        })
    }

    fn old_bytes(&self) -> u64 {
        match &self.old {
            Some(old) => old.len(),
            None => 0,
        }
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
            (change, output) => {
                let mut begun = match output.take() {
                    Some(output) => output,
                    None => self.begin()?,
                };
                self.write(&mut begun, change)?;
                self.output = Some(begun);
                Ok(())
            }
        }
    }

    /// Begins to write, with what stays of the old one.
    fn begin(&self) -> Result<Output<'a>> {
        // A new sidecar would begin at 0, and must not be there in part.
        if let (Some(old), [(0, end)]) = (self.extended, &*self.kept) {
            let appended = AppendedFrames::begin(old, *end, self.old_bytes())?;
            return Ok(Output::AppendedFrames(appended));
        }
        let mut file =
            NewFile::create_like(self.options.on(), self.path, self.replaces, self.like)?;
        let out = BufWriter::with_capacity(PIECE_BYTES, file.file().another());
        let mut output = Output::New { file, out };
        for (start, end) in self.kept.iter().copied() {
            self.write(&mut output, Change::Kept { start, end })?;
        }
        Ok(output)
    }

    fn write(&self, output: &mut Output<'_>, change: Change<'_>) -> Result<()> {
        match (output, change) {
            (_, Change::File { .. }) => Ok(()),
            (Output::New { file, out }, Change::Head(bytes) | Change::New(bytes)) => {
                let written = out.write_all(bytes);
                written.map_err(|error| unwritten(file.path(), error))
            }
            (Output::New { file, out }, Change::Kept { start, end }) => {
                let old = self.old.as_ref().or_bug("a sidecar to keep bytes of")?;
                each_piece(old, self.options, start..end, |bytes| {
                    let written = out.write_all(bytes);
                    written.map_err(|error| unwritten(file.path(), error))
                })
            }
            (Output::AppendedFrames(appended), Change::Head(bytes)) => appended.add_head(bytes),
            (Output::AppendedFrames(appended), Change::New(bytes)) => appended.add(bytes),
            (Output::AppendedFrames(_), Change::Kept { .. }) => {
                None.or_bug("what stays before what is new")
            }
        }
    }

    /// What was written, if anything changed: also what is left out at the end does.
    fn written(&mut self) -> Result<Option<Output<'a>>> {
        if let Some(output) = self.output.take() {
            return Ok(Some(output));
        }
        match *self.kept {
            [] if self.old_bytes() == 0 => Ok(None),
            [(0, end)] if self.old_bytes() == end => Ok(None),
            _ => self.begin().map(Some),
        }
    }

    /// Ends it: it is complete and synced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finish(mut self) -> Result<SidecarChange> {
        match self.written()? {
            Some(Output::New { file, out }) => {
                flushed(file, out)?.commit()?;
                Ok(match self.extended {
                    Some(_) => SidecarChange::Rewritten,
                    None => SidecarChange::Created,
                })
            }
            Some(Output::AppendedFrames(appended)) => {
                appended.finish()?;
                Ok(SidecarChange::Extended)
            }
            None => Ok(SidecarChange::Unchanged),
        }
    }

    /// The new file, complete, which has no name yet. `None` if nothing changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::verbs) fn complete(&mut self) -> Result<Option<NewFile>> {
        match self.written()? {
            Some(Output::New { file, out }) => flushed(file, out).map(Some),
            Some(Output::AppendedFrames(_)) => None.or_bug("a sidecar that is written anew"),
            None => Ok(None),
        }
    }
}

fn flushed(file: NewFile, mut out: BufWriter<Handle>) -> Result<NewFile> {
    let flushed = out.flush();
    flushed.map_err(|error| unwritten(file.path(), error))?;
    Ok(file)
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
