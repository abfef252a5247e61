//! What a file grew by since it was read.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::Format;
use super::position::{CarryHead, Extent, FileEnd, Identity, Last, Numbered, Position};
use crate::error::Result;
use crate::ledger::Span;
use crate::record::Value;
use crate::source::{Source, data_end_after, uncompared};
use crate::spec::Tail;
use crate::sync::Unpoisoned as _;
use crate::walk::layers::{EmptyWalk, Layered, WalkLayer};
use crate::walk::{Begin, Carry, Eof, Opening, Options, Purpose, Step, UnprovenPolicy, Walk};

/// A larger state of a walk is not stored: the file is read again up to where it goes on.
pub(crate) const MAX_CARRY_BYTES: usize = 48 << 10;
/// How much is read at once to find the first unit.
const FIRST_WINDOW_BYTES: usize = 64 << 10;

/// At most so many bytes of several records are compared later, so that it is about the last one of them and its checksum.
const LAST_OF_RUN_BYTES: u64 = 64;

/// Reads what a file grew by since it was read up to a [`Position`], up to the length of its source. Walks with
/// [`Start::Growth`](super::Start::Growth) give it. After such a walk ended, [`position`](Self::position) says where to go on.
///
/// The records, the damage and the bytes of one growth after the other add up to those of one walk of the whole file:
/// - Of an oplog, which has no checksums, only what is before the first damage is read, unless the file is final. What follows proves
///   itself by the end of the file.
/// - An unfinished unit at the end is pending, and not damage, unless [`since`](Self::since) was told that the file is final.
/// - Damage is settled at the end of each growth, so touching ranges of the same kind and cause may come in two.
/// - The cause of damage is what was found when it was read. Lengths that led beyond the end of the file may lead to a place within it
///   later.
///
/// Read [by a parity sidecar](crate::parity::ProtectedSource), positions are those of the file as it was covered: they do not depend on
/// whether it is damaged, restored by then, or read without one.
///
/// No more is read than the new bytes, the first unit and the last one that was read, of at most 64 KiB and 4 KiB. There are two exceptions.
/// Zeros at the end of a preallocated file are looked at each time. An oplog of the dialect `draft-1.1` with many keys is
/// read from the beginning each time, because later messages refer to them.
///
/// ```
/// use seglake::format::{Growth, IfExists, Start, Step, WriteOptions, active, create, open};
/// use seglake::{Options, Reader, Value};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.active");
///
/// let (mut position, mut read) = (None, 0);
/// for _ in 0..2 {
///     let mut writer = create(&active::FORMAT, &path, &WriteOptions::default().if_exists(IfExists::Append))?;
///     writer.write(&[Value::Null, Value::Null, "order.paid".into(), b"{}"[..].into()])?;
///     writer.close()?;
///
///     // Each record once, however often the file is read.
///     let source = Reader::open(&path, Options::default())?.source();
///     let growth = Growth::since(source, &Options::default(), position.as_ref())?;
///     let mut walk = open(growth.source(), growth.options(), Start::Growth(&growth))?;
///     while walk.step()? == Step::More {
///         read += walk.rows().len();
///     }
///     position = growth.position(); // as JSON: to_json, from_json
/// }
/// assert_eq!(read, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Growth {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: Options,
    pub(crate) format: &'static Format,
    pub(crate) since: Option<Position>,
    pub(crate) plan: Plan,
    pub(crate) is_final: bool,
    /// Whether only its end is looked for.
    pub(crate) only_end: bool,
    /// Of a sealed segment only records up to this one are read.
    pub(crate) up_to: Option<[u8; 16]>,
    pub(crate) outcome: Arc<Mutex<Option<Outcome>>>,
}

/// How the rest of a file is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// All of it.
    All,
    /// From where another walk stopped.
    Carry(Carry),
    /// From this offset on.
    Offset(u64),
    /// The records after this one.
    After([u8; 16]),
    /// It is complete, and nothing is left.
    Nothing,
}

/// Where a walk ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    position: Position,
    pending_bytes: u64,
}

impl Growth {
    /// The bytes that are read, up to the end.
    #[must_use]
    pub fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    /// The format of the file by now.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn format(&self) -> &'static Format {
        self.format
    }

    /// The options for reading it, with the format.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Where to go on. `None` until a walk has ended without an error.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.outcome().map(|outcome| outcome.position)
    }

    /// The position after all of a complete file. Only the first unit and the end are read for it. A walk of the whole file would give
    /// the same position.
    ///
    /// `None` of a file that may grow, whose end is that of its last sound unit; of a file that was read before; and of one
    /// without a sound unit, which may be one with another key.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), also if the file was replaced meanwhile.
    #[doc(hidden)] // public for the Python extension
    pub fn position_after_all(&self) -> Result<Option<Position>> {
        let is_whole = self.plan == Plan::All && self.up_to.is_none();
        if self.format.tail != Tail::Complete || !is_whole {
            return Ok(None);
        }
        let position = self.position_at_end()?;
        self.source.confirm()?;
        Ok(position.identity.is_some().then_some(position))
    }

    /// How many bytes of an unfinished unit are at the end, of those that were listed. `None` until a walk has ended.
    #[must_use]
    #[doc(hidden)]
    pub fn pending_bytes(&self) -> Option<u64> {
        self.outcome().map(|outcome| outcome.pending_bytes)
    }

    fn outcome(&self) -> Option<Outcome> {
        let outcome = self.outcome.lock();
        outcome.unpoisoned().clone()
    }

    /// Opens a walk of what the file grew by.
    pub(crate) fn walk(
        &self,
        format: &Format,
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Result<Box<dyn Walk>> {
        let mut options = options.clone().prune(false);
        let mut opening = Opening {
            unproven: self.unproven(),
            ..Opening::default()
        };
        if self.grows() {
            options = options.eof(Eof::Growing);
            opening.purpose = self.purpose(&options, &*source);
        }
        opening.begin = match &self.plan {
            Plan::All => Begin::Beginning,
            Plan::Carry(carry) => Begin::Carry(carry),
            Plan::Offset(offset) => Begin::Offset(*offset),
            Plan::After(uuid) => {
                options.filter = options.filter.above("uuid", *uuid);
                options.prune = true;
                Begin::Beginning
            }
            Plan::Nothing => {
                let walk = Box::new(EmptyWalk::new(format, &*source));
                return Ok(self.track(walk, &options));
            }
        };
        format.open_around(source, &options, opening, |walk, options| {
            self.track(walk, options)
        })
    }

    /// Whether the end of the source is one after which more may come. What a log says of how far a segment was synced is final.
    fn grows(&self) -> bool {
        self.format.tail != Tail::Complete && self.source.bound().is_none()
    }

    fn unproven(&self) -> UnprovenPolicy {
        match self.grows() {
            true => UnprovenPolicy::SoundPrefix,
            false => UnprovenPolicy::OwnSidecar,
        }
    }

    /// What a walk is for that has these options.
    ///
    /// Bytes that are left out are not compared with a parity sidecar. Of an object of a store, one request for a range takes longer than
    /// to read on.
    fn purpose(&self, options: &Options, source: &dyn Source) -> Purpose {
        let leaves_out = self.only_end
            && !options.strict
            && options.filter.is_empty()
            && source.by_sidecar().is_none()
            && !source.is_replaceable();
        match leaves_out {
            true => Purpose::End,
            false => Purpose::All,
        }
    }

    fn track(&self, walk: Box<dyn Walk>, options: &Options) -> Box<dyn Walk> {
        Box::new(Layered(Tracking {
            walk,
            growth: self.clone(),
            options: options.clone(),
            last: None,
            outcome: None,
            is_at_end: false,
        }))
    }

    /// Where a walk of a growing file goes on, from this state.
    fn position_after(
        &self,
        offset: u64,
        carry: Option<Carry>,
        last: Option<(u64, u64)>,
    ) -> Result<Position> {
        let source = &*self.source;
        let before = self.since.as_ref();
        let (first, identity) = self.identity(last.is_some())?;
        let last = match last {
            Some((start, end)) => Last::of(source, start, end)?,
            None => before.and_then(|before| before.last),
        };
        let head = carry.as_ref().map(CarryHead::of).transpose()?;
        Ok(Position {
            format: self.format,
            identity,
            first,
            offset,
            last,
            end: None,
            uuid: head.and_then(|head| head.state.last),
            carry: carry
                .and_then(|carry| carry.compared())
                .filter(|carry| carry.0.len() <= MAX_CARRY_BYTES),
        })
    }

    /// The position at the end of a complete file.
    fn position_at_end(&self) -> Result<Position> {
        let source = &*self.source;
        if let (Plan::Nothing, Some(before)) = (&self.plan, &self.since) {
            return Ok(before.clone());
        }
        let (first, identity) = self.identity(true)?;
        let (offset, last, end) = match self.up_to {
            Some(_) => (0, None, None),
            None => {
                let end = FileEnd::find(self.format, &self.source, &self.options, None)?;
                (source.len(), Last::of(source, 0, source.len())?, end)
            }
        };
        Ok(Position {
            format: self.format,
            identity,
            first,
            offset,
            last,
            end: end.map(|(end, _)| end),
            uuid: self.up_to,
            carry: None,
        })
    }

    /// The identity that is known, or that of the first unit if there may be one.
    fn identity(&self, may_be: bool) -> Result<(Option<Extent>, Option<Identity>)> {
        if let Some(before) = &self.since
            && *before.format == self.format.spec
            && before.identity.is_some()
        {
            return Ok((before.first, before.identity.clone()));
        }
        let found = match may_be {
            true => first_unit(self.format, &self.source, &self.options)?,
            false => None,
        };
        Ok(found.unzip())
    }
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growth")
            .field("path", &self.source.path())
            .field("format", &self.format)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl FileEnd {
    /// The record of a file with this number, or else the last one, and what else is known of it. `None` if its format has
    /// none, or if it is not certain that a walk returns it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn find(
        format: &Format,
        source: &Arc<dyn Source>,
        options: &Options,
        number: Option<u64>,
    ) -> Result<Option<(Self, Numbered)>> {
        let Some(find) = format.numbered else {
            return Ok(None);
        };
        let options = options.clone().strict(false).values(false);
        let Some(found) = find(source, &options, number)? else {
            return Ok(None);
        };
        let place = found.place.of_unit(format);
        let record = Identity::at(&**source, format, place, Some(found.uuid))?;
        Ok(record.map(|record| {
            let number = found.number;
            (Self { number, record }, found)
        }))
    }
}

/// Finds the first sound unit of a file, and the identity by it.
pub(crate) fn first_unit(
    format: &'static Format,
    source: &Arc<dyn Source>,
    options: &Options,
) -> Result<Option<(Extent, Identity)>> {
    let window_bytes = options.window_bytes.min(FIRST_WINDOW_BYTES);
    let options = options
        .for_ledger()
        .prune(false)
        .eof(Eof::Growing)
        .window_bytes(window_bytes);
    // A unit that a parity sidecar restores is one of the source.
    let bytes = uncompared(source);
    let mut walk = format.open_for(bytes, &options, Begin::Beginning.into())?;
    while walk.step()? == Step::More {
        let is_sound = |span: &&Span| span.kind.is_unit() && !span.is_damage();
        let Some(unit) = walk.spans().iter().find(is_sound) else {
            continue;
        };
        let rows = walk.rows();
        let uuid = match (!rows.is_empty()).then(|| rows.field(0, 0)) {
            Some(Value::Uuid(uuid)) if rows.position(0) == unit.start => Some(uuid),
            _ => None,
        };
        let (at, nbytes) = (unit.start, unit.len());
        let first = Extent { at, nbytes }.of_unit(format);
        let identity = Identity::at(&**source, format, first, uuid)?;
        return Ok(identity.map(|identity| (first, identity)));
    }
    Ok(None)
}

/// Finds out where a walk ends.
struct Tracking {
    walk: Box<dyn Walk>,
    growth: Growth,
    options: Options,
    /// The start and end of the last unit, or of several.
    last: Option<(u64, u64)>,
    /// What is told once the walk has ended. Until then an end that is final is read, or what was pending.
    outcome: Option<Outcome>,
    is_at_end: bool,
}

impl Tracking {
    /// The walk waits, or is at its end.
    fn end(&mut self, step: Step) -> Result<Step> {
        let growth = &self.growth;
        let offset = self.walk.offset();
        let Some(carry) = self.walk.carry() else {
            self.outcome = Some(Outcome {
                position: growth.position_at_end()?,
                pending_bytes: 0,
            });
            return self.done();
        };
        let waits = step == Step::Wait;
        if waits && self.options.strict && self.walk.suspects_key() {
            // Waiting would not help, so it is raised.
            let mut walk = self.finishing(&carry)?;
            while walk.step()? == Step::More {}
        }
        let settled = self.walk.settle()?;
        let position = self
            .growth
            .position_after(offset, self.walk.carry(), self.last)?;
        let is_final = waits && self.growth.is_final;
        self.outcome = Some(Outcome {
            position,
            pending_bytes: match waits && !is_final {
                true => self.pending(offset)?,
                false => 0,
            },
        });
        if is_final {
            self.walk = self.finishing(&carry)?;
            return self.step();
        }
        self.is_at_end = true;
        match settled {
            Step::More => Ok(Step::More),
            _ => self.done(),
        }
    }

    /// The walk has ended: tells where.
    fn done(&mut self) -> Result<Step> {
        self.is_at_end = true;
        if let Some(mut outcome) = self.outcome.take() {
            let position = &mut outcome.position;
            if position.identity.is_none() {
                // The end of an oplog proves messages after its first damage.
                (position.first, position.identity) = self.growth.identity(self.last.is_some())?;
            }
            let known = self.growth.outcome.lock();
            *known.unpoisoned() = Some(outcome);
        }
        Ok(Step::Done)
    }

    /// Goes on as in a file that does not grow.
    fn finishing(&self, carry: &Carry) -> Result<Box<dyn Walk>> {
        let options = self.options.clone().eof(Eof::Final);
        let growth = &self.growth;
        let opening = Opening {
            begin: Begin::Carry(carry),
            unproven: growth.unproven(),
            ..Opening::default()
        };
        (growth.format.walk)(growth.source.clone(), &options, opening)
    }

    fn pending(&self, offset: u64) -> Result<u64> {
        let source = &*self.growth.source;
        let end = match self.growth.format.tail {
            Tail::Zeros => data_end_after(source, offset, || self.options.poll())?,
            Tail::Bytes | Tail::Complete => source.len(),
        };
        Ok(end.saturating_sub(offset))
    }

    fn note_last(&mut self) {
        let last = match self.walk.record_run() {
            Some(run) => {
                let start = run.end.saturating_sub(LAST_OF_RUN_BYTES);
                Some((start.max(run.start), run.end))
            }
            None => {
                let mut spans = self.walk.spans().iter().rev();
                let unit = spans.find(|span| span.kind.is_unit());
                unit.map(|unit| (unit.start, unit.end))
            }
        };
        self.last = last.or(self.last);
    }
}

impl WalkLayer for Tracking {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        if self.is_at_end {
            return self.done();
        }
        match self.walk.step()? {
            Step::More => {
                self.note_last();
                Ok(Step::More)
            }
            step if self.outcome.is_none() => self.end(step),
            _ => self.done(),
        }
    }
}
