//! Appends to a new or an existing oplog.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::FORMAT;
use super::draft::Naming;
use super::keys::{refuse_too_many, taken_by};
use super::layout::columns::columns;
use super::layout::{Body, Bytes, Key, Reader, fields, put_buffer};
use super::message::{Frame, Message, encode};
use super::walk::OplogWalk;
use crate::engine::append::{self, by_its_appender};
use crate::engine::{self, WriteOptions};
use crate::error::{Error, Finding, Result};
use crate::ledger::{Kind, Span, Summary};
use crate::output::Appender;
use crate::record::{Column, RecordId, Value};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::spec::Dialect;
use crate::spec::settings::ZERO_TORN_TAIL;
use crate::text::is_readable;
use crate::walk::Begin;

/// How much of the encoding buffer is reused for the next message, in bytes.
const REUSED_BYTES: usize = 1 << 20;

/// How many bytes of an unfinished message are decoded.
const MOST_FIELDS_BYTES: usize = 256 << 10;

/// Appends messages to an oplog. An advisory lock (on Unix) excludes a second writer of the same file.
///
/// Messages are buffered: [`flush`](engine::Writer::flush) hands them to the operating system,
/// [`sync`](engine::Writer::sync) to the disk. Dropping a writer flushes it without reporting errors.
///
/// In `draft-1.1` a writer keeps every key of the file in memory, with the position of its first declaration.
#[derive(Debug)]
pub struct Writer {
    out: Appender,
    dialect: Dialect,
    /// The next message's sequence number.
    seq: u64,
    /// Where each key was declared first.
    declared: HashMap<Key, (u64, u64)>,
    /// What the keys of all messages take in the memory of a reader.
    key_bytes: u64,
    /// The message being encoded. It goes to the file only when it is complete.
    message: Vec<u8>,
    found: Summary,
}

impl Writer {
    /// Opens an oplog for appending. Walks an existing one first.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists without [`IfExists::Append`](crate::format::IfExists::Append), is open in
    /// another writer, or cannot be opened. [`Error::Damage`] if an existing file ends in damage (for a torn tail:
    /// only without `zero_torn_tail`, which cuts it off).
    pub fn open(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        let mut writer = Self {
            out: Appender::open(options.on(), path, options.appends())?,
            dialect: options.dialect.unwrap_or_default(),
            seq: 0,
            declared: HashMap::new(),
            key_bytes: 0,
            message: Vec::new(),
            found: Summary::new(FORMAT.checked, Some(path), 0),
        };
        let ready = writer.find_end(options);
        ready.inspect_err(|_| writer.out.discard())?;
        Ok(writer)
    }

    /// Walks the existing messages, to find the next sequence number, the keys, and where to append.
    fn find_end(&mut self, options: &WriteOptions) -> Result<()> {
        let source = Arc::new(self.out.source()?);
        let lenient = append::reading(options);
        let mut walk = OplogWalk::open(source.clone(), &lenient, Begin::Beginning)?;
        self.found = Summary::new(FORMAT.checked, source.path(), source.len());
        let end = append::survey(&mut walk, &mut self.found, |_| Ok(()))?;
        let Some(end) = end else { return Ok(()) };
        self.seq = walk.scan().state.seq;
        self.declared = walk.scan().state.keys.places();
        self.key_bytes = walk.scan().state.keys.bytes();
        self.out.go_to(end.end);
        if end.kind == Kind::Record {
            return Ok(());
        }
        if end.kind == Kind::TornTail
            && options.flag(&ZERO_TORN_TAIL)
            && is_unfinished(&*source, &end, self.dialect)?
        {
            return self.out.quarantine(end.start..end.end, false);
        }
        let strict = lenient.strict(true);
        let walk = OplogWalk::open(source, &strict, Begin::Offset(end.start));
        Err(append::refusal(&self.out, walk))
    }

    /// Appends a message, a value for each column of the dialect. Returns its sequence number.
    ///
    /// # Errors
    /// [`Error::Usage`] for a message that the dialect cannot represent, or a `seq` that is not the next. Nothing
    /// is appended then. [`Error::Io`] if a full buffer could not be written. The message is in the buffer then.
    pub fn append(&mut self, fields: &[Value<'_>]) -> Result<u64> {
        self.out.check_open()?;
        let seq = self.seq;
        if let Some(given) = fields::seq(fields)?
            && given != seq
        {
            return Err(Error::Usage(format!(
                "seq is {given}, and the next message in the file is {seq}: leave seq out"
            )));
        }
        self.message.clear();
        let naming = Naming {
            seq: Some(seq),
            declared: Some(&self.declared),
        };
        let keys = encode(&mut self.message, fields, self.dialect, naming)?;
        let key_bytes = self.key_bytes + taken_by(size_of_val(&*keys) as u64);
        refuse_too_many(seq, key_bytes, Some(self.out.path()))?;
        self.key_bytes = key_bytes;
        put_buffer(self.out.buffer(), &self.message);
        self.message.shrink_to(REUSED_BYTES);
        for (offset, key) in (0..).zip(keys) {
            self.declared.entry(key).or_insert((seq, offset));
        }
        self.seq += 1;
        self.out.flush_if_full()?;
        Ok(seq)
    }
}

/// Whether a torn tail is one message that was not written to its end: the fields that are there decode, and lead to the end that its
/// length says. Nothing else tells a message. So if no message precedes it, what is there must reach to its value at least.
pub(super) fn is_unfinished(source: &dyn Source, tail: &Span, dialect: Dialect) -> Result<bool> {
    let beginning = append::beginning(source, &(tail.start..tail.end), MOST_FIELDS_BYTES)?;
    let is_first = tail.start == 0;
    if beginning.len() > 1 && is_readable(&beginning) {
        return Ok(false);
    }
    Ok(match Frame::parse(&beginning, tail.len()) {
        Err(Finding::TooLong { needed, .. }) => {
            let (mut length, mut is_over) = (Body::new(&beginning).reader(0), false);
            if length.uint("length").is_err() {
                return Ok(false);
            }
            let bytes = Beginning {
                bytes: &beginning,
                is_over: &mut is_over,
            };
            let mut fields = Reader::new(bytes, length.at(), needed);
            Message::read(&mut fields, dialect).is_ok() || is_over && !is_first
        }
        Err(_) => !is_first,
        Ok(_) => false,
    })
}

/// The first bytes of a message and its length.
struct Beginning<'a> {
    bytes: &'a [u8],
    /// Whether more were asked for.
    is_over: &'a mut bool,
}

impl Bytes for Beginning<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let rest = self.bytes.get(saturating_usize(at)..);
        match rest.and_then(|rest| rest.get(..len)) {
            Some(run) => Ok(run),
            None => {
                *self.is_over = true;
                Ok(&[]) // too few, which is a fault of the message
            }
        }
    }
}

impl engine::Writer for Writer {
    fn columns(&self) -> &'static [Column] {
        columns(self.dialect)
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        self.append(fields).map(|seq| Some(seq.into()))
    }

    fn last(&self) -> Option<RecordId> {
        self.seq.checked_sub(1).map(RecordId::from)
    }

    by_its_appender!();
}
