//! Several threads give what one gives, in the same order, and end when nobody takes the batches any more.

use crate::common::format_of;
use crate::common::sealed as segments;
use crate::tenant_segments;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Windowed, chunked};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use seglake::Error;
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Filter, Interrupt, Options};
use seglake::ledger::Span;
use seglake::source::Source;

fn limits() -> Limits {
    Limits::default().bytes(3000).rows(40)
}

fn batches(source: &Arc<dyn Source>, options: &Options, threads: usize) -> Batches {
    let format = format_of(options);
    let selection = Selection::new(format, options, None, UuidType::Fixed).unwrap();
    Batches::threaded(source.clone(), options, selection, limits(), threads).unwrap()
}

/// Everything read: all rows as text, the damage in order, the report, and the error.
type Seen = (Vec<String>, Vec<Span>, String, Option<String>);

fn read(source: &Arc<dyn Source>, options: &Options, threads: usize) -> Seen {
    let mut batches = batches(source, options, threads);
    let (mut rows, mut damage, mut error) = (Vec::new(), Vec::new(), None);
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => {
                for row in 0..batch.records.num_rows() {
                    rows.push(format!("{:?}", batch.records.slice(row, 1)));
                }
                damage.extend(batch.damage);
            }
            Ok(None) => break,
            Err(raised) => {
                error = Some(raised.to_string());
                assert!(batches.next_batch().unwrap().is_none());
                break;
            }
        }
    }
    let report = batches.report();
    let told = format!(
        "{:?} {:?} {}",
        report.summary.totals, report.summary.damage, report.summary.records
    );
    damage.sort_by_key(|span| (span.start, span.end));
    (rows, damage, told, error)
}

/// Files of each format that has parts, sound and damaged.
fn files() -> Vec<(Vec<u8>, Options)> {
    let mut files = vec![
        (segments::varied(60_000, true), segments::lenient()),
        (
            tenant_segments::varied(2, 60_000).bytes,
            tenant_segments::lenient(),
        ),
        (chunked::segment(60, 5, 150), chunked::lenient()),
    ];
    for place in 0..files.len() {
        let (mut bytes, options) = files[place].clone();
        for at in (bytes.len() / 4..bytes.len() * 3 / 4).step_by(4001) {
            bytes[at.next_multiple_of(0x80) + 50] ^= 0x20;
        }
        files.push((bytes, options));
    }
    files
}

#[test]
fn threads_give_what_one_gives() {
    for (bytes, options) in files() {
        let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
        let one = read(&source, &options, 1);
        assert!(one.0.len() > 100);
        for threads in [2, 3, 9] {
            assert_eq!(read(&source, &options, threads), one);
        }
    }
}

#[test]
fn strict_threads_raise_what_one_raises() {
    let mut damaged = 0;
    for (bytes, options) in files() {
        let strict = options.strict(true);
        let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
        let (rows, _, _, error) = read(&source, &strict, 1);
        for threads in [2, 5] {
            let (own_rows, _, _, own_error) = read(&source, &strict, threads);
            assert_eq!(own_error, error);
            assert_eq!(own_rows, rows);
        }
        damaged += usize::from(error.is_some());
    }
    assert_eq!(damaged, files().len() / 2);
}

#[test]
fn a_choice_of_records_is_the_same_with_threads() {
    let bytes = chunked::segment(60, 5, 150);
    let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
    let wanted = Filter::default()
        .at_least("offset", 70)
        .below("offset", 190);
    let options = chunked::lenient().filter(wanted);
    let one = read(&source, &options, 1);
    assert_eq!(one.0.len(), 120);
    assert_eq!(read(&source, &options, 3), one);
}

/// The threads keep the source open as long as they run.
#[test]
fn threads_end_when_their_batches_are_dropped() {
    let (bytes, options) = files().swap_remove(0);
    for taken in 0..4 {
        let source: Arc<dyn Source> = Arc::new(Windowed(bytes.clone()));
        let mut batches = batches(&source, &options, 3);
        for _ in 0..taken {
            assert!(batches.next_batch().unwrap().is_some());
        }
        drop(batches);
        while Arc::strong_count(&source) > 1 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn threads_can_be_interrupted() {
    let (bytes, options) = files().swap_remove(0);
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    // A source that never answers but when it is interrupted.
    struct Stuck(Windowed, Arc<AtomicBool>);
    impl Source for Stuck {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn path(&self) -> Option<&std::path::Path> {
            None
        }
        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
            let is_reader = std::thread::current().name() == Some("seglake-read");
            while is_reader && !self.1.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            self.0.read_exact_at(offset, buffer)
        }
    }
    let source: Arc<dyn Source> = Arc::new(Stuck(Windowed(bytes), asked.clone()));
    let planned = Arc::new(AtomicBool::new(false));
    let is_planned = planned.clone();
    let interrupt = Interrupt::new(move || {
        let stop = is_planned.load(Ordering::Acquire);
        seen.fetch_or(stop, Ordering::AcqRel);
        stop
    });
    let options = options.interrupt(interrupt);
    let mut batches = batches(&source, &options, 2);
    planned.store(true, Ordering::Release);
    assert!(matches!(batches.next_batch(), Err(Error::Interrupted)));
    assert!(asked.load(Ordering::Acquire));
    drop(batches);
    while Arc::strong_count(&source) > 1 {
        std::thread::yield_now();
    }
}

/// The interrupt is polled even if every request finds a batch waiting.
#[test]
fn threads_that_are_ahead_can_be_interrupted() {
    /// Notes how far the threads have read.
    struct Noting(Windowed, AtomicU64);
    impl Source for Noting {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn path(&self) -> Option<&std::path::Path> {
            None
        }
        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
            if std::thread::current().name() == Some("seglake-read") {
                self.1.fetch_max(offset, Ordering::AcqRel);
            }
            self.0.read_exact_at(offset, buffer)
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let interrupt = Interrupt::new(move || asked.load(Ordering::Acquire));
    let options = chunked::lenient().interrupt(interrupt);
    // A chunk is a part, and a part is three batches.
    let log = Windowed(chunked::segment(60, 5, 1500));
    let noting = Arc::new(Noting(log, AtomicU64::new(0)));
    let source: Arc<dyn Source> = noting.clone();
    let mut batches = batches(&source, &options, 2);
    assert!(batches.next_batch().unwrap().is_some());
    while noting.1.load(Ordering::Acquire) < 20_000 {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Release);
    assert!(matches!(batches.next_batch(), Err(Error::Interrupted)));
    assert!(batches.next_batch().unwrap().is_none());
}

/// Rows stay together also when a batch ends with a part.
#[test]
fn batches_keep_their_bounds() {
    let (bytes, options) = files().swap_remove(0);
    let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
    let read: Vec<RecordBatch> = batches(&source, &options, 2).map(Result::unwrap).collect();
    let schemas: Vec<&Schema> = read
        .iter()
        .map(|batch| batch.schema_ref().as_ref())
        .collect();
    assert!(schemas.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(read.len() > 10);
    assert!(
        read.iter()
            .all(|batch| (1..=limits().rows).contains(&batch.num_rows()))
    );
}
