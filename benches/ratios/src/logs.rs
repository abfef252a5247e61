//! Records like those of a service's log, and those of the demo if it has run.

use std::path::Path;

use seglake::format::{self, Options, Start, Step};
use seglake::source::{FileSource, open_regular};
use std::sync::Arc;

use crate::messages::Random;

/// Where `make demo` leaves its segments.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo-data/segments");

/// Records with adjacent bodies, so that reading them costs as much as reading the data of the comparison.
#[derive(Default)]
pub(crate) struct Records {
    /// Timestamps in microseconds, and where in `bodies` each body ends.
    ends: Vec<(i64, usize)>,
    bodies: Vec<u8>,
}

impl Records {
    pub(crate) fn push(&mut self, timestamp: i64, body: &[u8]) {
        self.bodies.extend_from_slice(body);
        self.ends.push((timestamp, self.bodies.len()));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Timestamps and bodies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(timestamp, end)| {
            let body = &self.bodies[start..*end];
            start = *end;
            (*timestamp, body)
        })
    }
}

/// One of these words, some much more frequent than others.
fn word<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    let count = words.len() as u64;
    let place = (random.next() % count).min(random.next() % count);
    words[usize::try_from(place).unwrap()]
}

/// Lines of a log, at least `bytes` bytes in total. A record has as many lines as fill `len` bytes.
pub(crate) fn lines(len: usize, bytes: usize) -> Records {
    let mut random = Random::new(7);
    let (mut records, mut micros) = (Records::default(), 1_760_000_000_000_000_i64);
    while records.bodies.len() < bytes {
        let mut body = String::with_capacity(len + 160);
        while body.len() < len {
            micros += i64::try_from(random.next() % 5_000).unwrap();
            let level = word(&mut random, &["INFO", "DEBUG", "WARN", "ERROR"]);
            let service = word(
                &mut random,
                &["checkout", "cart", "search", "auth", "stock"],
            );
            let route = word(
                &mut random,
                &["orders", "items", "users", "carts", "sessions"],
            );
            let status = word(&mut random, &["200", "201", "204", "304", "404", "500"]);
            let id = random.next() >> 36;
            let (number, sent) = (random.next() % 100_000, random.next() % 20_000);
            let took = random.next() % 900;
            body.push_str(&format!(
                "{micros} {level} {service} trace={id:07x} GET /api/v1/{route}/{number} status={status} bytes={sent} took={took}ms\n"
            ));
        }
        records.push(micros, body.as_bytes());
    }
    records
}

/// The flights of the demo, if it has run: JSON of some 230 bytes each.
pub(crate) fn flights() -> Option<Records> {
    let mut paths: Vec<_> = std::fs::read_dir(Path::new(DEMO))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "chunks")
        })
        .collect();
    paths.sort();
    let mut records = Records::default();
    for path in paths {
        let source = FileSource::new(open_regular(&path).unwrap(), &path).unwrap();
        let options = Options::default().strict(false);
        let mut walk = format::open(Arc::new(source), &options, Start::Beginning).unwrap();
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                records.push(rows.timestamp(row).unwrap(), rows.value(row));
            }
        }
    }
    (records.len() > 0).then_some(records)
}
