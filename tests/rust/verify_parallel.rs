//! Verifying with several threads finds what one finds.

use crate::common::sealed as segments;
use crate::tenant_segments;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use crate::common::{Windowed, chunked, uuid};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Interrupt, Options, active};
use seglake::source::Source;
use seglake::verbs::{Report, verify, verify_parallel};

/// Called when a thread of the crew reads.
type OnRead = Box<dyn Fn(u64) -> seglake::Result<()> + Send + Sync>;

struct Watched {
    bytes: Windowed,
    on_read: OnRead,
}

impl Source for Watched {
    fn len(&self) -> u64 {
        self.bytes.len()
    }
    fn path(&self) -> Option<&Path> {
        None
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        if is_crew() {
            (self.on_read)(offset)?;
        }
        self.bytes.read_exact_at(offset, buffer)
    }
}

fn is_crew() -> bool {
    std::thread::current().name() == Some("seglake-verify")
}

fn watched(
    bytes: &[u8],
    on_read: impl Fn(u64) -> seglake::Result<()> + Send + Sync + 'static,
) -> Arc<dyn Source> {
    Arc::new(Watched {
        bytes: Windowed(bytes.to_vec()),
        on_read: Box::new(on_read),
    })
}

/// All that a report says.
fn told(report: &Report) -> String {
    format!(
        "{:?} {:?} {} {} {} {:?} {:?} {:?} {:?} {} {}",
        report.format.name,
        report.summary.checked,
        report.summary.size,
        report.summary.bytes,
        report.summary.records,
        report.summary.first_timestamp,
        report.summary.last_timestamp,
        report.summary.totals,
        report.summary.damage,
        report.summary.truncated,
        report.summary.wrong_key(),
    )
}

/// Files of each format that has parts, of several MiB.
fn files() -> Vec<(Vec<u8>, Options)> {
    vec![
        (segments::varied(3 << 20, true), segments::lenient()),
        (
            tenant_segments::varied(2, 3 << 20).bytes,
            tenant_segments::lenient(),
        ),
        (chunked::segment(60, 500, 150), chunked::lenient()),
    ]
}

/// The same with a flipped bit here and there, twice in a row, so that the search for the next record takes time.
fn damaged(mut bytes: Vec<u8>) -> Vec<u8> {
    for at in (bytes.len() / 4..bytes.len() * 3 / 4).step_by(70_001) {
        bytes[at] ^= 0x20;
        bytes[at + 300] ^= 0x20;
    }
    bytes
}

#[test]
fn threads_find_what_one_finds() {
    for (bytes, options) in files() {
        for bytes in [bytes.clone(), damaged(bytes)] {
            let reads = Arc::new(AtomicU64::new(0));
            let counted = reads.clone();
            let source = watched(&bytes, move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            let one = verify(source.clone(), &options, |_| Ok(())).unwrap();
            assert_eq!(reads.load(Ordering::Relaxed), 0);
            for threads in [2, 5] {
                let many = verify_parallel(source.clone(), &options, threads, |_| Ok(()));
                assert_eq!(told(&many.unwrap()), told(&one));
                assert!(reads.swap(0, Ordering::Relaxed) > 0);
            }
        }
    }
}

#[test]
fn a_file_without_parts_is_verified_by_the_calling_thread() {
    let mut bytes = Vec::new();
    for tick in 0..2000 {
        active::encode(&mut bytes, &Key::DEFAULT, &uuid(tick), b"t", &[7; 600]).unwrap();
    }
    let options = Options::default().format(&active::FORMAT);
    let source = watched(&bytes, |_| panic!("no thread is needed"));
    for threads in [0, 1, 2, 1000] {
        let report = verify_parallel(source.clone(), &options, threads, |_| Ok(())).unwrap();
        assert_eq!(
            (report.summary.records, report.summary.bytes),
            (2000, bytes.len() as u64)
        );
    }
}

#[test]
fn where_parts_are_refused_one_walk_reports() {
    let read = Arc::new(AtomicBool::new(false));
    let seen = read.clone();
    let source = watched(&segments::overlapping(1 << 20), move |_| {
        seen.store(true, Ordering::Relaxed);
        Ok(())
    });
    let options = segments::lenient();
    let one = verify(source.clone(), &options, |_| Ok(())).unwrap();
    let many = verify_parallel(source, &options, 2, |_| Ok(())).unwrap();
    assert!(read.load(Ordering::Relaxed));
    assert_eq!(told(&many), told(&one));
}

#[test]
fn progress_is_reported_by_the_caller_up_to_the_end() {
    for (bytes, options) in files() {
        let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
        let mut last = 0;
        let report = verify_parallel(source.clone(), &options, 3, |done| {
            assert!(!is_crew());
            assert!((last..=source.len()).contains(&done));
            last = done;
            Ok(())
        });
        assert!(report.unwrap().is_sound());
        assert_eq!(last, source.len());
    }
}

#[test]
fn an_interrupt_ends_it() {
    for (bytes, options) in files() {
        // Threads that continue until they are stopped.
        let source = watched(&bytes, |_| {
            std::thread::yield_now();
            Ok(())
        });
        let ended = verify_parallel(source.clone(), &options, 2, |_| Err(Error::Interrupted));
        assert!(matches!(ended, Err(Error::Interrupted)));
        let source = watched(&bytes, |_| Err(Error::Interrupted));
        let ended = verify_parallel(source, &options, 2, |_| Ok(()));
        assert!(matches!(ended, Err(Error::Interrupted)), "by the source");
        let begun = Arc::new(AtomicBool::new(false));
        let is_begun = begun.clone();
        let source = watched(&bytes, move |_| {
            begun.store(true, Ordering::Release);
            Ok(())
        });
        let options = options.interrupt(Interrupt::new(move || is_begun.load(Ordering::Acquire)));
        let ended = verify_parallel(source, &options, 2, |_| Ok(()));
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for (bytes, options) in files() {
        let middle = bytes.len() as u64 / 2;
        let source = watched(&bytes, move |offset| match offset {
            _ if offset < middle => Ok(()),
            _ => Err(Error::io(
                None,
                format!("cannot read at {offset}"),
                std::io::Error::other("the disk is failing"),
            )),
        });
        let error = verify_parallel(source, &options, 2, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("the disk is failing"), "{error}");
    }
}

thread_local! {
    /// Dropped when the thread ends, and so after its failure is recorded.
    static AT_END: RefCell<Option<Sender<()>>> = const { RefCell::new(None) };
}

/// If several parts cannot be read, the error is that of the first part in the file, whichever thread fails first.
#[test]
fn the_first_failure_in_the_file_is_reported() {
    let (bytes, options) = files().pop().unwrap();
    for is_last_first in [false, true] {
        // Both threads have come to their part before one of them fails.
        let (both, begun) = (Barrier::new(2), Mutex::new(Vec::new()));
        let (sender, receiver) = channel();
        let (sender, receiver) = (Mutex::new(Some(sender)), Mutex::new(receiver));
        let source = watched(&bytes, move |offset| {
            begun.lock().unwrap().push(offset);
            both.wait();
            let first = begun.lock().unwrap().iter().copied().min();
            let is_first = Some(offset) == first;
            if is_first == is_last_first {
                // The other failure is recorded first.
                let receiver = receiver.lock().unwrap();
                let ended = receiver.recv_timeout(Duration::from_secs(60));
                assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
            } else {
                AT_END.set(sender.lock().unwrap().take());
            }
            let which = if is_first { "first" } else { "second" };
            let failing = std::io::Error::other("the disk is failing");
            Err(Error::io(None, format!("cannot read the {which}"), failing))
        });
        let error = verify_parallel(source, &options, 2, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("the first"), "{error}");
    }
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_thread_that_panics_is_not_waited_for_in_vain() {
    let (bytes, options) = files().swap_remove(0);
    let source = watched(&bytes, |_| panic!("a defect of the source"));
    let _ = verify_parallel(source, &options, 2, |_| Ok(()));
}
