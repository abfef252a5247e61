//! Converting is reading, taking each column that the target has, and writing: the new file is the one that a writer makes of
//! the walk's records. A column that would be lost or is missing is an error that names it. If converting fails, no file is
//! left.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use seglake::Error;
use seglake::format::{
    Column, ColumnKind, Dialect, FORMATS, Format, IndexSource, Options, Value, WriteOptions,
    create, oplog, tenant,
};
use seglake::uuid6::Generator;
use seglake::verbs::{ConvertOptions, Report, convert, verify};

use super::alike::told;
use super::recover::names;
use super::scan::{End, Plain, Record, Scan, ended, whole};
use super::{Draw, format_of};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for (options, scan) in ended(format, bytes) {
        let case = Case::new(bytes, &options, &scan, &mut draw);
        let (drop, set) = case.refuses_loss();
        case.converts(&drop, &set);
    }
}

/// A file and its conversion.
struct Case<'a> {
    bytes: &'a [u8],
    options: &'a Options,
    scan: &'a Scan,
    /// The report on the file.
    found: Report,
    to: &'static Format,
    write: WriteOptions,
    source: &'static [Column],
    target: &'static [Column],
    /// A column that is dropped even if the target can store it.
    dropped: Option<&'static str>,
}

type Set = Vec<(String, Value<'static>)>;

/// The writer's result for the records, or its error.
type Written = Result<BTreeMap<String, Vec<u8>>, String>;

impl<'a> Case<'a> {
    fn new(bytes: &'a [u8], options: &'a Options, scan: &'a Scan, draw: &mut Draw) -> Self {
        // Every dialect is as likely as another format.
        let (to, dialect) = match draw.below(FORMATS.len() + 2) {
            place if place < FORMATS.len() => (FORMATS[place], *draw.of_these(Dialect::ALL)),
            _ => (&oplog::FORMAT, *draw.of_these(Dialect::ALL)),
        };
        let write = WriteOptions::default()
            .dialect(dialect)
            .set("trailer", draw.below(4) > 0)
            .set("version", if draw.below(4) > 0 { 2 } else { 1 })
            .set("preallocate", if draw.below(4) > 0 { 0 } else { 500 })
            .set("chunk_records", *draw.of_these(&[1, 3, 1000]))
            .set("index", draw.below(2) == 0)
            .concerning(to);
        let source = options.format.unwrap().columns(options.dialect);
        let target = to.columns(dialect);
        let dropped = (draw.below(4) == 0).then(|| draw.of_these(source).name);
        let found = verify(whole(bytes), options, |_| Ok(())).unwrap();
        Self {
            bytes,
            options,
            scan,
            found,
            to,
            write,
            source,
            target,
            dropped,
        }
    }

    fn convert(
        &self,
        folder: &Path,
        strict: bool,
        drop: &[String],
        set: &Set,
    ) -> Result<Report, Error> {
        let options = self.options.clone().strict(strict);
        let conversion = ConvertOptions::to(self.to)
            .write(self.write.clone())
            .drop(drop)
            .set(set);
        let path = folder.join("converted");
        convert(whole(self.bytes), &options, &path, &conversion, |_| Ok(()))
    }

    /// Checks that the error names the lost and the missing columns. Returns both, to drop and set them.
    fn refuses_loss(&self) -> (Vec<String>, Set) {
        let mut drop: Vec<String> = self.dropped.map(str::to_owned).into_iter().collect();
        let (mut expected_lost, mut expected_missing) = (Vec::new(), Vec::new());
        for column in self
            .source
            .iter()
            .filter(|own| !drop.contains(&own.name.to_owned()))
        {
            let same = self.target.iter().find(|to| to.name == column.name);
            match same.and_then(|to| lost(column.kind, to.kind, column.name)) {
                Some(lost) => expected_lost.extend(lost),
                None => expected_lost.push(column.name.to_owned()),
            }
        }
        for column in self.target.iter().filter(|column| !column.optional) {
            let is_made = column.name == "uuid" && self.makes_uuids(&drop);
            if self.taken(column, &drop).is_none() && !is_made {
                expected_missing.push(column.name);
            }
        }
        let folder = super::folder();
        if expected_lost.is_empty() && expected_missing.is_empty() {
            return (drop, Vec::new());
        }
        match self.convert(folder.path(), false, &drop, &Vec::new()) {
            Err(Error::Columns {
                mut lost, missing, ..
            }) => {
                lost.sort_unstable();
                expected_lost.sort_unstable();
                assert_eq!((&lost, &missing), (&expected_lost, &expected_missing));
            }
            other => panic!("{other:?}, not {expected_lost:?} and {expected_missing:?}"),
        }
        assert_eq!(names(folder.path()), [""; 0], "something is left behind");
        drop.extend(expected_lost);
        let missing = self.target.iter();
        let missing = missing.filter(|column| expected_missing.contains(&column.name));
        let set = missing.map(|column| (column.name.to_owned(), filler(column)));
        (drop, set.collect())
    }

    /// Whether records get new UUIDs of their times.
    fn makes_uuids(&self, drop: &[String]) -> bool {
        let is_there =
            |columns: &[Column], name: &str| columns.iter().any(|column| column.name == name);
        let is_kept =
            |name: &str| is_there(self.source, name) && !drop.iter().any(|dropped| dropped == name);
        is_there(self.target, "uuid") && !is_kept("uuid") && is_kept("timestamp")
    }

    /// The column of the source that becomes this one.
    fn taken(&self, column: &Column, drop: &[String]) -> Option<usize> {
        let is_it = |own: &Column| {
            own.name == column.name
                && !drop.contains(&own.name.to_owned())
                && lost(own.kind, column.kind, own.name).is_some()
        };
        self.source.iter().position(is_it)
    }

    fn converts(&self, drop: &[String], set: &Set) {
        // A new UUID differs each time, and has the present time if the record has none.
        let made: &[&str] = if set.iter().any(|(name, _)| name == "uuid") {
            &["uuid", "timestamp"]
        } else if self.makes_uuids(drop) {
            &["uuid"]
        } else {
            &[]
        };
        let expected = self.written(drop, set);
        let folder = super::folder();
        let converted = self.convert(folder.path(), false, drop, set);
        self.agrees(&converted, folder.path(), &expected, made);
        let folder = super::folder();
        let converted = self.convert(folder.path(), true, drop, set);
        let strict = Scan::of(self.bytes, &self.options.clone().strict(true));
        if strict.end == End::Done {
            self.agrees(&converted, folder.path(), &expected, made);
            return;
        }
        assert_eq!(names(folder.path()), [""; 0], "something is left behind");
        match (converted, strict.end) {
            (Err(Error::Damage(own)), End::Damage { offset, cause, .. }) => {
                assert_eq!((own.offset, own.cause), (offset, cause));
            }
            (Err(Error::Usage(_)), _) if expected.is_err() => {}
            (other, end) => panic!("{other:?}, where reading strictly ends with {end:?}"),
        }
    }

    fn agrees(
        &self,
        converted: &Result<Report, Error>,
        folder: &Path,
        expected: &Written,
        made: &[&str],
    ) {
        match (converted, expected) {
            (Ok(report), Ok(expected)) => {
                assert_eq!(told(report), told(&self.found));
                let files = files(folder);
                let read = self.read(&files);
                let wanted = self.read(expected);
                assert_eq!(read.end, End::Done);
                if made.is_empty() {
                    assert_eq!(&files, expected);
                }
                let kept = |scan: &Scan| {
                    let records = scan.records.iter();
                    let fields = records.map(|record| self.kept(record, made));
                    fields.collect::<Vec<_>>()
                };
                assert_eq!(kept(&read), kept(&wanted));
            }
            (Err(Error::Usage(_)), Err(_)) => {
                assert_eq!(names(folder), [""; 0], "something is left behind");
            }
            _ => panic!("{converted:?}, where writing gives {expected:?}"),
        }
    }

    /// Reads a new file strictly.
    fn read(&self, files: &BTreeMap<String, Vec<u8>>) -> Scan {
        let options = Options::default()
            .format(self.to)
            .dialect(self.write.dialect.unwrap_or_default())
            .index(IndexSource::None)
            .strict(true);
        Scan::of(&files["converted"], &options)
    }

    /// A record without its new values.
    fn kept(&self, record: &Record, made: &[&str]) -> Vec<Plain> {
        let fields = record.fields.iter().zip(self.target);
        let fields = fields.map(|(field, column)| {
            if made.contains(&column.name) {
                Plain::Null
            } else {
                field.clone()
            }
        });
        fields.collect()
    }

    /// What a writer makes of the walk's records.
    fn written(&self, drop: &[String], set: &Set) -> Written {
        if self.found.summary.wrong_key() {
            return Err("wrong key".to_owned());
        }
        let folder = super::folder();
        let path = folder.path().join("converted");
        let mut writer = create(self.to, &path, &self.write).unwrap();
        let is_tenant = |format: &Format| *format == tenant::FORMAT;
        if is_tenant(format_of(self.options)) && is_tenant(self.to) {
            let blocks = tenant::blocks(whole(self.bytes), self.options).unwrap();
            for block in blocks.iter().filter(|block| block.messages == 0) {
                let (partition, tenant) = (block.partition.into(), Value::Text(&block.tenant));
                let fields = [Value::Int64(partition), tenant, Value::Null, Value::Null];
                writer.write(&fields).unwrap();
            }
        }
        let generator = Generator::default();
        for record in &self.scan.records {
            if let Some(cause) = record.cause {
                return Err(cause.to_string());
            }
            let fields = self.target.iter().map(|column| {
                if let Some(place) = self.taken(column, drop) {
                    let kind = self.source[place].kind;
                    return Ok(take(&record.fields[place], kind, column.kind));
                }
                if column.name == "uuid" && self.makes_uuids(drop) {
                    return new_uuid(&generator, record, self.source);
                }
                let given = set.iter().find(|(name, _)| name == column.name);
                Ok(given.map_or(Plain::Null, |(_, value)| Plain::of(value)))
            });
            let fields = fields.collect::<Result<Vec<_>, _>>()?;
            let values: Vec<_> = fields.iter().map(Plain::value).collect();
            match writer.write(&values) {
                Ok(_) => {}
                Err(Error::Usage(why)) => return Err(why),
                Err(error) => panic!("{error}"),
            }
        }
        writer.close().unwrap();
        std::mem::drop(writer);
        Ok(files(folder.path()))
    }
}

/// All files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = names(folder).into_iter();
    let read = |name: String| {
        let bytes = fs::read(folder.join(&name)).unwrap();
        (name, bytes)
    };
    names.map(read).collect()
}

/// The fields that are lost if a value of one kind becomes one of another; `None` if it cannot.
fn lost(source: ColumnKind, to: ColumnKind, name: &str) -> Option<Vec<String>> {
    match (source, to) {
        (ColumnKind::List(source), ColumnKind::List(to)) => lost(*source, *to, name),
        (ColumnKind::Struct(source), ColumnKind::Struct(to)) => {
            let mut all = Vec::new();
            for own in source {
                let name = format!("{name}.{}", own.name);
                match to.iter().find(|field| field.name == own.name) {
                    Some(field) => all.extend(lost(own.kind, field.kind, &name)?),
                    None => all.push(name),
                }
            }
            Some(all)
        }
        (source, to) => (source == to).then(Vec::new),
    }
}

/// Converts a value to another kind. Of a structure it keeps the fields that both kinds have.
fn take(value: &Plain, source: ColumnKind, to: ColumnKind) -> Plain {
    match (value, source, to) {
        (Plain::List(items), ColumnKind::List(source), ColumnKind::List(to)) => {
            Plain::List(items.iter().map(|item| take(item, *source, *to)).collect())
        }
        (Plain::Struct(values), ColumnKind::Struct(source), ColumnKind::Struct(to)) => {
            let field = |field: &Column| {
                let place = source.iter().position(|own| own.name == field.name);
                place.map_or(Plain::Null, |place| {
                    take(&values[place], source[place].kind, field.kind)
                })
            };
            Plain::Struct(to.iter().map(field).collect())
        }
        _ => value.clone(),
    }
}

/// A UUID of a record's time.
fn new_uuid(generator: &Generator, record: &Record, columns: &[Column]) -> Result<Plain, String> {
    let place = columns.iter().position(|own| own.name == "timestamp");
    match &record.fields[place.unwrap()] {
        Plain::Timestamp(micros) => match generator.at(*micros) {
            Some(uuid) => Ok(Plain::Uuid(uuid.into_bytes())),
            None => Err(format!("no UUID has the time {micros}")),
        },
        other => panic!("a time that is {other:?}"),
    }
}

/// A value for a column that the source does not have.
fn filler(column: &Column) -> Value<'static> {
    match column.kind {
        ColumnKind::Uuid => Value::Null,
        ColumnKind::Timestamp => Value::Timestamp(1_700_000_000_000_000),
        ColumnKind::Text => Value::Text(b"set"),
        ColumnKind::Int64 => Value::Int64(7),
        ColumnKind::UInt64 => Value::UInt64(if column.name == "version" { 2 } else { 1 }),
        ColumnKind::Boolean => Value::Boolean(false),
        ColumnKind::Binary => Value::Binary(b"set"),
        ColumnKind::List(_) => Value::List(Vec::new()),
        _ => panic!("a column that records cannot be without: {column:?}"),
    }
}
