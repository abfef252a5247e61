//! Hostile files. The time to verify each is a multiple of the time that a sound file of its size takes if its records
//! are hashed one by one. `make bench` prints the ratios.
//!
//! `SEGLAKE_BENCH_MIB` sets a size other than 256 MiB. An argument selects files by a part of their name.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap
)]

mod active;
mod chunked;
mod files;
mod oplog;
mod sealed;
mod tenant;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::Family;
#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};
use seglake::checksum::{Key, hash};
use seglake::format::{Dialect, IndexSource, Options, Start, Step, by_name, open as open_walk};
use seglake::ledger::{Kind, Span};
use seglake::source::{FileSource, MappedSource, Source};
use seglake::verbs::{Ledger, verify};

/// How much of a sound file is read at once, as in windows, in bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// How often each file is measured, in turns with the sound one. Each goes first in about half of the rounds.
const ROUNDS: usize = 4;
/// A file that takes longer than this is measured once.
const LONG: Duration = Duration::from_secs(2);

#[allow(unsafe_code)]
fn open(path: &Path, mapped: bool) -> Arc<dyn Source> {
    let file = std::fs::File::open(path).unwrap();
    if mapped {
        // SAFETY: nobody changes the file while it is measured.
        Arc::new(unsafe { MappedSource::new(&file, path) }.unwrap())
    } else {
        Arc::new(FileSource::new(file, path).unwrap())
    }
}

fn options(family: &Family) -> Options {
    Options::default()
        .format(by_name(family.format).unwrap())
        .dialect(family.dialect.parse::<Dialect>().unwrap())
        .index(IndexSource::None)
}

/// This thread's processor time, if the system has it: files are in the page cache, and other load has no effect.
/// Otherwise wall time.
#[cfg(unix)]
fn now(_: &Instant) -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

#[cfg(not(unix))]
fn now(begun: &Instant) -> Duration {
    begun.elapsed()
}

/// How long each of the two takes, in seconds, in each round.
fn in_turns(mut hostile: impl FnMut(), mut sound: impl FnMut()) -> Vec<(f64, f64)> {
    fn seconds(run: &mut impl FnMut()) -> f64 {
        let clock = Instant::now();
        let begun = now(&clock);
        run();
        (now(&clock) - begun).as_secs_f64()
    }
    sound(); // warms up
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS {
        if rounds.len().is_multiple_of(2) {
            let own = seconds(&mut hostile);
            rounds.push((own, seconds(&mut sound)));
        } else {
            let other = seconds(&mut sound);
            rounds.push((seconds(&mut hostile), other));
        }
        if rounds[0].0 > LONG.as_secs_f64() {
            break;
        }
    }
    rounds
}

/// The median; of an even number of values the greater of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The records of a sound file.
fn records(source: Arc<dyn Source>, options: &Options) -> Vec<Span> {
    let spans = Ledger::new(source, options).unwrap().map(Result::unwrap);
    spans.filter(|span| span.kind == Kind::Record).collect()
}

/// Reads a sound file in pieces and hashes its records one by one. Verifying hashes many at once.
fn hash_ranges(source: &dyn Source, records: &[Span], piece: &mut Vec<u8>) {
    let (mut all, mut rest) = (0, records);
    while let Some(start) = rest.first().map(|first| first.start) {
        let count = rest.partition_point(|record| record.end <= start + PIECE_BYTES);
        let (here, behind) = rest.split_at(count.max(1));
        let place = |offset: u64| usize::try_from(offset - start).unwrap();
        piece.resize(place(here.last().unwrap().end), 0);
        source.read_exact_at(start, piece).unwrap();
        for record in here {
            all ^= hash(
                &Key::DEFAULT,
                &piece[place(record.start)..place(record.end)],
            );
        }
        rest = behind;
    }
    black_box(all);
}

/// Reads a sound file of a format without such checksums, and hashes its values one by one.
fn hash_values(source: Arc<dyn Source>, options: &Options) {
    let mut walk = open_walk(source, options, Start::Beginning).unwrap();
    let mut all = 0;
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            all ^= hash(&Key::DEFAULT, rows.value(row));
        }
    }
    black_box(all);
}

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let mib: usize = std::env::var("SEGLAKE_BENCH_MIB").map_or(256, |mib| mib.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let [path, sound] = ["file", "sound"].map(|name| folder.path().join(name));
    let mut results = Vec::new();
    for family in files::families() {
        let is_wanted = |name: &str| {
            let name = format!("{}: {name}", family.name);
            wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
        };
        let hostile: Vec<_> = family
            .hostile
            .iter()
            .filter(|(name, _)| is_wanted(name))
            .collect();
        if hostile.is_empty() {
            continue;
        }
        std::fs::write(&sound, (family.clean)(mib << 20)).unwrap();
        let ways: &[bool] = if family.format == "sealed" {
            &[true, false]
        } else {
            &[false]
        };
        for mapped in ways {
            let options = options(&family);
            let records = if family.hashes_records {
                records(open(&sound, *mapped), &options)
            } else {
                Vec::new()
            };
            let mut piece = Vec::new();
            for (name, make) in &hostile {
                std::fs::write(&path, make(mib << 20)).unwrap();
                let rounds = in_turns(
                    || {
                        let report = verify(open(&path, *mapped), &options, |_| Ok(())).unwrap();
                        assert_eq!(report.summary.bytes, report.summary.size);
                    },
                    || {
                        let source = open(&sound, *mapped);
                        if family.hashes_records {
                            hash_ranges(&*source, &records, &mut piece);
                        } else {
                            hash_values(source, &options);
                        }
                    },
                );
                let way = if *mapped { "mapped" } else { "windows" };
                eprintln!(
                    "{} ({way}): {name}: {:.3} s, {:.2} times {:.3} s",
                    family.name,
                    median(rounds.iter().map(|(own, _)| *own)),
                    median(rounds.iter().map(|(own, other)| own / other)),
                    median(rounds.iter().map(|(_, other)| *other)),
                );
                results.push(serde_json::json!({
                    "family": family.name, "way": way, "file": name, "rounds": rounds,
                    "listed": files::is_listed(name),
                }));
            }
        }
    }
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/hostile.json");
    let mut file = std::fs::File::create(out).unwrap();
    let results = serde_json::json!({"mib": mib, "results": results});
    writeln!(file, "{results}").unwrap();
}
