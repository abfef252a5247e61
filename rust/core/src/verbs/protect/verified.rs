//! Verifying a file by its own format before it is covered, and how far it is covered (rule 14).

use std::sync::Arc;

use super::ProtectOptions;
use crate::bug::OrBug;
use crate::engine::position::CarryHead;
use crate::engine::{Format, Start};
use crate::error::{Error, Result};
use crate::format::{open, resolve};
use crate::ledger::{Kind, Span};
use crate::parity::Coverage;
use crate::record::Checked;
use crate::source::{CappedSource, Source};
use crate::verbs::Report;
use crate::verbs::verify::first_damage;
use crate::walk::{Begin, Carry, Eof, OffsetNumbering, Opening, Options, Step};

/// How far before the end of what is covered a walk looks for a record first, in bytes.
const NEAR_BYTES: u64 = 64 << 10;
/// How much further it looks each time it found none.
const FURTHER: u64 = 8;

/// A file that may be covered.
pub(super) struct VerifiedFile {
    /// The bytes to cover, from the beginning of the file.
    pub(super) end: u64,
    /// Where what was verified begins.
    pub(super) start: u64,
    /// The report by its format on that, if it has one.
    pub(super) report: Option<Report>,
}

impl VerifiedFile {
    /// Verifies a file; of one that is covered already, what came after that.
    ///
    /// # Errors
    /// [`Error::Damage`] if it is damaged before where it would be covered to, unless it is protected as it is.
    /// [`Error::Format`] if its format is unknown, with the same exception.
    pub(super) fn verify(
        file: &Arc<dyn Source>,
        options: &Options,
        protection: &ProtectOptions,
        coverage: Option<&Coverage>,
        mut progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<Self> {
        let whole = Self {
            end: file.len(),
            start: 0,
            report: None,
        };
        if protection.raw {
            return Ok(whole);
        }
        let Some(format) = format_of(&**file, options, protection)? else {
            return Ok(whole);
        };
        let job = Walking {
            source: file.clone(),
            format,
            options: options.for_ledger().format(format),
        };
        // A second pass begins again at 0, and progress does not go back.
        let mut most = 0;
        let mut progress = |done: u64| {
            most = done.max(most);
            progress(most)
        };
        if let Some(covered) = coverage.and_then(Coverage::whole)
            && let Some(verified) = job.appended(covered, &mut progress)?
        {
            return Ok(verified);
        }
        let (verified, is_damaged) = job.walk(Begin::Beginning, &mut progress)?;
        if is_damaged && !protection.as_it_is {
            return Err(first_damage(job.source, &job.options.eof(Eof::Final)));
        }
        Ok(verified)
    }
}

/// The file that is verified.
struct Walking {
    source: Arc<dyn Source>,
    format: &'static Format,
    options: Options,
}

impl Walking {
    /// Verifies what came after the first `covered` bytes. What is covered is not verified again: nothing of it is encoded anew unless
    /// its hashes are right. `None` if anything of it is in doubt: then the whole file tells what is wrong.
    fn appended(
        &self,
        covered: u64,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Option<VerifiedFile>> {
        if covered == self.source.len() {
            return Ok(Some(VerifiedFile {
                end: covered,
                start: covered,
                report: Some(Report::of(self.format, &*self.source)),
            }));
        }
        // What was covered is gone from a file that is shorter.
        if covered > self.source.len() {
            return Ok(None);
        }
        let (verified, is_damaged) = if self.is_independent() {
            self.walk(Begin::Offset(covered), progress)?
        } else if let Some(carry) = self.carry_at(covered)? {
            self.walk(Begin::Carry(&carry), progress)?
        } else {
            return Ok(None);
        };
        let start = covered;
        Ok((!is_damaged).then_some(VerifiedFile { start, ..verified }))
    }

    /// Whether each record of a format without checksums is judged without those before it. Then a walk begins where the file was
    /// covered to, which is where a record ended. Without checksums no record could be searched for.
    fn is_independent(&self) -> bool {
        self.format.is_appended_to()
            && self.format.checked != Checked::Checksum
            && !self.options.dialect.refers_back()
    }

    /// The state of a walk through the whole file after its first `covered` bytes: what a record says of the next is known from the
    /// last one. `None` if no sound record ends there, or if records have no checksums by which one is found.
    fn carry_at(&self, covered: u64) -> Result<Option<Carry>> {
        if !self.format.is_appended_to() || self.format.checked != Checked::Checksum {
            return Ok(None);
        }
        let mut back = NEAR_BYTES;
        // Looking further takes no more than verifying the whole file does.
        while back < covered {
            let start = (covered - back) / NEAR_BYTES * NEAR_BYTES;
            if let Some(carry) = self.carry_from(start, covered)? {
                return Ok(Some(carry));
            }
            back = back.saturating_mul(FURTHER);
        }
        Ok(None)
    }

    /// The same of a walk that begins at `start`, within a record. The walk finds the next one as it does after damage.
    fn carry_from(&self, start: u64, covered: u64) -> Result<Option<Carry>> {
        let options = self.options.clone().eof(Eof::Growing);
        let source = Arc::new(CappedSource::new(self.source.clone(), covered));
        let mut walk = open(source, &options, Start::Offset(start))?;
        let mut has_unit = false;
        loop {
            match walk.step()? {
                Step::More if walk.record_run().is_some() => has_unit = true,
                Step::More => {
                    for span in walk.spans() {
                        if span.is_damage() && has_unit {
                            return Ok(None);
                        }
                        has_unit |= span.kind.is_unit();
                    }
                }
                Step::Wait | Step::Done => break,
            }
        }
        let carry = walk.carry().or_bug("a walk that waits to have a state")?;
        let head = CarryHead::of(&carry)?;
        let is_there =
            has_unit && head.at == covered && !head.pending.is_some_and(|span| span.is_damage());
        Ok(is_there.then_some(carry))
    }

    /// Verifies the file from there on. Gives also whether it is damaged before where it would be covered to.
    fn walk(
        &self,
        begin: Begin<'_>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<(VerifiedFile, bool)> {
        let options = self.options.clone().eof(Eof::Final);
        let opening = Opening {
            begin,
            numbering: OffsetNumbering::Any,
            ..Opening::default()
        };
        let mut walk = self
            .format
            .open_for(self.source.clone(), &options, opening)?;
        let (mut report, mut tail) = (
            Report::of(self.format, &*self.source),
            UncoveredTail::default(),
        );
        while walk.step()? == Step::More {
            report.add(&*walk);
            match walk.record_run() {
                Some(_) => tail = UncoveredTail::default(),
                None => tail.see(walk.spans()),
            }
            progress(walk.offset())?;
        }
        report.note(&*walk);
        let end = match tail.start {
            Some(start) if self.format.is_appended_to() => start,
            _ => self.source.len(),
        };
        let found = &report.summary;
        let is_damaged = found.damage.first().is_some_and(|span| span.start < end);
        let is_damaged = is_damaged || found.wrong_key();
        let verified = VerifiedFile {
            end,
            start: 0,
            report: Some(report),
        };
        Ok((verified, is_damaged))
    }
}

/// The format of a file. `None` if it is unknown and that does not matter.
fn format_of(
    source: &dyn Source,
    options: &Options,
    protection: &ProtectOptions,
) -> Result<Option<&'static Format>> {
    match resolve(source, options) {
        Err(Error::Format { .. }) if protection.as_it_is && options.format.is_none() => Ok(None),
        Err(Error::Format {
            path,
            message,
            next: Some(_),
        }) => Err(Error::Format {
            path,
            message,
            next: Some(
                "with the format `raw` a file of any kind is protected, without being verified first",
            ),
        }),
        format => format.map(Some),
    }
}

/// Where the last ranges begin that are not to be covered: what is appended next replaces them.
#[derive(Default)]
struct UncoveredTail {
    start: Option<u64>,
}

impl UncoveredTail {
    fn see(&mut self, spans: &[Span]) {
        let is_tail =
            |span: &&Span| matches!(span.kind, Kind::Unused | Kind::TornTail | Kind::Pending);
        let tail = spans.iter().rev().take_while(is_tail);
        let (count, first) = tail.fold((0, None), |(count, _), span| (count + 1, Some(span.start)));
        if count < spans.len() {
            self.start = None;
        }
        self.start = self.start.or(first);
    }
}
