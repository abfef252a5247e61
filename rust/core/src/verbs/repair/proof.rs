//! What a file's own format proves, and whether the file was changed on purpose.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use crate::engine::{Format, Start, has_same_records};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve};
use crate::ledger::Span;
use crate::record::Checked;
use crate::source::{FileSource, PatchedSource, Source};
use crate::spec::Filter;
use crate::verbs::Ledger;
use crate::walk::{Eof, Options, Step};

/// With how many changed bytes a unit is compared with itself. What changes more of it is taken for other records.
const MOST_PATCHES: usize = 1 << 20;

/// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
/// that they prove.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Io`].
pub(super) fn refuse_proven(file: &FileSource, plan: &Plan, options: &Options) -> Result<bool> {
    let Some(format) = format_of(file, plan, options)? else {
        return Ok(false);
    };
    let options = options.clone().format(format).strict(false).values(false);
    let own = Own {
        file,
        plan,
        source: Arc::new(file.again()?.up_to(file.len())),
        format,
        options: options.filter(Filter::default()).eof(Eof::Final),
    };
    let walk = open(own.source.clone(), &own.options, Start::Beginning)?;
    if walk.checked() != Checked::Checksum {
        return Ok(false);
    }
    let mut is_proven = false;
    for span in Ledger::new(own.source.clone(), &own.options)? {
        let span = span?;
        if !is_sound(&span) {
            continue;
        }
        if own.is_changed(&span)? {
            return Err(Error::Usage(format!(
                "{}: the sidecar has other bytes for the record from {} to {}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, protect it with `as_it_is`, which begins a new sidecar. If the sidecar is right, `force` repairs the file all the same",
                name(&file.path().map(Into::into)),
                span.start,
                span.end
            )));
        }
        is_proven = true;
    }
    Ok(is_proven)
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

/// A file, read by its own format.
struct Own<'a> {
    file: &'a FileSource,
    plan: &'a Plan,
    source: Arc<dyn Source>,
    format: &'static Format,
    options: Options,
}

impl Own<'_> {
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
