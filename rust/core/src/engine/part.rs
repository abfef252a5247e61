//! Parts of a file, each of which can be read by itself: for readers that work side by side.
//!
//! A part is a *nominal* stretch of what a format counts in (entries of an index or table of contents, chunks). It begins at the
//! first of them, within the stretch, in front of which one *stands*: checks at its own place, so that no state of a walk
//! that comes from the front reaches beyond it. It ends where another part may begin, at or behind the end of its stretch. So
//! neighbours agree on where one ends and the other begins without knowing of each other, and planning reads no records.
//! `docs/architecture.md` has the whole argument.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Budget, Eof, Format, Options};
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::source::Source;

/// How many parts for each thread are enough.
const PARTS_PER_THREAD: u64 = 8;

/// A part of a file that can be read by itself, from [`split`](crate::format::split): begin a walk with [`Start::Part`](super::Start::Part). The walks
/// of all parts together give each record and each range of the ledger that one walk of the whole file gives, once: but that
/// ranges of an index or table of contents are cut where parts meet.
///
/// As JSON it is opaque, no part of it is code, and it can be kept or sent elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub(crate) format: &'static Format,
    pub(crate) size: u64,
    pub(crate) bytes: u64,
    /// As JSON: of a large file there are many parts, and so it takes least.
    pub(crate) portion: Option<Box<str>>,
}

/// What a format makes of a part: about how many bytes it has, and what the walk needs to know.
pub(crate) struct Portion {
    pub(crate) bytes: u64,
    pub(crate) json: Box<str>,
}

impl Portion {
    pub(crate) fn new(bytes: u64, portion: impl Serialize) -> Self {
        Self {
            bytes,
            // A struct of numbers always has a JSON form.
            json: text(&serde_json::to_value(portion).unwrap_or_default()),
        }
    }
}

/// The same text for the same value: its members are sorted.
pub(crate) fn text(value: &Value) -> Box<str> {
    value.to_string().into()
}

impl Part {
    pub(crate) const fn whole(format: &'static Format, size: u64) -> Self {
        Self {
            format,
            size,
            bytes: size,
            portion: None,
        }
    }

    /// About how many bytes of the file are read for it: what to go by when parts are shared out.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is the whole file.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.portion.is_none()
    }

    /// Refuses a part of another file, as far as its length and format tell.
    pub(crate) fn check(
        &self,
        format: &Format,
        source: &dyn Source,
        options: &Options,
    ) -> Result<()> {
        if self.format != format || self.size != source.len() {
            return Err(Error::Usage(format!(
                "{}: this is a part of another file, or the file has changed since it was split: the part is of a {} file of {} \
                 bytes, this is a {} file of {} bytes. Split it again",
                crate::error::name(&source.path().map(Path::to_path_buf)),
                self.format.name,
                self.size,
                format.name,
                source.len()
            )));
        }
        if self.is_whole() {
            return Ok(());
        }
        if format.split.is_none() {
            return Err(Error::Usage(format!("{} files have no parts", format.name)));
        }
        if options.eof == Eof::Growing {
            return Err(Error::Usage(
                "a file that is still growing cannot be read in parts".to_owned(),
            ));
        }
        Ok(())
    }

    /// What the format made of it.
    pub(crate) fn portion<T: DeserializeOwned>(&self) -> Result<T> {
        let portion = self.portion.as_deref().unwrap_or("null");
        serde_json::from_str(portion).map_err(|error| {
            Error::Usage(format!(
                "this is not a part of a {} file: {error}",
                self.format.name
            ))
        })
    }
}

/// How large parts are to be for so many threads to end at about the same time: between these bounds, but that there are never
/// very many.
pub(crate) fn part_bytes(least: u64, most: u64, size: u64, threads: usize) -> u64 {
    (size / PARTS_PER_THREAD.saturating_mul(threads.max(1) as u64))
        .clamp(least, most)
        .max(size.div_ceil(LIMITS.max_parts))
}

/// A part whose end cannot be told as the whole walk would.
pub(crate) fn inseparable(path: Option<&Path>, why: &str) -> Error {
    let name = crate::error::name(&path.map(Path::to_path_buf));
    Error::Usage(format!(
        "{name}: a part of this file cannot be read by itself: {why}. Read the file whole, with one thread"
    ))
}

/// Refuses a part of `bytes` bytes, in a file of `len` bytes, in which more was hashed in vain than is its share: the walk of the
/// whole may have ended a search in it or behind it.
///
/// # Errors
/// [`Error::Usage`].
pub(crate) fn check_share(path: Option<&Path>, budget: Budget, bytes: u64, len: u64) -> Result<()> {
    let Some(share) = budget.exceeded_share(bytes, len) else {
        return Ok(());
    };
    Err(inseparable(
        path,
        &format!(
            "to tell its damage takes {} bytes hashed in vain, of which {share} are the share of a part of this size",
            budget.peak()
        ),
    ))
}

/// A part in which the search budget of the whole file was exhausted.
pub(crate) fn exhausted(path: Option<&Path>) -> Error {
    inseparable(
        path,
        "to tell its damage takes more than may be hashed in vain",
    )
}

/// A part that was made when the file was another.
pub(crate) fn another_file(path: Option<&Path>) -> Error {
    let name = crate::error::name(&path.map(Path::to_path_buf));
    Error::Usage(format!(
        "{name}: this is a part of another file, or the file has changed since it was split. Split it again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_enough_for_all_threads_but_never_very_many() {
        assert_eq!(part_bytes(1, 1 << 30, 48 << 20, 2), 3 << 20);
        assert_eq!(part_bytes(4 << 20, 8 << 20, 48 << 20, 2), 4 << 20);
        assert_eq!(part_bytes(1, 1 << 20, 48 << 20, 2), 1 << 20);
        for size in [u64::MAX, 1 << 50, 1 << 30] {
            assert!(size / part_bytes(1, 1, size, 1) <= LIMITS.max_parts);
        }
    }
}
