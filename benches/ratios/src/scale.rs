//! Measures whether the cost of a byte depends on the file's size, and that of a record on their number. Also memory,
//! and cold files.
//!
//! The files are real, without holes: of up to 8 GiB, or what `SEGLAKE_RATIOS_GIB` says or the disk has room for, and
//! of up to 50 million records, or as many as `SEGLAKE_RATIOS_RECORDS` says.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, active};
use seglake::source::FileSource;
use seglake::verbs::verify;

use crate::compare::{Beside, Clock, Comparison, Rounds, Work};
use crate::messages::{Lengths, Messages, TYPE};
use crate::scan::Pieces;

/// The argument that makes this program read a file and print the memory that this took.
pub(crate) const PEAK: &str = "--peak";
/// The least ratio that is flat.
const FLAT: f64 = 0.9;
/// The share of reading a cold file to reach.
const COLD_TARGET: f64 = 0.9;
/// How often memory is measured.
const MEMORY_ROUNDS: usize = 3;
const MIB: u64 = 1 << 20;
const MIDDLE_BYTES: u64 = 64 * MIB;
const COLD_BYTES: u64 = 1024 * MIB;
const FEW_RECORDS: u64 = 1_000;
const MIDDLE_RECORDS: u64 = 1_000_000;
/// Records of 38 bytes: 9 for type and value.
const TINY: Lengths = Lengths::Each(8);
const TINY_TYPE: &[u8] = b"t";
/// Kept free on the disk in all cases.
const SPARE_BYTES: u64 = 2 << 30;

/// A file to measure and its amounts.
struct Segment {
    path: PathBuf,
    bytes: u64,
    records: u64,
}

impl Segment {
    /// Writes records until there are as many, or as many bytes.
    fn write(folder: &Path, lengths: Lengths, type_: &[u8], bytes: u64, records: u64) -> Self {
        let path = folder.join(format!("{bytes}-{records}.active"));
        let mut file = File::create(&path).unwrap();
        let mut messages = Messages::new(lengths);
        let mut own = Self {
            path,
            bytes: 0,
            records: 0,
        };
        let mut piece = Vec::new();
        while own.bytes < bytes && own.records < records {
            piece.clear();
            while piece.len() < MIB as usize
                && own.bytes + (piece.len() as u64) < bytes
                && own.records < records
            {
                messages.encode(&mut piece, type_);
                own.records += 1;
            }
            file.write_all(&piece).unwrap();
            own.bytes += piece.len() as u64;
        }
        // Unwritten bytes would disturb the measurement, and cannot be dropped from the cache.
        file.sync_all().unwrap();
        own
    }

    fn mixed(folder: &Path, bytes: u64) -> Self {
        Self::write(folder, Lengths::Lognormal(1.0), TYPE, bytes, u64::MAX)
    }

    fn tiny(folder: &Path, records: u64) -> Self {
        Self::write(folder, TINY, TINY_TYPE, u64::MAX, records)
    }

    /// Verifies it `times` times.
    fn verify(&self, times: u64) {
        for _ in 0..times {
            let records = verify_file(&self.path);
            assert_eq!(records, self.records);
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // A failure is ignored: the folder is removed later.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn source(path: &Path) -> Arc<FileSource> {
    Arc::new(FileSource::new(File::open(path).unwrap(), path).unwrap())
}

fn verify_file(path: &Path) -> u64 {
    let report = verify(source(path), &Options::default(), |_| Ok(())).unwrap();
    report.summary.records
}

fn from_environment(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

pub(crate) fn run(comparison: &mut Comparison) {
    let folder = tempfile::tempdir().unwrap();
    let sizes = bytes_flat(comparison, folder.path());
    let counts = records_flat(comparison, folder.path());
    small(comparison, folder.path());
    #[cfg(target_os = "linux")]
    {
        for [middle, large] in [&sizes, &counts] {
            memory_flat(comparison, "verify", middle, large);
            memory_flat(comparison, "arrow", middle, large);
        }
        drop((sizes, counts));
        cold(comparison, folder.path());
    }
}

/// The cost of a byte, in files of 1 MiB up to the largest. Returns the middle and the largest one.
fn bytes_flat(comparison: &mut Comparison, folder: &Path) -> [Segment; 2] {
    let wanted = from_environment("SEGLAKE_RATIOS_GIB", 8) << 30;
    let most = room(folder);
    if wanted > most {
        println!("scale: there is room for {} MiB only", most / MIB);
    }
    let [small, middle, large] =
        [MIB, MIDDLE_BYTES, wanted.min(most)].map(|bytes| Segment::mixed(folder, bytes));
    for (own, name) in [
        (&small, "1 MiB".to_owned()),
        (&large, format!("{} MiB", large.bytes / MIB)),
    ] {
        // Both do about the same work. Each side's rate is that of its own amount.
        let (times, turns) = turns(own.bytes, middle.bytes);
        let work = |bytes: u64| Work::Bytes(usize::try_from(bytes).unwrap());
        comparison.run_each(
            format!("verify a file of {name}"),
            Beside::Itself("a file of 64 MiB"),
            [work(own.bytes * times), work(middle.bytes * turns)],
            FLAT,
            || (),
            || own.verify(times),
            || middle.verify(turns),
        );
    }
    [middle, large]
}

/// The cost of a record, among a million and the most. Returns both files.
fn records_flat(comparison: &mut Comparison, folder: &Path) -> [Segment; 2] {
    let most = from_environment("SEGLAKE_RATIOS_RECORDS", 50_000_000);
    let [middle, many] = [MIDDLE_RECORDS, most].map(|records| Segment::tiny(folder, records));
    let (times, turns) = turns(many.records, middle.records);
    let work = |records: u64| Work::Items(usize::try_from(records).unwrap());
    comparison.run_each(
        format!("verify a file of {} records", many.records),
        Beside::Itself("a file of a million records"),
        [work(many.records * times), work(middle.records * turns)],
        FLAT,
        || (),
        || many.verify(times),
        || middle.verify(turns),
    );
    [middle, many]
}

/// A small file, most of whose cost is opening it.
fn small(comparison: &mut Comparison, folder: &Path) {
    let own = Segment::tiny(folder, FEW_RECORDS);
    let bytes = std::fs::read(&own.path).unwrap();
    let each = bytes.len() / usize::try_from(own.records).unwrap();
    let mut pieces = Pieces::new((0..bytes.len()).step_by(each).map(|at| (at, each - 8)));
    comparison.run(
        format!("verify a file of {FEW_RECORDS} records"),
        Beside::Limit("opening it, reading it, and hashing"),
        Work::Items(usize::try_from(own.records).unwrap()),
        None,
        || own.verify(1),
        || pieces.read_and_hash(&own.path),
    );
}

/// How often to do each of two, so that both do the same amount of work.
const fn turns(own: u64, other: u64) -> (u64, u64) {
    if own < other {
        (other.div_ceil(own), 1)
    } else {
        (1, own.div_ceil(other))
    }
}

/// How many bytes a file in this folder can have.
fn room(folder: &Path) -> u64 {
    let free = rustix::fs::statvfs(folder).unwrap();
    (free.f_bavail * free.f_frsize)
        .saturating_sub(SPARE_BYTES)
        .max(MIDDLE_BYTES)
}

/// The peak memory of a separate process.
#[cfg(target_os = "linux")]
fn memory_flat(comparison: &mut Comparison, what: &str, middle: &Segment, large: &Segment) {
    let peak = |segment: &Segment| {
        let program = std::env::current_exe().unwrap();
        let told = Command::new(program)
            .args([PEAK, what])
            .arg(&segment.path)
            .output()
            .unwrap();
        assert!(told.status.success(), "{told:?}");
        let kib: f64 = String::from_utf8(told.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        kib / 1024.0
    };
    let named =
        |segment: &Segment| format!("{} MiB, {} records", segment.bytes / MIB, segment.records);
    let mut rounds = Rounds::default();
    for round in 0..MEMORY_ROUNDS {
        let (ours, reference);
        if round.is_multiple_of(2) {
            (ours, reference) = (peak(large), peak(middle));
        } else {
            let other = peak(middle);
            (ours, reference) = (peak(large), other);
        }
        rounds.ours.push(ours);
        rounds.reference.push(reference);
        rounds.ratios.push(reference / ours);
    }
    comparison.enter(
        format!("memory, {what} {}", named(large)),
        Beside::Itself(&named(middle)),
        "MiB",
        rounds,
        FLAT,
    );
}

/// Reads a file, and prints this process's peak memory in KiB.
pub(crate) fn print_peak(arguments: &[String]) {
    let [what, path] = arguments else {
        panic!("{PEAK} takes what to do, and with which file")
    };
    let path = Path::new(path);
    if what == "arrow" {
        let options = Options::default();
        let selection = Selection::new(&active::FORMAT, &options, None, UuidType::Fixed).unwrap();
        let batches = Batches::new(source(path), &options, selection, Limits::default()).unwrap();
        let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        assert!(rows > 0);
    } else {
        verify_file(path);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("{}", peak.unwrap().trim().trim_end_matches(" kB"));
}

/// A file that is not in the page cache, compared with only reading it, in wall time.
#[cfg(target_os = "linux")]
fn cold(comparison: &mut Comparison, folder: &Path) {
    let segment = Segment::mixed(folder, COLD_BYTES);
    let forget = || {
        let file = File::open(&segment.path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    };
    comparison.clock(Clock::Wall);
    comparison.run(
        "verify 1 GiB, cold",
        Beside::Limit("reading it cold, 1 MiB at a time"),
        Work::Bytes(usize::try_from(segment.bytes).unwrap()),
        COLD_TARGET,
        || {
            forget();
            segment.verify(1);
        },
        || {
            forget();
            let mut file = File::open(&segment.path).unwrap();
            let mut piece = vec![0; MIB as usize];
            while file.read(&mut piece).unwrap() > 0 {}
        },
    );
}
