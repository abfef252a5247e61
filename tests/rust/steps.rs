//! What one step of a walk emits: no more than fits beside a window, however large the file is. It also reports
//! its progress.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{self, Windowed, sealed, segment, source};
use crate::fault_samples;
use crate::tenant_segments::{self, encode};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{self, FORMATS, Format, Options, Start, Step, open};
use seglake::source::Source;

/// The most records that a step of any format emits.
const MAX_ROWS: usize = 1 << 16;

/// Bytes of a file of small records.
fn many(folder: &Path, format: &Format, records: u64) -> Vec<u8> {
    let path = folder.join(format!("many.{}", format.extension));
    let options = fault_samples::options(format)
        .set("memory_bytes", 64 << 20)
        .set("chunk_records", 65_536)
        .concerning(format);
    let mut writer = format::create(format, &path, &options).unwrap();
    for number in 0..records {
        fault_samples::write(&mut *writer, format, number).unwrap();
    }
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// The bytes to be read in windows, and in memory.
fn both(bytes: &[u8]) -> [Arc<dyn Source>; 2] {
    [Arc::new(Windowed(bytes.to_vec())), source(bytes)]
}

/// Rows, bytes of values and ranges of each step; and that offsets lead from the first to the file's end.
fn steps(source: Arc<dyn Source>, format: &'static Format, window_bytes: usize) -> Vec<[usize; 3]> {
    let len = source.len();
    let options = Options::default()
        .format(format)
        .strict(false)
        .window_bytes(window_bytes);
    let mut walk = open(source, &options, Start::Beginning).unwrap();
    let (mut steps, mut offsets) = (Vec::new(), Vec::new());
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        let values = (0..rows.len()).map(|row| rows.value(row).len());
        steps.push([rows.len(), values.sum(), walk.spans().len()]);
        offsets.push(walk.offset());
    }
    assert_eq!(walk.offset(), len, "{format:?}");
    assert!(offsets.is_sorted(), "{format:?}");
    assert!(offsets[0] > 1, "{format:?}");
    // Unless the first step has all there is, it has not come to the end.
    let is_all = steps[1..].iter().all(|[rows, ..]| *rows == 0);
    assert!(is_all || offsets[0] < len, "{format:?}");
    steps
}

#[test]
fn a_step_of_many_records_is_bounded() {
    const RECORDS: u64 = 70_000;
    let folder = tempfile::tempdir().unwrap();
    for &format in FORMATS {
        let bytes = many(folder.path(), format, RECORDS);
        for window_bytes in [1 << 12, 1 << 16, 16 << 20] {
            let steps = both(&bytes).map(|source| steps(source, format, window_bytes));
            for own in &steps {
                let rows: usize = own.iter().map(|[rows, ..]| rows).sum();
                assert_eq!(rows as u64, RECORDS, "{format:?}");
            }
            for [rows, values, spans] in steps.concat() {
                assert!(rows <= MAX_ROWS && spans <= 2 * MAX_ROWS, "{format:?}");
                // A chunk is decoded whole; its steps have bounds of their own.
                let most = if format.name == "chunked" {
                    4 << 20
                } else {
                    window_bytes
                };
                // Records in memory are hashed and emitted together, up to this many bytes.
                let most = most.max(64 << 10);
                assert!(values <= most, "{format:?}: {values} of {most}");
            }
        }
    }
}

/// Blocks without messages, or with tenant IDs that are longer than all messages, end a step too.
#[test]
fn a_step_of_many_blocks_is_bounded() {
    let messages: Vec<_> = (0..3000_u32)
        .map(|number| {
            let tenant = format!("{number:0300}").into_bytes();
            (number / 100, tenant, Vec::new())
        })
        .collect();
    for version in [1, 2] {
        let segment = encode(version, &messages);
        let format = format::by_name("tenant").unwrap();
        for source in both(&segment.bytes) {
            let all = steps(source.clone(), format, 16 << 20);
            let short = steps(source, format, 1 << 14);
            assert_eq!(all.iter().map(|[rows, ..]| rows).sum::<usize>(), 3000);
            assert!(short.iter().all(|[rows, ..]| *rows <= 60), "{short:?}");
        }
    }
}

/// Whether a file seems to be under another key is reported once it was walked, and only then.
#[test]
fn a_walk_reports_whether_it_suspects_the_key() {
    let other = Key::new(&[7; 32]);
    for key in [Key::DEFAULT, other] {
        let active = segment(&key, &[("type", "value"); 20]);
        let records: Vec<_> = (1..20)
            .map(|tick| (common::uuid(tick), b"type".to_vec(), b"value".to_vec()))
            .collect();
        let sealed = sealed::segment(&key, &records, true);
        for (bytes, options) in [(active, common::lenient()), (sealed, sealed::lenient())] {
            let source: Arc<dyn Source> = source(&bytes);
            let mut walk = open(source, &options, Start::Beginning).unwrap();
            assert!(!walk.suspects_key());
            while walk.step().unwrap() == Step::More {}
            assert_eq!(walk.suspects_key(), key == other, "{:?}", options.format);
        }
    }
}

/// Entries of a table of contents of which every other one miscounts are as many ranges. They come in several steps.
#[test]
fn a_table_with_much_damage_comes_in_steps() {
    let messages: Vec<_> = (0..40_000_u32)
        .map(|number| (number, b"t".to_vec(), Vec::new()))
        .collect();
    let segment = encode(2, &messages);
    let mut bytes = segment.bytes.clone();
    // Magic, version and count; then each with partition, tenant, number of messages, offset, length and CRC-32.
    for entry in (0..40_000).step_by(2) {
        bytes[10 + 33 * entry + 12] ^= 1;
    }
    segment.seal(&mut bytes);
    let options = tenant_segments::lenient();
    let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
    let (mut steps, mut spans, mut rows) = (0, Vec::new(), 0);
    while walk.step().unwrap() == Step::More {
        steps += 1;
        rows += walk.rows().len();
        spans.extend_from_slice(walk.spans());
        assert!(walk.spans().len() <= 2 * MAX_ROWS);
    }
    assert!(steps > 4, "{steps} steps");
    assert_eq!(rows, 40_000);
    spans.sort_by_key(|span| span.start);
    common::assert_covers(&spans, bytes.len());
    let whole = tenant_segments::scan(source(&bytes), &options).unwrap();
    let mut ledger = whole.1;
    ledger.sort_by_key(|span| span.start);
    assert!(spans == ledger);
    let entries = |is_damaged: bool| {
        let front = spans.iter().filter(|span| span.start < segment.toc_end);
        front.filter(|span| span.is_damage() == is_damaged).count()
    };
    assert_eq!((entries(true), entries(false)), (20_000, 20_001));
}

/// Another slice each time, with a bit that differs.
struct Alternating([Vec<u8>; 2], AtomicUsize);

impl Source for Alternating {
    fn len(&self) -> u64 {
        self.0[0].len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn as_slice(&self) -> Option<&[u8]> {
        let calls = self.1.fetch_add(1, Ordering::Relaxed);
        assert!(calls < 1_000_000, "it goes on for ever");
        Some(&self.0[calls % 2])
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[0][start..start + buffer.len()]);
        Ok(())
    }
}

#[test]
fn a_source_that_changes_does_not_keep_a_walk_from_ending() {
    let sound = segment(&Key::DEFAULT, &[("type", "value"), ("type", "other")]);
    for at in 0..sound.len() {
        for bit in [0x01, 0x80] {
            let mut other = sound.clone();
            other[at] ^= bit;
            let source = Alternating([sound.clone(), other], AtomicUsize::new(0));
            let mut walk = open(Arc::new(source), &common::lenient(), Start::Beginning).unwrap();
            let ended = loop {
                match walk.step() {
                    Ok(Step::More) => {}
                    ended => break ended,
                }
            };
            // It may be noticed that the bytes changed.
            let is_right = matches!(ended, Ok(_) | Err(Error::Io { .. }));
            assert!(is_right, "{ended:?}");
        }
    }
}
