// Included once for each of the two crates, which it calls `library`.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use library::Error;
use library::format::{
    Bound, Carry, Dialect, Eof, FORMATS, Format, Hits, IndexSource, Options, RecordId, Rows, Start,
    Step, Value, Walk, Wanted, WriteOptions, by_name, lookup, open, split,
};
use library::source::{BytesSource, FileSource, Source, open_regular};
use library::verbs::{
    Conversion, DiagnoseOptions, Recovery, SealOptions, convert, diagnose, index, recover, seal,
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
    times: Vec<i64>,
    types: Vec<Vec<u8>>,
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
        Options {
            format: Some(self.format),
            dialect: self.dialect,
            index: IndexSource::None,
            strict: false,
            limit_chunk_bytes: 1 << 20,
            ..Options::default()
        }
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
            let own = Options {
                strict,
                values,
                ..options.clone()
            };
            self.traced(name, |source, draw, seen| {
                let own = match name {
                    "strict" => own,
                    _ => Options {
                        window_bytes: *draw.of_these(&WINDOWS),
                        max_chunk_bytes: *draw.of_these(&[0, 60, 1 << 20]),
                        max_record_bytes: *draw.of_these(&[40, 1 << 20, 1 << 20]),
                        ..own
                    },
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
            let own = Options {
                eof: Eof::Growing,
                ..options.clone()
            };
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
                let own = Options {
                    strict,
                    ..options.clone()
                };
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
                report.totals,
                report.damage,
                report.checked,
                report.bytes,
                report.records,
                report.first_timestamp,
                report.last_timestamp,
                report.truncated,
                report.wrong_key(),
                report.is_sound(),
            );
            let how = DiagnoseOptions {
                ranges: *draw.of_these(&[1, 3, 100]),
                work_bytes: *draw.of_these(&[0, 2000, 1 << 20]),
            };
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
                        let own = Options {
                            wanted: wanted(read, draw),
                            prune,
                            strict: draw.below(4) == 0,
                            values: draw.below(4) > 0,
                            window_bytes: *draw.of_these(&[1, 64, 1 << 20]),
                            ..own.clone()
                        };
                        let _ = writeln!(seen, "{:?}", own.wanted);
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
            let own = Options {
                window_bytes: *draw.of_these(&[1, 50, 1 << 20]),
                lookup_table_bytes: *draw.of_these(&[0, 200, 16 << 20]),
                ..own
            };
            look_up(&source, &own, read, draw, seen);
        });
        let source = self.whole();
        self.section("look-ups in memory", |draw, seen| {
            look_up(&source, &options, read, draw, seen)
        });
        if self.format.name == "chunked" {
            let path = self.folder.join("file.index");
            let (source, options) = (self.whole(), self.options());
            self.section("index", |draw, seen| {
                match index(source.clone(), &options, Some(&path), true) {
                    Ok(made) => {
                        let _ = writeln!(seen, "{} {}", made.items, made.size);
                    }
                    Err(error) => return write_error(seen, &error),
                }
                let mut bytes = fs::read(&path).unwrap_or_default();
                let _ = writeln!(seen, "{bytes:?}");
                for lies in [false, true] {
                    if lies && !bytes.is_empty() {
                        let at = draw.below(bytes.len());
                        bytes[at] ^= 1 << draw.below(8);
                    }
                    let index = IndexSource::Source(Arc::new(BytesSource::new(bytes.clone())));
                    let own = Options {
                        index,
                        ..options.clone()
                    };
                    look_up(&source, &own, read, draw, seen);
                }
                let _ = fs::remove_file(&path);
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
            let own = Options {
                window_bytes: *draw.of_these(&[1, 20, 64, 1 << 20]),
                strict: draw.below(4) == 0,
                wanted: if choosing {
                    wanted(read, draw)
                } else {
                    Wanted::default()
                },
                prune: draw.below(2) == 0,
                ..options
            };
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
                let recovery = Recovery {
                    force,
                    renumber: force,
                    ..Recovery::default()
                };
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
                                undo_recover(&source, None, &back, false, &options, |_, _| Ok(()))
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
                let how = SealOptions {
                    trailer: draw.below(2) == 0,
                    overwrite: false,
                };
                let options = Options {
                    strict: draw.below(2) == 0,
                    ..options
                };
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
            let write = WriteOptions {
                dialect: options.dialect,
                trailer: draw.below(4) > 0,
                version: if draw.below(4) > 0 { 2 } else { 1 },
                chunk_records: *draw.of_these(&[1, 3, 1000]),
                memory_bytes: *draw.of_these(&[0, 1000, 1 << 20]),
                ..WriteOptions::default()
            };
            let names: Vec<_> = format
                .columns(&options)
                .iter()
                .map(|column| column.name)
                .collect();
            let has = |wanted: &Format, name: &str| {
                wanted
                    .columns(&options)
                    .iter()
                    .any(|column| column.name == name)
            };
            let drop: Vec<_> = names
                .iter()
                .filter(|name| !has(to, name))
                .map(|name| (*name).to_owned())
                .collect();
            let set: Vec<(String, Value<'_>)> = to
                .columns(&options)
                .iter()
                .filter(|column| !column.optional && !names.contains(&column.name))
                .map(|column| {
                    let value = match column.name {
                        "tenant" | "type" => Value::Text(b"t"),
                        "timestamp" => Value::Timestamp(1),
                        "value" => Value::Binary(b"v"),
                        _ => Value::Int64(7),
                    };
                    (column.name.to_owned(), value)
                })
                .collect();
            let conversion = Conversion {
                to,
                write,
                drop: &drop,
                set: &set,
                overwrite: false,
            };
            match convert(source, &options, &path, &conversion, |_| Ok(())) {
                Ok(report) => {
                    let _ = writeln!(seen, "{} {:?}", report.records, report.damage);
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
    let mut walk = match open(source.clone(), options, start) {
        Ok(walk) => walk,
        Err(error) => {
            write_error(seen, &error);
            return None;
        }
    };
    let mut found_damage = false;
    let (mut steps, mut waits) = (0, None);
    loop {
        if resume_at == Some(steps) {
            let carry = walk.carry();
            walk = match open(source.clone(), options, Start::Carry(&carry)) {
                Ok(walk) => walk,
                Err(error) => {
                    write_error(seen, &error);
                    return None;
                }
            };
            resume_at = None;
        }
        steps += 1;
        match step(&mut *walk) {
            Ok(Step::More) => {
                write_rows(&*walk, options, &mut rows, read);
                found_damage |= walk.found_damage();
                for span in walk.spans() {
                    let _ = writeln!(spans, "{span:?}");
                }
                if let Some(run) = walk.record_run() {
                    assert_eq!(run.records, walk.spans().len() as u64, "a run is the spans");
                }
            }
            Ok(Step::Done) => break,
            Ok(Step::Wait) => {
                waits = Some(walk.carry());
                break;
            }
            Err(error) => {
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
        "{:?} {} {} {found_damage} {} {}",
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
    let columns = options.format.expect("a format").columns(options).len();
    for row in 0..rows.len() {
        let fields: Vec<_> = (0..columns).map(|column| rows.field(row, column)).collect();
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
        read.times.extend(rows.timestamp(row));
        read.ids.extend(id(&fields));
        read.types.extend(type_of(&fields));
    }
    let _ = writeln!(out, "{:?}", rows.times());
}

/// What a record is found by.
fn id(fields: &[Value<'_>]) -> Option<RecordId> {
    Some(match fields {
        [Value::Uuid(uuid), ..] => RecordId::Uuid(*uuid),
        [
            Value::Int64(partition),
            Value::Text(tenant),
            Value::Int64(index),
            _,
        ] => RecordId::Message {
            partition: u32::try_from(*partition).ok()?,
            tenant: tenant.to_vec(),
            index: u64::try_from(*index).ok()?,
        },
        [Value::Int64(offset), Value::Timestamp(_), _] => RecordId::Offset(*offset),
        [Value::Int64(seq), ..] => RecordId::Seq(u64::try_from(*seq).ok()?),
        _ => return None,
    })
}

fn type_of(fields: &[Value<'_>]) -> Option<Vec<u8>> {
    match fields {
        [Value::Uuid(_), _, Value::Text(kind), _] => Some(kind.to_vec()),
        _ => None,
    }
}

/// Some records, by where some of them are.
fn wanted(read: &Read, draw: &mut Draw) -> Wanted {
    let mut wanted = Wanted::default();
    if read.ids.is_empty() {
        return wanted;
    }
    let (one, other) = (draw.below(read.ids.len()), draw.below(read.ids.len()));
    let kind = draw.below(4);
    let mut bounds = |since: Bound, until: Bound| {
        wanted.since = (kind != 2).then_some(since);
        wanted.until = (kind != 3).then_some(until);
    };
    match (&read.ids[one], &read.ids[other]) {
        (RecordId::Uuid(one_id), RecordId::Uuid(other_id)) => {
            if draw.below(2) == 0 {
                bounds(Bound::Uuid(*one_id), Bound::Uuid(*other_id));
            } else {
                bounds(
                    Bound::Micros(read.times[one]),
                    Bound::Micros(read.times[other]),
                );
            }
            wanted.types = (draw.below(3) == 0).then(|| vec![draw.of_these(&read.types).clone()]);
        }
        (RecordId::Message { partition, .. }, RecordId::Message { tenant, .. }) => {
            wanted.partitions = (kind != 2).then(|| vec![*partition]);
            wanted.tenants = (kind != 3).then(|| vec![tenant.clone()]);
        }
        (RecordId::Offset(from), RecordId::Offset(to)) => {
            if kind > 1 {
                bounds(
                    Bound::Micros(read.times[one]),
                    Bound::Micros(read.times[other]),
                );
            }
            wanted.offsets = (kind != 2).then_some(from.cast_unsigned()..to.cast_unsigned());
        }
        _ => {}
    }
    wanted
}

/// Identifiers of records and such as are near them.
fn sought(read: &Read, draw: &mut Draw) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for id in read.ids.iter().take(60) {
        ids.push(id.clone());
        let up = draw.below(2) == 0;
        ids.push(match id {
            RecordId::Uuid(uuid) => {
                let number = u128::from_be_bytes(*uuid);
                let near = if up {
                    number.wrapping_add(1)
                } else {
                    number.wrapping_sub(1)
                };
                RecordId::Uuid(near.to_be_bytes())
            }
            RecordId::Offset(offset) => {
                RecordId::Offset(offset.wrapping_add(if up { 1 } else { -1 }))
            }
            RecordId::Seq(seq) => RecordId::Seq(seq.wrapping_add(1)),
            RecordId::Message {
                partition,
                tenant,
                index,
            } => RecordId::Message {
                partition: partition.wrapping_add(u32::from(up)),
                tenant: tenant.clone(),
                index: index.wrapping_add(1),
            },
        });
    }
    ids.push(RecordId::Uuid([0xff; 16]));
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
    let mut ids = sought(read, draw);
    if !matches!(ids[0], RecordId::Uuid(_)) {
        ids.pop();
    }
    for strict in [false, true] {
        let own = Options {
            strict,
            ..options.clone()
        };
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
        match found.range(&range) {
            Ok(mut walk) => loop {
                match step(&mut *walk) {
                    Ok(Step::More) => {
                        write_rows(&*walk, &own, seen, &mut Read::default());
                        for span in walk.spans() {
                            let _ = writeln!(seen, "{span:?}");
                        }
                    }
                    Ok(step) => {
                        let _ = writeln!(seen, "{step:?}");
                        break;
                    }
                    Err(error) => {
                        write_error(seen, &error);
                        break;
                    }
                }
            },
            Err(error) => write_error(seen, &error),
        }
    }
}

fn write_hits(hits: &Hits, options: &Options, seen: &mut String) {
    let columns = options.format.expect("a format").columns(options).len();
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
