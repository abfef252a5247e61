//! The filter: which records a walk emits, as conditions on columns, among them patterns of SQL's `LIKE`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Applied, Spec};
use crate::error::{Error, Result};
use crate::record::{Column, ColumnKind, Scalar, Value};
use crate::uuid6;

/// Chooses records: those that meet all conditions. Each condition is on one column. An empty filter lets all records
/// through.
///
/// A null meets no condition but [`is_null`](Self::is_null). Records that the filter leaves out are still verified and in the ledger, up to where no
/// matching record can follow. [`Options::prune`](crate::walk::Options::prune) changes that.
///
/// Values are compared in the column's form: UUIDs and texts by their bytes, times in microseconds since 1970-01-01
/// UTC.
///
/// ```
/// use seglake::format::Filter;
///
/// let start = 1_700_000_000_000_000_i64;
/// let orders_of_an_hour = Filter::default()
///     .at_least("timestamp", start)
///     .below("timestamp", start + 3_600_000_000)
///     .among("type", ["order", "refund"]);
/// # assert!(!orders_of_an_hour.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<Condition>);

/// A condition on a record's value in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    column: Cow<'static, str>,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    AtLeast(Scalar),
    Below(Scalar),
    /// One of these values, which ascend.
    Among(Vec<Scalar>),
    /// None of these values, which ascend.
    NotAmong(Vec<Scalar>),
    /// Text that matches this pattern.
    Like(Scalar),
    /// Text that does not.
    NotLike(Scalar),
    Null,
}

impl Test {
    fn is_met(&self, value: &Value<'_>) -> bool {
        let is_one_of = |values: &[Scalar]| {
            values
                .binary_search_by(|listed| listed.compare(value).unwrap_or(Ordering::Less))
                .is_ok()
        };
        let is_like = |pattern: &Scalar| match (pattern, value) {
            (Scalar::Text(pattern), Value::Text(bytes)) => Some(is_like(bytes, pattern, true)),
            (Scalar::Text(pattern), Value::Binary(bytes)) => Some(is_like(bytes, pattern, false)),
            _ => None,
        };
        match self {
            Self::AtLeast(least) => least.compare(value).is_some_and(Ordering::is_le),
            Self::Below(end) => end.compare(value).is_some_and(Ordering::is_gt),
            Self::Among(values) => is_one_of(values),
            Self::NotAmong(values) => *value != Value::Null && !is_one_of(values),
            Self::Like(pattern) => is_like(pattern) == Some(true),
            Self::NotLike(pattern) => is_like(pattern) == Some(false),
            Self::Null => *value == Value::Null,
        }
    }

    /// The values to compare with.
    fn values(&self) -> &[Scalar] {
        match self {
            Self::AtLeast(value)
            | Self::Below(value)
            | Self::Like(value)
            | Self::NotLike(value) => std::slice::from_ref(value),
            Self::Among(values) | Self::NotAmong(values) => values,
            Self::Null => &[],
        }
    }

    const fn is_applied(&self, applied: Applied) -> bool {
        match self {
            Self::AtLeast(_) | Self::Below(_) => matches!(applied, Applied::Range),
            Self::Among(_) => matches!(applied, Applied::Among),
            Self::NotAmong(_) | Self::Like(_) | Self::NotLike(_) | Self::Null => false,
        }
    }
}

impl Filter {
    /// Adds a condition: the column's value is `value` or greater.
    #[must_use]
    pub fn at_least(self, column: impl Into<Cow<'static, str>>, value: impl Into<Scalar>) -> Self {
        self.and(column, Test::AtLeast(value.into()))
    }

    /// Adds a condition: the column's value is greater than `value`.
    #[must_use]
    pub fn above(self, column: impl Into<Cow<'static, str>>, value: impl Into<Scalar>) -> Self {
        let test = value.into().next().map(Test::AtLeast);
        self.and(column, test.unwrap_or(Test::Among(Vec::new())))
    }

    /// Adds a condition: the column's value is less than `value`.
    #[must_use]
    pub fn below(self, column: impl Into<Cow<'static, str>>, value: impl Into<Scalar>) -> Self {
        self.and(column, Test::Below(value.into()))
    }

    /// Adds a condition: the column's value is `value` or less.
    #[must_use]
    pub fn at_most(self, column: impl Into<Cow<'static, str>>, value: impl Into<Scalar>) -> Self {
        let test = value.into().next().map(Test::Below);
        self.and(column, test.unwrap_or(Test::NotAmong(Vec::new())))
    }

    /// Adds a condition: the column's value is one of `values`. Without any, no record matches.
    #[must_use]
    pub fn among<V: Into<Scalar>>(
        self,
        column: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.and(column, Test::Among(sorted(values)))
    }

    /// Adds a condition: the column's value is none of `values`.
    #[must_use]
    pub fn not_among<V: Into<Scalar>>(
        self,
        column: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.and(column, Test::NotAmong(sorted(values)))
    }

    /// Adds a condition: the column's text or bytes match a pattern of SQL's `LIKE`.
    ///
    /// `%` stands for any bytes, `_` for one character of text, or for one byte where there is no UTF-8, or no text. `\%`, `\_` and `\\` stand
    /// for `%`, `_` and `\`, and `\xNN` for a byte.
    #[must_use]
    pub fn like(self, column: impl Into<Cow<'static, str>>, pattern: impl Into<Vec<u8>>) -> Self {
        self.and(column, Test::Like(Scalar::Text(pattern.into())))
    }

    /// Adds a condition: the column's text or bytes do not match a pattern, as in [`like`](Self::like).
    #[must_use]
    pub fn not_like(
        self,
        column: impl Into<Cow<'static, str>>,
        pattern: impl Into<Vec<u8>>,
    ) -> Self {
        self.and(column, Test::NotLike(Scalar::Text(pattern.into())))
    }

    /// Adds a condition: the column's value is null.
    #[must_use]
    pub fn is_null(self, column: impl Into<Cow<'static, str>>) -> Self {
        self.and(column, Test::Null)
    }

    /// Adds a condition: the column's value is not null.
    #[must_use]
    pub fn is_not_null(self, column: impl Into<Cow<'static, str>>) -> Self {
        self.and(column, Test::NotAmong(Vec::new()))
    }

    fn and(mut self, column: impl Into<Cow<'static, str>>, test: Test) -> Self {
        let column = column.into();
        self.0.push(Condition { column, test });
        self
    }

    /// This, and all conditions of another filter.
    #[must_use]
    pub fn both(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Whether the filter lets all records through.
    #[doc(hidden)] // public for tests
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the conditions contradict each other, so that no record of any file can meet them. Considers conditions
    /// on one column, and those on a UUID and its time.
    #[doc(hidden)] // public for tests
    #[must_use]
    pub fn is_contradictory(&self) -> bool {
        // Records without UUIDs have times before all times of UUIDs.
        let by_uuid = self.least("uuid").or(self.end("uuid")).is_some();
        by_uuid && UuidBounds::of(self).is_empty()
            || self.0.iter().any(|condition| {
                let column = &*condition.column;
                let is_nothing = |among: Vec<&Scalar>| {
                    let (least, end) = (self.least(column), self.end(column));
                    let is_within = |value: &&Scalar| {
                        least.as_ref().is_none_or(|least| **value >= *least)
                            && end.as_ref().is_none_or(|end| **value < *end)
                    };
                    !among.iter().any(is_within)
                };
                let range = self.least(column).zip(self.end(column));
                range.is_some_and(|(least, end)| least >= end)
                    || self.those_among(column).is_some_and(is_nothing)
            })
    }

    /// The lower bound of this column: every matching record's value is at least this.
    pub(crate) fn least(&self, column: &str) -> Option<Scalar> {
        let bounds = self.tests(column).filter_map(|test| match test {
            Test::AtLeast(value) => Some(value),
            Test::Among(values) => values.first(),
            _ => None,
        });
        bounds.max().cloned()
    }

    /// The upper bound of this column: every matching record's value is less than this.
    pub(crate) fn end(&self, column: &str) -> Option<Scalar> {
        let bounds = self.tests(column).filter_map(|test| match test {
            Test::Below(value) => Some(value.clone()),
            Test::Among(values) => values.last()?.clone().next(),
            _ => None,
        });
        bounds.min()
    }

    /// The values that this column may have, if they are listed.
    pub(crate) fn those_among(&self, column: &str) -> Option<Vec<&Scalar>> {
        let mut lists = self.tests(column).filter_map(|test| match test {
            Test::Among(values) => Some(values),
            _ => None,
        });
        let first: Vec<_> = lists.next()?.iter().collect();
        Some(lists.fold(first, |mut left, next| {
            left.retain(|value| next.binary_search(value).is_ok());
            left
        }))
    }

    /// Whether this value of the column is in all lists of those that it may have.
    pub(crate) fn is_listed(&self, column: &str, value: &Value<'_>) -> bool {
        let mut tests = self.tests(column);
        tests.all(|test| !matches!(test, Test::Among(_)) || test.is_met(value))
    }

    /// Whether this value of the column meets all conditions on it.
    pub(crate) fn is_met_by(&self, column: &str, value: &Value<'_>) -> bool {
        self.tests(column).all(|test| test.is_met(value))
    }

    fn tests<'a>(&'a self, column: &str) -> impl Iterator<Item = &'a Test> {
        let conditions = self.0.iter();
        let conditions = conditions.filter(move |condition| condition.column == *column);
        conditions.map(|condition| &condition.test)
    }

    /// The conditions that a walk of this format does not apply by itself.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub(crate) fn rest(&self, format: &Spec, columns: &[Column]) -> Result<Tests> {
        self.tests_of(format, columns, |condition| {
            !format.applies.iter().any(|(column, applied)| {
                condition.column == *column && condition.test.is_applied(*applied)
            })
        })
    }

    /// All conditions, to be applied to values.
    ///
    /// # Errors
    /// [`Error::Usage`] for conditions that records of these columns cannot meet: an unknown column, or a value of another kind.
    pub(crate) fn all(&self, format: &Spec, columns: &[Column]) -> Result<Tests> {
        self.tests_of(format, columns, |_| true)
    }

    fn tests_of(
        &self,
        format: &Spec,
        columns: &[Column],
        is_left: impl Fn(&Condition) -> bool,
    ) -> Result<Tests> {
        let mut tests = Vec::new();
        for condition in &self.0 {
            let place = condition.place(format, columns)?;
            if is_left(condition) {
                tests.push((place, condition.test.clone()));
            }
        }
        Ok(Tests(tests))
    }
}

impl Condition {
    /// The place of the condition's column in `columns`.
    fn place(&self, format: &Spec, columns: &[Column]) -> Result<usize> {
        let Self { column, test } = self;
        let mut places = columns.iter().enumerate();
        let Some((place, found)) = places.find(|(_, found)| found.name == *column) else {
            let names: Vec<_> = columns.iter().map(|column| column.name).collect();
            return Err(Error::Usage(format!(
                "cannot filter {} records by {column}: they have no such column, only {}",
                format.name,
                names.join(", ")
            )));
        };
        if matches!(found.kind, ColumnKind::List(_) | ColumnKind::Struct(_)) {
            return Err(Error::Usage(format!(
                "cannot filter by {column}: a {} has no order. Filter by another column",
                found.kind.as_str()
            )));
        }
        if let Some(value) = test.values().iter().find(|value| !value.is_of(found.kind)) {
            return Err(Error::Usage(format!(
                "cannot filter by {column}: expected a value of the kind {}, found {value}",
                found.kind.as_str()
            )));
        }
        Ok(place)
    }
}

fn sorted<V: Into<Scalar>>(values: impl IntoIterator<Item = V>) -> Vec<Scalar> {
    let mut values: Vec<_> = values.into_iter().map(Into::into).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Conditions, each with the place of its column.
#[derive(Clone, Debug)]
pub(crate) struct Tests(Vec<(usize, Test)>);

impl Tests {
    /// Whether there are no conditions, so that all records meet them.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the conditions need a walk that reads bodies. Without bodies, values may read as empty and long tenant
    /// IDs as null.
    pub(crate) fn needs_values(&self, columns: &[Column]) -> bool {
        let is_body = |(place, _): &(usize, Test)| {
            columns
                .get(*place)
                .is_some_and(|column| matches!(column.kind, ColumnKind::Binary | ColumnKind::Text))
        };
        self.0.iter().any(is_body)
    }

    /// Whether a record with these values meets them.
    pub(crate) fn is_met<'a>(&self, value: impl Fn(usize) -> Value<'a>) -> bool {
        self.0
            .iter()
            .all(|(place, test)| test.is_met(&value(*place)))
    }
}

/// The conditions on `uuid` and `timestamp`, as bounds on UUIDs. For records whose time is that of their version-6
/// UUID. UUIDs are compared as bytes, which compares their times first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UuidBounds {
    since: Option<[u8; 16]>,
    until: Option<[u8; 16]>,
}

impl UuidBounds {
    pub(crate) fn of(filter: &Filter) -> Self {
        let uuid = |bound: Option<Scalar>| match bound {
            Some(Scalar::Uuid(uuid)) => Some(uuid),
            _ => None,
        };
        // 60 bits hold a UUID's time. For a time after the last of them, no UUID is at or after it and all are before
        // it.
        let time = |bound: Option<Scalar>| match bound {
            Some(Scalar::Integer(micros)) => Some(match i64::try_from(micros) {
                Ok(micros) => uuid6::lower_bound(micros).unwrap_or([0xff; 16]),
                Err(_) if micros < 0 => [0; 16],
                Err(_) => [0xff; 16],
            }),
            _ => None,
        };
        let since = [uuid(filter.least("uuid")), time(filter.least("timestamp"))];
        let until = [uuid(filter.end("uuid")), time(filter.end("timestamp"))];
        Self {
            since: since.into_iter().flatten().max(),
            until: until.into_iter().flatten().min(),
        }
    }

    /// The least UUID that matches, if there is one.
    pub(crate) const fn since(&self) -> Option<[u8; 16]> {
        self.since
    }

    /// Whether `uuid` is within the bounds.
    pub(crate) fn contains(&self, uuid: &[u8; 16]) -> bool {
        self.since.is_none_or(|since| *uuid >= since) && !self.is_past(uuid)
    }

    /// Whether `uuid` and all greater ones are past the bounds.
    pub(crate) fn is_past(&self, uuid: &[u8; 16]) -> bool {
        self.until.is_some_and(|until| *uuid >= until)
    }

    /// Whether no UUID is within the bounds.
    fn is_empty(&self) -> bool {
        self.is_past(&self.since.unwrap_or([0; 16]))
    }
}

/// The condition on `type`: tests whether a record's type is one of those listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types(Option<Box<[Vec<u8>]>>);

impl Types {
    pub(crate) fn of(filter: &Filter) -> Self {
        let bytes = |value: &Scalar| match value {
            Scalar::Text(bytes) => Some(bytes.clone()),
            _ => None,
        };
        let types = filter.those_among("type");
        Self(types.map(|types| types.into_iter().filter_map(bytes).collect()))
    }

    /// Whether all types match.
    pub(crate) const fn are_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this type matches.
    pub(crate) fn contain(&self, type_: &[u8]) -> bool {
        let is_among = |types: &[Vec<u8>]| {
            types
                .binary_search_by(|listed| listed.as_slice().cmp(type_))
                .is_ok()
        };
        self.0.as_deref().is_none_or(is_among)
    }
}

/// What a pattern begins with.
enum Token {
    /// `%`: any bytes.
    Any,
    /// `_`: one character.
    One,
    Byte(u8),
}

/// Whether all of `value` matches `pattern`: `%` stands for any bytes, also none, `_` for one character of text, or for one byte
/// where there is no UTF-8, or no text. `\%`, `\_` and `\\` stand for themselves, `\xNN` for a byte.
fn is_like(mut value: &[u8], mut pattern: &[u8], is_text: bool) -> bool {
    let one = |value| if is_text { character_len(value) } else { 1 };
    // What the last `%` has not taken yet, and the pattern after it.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let left = match token(pattern) {
            Some((Token::Any, [])) => return true,
            Some((Token::Any, rest)) => {
                again = Some((value, rest));
                Some((value, rest))
            }
            Some((Token::One, rest)) => value.get(one(value)..).map(|after| (after, rest)),
            Some((Token::Byte(byte), rest)) => match value {
                [first, after @ ..] if *first == byte => Some((after, rest)),
                _ => None,
            },
            None if value.is_empty() => return true,
            None => None,
        };
        (value, pattern) = match (left, again) {
            (Some(left), _) => left,
            (None, Some((untaken @ [_, ..], rest))) => {
                // `%` takes no part of a character that `_` would take the rest of.
                let taken = match token(rest) {
                    Some((Token::One, _)) => one(untaken),
                    _ => 1,
                };
                let after = untaken.get(taken..).unwrap_or_default();
                again = Some((after, rest));
                (after, rest)
            }
            _ => return false,
        };
    }
}

/// The first token of a pattern, and what follows it.
fn token(pattern: &[u8]) -> Option<(Token, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    if let [b'\\', b'x', high, low, rest @ ..] = pattern
        && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        && let Ok(byte) = u8::try_from(high * 16 + low)
    {
        return Some((Token::Byte(byte), rest));
    }
    Some(match pattern {
        [b'%', rest @ ..] => (Token::Any, rest),
        [b'_', rest @ ..] => (Token::One, rest),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Token::Byte(*byte), rest),
        [] => return None,
    })
}

/// The length of the first character in bytes; 1 if there is none.
fn character_len(value: &[u8]) -> usize {
    const LONGEST: usize = 4;
    let start = value.get(..LONGEST).unwrap_or(value);
    let valid = start.utf8_chunks().next().map(|chunk| chunk.valid());
    let first = valid.and_then(|valid| valid.chars().next());
    first.map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_values() {
        for (value, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("a", "", false),
            ("order.paid", "order.%", true),
            ("order.paid", "order", false),
            ("order.paid", "%paid", true),
            ("order.paid", "%.%", true),
            ("order.paid", "o%r%d", true),
            ("order.paid", "o%r%x", false),
            ("aab", "%ab", true),
            ("aaab", "a%ab_", false),
            ("abcbc", "%b_", true),
            ("Order", "order", false),
            ("é", "_", true),
            ("é", "__", false),
            ("aé€b", "a__b", true),
            ("€", "%__", false),
            ("a€", "%__", true),
            ("😀", "%___", false),
            ("100%", r"100\%", true),
            ("1000", r"100\%", false),
            ("a_b", r"a\_b", true),
            ("axb", r"a\_b", false),
            (r"a\b", r"a\\b", true),
            (r"a\b", r"a\x5cb", true),
            (r"a\", r"a\", true),
            ("xy", r"\xy", true),
        ] {
            assert_eq!(
                is_like(value.as_bytes(), pattern.as_bytes(), true),
                expected,
                "{value} {pattern}"
            );
        }
        assert!(is_like(b"a\xffb", br"a\xffb", true));
        assert!(is_like(b"a\xffb", b"a_b", true));
        assert!(is_like("é".as_bytes(), b"__", false));
        assert!(!is_like("é".as_bytes(), b"_", false));
        assert!(is_like(b"\xc3\xa9", br"%\xa9", true));
    }
}
