//! Parts of a file, each of which can be read by itself, for readers in parallel.
//!
//! A part is a *nominal* range of a format's units: entries of an index or table of contents, or chunks.
//! - It begins at the first unit of its range whose predecessor is verified at its own place. So no state of a walk
//!   from the front reaches into it.
//! - It ends before the first unit at or past the end of its range at which another part may begin.
//!
//! So neighbours agree on their common boundary without knowing of each other, and planning reads no records.
//! `docs/architecture.md` has the whole argument.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Budget;
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::spec::Spec;

/// How many parts to make for each thread.
const PARTS_PER_THREAD: u64 = 8;

/// A part of a file that can be read by itself, from [`split`](crate::format::split). Begin a walk with
/// [`Start::Part`](crate::engine::Start::Part). The walks of all parts together return each record, and each range of the
/// ledger, once, as one walk of the whole file does. Only ranges of an index or table of contents are cut where parts
/// meet.
///
/// As JSON it is opaque, contains no code, and can be stored or sent to another machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub(crate) format: &'static Spec,
    pub(crate) size: u64,
    pub(crate) bytes: u64,
    /// The format's own description, as JSON: the form that takes least memory, since a large file has many parts.
    pub(crate) plan: Option<Box<str>>,
}

/// A format's description of a part: its approximate size in bytes, and what the walk needs to know.
pub(crate) struct PlannedPart {
    pub(crate) bytes: u64,
    pub(crate) json: Box<str>,
}

impl PlannedPart {
    pub(crate) fn new(bytes: u64, plan: impl Serialize) -> Self {
        Self {
            bytes,
            json: text(&serde_json::to_value(plan).or_bug_default("a plan with a JSON form")),
        }
    }
}

/// A JSON text that is the same for equal values: members are sorted.
pub(crate) fn text(value: &Value) -> Box<str> {
    value.to_string().into()
}

impl Part {
    pub(crate) const fn whole(format: &'static Spec, size: u64) -> Self {
        Self {
            format,
            size,
            bytes: size,
            plan: None,
        }
    }

    /// Approximately how many bytes of the file are read for it. Use it to distribute parts evenly.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is the whole file.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.plan.is_none()
    }

    /// The format's description of the part.
    pub(crate) fn plan<T: DeserializeOwned>(&self) -> Result<T> {
        let plan = self.plan.as_deref().unwrap_or("null");
        serde_json::from_str(plan).map_err(|error| {
            Error::Usage(format!(
                "this is not a part of a {} file: {error}. Split the file again",
                self.format.name
            ))
        })
    }
}

/// The size of parts that lets so many threads end at about the same time: within these bounds, and with a bounded
/// number of parts.
pub(crate) fn part_bytes(least: u64, most: u64, size: u64, threads: usize) -> u64 {
    (size / PARTS_PER_THREAD.saturating_mul(threads.max(1) as u64))
        .clamp(least, most)
        .max(size.div_ceil(LIMITS.max_parts))
}

/// The error for a part that cannot be read exactly as a walk of the whole file would read it.
pub(crate) fn inseparable(path: Option<&Path>, why: &str) -> Error {
    let name = crate::error::name(&path.map(Path::to_path_buf));
    Error::Usage(format!(
        "{name}: a part of this file cannot be read by itself: {why}. Read the whole file with one thread"
    ))
}

/// Refuses a part of `bytes` bytes, in a file of `len` bytes, that exceeded its share of the search budget: a walk of
/// the whole file may have ended a search in this part or after it. The budgets are those before any part, and at the end of this one.
///
/// # Errors
/// [`Error::Usage`].
pub(crate) fn check_share(
    path: Option<&Path>,
    (before, budget): (Budget, Budget),
    bytes: u64,
    len: u64,
) -> Result<()> {
    let Some(share) = budget.exceeded_share(before, bytes, len) else {
        return Ok(());
    };
    Err(inseparable(
        path,
        &format!(
            "attributing its damage may take {} bytes hashed without success, and the share of a part of this size is \
             {share}",
            budget.peak()
        ),
    ))
}

/// The error for a part in which the search budget of the whole file was exhausted.
pub(crate) fn exhausted(path: Option<&Path>) -> Error {
    inseparable(
        path,
        "attributing its damage exceeds the search budget of the whole file",
    )
}

/// The error for a part that was made before the file changed.
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
