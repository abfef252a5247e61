//! Losses of power while files are repaired and that is undone: afterwards no byte is worse than before, and the work can be
//! taken up again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, is_needed, seeds};
use crate::parity::verified;
use crate::simulated::{Done, Simulated, Trouble};
use seglake::Error;
use seglake::faults::Disk as _;
use seglake::format::Options;
use seglake::parity::{self, Outcome, Parameters};
use seglake::verbs::{self, Protection, Repairing};

const FILE: &str = "/data/log";
const SIDECAR: &str = "/data/log.par";

fn content() -> Vec<u8> {
    let byte = |at| u8::try_from(at * 31 % 251 + 1).unwrap();
    (0..5000).map(byte).collect()
}

fn repair(disk: &Simulated) -> seglake::Result<verbs::Repaired> {
    let options = Options::default().disk(disk.disk());
    let repairing = Repairing::default().raw(true);
    verbs::repair(Path::new(FILE), &options, &repairing, |_| Ok(()))
}

fn undo(disk: &Simulated) -> seglake::Result<u64> {
    let options = Options::default().disk(disk.disk());
    let undone = verbs::undo_repair(Path::new(FILE), &options, &Repairing::default());
    undone.map(|undone| undone.nbytes)
}

fn change(disk: &Simulated, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.files()[path.strip_prefix("/data/").unwrap()].clone();
    change(&mut bytes);
    disk.unlink(Path::new(path)).unwrap();
    disk.put(path, &bytes);
}

/// Whether anything is there of what a repair kept.
fn is_kept(files: &BTreeMap<String, Vec<u8>>) -> bool {
    files.keys().any(|name| name.starts_with("log.undo"))
}

/// Changes a file and its sidecar.
type Damage = fn(&mut Vec<u8>, &mut Vec<u8>);

/// Damage to a file and its sidecar, all of which can be repaired.
struct Damaged {
    name: &'static str,
    damage: Damage,
    /// Whether it is the undoing that loses power.
    undoing: bool,
}

fn flip(bytes: &mut [u8], range: std::ops::Range<usize>) {
    bytes[range].iter_mut().for_each(|byte| *byte ^= 0x55);
}

fn all() -> Vec<Damaged> {
    let damages: [(_, Damage); 6] = [
        ("a flip and a burst", |file, _| {
            flip(file, 1000..1001);
            flip(file, 2500..2900);
        }),
        ("the file is cut off", |file, _| {
            flip(file, 100..101);
            file.truncate(4880);
        }),
        ("the sidecar is damaged", |_, sidecar| {
            flip(sidecar, 60..80);
            flip(sidecar, 1500..2000);
        }),
        ("both are damaged", |file, sidecar| {
            flip(file, 0..100);
            flip(sidecar, 1700..1900);
        }),
        ("bytes of no frame", |file, sidecar| {
            flip(file, 3000..3100);
            flip(sidecar, 500..600);
            sidecar.splice(0..0, *b"bytes of no frame");
        }),
        ("the sidecar is cut off", |file, sidecar| {
            flip(file, 3000..3100);
            sidecar.truncate(sidecar.len() - 300);
        }),
    ];
    let both = damages.into_iter();
    both.flat_map(|(name, damage)| {
        [false, true].map(|undoing| Damaged {
            name,
            damage,
            undoing,
        })
    })
    .collect()
}

impl Damaged {
    /// The damaged files.
    fn prepare(&self, disk: &Simulated) {
        disk.put(FILE, &content());
        let options = Options::default().disk(disk.disk());
        let parameters = Parameters::new(64, 8, 2, 4).unwrap();
        let protection = Protection::default().raw(true).parameters(parameters);
        verbs::protect(Path::new(FILE), &options, &protection, |_| Ok(())).unwrap();
        change(disk, FILE, |file| {
            change(disk, SIDECAR, |sidecar| (self.damage)(file, sidecar))
        });
        disk.settle();
        assert!(disk.files()["log"] != content() || disk.files()["log.par"].len() > 56);
    }

    fn check(&self, aftermath: &Aftermath<'_>, damaged: &(Vec<u8>, Vec<u8>)) -> Checked {
        let (disk, right) = (&aftermath.disk, content());
        let files = disk.visible();
        let file = files.get("log").ok_or("the file is gone")?;
        let sidecar = files.get("log.par").ok_or("the sidecar is gone")?;
        let is_same = |at: usize| damaged.0.get(at) == right.get(at);
        let stays = |at: usize| !is_same(at) || file.get(at) == right.get(at);
        if !(0..damaged.0.len()).all(stays) {
            return Err("a byte of the file that was right is wrong now".to_owned());
        }
        let report = verified(file, sidecar, parity::Options::default());
        if matches!(report.outcome, Outcome::Lost | Outcome::Refused) {
            return Err(format!(
                "what could be repaired cannot be any more: {report:?}"
            ));
        }
        let said = |error: Error| error.to_string();
        if self.undoing {
            match undo(disk) {
                // It was complete: without a manifest there is nothing to undo.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound
                        && !files.contains_key("log.undo.manifest.jsonl") => {}
                done => drop(done.map_err(said)?),
            }
        } else {
            if aftermath.acknowledged.all && (*file != right || report.outcome != Outcome::Sound) {
                return Err(format!("it is not repaired: {report:?}"));
            }
            repair(disk).map_err(said)?;
            self.check_repaired(disk)?;
            undo(disk).map_err(said)?;
        }
        let files = disk.files();
        if (&files["log"], &files["log.par"]) != (&damaged.0, &damaged.1) {
            return Err("undone, the files are not as they were".to_owned());
        }
        if self.undoing && is_kept(&files) {
            return Err(format!(
                "undone, there is still what was kept: {:?}",
                files.keys()
            ));
        }
        if self.undoing && aftermath.acknowledged.all && (file, sidecar) != (&damaged.0, &damaged.1)
        {
            return Err("it is not undone".to_owned());
        }
        repair(disk).map_err(said)?;
        self.check_repaired(disk)
    }

    fn check_repaired(&self, disk: &Simulated) -> Checked {
        let files = disk.files();
        let report = verified(&files["log"], &files["log.par"], parity::Options::default());
        if files["log"] != content() || report.outcome != Outcome::Sound {
            return Err(format!("repaired, and then: {report:?}"));
        }
        Ok(())
    }

    fn with<T>(&self, test: impl FnOnce(Crashes<'_>) -> T) -> T {
        let prepared = Simulated::new();
        self.prepare(&prepared);
        let files = prepared.files();
        let damaged = (files["log"].clone(), files["log.par"].clone());
        if self.undoing {
            repair(&prepared).unwrap();
            prepared.settle();
        }
        let prepare = |disk: &Simulated| {
            for (name, bytes) in prepared.files() {
                disk.put(&format!("/data/{name}"), &bytes);
            }
            disk.settle();
        };
        let work = |disk: &Simulated, _: &mut Acknowledged| match self.undoing {
            true => undo(disk).map(drop),
            false => repair(disk).map(drop),
        };
        test(Crashes {
            name: format!("{}, undoing: {}", self.name, self.undoing),
            prepare: &prepare,
            work: &work,
            check: &|aftermath| self.check(&aftermath, &damaged),
        })
    }
}

#[test]
fn no_byte_is_worse_and_the_work_is_taken_up() {
    for damaged in all() {
        damaged.with(|crashes| crashes.crash(seeds(12)));
    }
}

#[test]
fn errors_before_the_loss_do_no_harm() {
    for damaged in all() {
        damaged.with(|crashes| crashes.trouble(seeds(6)));
    }
}

/// The tests above are worth something: they notice each sync, rename and sync of a folder that is left out.
#[test]
fn no_call_of_repairing_can_be_left_out() {
    for damaged in all() {
        // That a repair was complete may be forgotten: then it is taken up, and there is nothing to do. So may be what was undone.
        let is_needed = |calls: &[Done], at: usize| {
            let is_in = |part: &str| {
                calls[at]
                    .path
                    .to_str()
                    .is_some_and(|own| own.contains(part))
            };
            is_needed(calls, at) && (damaged.undoing || !is_in("/log.undo.manifest.jsonl"))
        };
        let tried = damaged.with(|crashes| crashes.mutate(0..60, is_needed));
        assert!(tried >= 3, "{}: {tried}", damaged.name);
    }
}

/// The folder of the file may be one in which no other file can be made.
#[test]
fn nothing_is_made_beside_a_file_that_is_undone_from_elsewhere() {
    let disk = Simulated::new();
    disk.create_folder(Path::new("/other")).unwrap();
    all().swap_remove(0).prepare(&disk);
    let options = Options::default().disk(disk.disk());
    for how in [
        Repairing::default().undo(PathBuf::from("/other/kept")),
        Repairing::default().to(PathBuf::from("/other/log")),
    ] {
        let disk = disk.copy();
        let before = disk.count();
        let options = options.clone().disk(disk.disk());
        verbs::repair(Path::new(FILE), &options, &how.raw(true), |_| Ok(())).unwrap();
        for done in &disk.calls()[before..] {
            let is_in_place = [FILE, SIDECAR]
                .iter()
                .any(|own| Path::new(own) == done.path);
            assert!(is_in_place || !done.path.starts_with("/data"), "{done:?}");
        }
    }
}

/// Wherever a process is killed that undoes repairs: undone again, both files are as before and nothing of what was kept is left.
#[test]
fn undoing_that_is_killed_comes_to_the_same_end() {
    let mut kills = 0;
    for damaged in all().into_iter().filter(|own| !own.undoing) {
        let disk = Simulated::new();
        damaged.prepare(&disk);
        let before = disk.visible();
        // Two repairs, of which the second completes the first.
        let interrupted = disk.copy();
        let first = disk.count();
        repair(&disk).unwrap();
        let calls = disk.count() - first;
        interrupted.trouble(first + calls - 3, Trouble::Broken);
        assert!(repair(&interrupted).is_err());
        repair(&interrupted).unwrap();
        for repaired in [disk, interrupted] {
            repaired.begin_tape();
            undo(&repaired).unwrap();
            assert!(repaired.visible() == before, "{}", damaged.name);
            for moment in repaired.end_tape() {
                let killed = moment.killed();
                if let Err(error) = undo(&killed) {
                    let is_done = matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound);
                    assert!(is_done && moment.call.is_none(), "{error}");
                }
                assert!(
                    killed.visible() == before,
                    "{}: {:?}",
                    damaged.name,
                    killed.visible().keys()
                );
                kills += 1;
            }
        }
    }
    assert!(kills > 100, "{kills}");
}
