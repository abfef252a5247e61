//! Beginning and ending a log's segments.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::end::write_end;
use super::folder::Segment;
use super::frozen::remove_synced;
use super::log::SegmentLog;
use super::mark::Mark;
use super::name::{SegmentId, SegmentKind};
use super::state::{Current, Does, Guard, State};
use crate::engine::WriteOptions;
use crate::error::{Error, Result};
use crate::format::active;
use crate::uuid6;

impl SegmentLog {
    /// Begins a segment, whose first record has this UUID.
    pub(super) fn begin_segment(&self, state: &mut State, first: Uuid) -> Result<()> {
        let id = SegmentId {
            sequence: state.next_sequence,
            first,
        };
        if id.sequence == u64::MAX {
            return Err(Error::Usage(
                "the log has no more room for segments".to_owned(),
            ));
        }
        let checked = self.marker.check_lock();
        checked.inspect_err(|error| state.fail(&error.to_string()))?;
        let path = self.folder.join(id.file_name(SegmentKind::Active));
        let options = WriteOptions::default()
            .on_disk(&self.options.disk)
            .key(self.options.key);
        let writer = active::Writer::open(&path, &options).inspect_err(|error| {
            // The next try is under another name. If this one came back after a loss of power, there would be two segments.
            if let Err(error) = self.remove_begun(&path, error) {
                state.fail(&error.to_string());
            }
        })?;
        state.segment = Some(Current {
            id,
            file: Arc::new(writer.handle()),
            writer,
            begun: uuid6::present(),
            is_named: false,
            filled: 0,
            synced: (0, None),
            syncing: None,
            flushed: (0, None),
        });
        state.next_sequence = id.sequence.saturating_add(1); // a name with the greatest number is none of a segment
        Ok(())
    }

    /// Removes what may have been begun of a segment's file before this error. What has bytes is of somebody else: it stays.
    fn remove_begun(&self, path: &Path, error: &Error) -> Result<()> {
        let disk = &self.options.disk;
        let is_taken =
            matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists);
        let is_empty = || match disk.stat(path, false) {
            Ok(stat) => Ok(stat.len == 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(Error::io(Some(path), "cannot stat", error)),
        };
        if is_taken || !is_empty()? {
            return Err(Error::Format {
                path: Some(path.to_path_buf()),
                next: None,
                message: "expected no file where the log begins its next segment, found one that it did not write: move it elsewhere"
                    .to_owned(),
            });
        }
        remove_synced(disk, &self.folder, path)
    }

    /// Commits the active segment wholly and ends it: nothing is appended to it any more, and the next record begins another.
    pub(super) fn end_segment<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>> {
        while state.is_rolling {
            state = self.wait_committed(state);
        }
        let Some(sequence) = state.segment.as_ref().map(|current| current.id.sequence) else {
            return Ok(state);
        };
        let mut state = self.roll_alone(state)?;
        if let Some(current) = state
            .segment
            .take_if(|current| current.id.sequence == sequence)
            && self.options.seal
        {
            let segment = Segment::of(&self.folder, current.id, SegmentKind::Active);
            self.sealer.add(segment, Some(current.synced.0));
        }
        Ok(state)
    }

    /// Commits the active segment wholly and writes down where it ends, while others wait to append.
    fn roll_alone<'a>(&'a self, state: Guard<'a>) -> Result<Guard<'a>> {
        let _unwinding = self.unwinding(Does::Roll);
        let mut state = state;
        state.is_rolling = true;
        let committed = self.commit_all(state);
        let (mut state, committed) = match committed {
            Ok(state) => (state, Ok(())),
            Err(error) => (self.state(), Err(error)),
        };
        state.is_rolling = false;
        self.committed.notify_all();
        committed?;
        self.write_end(&mut state)?;
        // The mark is on the disk before there is a next segment: what is before that is complete.
        if let Err(error) = self.marker.sync() {
            state.fail(&error.to_string());
        }
        self.check(&mut state)?;
        Ok(state)
    }

    /// Writes down where the active segment ends, all of which is on the disk. The zeros ahead of its records are dropped before: where
    /// they come back after a loss of power, they do no harm.
    fn write_end(&self, state: &mut State) -> Result<()> {
        let counter = self.marker.counter();
        let Some(current) = &mut state.segment else {
            return Ok(());
        };
        let (offset, Some(last)) = current.synced else {
            return Ok(());
        };
        if current.filled > offset && current.file.set_len(offset).is_ok() {
            current.filled = offset;
        }
        let end = Mark {
            counter,
            sequence: current.id.sequence,
            offset,
            last,
        };
        let options = &self.options;
        write_end(&options.disk, &self.folder, current.id, &end, &options.key)
    }
}
