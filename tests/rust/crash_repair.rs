//! Losses of power while files are repaired: afterwards the damaged file or the repaired one has the name, no damaged one is lost, and
//! the work can be taken up again.

use std::path::{Path, PathBuf};

use crate::crashes::{Aftermath, Checked, Crashes, is_needed, seeds};
use crate::parity::verified;
use crate::simulated::{Call, Done, Simulated};
use seglake::faults::Disk as _;
use seglake::format::Options;
use seglake::parity::{self, Outcome, Parameters};
use seglake::verbs::{self, ProtectOptions, RepairOptions};

const FILE: &str = "/data/log";
const SIDECAR: &str = "/data/log.par";
/// Of the file and of its sidecar: the name, and the name of what was damaged.
const NAMES: [(&str, &str); 2] = [("log", "log.damaged"), ("log.par", "log.par.damaged")];

fn content() -> Vec<u8> {
    let byte = |at| u8::try_from(at * 31 % 251 + 1).unwrap();
    (0..5000).map(byte).collect()
}

fn repair(disk: &Simulated) -> seglake::Result<verbs::Repaired> {
    let options = Options::default().disk(disk.disk());
    let repairing = RepairOptions::default().raw(true);
    verbs::repair(Path::new(FILE), &options, &repairing, |_| Ok(()))
}

fn change(disk: &Simulated, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.files()[path.strip_prefix("/data/").unwrap()].clone();
    change(&mut bytes);
    disk.unlink(Path::new(path)).unwrap();
    disk.put(path, &bytes);
}

/// Changes a file and its sidecar.
type Damage = fn(&mut Vec<u8>, &mut Vec<u8>);

/// Damage to a file and its sidecar, all of which can be repaired.
struct Damaged {
    name: &'static str,
    damage: Damage,
    /// Whether the file system has hard links.
    has_links: bool,
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
        [false, true].map(|has_links| Damaged {
            name,
            damage,
            has_links,
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
        let protection = ProtectOptions::default().raw(true).parameters(parameters);
        verbs::protect(Path::new(FILE), &options, &protection, |_| Ok(())).unwrap();
        change(disk, FILE, |file| {
            change(disk, SIDECAR, |sidecar| (self.damage)(file, sidecar))
        });
        if !self.has_links {
            disk.link_nothing();
        }
        disk.settle();
        assert!(disk.files()["log"] != content() || disk.files()["log.par"].len() > 56);
    }

    fn check(&self, aftermath: &Aftermath<'_>) -> Checked {
        let disk = &aftermath.disk;
        let files = disk.visible();
        let mut is_new = Vec::new();
        for (name, aside) in NAMES {
            let (old, new) = (&aftermath.before[name], &aftermath.after[name]);
            let kept = files.get(aside);
            if kept.is_some_and(|kept| kept != old) {
                return Err(format!("{aside} is not the damaged file"));
            }
            match files.get(name) {
                None if self.has_links || kept.is_none() => return Err(format!("{name} is gone")),
                Some(own) if own != old && own != new => return Err(format!("half of {name}")),
                Some(own) if own == new && old != new && kept.is_none() => {
                    return Err(format!("the damaged {name} is gone"));
                }
                own => is_new.push(own == Some(new)),
            }
        }
        if aftermath.is_smooth
            && !is_new[0]
            && aftermath.before["log.par"] != aftermath.after["log.par"]
            && is_new[1]
        {
            return Err("the sidecar was replaced before the file".to_owned());
        }
        if aftermath.acknowledged.all && is_new.contains(&false) {
            return Err("it is not repaired".to_owned());
        }
        for (name, aside) in NAMES.iter().filter(|(name, _)| !files.contains_key(*name)) {
            let error = repair(disk).map(drop).unwrap_err().to_string();
            if !error.contains(&format!("{aside}: a repair was interrupted")) {
                return Err(error);
            }
            let [from, to] = [aside, name].map(|name| Path::new("/data").join(name));
            disk.rename(&from, &to).unwrap();
        }
        let done = repair(disk).map_err(|error| error.to_string())?;
        if disk.visible() != *aftermath.after {
            return Err(format!("repaired, and then: {:?}", done.report));
        }
        let kept = (done.damaged, done.damaged_sidecar);
        let again = repair(disk).map_err(|error| error.to_string())?;
        match (again.changed, again.damaged, again.damaged_sidecar) {
            (0, None, None) => Ok(()),
            changed => Err(format!("repaired again, {changed:?} after {kept:?}")),
        }
    }

    fn with<T>(&self, test: impl FnOnce(Crashes<'_>) -> T) -> T {
        let repaired = Simulated::new();
        self.prepare(&repaired);
        repair(&repaired).unwrap();
        let files = repaired.files();
        let report = verified(&files["log"], &files["log.par"], parity::Options::default());
        assert_eq!(
            (&files["log"], report.outcome),
            (&content(), Outcome::Sound)
        );
        // A disk is made once, so that the sidecar is the same each time.
        let prepared = Simulated::new();
        self.prepare(&prepared);
        let files = prepared.files();
        let prepare = |disk: &Simulated| {
            if !self.has_links {
                disk.link_nothing();
            }
            for (name, bytes) in &files {
                disk.put(&format!("/data/{name}"), bytes);
            }
            disk.settle();
        };
        test(Crashes {
            name: format!("{}, links: {}", self.name, self.has_links),
            prepare: &prepare,
            work: &|disk, _| repair(disk).map(drop),
            check: &|aftermath| self.check(&aftermath),
        })
    }
}

#[test]
fn the_damaged_or_the_repaired_file_is_there_and_the_work_is_taken_up() {
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

/// The tests above are worth something: they notice each sync, link, rename and sync of a folder that is left out.
#[test]
fn no_call_of_repairing_can_be_left_out() {
    for damaged in all() {
        let is_needed = |calls: &[Done], at: usize| {
            let is_name = |own: &&Done| matches!(own.call, Call::Link | Call::Rename);
            let next = calls[at + 1..].iter().find(is_name);
            // Between the two files the folder is synced twice, which is once too often.
            let is_twice = next.is_some_and(|next| next.path == Path::new(SIDECAR));
            let is_twice = calls[at].call == Call::SyncFolder && is_twice;
            calls[at].call == Call::Link || is_needed(calls, at) && !is_twice
        };
        let tried = damaged.with(|crashes| crashes.mutate(0..80, is_needed));
        assert!(tried >= 5, "{}: {tried}", damaged.name);
    }
}

/// The folder of the file may be one in which no other file can be made.
#[test]
fn nothing_is_made_beside_a_file_that_is_repaired_elsewhere() {
    let disk = Simulated::new();
    disk.create_folder(Path::new("/other")).unwrap();
    all().swap_remove(1).prepare(&disk);
    let how = RepairOptions::default().destination(PathBuf::from("/other/log"));
    let before = disk.count();
    let options = Options::default().disk(disk.disk());
    verbs::repair(Path::new(FILE), &options, &how.raw(true), |_| Ok(())).unwrap();
    for done in &disk.calls()[before..] {
        assert!(!done.path.starts_with("/data"), "{done:?}");
    }
}
