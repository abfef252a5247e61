//! Reading and writing chunked segments, compared with libzstd decompressing the same frames and compressing the same
//! contents, with reused contexts and content checksums.

use std::hint::black_box;
use std::sync::Arc;

use seglake::format::{self, Options, Start, Step, WriteOptions, Writer as _, chunked};
use seglake::source::BytesSource;
use seglake::verbs::verify;
use tempfile::TempDir;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

use crate::compare::{Beside, Comparison, Work};
use crate::logs::{Records, flights, lines};

/// Several times the size of a core's own caches.
const CONTENT_BYTES: usize = 48 << 20;
/// The writer's default.
const LEVEL: i32 = 1;
/// The share of libzstd's speed to reach.
const TARGET: f64 = 0.9;

pub(crate) fn run(comparison: &mut Comparison) {
    let mut kinds = vec![
        ("lines of 120 B", lines(60, CONTENT_BYTES)),
        ("lines of 1 KiB", lines(960, CONTENT_BYTES)),
    ];
    kinds.extend(flights().map(|records| ("flights", records)));
    for (name, records) in kinds {
        Log::new(&records).compare(comparison, name, &records);
    }
}

/// A chunked segment, its frames, and what is in them.
struct Log {
    bytes: Arc<Vec<u8>>,
    /// Where in `bytes` each frame is.
    frames: Vec<std::ops::Range<usize>>,
    contents: Vec<Vec<u8>>,
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Log {
    fn new(records: &Records) -> Self {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, records);
        let bytes = std::fs::read(path).unwrap();
        let (mut at, mut frames, mut contents) = (0, Vec::new(), Vec::new());
        while at < bytes.len() {
            let length = u32::from_be_bytes(*bytes[at + 1..].first_chunk().unwrap());
            let end = at + 21 + usize::try_from(length).unwrap();
            contents.push(zstd::decode_all(&bytes[at + 21..end]).unwrap());
            frames.push(at + 21..end);
            at = end.next_multiple_of(0x80);
        }
        Self {
            bytes: Arc::new(bytes),
            frames,
            contents,
        }
    }

    fn compare(&self, comparison: &mut Comparison, name: &str, records: &Records) {
        let source = Arc::new(BytesSource::new(Shared(self.bytes.clone())));
        let work = Work::Bytes(self.contents.iter().map(Vec::len).sum());
        let most = self.contents.iter().map(Vec::len).max().unwrap_or_default();
        let (mut context, mut content) = (DCtx::create(), vec![0; most]);
        let mut decompress = || {
            for frame in &self.frames {
                let frame = &self.bytes[frame.clone()];
                black_box(context.decompress(&mut content[..], frame).unwrap());
            }
        };
        comparison.run(
            format!("scan chunked, {name}"),
            Beside::Limit("libzstd, decompressing"),
            work,
            TARGET,
            || {
                let options = Options::default();
                let mut walk = format::open(source.clone(), &options, Start::Beginning).unwrap();
                let mut rows = 0;
                while walk.step().unwrap() == Step::More {
                    rows += black_box(walk.rows()).len();
                }
                assert_eq!(rows, records.len());
            },
            &mut decompress,
        );
        comparison.run(
            format!("verify chunked, {name}"),
            Beside::Limit("libzstd, decompressing"),
            work,
            TARGET,
            || {
                let report = verify(source.clone(), &Options::default(), |_| Ok(())).unwrap();
                assert_eq!(report.summary.records, records.len() as u64);
            },
            &mut decompress,
        );
        let mut context = CCtx::create();
        context
            .set_parameter(CParameter::CompressionLevel(LEVEL))
            .unwrap();
        context
            .set_parameter(CParameter::ChecksumFlag(true))
            .unwrap();
        let mut frame = vec![0; compress_bound(most)];
        comparison.run(
            format!("write chunked, {name}"),
            Beside::Limit("libzstd, compressing"),
            work,
            TARGET,
            || write(&TempDir::new().unwrap(), records),
            || {
                for content in &self.contents {
                    black_box(context.compress2(&mut frame[..], content).unwrap());
                }
            },
        );
    }
}

/// Writes a segment of these records into the folder.
fn write(folder: &TempDir, records: &Records) -> std::path::PathBuf {
    let path = folder.path().join("records.chunks");
    let options = WriteOptions::default().set("level", LEVEL);
    let mut writer = chunked::Writer::open(&path, &options).unwrap();
    for (timestamp, body) in records.iter() {
        writer.append(None, Some(timestamp), body).unwrap();
    }
    writer.flush().unwrap();
    path
}
