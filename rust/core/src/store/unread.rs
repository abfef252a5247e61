//! Records that readers of a log leave out. docs/formats/log.md, "What is after the mark".

use std::fmt;
use std::sync::Arc;

use super::lock::Lock;
use super::mark::Mark;
use super::name::SegmentId;
use super::reader::{LogReader, View};
use crate::engine::{Filter, Start, Step, Walk as _};
use crate::error::Result;
use crate::format::active::ActiveWalk;
use crate::ledger::Kind;
use crate::source::FileSource;

/// What is after the synced mark of a log that no writer has open: readers leave it out, as nothing says that it is on the disk. With a
/// writer such bytes are on their way there, so there is nothing to say of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// The segment that it is in: the newest one.
    pub id: SegmentId,
    /// Up to where that is read, in bytes.
    pub offset: u64,
    /// How many bytes after that are not read, without zeros at the end.
    pub nbytes: u64,
    /// How many sound records these have.
    pub records: u64,
    /// The place in the log of the segment that the mark is in; 0 if there is no mark.
    pub marked: u64,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, nbytes, offset) = (self.id.sequence, self.nbytes, self.offset);
        match self.records {
            1 => write!(f, "1 record is not read")?,
            records => write!(f, "{records} records are not read")?,
        }
        write!(
            f,
            ", in {nbytes} bytes of segment {sequence} from offset {offset} on: "
        )?;
        match self.marked {
            0 => write!(f, "expected a synced mark in it, found none")?,
            marked if marked == sequence => write!(f, "the synced mark ends there")?,
            marked => write!(
                f,
                "expected a synced mark in it, found one in segment {marked}"
            )?,
        }
        write!(
            f,
            ", and no writer has the log open. Open it for writing, which takes them in: `seglake log write` with no input does"
        )
    }
}

impl LogReader {
    /// What readers leave out now, since it is after the synced mark and no writer has the log open: `None` if that is nothing, and while
    /// a writer has it open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn unread(&self) -> Result<Option<Unread>> {
        self.unread_of(&self.view()?)
    }

    /// The same, of a log that was listed.
    pub(super) fn unread_of(&self, view: &View) -> Result<Option<Unread>> {
        let Some(newest) = view.segments.last() else {
            return Ok(None);
        };
        let reach = self.reach(view, newest);
        let Some(bound) = reach.bound.filter(|_| reach.is_limit) else {
            return Ok(None);
        };
        // Not by its name: of what is another segment nothing is read either.
        let file = match FileSource::open(self.disk(), &newest.path) {
            // Sealed or removed since it was listed.
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?.around_unreadable(),
        };
        let is_pending = || Lock::is_held(self.disk(), self.path());
        if bound.offset >= crate::source::Source::len(&file) || is_pending() {
            return Ok(None);
        }
        let options = self.options().clone().strict(false).values(false);
        let options = options.filter(Filter::default());
        let mut walk = ActiveWalk::open(Arc::new(file), &options, Start::Offset(bound.offset))?;
        let (mut end, mut records) = (bound.offset, 0);
        while walk.step()? == Step::More {
            let used = walk.spans().iter().filter(|span| span.kind != Kind::Unused);
            end = used.map(|span| span.end).fold(end, u64::max);
            records += walk.rows().len() as u64;
        }
        // A writer may have come or gone meanwhile, with whom the mark moves.
        let has_moved = || -> Result<bool> {
            let mark = Mark::read(self.disk(), self.path(), self.key())?;
            Ok(mark != view.mark)
        };
        if end == bound.offset || is_pending() || has_moved()? {
            return Ok(None);
        }
        Ok(Some(Unread {
            id: newest.id,
            offset: bound.offset,
            nbytes: end - bound.offset,
            records,
            marked: view.mark.sequence,
        }))
    }
}
