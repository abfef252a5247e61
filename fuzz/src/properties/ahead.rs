//! Reading ahead does not change what a walk, or several threads, read, whatever the sizes of its pieces. A failed read is an error for
//! every reader that needs those bytes, and never damage. The same holds for a file that was replaced.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use seglake::Error;
use seglake::format::{Format, Options, Start, Step, open};
use seglake::source::{PieceSizes, ReadAhead, Source};
use seglake::verbs::{verify, verify_in_parts};

use super::alike::told;
use super::scan::{End, Scan, windowed};
use super::{Draw, readings};

const FAILED: &str = "cannot read, as told";
const REPLACED: &str = "is another object now, as told";

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    let readings = readings(format);
    let options = draw
        .of_these(&readings)
        .clone()
        .window_bytes(*draw.of_these(&[16, 64, 300, 1 << 20]));
    for strict in [false, true] {
        let options = options.clone().strict(strict);
        let expected = read(windowed(bytes), &options).unwrap();
        let sizes = sizes(&mut draw);
        let (store, ahead) = Store::ahead(bytes, sizes);
        let same = read(ahead.clone(), &options).unwrap();
        same.assert_is(&expected, &format!("read ahead of in {sizes:?}"));
        if !strict {
            let reads = store.reads.load(Ordering::SeqCst);
            let fails_at = draw.below(reads + 1);
            fails_once(bytes, &options, &expected, sizes, fails_at);
            threads(bytes, &options, sizes);
        }
        if let End::Limit(_) = expected.end {
            continue;
        }
        store.replaced.store(true, Ordering::SeqCst);
        assert_eq!(read(ahead, &options), Err(REPLACED.to_owned()));
    }
}

fn sizes(draw: &mut Draw) -> PieceSizes {
    let least = *draw.of_these(&[1, 16, 64]);
    PieceSizes {
        least,
        most: *draw.of_these(&[64, 500, 4096]),
        whole: *draw.of_these(&[least, least, least, 300]),
        proven: *draw.of_these(&[1, 64, 500]),
        back: *draw.of_these(&[0, 100, 10_000]),
    }
}

/// One read fails. If its bytes are not needed, nothing else changes. Afterwards everything can be read.
fn fails_once(
    bytes: &[u8],
    options: &Options,
    expected: &Scan,
    sizes: PieceSizes,
    fails_at: usize,
) {
    let (store, ahead) = Store::ahead(bytes, sizes);
    store.fails_at.store(fails_at, Ordering::SeqCst);
    let scans = [(); 3].map(|()| read(ahead.clone(), options));
    let failed = scans.iter().filter(|scan| scan.is_err()).count();
    assert!(failed <= 1, "one read failed, and {failed} walks");
    // Nothing is read before the first request.
    let is_needed = fails_at == 0 && store.reads.load(Ordering::SeqCst) > 0;
    assert!(scans[0].is_err() || !is_needed, "the first read failed");
    for scan in scans {
        match scan {
            Ok(scan) => scan.assert_is(expected, "with a read that fails"),
            Err(why) => assert_eq!(why, FAILED),
        }
    }
}

/// Threads that share a source that reads ahead give the result of one thread.
fn threads(bytes: &[u8], options: &Options, sizes: PieceSizes) {
    let one = verify(windowed(bytes), options, |_| Ok(()));
    let (_, ahead) = Store::ahead(bytes, sizes);
    let many = verify_in_parts(ahead, options, 3, 50, |_| Ok(()));
    match (one, many) {
        (Ok(one), Ok(many)) => assert_eq!(told(&many), told(&one)),
        (one, many) => assert_eq!(one.map_err(End::of).err(), many.map_err(End::of).err()),
    }
}

/// Reads a source to its end. Returns the failure if a read fails.
fn read(source: Arc<dyn Source>, options: &Options) -> Result<Scan, String> {
    let mut scan = Scan::new();
    let mut walk = open(source, options, Start::Beginning).map_err(failure)?;
    scan.end = loop {
        match walk.step() {
            Ok(Step::More) => scan.add(&*walk, options),
            Ok(Step::Done) => break End::Done,
            Ok(step) => panic!("nothing is growing: {step:?}"),
            Err(error @ Error::Io { .. }) => return Err(failure(error)),
            Err(error) => break End::of(error),
        }
    };
    Ok(scan)
}

fn failure(error: Error) -> String {
    match error {
        Error::Io { action, .. } => action,
        other => panic!("{other}"),
    }
}

/// An object in a store: slow, sometimes unreachable, sometimes replaced.
struct Store {
    bytes: Vec<u8>,
    reads: AtomicUsize,
    fails_at: AtomicUsize,
    replaced: AtomicBool,
}

impl Store {
    fn ahead(bytes: &[u8], sizes: PieceSizes) -> (Arc<Self>, Arc<dyn Source>) {
        let store = Arc::new(Self {
            bytes: bytes.to_vec(),
            reads: AtomicUsize::new(0),
            fails_at: AtomicUsize::new(usize::MAX),
            replaced: AtomicBool::new(false),
        });
        let ahead = ReadAhead::with_sizes(store.clone(), sizes);
        (store, Arc::new(ahead))
    }
}

impl Source for Store {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        if self.reads.fetch_add(1, Ordering::SeqCst) == self.fails_at.load(Ordering::SeqCst) {
            return Err(as_told(FAILED));
        }
        let mut rest = &self.bytes[usize::try_from(offset).unwrap()..];
        for piece in buffer.chunks_mut(100) {
            std::thread::yield_now();
            let (own, after) = rest.split_at(piece.len());
            piece.copy_from_slice(own);
            rest = after;
        }
        Ok(())
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn confirm(&self) -> seglake::Result<()> {
        match self.replaced.load(Ordering::SeqCst) {
            true => Err(as_told(REPLACED)),
            false => Ok(()),
        }
    }
}

fn as_told(action: &str) -> Error {
    Error::io(None, action.to_owned(), ErrorKind::Other.into())
}
