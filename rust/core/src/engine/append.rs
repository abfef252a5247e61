//! Opens a file for appending: shared by the writers of append-only formats.

use super::{Driver, Options, Scan, Step, Walk, WriteOptions, sum_up};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::{Kind, Span, Summary};
use crate::output::Appender;

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

/// Whether a walk emits any record.
///
/// For a walk that begins within a torn tail: whether the tail contains a sound record. The torn record's length may
/// reach to the end of the tail; then the search for later records is skipped, and clearing the tail would destroy the
/// sound one.
pub(crate) fn has_records<S: Scan>(mut walk: Driver<S>) -> Result<bool> {
    while walk.step()? == Step::More {
        if !walk.rows().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
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
