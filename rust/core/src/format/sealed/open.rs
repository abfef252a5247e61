//! Opens a segment: chooses the file's key, and where a walk begins: at the first entry, where another walk
//! stopped, or at a message in the middle.

use std::sync::Arc;

use super::check::Checker;
use super::front::{Front, Segment};
use super::index::{POLL_EVERY, TERMINATOR, count_entries, read_array};
use super::judge::Prior;
use super::layout::{ENTRY_BYTES, Message, UUID_BYTES};
use super::reader::Reader;
use super::state::{EntryRange, State};
use super::walk::{SealedScan, SealedWalk};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::Cause;
use crate::record::Checked;
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Begin, Budget, Options, Step, Walk, cannot_resume};

/// Begins a walk of a segment.
///
/// # Errors
/// [`Error::Usage`] if the start is not valid for this file.
pub(super) fn walk(
    source: Arc<dyn Source>,
    options: &Options,
    start: Begin<'_>,
) -> Result<SealedWalk> {
    let part = match start {
        Begin::Part(part) => Some(part.plan()?),
        _ => None,
    };
    let segment = Segment::open_in(source, options, part.as_ref())?;
    let mut scan = SealedScan::new(&segment, segment.state(start)?);
    scan.keep_to_part()?;
    Ok(scan.into_walk())
}

/// Reads the front of a file, and chooses one of the keys: the first whose key check is in the file, else the
/// first under which the index hash matches or any message is verified.
pub(super) fn front(
    source: &Arc<dyn Source>,
    options: &Options,
    part: Option<&EntryRange>,
) -> Result<Front> {
    let Some((first, others)) = options.keys.split_first() else {
        return Err(Error::Usage(
            "no key was given: give at least one to verify records".to_owned(),
        ));
    };
    let under = |key| Segment::under(source.clone(), options, key, part);
    let front = under(first)?.front;
    if others.is_empty() || front.is_key_certain() {
        return Ok(front);
    }
    for key in others {
        let other = under(key)?.front;
        if other.is_key_certain() {
            return Ok(other);
        }
    }
    // The key check is damaged, no key matches, or there is no trailer, in which case the key does not matter.
    for key in &options.keys {
        let own = under(key)?;
        // Only a checksum can prove a trailer without a key check.
        let is_proven = own.front.trailer.is_some_and(|own| own.key_check_is_cut());
        if is_proven || own.is_index_hash_right()? {
            return Ok(own.front);
        }
    }
    for key in &options.keys {
        let own = under(key)?;
        if own.front.trailer.is_some() && own.walk_to(Filter::default(), |_| true)?.is_some() {
            return Ok(own.front);
        }
    }
    Ok(front)
}

impl Segment {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Self::open_in(source, options, None)
    }

    /// The same, to read a part of it.
    fn open_in(
        source: Arc<dyn Source>,
        options: &Options,
        part: Option<&EntryRange>,
    ) -> Result<Self> {
        Ok(Self {
            front: front(&source, options, part)?,
            options: options.clone(),
            source,
        })
    }

    /// Reads the front of a file under this key.
    fn under(
        source: Arc<dyn Source>,
        options: &Options,
        key: &Key,
        part: Option<&EntryRange>,
    ) -> Result<Self> {
        let len = source.len();
        let front = Front {
            len,
            entries: 0,
            data_start: len,
            data_end: len,
            key: *key,
            terminator_is_zero: true,
            trailer: None,
            searched: Budget::default(),
            unreadable: None,
        };
        let mut own = Self {
            source,
            options: options.clone(),
            front,
        };
        let (source, front) = (&*own.source, &mut own.front);
        if len < ENTRY_BYTES as u64 {
            front.unreadable = Some(Cause::TruncatedHeader);
            return Ok(own);
        }
        let Some(entries) = count_entries(source, options)? else {
            front.unreadable = Some(Cause::BadTerminator);
            return Ok(own);
        };
        front.entries = entries;
        let terminator = front.entry_at(entries);
        front.data_start = terminator + ENTRY_BYTES as u64;
        front.terminator_is_zero = read_array(source, terminator)? == TERMINATOR;
        match part {
            Some(part) => own.take_trailer(part)?,
            None => own.locate_trailer()?,
        }
        Ok(own)
    }

    /// The first message for which `is_sought` is true, found by a walk that continues after damage.
    pub(super) fn walk_to(
        &self,
        filter: Filter,
        mut is_sought: impl FnMut(&Message) -> bool,
    ) -> Result<Option<Message>> {
        // Without values: other messages may be larger than the limit for those.
        let options = self.options.for_ledger().filter(filter);
        let mut walk = self.with(options).whole().into_walk();
        while walk.step()? == Step::More {
            let mut messages = walk.scan().messages.iter().copied();
            if let Some(found) = messages.find(&mut is_sought) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A scan of the whole segment.
    pub(super) fn whole(&self) -> SealedScan {
        SealedScan::new(self, self.beginning())
    }

    /// The state before the first entry.
    pub(super) fn beginning(&self) -> State {
        State::before(0, self.front.data_start)
    }

    /// The state at the start of a walk.
    fn state(&self, start: Begin<'_>) -> Result<State> {
        match start {
            Begin::Beginning => Ok(self.beginning()),
            Begin::Offset(offset) => {
                let found = match self.find(offset)? {
                    Some(message) => Some(message),
                    // Its entry may name another offset.
                    None => self.walk_to(Filter::default(), |own| own.position == offset)?,
                };
                let message = found.ok_or_else(|| {
                    Error::Usage(format!(
                        "cannot start at offset {offset}: no good message begins there. Start at the position of a record, or at 0"
                    ))
                })?;
                Ok(State {
                    // Any UUID before it will do, so that it ascends.
                    last: before(&message.uuid),
                    ..State::before(message.number, message.position)
                })
            }
            Begin::Part(part) => self.in_part(part.plan()?),
            Begin::Carry(_) => Err(cannot_resume("sealed")),
        }
    }

    /// The message at `offset`, if an entry names that offset and the walk certainly returns it.
    fn find(&self, offset: u64) -> Result<Option<Message>> {
        let is_searchable =
            self.front.checked() == Checked::Checksum || self.survey(|_| {})?.ascends;
        if !self.front.in_bounds(offset) || !is_searchable {
            return Ok(None);
        }
        let mut checker = Checker::new(self, Reader::sequential);
        for number in 0..self.front.entries {
            if number.is_multiple_of(POLL_EVERY) {
                self.options.poll()?;
            }
            let entry = checker.entry_elsewhere(number)?;
            if entry.offset == offset {
                let prior = Prior {
                    last: before(&entry.uuid),
                    end: offset,
                };
                let is_sure = checker.is_independent(&entry)?;
                let checked = checker.check(&entry, &prior)?;
                return Ok(checked.ok().filter(|_| is_sure));
            }
        }
        Ok(None)
    }
}

/// The greatest UUID below this one.
fn before(uuid: &[u8; UUID_BYTES]) -> Option<[u8; UUID_BYTES]> {
    let before = u128::from_be_bytes(*uuid).checked_sub(1);
    before.map(u128::to_be_bytes)
}
