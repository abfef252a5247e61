// Included once for each of the two crates, which it calls `library`.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use library::Error;
use library::format::{
    Carry, Column, Dialect, Eof, FORMATS, Filter, Format, Hits, IfExists, IndexSource, Options, RecordId,
    Rows, Scalar, Start, Step, Value, Walk, WriteOptions, by_name, lookup, open, split,
};
use library::source::{BytesSource, FileSource, Source, open_regular};
use library::verbs::{
    ConvertOptions, DiagnoseOptions, RecoverOptions, SealOptions, convert, diagnose, recover, seal,
    undo_recover, verify,
};

use crate::Section;
use crate::memory::peak_of;
use crate::properties::Draw;

const WINDOWS: [usize; 8] = [1, 3, 16, 25, 64, 130, 276, 1000];
const TARGETS: [u64; 5] = [1, 30, 100, 300, 1000];

/// What reading gave, as far as it is needed to choose what to look at next.
#[derive(Default)]
struct Read {
    ids: Vec<RecordId>,
    positions: Vec<u64>,
    /// Of each record, the values that a filter may name, with their columns' names.
    values: Vec<Vec<(&'static str, Scalar)>>,
}

/// A file in memory that notes what is read of it.
struct Traced(Vec<u8>, Mutex<Vec<(u64, usize)>>);

impl Source for Traced {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> library::Result<()> {
        let start = usize::try_from(offset).expect("an offset in memory");
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        self.1
            .lock()
            .expect("no panic")
            .push((offset, buffer.len()));
        Ok(())
    }
}

/// A file that is being looked at, and what was seen.
struct Observer<'a> {
    format: &'static Format,
    bytes: &'a [u8],
    folder: &'a Path,
    draw: Draw,
    dialect: Dialect,
    sections: Vec<Section>,
}

/// Everything that is to be seen of a file.
pub fn observe(format: &str, bytes: &[u8], folder: &Path) -> Vec<Section> {
    let format = by_name(format).expect("a format");
    let dialects = match format.name {
        "oplog" => Dialect::ALL,
        _ => &[Dialect::Draft],
    };
    let mut sections = Vec::new();
    for dialect in dialects {
        let mut observer = Observer {
            format,
            bytes,
            folder,
            draw: Draw::of(bytes),
            dialect: *dialect,
            sections: std::mem::take(&mut sections),
        };
        observer.all();
        sections = observer.sections;
    }
    sections
}

impl Observer<'_> {
    fn options(&self) -> Options {
        Options::default()
            .format(self.format)
            .dialect(self.dialect)
            .index(IndexSource::None)
            .strict(false)
            .set("chunk_bytes", 1 << 20)
    }

    /// The name of a section: oplogs are read in every dialect.
    fn named(&self, section: &str) -> String {
        match self.format.name {
            "oplog" => format!("{section}, {}", self.dialect.as_str()),
            _ => section.to_owned(),
        }
    }

    fn whole(&self) -> Arc<dyn Source> {
        Arc::new(BytesSource::new(self.bytes.to_vec()))
    }

    /// Notes what `look` writes; a panic is seen as one.
    fn section<T: Default>(
        &mut self,
        name: &str,
        look: impl FnOnce(&mut Draw, &mut String) -> T,
    ) -> T {
        let draw = &mut self.draw;
        let looked = peak_of(|| {
            catch_unwind(AssertUnwindSafe(|| {
                let mut seen = String::new();
                let result = look(draw, &mut seen);
                (result, seen)
            }))
        });
        let (result, seen) = looked.0.unwrap_or_else(|panic| {
            let why = panic.downcast_ref::<String>().cloned();
            let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
            (T::default(), format!("panic: {}", why.unwrap_or_default()))
        });
        let name = self.named(name);
        // What is written down takes memory too, the same on both sides.
        self.sections.push(Section {
            name,
            seen,
            peak: looked.1,
        });
        result
    }

    /// As [`section`](Self::section), and in another section what is read of the file.
    fn traced(&mut self, name: &str, look: impl FnOnce(Arc<dyn Source>, &mut Draw, &mut String)) {
        let source = Arc::new(Traced(self.bytes.to_vec(), Mutex::default()));
        let own = source.clone();
        self.section(name, |draw, seen| look(own, draw, seen));
        let reads = std::mem::take(&mut *source.1.lock().expect("no panic"));
        let seen = reads.iter().fold(String::new(), |mut seen, read| {
            let _ = writeln!(seen, "{read:?}");
            seen
        });
        let name = self.named(&format!("{name} reads"));
        self.sections.push(Section {
            name,
            seen,
            peak: 0,
        });
    }

    fn all(&mut self) {
        let options = self.options();
        let source = self.whole();
        let read = self.section("rows and ledger", |_, seen| {
            let mut read = Read::default();
            walk(source, &options, Start::Beginning, None, seen, &mut read);
            read
        });
        self.windows();
        self.starts(&read);
        self.report();
        self.chosen(&read);
        self.looked_up(&read);
        self.parts(&read);
        self.written();
    }

    /// Strictly, in small windows, without values, taken up again, and growing.
    fn windows(&mut self) {
        let options = self.options();
        for (name, strict, values) in [
            ("strict", true, true),
            ("windows", false, true),
            ("strict windows", true, true),
            ("without values", false, false),
        ] {
            let own = options.clone().strict(strict).values(values);
            self.traced(name, |source, draw, seen| {
                let own = match name {
                    "strict" => own,
                    _ => own
                        .window_bytes(*draw.of_these(&WINDOWS))
                        .set("chunk_bytes", *draw.of_these(&[0, 60, 1 << 20]))
                        .record_bytes(*draw.of_these(&[40, 1 << 20, 1 << 20])),
                };
                let again = draw.below(4);
                let again = (name != "strict").then_some(again);
                walk(
                    source,
                    &own,
                    Start::Beginning,
                    again,
                    seen,
                    &mut Read::default(),
                );
            });
        }
        let bytes = self.bytes.to_vec();
        self.section("growing", |draw, seen| {
            let len = draw.below(bytes.len() + 1);
            let own = options.clone().eof(Eof::Growing);
            let early: Arc<dyn Source> = Arc::new(BytesSource::new(bytes[..len].to_vec()));
            let carry = walk(
                early,
                &own,
                Start::Beginning,
                None,
                seen,
                &mut Read::default(),
            );
            if let Some(carry) = carry {
                let late: Arc<dyn Source> = Arc::new(BytesSource::new(bytes));
                let start = Start::Carry(&carry);
                walk(late, &options, start, None, seen, &mut Read::default());
            }
        });
    }

    /// From a record, and from anywhere.
    fn starts(&mut self, read: &Read) {
        let (options, source) = (self.options(), self.whole());
        let len = self.bytes.len();
        self.section("from an offset", |draw, seen| {
            for known in [true, false] {
                let at = match (known, read.positions.is_empty()) {
                    (true, false) => *draw.of_these(&read.positions),
                    _ => draw.below(len + 2) as u64,
                };
                let strict = draw.below(2) == 0;
                let own = options.clone().strict(strict);
                let _ = writeln!(seen, "from {at}");
                walk(
                    source.clone(),
                    &own,
                    Start::Offset(at),
                    None,
                    seen,
                    &mut Read::default(),
                );
            }
        });
    }

    fn report(&mut self) {
        let (options, source) = (self.options(), self.whole());
        self.section("report", |draw, seen| {
            let report = match verify(source.clone(), &options, |_| Ok(())) {
                Ok(report) => report,
                Err(error) => return write_error(seen, &error),
            };
            let _ = writeln!(
                seen,
                "{:?} {:?} {:?} {} {} {:?} {:?} {} {} {}",
                report.summary.totals,
                report.summary.damage,
                report.summary.checked,
                report.summary.bytes,
                report.summary.records,
                report.summary.first_timestamp,
                report.summary.last_timestamp,
                report.summary.truncated,
                report.summary.wrong_key(),
                report.is_sound(),
            );
            let how = DiagnoseOptions::default()
                .ranges(*draw.of_these(&[1, 3, 100]))
                .work_bytes(*draw.of_these(&[0, 2000, 1 << 20]));
            match diagnose(&source, &options, &report, &how, |_| Ok(())) {
                Ok(found) => found.iter().for_each(|found| {
                    let _ = writeln!(seen, "{found:?}");
                }),
                Err(error) => write_error(seen, &error),
            }
        });
    }

    /// Some records, of all that is read and of what is pruned.
    fn chosen(&mut self, read: &Read) {
        let options = self.options();
        for prune in [false, true] {
            let own = options.clone();
            self.traced(
                if prune { "pruned" } else { "filtered" },
                |source, draw, seen| {
                    for _ in 0..3 {
                        let own = own
                            .clone()
                            .filter(wanted(read, draw))
                            .prune(prune)
                            .strict(draw.below(4) == 0)
                            .values(draw.below(4) > 0)
                            .window_bytes(*draw.of_these(&[1, 64, 1 << 20]));
                        let _ = writeln!(seen, "{:?}", own.filter);
                        walk(
                            source.clone(),
                            &own,
                            Start::Beginning,
                            None,
                            seen,
                            &mut Read::default(),
                        );
                    }
                },
            );
        }
    }

    fn looked_up(&mut self, read: &Read) {
        let options = self.options();
        let own = options.clone();
        self.traced("look-ups", |source, draw, seen| {
            let own = own
                .window_bytes(*draw.of_these(&[1, 50, 1 << 20]))
                .set("lookup_table_bytes", *draw.of_these(&[0, 200, 16 << 20]));
            look_up(&source, &own, read, draw, seen);
        });
        let source = self.whole();
        self.section("look-ups in memory", |draw, seen| {
            look_up(&source, &options, read, draw, seen)
        });
        if self.format.name == "chunked" {
            let (source, options) = (self.whole(), self.options());
            self.section("index", |draw, seen| {
                let mut bytes = Vec::new();
                let put = |item: library::format::chunked::Item| {
                    bytes.extend(item.encode());
                    Ok(())
                };
                if let Err(error) = library::format::chunked::build_index(source.clone(), &options, put) {
                    return write_error(seen, &error);
                }
                let _ = writeln!(seen, "{bytes:?}");
                for lies in [false, true] {
                    if lies && !bytes.is_empty() {
                        let at = draw.below(bytes.len());
                        bytes[at] ^= 1 << draw.below(8);
                    }
                    let index = IndexSource::Source(Arc::new(BytesSource::new(bytes.clone())));
                    let own = options.clone().index(index);
                    look_up(&source, &own, read, draw, seen);
                }
            });
        }
    }

    fn parts(&mut self, read: &Read) {
        let options = self.options();
        self.traced("parts", |source, draw, seen| {
            let target = *draw.of_these(&TARGETS);
            let parts = match split(source.clone(), &options, target) {
                Ok(parts) => parts,
                Err(error) => return write_error(seen, &error),
            };
            let choosing = draw.below(3) == 0;
            let own = options
                .window_bytes(*draw.of_these(&[1, 20, 64, 1 << 20]))
                .strict(draw.below(4) == 0)
                .filter(match choosing {
                    true => wanted(read, draw),
                    false => Filter::default(),
                })
                .prune(draw.below(2) == 0);
            for part in parts {
                let _ = writeln!(seen, "{part:?}");
                let again = draw.below(8);
                walk(
                    source.clone(),
                    &own,
                    Start::Part(&part),
                    Some(again),
                    seen,
                    &mut Read::default(),
                );
            }
        });
    }

    /// What recovering, sealing and converting write.
    fn written(&mut self) {
        let (options, source) = (self.options(), self.whole());
        let format = self.format;
        let folder = self.folder.to_path_buf();
        let path = folder.join("new");
        let own = (
            options.clone(),
            source.clone(),
            path.clone(),
            folder.clone(),
        );
        self.section("recovered", |_, seen| {
            let (options, source, path, folder) = own;
            for force in [false, true] {
                let recovery = RecoverOptions::default().force(force).renumber(force);
                match recover(source.clone(), &options, &path, &recovery, |_| Ok(())) {
                    Ok(recovered) => {
                        let _ = writeln!(seen, "{} {}", recovered.carried, recovered.quarantined);
                        if recovered.quarantine.is_some()
                            && let Ok(file) = open_regular(&path)
                            && let Ok(source) = FileSource::new(file, &path)
                        {
                            let source: Arc<dyn Source> = Arc::new(source);
                            let back = folder.join("back");
                            if let Err(error) =
                                undo_recover(&source, None, &back, IfExists::Error, &options, |_, _| Ok(()))
                            {
                                write_error(seen, &error);
                            }
                        }
                    }
                    Err(error) => write_error(seen, &error),
                }
                write_and_remove_files(&folder, seen);
            }
        });
        if format.name == "active" {
            let own = (
                options.clone(),
                source.clone(),
                path.clone(),
                folder.clone(),
            );
            self.section("sealed", |draw, seen| {
                let (options, source, path, folder) = own;
                let how = SealOptions::default().trailer(draw.below(2) == 0);
                let options = options.strict(draw.below(2) == 0);
                if let Err(error) = seal(source, &options, &path, &how, |_| Ok(())) {
                    write_error(seen, &error);
                }
                write_and_remove_files(&folder, seen);
            });
        }
        self.section("converted", |draw, seen| {
            let to = *draw.of_these(FORMATS);
            // A writer of UUIDs makes new ones, which differ each time.
            let makes = |format: &Format| matches!(format.name, "active" | "sealed");
            if makes(to) && !makes(format) {
                return;
            }
            let write = WriteOptions::default()
                .dialect(options.dialect)
                .set("trailer", draw.below(4) > 0)
                .set("version", if draw.below(4) > 0 { 2 } else { 1 })
                .set("chunk_records", *draw.of_these(&[1, 3, 1000]))
                .concerning(to);
            let options_to = options.clone().format(to);
            let names: Vec<_> = columns(&options)
                .iter()
                .map(|column| column.name)
                .collect();
            let has = |name: &str| columns(&options_to).iter().any(|column| column.name == name);
            let drop: Vec<_> = names
                .iter()
                .filter(|name| !has(name))
                .map(|name| (*name).to_owned())
                .collect();
            let set: Vec<(String, Value<'_>)> = columns(&options_to)
                .iter()
                .filter(|column| !column.optional && !names.contains(&column.name))
                .map(|column| {
                    let value = match column.name {
                        "tenant" | "type" => Value::Text(b"t"),
                        "timestamp" => Value::Timestamp(1),
                        "value" => Value::Binary(b"v"),
                        "version" => Value::UInt64(7),
                        _ => Value::Int64(7),
                    };
                    (column.name.to_owned(), value)
                })
                .collect();
            let conversion = ConvertOptions::to(to).write(write).drop(&drop).set(&set);
            match convert(source, &options, &path, &conversion, |_| Ok(())) {
                Ok(report) => {
                    let _ = writeln!(seen, "{} {:?}", report.summary.records, report.summary.damage);
                }
                Err(error) => write_error(seen, &error),
            }
            write_and_remove_files(&folder, seen);
        });
    }
}

/// Writes down the files of a folder, and removes them.
fn write_and_remove_files(folder: &Path, seen: &mut String) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let bytes = fs::read(&path).expect("a file");
        let _ = writeln!(
            seen,
            "{}: {:?}",
            path.display(),
            String::from_utf8_lossy(&bytes)
        );
        let _ = writeln!(seen, "{:08x}", crc32fast::hash(&bytes));
        fs::remove_file(path).expect("a file that is ours");
    }
}

fn write_error(seen: &mut String, error: &Error) {
    let _ = writeln!(seen, "{error} {error:?}");
}

/// Steps until something is found: whether a walk ends a step before that is no difference.
fn step(walk: &mut dyn Walk) -> library::Result<Step> {
    loop {
        let step = walk.step()?;
        if step != Step::More || walk.rows().len() > 0 || !walk.spans().is_empty() {
            return Ok(step);
        }
    }
}

/// Walks a source, and writes its rows and then its ranges to `seen`. Before step `resume_at` the walk is opened again from its
/// carry. Gives the carry if the file may still grow.
fn walk(
    source: Arc<dyn Source>,
    options: &Options,
    start: Start<'_>,
    mut resume_at: Option<usize>,
    seen: &mut String,
    read: &mut Read,
) -> Option<Carry> {
    let (mut rows, mut spans) = (String::new(), String::new());
    // How rows are dealt out to steps is no difference, nor is where the times of a step begin and end.
    let mut times: Option<(i64, i64)> = None;
    let mut walk = match open(source.clone(), options, start) {
        Ok(walk) => walk,
        Err(error) => {
            write_error(seen, &error);
            return None;
        }
    };
    // Of what is before the start, only a record's own block or message may be reported.
    let asked = match start {
        Start::Offset(at) => at,
        _ => 0,
    };
    let mut found_damage = false;
    let (mut steps, mut waits) = (0, None);
    loop {
        if resume_at == Some(steps) {
            resume_at = None;
            let Some(carry) = walk.carry() else {
                continue;
            };
            walk = match open(source.clone(), options, Start::Carry(&carry)) {
                Ok(walk) => walk,
                Err(error) => {
                    write_error(seen, &error);
                    return None;
                }
            };
        }
        steps += 1;
        match step(&mut *walk) {
            Ok(Step::More) => {
                write_rows(&*walk, options, &mut rows, read);
                times = around(times, walk.rows().times());
                found_damage |= walk.found_damage();
                for span in walk.spans().iter().filter(|span| span.end > asked) {
                    let _ = writeln!(spans, "{span:?}");
                }
                if let Some(run) = walk.record_run() {
                    assert_eq!(run.records, walk.spans().len() as u64, "a run is the spans");
                }
            }
            Ok(Step::Done) => break,
            // Step::Wait: one of the two crates has no other, and the other one may.
            Ok(_) => {
                waits = walk.carry();
                break;
            }
            Err(error) => {
                // Rows before it are given; whether their ranges are too depends on the step.
                spans.clear();
                write_error(&mut spans, &error);
                if matches!(error, Error::Usage(_)) {
                    // A walk that is refused is refused again; those of before went on in other ways.
                    break;
                }
                // It fails again in the same way, or is at its end.
                match step(&mut *walk) {
                    Err(error) => write_error(&mut spans, &error),
                    Ok(step) => {
                        let _ = writeln!(spans, "{step:?}");
                    }
                }
                break;
            }
        }
    }
    let _ = writeln!(
        seen,
        "{:?} {} {} {found_damage} {} {} {times:?}",
        walk.checked(),
        walk.front_end(),
        walk.offset(),
        walk.suspects_key(),
        waits.is_some(),
    );
    seen.push_str(&rows);
    seen.push_str(&spans);
    waits
}

fn write_rows(walk: &dyn Walk, options: &Options, out: &mut String, read: &mut Read) {
    let rows = walk.rows();
    let columns = columns(options);
    let identifier = options.format.expect("a format").identifier;
    for row in 0..rows.len() {
        let fields: Vec<_> = (0..columns.len())
            .map(|column| rows.field(row, column))
            .collect();
        let _ = writeln!(
            out,
            "{} {:?} {:?} {} {fields:?} {:?}",
            rows.position(row),
            rows.cause(row),
            rows.timestamp(row),
            rows.weight(row),
            rows.value(row),
        );
        read.positions.push(rows.position(row));
        let named = columns.iter().zip(&fields);
        let scalars = |(column, field): (&Column, &Value<'_>)| Some((column.name, scalar(field)?));
        let values: Vec<_> = named.filter_map(scalars).collect();
        let value = |name: &&str| {
            values
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, value)| value.clone())
        };
        let id: Option<Vec<_>> = identifier.iter().map(value).collect();
        read.ids.extend(id.map(RecordId::new));
        read.values.push(values);
    }
}

/// The times around both.
fn around(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        _ => one.or(other),
    }
}

/// The value as a filter takes it; `None` for one that no filter has.
fn scalar(value: &Value<'_>) -> Option<Scalar> {
    Some(match value {
        Value::Uuid(uuid) => Scalar::Uuid(*uuid),
        Value::Timestamp(number) | Value::Int64(number) => (*number).into(),
        Value::UInt64(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        Value::Text(bytes) | Value::Binary(bytes) => bytes.to_vec().into(),
        _ => return None,
    })
}

/// Some records, by values that some of them have.
fn wanted(read: &Read, draw: &mut Draw) -> Filter {
    let mut wanted = Filter::default();
    if read.values.iter().any(|values| !values.is_empty()) {
        let (one, other) = (draw.of_these(&read.values), draw.of_these(&read.values));
        let column = draw.below(one.len().max(1));
        let (Some((name, one)), Some((same, other))) = (one.get(column), other.get(column)) else {
            return wanted;
        };
        if name != same {
            return wanted;
        }
        wanted = match draw.below(4) {
            0 => wanted.at_least(*name, one.clone()),
            1 => wanted.below(*name, one.clone()),
            2 => wanted.among(*name, [one.clone(), other.clone()]),
            _ => wanted
                .at_least(*name, one.clone())
                .below(*name, other.clone()),
        };
    }
    wanted
}

/// Identifiers of records and such as are near them.
fn sought(read: &Read, draw: &mut Draw) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for id in read.ids.iter().take(60) {
        ids.push(id.clone());
        let up = draw.below(2) == 0;
        let mut values = id.values().to_vec();
        let place = draw.below(values.len());
        match &mut values[place] {
            Scalar::Uuid(uuid) => {
                let number = u128::from_be_bytes(*uuid);
                let near = if up {
                    number.wrapping_add(1)
                } else {
                    number.wrapping_sub(1)
                };
                *uuid = near.to_be_bytes();
            }
            Scalar::Integer(number) => *number += if up { 1 } else { -1 },
            Scalar::Text(text) => text.push(0),
            _ => {}
        }
        ids.push(RecordId::new(values));
    }
    ids
}

/// Looks up one by one and together, strictly and not, and ranges.
fn look_up(
    source: &Arc<dyn Source>,
    options: &Options,
    read: &Read,
    draw: &mut Draw,
    seen: &mut String,
) {
    let ids = sought(read, draw);
    for strict in [false, true] {
        let own = options.clone().strict(strict);
        let found = match lookup(source.clone(), &own) {
            Ok(found) => found,
            Err(error) => {
                write_error(seen, &error);
                continue;
            }
        };
        let mut tell = |ids: &[RecordId]| match found.get(ids) {
            Ok(hits) => write_hits(&hits, options, seen),
            Err(error) => write_error(seen, &error),
        };
        for _ in 0..4 {
            if !ids.is_empty() {
                tell(&[draw.of_these(&ids).clone()]);
            }
        }
        tell(&ids);
        let range = wanted(read, draw);
        let mut times = None;
        match found.range(&range) {
            Ok(mut walk) => {
                let mut spans = String::new();
                loop {
                    match step(&mut *walk) {
                        Ok(Step::More) => {
                            write_rows(&*walk, &own, seen, &mut Read::default());
                            times = around(times, walk.rows().times());
                            for span in walk.spans() {
                                let _ = writeln!(spans, "{span:?}");
                            }
                        }
                        Ok(step) => {
                            let _ = writeln!(spans, "{step:?} {times:?}");
                            break;
                        }
                        Err(error) => {
                            spans.clear();
                            write_error(&mut spans, &error);
                            break;
                        }
                    }
                }
                seen.push_str(&spans);
            }
            Err(error) => write_error(seen, &error),
        }
    }
}

fn write_hits(hits: &Hits, options: &Options, seen: &mut String) {
    let columns = columns(options).len();
    hits.each(|hit| {
        let _ = match hit {
            None => writeln!(seen, "nothing"),
            Some((rows, row)) => {
                let rows: &dyn Rows = rows;
                let fields: Vec<_> = (0..columns).map(|column| rows.field(row, column)).collect();
                writeln!(
                    seen,
                    "{} {:?} {fields:?}",
                    rows.position(row),
                    rows.cause(row)
                )
            }
        };
    });
}

/// The columns of the format that the options name.
fn columns(options: &Options) -> &'static [Column] {
    options.format.expect("a format").columns(options.dialect)
}
