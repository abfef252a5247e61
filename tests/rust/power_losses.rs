//! Losses of power at every step of every writer and verb. Whatever was not synced may be lost. Records that were synced are there
//! afterwards. A file that is written whole is there whole, or as it was before.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::fault_samples::{
    self, appended, contents, folder, options, sample, source, value, write,
};
use crate::power_loss::{Disk, State};
use seglake::format::{self, FORMATS, Format, IfExists, Options, active, chunked, sealed, tenant};
use seglake::ledger::Kind;
use seglake::verbs::{self, Conversion, Recovery, SealOptions};

const RECORDS: u64 = 12;

type Files = BTreeMap<String, Rc<[u8]>>;

/// The files of a state without those whose name, or the name of a folder above them, begins with a dot.
fn visible(state: &State) -> Files {
    let files = state.iter().filter(|(path, _)| !path.starts_with('.'));
    files
        .filter_map(|(path, content)| Some((path.clone(), content.clone()?)))
        .collect()
}

/// Does `work` in a folder that `prepare` fills. In each state that a loss of power may leave, each file must be as before the work or
/// as after it, and after the last step all must be as after it. `last` is the file that must appear after all others if only the
/// process dies.
fn all_or_nothing(
    name: &str,
    last: &str,
    prepare: impl Fn(&Path),
    work: impl Fn(&Path) -> seglake::Result<()>,
) {
    let folder = folder();
    prepare(folder.path());
    let disk = Disk::new(folder.path());
    Disk::watch(&disk, || work(folder.path())).unwrap();
    let end = disk.borrow_mut().moment();
    let disk = disk.borrow();
    let kept = disk.kept();
    let (before, after) = (visible(&kept[0]), visible(&kept[end]));
    assert_ne!(before, after, "{name}");
    let mut outcomes = BTreeSet::new();
    for (moment, state) in disk.states(0) {
        let files = visible(&state);
        for (path, content) in &files {
            let is_whole = [&before, &after].map(|own| own.get(path) == Some(content));
            assert!(
                is_whole.contains(&true),
                "{name}, step {moment} of {end}: half of {path}"
            );
        }
        for path in before.keys().filter(|path| after.contains_key(*path)) {
            assert!(
                files.contains_key(path),
                "{name}, step {moment} of {end}: {path} is gone"
            );
        }
        if moment == end {
            assert!(
                files == after,
                "{name}: not on the disk: {:?}, {:?}",
                files.keys(),
                after.keys()
            );
        }
        outcomes.insert(files == after);
    }
    assert_eq!(outcomes.len(), 2, "{name}");
    for state in kept.iter().map(visible) {
        if state.get(last) == after.get(last) {
            assert!(state == after, "{name}: {last} appears too early");
        }
    }
}

fn in_the_way(folder: &Path, names: &[&str]) {
    for name in names {
        fs::write(folder.join(name), format!("what was in {name}")).unwrap();
    }
}

#[test]
fn writing_whole() {
    for (format, version) in [
        (&sealed::FORMAT, 2),
        (&tenant::FORMAT, 1),
        (&tenant::FORMAT, 2),
    ] {
        for overwrite in [false, true] {
            let options = options(format)
                .set("version", version)
                .if_exists(IfExists::overwrite_if(overwrite))
                .concerning(format);
            let prepare = |folder: &Path| {
                if overwrite {
                    in_the_way(folder, &["new"]);
                }
            };
            let name = format!("{format:?} {version}, overwrite: {overwrite}");
            all_or_nothing(&name, "new", prepare, |folder| {
                let mut writer = format::create(format, &folder.join("new"), &options)?;
                for number in 0..RECORDS {
                    write(&mut *writer, format, number)?;
                }
                writer.close()
            });
        }
    }
}

#[test]
fn sealing() {
    for overwrite in [false, true] {
        let prepare = |folder: &Path| {
            sample(&folder.join("old.active"), &active::FORMAT, RECORDS);
            if overwrite {
                in_the_way(folder, &["new.sealed"]);
            }
        };
        let name = format!("seal, overwrite: {overwrite}");
        all_or_nothing(&name, "new.sealed", prepare, |folder| {
            let seal = SealOptions::default().trailer(true).overwrite(overwrite);
            let old = source(&folder.join("old.active"))?;
            let new = folder.join("new.sealed");
            verbs::seal(old, &Options::default(), &new, &seal, |_| Ok(())).map(drop)
        });
    }
}

#[test]
fn converting() {
    for format in FORMATS {
        for overwrite in [false, true] {
            let new = format!("new.{}", format.extension);
            let prepare = |folder: &Path| {
                sample(&folder.join("old"), format, RECORDS);
                if overwrite {
                    in_the_way(folder, &[&new]);
                }
            };
            let name = format!("convert to {format:?}, overwrite: {overwrite}");
            all_or_nothing(&name, &new, prepare, |folder| {
                let conversion = Conversion::to(format)
                    .write(options(format))
                    .overwrite(overwrite);
                let old = source(&folder.join("old"))?;
                let options = Options::default().format(*format);
                verbs::convert(old, &options, &folder.join(&new), &conversion, |_| Ok(())).map(drop)
            });
        }
    }
}

#[test]
fn indexing() {
    for overwrite in [false, true] {
        let prepare = |folder: &Path| {
            sample(&folder.join("log.chunks"), &chunked::FORMAT, RECORDS);
            fs::remove_file(folder.join("log.index")).unwrap();
            if overwrite {
                in_the_way(folder, &["log.index"]);
            }
        };
        let name = format!("index, overwrite: {overwrite}");
        all_or_nothing(&name, "log.index", prepare, |folder| {
            let log = source(&folder.join("log.chunks"))?;
            verbs::index(log, &Options::default(), None, overwrite).map(drop)
        });
    }
}

/// A file of this format, its end damaged.
fn damaged(folder: &Path, format: &'static Format) {
    let path = folder.join(format!("old.{}", format.extension));
    sample(&path, format, RECORDS);
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.len() - bytes.len() / 5;
    bytes[place] ^= 0x10;
    if format.name == "oplog" {
        bytes.truncate(place);
    }
    fs::write(&path, bytes).unwrap();
}

fn recover(folder: &Path, format: &'static Format, overwrite: bool) -> seglake::Result<()> {
    let options = Options::default().format(format);
    let recovery = Recovery::default().overwrite(overwrite);
    let old = source(&folder.join(format!("old.{}", format.extension)))?;
    let new = folder.join(format!("new.{}", format.extension));
    verbs::recover(old, &options, &new, &recovery, |_| Ok(())).map(drop)
}

#[test]
fn recovering_and_undoing() {
    for &format in FORMATS {
        let new = format!("new.{}", format.extension);
        for overwrite in [false, true] {
            let prepare = |folder: &Path| {
                damaged(folder, format);
                if overwrite {
                    let quarantine = format!("{new}.quarantine");
                    let manifest = format!("{quarantine}.manifest.jsonl");
                    in_the_way(folder, &[&new, &quarantine, &manifest, "new.index"]);
                }
            };
            let name = format!("recover {format:?}, overwrite: {overwrite}");
            all_or_nothing(&name, &new, prepare, |folder| {
                recover(folder, format, overwrite)
            });
        }
        let prepare = |folder: &Path| {
            damaged(folder, format);
            recover(folder, format, false).unwrap();
        };
        all_or_nothing(&format!("undo {format:?}"), "undone", prepare, |folder| {
            let recovered = source(&folder.join(&new))?;
            let undone = folder.join("undone");
            let options = Options::default();
            verbs::undo_recover(&recovered, None, &undone, false, &options, |_, _| Ok(())).map(drop)
        });
    }
}

fn log(folder: &Path, format: &Format) -> PathBuf {
    folder.join(format!("log.{}", format.extension))
}

/// The values and damage of a log in each state from a step on, each state once.
fn each_log(
    disk: &Disk,
    format: &'static Format,
    start: usize,
    mut look: impl FnMut(usize, &[Vec<u8>], bool),
) {
    let mut seen = BTreeMap::new();
    for (moment, state) in disk.states(start) {
        let files = visible(&state);
        let (records, is_torn) = seen.entry(files.clone()).or_insert_with(|| {
            let folder = folder();
            for (path, content) in &files {
                fs::write(folder.path().join(path), content).unwrap();
            }
            let path = log(folder.path(), format);
            if !path.exists() {
                return (Vec::new(), false);
            }
            let (values, spans) = contents(&path, format);
            (values, spans.iter().any(|span| span.kind == Kind::TornTail))
        });
        look(moment, records, *is_torn);
    }
}

/// What was synced, and what existed before, is there in every later state.
#[test]
fn appending() {
    for format in appended() {
        for present in [0, 5] {
            let folder = folder();
            if present > 0 {
                sample(&log(folder.path(), format), format, present);
            }
            let disk = Disk::new(folder.path());
            let synced = RefCell::new(vec![(0, present)]);
            let options = options(format).if_exists(IfExists::Append);
            Disk::watch(&disk, || {
                let mut writer = format::create(format, &log(folder.path(), format), &options)?;
                for number in present..present + 9 {
                    match number - present {
                        3 | 6 => {
                            writer.sync()?;
                            synced
                                .borrow_mut()
                                .push((disk.borrow_mut().moment(), number));
                        }
                        8 => writer.flush()?,
                        _ => {}
                    }
                    write(&mut *writer, format, number)?;
                }
                writer.close()
            })
            .unwrap();
            let synced = synced.into_inner();
            let end = disk.borrow_mut().moment();
            let disk = disk.borrow();
            let mut least = u64::MAX;
            each_log(&disk, format, 0, |moment, values, _| {
                if moment == end {
                    least = least.min(values.len() as u64);
                }
                let sure = synced.iter().filter(|(at, _)| *at <= moment);
                let sure = sure.map(|(_, records)| *records).max().unwrap_or_default();
                assert!(
                    values.len() as u64 >= sure,
                    "{format:?}, step {moment}: {} records of {sure}",
                    values.len()
                );
                let expected = (0..values.len() as u64).map(value);
                assert!(values.iter().cloned().eq(expected), "{format:?}");
            });
            assert_eq!(least, present + 6, "{format:?}: no more was synced");
        }
    }
}

/// A torn tail that was removed does not come back.
#[test]
fn removing_a_torn_tail() {
    for format in appended() {
        let folder = folder();
        let path = log(folder.path(), format);
        sample(&path, format, 5);
        let (_, spans) = contents(&path, format);
        let last = spans
            .iter()
            .rfind(|span| matches!(span.kind, Kind::Record | Kind::Chunk));
        let half = last.map(|span| span.start.midpoint(span.end)).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..usize::try_from(half).unwrap()]).unwrap();
        let disk = Disk::new(folder.path());
        let opened = Disk::watch(&disk, || {
            let options = fault_samples::options(format)
                .if_exists(IfExists::Append)
                .set("zero_torn_tail", true);
            let writer = format::create(format, &path, &options).unwrap();
            let opened = disk.borrow_mut().moment();
            drop(writer);
            opened
        });
        let disk = disk.borrow();
        let mut states = 0;
        each_log(&disk, format, 0, |moment, values, is_torn| {
            assert_eq!(values.len(), 4, "{format:?}");
            assert!(moment < opened || !is_torn, "{format:?}");
            states += usize::from(is_torn);
        });
        assert!(states > 0, "{format:?}");
    }
}
