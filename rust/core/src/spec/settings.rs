//! Options that formats declare. An option that only some formats have is defined in their tables alone: its name, kind
//! and default.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// An option for reading or writing files of a format, as the format's table declares it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormatOption {
    /// The name that callers use.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: OptionKind,
    /// A description in one sentence.
    pub about: &'static str,
}

/// The values that a [`FormatOption`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// Yes or no.
    Flag {
        /// The value if it is not set.
        default: bool,
    },
    /// A whole number.
    Number {
        /// The value if it is not set.
        default: i64,
        /// The smallest value.
        least: i64,
        /// The largest value.
        most: i64,
    },
    /// A number of bytes.
    Bytes {
        /// The value if it is not set.
        default: u64,
        /// The smallest value.
        least: u64,
        /// The largest value.
        most: u64,
    },
    /// One of these names. The default is the first. The value is the options' field of the same name.
    Name(&'static [&'static str]),
    /// Keys of checksums: [`Options::keys`](crate::walk::Options::keys) and [`WriteOptions::key`](crate::engine::WriteOptions::key).
    Key,
    /// Where an index beside the file is: [`Options::index`](crate::walk::Options::index).
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
    /// A number above 2^63-1 is reduced to 2^63-1: no file is larger.
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

/// For formats that are appended to.
pub(crate) const APPENDS: FormatOption = if_exists(&["error", "append"]);

/// For formats that are written whole.
pub(crate) const OVERWRITES: FormatOption = if_exists(&["error", "overwrite"]);

const fn if_exists(choices: &'static [&'static str]) -> FormatOption {
    FormatOption {
        name: "if_exists",
        kind: OptionKind::Name(choices),
        about: "what is done with a file that exists already",
    }
}

/// For formats that are appended to.
pub(crate) const ZERO_TORN_TAIL: FormatOption = FormatOption::flag(
    "zero_torn_tail",
    false,
    "clear a torn tail of an existing file; without it a torn tail is an error",
);

impl FormatOption {
    pub(crate) const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        let kind = OptionKind::Flag { default };
        Self { name, kind, about }
    }

    /// A number of bytes.
    #[doc(hidden)]
    #[must_use]
    pub const fn bytes(
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
    ///
    /// # Errors
    /// [`Error::Usage`].
    #[doc(hidden)]
    pub fn check(&self, value: Setting) -> Result<()> {
        let name = self.name;
        let expected = match (self.kind, value) {
            (OptionKind::Flag { .. }, Setting::Flag(_)) => return Ok(()),
            (OptionKind::Number { least, most, .. }, Setting::Number(number)) => {
                if (least..=most).contains(&number) {
                    return Ok(());
                }
                format!("{name} is {number}: expected {least} to {most}")
            }
            (OptionKind::Bytes { least, most, .. }, Setting::Number(number)) => {
                if u64::try_from(number).is_ok_and(|bytes| (least..=most).contains(&bytes)) {
                    return Ok(());
                }
                let end = if most >= i64::MAX.unsigned_abs() {
                    format!("at least {least}")
                } else {
                    format!("{least} to {most}")
                };
                format!("{name} is {number}: expected {end}, in bytes")
            }
            (OptionKind::Flag { .. }, _) => format!("{name} is a number: expected true or false"),
            (OptionKind::Number { .. } | OptionKind::Bytes { .. }, _) => {
                format!("{name} is true or false: expected a number")
            }
            (OptionKind::Name(_) | OptionKind::Key | OptionKind::Index, _) => {
                format!("{name} cannot be set by name: it has a field of its own")
            }
        };
        Err(Error::Usage(expected))
    }
}

/// The values that were set for options that formats declare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Vec<(Cow<'static, str>, Setting)>);

impl Settings {
    pub(crate) fn set(&mut self, name: Cow<'static, str>, value: Setting) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// The names of the options that were set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Refuses values that an option of `declared` does not take. Other options are ignored.
    pub(crate) fn check(&self, declared: &[FormatOption]) -> Result<()> {
        for (name, value) in &self.0 {
            if let Some(option) = declared.iter().find(|option| option.name == *name) {
                option.check(*value)?;
            }
        }
        Ok(())
    }

    fn get(&self, option: &FormatOption) -> Option<Setting> {
        let found = self.0.iter().find(|(name, _)| *name == option.name);
        found.map(|(_, value)| *value)
    }

    /// The value of a flag.
    pub(crate) fn flag(&self, option: &FormatOption) -> bool {
        match (self.get(option), option.kind) {
            (Some(Setting::Flag(flag)), _) => flag,
            (_, OptionKind::Flag { default }) => default,
            _ => false,
        }
    }

    /// The value of a number.
    pub(crate) fn number(&self, option: &FormatOption) -> i64 {
        match (self.get(option), option.kind) {
            (Some(Setting::Number(number)), _) => number,
            (_, OptionKind::Number { default, .. }) => default,
            _ => 0,
        }
    }

    /// The value of a number of bytes.
    pub(crate) fn bytes(&self, option: &FormatOption) -> u64 {
        match (self.get(option), option.kind) {
            (Some(Setting::Number(bytes)), _) => bytes.unsigned_abs(),
            (_, OptionKind::Bytes { default, .. }) => default,
            _ => 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::engine::{IfExists, WriteOptions};
    use crate::format::FORMATS;
    use crate::source::BytesSource;
    use crate::walk::Options;

    fn refused(result: Result<()>) -> String {
        match result {
            Err(Error::Usage(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_held_against_bounds() {
        let bytes = FormatOption::bytes("size", 5, [1, 10], "");
        let number = FormatOption::number("number", 0, [-1, 1], "");
        let flag = FormatOption::flag("flag", true, "");
        for (option, value, said) in [
            (
                bytes,
                Setting::from(0),
                "size is 0: expected 1 to 10, in bytes",
            ),
            (
                bytes,
                11_u64.into(),
                "size is 11: expected 1 to 10, in bytes",
            ),
            (bytes, (-1).into(), "size is -1: expected 1 to 10, in bytes"),
            (
                bytes,
                true.into(),
                "size is true or false: expected a number",
            ),
            (number, 2.into(), "number is 2: expected -1 to 1"),
            (
                number,
                u64::MAX.into(),
                "number is 9223372036854775807: expected -1 to 1",
            ),
            (flag, 1.into(), "flag is a number: expected true or false"),
            (
                KEY,
                1.into(),
                "key cannot be set by name: it has a field of its own",
            ),
        ] {
            assert_eq!(refused(option.check(value)), said);
        }
        let mut settings = Settings::default();
        assert_eq!((settings.bytes(&bytes), settings.flag(&flag)), (5, true));
        for value in [3, 10] {
            settings.set("size".into(), value.into());
        }
        settings.set("flag".into(), false.into());
        assert_eq!((settings.bytes(&bytes), settings.flag(&flag)), (10, false));
        assert_eq!(settings.names().collect::<Vec<_>>(), ["size", "flag"]);
        settings.check(&[bytes, number]).unwrap();
    }

    /// A name means the same in all formats, for reading and for writing: files of several formats are read with one
    /// set of options.
    #[test]
    fn a_name_has_one_kind() {
        let reading = FORMATS.iter().map(|format| format.open_options);
        let writing = FORMATS.iter().map(|format| format.create_options);
        for declared in [reading.collect::<Vec<_>>(), writing.collect()] {
            let all = declared.concat();
            for option in &all {
                let same = all.iter().filter(|other| other.name == option.name);
                for other in same.filter(|_| option.name != "if_exists") {
                    assert_eq!(other.kind, option.kind, "{}", option.name);
                }
                assert!(!option.about.is_empty());
            }
        }
    }

    #[test]
    fn what_does_not_concern_a_format_is_refused() {
        let source = BytesSource::new(Vec::new());
        for format in FORMATS {
            let options = Options::default().format(*format);
            let unknown = options.clone().set("nonsense", 1);
            let said = crate::format::resolve(&source, &unknown).map(drop);
            assert_eq!(refused(said), "nonsense is not an option for reading");
            // An option of another format is ignored.
            let others = options.set("lookup_table_bytes", 0);
            assert_eq!(crate::format::resolve(&source, &others).unwrap(), *format);

            let all = WriteOptions::default()
                .key(crate::checksum::Key::DEFAULT)
                .dialect(crate::spec::Dialect::Draft)
                .set("trailer", false)
                .set("version", 1)
                .set("level", 3)
                .set("preallocate", 9);
            let said = refused(all.check(format));
            assert!(said.contains(&format!("does not concern {} files", format.name)));
            all.concerning(format).check(format).unwrap();
            for if_exists in IfExists::ALL {
                let known = format.if_exists().contains(&if_exists.as_str());
                let checked = WriteOptions::default().if_exists(*if_exists).check(format);
                assert_eq!(checked.is_ok(), known);
            }
        }
    }

    #[cfg(feature = "chunked")]
    #[test]
    fn levels_are_those_of_zstd() {
        let options = crate::format::chunked::FORMAT.create_options.iter();
        let level = options
            .clone()
            .find(|option| option.name == "level")
            .unwrap();
        let range = zstd::compression_level_range();
        let (least, most) = ((*range.start()).into(), (*range.end()).into());
        assert_eq!(
            level.kind,
            OptionKind::Number {
                default: 1,
                least,
                most
            }
        );
    }
}
