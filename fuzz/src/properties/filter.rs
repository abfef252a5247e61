//! Draws filters by any columns, and decides by the rule itself which records match.

use seglake::format::{Column, ColumnKind, Filter, Options, Scalar};

use super::Draw;
use super::scan::{Plain, Record, Scan};

/// A filter and its meaning.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) filter: Filter,
    /// Conditions on the columns in these places.
    tests: Vec<(usize, Test)>,
}

#[derive(Clone, Debug)]
enum Test {
    AtLeast(Plain),
    Above(Plain),
    Below(Plain),
    AtMost(Plain),
    Among(Vec<Plain>),
    NotAmong(Vec<Plain>),
    Null,
    NotNull,
    /// Text that begins with these bytes.
    Begins(Vec<u8>),
}

impl Test {
    fn is_met(&self, value: &Plain) -> bool {
        let is_null = *value == Plain::Null;
        !is_null
            && match self {
                Self::Null => false,
                Self::NotNull => true,
                Self::Begins(own) => match value {
                    Plain::Text(bytes) | Plain::Binary(bytes) => bytes.starts_with(own),
                    _ => false,
                },
                Self::AtLeast(own) => value >= own,
                Self::Above(own) => value > own,
                Self::Below(own) => value < own,
                Self::AtMost(own) => value <= own,
                Self::Among(own) => own.contains(value),
                Self::NotAmong(own) => !own.contains(value),
            }
            || is_null && matches!(self, Self::Null)
    }

    fn and(&self, filter: Filter, column: &'static str) -> Filter {
        let each = |values: &[Plain]| values.iter().map(scalar).collect::<Vec<_>>();
        match self {
            Self::AtLeast(value) => filter.at_least(column, scalar(value)),
            Self::Above(value) => filter.above(column, scalar(value)),
            Self::Below(value) => filter.below(column, scalar(value)),
            Self::AtMost(value) => filter.at_most(column, scalar(value)),
            Self::Among(values) => filter.among(column, each(values)),
            Self::NotAmong(values) => filter.not_among(column, each(values)),
            Self::Null => filter.is_null(column),
            Self::NotNull => filter.is_not_null(column),
            Self::Begins(start) => {
                let escaped = start.iter().flat_map(|byte| [b'\\', *byte]);
                filter.like(column, escaped.chain(*b"%").collect::<Vec<_>>())
            }
        }
    }
}

impl Drawn {
    /// Conditions on up to three columns, with values that records have; `None` if there are no records.
    pub(super) fn of(scan: &Scan, options: &Options, draw: &mut Draw) -> Option<Self> {
        if scan.records.is_empty() {
            return None;
        }
        let columns = options.format?.columns(options.dialect);
        let is_single =
            |own: &&Column| !matches!(own.kind, ColumnKind::List(_) | ColumnKind::Struct(_));
        let single: Vec<_> = columns.iter().filter(is_single).collect();
        let mut drawn = Self {
            filter: Filter::default(),
            tests: Vec::new(),
        };
        for _ in 0..=draw.below(3) {
            let column = single[draw.below(single.len())];
            let place = columns.iter().position(|own| own == column)?;
            let mut value = || scan.records[draw.below(scan.records.len())].fields[place].clone();
            let values = [value(), value()];
            let is_null = values.contains(&Plain::Null);
            let [one, other] = values;
            // Ranges come most often, because formats apply them by themselves.
            let tests = match draw.below(if is_null { 2 } else { 9 }) {
                0 if is_null => vec![Test::Null],
                _ if is_null => vec![Test::NotNull],
                0 => vec![Test::Above(one)],
                1 => vec![Test::AtMost(one)],
                2 => vec![Test::Among(vec![one, other])],
                3 => vec![Test::Among(vec![one])],
                4 => vec![Test::NotAmong(vec![one, other])],
                5 => vec![Test::AtLeast(one)],
                6 => vec![Test::Below(one)],
                7 => vec![match one {
                    Plain::Text(bytes) | Plain::Binary(bytes) => {
                        Test::Begins(bytes[..bytes.len().min(3)].to_vec())
                    }
                    _ => Test::NotNull,
                }],
                _ => vec![Test::AtLeast(one), Test::Below(other)],
            };
            for test in tests {
                drawn.filter = test.and(drawn.filter, column.name);
                drawn.tests.push((place, test));
            }
        }
        Some(drawn)
    }

    /// Whether a record meets all conditions.
    pub(super) fn is_met(&self, record: &Record) -> bool {
        let mut tests = self.tests.iter();
        tests.all(|(place, test)| test.is_met(&record.fields[*place]))
    }
}

fn scalar(value: &Plain) -> Scalar {
    match value {
        Plain::Uuid(uuid) => (*uuid).into(),
        Plain::Timestamp(number) | Plain::Int64(number) => (*number).into(),
        Plain::UInt64(number) => (*number).into(),
        Plain::Boolean(value) => (*value).into(),
        Plain::Text(bytes) | Plain::Binary(bytes) => bytes.clone().into(),
        other => panic!("no filter has {other:?}"),
    }
}
