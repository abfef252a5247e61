//! Writers: one interface for all formats.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;
#[cfg(feature = "faults")]
use std::sync::Arc;

use crate::checksum::Key;
#[cfg(feature = "faults")]
use crate::disk::Disk;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::ledger::Summary;
use crate::private::Sealed;
use crate::record::{Column, RecordId, Value};
use crate::setters::{choices, disk_and_settings, setters};
use crate::spec::settings::{FormatOption, Setting, Settings};
use crate::spec::{Dialect, Spec};
use crate::walk::Interrupt;

choices! {
    /// What is done with a file that exists already.
    IfExists of "if_exists" {
        /// It is an error.
        #[default]
        Error = "error" not "fail" not "raise",
        /// Records are appended to it.
        Append = "append",
        /// It is replaced when the new file is complete.
        Overwrite = "overwrite" not "replace" not "truncate",
    }
}

impl IfExists {
    /// Whether a file that is written as a whole replaces another one.
    ///
    /// # Errors
    /// [`Error::Usage`] for [`Append`](Self::Append).
    pub(crate) fn replaces(self) -> Result<bool> {
        match self {
            Self::Error => Ok(false),
            Self::Overwrite => Ok(true),
            Self::Append => Err(Error::Usage(
                "if_exists is \"append\": a new file is written as a whole, so it is \"error\" or \"overwrite\"".to_owned(),
            )),
        }
    }

    /// [`Overwrite`](Self::Overwrite), or [`Error`](Self::Error).
    #[must_use]
    #[doc(hidden)]
    pub const fn overwrite_if(overwrite: bool) -> Self {
        if overwrite {
            Self::Overwrite
        } else {
            Self::Error
        }
    }
}

/// Options for creating a file or opening one for appending: those that concern several formats, and options that some
/// formats declare in [`Spec::create_options`], which [`set`](Self::set) sets by name. An option that does not
/// concern the format is an error.
///
/// ```
/// use seglake::checksum::Key;
/// use seglake::format::{IfExists, WriteOptions, active, create};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.active");
///
/// let options = WriteOptions::default()
///     .if_exists(IfExists::Append)
///     .key(Key::new(b"32 bytes that nobody else knows."));
/// create(&active::FORMAT, &path, &options)?.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    pub(crate) key: Option<Key>,
    pub(crate) if_exists: IfExists,
    #[doc(hidden)] // public for the Python extension and tests
    pub dialect: Option<Dialect>,
    pub(crate) interrupt: Option<Interrupt>,
    disk: DiskRef,
    settings: Settings,
}

setters!(WriteOptions {
    /// The key of the checksums; `None` is [`Key::DEFAULT`].
    key: Option<Key>, from;
    /// What is done with a file that exists already.
    if_exists: IfExists;
    /// The layout of records; `None` is [`Dialect::default`].
    dialect: Option<Dialect>, from;
    /// Called at intervals to ask whether to stop.
    interrupt: Option<Interrupt>, from;
});

disk_and_settings!(WriteOptions);

impl WriteOptions {
    /// Asks whether to stop.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if so.
    pub(crate) fn poll(&self) -> Result<()> {
        match &self.interrupt {
            Some(interrupt) if interrupt.stops() => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// These options without those that do not concern `format`, so that files of several formats can be written with
    /// the same options.
    #[must_use]
    #[doc(hidden)]
    pub fn concerning(mut self, format: &Spec) -> Self {
        self.key = self.key.filter(|_| format.writes_with("key"));
        self.dialect = self.dialect.filter(|_| format.writes_with("dialect"));
        self.settings.retain(|name| format.writes_with(name));
        self
    }

    /// Refuses options that do not concern `format`, and values that its options do not take.
    ///
    /// # Errors
    /// [`Error::Usage`].
    #[doc(hidden)]
    pub fn check(&self, format: &Spec) -> Result<()> {
        let fields = [
            ("key", self.key.is_some()),
            ("dialect", self.dialect.is_some()),
        ];
        let fields = fields.into_iter().filter(|(_, given)| *given);
        let mut given = fields.map(|(name, _)| name).chain(self.settings.names());
        if let Some(name) = given.find(|name| !format.writes_with(name)) {
            let names = format.create_options.iter().map(|option| option.name);
            let names: Vec<_> = names.collect();
            return Err(Error::Usage(format!(
                "{name} does not concern {} files: their options are {}",
                format.name,
                names.join(", ")
            )));
        }
        let choices = format.if_exists();
        let name = self.if_exists.as_str();
        if !choices.contains(&name) {
            return Err(Error::Usage(format!(
                "if_exists is {name:?}: {} files take one of {}{}",
                format.name,
                choices.join(", "),
                match self.if_exists {
                    IfExists::Overwrite => ". Remove the file first to write it anew",
                    IfExists::Error | IfExists::Append => "",
                }
            )));
        }
        self.settings.check(format.create_options)
    }

    pub(crate) fn appends(&self) -> bool {
        self.if_exists == IfExists::Append
    }

    pub(crate) fn overwrites(&self) -> bool {
        self.if_exists == IfExists::Overwrite
    }

    pub(crate) fn flag(&self, option: &FormatOption) -> bool {
        self.settings.flag(option)
    }

    pub(crate) fn number(&self, option: &FormatOption) -> i64 {
        self.settings.number(option)
    }

    pub(crate) fn bytes(&self, option: &FormatOption) -> u64 {
        self.settings.bytes(option)
    }
}

/// Writes records to one file.
///
/// Append-only formats (active, chunked, oplog, tfrecord) write to the file itself: flushed records stay, whatever happens later.
/// Formats written whole (sealed, tenant) appear under their name only when the writer is closed. Dropping a writer
/// [abandons](Self::abandon) it without reporting errors.
///
/// Only this crate implements it.
pub trait Writer: Sealed + Send {
    /// The columns of a record, in the order in which [`write`](Self::write) takes them.
    fn columns(&self) -> &'static [Column];

    /// Adds one record: a value for each column, [`Value::Null`] if it has none. Columns that follow from others
    /// (`timestamp` from `uuid`, `index`, `seq`) may be null; values given for them must match. So may
    /// the `uuid` of a record and the `timestamp` of a chunked one: they are of the present time then. Returns the record's identifier, if
    /// it is known already.
    ///
    /// # Errors
    /// - [`Error::Usage`](crate::Error::Usage) for a record that the format cannot store, and after [`close`](Self::close) or
    ///   [`abandon`](Self::abandon). Nothing is written.
    /// - [`Error::Io`](crate::Error::Io) if a full buffer could not be written. The record itself stays in the buffer.
    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>>;

    /// Hands buffered records of append-only formats to the operating system. May be called again after an error.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn flush(&mut self) -> Result<()>;

    /// Syncs all records to the disk.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io). After a failed sync the disk's state is unknown, so every later call fails too.
    fn sync(&mut self) -> Result<()>;

    /// Completes the file, and ends its lock: another writer can open it. Nothing can be written afterwards. Closing again does nothing.
    /// A format written whole is on the disk then. Records of an append-only format are so after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io). Unwritten records stay buffered, and closing again continues.
    fn close(&mut self) -> Result<()>;

    /// Stops without completing. Append-only formats keep what was written as a valid file; formats written whole leave
    /// no file. Nothing can be written afterwards.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn abandon(&mut self) -> Result<()>;

    /// The path of the file.
    fn path(&self) -> &Path;

    /// The offset of the next record, in bytes from the start of the file; `None` if it is not known yet.
    fn position(&self) -> Option<u64> {
        None
    }

    /// The identifier of the last record in the file; `None` if the file is empty, or if it is not known yet.
    fn last(&self) -> Option<RecordId> {
        None
    }

    /// The summary of what was in the file when it was opened.
    fn found(&self) -> Option<&Summary> {
        None
    }

    /// The files that have what was removed when it was opened: an unfinished record at the end of the file, or items of a chunked
    /// segment's index that do not say what the segment has. An index that listed more shows that the segment was cut off.
    fn quarantined(&self) -> Vec<&Path> {
        Vec::new()
    }
}

/// The error for a record without a required field.
pub(crate) fn missing(name: impl Display) -> Error {
    Error::Usage(format!("{name} is missing: expected a value"))
}
