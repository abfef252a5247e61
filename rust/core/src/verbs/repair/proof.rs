//! What a file's own format proves, and whether the file was changed on purpose.

use std::sync::Arc;

use crate::engine::{Format, Start};
use crate::error::{Error, Result, name};
use crate::format::{open, resolve};
use crate::parity::{FileKind, Report};
use crate::record::Checked;
use crate::source::{FileSource, Source};
use crate::verbs::proof::{is_sound, proof};
use crate::walk::{Eof, Options, Step};

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
        let changed: Vec<_> = repaired.map(|own| own.start..own.end).collect();
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
