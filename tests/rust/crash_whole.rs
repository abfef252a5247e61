//! Losses of power while files are made that are written whole: afterwards each is there as before, or complete.

use std::path::Path;
use std::sync::Arc;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, is_needed, old_or_new, seeds};
use crate::fault_samples::{contents_of, options, value, write};
use crate::simulated::Simulated;
use seglake::format::{self, FORMATS, Format, IfExists, Options, WriteOptions};
use seglake::format::{active, chunked, sealed, tenant};
use seglake::source::{FileSource, Source};
use seglake::verbs::{self, ConvertOptions, RecoverOptions, SealOptions};

const RECORDS: u64 = 12;

type Prepare = Box<dyn Fn(&Simulated)>;
type Work = Box<dyn Fn(&Simulated, &mut Acknowledged) -> seglake::Result<()>>;

/// Work that makes files, of which the last one to appear is known.
struct Making {
    name: String,
    last: String,
    prepare: Prepare,
    work: Work,
}

impl Making {
    fn new(
        name: String,
        last: &str,
        prepare: impl Fn(&Simulated) + 'static,
        work: impl Fn(&Simulated) -> seglake::Result<()> + 'static,
    ) -> Self {
        Self {
            name,
            last: last.to_owned(),
            prepare: Box::new(move |disk| {
                prepare(disk);
                disk.settle();
            }),
            work: Box::new(move |disk, _| work(disk)),
        }
    }

    fn with<T>(&self, test: impl FnOnce(Crashes<'_>) -> T) -> T {
        let check = |aftermath: Aftermath<'_>| -> Checked { old_or_new(&aftermath, &self.last) };
        test(Crashes {
            name: self.name.clone(),
            prepare: &*self.prepare,
            work: &*self.work,
            check: &check,
        })
    }
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new("/data").join(name)
}

fn source(disk: &Simulated, name: &str) -> seglake::Result<Arc<dyn Source>> {
    Ok(Arc::new(FileSource::on(&disk.disk(), &path(name))?))
}

fn reading(disk: &Simulated) -> Options {
    Options::default().disk(disk.disk())
}

fn writing(disk: &Simulated, format: &Format) -> WriteOptions {
    options(format).disk(disk.disk())
}

/// Writes a file of [`RECORDS`] records, whole.
fn sample(
    disk: &Simulated,
    name: &str,
    format: &Format,
    options: &WriteOptions,
) -> seglake::Result<()> {
    let options = options.clone().disk(disk.disk());
    let mut writer = format::create(format, path(name), &options)?;
    for number in 0..RECORDS {
        write(&mut *writer, format, number)?;
    }
    writer.close()
}

fn in_the_way(disk: &Simulated, overwrite: bool, names: &[&str]) {
    for name in names.iter().filter(|_| overwrite) {
        disk.put(
            &format!("/data/{name}"),
            format!("what was in {name}").as_bytes(),
        );
    }
}

/// Everything in which one file is made at a time, or several that belong together.
fn all() -> Vec<Making> {
    let mut all = Vec::new();
    for overwrite in [false, true] {
        all.extend(writing_whole(overwrite));
        all.push(sealing(overwrite));
        all.push(indexing(overwrite));
        for &format in FORMATS {
            all.push(converting(format, overwrite));
            all.push(recovering(format, overwrite));
            all.push(undoing(format, overwrite));
        }
    }
    all
}

fn writing_whole(overwrite: bool) -> Vec<Making> {
    let versions = [
        (&sealed::FORMAT, 2),
        (&tenant::FORMAT, 1),
        (&tenant::FORMAT, 2),
    ];
    let making = versions.into_iter().map(|(format, version)| {
        let options = options(format)
            .set("version", version)
            .if_exists(IfExists::overwrite_if(overwrite))
            .concerning(format);
        Making::new(
            format!("write {format:?} {version}, overwrite: {overwrite}"),
            "new",
            move |disk| in_the_way(disk, overwrite, &["new"]),
            move |disk| sample(disk, "new", format, &options),
        )
    });
    making.collect()
}

fn sealing(overwrite: bool) -> Making {
    let prepare = move |disk: &Simulated| {
        sample(
            disk,
            "old.active",
            &active::FORMAT,
            &options(&active::FORMAT),
        )
        .unwrap();
        in_the_way(disk, overwrite, &["new.sealed"]);
    };
    let name = format!("seal, overwrite: {overwrite}");
    Making::new(name, "new.sealed", prepare, move |disk| {
        let seal = SealOptions::default().if_exists(IfExists::overwrite_if(overwrite));
        let (old, new) = (source(disk, "old.active")?, path("new.sealed"));
        verbs::seal(old, &reading(disk), &new, &seal, |_| Ok(())).map(drop)
    })
}

fn converting(format: &'static Format, overwrite: bool) -> Making {
    let new = format!("new.{}", format.extension);
    let (last, old) = (new.clone(), format!("old.{}", format.extension));
    let (own, theirs) = (old.clone(), new.clone());
    let prepare = move |disk: &Simulated| {
        sample(disk, &own, format, &options(format)).unwrap();
        in_the_way(disk, overwrite, &[&theirs]);
    };
    let name = format!("convert to {format:?}, overwrite: {overwrite}");
    Making::new(name, &last, prepare, move |disk| {
        let conversion = ConvertOptions::to(format)
            .write(writing(disk, format))
            .if_exists(IfExists::overwrite_if(overwrite));
        let options = reading(disk).format(format);
        verbs::convert(
            source(disk, &old)?,
            &options,
            path(&new),
            &conversion,
            |_| Ok(()),
        )
        .map(drop)
    })
}

fn indexing(overwrite: bool) -> Making {
    let prepare = move |disk: &Simulated| {
        let options = options(&chunked::FORMAT).set("index", false);
        sample(disk, "log.chunks", &chunked::FORMAT, &options).unwrap();
        in_the_way(disk, overwrite, &["log.index"]);
    };
    let name = format!("index, overwrite: {overwrite}");
    Making::new(name, "log.index", prepare, move |disk| {
        let log = source(disk, "log.chunks")?;
        verbs::index(
            log,
            &reading(disk),
            None,
            IfExists::overwrite_if(overwrite),
            |_| Ok(()),
        )
        .map(drop)
    })
}

/// A file of this format, its end damaged.
fn damaged(disk: &Simulated, format: &Format) {
    let name = format!("old.{}", format.extension);
    sample(disk, &name, format, &options(format)).unwrap();
    let mut bytes = disk.files()[&name].clone();
    let place = bytes.len() - bytes.len() / 5;
    bytes[place] ^= 0x10;
    if format.name == "oplog" {
        bytes.truncate(place);
    }
    seglake::faults::Disk::unlink(disk, &path(&name)).unwrap();
    disk.put(path(&name).to_str().unwrap(), &bytes);
}

fn recover(disk: &Simulated, format: &'static Format, overwrite: bool) -> seglake::Result<()> {
    let recovery = RecoverOptions::default().if_exists(IfExists::overwrite_if(overwrite));
    let old = source(disk, &format!("old.{}", format.extension))?;
    let new = path(&format!("new.{}", format.extension));
    let options = reading(disk).format(format);
    verbs::recover(old, &options, &new, &recovery, |_| Ok(())).map(drop)
}

fn recovering(format: &'static Format, overwrite: bool) -> Making {
    let new = format!("new.{}", format.extension);
    let last = new.clone();
    let prepare = move |disk: &Simulated| {
        damaged(disk, format);
        let quarantine = format!("{new}.quarantine");
        let manifest = format!("{quarantine}.manifest.jsonl");
        in_the_way(disk, overwrite, &[&new, &quarantine, &manifest]);
        if format.name == "chunked" {
            in_the_way(disk, overwrite, &["new.index"]);
        }
    };
    let name = format!("recover {format:?}, overwrite: {overwrite}");
    Making::new(name, &last, prepare, move |disk| {
        recover(disk, format, overwrite)
    })
}

fn undo(disk: &Simulated, format: &Format, overwrite: bool) -> seglake::Result<()> {
    let recovered = source(disk, &format!("new.{}", format.extension))?;
    let (undone, options) = (path("undone"), reading(disk));
    verbs::undo_recover(
        &recovered,
        None,
        &undone,
        IfExists::overwrite_if(overwrite),
        &options,
        |_, _| Ok(()),
    )
    .map(drop)
}

fn undoing(format: &'static Format, overwrite: bool) -> Making {
    let prepare = move |disk: &Simulated| {
        damaged(disk, format);
        recover(disk, format, false).unwrap();
        in_the_way(disk, overwrite, &["undone"]);
    };
    let name = format!("undo {format:?}, overwrite: {overwrite}");
    Making::new(name, "undone", prepare, move |disk| {
        undo(disk, format, overwrite)
    })
}

#[test]
fn each_file_is_as_before_or_complete() {
    for making in all() {
        making.with(|crashes| crashes.crash(seeds(8)));
    }
}

#[test]
fn errors_before_the_loss_change_nothing() {
    for making in all() {
        making.with(|crashes| crashes.trouble(seeds(2)));
    }
}

/// The tests above are worth something: they notice each sync, rename and sync of a folder that is left out.
#[test]
fn no_call_can_be_left_out() {
    for making in all() {
        let tried = making.with(|crashes| crashes.mutate(0..40, is_needed));
        assert!(tried >= 3, "{}: {tried}", making.name);
    }
}

/// What is complete is what it should be: comparing with it is worth something.
#[test]
fn what_is_made_is_read_back() {
    for making in all() {
        let disk = Simulated::new();
        (making.prepare)(&disk);
        (making.work)(&disk, &mut Acknowledged::default()).unwrap();
        let files = disk.files();
        assert!(!files.keys().any(|name| name.starts_with('.')), "{files:?}");
        if making.name.starts_with("undo") {
            let old = files.iter().find(|(name, _)| name.starts_with("old."));
            assert!(files["undone"] == *old.unwrap().1, "{}", making.name);
        } else if !making.name.starts_with("index") {
            let made = source(&disk, &making.last).unwrap();
            let format = format::resolve(&*made, &Options::default()).unwrap();
            let (mut values, _) = contents_of(made, format);
            let mut expected: Vec<_> = (0..RECORDS).map(value).collect();
            if making.name.starts_with("recover") {
                assert!(values.len() >= expected.len() / 3, "{}", making.name);
                expected.retain(|value| values.contains(value));
            }
            values.sort();
            expected.sort();
            assert!(values == expected, "{}", making.name);
        }
    }
}
