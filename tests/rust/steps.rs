//! What one step of a walk gives: no more than fits beside a window, however much the file has, and it tells how far it has come.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{self, Windowed, sealed, segment, source};
use crate::fault_samples;
use crate::tenant_segments::encode;
use seglake::checksum::Key;
use seglake::format::{self, FORMATS, Format, Options, Start, Step, WriteOptions, open};
use seglake::source::Source;

/// The most records that a step of any format gives.
const MAX_ROWS: usize = 1 << 16;

/// Bytes of a file of small records.
fn many(folder: &Path, format: &Format, records: u64) -> Vec<u8> {
    let path = folder.join(format!("many.{}", format.extension));
    let options = WriteOptions {
        memory_bytes: 64 << 20,
        chunk_records: 65_536,
        ..fault_samples::options(format)
    };
    let mut writer = format::create(format, &path, &options).unwrap();
    for number in 0..records {
        fault_samples::write(&mut *writer, format, number).unwrap();
    }
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// Rows, bytes of values and ranges of each step; and that offsets lead from the first to the file's end.
fn steps(bytes: &[u8], format: &'static Format, window_bytes: usize) -> Vec<[usize; 3]> {
    let options = Options {
        format: Some(format),
        strict: false,
        window_bytes,
        ..Options::default()
    };
    let windowed = Arc::new(Windowed(bytes.to_vec()));
    let mut walk = open(windowed, &options, Start::Beginning).unwrap();
    let (mut steps, mut offsets) = (Vec::new(), Vec::new());
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        let values = (0..rows.len()).map(|row| rows.value(row).len());
        steps.push([rows.len(), values.sum(), walk.spans().len()]);
        offsets.push(walk.offset());
    }
    assert_eq!(walk.offset(), bytes.len() as u64, "{format:?}");
    assert!(offsets.is_sorted(), "{format:?}");
    assert!(offsets[0] > 1, "{format:?}");
    // Unless the first step has all there is, it has not come to the end.
    let is_all = steps[1..].iter().all(|[rows, ..]| *rows == 0);
    assert!(is_all || offsets[0] < bytes.len() as u64, "{format:?}");
    steps
}

#[test]
fn a_step_of_many_records_is_bounded() {
    const RECORDS: u64 = 70_000;
    let folder = tempfile::tempdir().unwrap();
    for &format in FORMATS {
        let bytes = many(folder.path(), format, RECORDS);
        for window_bytes in [1 << 12, 1 << 16, 16 << 20] {
            let steps = steps(&bytes, format, window_bytes);
            let rows: usize = steps.iter().map(|[rows, ..]| rows).sum();
            assert_eq!(rows as u64, RECORDS, "{format:?}");
            for [rows, values, spans] in steps {
                assert!(rows <= MAX_ROWS && spans <= 2 * MAX_ROWS, "{format:?}");
                // A chunk is decoded whole; its steps have bounds of their own.
                let most = if format.name == "chunked" {
                    4 << 20
                } else {
                    window_bytes
                };
                assert!(
                    values <= most.max(1 << 10),
                    "{format:?}: {values} of {most}"
                );
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
        let all = steps(&segment.bytes, format, 16 << 20);
        let short = steps(&segment.bytes, format, 1 << 14);
        assert_eq!(all.iter().map(|[rows, ..]| rows).sum::<usize>(), 3000);
        assert!(short.iter().all(|[rows, ..]| *rows <= 60), "{short:?}");
    }
}

/// Whether a file seems to be under another key is told once it was walked, and only then.
#[test]
fn a_walk_tells_whether_it_suspects_the_key() {
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
