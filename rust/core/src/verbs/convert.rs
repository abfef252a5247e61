//! Converts a file from any format to any other. A column is lost only if it is named in `drop`.

use std::path::Path;
use std::sync::Arc;

use super::Report;
use super::paths::refuse_source;
use crate::bug::OrBug;
use crate::engine::{Format, IfExists, Start, WriteOptions};
use crate::error::{Error, Result};
use crate::format::{self, tenant};
use crate::output::Staging;
use crate::record::{Column, ColumnKind, Rows, Value};
use crate::setters::setter;
use crate::source::Source;
use crate::uuid6::Generator;
use crate::walk::{Options, Step};

/// A conversion's target and options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConvertOptions<'a> {
    to: &'static Format,
    write: WriteOptions,
    drop: &'a [String],
    set: &'a [(String, Value<'a>)],
    if_exists: IfExists,
    dry_run: bool,
}

impl ConvertOptions<'_> {
    /// A conversion to a format with its default options: nothing is dropped, and an existing file is an error.
    #[must_use]
    pub fn to(format: &'static Format) -> Self {
        Self {
            to: format,
            write: WriteOptions::default(),
            drop: &[],
            set: &[],
            if_exists: IfExists::default(),
            dry_run: false,
        }
    }
}

impl<'a> ConvertOptions<'a> {
    setter!(
        /// How to write it. Appending is not possible.
        write: WriteOptions
    );
    setter!(
        /// Columns of the source that may be lost; fields of structures as `clock.seq`.
        drop: &'a [String]
    );
    setter!(
        /// Values for columns that the source lacks, the same for all records. With null the writer makes them: UUIDs and
        /// times of the present.
        set: &'a [(String, Value<'a>)]
    );
    setter!(
        /// Whether an existing file is an error or replaced. It cannot be appended to.
        if_exists: IfExists
    );
    setter!(
        /// Whether all is done except that the new file appears: to learn whether all records can be stored.
        dry_run: bool
    );
}

/// The source of a column's values.
#[derive(Clone, Debug)]
enum From {
    /// A column of the source, by its place, and the parts of its values to take.
    Column(usize, Pick),
    /// A value of `set`, by its place there.
    Set(usize),
    /// A new UUID of the time in this column.
    Time(usize),
    /// Null: the value follows from the other columns.
    Null,
}

/// The parts of a value to take.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pick {
    /// The whole value.
    Whole,
    /// This part of each item.
    Items(Box<Self>),
    /// These fields, null for those that are missing.
    Fields(Vec<Option<(usize, Self)>>),
}

impl Pick {
    /// How to make a value of one kind from one of another, and the names of fields that are lost. `None` if the kinds
    /// do not fit. Dropped fields are not taken.
    fn between(
        source: ColumnKind,
        to: ColumnKind,
        name: &str,
        drop: &[String],
    ) -> Option<(Self, Vec<String>)> {
        let is_under = |dropped: &String| {
            let rest = dropped.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        match (source, to) {
            (source, to) if source == to && !drop.iter().any(is_under) => {
                Some((Self::Whole, Vec::new()))
            }
            (ColumnKind::List(source), ColumnKind::List(to)) => {
                let (pick, lost) = Self::between(*source, *to, name, drop)?;
                Some((Self::Items(Box::new(pick)), lost))
            }
            (ColumnKind::Struct(source), ColumnKind::Struct(to)) => {
                let (mut picks, mut lost) = (Vec::new(), Vec::new());
                for field in to {
                    let found = source
                        .iter()
                        .enumerate()
                        .find(|(_, from)| from.name == field.name)
                        .filter(|(_, from)| !drop.contains(&format!("{name}.{}", from.name)));
                    picks.push(match found {
                        Some((place, from)) => {
                            let name = format!("{name}.{}", from.name);
                            let (pick, under) = Self::between(from.kind, field.kind, &name, drop)?;
                            lost.extend(under);
                            Some((place, pick))
                        }
                        None => None,
                    });
                }
                let unused = source
                    .iter()
                    .filter(|from| !to.iter().any(|field| field.name == from.name));
                lost.extend(unused.map(|from| format!("{name}.{}", from.name)));
                Some((Self::Fields(picks), lost))
            }
            _ => None,
        }
    }

    fn of<'a>(&self, value: Value<'a>) -> Value<'a> {
        match (self, value) {
            (Self::Items(pick), Value::List(items)) => {
                Value::List(items.into_iter().map(|item| pick.of(item)).collect())
            }
            (Self::Fields(picks), Value::Struct(values)) => {
                let field = |pick: &Option<(usize, Self)>| match pick {
                    Some((place, pick)) => {
                        let value = values.get(*place).cloned();
                        pick.of(value.or_bug_value("a value for each field", Value::Null))
                    }
                    None => Value::Null,
                };
                Value::Struct(picks.iter().map(field).collect())
            }
            (_, value) => value,
        }
    }
}

/// The source of each column to be written. Refuses losing or missing columns.
fn plan(source: &[Column], to: &[Column], conversion: &ConvertOptions<'_>) -> Result<Vec<From>> {
    let place = |name: &str| source.iter().position(|column| column.name == name);
    let is_dropped = |name: &str| conversion.drop.iter().any(|dropped| dropped == name);
    let (mut plan, mut lost, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let time = place("timestamp").filter(|_| !is_dropped("timestamp"));
    for column in to {
        let given = conversion
            .set
            .iter()
            .position(|(name, _)| name == column.name);
        let fits = place(column.name).and_then(|place| {
            let from = source.get(place).filter(|from| !is_dropped(from.name))?;
            let pick = Pick::between(from.kind, column.kind, column.name, conversion.drop)?;
            Some((place, pick))
        });
        plan.push(match (given, fits, column.name, time) {
            (Some(_), Some(_), name, _) => {
                return Err(Error::Usage(format!(
                    "{name} is set, but the source has it: name {name} in `drop` to replace it"
                )));
            }
            (Some(given), None, ..) => From::Set(given),
            (None, Some((place, (pick, under))), ..) => {
                lost.extend(under.into_iter().filter(|name| !is_dropped(name)));
                From::Column(place, pick)
            }
            // A new UUID gets the time of a record without a UUID.
            (None, None, "uuid", Some(time)) => From::Time(time),
            (None, None, ..) if column.optional => From::Null,
            (None, None, name, _) => {
                missing.push(name);
                From::Null
            }
        });
    }
    check_names(source, to, conversion)?;
    for (place, column) in source.iter().enumerate() {
        let takes = |from: &From| matches!(from, From::Column(taken, _) if *taken == place);
        if !plan.iter().any(takes) && !is_dropped(column.name) {
            lost.push(column.name.to_owned());
        }
    }
    if lost.is_empty() && missing.is_empty() {
        return Ok(plan);
    }
    Err(Error::Columns {
        format: conversion.to.name,
        lost,
        missing,
    })
}

/// Refuses names in `set` and `drop` that are no columns.
fn check_names(source: &[Column], to: &[Column], conversion: &ConvertOptions<'_>) -> Result<()> {
    let unknown = conversion
        .set
        .iter()
        .find(|(name, _)| !to.iter().any(|column| column.name == name));
    if let Some((name, _)) = unknown {
        return Err(Error::Usage(format!(
            "{name} is set, but {} records have no such column: expected one of {}",
            conversion.to.name,
            names(to)
        )));
    }
    // Of a field, the name begins with that of its column.
    let is_of = |name: &str, column: &Column| name.split('.').next() == Some(column.name);
    let is_known = |name: &String| source.iter().any(|column| is_of(name, column));
    if let Some(name) = conversion.drop.iter().find(|name| !is_known(name)) {
        return Err(Error::Usage(format!(
            "{name} is dropped, but the source has no such column: expected one of {}",
            names(source)
        )));
    }
    Ok(())
}

fn names(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    names.join(", ")
}

/// Writes the records of a file to a new one of another format, which appears under its name when it is complete.
/// `progress` is called at intervals with how many bytes of the source are done. An error that it returns ends the
/// conversion. Returns the report on the source.
///
/// In strict mode, damage ends the conversion and nothing is written. In lenient mode, sound records are converted, and
/// the report lists the damage. A file with the wrong key is never converted.
///
/// # Errors
/// - [`Error::Columns`] if columns would be lost or are missing.
/// - [`Error::Usage`] if a record cannot be stored, or if the destination is the source.
/// - Those of reading, and of [`create`](format::create).
pub fn convert(
    source: Arc<dyn Source>,
    options: &Options,
    destination: impl AsRef<Path>,
    conversion: &ConvertOptions<'_>,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let destination = destination.as_ref();
    let format = format::resolve(&*source, options)?;
    let options = options.clone().format(format);
    let columns = format.columns(options.dialect);
    let written = conversion
        .to
        .columns(conversion.write.dialect.unwrap_or_default());
    let plan = plan(columns, written, conversion)?;
    let index = conversion.to.index.map(|index| (index.beside)(destination));
    for file in [Some(destination), index.flatten().as_deref()] {
        refuse_source(conversion.write.on(), &*source, file)?;
    }
    let staging = Staging::create(
        conversion.write.on(),
        destination,
        conversion.if_exists.replaces()?,
    )?;
    let inside = staging.inside();
    let converted = write(source, &options, &inside, conversion, &plan, &mut progress);
    let report = converted.map_err(|error| staging.outside(error))?;
    if !conversion.dry_run {
        staging.commit()?;
    }
    Ok(report)
}

/// Writes the new file, at `path`.
fn write(
    source: Arc<dyn Source>,
    options: &Options,
    path: &Path,
    conversion: &ConvertOptions<'_>,
    plan: &[From],
    progress: &mut impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let format = format::resolve(&*source, options)?;
    let mut writer = format::create(conversion.to, path, &conversion.write)?;
    if *format == tenant::FORMAT && *conversion.to == tenant::FORMAT {
        keep_empty_tenants(source.clone(), options, &mut *writer)?;
    }
    let generator = Generator::default();
    let mut report = Report::of(format, &*source);
    let mut walk = format::open(source, options, Start::Beginning)?;
    while walk.step()? == Step::More {
        report.add(&*walk);
        let rows = walk.rows();
        for row in 0..rows.len() {
            refuse_incomplete(&*rows, row)?;
            let fields = plan
                .iter()
                .map(|from| value(from, &*rows, row, conversion, &generator))
                .collect::<Result<Vec<_>>>()?;
            writer
                .write(&fields)
                .map_err(|error| at(error, rows.position(row)))?;
        }
        drop(rows);
        progress(walk.offset())?;
    }
    if report.summary.wrong_key() {
        return Err(Error::Usage(
            "no record was verified although the structure is sound: this is probably the wrong key, and nothing was converted"
                .to_owned(),
        ));
    }
    writer.sync()?;
    writer.close()?;
    Ok(report)
}

/// Keeps tenants without messages, which have no record.
fn keep_empty_tenants(
    source: Arc<dyn Source>,
    options: &Options,
    writer: &mut dyn format::Writer,
) -> Result<()> {
    let filter = options
        .filter
        .all(&tenant::FORMAT, tenant::FORMAT.columns(options.dialect))?;
    for block in tenant::blocks(source, options)? {
        let fields = [
            Value::Int64(block.partition.into()),
            Value::Text(&block.tenant),
            Value::Null,
            Value::Null,
        ];
        let value = |column: usize| {
            let field = fields.get(column).cloned();
            field.or_bug_value("a column of tenant segments", Value::Null)
        };
        if block.messages == 0 && filter.is_met(value) {
            writer.write(&fields)?;
        }
    }
    Ok(())
}

/// Refuses a record with a missing part: in another file it would look complete.
fn refuse_incomplete(rows: &dyn Rows, row: usize) -> Result<()> {
    match rows.cause(row) {
        None => Ok(()),
        Some(cause) => Err(Error::Usage(format!(
            "the record at offset {} is incomplete ({cause}), and converting it would hide that: skip damage, or repair the source first",
            rows.position(row)
        ))),
    }
}

fn value<'a>(
    from: &From,
    rows: &'a dyn Rows,
    row: usize,
    conversion: &'a ConvertOptions<'_>,
    generator: &Generator,
) -> Result<Value<'a>> {
    Ok(match from {
        From::Column(place, pick) => pick.of(rows.field(row, *place)),
        From::Set(place) => {
            let (_, value) = conversion.set.get(*place).or_bug("a value that is set")?;
            value.clone()
        }
        From::Time(place) => match rows.field(row, *place) {
            Value::Timestamp(micros) => {
                let uuid = generator.at(micros).ok_or_else(|| {
                    Error::Usage(format!(
                        "no UUID of version 6 can have the time {micros} of the record at offset {}",
                        rows.position(row)
                    ))
                })?;
                Value::Uuid(uuid.into_bytes())
            }
            other => other,
        },
        From::Null => Value::Null,
    })
}

/// Adds the record's offset to an error in writing it.
fn at(error: Error, position: u64) -> Error {
    match error {
        Error::Usage(message) => {
            Error::Usage(format!("the record at offset {position}: {message}"))
        }
        error => error,
    }
}
