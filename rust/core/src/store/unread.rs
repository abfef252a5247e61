//! Finds records that readers of a log leave out. docs/formats/log.md, "What is after the mark".

use std::sync::Arc;

use super::identity;
use super::lock::Lock;
use super::mark::Mark;
use super::reader::{LogReader, View};
use super::skipped::Unread;
use crate::error::Result;
use crate::format::active::ActiveWalk;
use crate::ledger::Kind;
use crate::source::{FileSource, data_end_after};
use crate::walk::{Begin, Step, Walk as _};

impl LogReader {
    /// What readers leave out now, since it is after the synced mark and no writer has the log open: `None` if that is nothing, and while
    /// a writer has it open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn unread(&self) -> Result<Option<Unread>> {
        self.unread_of(&*self.known()?)
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
        let is_pending = || Lock::is_held(self.disk(), self.path());
        // Not by its name: of what is another segment nothing is read either.
        let stat = self.disk().stat(&newest.path, true).ok();
        // A writer that comes and goes moves the mark, with which all is listed again.
        if let Ok(known) = view.unread.try_lock()
            && let Some((_, unread)) = known.filter(|(of, _)| *of == stat)
        {
            return Ok(unread.filter(|_| !is_pending()));
        }
        if stat.is_some_and(|stat| bound.offset >= stat.len) || is_pending() {
            return Ok(None);
        }
        let file = match FileSource::open_on(self.disk(), &newest.path) {
            // Sealed or removed since it was listed.
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        // Reading reports another segment under this name.
        let of = (newest.id, newest.kind);
        if identity::check(self.disk(), &[*self.key()], of, (&newest.path, &file)).is_err() {
            return Ok(None);
        }
        let file = Arc::new(file.around_unreadable());
        let options = self.options().for_ledger();
        let (mut end, mut records) = (bound.offset, 0);
        if data_end_after(&*file, end, || options.poll())? > end {
            let mut walk = ActiveWalk::open(file, &options, Begin::Offset(end))?;
            while walk.step()? == Step::More {
                let used = walk.spans().iter().filter(|span| span.kind != Kind::Unused);
                end = used.map(|span| span.end).fold(end, u64::max);
                records += walk.rows().len() as u64;
            }
        }
        if is_pending() || Mark::read(self.disk(), self.path(), self.key())? != view.mark {
            return Ok(None);
        }
        let unread = (end > bound.offset).then_some(Unread {
            id: newest.id,
            offset: bound.offset,
            nbytes: end - bound.offset,
            records,
            marked: view.mark.sequence,
        });
        if let Ok(mut known) = view.unread.try_lock() {
            *known = Some((stat, unread));
        }
        Ok(unread)
    }
}
