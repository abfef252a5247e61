//! Broken invariants: states that no file, disk or caller can cause, only a mistake in seglake itself.
//!
//! Builds with debug assertions panic, so that tests and fuzzing see it. Other builds return
//! [`Error::Bug`](crate::Error::Bug). A default value would hide the mistake and could return a wrong record.
//!
//! States that a file can cause by changing during a read are [`Error::changed`](crate::Error) instead.

use std::fmt;

use crate::error::{Bug, Result};

/// Takes out a value that is always present, unless there is a bug in seglake.
///
/// `expected` names the value: the message reads `expected a checksum for each record`.
#[doc(hidden)] // public for the Python extension
pub trait OrBug<T>: Sized {
    /// The value.
    ///
    /// # Errors
    /// [`Error::Bug`].
    fn or_bug(self, expected: &'static str) -> Result<T>;

    /// The value, or `instead` if no error can be returned and a wrong result does no harm; the calling code says why.
    /// Without debug assertions this is `unwrap_or`, so hot loops pay nothing for it.
    fn or_bug_value(self, expected: &'static str, instead: T) -> T;

    /// As [`or_bug_value`](Self::or_bug_value), with the type's default value.
    #[inline(always)]
    #[track_caller]
    fn or_bug_default(self, expected: &'static str) -> T
    where
        T: Default,
    {
        self.or_bug_value(expected, T::default())
    }
}

impl<T> OrBug<T> for Option<T> {
    #[inline]
    #[track_caller]
    fn or_bug(self, expected: &'static str) -> Result<T> {
        match self {
            Some(value) => Ok(value),
            None => Err(Bug::error(expected, None)),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn or_bug_value(self, expected: &'static str, instead: T) -> T {
        if cfg!(debug_assertions) && self.is_none() {
            Bug::error(expected, None);
        }
        self.unwrap_or(instead)
    }
}

impl<T, E: fmt::Display> OrBug<T> for std::result::Result<T, E> {
    #[inline]
    #[track_caller]
    fn or_bug(self, expected: &'static str) -> Result<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(Bug::error(expected, Some(error.to_string()))),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn or_bug_value(self, expected: &'static str, instead: T) -> T {
        self.ok().or_bug_value(expected, instead)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::error::Error;

    const EXPECTED: &str = "a hash for each record";

    #[track_caller]
    fn made(found: Option<&str>) -> Bug {
        Bug {
            expected: EXPECTED,
            found: found.map(str::to_owned),
            at: Location::caller(),
        }
    }

    #[test]
    fn what_is_there_is_taken_out() {
        assert_eq!(Some(1).or_bug(EXPECTED).unwrap(), 1);
        assert_eq!(Some(1).or_bug_value(EXPECTED, 2), 1);
        assert_eq!(Some(1).or_bug_default(EXPECTED), 1);
        let found: std::result::Result<_, &str> = Ok(1);
        assert_eq!(found.or_bug(EXPECTED).unwrap(), 1);
        assert_eq!(found.or_bug_value(EXPECTED, 2), 1);
        assert_eq!(found.or_bug_default(EXPECTED), 1);
    }

    #[test]
    fn the_message_says_what_where_and_what_to_do() {
        let line = line!() + 1;
        let bug = made(Some("none of\u{1b} them"));
        let place = format!("bug.rs:{line}): expected a hash for each record, ");
        let error = Error::Bug(bug).to_string();
        assert!(error.starts_with("a bug in seglake ("), "{error}");
        assert!(error.contains(&place), "{error}");
        assert!(error.contains(r"found none of\x1b them. No"), "{error}");
        assert!(error.contains("No file that was read has been changed"));
        assert!(error.contains("Please report this message"));
        let error = Error::Bug(made(None)).to_string();
        assert!(error.contains("expected a hash for each record. No"));
    }

    /// Takes out a value that is missing.
    type Miss = fn() -> Result<i32>;

    /// Each way to take out a missing value, and its result in builds that do not panic.
    fn each_miss() -> [(Miss, Option<i32>); 6] {
        fn none() -> Option<i32> {
            None
        }
        fn failed() -> std::result::Result<i32, &'static str> {
            Err("another")
        }
        [
            (|| none().or_bug(EXPECTED), None),
            (|| Ok(none().or_bug_value(EXPECTED, 2)), Some(2)),
            (|| Ok(none().or_bug_default(EXPECTED)), Some(0)),
            (|| failed().or_bug(EXPECTED), None),
            (|| Ok(failed().or_bug_value(EXPECTED, 2)), Some(2)),
            (|| Ok(failed().or_bug_default(EXPECTED)), Some(0)),
        ]
    }

    #[test]
    #[cfg(debug_assertions)]
    fn tests_and_fuzzing_panic() {
        for (miss, _) in each_miss() {
            let panic = std::panic::catch_unwind(miss).unwrap_err();
            let message = panic.downcast::<String>().unwrap();
            assert!(message.contains("expected a hash for each record"));
            assert!(message.contains("bug.rs:"), "{message}");
        }
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn other_builds_return_an_error() {
        for (miss, instead) in each_miss() {
            match (miss(), instead) {
                (given, Some(instead)) => assert_eq!(given.unwrap(), instead),
                (given, None) => assert!(
                    given
                        .unwrap_err()
                        .to_string()
                        .contains("a hash for each record")
                ),
            }
        }
    }
}
