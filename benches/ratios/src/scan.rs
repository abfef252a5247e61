//! Verifying an active segment, in memory and as a file. It is compared with only hashing the same records, and with hashing them one
//! after the other with the crate `highway`. Also with the second-best kernel of the processor.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use highway::{HighwayHash, HighwayHasher};
use seglake::checksum::Key;
use seglake::checksum::batch::{Batch, Kernel};
use seglake::format::Options;
use seglake::source::{FileSource, Source};
use seglake::verbs::verify;

use crate::compare::{Beside, Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment};

/// The share of hashing alone to reach. The rest is parsing and counting.
const TARGET: f64 = 0.85;
/// The variables that name the kernel of a process, and the folder for its rows.
const KERNEL: &str = "HIGHWAY_BATCH_KERNEL";
const ROWS: &str = "SEGLAKE_RATIOS";

pub(crate) fn run(comparison: &mut Comparison) {
    let kernel = Kernel::detected();
    let folder = tempfile::tempdir().unwrap();
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let work = Work::Bytes(segment.bytes.len());
        let source = segment.source();
        let scan = |source: Arc<dyn Source>| {
            let report = verify(source, &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.summary.records, segment.records.len() as u64);
        };
        let what = format!("verify, {name} ({kernel})");
        let (mut batch, mut hashes) = (Batch::new(), Vec::new());
        comparison.run(
            &what,
            Beside::Limit("hashing the records, many at once"),
            work,
            TARGET,
            || scan(source.clone()),
            || batch.hash(&Key::DEFAULT, &segment.bytes, &segment.records, &mut hashes),
        );
        comparison.run(
            &what,
            Beside::Peer("highway, one after the other"),
            work,
            1.0,
            || scan(source.clone()),
            || one_by_one(&segment),
        );
        let path = folder.path().join("segment.active");
        fs::write(&path, &*segment.bytes).unwrap();
        let mut pieces = Pieces::of(&segment);
        comparison.run(
            format!("verify a file, {name}"),
            Beside::Limit("reading it piece by piece, and hashing"),
            work,
            TARGET,
            || {
                scan(Arc::new(
                    FileSource::new(File::open(&path).unwrap(), &path).unwrap(),
                ))
            },
            || pieces.read_and_hash(&path),
        );
    }
    if std::env::var_os(KERNEL).is_none() && kernel == Kernel::Avx512 {
        run_below(comparison, Kernel::Avx2, folder.path());
    }
}

/// The same with another kernel. The kernel is chosen once for a process, so this runs in a separate one.
fn run_below(comparison: &mut Comparison, kernel: Kernel, folder: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .arg("scan")
        .env(KERNEL, kernel.name())
        .env(ROWS, folder)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    // Reading files was measured already.
    let of_kernel = format!("({kernel})");
    comparison.take_over(&folder.join("scan.json"), |name| name.ends_with(&of_kernel));
}

/// Hashes each record with the crate, and does nothing else.
pub(crate) fn one_by_one(segment: &Segment) {
    for (start, len) in &segment.records {
        let bytes = &segment.bytes[*start..*start + *len];
        black_box(HighwayHasher::new(highway::Key([0; 4])).hash64(bytes));
    }
}

/// A segment's records by pieces of a file. Each piece has whole records.
pub(crate) struct Pieces {
    /// The offset of each piece, and its records relative to that.
    pieces: Vec<(u64, Vec<(usize, usize)>)>,
    buffer: Vec<u8>,
    batch: Batch,
    hashes: Vec<u64>,
}

impl Pieces {
    /// Small enough to stay in the second cache until it is hashed.
    const BYTES: usize = 256 << 10;

    pub(crate) fn of(segment: &Segment) -> Self {
        Self::new(segment.records.iter().copied())
    }

    /// For ascending records: the offset of each, and how many of its bytes are hashed.
    pub(crate) fn new(records: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut pieces = Vec::<(u64, Vec<(usize, usize)>)>::new();
        let mut first = 0;
        for (start, len) in records {
            match pieces.last_mut() {
                Some((_, records)) if start + len - first <= Self::BYTES => {
                    records.push((start - first, len));
                }
                _ => {
                    first = start;
                    pieces.push((start as u64, vec![(0, len)]));
                }
            }
        }
        Self {
            pieces,
            buffer: Vec::new(),
            batch: Batch::new(),
            hashes: Vec::new(),
        }
    }

    /// Reads each piece into one buffer, and hashes its records there.
    pub(crate) fn read_and_hash(&mut self, path: &Path) {
        let file = File::open(path).unwrap();
        for (first, records) in &self.pieces {
            let (start, len) = records[records.len() - 1];
            self.buffer.resize(start + len, 0);
            file.read_exact_at(&mut self.buffer, *first).unwrap();
            self.batch
                .hash(&Key::DEFAULT, &self.buffer, records, &mut self.hashes);
            black_box(&self.hashes);
        }
    }
}
