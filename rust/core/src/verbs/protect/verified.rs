//! Verifying a file by its own format before it is covered, and how far it is covered (rule 14).

use std::sync::Arc;

use super::Protection;
use crate::engine::{Eof, Filter, Format, Options, Start, Step};
use crate::error::{Error, Result};
use crate::format::{open, resolve};
use crate::ledger::{Kind, Span};
use crate::source::{FileSource, Source};
use crate::verbs::Report;
use crate::verbs::verify::first_damage;

/// A file that may be covered.
pub(super) struct Verified {
    /// The bytes to cover, from the beginning of the file.
    pub(super) end: u64,
    /// The report by its format, if it has one.
    pub(super) report: Option<Report>,
}

impl Verified {
    /// Verifies a file.
    ///
    /// # Errors
    /// [`Error::Damage`] if it is damaged before where it would be covered to, unless it is protected as it is.
    /// [`Error::Format`] if its format is unknown, with the same exception.
    pub(super) fn verify(
        file: &FileSource,
        options: &Options,
        protection: &Protection,
        mut progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<Self> {
        let whole = Self {
            end: file.len(),
            report: None,
        };
        if protection.raw {
            return Ok(whole);
        }
        let source: Arc<dyn Source> = Arc::new(file.again()?.up_to(file.len()));
        let Some(format) = format_of(&*source, options, protection)? else {
            return Ok(whole);
        };
        let options = options
            .clone()
            .format(format)
            .strict(false)
            .values(false)
            .filter(Filter::default())
            .eof(Eof::Final);
        let mut walk = open(source.clone(), &options, Start::Beginning)?;
        let (mut report, mut tail) = (Report::of(format, file), Tail::default());
        while walk.step()? == Step::More {
            report.add(&*walk);
            match walk.record_run() {
                Some(_) => tail = Tail::default(),
                None => tail.see(walk.spans()),
            }
            progress(walk.offset())?;
        }
        report.note(&*walk);
        let end = match tail.start {
            Some(start) if format.is_appended_to() => start,
            _ => file.len(),
        };
        let is_damaged = report.damage.first().is_some_and(|span| span.start < end);
        if (is_damaged || report.wrong_key()) && !protection.as_it_is {
            return Err(first_damage(source, &options));
        }
        Ok(Self {
            end,
            report: Some(report),
        })
    }
}

/// The format of a file. `None` if it is unknown and that does not matter.
fn format_of(
    source: &dyn Source,
    options: &Options,
    protection: &Protection,
) -> Result<Option<&'static Format>> {
    match resolve(source, options) {
        Err(Error::Format { .. }) if protection.as_it_is && options.format.is_none() => Ok(None),
        Err(Error::Format { path, message, .. }) => Err(Error::Format {
            path,
            message,
            next: Some(
                "a file of any other kind is protected without being verified first (raw, --format raw)",
            ),
        }),
        format => format.map(Some),
    }
}

/// Where the last ranges begin that are not to be covered: what is appended next replaces them.
#[derive(Default)]
struct Tail {
    start: Option<u64>,
}

impl Tail {
    fn see(&mut self, spans: &[Span]) {
        let is_tail = |span: &&Span| matches!(span.kind, Kind::Unused | Kind::TornTail);
        let own = spans.iter().rev().take_while(is_tail);
        let (count, first) = own.fold((0, None), |(count, _), span| (count + 1, Some(span.start)));
        if count < spans.len() {
            self.start = None;
        }
        self.start = self.start.or(first);
    }
}
