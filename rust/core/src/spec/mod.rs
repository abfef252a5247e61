//! What a format is called, which columns and options it has, and what its files may be like: plain data.

pub(crate) mod filter;
pub(crate) mod settings;

use std::fmt;

use crate::record::{Checked, Column, ColumnKind};
use crate::setters::choices;

pub use filter::Filter;
pub(crate) use filter::{Types, UuidBounds};
pub use settings::{FormatOption, OptionKind, Setting};

choices! {
    /// The layout of an oplog's messages. It cannot be detected from the bytes: the caller says it.
    Dialect of "dialect" {
        /// The published draft.
        #[default]
        Draft = "draft",
        /// The draft with its key compression.
        Draft11 = "draft-1.1",
        /// The layout that the npm package `autobase` writes.
        Autobase = "autobase",
    }
}

impl Dialect {
    /// Whether messages refer to earlier ones, so that one is judged only by all before it.
    pub(crate) const fn refers_back(self) -> bool {
        matches!(self, Self::Draft11)
    }
}

/// What is known of a format without a file of it. [`Format`](crate::engine::Format) adds functions that read and write files.
pub struct Spec {
    /// The name that callers use.
    pub name: &'static str,
    /// The usual file extension, without the dot.
    pub extension: &'static str,
    /// The names of the [columns](Self::columns) that one record is found by, or `position`, where it begins.
    pub identifier: &'static [&'static str],
    /// The strongest check that its records can have. [`Walk::checked`](crate::walk::Walk::checked) says how those of one file are
    /// checked.
    pub checked: Checked,
    /// Whether values lie in the file unchanged, so that other bytes there are other values.
    #[doc(hidden)]
    pub has_plain_values: bool,
    /// Whether a record may be emitted although a part of it is damaged. Its cause then says which.
    #[doc(hidden)]
    pub marks_damage: bool,
    /// The options for reading that only some formats have, this one among them.
    #[doc(hidden)]
    pub open_options: &'static [FormatOption],
    /// The options for writing that this format has.
    #[doc(hidden)]
    pub create_options: &'static [FormatOption],
    /// The conditions of a [`Filter`] that its walks apply by themselves, by column. Other conditions
    /// are applied to the rows of the walk.
    pub(crate) applies: &'static [(&'static str, Applied)],
    /// A name for all formats that the same file may have in turn.
    pub(crate) family: &'static str,
    pub(crate) first_unit: FirstUnit,
    pub(crate) tail: Tail,
    pub(crate) columns: fn(Dialect) -> &'static [Column],
}

/// Conditions that the walks of a format apply by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// [`Filter::at_least`] and [`Filter::below`].
    Range,
    /// [`Filter::among`].
    Among,
}

/// What the first unit of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstUnit {
    /// Any bytes.
    Bytes,
    /// A UUID, a message, and their checksum.
    Record,
    /// A message whose UUID is elsewhere.
    Message,
}

/// What may be after the last unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing: such a file is written whole.
    Complete,
    /// The beginning of the next unit.
    Bytes,
    /// The same, and zeros that were never written to.
    Zeros,
}

/// Where a record begins, which identifies it in formats whose records have nothing else.
static POSITION: Column = Column::new("position", ColumnKind::Int64);

impl Spec {
    /// The columns of a record, in display order. Those of an oplog depend on its dialect.
    #[must_use]
    pub fn columns(&self, dialect: Dialect) -> &'static [Column] {
        (self.columns)(dialect)
    }

    /// Whether it has an option of this name for reading.
    #[must_use]
    #[doc(hidden)]
    pub fn reads_with(&self, name: &str) -> bool {
        self.open_options.iter().any(|option| option.name == name)
    }

    /// Whether it has an option of this name for writing.
    #[must_use]
    #[doc(hidden)]
    pub fn writes_with(&self, name: &str) -> bool {
        self.create_options.iter().any(|option| option.name == name)
    }

    /// Whether records can be appended to its files. Otherwise files are written whole.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn is_appended_to(&self) -> bool {
        self.if_exists().contains(&"append")
    }

    /// What can be done with a file that exists already: the names of [`IfExists`](crate::engine::IfExists).
    pub(crate) fn if_exists(&self) -> &'static [&'static str] {
        let mut options = self.create_options.iter();
        match options
            .find(|option| option.name == "if_exists")
            .map(|option| option.kind)
        {
            Some(OptionKind::Name(choices)) => choices,
            _ => &["error"],
        }
    }

    /// The columns that identify a record, in the order of [`identifier`](Self::identifier).
    #[doc(hidden)]
    pub fn identifying(&self, dialect: Dialect) -> impl Iterator<Item = &'static Column> {
        let columns = self.columns(dialect);
        let places = self.identifying_places(dialect).into_iter();
        places.map(|place| columns.get(place).unwrap_or(&POSITION))
    }

    /// The places of the identifying columns among all columns. The position, which is none of them, comes after the last one.
    pub(crate) fn identifying_places(&self, dialect: Dialect) -> Vec<usize> {
        let columns = self.columns(dialect);
        let place = |name: &&str| {
            let listed = columns.iter().position(|column| column.name == *name);
            listed.or((*name == POSITION.name).then_some(columns.len()))
        };
        self.identifier.iter().filter_map(place).collect()
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
