//! Where a walk begins: at the first entry, where another walk was, or at a message in the middle.

use std::sync::Arc;

use super::check::Checker;
use super::front::Front;
use super::index::POLL_EVERY;
use super::judge::Prior;
use super::layout::{Message, UUID_BYTES};
use super::reader::Reader;
use super::state::{Behind, State};
use super::survey::survey;
use super::walk::SealedScan;
use crate::engine::{Options, Start, Step, Walk, Wanted};
use crate::error::{Error, Result};
use crate::ledger::Notes;
use crate::source::Source;

impl State {
    /// In front of entry number `next`, whose message begins at `end` or behind it.
    pub(super) fn before(front: &Front, next: u64, end: u64) -> Self {
        Self {
            size: front.len,
            entries: front.entries,
            from: next,
            next,
            last: None,
            end,
            counted: next > 0,
            budget: Default::default(),
            behind: Behind::default(),
            failed: Default::default(),
            marks: Default::default(),
            front: None,
            ended: false,
            part: None,
            stands: false,
        }
    }

    /// In front of a message, which ascends whatever was before it.
    fn before_message(front: &Front, message: &Message) -> Self {
        Self {
            last: before(&message.uuid),
            ..Self::before(front, message.number, message.position)
        }
    }

    /// Where a walk of this file begins.
    pub(super) fn at(
        source: &Arc<dyn Source>,
        front: &Front,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Self> {
        match start {
            Start::Beginning => Ok(Self::before(front, 0, front.data_start)),
            Start::Offset(offset) => {
                let found = match find(source, front, options, offset)? {
                    Some(message) => Some(message),
                    None => find_moved(source, front, options, offset)?,
                };
                let message = found.ok_or_else(|| {
                    Error::Usage(format!(
                        "cannot start at offset {offset}: no message that checks begins there"
                    ))
                })?;
                Ok(Self::before_message(front, &message))
            }
            Start::Part(part) => Self::in_part(source, front, options, part.portion()?),
            Start::Carry(carry) => {
                let state: Self = carry.state("a sealed segment")?;
                if state.fits(front) {
                    return Ok(state);
                }
                Err(Error::Usage(format!(
                    "this is a point in another file: it had {} bytes and {} messages, this one has {} and {}",
                    state.size, state.entries, front.len, front.entries
                )))
            }
        }
    }

    fn fits(&self, front: &Front) -> bool {
        let is_in_front = self.size == front.len
            && self.entries == front.entries
            && self.from <= self.next
            && self.next <= front.entries
            && front.data_start <= self.end
            && self.end <= front.data_end
            && self.part.is_none_or(|part| part.portion.fits(front));
        let are_passed = |notes: &Notes| {
            let first = notes.first();
            first.is_none_or(|first| self.from <= first.start && notes.end() <= self.next)
        };
        is_in_front && are_passed(&self.marks) && are_passed(&self.failed)
    }
}

/// The message at `offset`, if an entry says that it is there, and the walk surely gives it.
fn find(
    source: &Arc<dyn Source>,
    front: &Front,
    options: &Options,
    offset: u64,
) -> Result<Option<Message>> {
    let is_searchable = front.trailer.is_some() || survey(&**source, options, front)?.ascends;
    if !front.in_bounds(offset) || !is_searchable {
        return Ok(None);
    }
    let reader = || Reader::sequential(source.clone(), options);
    let mut checker = Checker::new(reader(), reader(), *front);
    for number in 0..front.entries {
        if number.is_multiple_of(POLL_EVERY) {
            options.poll()?;
        }
        let entry = checker.entry_elsewhere(number)?;
        if entry.offset == offset {
            let prior = Prior {
                last: before(&entry.uuid),
                end: offset,
            };
            let is_sure = checker.stands_alone(number, &entry)?;
            let checked = checker.check(number, &entry, offset, &prior)?;
            return Ok(checked.ok().filter(|_| is_sure));
        }
    }
    Ok(None)
}

/// The message at `offset`, though its entry does not say that it is there.
fn find_moved(
    source: &Arc<dyn Source>,
    front: &Front,
    options: &Options,
    offset: u64,
) -> Result<Option<Message>> {
    let lenient = Options {
        strict: false,
        values: false,
        wanted: Wanted::default(),
        ..options.clone()
    };
    let state = State::before(front, 0, front.data_start);
    let mut walk = SealedScan::new(source.clone(), &lenient, *front, state).into_walk();
    while walk.step()? == Step::More {
        let mut found = walk.scan().messages.iter();
        if let Some(message) = found.find(|message| message.position == offset) {
            return Ok(Some(*message));
        }
    }
    Ok(None)
}

/// A UUID that this one is greater than, and no other between them.
fn before(uuid: &[u8; UUID_BYTES]) -> Option<[u8; UUID_BYTES]> {
    let before = u128::from_be_bytes(*uuid).checked_sub(1);
    before.map(u128::to_be_bytes)
}
