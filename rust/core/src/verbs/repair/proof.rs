//! What a file's own format proves, and whether the file was changed on purpose.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use crate::engine::{Format, Start};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve};
use crate::record::Checked;
use crate::source::{FileSource, Source};
use crate::spec::Filter;
use crate::verbs::proof::{is_sound, proof};
use crate::walk::{Eof, Options, Step};

/// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
/// that they prove.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Io`].
pub(super) fn refuse_proven(
    file: &FileSource,
    plan: &Arc<Plan>,
    options: &Options,
) -> Result<bool> {
    let Some(format) = format_of(file, plan, options)? else {
        return Ok(false);
    };
    let own: Arc<dyn Source> = Arc::new(file.again()?.up_to(file.len()));
    let repaired = Patched {
        file: file.again()?.up_to(file.len()),
        plan: plan.clone(),
    };
    let repaired: Arc<dyn Source> = Arc::new(repaired);
    let changed: Vec<_> = plan.file.iter().map(|own| own.start..own.end()).collect();
    let proof = proof([&own, &repaired], &changed, format, options)?;
    let Some(record) = proof.against else {
        return Ok(proof.is_any);
    };
    Err(Error::Usage(format!(
        "{}: the sidecar has other bytes for the record from {} to {}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, protect it with `as_it_is`, which begins a new sidecar. If the sidecar is right, `force` repairs the file all the same",
        name(&file.path().map(Into::into)),
        record.start,
        record.end
    )))
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
