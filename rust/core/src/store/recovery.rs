//! Opening a log for writing: what a dead writer left is put in order. docs/formats/log.md, "Recovery".

use std::sync::Arc;

use super::end::{freeze, unreadable_page};
use super::folder::{Listing, LogFolder, Segment, is_key_of};
use super::mark::{Mark, MarkFile, MarkState};
use super::name::{SegmentId, SegmentKind};
use super::sealing::{Job, remove_active, seal};
use crate::disk::{Handle, Opening};
use crate::engine::Start;
use crate::engine::append::{Within, search_within};
use crate::error::{Error, Result};
use crate::format::active::{self, ActiveWalk};
use crate::ledger::{Cause, Kind, Span};
use crate::output::{Appender, pieces};
use crate::record::Value;
use crate::saturating::saturating_usize;
use crate::source::{Bound, BoundSource, FileSource, Source, up_to_page};
use crate::walk::{Begin, Options, Step, Walk};

/// What recovery did, for whoever opened the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// A torn tail was removed from the newest segment. Its bytes are in a file of their own.
    TornTail {
        /// The segment.
        segment: SegmentId,
        /// The offset of the first byte that was removed.
        offset: u64,
        /// How many bytes were removed.
        bytes: u64,
    },
    /// The newest segment is damaged in a way that appending would hide. It is kept as it is, and writing goes on in a new one.
    Frozen {
        /// The segment.
        segment: SegmentId,
        /// Why.
        reason: String,
    },
    /// Records after the synced mark were sound, and are on the disk now.
    Rewritten {
        /// The segment.
        segment: SegmentId,
        /// How many bytes were written again.
        bytes: u64,
    },
}

/// What a writer goes on with.
pub(super) struct Recovered {
    pub(super) mark: MarkFile,
    /// The newest segment, if records can be appended to it.
    pub(super) writer: Option<(SegmentId, active::Writer)>,
    pub(super) next_sequence: u64,
    /// The greatest UUID of the log.
    pub(super) last: Option<[u8; 16]>,
    /// To seal the active segments that are complete.
    pub(super) unsealed: Vec<Job>,
    /// Segments without a parity sidecar that are sealed, but for those whose sealed file was removed since.
    pub(super) unprotected: Vec<SegmentId>,
    pub(super) steps: Vec<Recovery>,
}

/// Puts a log in order, whose lock is held.
///
/// # Errors
/// [`Error::Io`]; [`Error::Log`] where segments are missing; [`Error::Damage`] where the key is probably another one.
pub(super) fn recover(folder: &LogFolder) -> Result<Recovered> {
    let (disk, path) = (&folder.disk, &folder.path);
    let mut listing = Listing::read(disk, path, 0)?;
    let mut mark = MarkFile::open(folder)?;
    let synced = mark.mark();
    listing.check_reaches(path, synced.sequence)?;
    let recovery = Recovering {
        folder,
        mark: synced,
        found: mark.found(),
        is_key_known: mark.found() == MarkState::Mark || is_key_of(folder, &listing.segments),
    };
    let newest = listing.newest().cloned();
    // Of a sealed one the mark has the last UUID, so that it need not be read.
    let is_complete = |newest: &&Segment| {
        newest.kind == SegmentKind::Sealed && newest.id.sequence == synced.sequence
    };
    let unknown = newest.as_ref().filter(|newest| !is_complete(newest));
    let end = unknown.map(|newest| recovery.survey(newest)).transpose()?;
    let has_record = end.as_ref().is_some_and(|end| end.last.is_some());
    // Nothing is changed before the key is known to be the log's.
    match &newest {
        None => mark.found().check_empty(path)?,
        Some(newest) if mark.found().is_foreign() && !recovery.is_key_known && !has_record => {
            return Err(mark.found().unknown_key(&newest.path, false));
        }
        Some(_) => {}
    }
    for temporary in &listing.temporary {
        // What hinders this hinders nobody: the name is never used again.
        let _ = disk.unlink(temporary);
    }
    mark.begin()?;
    listing.forget_beside(disk);
    let unprotected = listing.unprotected();
    let mut is_sealed = false;
    for doubled in std::mem::take(&mut listing.doubled) {
        let is_newest = newest
            .as_ref()
            .is_some_and(|newest| newest.id == doubled.id);
        if !doubled.is_frozen {
            is_sealed |= recovery.settle_doubled(doubled.id, is_newest)? && is_newest;
        }
    }
    let mut recovered = Recovered {
        writer: None,
        next_sequence: match &newest {
            Some(newest) => newest.id.sequence.saturating_add(1),
            None => 1,
        },
        last: (synced.sequence > 0).then_some(synced.last),
        unsealed: Vec::new(),
        unprotected,
        steps: Vec::new(),
        mark,
    };
    if let (Some(newest), Some(end)) = (&newest, end) {
        let first = newest.id.first.into_bytes();
        // Also what is missing was acknowledged: its UUIDs are not given again.
        let known = recovery.bound(newest.id).last;
        recovered.last = recovered.last.max(end.last).max(known).max(Some(first));
        if newest.kind == SegmentKind::Active && !newest.is_frozen {
            // What becomes of it is settled here; all before it are complete.
            listing.segments.pop();
            if !is_sealed {
                recovery.settle(newest, &end, &mut recovered)?;
            }
            let has_end = Bound::of_end(folder, newest.id).is_some();
            if has_end && recovered.writer.take().is_some() {
                // There may have been a next segment, without a record: readers went on from this one, and would miss what is
                // appended to it.
                listing.segments.push(newest.clone());
            }
        }
    }
    let is_unsealed = |segment: &Segment| segment.kind == SegmentKind::Active && !segment.is_frozen;
    let unsealed = listing.segments.into_iter().filter(is_unsealed);
    // Where the mark is in a segment, that has to reach it.
    let jobs = unsealed.map(|segment| {
        let is_marked = segment.id.sequence == synced.sequence;
        Job::Seal(segment, is_marked.then_some(synced.offset))
    });
    recovered.unsealed = jobs.collect();
    Ok(recovered)
}

/// Where a segment ends.
#[derive(Default)]
struct Surveyed {
    /// The offset after the last sound record.
    records: u64,
    /// The UUID of the last sound record.
    last: Option<[u8; 16]>,
    /// The first damaged range, and its cause.
    first_damage: Option<(Span, Cause)>,
    /// The last range that is not unused space.
    tail: Option<Span>,
    len: u64,
    /// The first page that the disk cannot read, and why.
    unreadable: Option<(u64, String)>,
}

struct Recovering<'a> {
    folder: &'a LogFolder,
    mark: Mark,
    /// What was in the mark's file.
    found: MarkState,
    is_key_known: bool,
}

impl Recovering<'_> {
    fn options(&self) -> Options {
        self.folder.options().for_ledger()
    }

    /// A segment's file, and the same as what has to reach what is known of it. It is read around what the disk cannot read.
    fn source(&self, segment: &Segment) -> Result<(Arc<FileSource>, Arc<dyn Source>)> {
        let file = FileSource::open_on(&self.folder.disk, &segment.path)?;
        let file = Arc::new(file.around_unreadable());
        let source: Arc<dyn Source> = match segment.kind {
            SegmentKind::Active => {
                Arc::new(BoundSource::whole(file.clone(), self.bound(segment.id)))
            }
            SegmentKind::Sealed => file.clone(),
        };
        Ok((file, source))
    }

    /// Reads a segment to its end. Of a sealed one only the last UUID is looked for.
    fn survey(&self, segment: &Segment) -> Result<Surveyed> {
        let (file, source) = self.source(segment)?;
        let options = self.options();
        let format = segment.kind.format();
        let mut walk = format.open(source, &options, Start::Beginning)?;
        let mut end = Surveyed {
            len: file.len(),
            ..Surveyed::default()
        };
        while walk.step()? == Step::More {
            let run = walk.record_run().map(|run| [run.span()]);
            for span in run.as_ref().map_or(walk.spans(), |run| &run[..]) {
                match span.kind {
                    Kind::Unused => continue,
                    Kind::Record => end.records = span.end,
                    _ => {}
                }
                if let Some(cause) = span.cause {
                    end.first_damage.get_or_insert((*span, cause));
                }
                end.tail = Some(*span);
            }
            let rows = walk.rows();
            let last = rows.len().checked_sub(1).map(|row| rows.field(row, 0));
            if let Some(Value::Uuid(uuid)) = last {
                end.last = Some(uuid);
            }
        }
        if walk.suspects_key() && !self.is_key_known {
            return Err(self.found.unknown_key(&segment.path, true));
        }
        end.unreadable = file.unreadable();
        Ok(end)
    }

    /// What is known to be on the disk of a segment.
    fn bound(&self, id: SegmentId) -> Bound {
        Bound::of_appended(self.folder, &self.mark, id)
    }

    /// Puts the newest segment in order, so that records can be appended to it, or freezes it.
    fn settle(&self, segment: &Segment, end: &Surveyed, recovered: &mut Recovered) -> Result<()> {
        let bound = self.bound(segment.id);
        let synced = Bound::of_mark(&self.mark, segment.id).offset;
        if let Some(reason) = self.reason_to_freeze(segment, end, &bound)? {
            // What is shown of it from now on has to be on the disk.
            let skips = end.unreadable.is_some();
            self.rewrite(segment, synced.min(end.len), end.len, skips)?;
            let known = Some(bound.offset);
            freeze(self.folder, segment.id, reason.clone(), known)?;
            recovered.steps.push(Recovery::Frozen {
                segment: segment.id,
                reason,
            });
            return Ok(());
        }
        if let Some((torn, _)) = end.first_damage {
            self.remove_tail(segment, torn)?;
            recovered.steps.push(Recovery::TornTail {
                segment: segment.id,
                offset: torn.start,
                bytes: torn.end - torn.start,
            });
        }
        let Some(last) = end.last else {
            // It never held a whole record, so nothing of it was acknowledged, and its name is that of a record that is not there.
            recovered.next_sequence = segment.id.sequence;
            return self.folder.remove(&segment.path);
        };
        if end.records > synced || end.first_damage.is_some() {
            self.rewrite(segment, synced, end.records, false)?;
            let mark = &mut recovered.mark;
            mark.advance(segment.id.sequence, end.records, last)?;
            mark.sync()?;
            recovered.steps.push(Recovery::Rewritten {
                segment: segment.id,
                bytes: end.records - synced,
            });
        }
        let (path, end) = (&segment.path, end.records);
        let LogFolder { disk, key, .. } = self.folder;
        let writer = active::Writer::resume(disk, path, *key, end, last)?;
        recovered.writer = Some((segment.id, writer));
        Ok(())
    }

    /// Why nothing may be appended to a segment, if that is so.
    fn reason_to_freeze(
        &self,
        segment: &Segment,
        end: &Surveyed,
        bound: &Bound,
    ) -> Result<Option<String>> {
        if let Some(unreadable) = end.unreadable.clone() {
            // Nothing is known of what is there: a later record may be, also one that was acknowledged.
            return Ok(Some(unreadable_page(unreadable)));
        }
        let Some((damage, cause)) = end.first_damage else {
            return Ok(None);
        };
        let at = format!("{cause} at offset {}", damage.start);
        if damage.start < bound.offset {
            return self.first_error(segment).map(Some);
        }
        // Where no record is sound, the first one was being written.
        let is_torn = damage.kind == Kind::TornTail || end.last.is_none() && self.is_key_known;
        if end.tail != Some(damage) || !is_torn {
            return Ok(Some(format!("{at}, and more after it")));
        }
        let (_, source) = self.source(segment)?;
        // Of a record that is all there, pages may be of before: it was not acknowledged.
        let is_one = active::is_unfinished(&*source, &self.options(), &damage, end.last, 0)?;
        let within = ActiveWalk::from(source, &self.options(), damage.start + 1, end.last)?;
        Ok(match search_within(within)? {
            Within::Nothing if is_one => None,
            Within::Nothing => Some(format!("{at}, which is not one unfinished record")),
            Within::Records => Some(format!("{at}, and sound records within it")),
            Within::Unknown => Some(format!(
                "{at}, and perhaps sound records within it: the search for them reached its limit"
            )),
        })
    }

    /// What reading a segment raises first.
    fn first_error(&self, segment: &Segment) -> Result<String> {
        let options = self.options().strict(true);
        let mut walk = ActiveWalk::open(self.source(segment)?.1, &options, Begin::Beginning)?;
        loop {
            match walk.step() {
                Ok(Step::More) => {}
                Err(Error::Damage(damage)) => return Ok(damage.to_string()),
                Err(error) => return Err(error),
                Ok(_) => return Err(Error::changed(Some(&segment.path), "the segment")),
            }
        }
    }

    /// Moves a torn tail into a file of its own, then overwrites it with zeros.
    fn remove_tail(&self, segment: &Segment, torn: Span) -> Result<()> {
        let mut out = Appender::open(&self.folder.disk, &segment.path, true)?;
        let name = |number| segment.id.quarantine_name(torn.start, number);
        out.remove_tail(torn.start..torn.end, true, |number| {
            self.folder.join(name(number))
        })
    }

    /// Writes sound bytes again that may be in memory alone: after a failed sync the operating system may show what the disk
    /// does not have. Where the disk cannot read some pages, these are skipped.
    fn rewrite(&self, segment: &Segment, from: u64, to: u64, skips: bool) -> Result<()> {
        let failed = |error| Error::io(Some(&segment.path), "cannot write again", error);
        let file = self.folder.disk.handle(&segment.path, Opening::Write);
        let file = file.map_err(failed)?;
        let again = |bytes: &[u8], at| file.write_all_at(bytes, at);
        if skips {
            let mut at = from;
            let mut page = Vec::new();
            while at < to {
                page.resize(up_to_page(at).min(saturating_usize(to - at)), 0);
                if file.read_exact_at(&mut page, at).is_ok() {
                    again(&page, at).map_err(failed)?;
                }
                at += page.len() as u64;
            }
        } else {
            copy(&file, from, to, again).map_err(failed)?;
        }
        file.sync_data().map_err(failed)?;
        self.sync_folder()
    }

    /// Of a segment that is there as both, keeps the sealed file if it is sound and has all records. Else the active file is the
    /// segment: the sealed one is put aside, or made anew if nothing is appended to the segment any more. Returns whether the segment
    /// is sealed.
    fn settle_doubled(&self, id: SegmentId, is_newest: bool) -> Result<bool> {
        let of_kind = |kind| self.folder.segment(id, kind);
        let (active, sealed) = (of_kind(SegmentKind::Active), of_kind(SegmentKind::Sealed));
        let (of_active, of_sealed) = (self.survey(&active)?, self.survey(&sealed)?);
        let bound = self.bound(id);
        let needed = of_active.last.max(bound.last);
        // Of the newest segment there may be records that cannot be read, and that the sealed file lacks.
        let is_readable = of_active.unreadable.is_none() || !is_newest;
        let is_whole = of_sealed.first_damage.is_none() && is_readable;
        if is_whole && of_sealed.last.is_some() && of_sealed.last >= needed {
            return remove_active(self.folder, id).map(|()| true);
        }
        let path = Some(&*active.path);
        let lacking = bound.check(path, of_active.records, of_active.last, of_active.len);
        if !is_newest && lacking.is_ok() {
            let sealed = seal(self.folder, &active, true, None, None)?;
            return Ok(!sealed.is_frozen);
        }
        let aside = format!("_{}", id.file_name(SegmentKind::Sealed));
        let aside = self.folder.join(aside);
        let moved = self.folder.disk.rename(&sealed.path, &aside);
        moved.map_err(|error| Error::io(Some(&sealed.path), "cannot put aside", error))?;
        self.sync_folder()?;
        if let (false, Err(error)) = (is_newest, lacking) {
            freeze(self.folder, id, error.to_string(), Some(bound.offset))?;
        }
        Ok(false)
    }

    fn sync_folder(&self) -> Result<()> {
        let LogFolder { disk, path, .. } = self.folder;
        let synced = disk.sync_folder(path);
        synced.map_err(|error| Error::io(Some(path), "cannot sync the folder", error))
    }
}

/// Reads a range of a file in pieces.
pub(super) fn copy(
    file: &Handle,
    from: u64,
    to: u64,
    mut give: impl FnMut(&[u8], u64) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for piece in pieces(from, to) {
        bytes.resize(saturating_usize(piece.end - piece.start), 0);
        file.read_exact_at(&mut bytes, piece.start)?;
        give(&bytes, piece.start)?;
    }
    Ok(())
}
