//! The other places in which threads wait for each other: reading ahead, reading parts of a file in several threads, and verifying
//! them.

use std::path::Path;
use std::sync::Arc;

use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, Start, sealed};
use seglake::source::{PieceSizes, ReadAhead, Source};
use seglake::store::{NewRecord, SegmentLog};
use seglake::verbs::verify_in_parts;
use seglake::{Error, Result};
use shuttle::thread;

use crate::schedule::{pause, run};
use crate::simulated::{Random, Simulated};
use crate::workload::{folder, options};

const RUNS: u64 = 200;

/// Bytes whose reads take time, and fail from an offset on.
#[derive(Debug)]
struct Slow {
    bytes: Vec<u8>,
    fails_from: u64,
}

impl Source for Slow {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        pause();
        let start = usize::try_from(offset).unwrap();
        let end = start + buffer.len();
        if end as u64 > self.fails_from {
            return Err(Error::io(
                None,
                "cannot read".to_owned(),
                std::io::Error::other("as told"),
            ));
        }
        buffer.copy_from_slice(&self.bytes[start..end]);
        Ok(())
    }
}

fn bytes(len: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    (0..len).map(|_| random.next().to_le_bytes()[0]).collect()
}

/// Two threads read the same, each from its beginning to its end. If a piece that is read ahead cannot be read, one of them is told.
#[test]
fn readers_of_what_is_read_ahead_come_to_its_end() {
    for seed in 0..RUNS {
        run(seed, move || {
            let len = 4000;
            let fails_from = if seed % 3 == 0 { 2500 } else { u64::MAX };
            let slow = Slow {
                bytes: bytes(len),
                fails_from,
            };
            let sizes = PieceSizes {
                least: 64,
                most: 512,
                whole: 64,
                proven: 128,
                back: 64,
            };
            let ahead = Arc::new(ReadAhead::with_sizes(Arc::new(slow), sizes));
            let threads = (0..2).map(|_| {
                let ahead = ahead.clone();
                thread::spawn(move || {
                    let expected = bytes(len);
                    let mut buffer = [0; 100];
                    for at in (0..len).step_by(100) {
                        if ahead.read_exact_at(at as u64, &mut buffer).is_err() {
                            assert!(at as u64 + 1200 > fails_from, "{at}");
                            return false;
                        }
                        assert!(buffer[..] == expected[at..at + 100], "{at}");
                    }
                    true
                })
            });
            for thread in threads.collect::<Vec<_>>() {
                assert_eq!(thread.join().unwrap(), fails_from == u64::MAX);
            }
        });
    }
}

/// A sealed segment of many records.
fn segment() -> Vec<u8> {
    run(0, || {
        let disk = Simulated::new();
        let log = SegmentLog::open(folder(), options(&disk, 1 << 20)).unwrap();
        let values: Vec<_> = (0..120)
            .map(|number| format!("{number:0100}").into_bytes())
            .collect();
        log.write_batch(values.iter().map(|own| NewRecord::new(b"t", own)))
            .unwrap();
        log.roll().unwrap();
        log.wait_sealed().unwrap();
        log.close().unwrap();
        let files = disk.files();
        let sealed = files
            .into_iter()
            .find(|(path, _)| path.ends_with(".sealed"));
        sealed.unwrap().1
    })
}

fn source(bytes: &[u8], fails_from: u64) -> Arc<dyn Source> {
    Arc::new(Slow {
        bytes: bytes.to_vec(),
        fails_from,
    })
}

#[test]
fn verifying_in_threads_comes_to_its_end() {
    let bytes = segment();
    for seed in 0..RUNS {
        let bytes = bytes.clone();
        run(seed, move || {
            // Of what only the threads read, a part cannot be read, or the caller does not want to go on.
            let len = bytes.len() as u64;
            let (fails_from, stops) = match seed % 4 {
                0 => (len * 3 / 4, false),
                1 => (u64::MAX, true),
                _ => (u64::MAX, false),
            };
            let options = Options::default().format(&sealed::FORMAT);
            let told =
                verify_in_parts(
                    source(&bytes, fails_from),
                    &options,
                    3,
                    3000,
                    |_| match stops {
                        true => Err(Error::Interrupted),
                        false => Ok(()),
                    },
                );
            match told {
                Ok(report) => assert_eq!((report.summary.records, fails_from), (120, u64::MAX)),
                Err(Error::Interrupted) => assert!(stops),
                Err(Error::Io { .. }) => assert!(fails_from < len),
                Err(other) => panic!("{other}"),
            }
        });
    }
}

#[test]
fn reading_in_threads_comes_to_its_end() {
    let bytes = segment();
    for seed in 0..RUNS {
        let bytes = bytes.clone();
        run(seed, move || {
            let options = Options::default().format(&sealed::FORMAT);
            let format = options.format.unwrap();
            let selection = Selection::new(format, &options, None, UuidType::Fixed).unwrap();
            let limits = Limits::default().bytes(1500).rows(5);
            let source = source(&bytes, u64::MAX);
            let mut batches = match seed % 3 {
                0 => Batches::ahead(source, &options, selection, limits, Start::Beginning).unwrap(),
                _ => Batches::threaded(source, &options, selection, limits, 3).unwrap(),
            };
            let mut rows = 0;
            while let Some(batch) = batches.next_batch().unwrap() {
                rows += batch.records.num_rows();
                if seed % 7 == 0 {
                    return; // who takes no more batches leaves no thread waiting
                }
            }
            assert_eq!(rows, 120);
        });
    }
}
