//! The one place where files are opened: each walk and each look-up gets its layers here, in one order.

use std::path::Path;
use std::sync::Arc;

use super::confirmed::{ConfirmedLookup, Confirming};
use super::empty::EmptyWalk;
use super::filtered::Filtering;
use super::lookup::Guarded;
use super::pending::{self, Pending};
use super::{Eof, Format, Lookup, Options, Part, Start, Walk};
use crate::error::{Error, Result};
use crate::source::Source;

impl Format {
    /// Opens a walk of a file of this format, as [`open`](crate::format::open) does.
    pub(crate) fn open(
        &self,
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Box<dyn Walk>> {
        match start {
            Start::Growth(growth) => growth.walk(self, source, options),
            start => match pending::growing(self, &*source, options, &start)? {
                Some(growing) => {
                    let (open, own) = ((self.walk, self.unfinished), source.clone());
                    self.open_around(source, &growing, start, |walk, options| {
                        Pending::around(walk, open, own, options)
                    })
                }
                None => self.open_around(source, options, start, |walk, _| walk),
            },
        }
    }

    /// The same, of what `around` makes of the format's own walk with the options that it was opened with.
    pub(crate) fn open_around(
        &self,
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
        around: impl FnOnce(Box<dyn Walk>, &Options) -> Box<dyn Walk>,
    ) -> Result<Box<dyn Walk>> {
        let columns = self.columns(options.dialect);
        let rest = options.filter.rest(self, columns)?;
        if let Some(parity) = &options.parity {
            parity.check_source(&*source)?;
        }
        let start = match start {
            Start::Part(part) => {
                check_part(part, self, &*source, options)?;
                if part.is_whole() {
                    Start::Beginning
                } else {
                    start
                }
            }
            start => start,
        };
        if options.prune && options.filter.is_contradictory() {
            return Ok(Box::new(EmptyWalk::new(self, &*source)));
        }
        let with_values;
        let options = if !options.values && rest.needs_values(columns) {
            with_values = options.clone().values(true);
            &with_values
        } else {
            options
        };
        let prunes = options.prune && !options.filter.is_empty();
        let is_whole = !prunes && matches!(start, Start::Beginning);
        let walk = if prunes && matches!(start, Start::Beginning) {
            (self.lookup)(source.clone(), options)?.range(&options.filter)?
        } else {
            (self.walk)(source.clone(), options, start)?
        };
        let walk = Filtering::around(around(walk, options), rest);
        let walk = match &options.parity {
            Some(parity) => parity.clone().watch(walk, options, is_whole),
            None => walk,
        };
        Ok(if source.is_replaceable() {
            Confirming::around(walk, source)
        } else {
            walk
        })
    }

    /// Opens a look-up of a file of this format, as [`lookup`](crate::format::lookup) does.
    pub(crate) fn look_up(
        &'static self,
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Result<Box<dyn Lookup>> {
        options.filter.check(self, self.columns(options.dialect))?;
        if let Some(parity) = &options.parity {
            parity.check_source(&*source)?;
        }
        let own = (self.lookup)(source.clone(), options)?;
        let own = match &options.parity {
            Some(parity) => parity.clone().watch_lookup(own, options),
            None => own,
        };
        let lookup = if source.is_replaceable() {
            Box::new(ConfirmedLookup {
                lookup: own,
                source,
            })
        } else {
            own
        };
        Ok(Box::new(Guarded {
            format: self,
            identifier: self.identifying(options.dialect).collect(),
            options: options.clone(),
            lookup,
        }))
    }

    /// A walk that reads nothing.
    #[cfg(feature = "arrow")]
    pub(crate) fn empty_walk(&self, source: &dyn Source) -> Box<dyn Walk> {
        Box::new(EmptyWalk::new(self, source))
    }
}

/// Refuses a part of another file, as far as its length and format show.
fn check_part(part: &Part, format: &Format, source: &dyn Source, options: &Options) -> Result<()> {
    if *part.format != format.spec || part.size != source.len() {
        return Err(Error::Usage(format!(
            "{}: this is a part of another file, or the file has changed since it was split: expected a {} file \
                 of {} bytes, found a {} file of {} bytes. Split it again",
            crate::error::name(&source.path().map(Path::to_path_buf)),
            part.format.name,
            part.size,
            format.name,
            source.len()
        )));
    }
    if part.is_whole() {
        return Ok(());
    }
    if format.split.is_none() {
        return Err(Error::Usage(format!("{} files have no parts", format.name)));
    }
    if options.eof == Eof::Growing {
        return Err(Error::Usage(
            "a file that is still growing cannot be read in parts: read it whole".to_owned(),
        ));
    }
    Ok(())
}
