//! Opens a file for appending: shared by the writers of append-only formats.

use std::ops::Range;

use super::WriteOptions;
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind, Span, Summary};
use crate::output::Appender;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::{Driver, Options, Scan, Step, Walk, sum_up};

/// The options to scan a file with before appending to it: lenient, and without values.
pub(crate) fn reading(options: &WriteOptions) -> Options {
    Options::default()
        .on_disk(options.on())
        .keys(vec![options.key.unwrap_or(Key::DEFAULT)])
        .dialect(options.dialect.unwrap_or_default())
        .strict(false)
        .values(false)
        .interrupt(options.interrupt.clone())
}

/// Scans the file to its end and adds what it has to `found`. `look` is called after each step.
///
/// Returns the last range that is not unused space.
pub(crate) fn survey<S: Scan>(
    walk: &mut Driver<S>,
    found: &mut Summary,
    mut look: impl FnMut(&Driver<S>) -> Result<()>,
) -> Result<Option<Span>> {
    let mut end = None;
    while walk.step()? == Step::More {
        sum_up(walk, found);
        let mut used = walk.spans().iter().rev();
        end = used.find(|span| span.kind != Kind::Unused).copied().or(end);
        look(walk)?;
    }
    Ok(end)
}

/// What a search of a torn tail for sound records found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// None: all of the tail was searched.
    Nothing,
    Records,
    /// Nobody knows: the search ended at its budget.
    Unknown,
}

/// Looks for a sound record with a walk that begins within a torn tail. Only [`Within::Nothing`] allows clearing the tail.
///
/// The torn record's length may reach to the end of the tail; then the search for later records is skipped, and clearing the tail
/// would destroy a sound one.
pub(crate) fn search_within<S: Scan>(mut walk: Driver<S>) -> Result<Within> {
    let mut found = Within::Nothing;
    while walk.step()? == Step::More {
        if !walk.rows().is_empty() {
            return Ok(Within::Records);
        }
        let mut causes = walk.spans().iter().map(|span| span.cause);
        if causes.any(|cause| cause == Some(Cause::SearchLimit)) {
            found = Within::Unknown;
        }
    }
    Ok(found)
}

/// The first bytes of a torn tail, at most as many.
pub(crate) fn beginning(source: &dyn Source, tail: &Range<u64>, most: usize) -> Result<Vec<u8>> {
    let len = tail.end.saturating_sub(tail.start);
    let mut bytes = vec![0; saturating_usize(len).min(most)];
    source.read_exact_at(tail.start, &mut bytes)?;
    Ok(bytes)
}

/// The error for damage that prevents appending. `strict` scans from the damage on and raises it with all its fields.
pub(crate) fn refusal<S: Scan>(out: &Appender, strict: Result<Driver<S>>) -> Error {
    let walked = strict.and_then(|mut walk| {
        while walk.step()? == Step::More {}
        Ok(())
    });
    match walked {
        Err(error) => error,
        Ok(()) => out.changed(),
    }
}
