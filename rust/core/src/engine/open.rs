//! The one place where files are opened: each walk and each look-up gets its layers here, in one order. The innermost
//! one is of a file that is being appended to: what its writer has not finished yet at its end is no damage.

use std::borrow::Cow;
use std::path::Path;
use std::slice;
use std::sync::{Arc, OnceLock};

use super::{Format, Growth};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::{Kind, RecordRun, Span};
use crate::parity::ProtectedSource;
use crate::private::Sealed;
use crate::record::{Checked, Column, RecordId, Scalar};
use crate::source::{Source, data_end_after};
use crate::spec::filter::Tests;
use crate::spec::{Filter, Spec, Tail};
use crate::walk::layers::{EmptyWalk, Filtering, Layered, Outermost, WalkLayer, confirmed_damage};
use crate::walk::sidecar::{Comparison, SidecarWalk, judge_hits};
use crate::walk::{Begin, Carry, Eof, Hits, Lookup, Opening, Options, Part, Step, Walk};

/// Where a walk begins.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Start<'a> {
    /// At the file's beginning.
    #[default]
    Beginning,
    /// At this offset, at which a record must begin. Earlier records are unknown, so the first record is accepted
    /// whatever its order.
    Offset(u64),
    /// At the position of another walk.
    #[doc(hidden)] // public for the Python extension
    Carry(&'a Carry),
    /// At the beginning of this part. The walk ends at the part's end.
    #[doc(hidden)] // public for the Python extension, which divides files among Spark's tasks
    Part(&'a Part),
    /// After what was read of the file before: see [`Growth`].
    Growth(&'a Growth),
}

impl Format {
    /// Opens a walk of a file of this format, as [`open`](crate::format::open) does.
    pub(crate) fn open(
        &'static self,
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Box<dyn Walk>> {
        let begin = match start {
            Start::Growth(growth) => return growth.walk(self, source, options),
            Start::Beginning => Begin::Beginning,
            Start::Offset(offset) => Begin::Offset(offset),
            Start::Carry(carry) => Begin::Carry(carry),
            Start::Part(part) => {
                check_part(part, self, &*source, options)?;
                match part.is_whole() {
                    true => Begin::Beginning,
                    false => Begin::Part(part),
                }
            }
        };
        self.open_for(source, options, begin.into())
    }

    /// The same for a purpose.
    pub(crate) fn open_for(
        &'static self,
        source: Arc<dyn Source>,
        options: &Options,
        opening: Opening<'_>,
    ) -> Result<Box<dyn Walk>> {
        match growing(self, &*source, options, opening.begin)? {
            Some(growing) => {
                self.open_around(source.clone(), &growing, opening, |walk, options| {
                    Pending::around(walk, self, source, options)
                })
            }
            None => self.open_around(source, options, opening, |walk, _| walk),
        }
    }

    /// The same, of what `around` makes of the format's own walk with the options that it was opened with.
    pub(crate) fn open_around(
        &self,
        source: Arc<dyn Source>,
        options: &Options,
        opening: Opening<'_>,
        around: impl FnOnce(Box<dyn Walk>, &Options) -> Box<dyn Walk>,
    ) -> Result<Box<dyn Walk>> {
        let columns = self.columns(options.dialect);
        let rest = options.filter.rest(self, columns)?;
        if options.prunes() && options.filter.is_contradictory() {
            return Ok(Box::new(EmptyWalk::new(self, &*source)));
        }
        let options = match options.values || !rest.needs_values(columns) {
            true => Cow::Borrowed(options),
            false => Cow::Owned(options.clone().values(true)),
        };
        let options = &*options;
        let begins = matches!(opening.begin, Begin::Beginning);
        let protected = ProtectedSource::of(&*source);
        let comparison = protected.map(|own| Comparison::new(own, options, &opening));
        let walk = if options.prunes() && begins {
            (self.lookup)(source.clone(), options)?.range(&options.filter)?
        } else {
            (self.walk)(source.clone(), options, opening)?
        };
        Ok(layered(around(walk, options), rest, comparison, source))
    }

    /// Opens a look-up of a file of this format, as [`lookup`](crate::format::lookup) does.
    pub(crate) fn look_up(
        &'static self,
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Result<Box<dyn Lookup>> {
        options.filter.all(self, self.columns(options.dialect))?;
        Ok(Box::new(OpenLookup {
            format: self,
            identifier: self.identifying(options.dialect).collect(),
            lookup: (self.lookup)(source.clone(), options)?,
            checked: OnceLock::new(),
            options: options.clone(),
            source,
        }))
    }
}

/// What a caller gets of a format's walk: conditions that the format does not apply, then the sidecar, then what an object store
/// confirms, and the end after an error.
fn layered(
    walk: Box<dyn Walk>,
    rest: Tests,
    comparison: Option<Comparison>,
    source: Arc<dyn Source>,
) -> Box<dyn Walk> {
    let walk = Filtering::around(walk, rest);
    let walk = SidecarWalk::around(walk, comparison);
    Outermost::around(walk, source)
}

/// The look-up of any format. Identifiers and conditions that its records cannot have are refused. Walks and hits get the layers
/// that those of [`Format::open`] have.
struct OpenLookup {
    format: &'static Format,
    identifier: Vec<&'static Column>,
    lookup: Box<dyn Lookup>,
    /// How its records are checked, once that was asked.
    checked: OnceLock<Checked>,
    options: Options,
    source: Arc<dyn Source>,
}

impl OpenLookup {
    /// How the file's records are checked.
    fn checked(&self) -> Result<Checked> {
        if let Some(checked) = self.checked.get() {
            return Ok(*checked);
        }
        let begin = Begin::Beginning.into();
        let walk = (self.format.walk)(self.source.clone(), &self.options, begin)?;
        Ok(*self.checked.get_or_init(|| walk.checked()))
    }

    fn hits(&self, ids: &[RecordId]) -> Result<Hits> {
        let hits = self.lookup.get(ids)?;
        match ProtectedSource::of(&*self.source) {
            Some(protected) => judge_hits(protected, &self.options, hits, || self.checked()),
            None => Ok(hits),
        }
    }
}

impl Sealed for OpenLookup {}

impl Lookup for OpenLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        if let Some(id) = ids.iter().find(|id| !id.fits(&self.identifier)) {
            return Err(no_such_id(self.format, id));
        }
        let mut hits = confirmed_damage(self.hits(ids), &*self.source)?;
        if self.source.is_replaceable() && hits.places.contains(&None) {
            self.source.confirm()?;
        }
        hits.columns = Some(self.format.columns(self.options.dialect));
        Ok(hits)
    }

    fn prepare(&self) -> Result<()> {
        self.lookup.prepare()
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let columns = self.format.columns(self.options.dialect);
        let rest = filter.rest(self.format, columns)?;
        if rest.needs_values(columns) && !self.options.values {
            return Err(Error::Usage(
                "cannot filter by bodies or texts if bodies are not read: read with values"
                    .to_owned(),
            ));
        }
        let walk = confirmed_damage(self.lookup.range(filter), &*self.source)?;
        let protected = ProtectedSource::of(&*self.source);
        let comparison = protected.map(|own| Comparison::of_lookup(own, &self.options));
        Ok(layered(walk, rest, comparison, self.source.clone()))
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

/// The error for an identifier of columns that this format does not identify records by.
fn no_such_id(format: &Spec, id: &RecordId) -> Error {
    let names = format.identifier.join(", ");
    let shown: Vec<_> = id.values().iter().map(Scalar::to_string).collect();
    Error::Usage(format!(
        "{} records are found by {names}: expected values of these columns, found {}",
        format.name,
        shown.join(", ")
    ))
}

/// The options to walk a file with that a writer has open, if it is to be walked to its end; `None` where no writer is known to have it open.
pub(super) fn growing(
    format: &Format,
    source: &dyn Source,
    options: &Options,
    begin: Begin<'_>,
) -> Result<Option<Options>> {
    let is_part = matches!(begin, Begin::Part(_));
    let may_grow = options.eof == Eof::Final
        && source.by_sidecar().is_none()
        && format.tail != Tail::Complete
        && source.bound().is_none();
    if is_part || !may_grow || !source.is_written()? {
        return Ok(None);
    }
    Ok(Some(options.clone().eof(Eof::Growing)))
}

/// A walk of a file that its writer has open. Where it would wait for more, it settles what it has found so far, and covers the rest.
pub(super) struct Pending {
    walk: Box<dyn Walk>,
    format: &'static Format,
    source: Arc<dyn Source>,
    /// Those of a file that is complete.
    options: Options,
    /// Where the unfinished bytes begin, once that is known.
    end: Option<u64>,
    tail: Option<Span>,
}

impl Pending {
    /// Wraps a walk that was opened with options that are [`growing`].
    pub(super) fn around(
        walk: Box<dyn Walk>,
        format: &'static Format,
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Box<dyn Walk> {
        Box::new(Layered(Self {
            walk,
            format,
            source,
            options: options.clone().eof(Eof::Final),
            end: None,
            tail: None,
        }))
    }

    /// Goes on as in a file that is complete.
    fn reopen(&mut self, begin: Begin<'_>) -> Result<Step> {
        self.walk = (self.format.walk)(self.source.clone(), &self.options, begin.into())?;
        self.walk.step()
    }

    /// Whether the bytes that are not finished are one unit that is being written. Anything else is damage, whoever has the file open.
    fn is_unfinished(&self, tail: &Span) -> Result<bool> {
        match self.format.unfinished {
            Some(unfinished) => unfinished(&*self.source, &self.options, tail),
            None => Ok(false),
        }
    }

    /// The bytes from here to the end: space that was never written to, or what is not finished.
    fn rest(&self, start: u64) -> Result<Span> {
        let data_end = data_end_after(&*self.source, start, || self.options.poll())?;
        Ok(Span {
            start,
            end: self.source.len(),
            kind: match data_end == start {
                true => Kind::Unused,
                false => Kind::Pending,
            },
            cause: None,
        })
    }
}

impl WalkLayer for Pending {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        if self.end.is_none() {
            match self.walk.step()? {
                // Nothing was given so far, and more will not make the key the right one.
                Step::Wait if self.walk.suspects_key() => {
                    return self.reopen(Begin::Beginning);
                }
                Step::Wait => {
                    let tail = self.rest(self.walk.offset())?;
                    if tail.kind == Kind::Pending && !self.is_unfinished(&tail)? {
                        let carry = self
                            .walk
                            .carry()
                            .or_bug("a walk that waits to have a state")?;
                        return self.reopen(Begin::Carry(&carry));
                    }
                    self.end = Some(tail.start);
                }
                step => return Ok(step),
            }
            if self.walk.settle()? == Step::More {
                return Ok(Step::More);
            }
        }
        match self.end.filter(|end| *end < self.source.len()) {
            Some(end) if self.tail.is_none() => {
                self.walk.settle()?; // so that nothing is given a second time
                self.tail = Some(self.rest(end)?);
                Ok(Step::More)
            }
            _ => Ok(Step::Done),
        }
    }

    fn spans(&self) -> &[Span] {
        match &self.tail {
            Some(tail) => slice::from_ref(tail),
            None => self.walk.spans(),
        }
    }

    fn record_run(&self) -> Option<RecordRun> {
        match self.tail {
            Some(_) => None,
            None => self.walk.record_run(),
        }
    }
}
