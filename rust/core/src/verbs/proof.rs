//! What a file proves by the checksums of its own format, against what its sidecar would restore, and whether it was changed on
//! purpose.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::Arc;

use super::Ledger;
use crate::engine::{Format, Start};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve};
use crate::ledger::{Span, overlapping};
use crate::parity::{FileKind, Report};
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source};
use crate::walk::{Begin, Eof, Options, Step};

/// How much of a unit is compared at once, in bytes.
const PIECE_BYTES: u64 = 64 << 10;

/// What the checksums of a file's own format prove.
#[derive(Default)]
pub(super) struct FileProof {
    /// The first record, or unit of records, that is proven and is another one where the sidecar restores the file. The sidecar is of an
    /// earlier state of the file then.
    pub(super) against: Option<Span>,
    /// Whether any record before that is proven.
    is_any: bool,
}

/// Compares a file with how its sidecar restores it, which changes these ranges. Ascending.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io); [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn proof(
    [file, restored]: [&Arc<dyn Source>; 2],
    changed: &[Range<u64>],
    format: &'static Format,
    options: &Options,
) -> Result<FileProof> {
    let options = options.for_ledger().format(format).eof(Eof::Final);
    let mut proof = FileProof::default();
    let walk = open(file.clone(), &options, Start::Beginning)?;
    if walk.checked() != Checked::Checksum {
        return Ok(proof);
    }
    for span in Ledger::new(file.clone(), &options)? {
        let span = span?;
        if !is_sound(&span) {
            continue;
        }
        let ranges = overlapping(changed, Range::clone, &(span.start..span.end)).iter();
        let mut within = ranges.map(|range| range.start.max(span.start)..range.end.min(span.end));
        let differs = within.try_fold(false, |differs, range| {
            Result::Ok(differs || differ([file, restored], range)?)
        })?;
        let files = || [file.clone(), restored.clone()];
        if differs && !has_same_records(files(), format, &options, &span)? {
            proof.against = Some(span);
            break;
        }
        proof.is_any = true;
    }
    Ok(proof)
}

fn is_sound(span: &Span) -> bool {
    span.cause.is_none() && span.kind.is_unit()
}

/// Whether two files have other bytes in a range that both have.
fn differ(files: [&Arc<dyn Source>; 2], range: Range<u64>) -> Result<bool> {
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(PIECE_BYTES);
        let mut pieces = [(); 2].map(|()| vec![0; saturating_usize(len)]);
        for (file, piece) in files.iter().zip(&mut pieces) {
            file.read_exact_at(at, piece)?;
        }
        let [one, other] = pieces;
        if one != other {
            return Ok(true);
        }
        at += len;
    }
    Ok(false)
}

/// Whether a unit of records is sound in both of two files, and has the same records there. Its bytes may differ only in a format with
/// checksums of records and not of the bytes that these are compressed to; in others this is false if they do.
///
/// # Errors
/// Those of opening and walking the files.
fn has_same_records(
    files: [Arc<dyn Source>; 2],
    format: &'static Format,
    options: &Options,
    unit: &Span,
) -> Result<bool> {
    if format.has_plain_values {
        return Ok(false);
    }
    let options = options.clone().values(true);
    let [first, second] = files.map(|file| hash_records(file, format, &options, unit));
    let (first, second) = (first?, second?);
    Ok(first.is_some() && first == second)
}

/// A hash of all fields of a unit's records. `None` if the unit is not sound.
fn hash_records(
    file: Arc<dyn Source>,
    format: &'static Format,
    options: &Options,
    unit: &Span,
) -> Result<Option<u64>> {
    let columns = format.columns(options.dialect).len();
    let mut walk = format.open_for(file, options, Begin::Offset(unit.start).into())?;
    let (mut hasher, mut is_sound) = (DefaultHasher::new(), false);
    while walk.offset() < unit.end && walk.step()? == Step::More {
        let rows = walk.rows();
        for row in (0..rows.len()).filter(|row| rows.position(*row) == unit.start) {
            (0..columns).for_each(|column| rows.field(row, column).hash(&mut hasher));
        }
        is_sound |= walk.spans().contains(unit);
    }
    Ok(is_sound.then(|| hasher.finish()))
}

/// A file as it is, and repaired, by its own format.
pub(super) struct Proofs {
    file: Arc<dyn Source>,
    repaired: Arc<dyn Source>,
    format: &'static Format,
    options: Options,
}

impl Proofs {
    /// The format is that of the file; if its bytes do not tell, that of the repaired one. `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn new(
        file: &FileSource,
        repaired: FileSource,
        options: &Options,
    ) -> Result<Option<Self>> {
        let file: Arc<dyn Source> = Arc::new(file.again()?.up_to(file.len()));
        let repaired: Arc<dyn Source> = Arc::new(repaired);
        let format = match resolve(&*file, options) {
            Err(Error::Format { .. }) => resolve(&*repaired, options),
            format => format,
        };
        let format = match format {
            Err(Error::Format { .. }) => return Ok(None),
            format => format?,
        };
        Ok(Some(Self {
            file,
            repaired,
            format,
            options: options.for_ledger().format(format).eof(Eof::Final),
        }))
    }

    /// Refuses changes to bytes of records that checksums of the file's own format prove. Gives whether there is a record
    /// that they prove.
    ///
    /// # Errors
    /// [`Error::Usage`]; [`Error::Io`].
    pub(super) fn refuse_proven(&self, report: &Report) -> Result<bool> {
        let repaired = report.file.iter();
        let repaired = repaired.filter(|span| span.kind == FileKind::Repaired);
        let changed: Vec<_> = repaired.map(|span| span.start..span.end).collect();
        let files = [&self.file, &self.repaired];
        let proof = proof(files, &changed, self.format, &self.options)?;
        let Some(record) = proof.against else {
            return Ok(proof.is_any);
        };
        Err(Error::Usage(format!(
            "{}: the sidecar has other bytes for the record from {} to {}, which its own checksum proves: the sidecar is probably of an earlier state of the file. Nothing was changed. If the file is right, protect it with `as_it_is`, which begins a new sidecar. If the sidecar is right, `force` repairs the file all the same",
            name(&self.file.path().map(Into::into)),
            record.start,
            record.end
        )))
    }

    /// Whether checksums of the file's own format prove a record once it is repaired. If they prove none before, their records or
    /// they themselves are among what is damaged. So the file has to show damage of its own: otherwise it may have been written anew.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn is_proven_once_repaired(&self) -> Result<bool> {
        let open = |source: &Arc<dyn Source>| open(source.clone(), &self.options, Start::Beginning);
        let (mut walk, mut is_damaged) = (open(&self.file)?, false);
        while walk.step()? == Step::More {
            is_damaged |= walk.spans().iter().any(|span| span.cause.is_some());
        }
        if !is_damaged {
            return Ok(false);
        }
        let mut walk = open(&self.repaired)?;
        while walk.step()? == Step::More {
            if walk.checked() == Checked::Checksum && walk.spans().iter().any(is_sound) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
