//! Scanning and verifying an active segment, beside hashing the same messages one by one with the `highway` crate, and beside
//! hashing them many at once and nothing else. Also in windows of a file, and with the kernel below the best one.

use std::fs::{self, File};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use highway::{HighwayHash, HighwayHasher};
use seglake::checksum::Key;
use seglake::checksum::batch::{Batch, Kernel};
use seglake::format::Options;
use seglake::source::{FileSource, MappedSource, Source};
use seglake::verbs::verify;

use crate::compare::{Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment};

/// How near scanning and verifying is to come to hashing alone.
const HASHING_TARGET: f64 = 0.85;
/// What names the kernel of a process, and where a process of this program puts its rows.
const KERNEL: &str = "SEGLAKE_KERNEL";
const ROWS: &str = "SEGLAKE_RATIOS";

/// Of each kind of messages the ratio to hashing one by one that is to be reached.
fn targets(kernel: Kernel) -> [Option<f64>; 5] {
    match kernel {
        Kernel::Avx2 => [2.8, 2.2, 2.0, 2.0, 1.6].map(Some),
        Kernel::Avx512 => [4.0, 2.5, 2.5, 2.5, 2.0].map(Some),
        _ => [None; 5],
    }
}

pub(crate) fn run(comparison: &mut Comparison) {
    let kernel = Kernel::detected();
    let folder = tempfile::tempdir().unwrap();
    for ((name, lengths), target) in Lengths::ALL.into_iter().zip(targets(kernel)) {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let work = Work::Bytes(segment.bytes.len());
        let source = segment.source();
        let scan = |source: Arc<dyn Source>| {
            let report = verify(source, &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.records, segment.records.len() as u64);
        };
        let what = format!("verify {name}, {kernel}");
        comparison.run(
            &what,
            "highway, one by one",
            work,
            target,
            || scan(source.clone()),
            || one_by_one(&segment),
        );
        let (mut batch, mut hashes) = (Batch::new(), Vec::new());
        comparison.run(
            &what,
            "hashing many at once, alone",
            work,
            HASHING_TARGET,
            || scan(source.clone()),
            || batch.hash(&Key::DEFAULT, &segment.bytes, &segment.records, &mut hashes),
        );
        let path = folder.path().join("segment.active");
        fs::write(&path, &*segment.bytes).unwrap();
        comparison.run(
            format!("verify {name}, in windows"),
            "a new map",
            work,
            None,
            || {
                scan(Arc::new(
                    FileSource::new(File::open(&path).unwrap(), &path).unwrap(),
                ))
            },
            || {
                scan(Arc::new(
                    MappedSource::new(&File::open(&path).unwrap(), &path).unwrap(),
                ))
            },
        );
    }
    if std::env::var_os(KERNEL).is_none() && kernel == Kernel::Avx512 {
        run_below(comparison, Kernel::Avx2, folder.path());
    }
}

/// The same with another kernel, which is chosen once for a process: so in a process of its own.
fn run_below(comparison: &mut Comparison, kernel: Kernel, folder: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .arg("scan")
        .env(KERNEL, kernel.name())
        .env(ROWS, folder)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let rows = fs::read(folder.join("scan.json")).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&rows).unwrap();
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let number = |name: &str| row[name].as_f64().unwrap();
        // Reading in windows has been measured.
        if text("name").ends_with(kernel.name()) {
            let measured = (number("ours"), number("reference"));
            let target = row["target"].as_f64();
            comparison.enter(
                text("name"),
                &text("beside"),
                "GB/s",
                measured,
                number("ratio"),
                target,
            );
        }
    }
}

/// Hashes each record with the crate, and does nothing else.
pub(crate) fn one_by_one(segment: &Segment) {
    for (start, len) in &segment.records {
        let bytes = &segment.bytes[*start..*start + *len];
        black_box(HighwayHasher::new(highway::Key([0; 4])).hash64(bytes));
    }
}
