//! What the writers of append-only formats do with a file before they add to it.

use super::{Driver, Options, Scan, Step, Walk, WriteOptions, sum_up};
use crate::error::{Error, Result};
use crate::ledger::{Kind, Span, Summary};
use crate::output::Appender;

/// How a file is read that is written to with these options.
pub(crate) fn reading(options: &WriteOptions) -> Options {
    Options {
        keys: vec![options.key],
        dialect: options.dialect,
        strict: false,
        values: false,
        interrupt: options.interrupt.clone(),
        ..Options::default()
    }
}

/// Walks what is in the file, and sums it up; `look` sees each step. Gives the last range that is not unused.
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

/// The error of damage that nothing can be appended behind: that of a walk which reads strictly from where it begins, so that it
/// has all the numbers.
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
