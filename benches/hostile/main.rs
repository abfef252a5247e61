//! Hostile files: each verified in how many times the time that a sound file of its size takes. `make bench` prints the ratios.
//!
//! Sizes other than 256 MiB are asked for by `SEGLAKE_BENCH_MIB`, files by a part of their name as an argument.
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

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::Family;
use seglake::format::{Dialect, IndexSource, Options, by_name};
use seglake::source::{FileSource, MappedSource, Source};
use seglake::verbs::verify;

/// Of so many runs the fastest counts.
const RUNS: usize = 3;
/// A file that takes longer than this is measured once.
const LONG: Duration = Duration::from_secs(2);

fn open(path: &Path, mapped: bool) -> Arc<dyn Source> {
    let file = std::fs::File::open(path).unwrap();
    if mapped {
        Arc::new(MappedSource::new(&file, path).unwrap())
    } else {
        Arc::new(FileSource::new(file, path).unwrap())
    }
}

/// How long verifying takes, the file being in the system's cache.
fn seconds(path: &Path, family: &Family, mapped: bool) -> f64 {
    let options = Options {
        format: Some(by_name(family.format).unwrap()),
        dialect: Dialect::by_name(family.dialect).unwrap(),
        index: IndexSource::None,
        ..Options::default()
    };
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let report = verify(open(path, mapped), &options, |_| Ok(())).unwrap();
        assert_eq!(report.bytes, report.size);
        best = best.min(begun.elapsed());
        if best > LONG {
            break;
        }
    }
    best.as_secs_f64()
}

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let mib: usize = std::env::var("SEGLAKE_BENCH_MIB").map_or(256, |mib| mib.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut results = Vec::new();
    for family in files::families() {
        let is_wanted = |name: &str| {
            let name = format!("{}: {name}", family.name);
            wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
        };
        if !family.hostile.iter().any(|(name, _)| is_wanted(name)) {
            continue;
        }
        let ways: &[bool] = if by_name(family.format).unwrap().mapped {
            &[true, false]
        } else {
            &[false]
        };
        for mapped in ways {
            let measure = |make: files::Make| {
                std::fs::write(&path, make(mib << 20)).unwrap();
                seconds(&path, &family, *mapped)
            };
            let clean = measure(family.clean);
            for (name, make) in family.hostile.iter().filter(|(name, _)| is_wanted(name)) {
                let taken = measure(*make);
                let way = if *mapped { "mapped" } else { "windows" };
                eprintln!(
                    "{} ({way}): {name}: {taken:.3} s, {:.2} times {clean:.3} s",
                    family.name,
                    taken / clean
                );
                results.push(serde_json::json!({
                    "family": family.name, "way": way, "file": name, "seconds": taken, "clean_seconds": clean,
                }));
            }
        }
    }
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/hostile.json");
    let mut file = std::fs::File::create(out).unwrap();
    let results = serde_json::json!({"mib": mib, "results": results});
    writeln!(file, "{results}").unwrap();
}
