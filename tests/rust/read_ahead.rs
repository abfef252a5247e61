//! Reading ahead: the same bytes in fewer reads, never much more of them, and every error to the reader of those
//! bytes.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use seglake::format::{Options, Start, Step, active, open};
use seglake::source::{ReadAhead, Source};
use seglake::{Error, Result};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Bytes that record what is read of them, and fail after an offset.
struct Store {
    bytes: Vec<u8>,
    reads: Mutex<Vec<(u64, usize)>>,
    fails_from: AtomicU64,
    panics: AtomicBool,
    replaced: AtomicBool,
}

impl Store {
    fn new(len: usize) -> Arc<Self> {
        let mut state = 1_u32;
        let byte = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        Self::of((0..len).map(byte).collect())
    }

    fn of(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            reads: Mutex::default(),
            fails_from: AtomicU64::new(u64::MAX),
            panics: AtomicBool::new(false),
            replaced: AtomicBool::new(false),
        })
    }

    fn reads(&self) -> Vec<(u64, usize)> {
        let mut reads = self.reads.lock().unwrap().clone();
        reads.sort_unstable();
        reads
    }

    fn bytes_read(&self) -> usize {
        self.reads().iter().map(|(_, len)| len).sum()
    }
}

impl Source for Store {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        Some(Path::new("s3://logs/1"))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).unwrap();
        self.reads.lock().unwrap().push((offset, buffer.len()));
        let end = start + buffer.len();
        if end as u64 > self.fails_from.load(Ordering::SeqCst) {
            assert!(!self.panics.load(Ordering::SeqCst), "as told");
            return Err(failure("cannot read", ErrorKind::ConnectionReset));
        }
        buffer.copy_from_slice(&self.bytes[start..end]);
        Ok(())
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn confirm(&self) -> Result<()> {
        match self.replaced.load(Ordering::SeqCst) {
            true => Err(failure("replaced", ErrorKind::StaleNetworkFileHandle)),
            false => Ok(()),
        }
    }
}

fn failure(action: &str, kind: ErrorKind) -> Error {
    Error::io(None, action.to_owned(), kind.into())
}

/// Reads and compares.
fn check(store: &Store, ahead: &ReadAhead, offset: usize, len: usize) {
    let mut buffer = vec![0; len];
    ahead.read_exact_at(offset as u64, &mut buffer).unwrap();
    assert!(
        buffer == store.bytes[offset..offset + len],
        "{offset} {len}"
    );
}

#[test]
fn any_reads_by_several_threads_return_the_same_bytes() {
    let store = Store::new(3 * MIB + 77);
    let ahead = ReadAhead::new(store.clone());
    thread::scope(|scope| {
        for seed in 1..=4_usize {
            let (store, ahead) = (&store, &ahead);
            scope.spawn(move || {
                let (mut state, mut at) = (seed * 7919, 0);
                for _ in 0..600 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(seed);
                    let number = state >> 33;
                    let longest = [1, 64, 5 * KIB, 100 * KIB, MIB][number % 5];
                    // Mostly on and on, now and then somewhere else.
                    if number % 11 == 0 {
                        at = (number / 11) % store.bytes.len();
                    }
                    let len = (number / 5 % longest + 1).min(store.bytes.len() - at);
                    check(store, ahead, at, len);
                    at = (at + len) % store.bytes.len();
                }
            });
        }
    });
}

#[test]
fn a_small_file_is_read_once() {
    let store = Store::new(ReadAhead::WHOLE_BYTES);
    let ahead = ReadAhead::new(store.clone());
    for (offset, len) in [
        (70_000, 10),
        (0, 300),
        (0, store.bytes.len()),
        (store.bytes.len() - 24, 24),
    ] {
        check(&store, &ahead, offset, len);
    }
    assert_eq!(store.reads(), [(0, ReadAhead::WHOLE_BYTES)]);
}

#[test]
fn a_jump_reads_a_little_and_what_is_near_nothing_more() {
    let store = Store::new(20 * MIB);
    let ahead = ReadAhead::new(store.clone());
    for jump in 0..10 {
        let at = (jump * 7 % 10) * 2 * MIB;
        for near in 0..20 {
            check(&store, &ahead, at + near * 700, 32);
        }
    }
    // The last bytes, and backwards from there.
    for back in [24, 100, 5000] {
        check(&store, &ahead, store.bytes.len() - back, 24);
    }
    assert_eq!(store.reads().len(), 11);
    assert_eq!(store.bytes_read(), 11 * ReadAhead::LEAST_BYTES);
}

#[test]
fn jumps_that_read_much_read_nothing_ahead() {
    let store = Store::new(40 * MIB);
    let ahead = ReadAhead::new(store.clone());
    for jump in 0..10 {
        check(&store, &ahead, (jump * 7 % 10) * 4 * MIB, 500 * KIB);
    }
    drop(ahead);
    // Each thread that reads ahead has the store until it ends.
    while Arc::strong_count(&store) > 1 {
        thread::yield_now();
    }
    let most = 10 * (500 * KIB + ReadAhead::LEAST_BYTES);
    assert!(store.bytes_read() <= most, "{:?}", store.reads());
}

#[test]
fn a_scan_reads_each_byte_once_and_more_at_a_time() {
    let store = Store::new(64 * MIB);
    let ahead = ReadAhead::new(store.clone());
    for piece in 0..64 {
        check(&store, &ahead, piece * MIB, MIB);
    }
    let reads = store.reads();
    assert_eq!(store.bytes_read(), 64 * MIB);
    let mut end = 0;
    for (offset, len) in &reads {
        assert_eq!(*offset, end);
        assert!(*len <= ReadAhead::MOST_BYTES);
        end += *len as u64;
    }
    assert!(reads.len() < 32, "{reads:?}");
}

#[test]
fn who_stops_has_read_no_more_than_twice_what_was_asked_for() {
    for pieces in 1..12 {
        let store = Store::new(9 * MIB);
        let ahead = ReadAhead::new(store.clone());
        for piece in 0..pieces {
            check(&store, &ahead, 5 * MIB + piece * 200 * KIB, 200 * KIB);
        }
        let asked = pieces * 200 * KIB;
        drop(ahead);
        // Each thread that reads ahead has the store until it ends.
        while Arc::strong_count(&store) > 1 {
            thread::yield_now();
        }
        assert!(
            store.bytes_read() <= 2 * asked + ReadAhead::LEAST_BYTES,
            "{pieces}"
        );
    }
}

#[test]
fn an_error_ahead_is_raised_when_it_is_reached_and_passes() {
    let store = Store::new(24 * MIB);
    let ahead = ReadAhead::new(store.clone());
    store.fails_from.store(12 * MIB as u64, Ordering::SeqCst);
    let mut buffer = vec![0; MIB];
    let mut read = 0;
    let error = loop {
        match ahead.read_exact_at((read * MIB) as u64, &mut buffer) {
            Ok(()) => read += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // Pieces are larger than reads. A piece that extends past the offset fails as a whole.
    assert!((5..=12).contains(&read), "{read}");
    store.fails_from.store(u64::MAX, Ordering::SeqCst);
    for piece in read..24 {
        // Another piece may have failed meanwhile. That error, too, is raised once.
        if ahead
            .read_exact_at((piece * MIB) as u64, &mut buffer)
            .is_err()
        {
            check(&store, &ahead, piece * MIB, MIB);
        }
    }
}

#[test]
fn a_read_that_panics_leaves_no_thread_waiting() {
    let store = Store::new(24 * MIB);
    let ahead = ReadAhead::new(store.clone());
    for piece in 0..2 {
        check(&store, &ahead, piece * MIB, MIB);
    }
    store.panics.store(true, Ordering::SeqCst);
    store.fails_from.store(4 * MIB as u64, Ordering::SeqCst);
    // Pieces that were begun before that are there. A read past them panics in the reader's own thread.
    let result = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut buffer = vec![0; MIB];
            for piece in 2..24 {
                ahead
                    .read_exact_at(piece * MIB as u64, &mut buffer)
                    .unwrap();
            }
        });
        reader.join()
    });
    assert!(result.is_err());
    store.fails_from.store(u64::MAX, Ordering::SeqCst);
    for piece in 0..24 {
        check(&store, &ahead, piece * MIB, MIB);
    }
}

#[test]
fn what_is_beyond_the_end_is_the_sources_own_error() {
    let ahead = ReadAhead::new(Arc::new(seglake::source::BytesSource::new(vec![0; 10])));
    let mut buffer = [0; 4];
    assert!(ahead.read_exact_at(7, &mut buffer).is_err());
    assert!(ahead.read_exact_at(u64::MAX, &mut buffer).is_err());
    ahead.read_exact_at(10, &mut []).unwrap();
}

#[test]
fn no_damage_is_reported_for_a_file_that_was_replaced() {
    let store = Store::of(vec![7; 500 * KIB]);
    for strict in [true, false] {
        store.replaced.store(false, Ordering::SeqCst);
        let options = Options::default().format(&active::FORMAT).strict(strict);
        let walk = || -> Result<usize> {
            let source = Arc::new(ReadAhead::new(store.clone()));
            let mut walk = open(source, &options, Start::Beginning)?;
            let mut damage = 0;
            while walk.step()? == Step::More {
                damage += walk.spans().iter().filter(|span| span.is_damage()).count();
            }
            Ok(damage)
        };
        match walk() {
            Err(Error::Damage(_)) => assert!(strict),
            found => assert_eq!((found.unwrap(), strict), (1, false)),
        }
        store.replaced.store(true, Ordering::SeqCst);
        let error = walk().unwrap_err();
        assert!(error.to_string().contains("replaced"), "{error}");
    }
}
