//! What a file's own format proves, and whether the file was changed on purpose.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use crate::engine::{Eof, Filter, Format, Options, Start, Step};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve};
use crate::ledger::Span;
use crate::record::Checked;
use crate::source::{FileSource, PatchedSource, Source};
use crate::verbs::Ledger;

/// How far before the first change a walk begins, in bytes, if it need not begin with the file.
const NEAR_BYTES: u64 = 64 << 10;
/// How much further it begins each time it found no record before the change.
const FURTHER: u64 = 8;
/// Up to how many changed bytes the repaired file is walked near them before it is written. All of the file is walked for more.
const MOST_PATCHED: u64 = 2 << 20;

/// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
/// that they prove. `near` looks only at records near the changes, if the format finds them there.
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
    let options = options.clone().format(format);
    let records = match near && format.is_appended_to() {
        true => Records::near(file, plan, format, &options)?,
        false => Records::all(file, plan, &options)?,
    };
    if records.checked != Checked::Checksum {
        return Ok(false);
    }
    if let Some(Span { start, end, .. }) = records.changed {
        return Err(Error::Usage(format!(
            "{}: the sidecar has other bytes for the record from {start} to {end}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, begin a new sidecar (protect with as_it_is, --as-it-is). If the sidecar is right, force (--force) repairs the file all the same",
            name(&file.path().map(Into::into))
        )));
    }
    Ok(records.is_proven)
}

/// What the records of a file say of a plan.
struct Records {
    /// Whether any record is sound.
    is_proven: bool,
    /// The first sound one with bytes that the plan changes.
    changed: Option<Span>,
    checked: Checked,
}

impl Records {
    /// Of all records.
    fn all(file: &FileSource, plan: &Plan, options: &Options) -> Result<Self> {
        let source: Arc<dyn Source> = Arc::new(file.again()?.up_to(file.len()));
        let mut ledger = Ledger::new(source, options)?;
        let mut records = Self::of(Checked::Checksum);
        for span in ledger.by_ref() {
            records.see(file, plan, span?)?;
        }
        // Whether there are checksums is known for certain at the end.
        records.checked = ledger.checked();
        Ok(records)
    }

    const fn of(checked: Checked) -> Self {
        Self {
            is_proven: false,
            changed: None,
            checked,
        }
    }

    fn see(&mut self, file: &FileSource, plan: &Plan, span: Span) -> Result<()> {
        if is_sound(&span) {
            self.is_proven = true;
            if self.changed.is_none() && changes(file, plan, &span)? {
                self.changed = Some(span);
            }
        }
        Ok(())
    }

    /// Of the records from before the first change up to the last one, in a format that finds records as after damage.
    fn near(file: &FileSource, plan: &Plan, format: &Format, options: &Options) -> Result<Self> {
        let (Some(first), Some(last)) = (plan.file.first(), plan.file.last()) else {
            return Ok(Self::of(format.checked));
        };
        if format.checked != Checked::Checksum {
            return Ok(Self::of(format.checked));
        }
        let mut back = NEAR_BYTES;
        loop {
            let start = first.start.saturating_sub(back) / NEAR_BYTES * NEAR_BYTES;
            let (mut records, range) = (Self::of(format.checked), start..last.end());
            let is_led = records.walk(file, plan, options, range.clone())?;
            if start == 0
                || records.changed.is_some()
                || is_led && mends(file, plan, options, range)?
            {
                return Ok(records);
            }
            // What was found may be in the value of a record that begins before it.
            back = if is_led {
                u64::MAX
            } else {
                back.saturating_mul(FURTHER)
            };
        }
    }

    /// Walks a range. Gives whether there is a sound record before the first change.
    fn walk(
        &mut self,
        file: &FileSource,
        plan: &Plan,
        options: &Options,
        range: Range<u64>,
    ) -> Result<bool> {
        let first = plan.file.first().map_or(range.start, |first| first.start);
        let (source, mut is_led) = (Arc::new(file.again()?.up_to(file.len())), false);
        each_span(source, options, range, &mut |span| {
            is_led |= is_sound(span) && span.end <= first;
            self.see(file, plan, *span)
        })?;
        Ok(is_led)
    }
}

/// Whether all that the plan changes is in sound records afterwards. Then no other record has it: a sound one, the values of which
/// have records of their own, would be damaged by that.
fn mends(file: &FileSource, plan: &Plan, options: &Options, range: Range<u64>) -> Result<bool> {
    if plan.changed() > MOST_PATCHED {
        return Ok(false);
    }
    let (mut patches, mut new) = (Vec::new(), Vec::new());
    for own in &plan.file {
        plan.read(own, &mut new)?;
        patches.extend((own.start..).zip(new.iter().copied()));
    }
    let source = Arc::new(file.again()?.up_to(file.len()));
    let source = Arc::new(PatchedSource::new(source, patches));
    let (mut changes, mut sound) = (plan.file.iter().peekable(), 0..0);
    each_span(source, options, range, &mut |span| {
        if is_sound(span) {
            let is_next = span.start == sound.end;
            sound = if is_next { sound.start } else { span.start }..span.end;
            while changes
                .next_if(|own| sound.start <= own.start && own.end() <= sound.end)
                .is_some()
            {}
        }
        Ok(())
    })?;
    Ok(changes.peek().is_none())
}

/// Walks a range, and on to the end of what it ends in.
fn each_span(
    source: Arc<dyn Source>,
    options: &Options,
    range: Range<u64>,
    see: &mut dyn FnMut(&Span) -> Result<()>,
) -> Result<()> {
    let options = options.clone().strict(false).values(false);
    let options = options.filter(Filter::default()).eof(Eof::Final);
    let start = match range.start {
        0 => Start::Beginning,
        start => Start::Offset(start),
    };
    let mut walk = open(source, &options, start)?;
    while walk.offset() < range.end && walk.step()? == Step::More {
        walk.spans().iter().try_for_each(&mut *see)?;
    }
    Ok(())
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

/// Whether the plan changes bytes of a range.
fn changes(file: &FileSource, plan: &Plan, span: &Span) -> Result<bool> {
    let first = plan.file.partition_point(|range| range.end() <= span.start);
    let ranges = plan.file.iter().skip(first);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for range in ranges.take_while(|range| range.start < span.end) {
        plan.read(range, &mut new)?;
        old.resize(new.len(), 0);
        file.read_exact_at(range.start, &mut old)?;
        let pairs = old.iter().zip(&new).zip(range.start..);
        let mut within = pairs.filter(|(_, at)| (span.start..span.end).contains(at));
        if within.any(|((old, new), _)| old != new) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The file as it will be.
pub(super) struct Patched<'a> {
    pub(super) file: &'a FileSource,
    pub(super) plan: &'a Plan,
}

impl Source for Patched<'_> {
    fn len(&self) -> u64 {
        self.plan.file_len(self.file.len())
    }

    fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let there = self.file.len().saturating_sub(offset);
        let there = usize::try_from(there).map_or(buffer.len(), |there| there.min(buffer.len()));
        let (own, missing) = buffer.split_at_mut(there);
        if !own.is_empty() {
            self.file.read_exact_at(offset, own)?;
        }
        missing.fill(0);
        let end = offset + buffer.len() as u64;
        let first = self
            .plan
            .file
            .partition_point(|range| range.end() <= offset);
        let ranges = self.plan.file.iter().skip(first);
        let mut new = Vec::new();
        for range in ranges.take_while(|range| range.start < end) {
            self.plan.read(range, &mut new)?;
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
        self.file.beside(extension)
    }
}
