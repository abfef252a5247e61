//! What a file's own format proves, and whether the file was changed on purpose.

use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use crate::engine::{Format, Options};
use crate::error::{Error, Result, name};
use crate::format::resolve;
use crate::ledger::{Kind, Span};
use crate::record::Checked;
use crate::source::{FileSource, Source};
use crate::verbs::Ledger;

/// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
/// that they prove.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Io`].
pub(super) fn refuse_proven(file: &FileSource, plan: &Plan, options: &Options) -> Result<bool> {
    let Some(format) = format_of(file, plan, options)? else {
        return Ok(false);
    };
    let source: Arc<dyn Source> = Arc::new(file.again()?.up_to(file.len()));
    let mut ledger = Ledger::new(source, &options.clone().format(format))?;
    let (mut is_proven, mut changed) = (false, None);
    for span in ledger.by_ref() {
        let span = span?;
        if span.cause.is_none() && matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block) {
            is_proven = true;
            if changed.is_none() && changes(file, plan, &span)? {
                changed = Some(span);
            }
        }
    }
    // Whether there are checksums is known for certain at the end.
    if ledger.checked() != Checked::Checksum {
        return Ok(false);
    }
    if let Some(Span { start, end, .. }) = changed {
        return Err(Error::Usage(format!(
            "{}: the sidecar has other bytes for the record from {start} to {end}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, begin a new sidecar (protect with as_it_is, --as-it-is). If the sidecar is right, force (--force) repairs the file all the same",
            name(&file.path().map(Into::into))
        )));
    }
    Ok(is_proven)
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
