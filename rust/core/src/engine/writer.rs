//! How files are written: one shape for all formats.

use std::fmt::Display;
use std::path::Path;

use super::{Dialect, Interrupt};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::Summary;
use crate::own::Own;
use crate::record::{Column, RecordId, Value};
use crate::setters::setters;

/// How to create a file, or open one to append to. The same for all formats; each takes what concerns it, and names that in
/// [`Format::create_options`](super::Format::create_options).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The key of the checksums: active, sealed.
    pub key: Key,
    /// Append to the file if it exists: active, chunked, oplog. Otherwise an existing file is an error.
    pub append: bool,
    /// Replace an existing file once the new one is complete: sealed, tenant. Otherwise an existing file is an error.
    pub overwrite: bool,
    /// The length in bytes to which the file is filled with zeros beforehand, so that appending need not grow it: active.
    pub preallocate: u64,
    /// If an existing file ends in a torn tail, overwrite it with zeros (active), or cut it off (chunked, oplog), and go on
    /// there. Otherwise it is an error.
    pub zero_torn_tail: bool,
    /// Whether checksums are written behind the data: sealed.
    pub trailer: bool,
    /// The version of the layout: tenant, 1 or 2.
    pub version: u16,
    /// How messages are laid out: oplog.
    pub dialect: Dialect,
    /// A chunk is closed when its records have this many bytes before compression: chunked. 256 KiB by default; larger chunks
    /// make files hardly smaller, and lose more where they are damaged.
    pub chunk_bytes: u64,
    /// A chunk is closed when it has this many records: chunked.
    pub chunk_records: u32,
    /// The zstd compression level: chunked. 1 by default: on records of logs higher ones take longer for hardly fewer bytes.
    pub level: i32,
    /// Whether the index is written beside the file: chunked.
    pub index: bool,
    /// How many bytes of messages are kept in memory before they are put into temporary files: tenant.
    pub memory_bytes: u64,
    /// Asked now and then whether to stop.
    pub interrupt: Option<Interrupt>,
}

setters!(WriteOptions {
    key: Key;
    append: bool;
    overwrite: bool;
    preallocate: u64;
    zero_torn_tail: bool;
    trailer: bool;
    version: u16;
    dialect: Dialect;
    chunk_bytes: u64;
    chunk_records: u32;
    level: i32;
    index: bool;
    memory_bytes: u64;
    interrupt: Option<Interrupt>, from;
});

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            key: Key::DEFAULT,
            append: false,
            overwrite: false,
            preallocate: 0,
            zero_torn_tail: false,
            trailer: true,
            version: 2,
            dialect: Dialect::default(),
            chunk_bytes: 256 << 10,
            chunk_records: 65_536,
            level: 1,
            index: true,
            memory_bytes: 64 << 20,
            interrupt: None,
        }
    }
}

/// Writes records to one file.
///
/// Append-only formats (active, chunked, oplog) write to the file itself: what was flushed is there, whatever happens later.
/// Formats written whole (sealed, tenant) appear under their name when the writer is closed, and not at all otherwise.
/// Dropping a writer [abandons](Self::abandon) it without reporting errors.
///
/// Only this crate implements it.
pub trait Writer: Own + Send {
    /// What a record has, in the order in which [`write`](Self::write) takes it.
    fn columns(&self) -> &'static [Column];

    /// Adds one record: a value for each column, [`Value::Null`] where there is none. Columns that follow from others
    /// (`timestamp` beside `uuid`, `index`, `seq`) may be null; if they are given they have to be right. Gives what the
    /// record will be found by, where that is known already.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a record that the format cannot hold: nothing is written then.
    /// [`Error::Io`](crate::Error::Io) where a full buffer could not be written: the record itself is in the buffer.
    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>>;

    /// Hands what append-only formats have so far to the operating system. May be called again after an error.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn flush(&mut self) -> Result<()>;

    /// Hands all records to the disk.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io). After a failed sync the disk's state is unknown, so every later call fails too.
    fn sync(&mut self) -> Result<()>;

    /// Completes the file. Nothing can be written afterwards; closing again does nothing.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); what could not be written is kept, and closing again goes on.
    fn close(&mut self) -> Result<()>;

    /// Stops without completing: append-only formats keep what was written as a valid file, the others leave nothing.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn abandon(&mut self) -> Result<()>;

    /// The file.
    fn path(&self) -> &Path;

    /// Where the next record will begin, in bytes from the start of the file; `None` where that is not known yet.
    fn position(&self) -> Option<u64> {
        None
    }

    /// What the last record in the file is found by; `None` while it is empty, or where it is not known yet.
    fn last(&self) -> Option<RecordId> {
        None
    }

    /// What was in the file when it was opened.
    fn found(&self) -> Option<&Summary> {
        None
    }
}

/// The error of a record without a field that it needs.
pub(crate) fn missing(name: impl Display) -> Error {
    Error::Usage(format!("{name} is missing: a record needs one"))
}
