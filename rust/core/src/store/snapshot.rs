//! A snapshot of a log: another folder that holds what is on the disk. docs/formats/log.md, "Snapshots".

use std::io::ErrorKind;
use std::path::Path;

use super::folder::{LogFolder, Segment};
use super::mark::MarkFile;
use super::name::SegmentKind;
use super::reader::{LogReader, View};
use super::recovery::copy;
use crate::disk::{Handle, Kind, Opening};
use crate::error::{Error, Result};
use crate::source::FileSource;
use crate::{output, text};

const ACTION: &str = "cannot make the snapshot";

impl LogReader {
    /// Makes a folder with what is on the disk now: a log of its own, which can be read and written. Sealed segments are linked where the
    /// file system can, and copied elsewhere; of the newest segment the part before the mark is copied. The folder appears when
    /// all of it is on the disk. This log may be written meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`], of kind [`ErrorKind::AlreadyExists`] where there is something at `path`; [`Error::Log`] where segments are missing;
    /// [`Error::Format`] where the mark is.
    pub fn snapshot(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, disk) = (path.as_ref(), self.disk());
        let failed = |error| Error::io(Some(path), ACTION, error);
        if disk.is_taken(path) {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let canonical = |path: &Path| disk.canonical(path).map_err(failed);
        if canonical(output::folder(path))?.starts_with(canonical(self.path())?) {
            return Err(Error::Usage(format!(
                "{}: is in the folder of the log, where all that is below belongs to it: name a folder elsewhere",
                text::path(path)
            )));
        }
        if path.file_name().is_none() {
            return Err(failed(ErrorKind::InvalidInput.into()));
        }
        let prefix = output::prefix(path);
        let staged = loop {
            self.options().poll()?;
            let made = disk.temporary(output::folder(path), &prefix, ".tmp", |disk, path| {
                disk.create_folder(path)
            });
            let staged = Staged(LogFolder {
                path: made.map_err(failed)?.1,
                ..self.folder.clone()
            });
            let view = self.view()?;
            match self.fill(&view, &staged.0) {
                // Sealed or removed since it was listed: begun anew, also where that goes on.
                Err(error) if error.is_not_found() && self.view()?.segments != view.segments => {}
                // The mark was read before all that it reaches was removed.
                Err(Error::Format { .. } | Error::Log { .. }) if self.view()?.mark != view.mark => {
                }
                filled => break filled.map(|()| staged)?,
            }
        };
        disk.rename(&staged.0.path, path).map_err(failed)?;
        disk.sync_folder(output::folder(path)).map_err(failed)
    }

    /// Writes all files of a snapshot.
    fn fill(&self, view: &View, folder: &LogFolder) -> Result<()> {
        let mut last = None;
        for segment in &view.segments {
            let reach = self.reach(view, segment);
            if reach.is_nothing() {
                continue;
            }
            let (id, limit) = (segment.id, reach.limit().map(|bound| bound.offset));
            let (file, sidecar) = (id.file_name(segment.kind), id.sidecar_name(segment.kind));
            last = Some(segment);
            if segment.kind == SegmentKind::Sealed {
                self.link(&file, folder)?;
                if self.disk().is_taken(&self.folder.join(&sidecar)) {
                    if_there(self.link(&sidecar, folder))?;
                }
            } else {
                self.copy_regular(&file, folder, limit)?;
                if limit.is_some() {
                    // Only a part of it is taken, so it may end before its end, and before that of what its sidecar covers.
                    continue;
                }
                if_there(self.copy_own(&sidecar, folder))?;
            }
            for name in [id.end_name(), id.frozen_name()] {
                if_there(self.copy_own(&name, folder))?;
            }
        }
        self.check_mark(view, last)?;
        let mark = &view.mark;
        let mut file = MarkFile::open(folder)?;
        file.begin()?; // syncs the folder: the mark comes last
        if mark.sequence > 0 {
            file.advance(mark.sequence, mark.offset, mark.last)?;
            file.finish()?;
        }
        Ok(())
    }

    /// Refuses a log whose mark is lost: the last segment of the snapshot would have no records.
    fn check_mark(&self, view: &View, last: Option<&Segment>) -> Result<()> {
        let is_open =
            |segment: &&Segment| segment.kind == SegmentKind::Active && !segment.is_frozen;
        let Some(last) = last.or(view.segments.last()).filter(is_open) else {
            return Ok(());
        };
        if view.mark.sequence >= last.id.sequence {
            return Ok(());
        }
        Err(Error::Format {
            path: Some(self.path().to_path_buf()),
            next: None,
            message: format!(
                "expected a synced mark in segment {} or after it, found one in segment {}: it is lost, or nothing is on the disk yet. Open the log for writing, which makes a mark anew",
                last.id.sequence, view.mark.sequence
            ),
        })
    }

    fn link(&self, name: &str, folder: &LogFolder) -> Result<()> {
        let from = self.path().join(name);
        // The link of a symbolic link would depend on what that names.
        let stat = self.disk().stat(&from, false);
        let is_file = stat.is_ok_and(|stat| stat.kind == Kind::File);
        match is_file && self.disk().hard_link(&from, &folder.join(name)).is_ok() {
            true => Ok(()),
            // Another file system, or one without links.
            false => self.copy_regular(name, folder, None),
        }
    }

    /// Copies a file's first bytes, or all of it, under its name.
    fn copy_regular(&self, name: &str, folder: &LogFolder, limit: Option<u64>) -> Result<()> {
        let file = FileSource::open_on(self.disk(), &self.folder.join(name))?;
        self.copy(&file.handle(), name, folder, limit)
    }

    /// Copies a file of the log's own that is beside a segment.
    fn copy_own(&self, name: &str, folder: &LogFolder) -> Result<()> {
        let from = self.folder.join(name);
        let file = self.disk().handle(&from, Opening::ReadOwn);
        let file = file.map_err(|error| Error::io(Some(&from), "cannot copy", error))?;
        self.copy(&file, name, folder, None)
    }

    fn copy(&self, file: &Handle, name: &str, to: &LogFolder, limit: Option<u64>) -> Result<()> {
        let failed = |error| Error::io(Some(&self.folder.join(name)), "cannot copy", error);
        let len = file.len().map_err(failed)?;
        let end = limit.map_or(len, |limit| limit.min(len));
        to.write_new(name, |out| {
            copy(file, 0, end, |bytes, at| out.write_all_at(bytes, at))
        })
    }
}

/// Passes over a file that there is none of.
fn if_there(taken: Result<()>) -> Result<()> {
    match taken {
        Err(error) if error.is_not_found() => Ok(()),
        taken => taken,
    }
}

/// A folder under a temporary name, which is removed unless it gets another one.
struct Staged(LogFolder);

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = self.0.disk.remove_folder(&self.0.path); // gone, if it has its name
    }
}
