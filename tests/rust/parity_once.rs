//! Reading a file by its parity sidecar: the bytes that are given are those that were hashed, and they are read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::common::Windowed;
use crate::common::counting::Counting;
use crate::fault_samples;
use crate::parity::{of_two_frames, protected, verified};
use crate::parity_reading::{
    Row, Sample, any_sample, choices, ledger, read_by, rows_of, sidecar_in_bands, verify, written,
};
use seglake::Error;
use seglake::format::{FORMATS, Options, Start, Step, create, open, sealed, tenant};
use seglake::ledger::Span;
use seglake::parity::{Files, Outcome, Parameters, ProtectedSource, Refused, Set};
use seglake::source::{BytesSource, Source};
use seglake::verbs;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Some blocks: if none is sound, the file counts as another one.
const LEAST_BYTES: usize = 200;

fn samples() -> Vec<Sample> {
    let formats = FORMATS.iter().map(|format| written(format, "", 0));
    let mut samples: Vec<_> = formats.collect();
    for (name, option, value) in [("sealed", "trailer", 0), ("tenant", "version", 1)] {
        let format = seglake::format::by_name(name).unwrap();
        samples.push(written(format, option, value));
    }
    samples
}

type WithSidecar = (Sample, BTreeSet<Row>, Vec<u8>);

/// The samples with their rows and sidecars.
static PROTECTED: LazyLock<Vec<WithSidecar>> = LazyLock::new(|| {
    let with_sidecar = |sample: Sample| {
        let plain: Arc<dyn Source> = Arc::new(BytesSource::new(sample.bytes.clone()));
        let (rows, _) = rows_of(&plain, &sample.options);
        let sidecar = protected(&sample.bytes, sample.bytes.len() as u64, set());
        (sample, rows.into_iter().collect(), sidecar)
    };
    samples().into_iter().map(with_sidecar).collect()
});

/// A file of which a byte is another one in some of the reads.
struct Turning {
    bytes: Windowed,
    at: usize,
    /// A bit for each read of the byte, the lowest for the first; the highest for all further ones.
    turns: u32,
    reads: AtomicU32,
}

impl Source for Turning {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        self.bytes.read_exact_at(offset, buffer)?;
        let within = self.at.checked_sub(usize::try_from(offset).unwrap());
        if let Some(byte) = within.and_then(|within| buffer.get_mut(within)) {
            let read = self.reads.fetch_add(1, Ordering::Relaxed);
            *byte ^= u8::from(self.turns >> read.min(31) & 1 == 1) * 0x10;
        }
        Ok(())
    }
}

fn set() -> Set {
    Set {
        id: *b"some set",
        parameters: Parameters::new(64, 6, 2, 4).unwrap(),
    }
}

/// What reading with the first options gives, and the ledger and report with the second; all damage may be known before.
fn told(
    damaged: &[u8],
    sidecar: &[u8],
    options: [&Options; 2],
    is_known: bool,
) -> (Vec<Row>, Option<String>, Vec<Span>, String) {
    let [(rows_source, of_rows), (source, own)] = options.map(|options| {
        let (source, own) = read_by(damaged, sidecar, options);
        if is_known {
            let protected = ProtectedSource::of(&*source).unwrap();
            protected.report(|| Ok(())).unwrap();
        }
        (source, own)
    });
    let (rows, error) = rows_of(&rows_source, &of_rows);
    let error = error.map(|error| error.to_string());
    let damage = format!("{:?}", verify(&source, &own).summary.damage);
    (rows, error, ledger(&source, &own), damage)
}

/// The records before a header that is lost are proven by their blocks. Those after it are not: after an entry of an index, all.
#[test]
fn a_lost_header_costs_what_comes_after_it() {
    // Three damaged blocks of one group, of which two can be repaired: bytes of a header are in one of them.
    for (format, option, groups, places, left) in [
        (
            &tenant::FORMAT,
            "version",
            5,
            [512..513, 891..897, 1534..1537],
            10,
        ),
        (
            &sealed::FORMAT,
            "trailer",
            8,
            [510..513, 1008..1025, 2474..2497],
            0,
        ),
    ] {
        let sample = written(format, option, 1);
        let sidecar = sidecar_in_bands(&sample.bytes, groups);
        let mut damaged = sample.bytes.clone();
        for place in places {
            damaged[place].iter_mut().for_each(|byte| *byte ^= 1);
        }
        let options = sample.options.clone().repair(false).window_bytes(64);
        let read = |is_known| told(&damaged, &sidecar, [&options; 2], is_known);
        let (rows, error, ..) = read(false);
        assert_eq!((rows.len(), error), (left, None));
        assert_eq!(read(true), read(false), "{}", format.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// In files without checksums too, a record is as it was protected, or is not given.
    #[test]
    fn what_a_later_read_answers_is_not_taken_for_what_was_proven(
        at in any::<Index>(),
        turns in prop_oneof![(0u32..8).prop_map(|read| u32::MAX << read), any::<u32>()],
        is_strict in any::<bool>(),
        repairs in any::<bool>(),
    ) {
        for (sample, expected, sidecar) in &*PROTECTED {
            let file = Arc::new(Turning {
                at: at.index(sample.bytes.len()),
                bytes: Windowed(sample.bytes.clone()),
                turns,
                reads: AtomicU32::new(0),
            });
            let sidecar = Arc::new(BytesSource::new(sidecar.clone()));
            let options = sample.options.clone().strict(is_strict).repair(repairs);
            let Ok(source) = ProtectedSource::open(file, sidecar) else {
                continue;
            };
            let source: Arc<dyn Source> = source;
            let (rows, error) = rows_of(&source, &options);
            for row in &rows {
                prop_assert!(expected.contains(row), "{sample:?}: {row:?}");
            }
            // What is left out is told, also by a later walk if the byte stays as it is then.
            let stays = turns.trailing_zeros() + turns.leading_ones() == u32::BITS;
            if stays && error.is_none() && rows.len() < expected.len() {
                let report = verbs::verify(source, &options, |_| Ok(()));
                prop_assert!(!report.is_ok_and(|report| report.is_sound()), "{sample:?}");
            }
        }
    }

    /// Damage is met when a block of it is read. What is told of it is the same as if all of it was known before.
    #[test]
    fn what_is_told_does_not_depend_on_when_damage_is_met(
        sample in any_sample(),
        choices in choices(40),
        groups in 1u16..20,
        window in prop_oneof![Just(1usize << 20), 64usize..600],
        is_strict in any::<bool>(),
        repairs in any::<bool>(),
        of_sidecar in proptest::collection::vec(any::<Index>(), 0..3),
    ) {
        let mut damaged = sample.bytes.clone();
        for (at, _, change) in choices {
            let at = at.index(damaged.len());
            let end = damaged.len().min(at + 1 + usize::from(change) / 8);
            damaged[at..end].iter_mut().for_each(|byte| *byte ^= change | 1);
        }
        let mut sidecar = sidecar_in_bands(&sample.bytes, groups);
        for at in of_sidecar {
            let at = at.index(sidecar.len());
            sidecar[at] ^= 1;
        }
        let options = sample.options.clone().window_bytes(window);
        let own = options.clone().strict(is_strict).repair(repairs);
        let read = |is_known| told(&damaged, &sidecar, [&own, &options], is_known);
        prop_assert_eq!(read(false), read(true), "{}", &sample.name);
    }

    /// Whatever is read, in whatever order.
    #[test]
    fn any_ranges_are_as_they_were_protected(
        bytes in proptest::collection::vec(any::<u8>(), LEAST_BYTES..4000),
        covered in any::<Index>(),
        hit in proptest::option::of((any::<Index>(), 1u8..)),
        reads in proptest::collection::vec((any::<Index>(), any::<Index>()), 1..20),
    ) {
        let covered = LEAST_BYTES + covered.index(bytes.len() - LEAST_BYTES + 1);
        let sidecar = protected(&bytes, covered as u64, set());
        let mut damaged = bytes.clone();
        if let Some((at, bits)) = hit {
            damaged[at.index(covered)] ^= bits;
        }
        let sidecar = Arc::new(BytesSource::new(sidecar));
        let source = ProtectedSource::open(Arc::new(Windowed(damaged)), sidecar).unwrap();
        for (from, len) in reads {
            let from = from.index(bytes.len());
            let mut buffer = vec![0; len.index(bytes.len() - from + 1)];
            source.read_exact_at(from as u64, &mut buffer).unwrap();
            prop_assert_eq!(&buffer, &bytes[from..from + buffer.len()]);
        }
    }
}

#[test]
fn a_block_that_was_proven_and_is_not_any_more_is_an_error() {
    let sample = written(seglake::format::by_name("oplog").unwrap(), "", 0);
    let at = sample.bytes.len() / 2;
    let sidecar = protected(&sample.bytes, sample.bytes.len() as u64, set());
    let file = Arc::new(Turning {
        at,
        bytes: Windowed(sample.bytes),
        turns: u32::MAX << 1,
        reads: AtomicU32::new(0),
    });
    let sidecar = Arc::new(BytesSource::new(sidecar));
    let source: Arc<dyn Source> = ProtectedSource::open(file, sidecar).unwrap();
    assert!(rows_of(&source, &sample.options).1.is_none());
    let (_, error) = rows_of(&source, &sample.options);
    let error = error.unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let text = error.to_string();
    let block = at / 64 * 64;
    let expected = format!(
        "the block at offset {block} was verified, and has other bytes now: the file was changed, or its disk fails. Read it again"
    );
    assert!(text.contains(&expected), "{text}");
}

/// A file of some bands, with blocks of 4 KiB.
fn long(format: &'static seglake::format::Format) -> (Vec<u8>, Vec<u8>) {
    long_of(format, |number| number)
}

/// The same, of records with these numbers.
fn long_of(
    format: &'static seglake::format::Format,
    number_of: impl Fn(u64) -> u64,
) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut writer = create(format, &path, &fault_samples::options(format)).unwrap();
    let mut state = 1u64;
    for number in 0..3000 {
        let value = (0..1000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        });
        let value: Vec<_> = value.collect();
        fault_samples::write_value(&mut *writer, format, number_of(number), &value).unwrap();
    }
    writer.close().unwrap();
    let bytes = fs::read(&path).unwrap();
    let set = Set {
        id: *b"some set",
        parameters: Parameters::new(4096, 16, 2, 8).unwrap(),
    };
    let sidecar = protected(&bytes, bytes.len() as u64, set);
    (bytes, sidecar)
}

#[test]
fn a_sound_file_is_read_once_with_one_thread_and_with_several() {
    for format in FORMATS {
        let (bytes, sidecar) = long(format);
        let len = bytes.len() as u64;
        assert!(len > 2 << 20);
        let options = Options::default().format(*format).strict(false);
        let read = |parts: Option<u64>, by_sidecar: bool| {
            let file = Counting::new(bytes.clone());
            let mut source: Arc<dyn Source> = file.clone();
            if by_sidecar {
                let sidecar = Arc::new(BytesSource::new(sidecar.clone()));
                source = ProtectedSource::open(source, sidecar).unwrap();
            }
            let report = match parts {
                Some(bytes) => verbs::verify_in_parts(source, &options, 3, bytes, |_| Ok(())),
                None => verbs::verify(source, &options, |_| Ok(())),
            };
            let report = report.unwrap();
            assert!(report.is_sound());
            let outcome = report.parity.map(|parity| parity.outcome());
            assert_eq!(outcome, by_sidecar.then_some(Outcome::Sound));
            file.take().0
        };
        for parts in [None, Some(256 * KIB)] {
            let (with, without) = (read(parts, true), read(parts, false));
            // Parts of a chunked segment are planned by the headers of chunks, and here each block has one.
            let planned = if parts.is_some() && format.name == "chunked" {
                len
            } else {
                0
            };
            let most = without + planned + len / 16 + 128 * KIB;
            assert!(with < most, "{}: {with}, {without}", format.name);
        }
    }
}

/// A tenant segment of one block, which is larger than some windows: so its format reads it twice.
fn in_small_windows() -> (Vec<u8>, Arc<dyn Source>, Options) {
    let tenant = seglake::format::by_name("tenant").unwrap();
    let (bytes, sidecar) = long_of(tenant, |_| 0);
    let options = Options::default().format(tenant).window_bytes(4 << 10);
    (bytes, Arc::new(BytesSource::new(sidecar)), options)
}

#[test]
fn what_a_format_reads_again_it_compares_itself() {
    let (bytes, sidecar, options) = in_small_windows();
    let file = Arc::new(Turning {
        at: bytes.len() / 2,
        bytes: Windowed(bytes),
        turns: u32::MAX << 1,
        reads: AtomicU32::new(0),
    });
    let source: Arc<dyn Source> = ProtectedSource::open(file, sidecar).unwrap();
    let (_, error) = rows_of(&source, &options);
    let text = error.unwrap().to_string();
    assert!(
        text.contains("its bytes changed between two reads"),
        "{text}"
    );
}

#[test]
fn what_is_read_again_is_as_it_was_protected() {
    let (bytes, sidecar, options) = in_small_windows();
    let plain: Arc<dyn Source> = Arc::new(Windowed(bytes.clone()));
    let (expected, error) = rows_of(&plain, &options);
    assert!(error.is_none());
    let mut damaged = bytes;
    let at = damaged.len() / 2;
    damaged[at..at + 6000].fill(0x55);
    let options = options.repair(true).strict(false);
    let file = Arc::new(Windowed(damaged));
    let source: Arc<dyn Source> = ProtectedSource::open(file, sidecar).unwrap();
    let (rows, error) = rows_of(&source, &options);
    assert!(error.is_none(), "{error:?}");
    assert!(rows == expected);
}

/// No block verifies: that is known when the file was opened.
#[test]
fn a_file_by_the_sidecar_of_another_one_is_read_once_more() {
    let sidecars = FORMATS.iter().cycle().skip(1).map(|format| long(format).1);
    for (format, sidecar) in FORMATS.iter().zip(sidecars) {
        let (bytes, _) = long(format);
        let options = Options::default().format(*format).strict(false);
        let file = Counting::new(bytes.clone());
        verbs::verify(file.clone(), &options, |_| Ok(())).unwrap();
        let (without, _) = file.take();
        let sidecar = Arc::new(BytesSource::new(sidecar));
        let source = ProtectedSource::open(file.clone(), sidecar).unwrap();
        let (opened, _) = file.take();
        let report = verbs::verify(source, &options, |_| Ok(())).unwrap();
        assert_eq!(
            report.parity.unwrap().report.refused,
            Some(Refused::AnotherFile)
        );
        let (read, _) = file.take();
        let len = bytes.len() as u64;
        assert!(opened < len + 2 * MIB, "{}: {opened}", format.name);
        assert!(
            read < 2 * without + len / 16 + MIB,
            "{}: {read}, {without}",
            format.name
        );
    }
}

/// A head of a longer frame of the band stands before the entries of a shorter one. Its last entry is that of fewer bytes, and zeros.
#[test]
fn what_the_heads_of_a_frame_do_not_both_cover_is_not_proven() {
    let (file, sidecar, first) = of_two_frames();
    let second = first - (56 + 8 * 4);
    for at in [0, second] {
        let mut swapped = sidecar.clone();
        let (left, right) = swapped.split_at_mut(first);
        left[at..at + 56].swap_with_slice(&mut right[at..at + 56]);
        let mut damaged = file.clone();
        damaged[85..].fill(0);
        for file in [&file, &damaged] {
            let expected = verified(file, &swapped, seglake::parity::Options::default());
            let source = Arc::new(BytesSource::new(file.clone()));
            let sidecar = Arc::new(BytesSource::new(swapped.clone()));
            let own = verbs::verify_parity(source, sidecar, &Options::default(), |_| Ok(()));
            assert_eq!(
                format!("{:?}", own.unwrap().report),
                format!("{expected:?}")
            );
            assert!(*file == damaged || expected.outcome != Outcome::Sound);
        }
    }
}

/// A file without checksums, protected in blocks of 64 bytes, and damaged. A byte is another one in reads that `turns` says.
fn turning(bytes: &[u8], damaged: Vec<u8>, at: usize, turns: u32) -> Arc<dyn Source> {
    let file = Arc::new(Turning {
        at,
        bytes: Windowed(damaged),
        turns,
        reads: AtomicU32::new(0),
    });
    let sidecar = protected(bytes, bytes.len() as u64, set());
    let sidecar = Arc::new(BytesSource::new(sidecar));
    ProtectedSource::open(file, sidecar).unwrap()
}

fn some_bytes() -> Vec<u8> {
    (0..5000u32).map(|at| at.to_le_bytes()[0]).collect()
}

/// Only these blocks of the band were read.
#[test]
fn a_block_of_a_band_that_was_not_read_whole_may_not_change_either() {
    let bytes = some_bytes();
    let at = 30 * 64 + 5;
    let source = turning(&bytes, bytes.clone(), at, u32::MAX << 1);
    let mut block = [0; 64];
    source.read_exact_at(30 * 64, &mut block).unwrap();
    assert_eq!(block, bytes[30 * 64..31 * 64]);
    let error = source.read_exact_at(30 * 64, &mut block).unwrap_err();
    assert!(error.to_string().contains("was verified"), "{error}");
}

/// A format may ask for bytes again that it never read: they are proven nevertheless, or restored.
#[test]
fn what_was_not_read_before_is_proven_when_it_is_read_again() {
    let bytes = some_bytes();
    let mut damaged = bytes.clone();
    damaged[30 * 64] ^= 1;
    for (first, len) in [(0, 0), (25 * 64, 64), (0, 5000)] {
        let source = turning(&bytes, damaged.clone(), 0, 0);
        source.read_exact_at(first, &mut vec![0; len]).unwrap();
        let mut buffer = [0; 65];
        source.read_again_at(29 * 64, &mut buffer).unwrap();
        assert!(buffer == bytes[29 * 64..=30 * 64], "{first} {len}");
    }
}

/// A block that is restored is not taken from the file. The one after it is.
#[test]
fn a_block_after_a_restored_one_is_proven_as_often_as_it_is_read() {
    let bytes = some_bytes();
    let at = 31 * 64 + 5;
    let mut damaged = bytes.clone();
    damaged[30 * 64] ^= 1;
    for turned in 0..8 {
        let source = turning(&bytes, damaged.clone(), at, u32::MAX << turned);
        let mut buffer = [0; 128];
        let failed = (0..10).find(|_| {
            let read = source.read_exact_at(30 * 64, &mut buffer);
            assert!(read.is_err() || buffer == bytes[30 * 64..32 * 64]);
            read.is_err()
        });
        // If it was damaged before it was proven, it is restored.
        let is_restored = turned < 2;
        assert_eq!(failed.is_none(), is_restored, "{turned}: {failed:?}");
    }
}

/// Zeros are read in place of missing bytes. They prove nothing.
#[test]
fn zeros_that_are_missing_are_not_proven() {
    let mut bytes: Vec<u8> = (0..1000u32).map(|at| at.to_le_bytes()[0] | 1).collect();
    bytes[990..].fill(0);
    let sidecar = protected(&bytes, 1000, set());
    let source = Arc::new(BytesSource::new(bytes[..995].to_vec()));
    let of_sidecar = Arc::new(BytesSource::new(sidecar));
    let report = verbs::verify_parity(source, of_sidecar, &Options::default(), |_| Ok(()));
    assert_eq!(report.unwrap().report.outcome, Outcome::Repaired);
}

/// What is kept of bands is bounded. A band that is read again later is read by its hashes, and a damaged one is judged again.
#[test]
fn bands_that_were_read_long_ago_are_read_again() {
    const BAND: usize = 256 << 10;
    let bytes: Vec<u8> = (0..40 * BAND)
        .map(|at| (at * 7 % 251).to_le_bytes()[0])
        .collect();
    let set = Set {
        id: *b"some set",
        parameters: Parameters::new(64, 64, 2, 64).unwrap(),
    };
    let sidecar = Counting::new(protected(&bytes, bytes.len() as u64, set));
    let mut damaged = bytes.clone();
    damaged[BAND / 2] ^= 1;
    let file = Counting::new(damaged);
    let source = ProtectedSource::open(file.clone(), sidecar.clone()).unwrap();
    let mut buffer = vec![0; bytes.len()];
    let mut read = |from: usize, len: usize| {
        file.take();
        sidecar.take();
        source
            .read_exact_at(from as u64, &mut buffer[..len])
            .unwrap();
        assert!(buffer[..len] == bytes[from..from + len]);
        (file.take().0, sidecar.take().0)
    };
    read(0, bytes.len());
    let table = 8 * (BAND as u64 / 64);
    // The last ones are kept.
    assert_eq!(read(39 * BAND, 64), (64, 0));
    let (of_file, of_sidecar) = read(BAND, 64);
    assert!(
        of_file == 64 && of_sidecar > table,
        "{of_file} {of_sidecar}"
    );
    let (of_file, of_sidecar) = read(0, 64);
    assert!(
        of_file > BAND as u64 && of_sidecar > table,
        "{of_file} {of_sidecar}"
    );
}

/// A source whose first read of a byte waits until it is told to go on.
struct Waiting {
    bytes: Windowed,
    at: u64,
    entered: Sender<()>,
    go_on: Mutex<Option<Receiver<()>>>,
}

impl Source for Waiting {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let is_within = (offset..offset + buffer.len() as u64).contains(&self.at);
        let waits = is_within
            .then(|| self.go_on.lock().unwrap().take())
            .flatten();
        if let Some(go_on) = waits {
            self.entered.send(()).unwrap();
            go_on.recv().unwrap();
        }
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[test]
fn a_band_that_another_thread_judges_meanwhile_did_not_change() {
    let bytes = some_bytes();
    let at = 30 * 64 + 5;
    let mut damaged = bytes.clone();
    damaged[at] ^= 1;
    let (entered, is_entered) = channel();
    let (tell, told) = channel();
    let file = Arc::new(Waiting {
        bytes: Windowed(damaged),
        at: at as u64,
        entered,
        go_on: Mutex::new(Some(told)),
    });
    let sidecar = Arc::new(BytesSource::new(protected(
        &bytes,
        bytes.len() as u64,
        set(),
    )));
    let source = ProtectedSource::open(file, sidecar).unwrap();
    let read = || {
        let mut block = [0; 64];
        source.read_exact_at(30 * 64, &mut block).unwrap();
        assert_eq!(block, bytes[30 * 64..31 * 64]);
    };
    thread::scope(|scope| {
        let first = scope.spawn(read);
        is_entered.recv().unwrap();
        read();
        tell.send(()).unwrap();
        first.join().unwrap();
    });
}

/// A source of which one read fails.
struct FailingOnce {
    bytes: Windowed,
    /// How many reads come before that.
    left: AtomicU32,
}

impl Source for FailingOnce {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            let source = std::io::ErrorKind::TimedOut.into();
            let action = "cannot read".to_owned();
            return Err(Error::io(None, action, source));
        }
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[test]
fn whoever_goes_on_after_an_error_gets_it_again() {
    for sample in samples() {
        let sidecar = protected(&sample.bytes, sample.bytes.len() as u64, set());
        let mut damaged = sample.bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let options = sample.options.clone().repair(true).window_bytes(64);
        let plain: Arc<dyn Source> = Arc::new(BytesSource::new(sample.bytes.clone()));
        let expected: Vec<_> = rows_of(&plain, &sample.options)
            .0
            .into_iter()
            .map(|row| row.0)
            .collect();
        for (fails, of_sidecar) in (0..400).flat_map(|at| [(at, false), (at, true)]) {
            let failing = |bytes: &[u8], is_it: bool| -> Arc<dyn Source> {
                Arc::new(FailingOnce {
                    bytes: Windowed(bytes.to_vec()),
                    left: AtomicU32::new(if is_it { fails } else { u32::MAX }),
                })
            };
            let (file, sidecar) = (
                failing(&damaged, !of_sidecar),
                failing(&sidecar, of_sidecar),
            );
            let Ok(source) = ProtectedSource::open(file, sidecar) else {
                continue;
            };
            let Ok(mut walk) = open(source, &options, Start::Beginning) else {
                continue;
            };
            let (mut found, mut errors) = (Vec::new(), 0);
            while errors < 3 {
                match walk.step() {
                    Ok(Step::More) => {
                        let rows = walk.rows();
                        found.extend((0..rows.len()).map(|row| rows.position(row)));
                    }
                    Ok(_) => break,
                    Err(error) => {
                        assert!(matches!(error, Error::Io { .. }), "{sample:?}: {error}");
                        errors += 1;
                    }
                }
            }
            assert!(
                expected.starts_with(&found),
                "{sample:?} {fails} {of_sidecar}: {found:?}"
            );
        }
    }
}

/// Heads of frames that are cut off have no tables: the blocks of their band are hashed once, for the last of them.
#[test]
fn frames_without_tables_cost_no_reading() {
    const HEAD_BYTES: usize = 56;
    let set = Set {
        id: *b"some set",
        parameters: Parameters::new(64, 6, 2, 100).unwrap(),
    };
    let file: Vec<u8> = (0..70_000_u32).map(|at| (at % 251) as u8 | 1).collect();
    let sound = protected(&file, file.len() as u64, set);
    let heads = |from: usize| {
        let next = sound[from + 8..]
            .windows(8)
            .position(|own| *own == sound[..8]);
        from + 8 + next.unwrap()
    };
    let (second, next) = (heads(0), heads(heads(0)));
    let read = |frames: usize| {
        let mut sidecar = vec![0; HEAD_BYTES * (frames - 1) + next];
        for start in (0..frames).map(|frame| HEAD_BYTES * frame) {
            for head in [0, second] {
                let at = head + start;
                sidecar[at..at + HEAD_BYTES].copy_from_slice(&sound[head..head + HEAD_BYTES]);
            }
        }
        sidecar.extend_from_slice(&sound[next..]);
        let (file, sidecar) = (Counting::new(file.clone()), BytesSource::new(sidecar));
        let files = Files::new(&*file, &sidecar);
        let report = seglake::parity::verify(files, Default::default()).unwrap();
        (report.frames.len(), file.take().0)
    };
    let (few, many) = (read(2), read(200));
    assert!(many.0 > few.0 + 100, "{many:?} frames");
    assert!(many.1 <= few.1 + 70_000, "{few:?}, {many:?}");
}
