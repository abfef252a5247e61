//! Options that a format declares: one that concerns only some formats has its name, kind and default in their tables, and nowhere
//! else.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// An option for reading or writing files of a format, as the format's table declares it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormatOption {
    /// The name that callers use.
    pub name: &'static str,
    /// Which values it takes.
    pub kind: OptionKind,
    /// What it does, in a sentence.
    pub about: &'static str,
}

/// Which values a [`FormatOption`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// Yes or no.
    Flag {
        /// What it is unless it is set.
        default: bool,
    },
    /// A whole number.
    Number {
        /// What it is unless it is set.
        default: i64,
        /// The least that it may be.
        least: i64,
        /// The most that it may be.
        most: i64,
    },
    /// A number of bytes.
    Bytes {
        /// What it is unless it is set.
        default: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// One of these names: the first unless it is set. The field of the options that is called like it has it.
    Name(&'static [&'static str]),
    /// Keys of checksums: [`Options::keys`](super::Options::keys) and [`WriteOptions::key`](super::WriteOptions::key).
    Key,
    /// Where an index beside the file is: [`Options::index`](super::Options::index).
    Index,
}

/// The value of an option that a format declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(i64),
}

impl From<bool> for Setting {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Setting {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Setting {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u16> for Setting {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Setting {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Setting {
    /// A number beyond 2^63-1 is as good as that: no file is larger.
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Setting {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

/// The key of the checksums.
pub(crate) const KEY: FormatOption = FormatOption {
    name: "key",
    kind: OptionKind::Key,
    about: "the key of the checksums",
};

/// Of formats that are appended to.
pub(crate) const APPENDS: FormatOption = if_exists(&["error", "append"]);

/// Of formats that are written whole.
pub(crate) const OVERWRITES: FormatOption = if_exists(&["error", "overwrite"]);

const fn if_exists(choices: &'static [&'static str]) -> FormatOption {
    FormatOption {
        name: "if_exists",
        kind: OptionKind::Name(choices),
        about: "what is done with a file that exists already",
    }
}

/// Of formats that are appended to.
pub(crate) const ZERO_TORN_TAIL: FormatOption = FormatOption::flag(
    "zero_torn_tail",
    false,
    "whether a torn tail of an existing file is cleared away, instead of being an error",
);

impl FormatOption {
    pub(crate) const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        let kind = OptionKind::Flag { default };
        Self { name, kind, about }
    }

    pub(crate) const fn bytes(
        name: &'static str,
        default: u64,
        [least, most]: [u64; 2],
        about: &'static str,
    ) -> Self {
        let kind = OptionKind::Bytes {
            default,
            least,
            most,
        };
        Self { name, kind, about }
    }

    pub(crate) const fn number(
        name: &'static str,
        default: i64,
        [least, most]: [i64; 2],
        about: &'static str,
    ) -> Self {
        let kind = OptionKind::Number {
            default,
            least,
            most,
        };
        Self { name, kind, about }
    }

    /// Refuses a value that the option does not take.
    fn check(&self, value: Setting) -> Result<()> {
        let name = self.name;
        let expected = match (self.kind, value) {
            (OptionKind::Flag { .. }, Setting::Flag(_)) => return Ok(()),
            (OptionKind::Number { least, most, .. }, Setting::Number(number)) => {
                if (least..=most).contains(&number) {
                    return Ok(());
                }
                format!("{name} is {number}: it is {least} to {most}")
            }
            (OptionKind::Bytes { least, most, .. }, Setting::Number(number)) => {
                if u64::try_from(number).is_ok_and(|bytes| (least..=most).contains(&bytes)) {
                    return Ok(());
                }
                let end = if most == u64::MAX {
                    format!("at least {least}")
                } else {
                    format!("{least} to {most}")
                };
                format!("{name} is {number}: it is {end}, in bytes")
            }
            (OptionKind::Flag { .. }, _) => format!("{name} is a number: it is true or false"),
            (OptionKind::Number { .. } | OptionKind::Bytes { .. }, _) => {
                format!("{name} is true or false: it is a number")
            }
            (OptionKind::Name(_) | OptionKind::Key | OptionKind::Index, _) => {
                format!("{name} is an option of its own: it is not set by name")
            }
        };
        Err(Error::Usage(expected))
    }
}

/// The values that were set, of options that formats declare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Vec<(Cow<'static, str>, Setting)>);

impl Settings {
    pub(crate) fn set(&mut self, name: Cow<'static, str>, value: Setting) {
        self.0.retain(|(own, _)| *own != name);
        self.0.push((name, value));
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// The names of what was set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Refuses values that options of these do not take. Others are passed over.
    pub(crate) fn check(&self, declared: &[FormatOption]) -> Result<()> {
        for (name, value) in &self.0 {
            if let Some(option) = declared.iter().find(|option| option.name == *name) {
                option.check(*value)?;
            }
        }
        Ok(())
    }

    fn get(&self, option: &FormatOption) -> Option<Setting> {
        let own = self.0.iter().find(|(name, _)| *name == option.name);
        own.map(|(_, value)| *value)
    }

    /// The value of an option that is yes or no.
    pub(crate) fn flag(&self, option: &FormatOption) -> bool {
        match (self.get(option), option.kind) {
            (Some(Setting::Flag(flag)), _) => flag,
            (_, OptionKind::Flag { default }) => default,
            _ => false,
        }
    }

    /// The value of an option that is a number.
    pub(crate) fn number(&self, option: &FormatOption) -> i64 {
        match (self.get(option), option.kind) {
            (Some(Setting::Number(number)), _) => number,
            (_, OptionKind::Number { default, .. }) => default,
            _ => 0,
        }
    }

    /// The value of an option that is a number of bytes.
    pub(crate) fn bytes(&self, option: &FormatOption) -> u64 {
        match (self.get(option), option.kind) {
            (Some(Setting::Number(bytes)), _) => bytes.unsigned_abs(),
            (_, OptionKind::Bytes { default, .. }) => default,
            _ => 0,
        }
    }
}
