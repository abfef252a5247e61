//! What a file's own format proves, and whether the file was changed on purpose.

use std::borrow::Borrow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use crate::engine::{Eof, Filter, Format, Options, Start, Step, has_same_records};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve, split_in_places};
use crate::ledger::Span;
use crate::record::Checked;
use crate::source::{FileSource, PatchedSource, Source};
use crate::verbs::Ledger;

/// The size of the parts that a file is split into, where it can be, to read those with changes.
const PART_BYTES: u64 = 1 << 20;
/// With how many changed bytes a unit is compared with itself. What changes more of it is taken for other records.
const MOST_PATCHES: usize = 1 << 20;

/// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
/// that they prove. `near` reads no more of the file than tells which records have the changed bytes.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Io`].
pub(super) fn refuse_proven(
    file: &FileSource,
    plan: &Plan,
    near: bool,
    options: &Options,
) -> Result<bool> {
    let Some(format) = format_of(file, plan, options)? else {
        return Ok(false);
    };
    let (Some(first), Some(last)) = (plan.file.first(), plan.file.last()) else {
        return Ok(false);
    };
    let options = options.clone().format(format).strict(false).values(false);
    let own = Own {
        file,
        plan,
        source: Arc::new(file.again()?.up_to(file.len())),
        format,
        options: options.filter(Filter::default()).eof(Eof::Final),
        changes: first.start..last.end(),
    };
    let Some(records) = own.records(near)? else {
        return Ok(false);
    };
    if let Some(Span { start, end, .. }) = records.changed {
        return Err(Error::Usage(format!(
            "{}: the sidecar has other bytes for the record from {start} to {end}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, protect it with `as_it_is`, which begins a new sidecar. If the sidecar is right, `force` repairs the file all the same",
            name(&file.path().map(Into::into))
        )));
    }
    Ok(records.is_proven)
}

/// Whether checksums of the file's own format prove a record once it is repaired. If they prove none before, their records or they
/// themselves are among what is damaged. So the file has to show damage of its own: otherwise it may have been written anew.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn is_proven_once_repaired(
    file: &FileSource,
    plan: &Arc<Plan>,
    options: &Options,
) -> Result<bool> {
    let Some(format) = format_of(file, plan, options)? else {
        return Ok(false);
    };
    let options = options.clone().format(format).strict(false).values(false);
    let options = options.filter(Filter::default()).eof(Eof::Final);
    let own = Arc::new(file.again()?.up_to(file.len()));
    let (mut walk, mut is_damaged) = (open(own, &options, Start::Beginning)?, false);
    while walk.step()? == Step::More {
        is_damaged |= walk.spans().iter().any(|span| span.cause.is_some());
    }
    if !is_damaged {
        return Ok(false);
    }
    let repaired: Arc<dyn Source> = Arc::new(Patched {
        file: file.again()?.up_to(file.len()),
        plan: plan.clone(),
    });
    let mut walk = open(repaired, &options, Start::Beginning)?;
    while walk.step()? == Step::More {
        if walk.checked() == Checked::Checksum && walk.spans().iter().any(is_sound) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the records of a file say of a plan.
#[derive(Default)]
struct Records {
    /// Whether any record is sound.
    is_proven: bool,
    /// The first sound one with bytes that the plan changes.
    changed: Option<Span>,
}

/// A file, read by its own format.
struct Own<'a> {
    file: &'a FileSource,
    plan: &'a Plan,
    source: Arc<dyn Source>,
    format: &'static Format,
    options: Options,
    /// From the first byte that the plan changes to the last.
    changes: Range<u64>,
}

impl Own<'_> {
    /// What its records say, if they have checksums. Of `near` ones alone, if these are known.
    fn records(&self, near: bool) -> Result<Option<Records>> {
        let walk = open(self.source.clone(), &self.options, Start::Beginning)?;
        if walk.checked() != Checked::Checksum {
            return Ok(None);
        }
        if near && let Some(records) = self.near()? {
            return Ok(Some(records));
        }
        let mut records = Records::default();
        for span in Ledger::new(self.source.clone(), &self.options)? {
            self.see(span?, &mut records)?;
        }
        Ok(Some(records))
    }

    fn see(&self, span: Span, records: &mut Records) -> Result<()> {
        if is_sound(&span) {
            records.is_proven = true;
            if records.changed.is_none() && self.is_changed(&span)? {
                records.changed = Some(span);
            }
        }
        Ok(())
    }

    /// Of the records that may have changed bytes, if the format tells which without the others. A record may begin far before the bytes
    /// that it has, and its value may have records of its own. So these are only those that a walk of the whole file comes to.
    /// `None` if that does not tell, or if none of them is sound.
    fn near(&self) -> Result<Option<Records>> {
        let records = match self.format.is_appended_to() {
            true => Some(self.up_to_changes()?),
            // What a part cannot tell by itself, the whole file does.
            false => match self.in_parts() {
                Err(Error::Usage(_) | Error::Limit { .. }) => None,
                records => records?,
            },
        };
        Ok(records.filter(|records| records.is_proven))
    }

    /// In a format whose records follow one another: of those up to the last change, from the beginning or from a unit that is found by
    /// headers alone.
    fn up_to_changes(&self) -> Result<Records> {
        let unit = match self.format.unit_before {
            Some(unit_before) => unit_before(&self.source, &self.options, self.changes.start)?,
            None => None,
        };
        if let Some(unit) = unit {
            let mut records = Records::default();
            let begin = self.walk(Start::Offset(unit), &mut records)?;
            // Only if it is sound does what a walk knows there not depend on those before.
            if begin.is_some_and(|span| is_sound(&span) && span.start == unit) {
                return Ok(records);
            }
        }
        let mut records = Records::default();
        self.walk(Start::Beginning, &mut records)?;
        Ok(records)
    }

    /// In a format with an index or a table of contents: of those in parts that have changed bytes.
    fn in_parts(&self) -> Result<Option<Records>> {
        let parts = split_in_places(&self.source, &self.options, PART_BYTES)?;
        if parts.len() < 2 {
            return Ok(None);
        }
        let (mut records, changes) = (Records::default(), &self.changes);
        let mut at = parts.partition_point(|(start, _)| *start <= changes.start);
        at = at.saturating_sub(1);
        let (after, end) = (
            at + 1,
            parts.partition_point(|(start, _)| *start < changes.end),
        );
        while let Some((_, part)) = parts.get(at) {
            let first = self.walk(Start::Part(part), &mut records)?;
            // What is damaged where a part begins is of the part before.
            if at == 0 || first.is_some_and(|first| first.start <= changes.start) {
                break;
            }
            at -= 1;
        }
        for (_, part) in parts.iter().take(end).skip(after) {
            self.walk(Start::Part(part), &mut records)?;
        }
        Ok(Some(records))
    }

    /// Walks a part, or from there on up to the last change. Gives the first range that is not of an index.
    fn walk(&self, start: Start<'_>, records: &mut Records) -> Result<Option<Span>> {
        let is_part = matches!(start, Start::Part(_));
        let (mut walk, mut first) = (open(self.source.clone(), &self.options, start)?, None);
        while (is_part || walk.offset() < self.changes.end) && walk.step()? == Step::More {
            let front_end = walk.front_end();
            for span in walk.spans() {
                if span.start >= front_end {
                    first.get_or_insert(*span);
                }
                self.see(*span, records)?;
            }
        }
        Ok(first)
    }

    /// Whether the plan changes a record of a sound unit. Other bytes may be the same records, where checksums are not of the bytes.
    fn is_changed(&self, unit: &Span) -> Result<bool> {
        let plan = &self.plan.file;
        let first = plan.partition_point(|range| range.end() <= unit.start);
        let ranges = plan.iter().skip(first);
        let (mut old, mut new, mut patches) = (Vec::new(), Vec::new(), Vec::new());
        for range in ranges.take_while(|range| range.start < unit.end) {
            self.plan.read(range, &mut new)?;
            old.resize(new.len(), 0);
            self.file.read_exact_at(range.start, &mut old)?;
            let pairs = old.iter().zip(&new).zip(range.start..);
            let changed = pairs.filter(|((old, new), _)| old != new);
            let within = changed.filter(|(_, at)| (unit.start..unit.end).contains(at));
            patches.extend(within.map(|((_, new), at)| (at, *new)));
            if patches.len() > MOST_PATCHES {
                return Ok(true);
            }
        }
        if patches.is_empty() {
            return Ok(false);
        }
        let patched = Arc::new(PatchedSource::new(self.source.clone(), patches));
        let files = [self.source.clone(), patched as Arc<dyn Source>];
        Ok(!has_same_records(files, self.format, &self.options, unit)?)
    }
}

fn is_sound(span: &Span) -> bool {
    span.cause.is_none() && span.kind.is_unit()
}

/// The format of the file; if its bytes do not tell, that of the repaired one.
fn format_of(file: &FileSource, plan: &Plan, options: &Options) -> Result<Option<&'static Format>> {
    match resolve(file, options) {
        Err(Error::Format { .. }) => {}
        format => return format.map(Some),
    }
    match resolve(&Patched { file, plan }, options) {
        Err(Error::Format { .. }) => Ok(None),
        format => format.map(Some),
    }
}

/// The file as it will be.
pub(super) struct Patched<File, Changes> {
    pub(super) file: File,
    pub(super) plan: Changes,
}

impl<File, Changes> Source for Patched<File, Changes>
where
    File: Borrow<FileSource> + Send + Sync,
    Changes: Borrow<Plan> + Send + Sync,
{
    fn len(&self) -> u64 {
        self.plan.borrow().file_len(self.file.borrow().len())
    }

    fn path(&self) -> Option<&Path> {
        self.file.borrow().path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let (file, plan): (&FileSource, &Plan) = (self.file.borrow(), self.plan.borrow());
        let there = file.len().saturating_sub(offset);
        let there = usize::try_from(there).map_or(buffer.len(), |there| there.min(buffer.len()));
        let (own, missing) = buffer.split_at_mut(there);
        if !own.is_empty() {
            file.read_exact_at(offset, own)?;
        }
        missing.fill(0);
        let end = offset + buffer.len() as u64;
        let first = plan.file.partition_point(|range| range.end() <= offset);
        let ranges = plan.file.iter().skip(first);
        let mut new = Vec::new();
        for range in ranges.take_while(|range| range.start < end) {
            plan.read(range, &mut new)?;
            for (byte, at) in new.iter().zip(range.start..) {
                let place = at.checked_sub(offset).map(usize::try_from);
                if let Some(Ok(place)) = place
                    && let Some(own) = buffer.get_mut(place)
                {
                    *own = *byte;
                }
            }
        }
        Ok(())
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.file.borrow().beside(extension)
    }
}
