//! Salvages the good messages of a damaged oplog. If one is lost before others, those get other numbers. This is
//! done only on request, and only if all numbers that refer to them can follow.

use super::layout::{Bytes, Counted, Counts, Reader, Run, Stop, put_uint};
use super::message::{Message, Record};
use super::walk::{OplogWalk, Pieces};
use crate::bug::OrBug;
use crate::engine::Salvage;
use crate::error::{self, Error, Result};
use crate::ledger::{Cause, Kind, Span};
use crate::spec::Dialect;
use crate::walk::input::Input;
use crate::walk::{Begin, Step, Walk};

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let dropped = find_dropped(salvage)?;
    let mut walk = OplogWalk::open(salvage.source(), salvage.options(), Begin::Beginning)?;
    let mut input = Input::new(salvage.source().clone(), salvage.options().clone());
    while walk.step()? == Step::More {
        if dropped.0.is_empty() {
            for span in walk.spans().iter().filter(|span| span.kind == Kind::Record) {
                salvage.carry(span.start..span.end)?;
            }
            continue;
        }
        for record in &walk.scan().records {
            let edits = edits(salvage, record, &dropped, &mut input)?;
            put_message(salvage, record, &edits)?;
        }
    }
    Ok(())
}

/// The numbers of the messages that are lost although others follow.
fn find_dropped(salvage: &mut Salvage<'_>) -> Result<Dropped> {
    let mut walk = OplogWalk::open(salvage.source(), salvage.options(), Begin::Beginning)?;
    let (mut dropped, mut seq, mut last) = (Dropped::default(), 0_u64, None::<Span>);
    let mut dangling = None;
    while walk.step()? == Step::More {
        for span in walk.spans() {
            if span.kind == Kind::Record {
                if let Some(lost) = last.take() {
                    if !salvage.renumbers() {
                        return Err(refuse_dropping(salvage, seq - 1, &lost));
                    }
                    dropped.0.push(seq - 1);
                }
                if span.cause == Some(Cause::DanglingReference) {
                    dangling.get_or_insert((seq, span.start));
                }
            } else {
                last = Some(*span);
            }
            seq += 1;
        }
        salvage.surveyed(walk.offset())?;
    }
    match dangling.filter(|_| !dropped.0.is_empty()) {
        Some((seq, at)) => Err(Error::Usage(format!(
            "{}: message {seq} at offset {at} cannot be renumbered: its clock refers to a key that is missing, and renumbering would lose what it referred to. Nothing was written",
            name(salvage)
        ))),
        None => Ok(dropped),
    }
}

fn refuse_dropping(salvage: &Salvage<'_>, seq: u64, lost: &Span) -> Error {
    let cause = match lost.cause {
        Some(cause) => cause.as_str(),
        None => "damaged",
    };
    Error::Usage(format!(
        "{}: message {seq} at offset {} is damaged ({cause}), and sound messages follow: without it their numbers would differ from what their references say. Nothing was written. `renumber` drops it and rewrites those references",
        name(salvage),
        lost.start
    ))
}

fn name(salvage: &Salvage<'_>) -> String {
    error::name(&salvage.source().path().map(Into::into))
}

/// The changes that a message needs so that it means what it did.
fn edits(
    salvage: &Salvage<'_>,
    record: &Record,
    dropped: &Dropped,
    input: &mut Input,
) -> Result<Vec<Edit>> {
    let dialect = salvage.options().dialect;
    let seq = record.seq.or_bug("the number of each message of a walk")?;
    let (mut edits, mut refusal) = (Vec::new(), None);
    let bytes = Renumbering {
        pieces: Pieces {
            input,
            start: record.start(),
        },
        dropped,
        dialect,
        seq,
        edits: &mut edits,
        refusal: &mut refusal,
    };
    match Message::read(&mut Reader::new(bytes, 0, record.len), dialect) {
        Ok(_) => {}
        Err(Stop::Error(error)) => return Err(*error),
        // It decoded before, so the file has changed.
        Err(Stop::Fault(_)) => {
            let what = format!("the message at offset {}", record.position);
            return Err(Error::changed(salvage.source().path(), &what));
        }
    }
    match refusal {
        None => Ok(edits),
        Some(why) => Err(Error::Usage(format!(
            "{}: message {seq} at offset {} cannot be renumbered: {why}. Nothing was written",
            name(salvage),
            record.position
        ))),
    }
}

/// Writes a message with its length before it.
fn put_message(salvage: &mut Salvage<'_>, record: &Record, edits: &[Edit]) -> Result<()> {
    let saved: u64 = edits.iter().map(Edit::saved).sum();
    let mut at = if saved == 0 {
        record.position
    } else {
        let mut head = Vec::new();
        put_uint(&mut head, record.len.saturating_sub(saved));
        salvage.put(&head, None)?;
        record.start()
    };
    for edit in edits {
        salvage.carry(at..record.start() + edit.run.at)?;
        salvage.put(&edit.bytes(), None)?;
        at = record.start() + edit.run.end();
    }
    salvage.carry(at..record.end())
}

/// The numbers of the dropped messages, ascending: 8 bytes of memory each.
#[derive(Debug, Default)]
struct Dropped(Vec<u64>);

impl Dropped {
    /// How many are before message `seq`.
    fn before(&self, seq: u64) -> u64 {
        self.0.partition_point(|dropped| *dropped < seq) as u64
    }

    /// The first one from message `first` through message `last`.
    fn within(&self, first: u64, last: u64) -> Option<u64> {
        let next = self.0.partition_point(|dropped| *dropped < first);
        self.0.get(next).copied().filter(|dropped| *dropped <= last)
    }
}

/// A number to be replaced. The new one is smaller, and so takes no more bytes.
#[derive(Clone, Copy, Debug)]
struct Edit {
    /// Where it is, relative to the beginning of the message.
    run: Run,
    value: u64,
}

impl Edit {
    /// The bytes of the new number, in its shortest form.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_uint(&mut bytes, self.value);
        bytes
    }

    /// How many bytes fewer they are.
    fn saved(&self) -> u64 {
        self.run.len.saturating_sub(self.bytes().len() as u64)
    }
}

/// A message that is being read, and the changes that it needs.
struct Renumbering<'a> {
    pieces: Pieces<'a>,
    dropped: &'a Dropped,
    dialect: Dialect,
    /// The message's own number.
    seq: u64,
    /// The changes found so far, in the order of the message: 32 bytes of memory each.
    edits: &'a mut Vec<Edit>,
    /// Why the first number that cannot follow cannot.
    refusal: &'a mut Option<String>,
}

impl Renumbering<'_> {
    /// What a number becomes, or why that cannot be determined.
    fn follow(&self, counted: &Counted) -> std::result::Result<u64, String> {
        let Counted { what, value, .. } = *counted;
        match counted.counts {
            Counts::Back => self.back(what, value),
            Counts::Number if self.dropped.within(value, value).is_some() => {
                Err(format!("{what} is {value}, a message that is damaged"))
            }
            Counts::Number => Ok(value - self.dropped.before(value)),
            Counts::Batch => self.batch(value),
            Counts::Frame => {
                let within = |edit: &&Edit| edit.run.at >= counted.run.end();
                let saved = self.edits.iter().filter(within).map(Edit::saved);
                Ok(value.saturating_sub(saved.sum()))
            }
        }
    }

    fn back(&self, what: &str, distance: u64) -> std::result::Result<u64, String> {
        let before = self.dropped.before(self.seq);
        if distance == 0 || before == 0 {
            return Ok(distance);
        }
        let Some(target) = self.seq.checked_sub(distance) else {
            return Err(format!(
                "{what} leads {distance} messages back, before the first one"
            ));
        };
        if self.dropped.within(target, target).is_some() {
            return Err(format!(
                "{what} leads to message {target}, which is damaged"
            ));
        }
        Ok(distance - (before - self.dropped.before(target)))
    }

    /// In `autobase` the last message of a batch has 1, the one before it 2, so that many more must follow. In the
    /// drafts a position in a batch does not depend on the others.
    fn batch(&self, place: u64) -> std::result::Result<u64, String> {
        let last = match self.dialect {
            Dialect::Autobase => self.seq.saturating_add(place.saturating_sub(1)),
            Dialect::Draft | Dialect::Draft11 => self.seq,
        };
        match self.dropped.within(self.seq, last) {
            Some(lost) => Err(format!(
                "message {lost}, which is damaged, is of the same batch"
            )),
            None => Ok(place),
        }
    }
}

impl Bytes for Renumbering<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        self.pieces.run(at, len)
    }

    fn counted(&mut self, counted: Counted) {
        match self.follow(&counted) {
            Ok(value) if value != counted.value => {
                // The length of a frame comes before what changed within it.
                let is_before = |edit: &Edit| edit.run.at < counted.run.at;
                let place = self.edits.partition_point(is_before);
                let run = counted.run;
                self.edits.insert(place, Edit { run, value });
            }
            Ok(_) => {}
            Err(why) => {
                self.refusal.get_or_insert(why);
            }
        }
    }
}
