//! Salvages the good messages of a damaged oplog. If one is lost before others, those get other numbers. This is
//! done only on request, and only if all numbers that refer to them can follow.

use super::layout::compact::{Reader, Stop, put_uint};
use super::message::{Message, Record};
use super::pieces::Pieces;
use super::renumber::{Dropped, Edit, Renumbering};
use super::rows::changed;
use super::walk::OplogWalk;
use crate::bug::OrBug;
use crate::engine::Salvage;
use crate::error::{self, Error, Result};
use crate::ledger::{Cause, Kind, Span};
use crate::source::Window;
use crate::walk::{Begin, Step, Walk};

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let dropped = find_dropped(salvage)?;
    let mut walk = OplogWalk::open(salvage.source(), salvage.options(), Begin::Beginning)?;
    let mut window = Window::default();
    while walk.step()? == Step::More {
        if dropped.is_empty() {
            for span in walk.spans().iter().filter(|span| span.kind == Kind::Record) {
                salvage.carry(span.start..span.end)?;
            }
            continue;
        }
        for record in &walk.scan().records {
            let edits = edits(salvage, record, &dropped, &mut window)?;
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
                    dropped.push(seq - 1);
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
    match dangling.filter(|_| !dropped.is_empty()) {
        Some((seq, at)) => Err(Error::Usage(format!(
            "{}: message {seq} at offset {at} cannot be renumbered: its clock refers to a key that is missing, and renumbering would lose what it referred to. Nothing was written",
            name(salvage)
        ))),
        None => Ok(dropped),
    }
}

fn refuse_dropping(salvage: &Salvage<'_>, seq: u64, lost: &Span) -> Error {
    let cause = lost.cause.map_or("damaged", Cause::as_str);
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
    window: &mut Window,
) -> Result<Vec<Edit>> {
    let (source, options) = (salvage.source(), salvage.options());
    let seq = record.seq.or_bug("the number of each message of a walk")?;
    let (mut edits, mut refusal) = (Vec::new(), None);
    let bytes = Renumbering {
        pieces: Pieces {
            source: &*source,
            options,
            window,
            start: record.start(),
        },
        dropped,
        dialect: options.dialect,
        seq,
        edits: &mut edits,
        refusal: &mut refusal,
    };
    match Message::read(&mut Reader::new(bytes, 0, record.len), options.dialect) {
        Ok(_) => {}
        Err(Stop::Error(error)) => return Err(*error),
        // It decoded before, so the file has changed.
        Err(Stop::Fault(_)) => return Err(changed(&*source, record.position)),
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
    if edits.is_empty() {
        return salvage.carry(record.position..record.end());
    }
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
