//! How files are written: one shape for all formats.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;

use super::settings::{FormatOption, Setting, Settings};
use super::{Dialect, Format, Interrupt};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::Summary;
use crate::own::Own;
use crate::record::{Column, RecordId, Value};
use crate::setters::setters;

/// What is done with a file that exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IfExists {
    /// It is an error.
    #[default]
    Error,
    /// Records are appended to it.
    Append,
    /// It is replaced once the new file is complete.
    Overwrite,
}

impl IfExists {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Error, Self::Append, Self::Overwrite];

    /// To overwrite, or not.
    #[must_use]
    pub const fn overwrite_if(overwrite: bool) -> Self {
        if overwrite {
            Self::Overwrite
        } else {
            Self::Error
        }
    }

    /// The name that callers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Append => "append",
            Self::Overwrite => "overwrite",
        }
    }

    /// What this name says.
    ///
    /// # Errors
    /// [`Error::Usage`] where it is none.
    pub fn by_name(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|own| own.as_str() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|own| own.as_str()).collect();
            Error::Usage(format!(
                "if_exists is {name:?}: it is one of {}",
                names.join(", ")
            ))
        })
    }
}

/// How to create a file, or open one to append to: what concerns several formats, and what some of them declare in
/// [`Format::create_options`], which [`set`](Self::set) sets by name. What does not concern the format is an error.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The key of the checksums; `None` is [`Key::DEFAULT`].
    pub key: Option<Key>,
    /// What is done with a file that exists already.
    pub if_exists: IfExists,
    /// How records are laid out; `None` is [`Dialect::default`].
    pub dialect: Option<Dialect>,
    /// Asked now and then whether to stop.
    pub interrupt: Option<Interrupt>,
    settings: Settings,
}

setters!(WriteOptions {
    key: Option<Key>, from;
    if_exists: IfExists;
    dialect: Option<Dialect>, from;
    interrupt: Option<Interrupt>, from;
});

impl WriteOptions {
    /// These options, with this value of one that formats declare.
    #[must_use]
    pub fn set(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Setting>) -> Self {
        self.settings.set(name.into(), value.into());
        self
    }

    /// These options without what does not concern a format, so that files of several are written with the same options.
    #[must_use]
    pub fn concerning(mut self, format: &Format) -> Self {
        self.key = self.key.filter(|_| format.writes_with("key"));
        self.dialect = self.dialect.filter(|_| format.writes_with("dialect"));
        self.settings.retain(|name| format.writes_with(name));
        self
    }

    /// Refuses what does not concern a format, and values that its options do not take.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self, format: &Format) -> Result<()> {
        let own = [
            ("key", self.key.is_some()),
            ("dialect", self.dialect.is_some()),
        ];
        let own = own.into_iter().filter(|(_, given)| *given);
        let mut given = own.map(|(name, _)| name).chain(self.settings.names());
        if let Some(name) = given.find(|name| !format.writes_with(name)) {
            let names: Vec<_> = format.create_options.iter().map(|own| own.name).collect();
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
                "if_exists is {name:?}: for {} files it is one of {}",
                format.name,
                choices.join(", ")
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
