//! Any index beside a chunked segment: its ledger accounts for every byte, and look-ups find what a walk does.

use std::sync::Arc;

use seglake::format::{Format, IndexSource, Options, chunked};
use seglake::ledger::Kind;
use seglake::source::BytesSource;

use super::lookup::finds_what_the_walk_gives;
use super::scan::{Scan, whole, windowed};
use super::{Draw, readings};

/// A sound segment of several chunks, and a damaged one.
const SEGMENTS: [&[u8]; 2] = [
    include_bytes!("../../../tests/vectors/chunked/index_flip.bin"),
    include_bytes!("../../../tests/vectors/chunked/flip_length.bin"),
];

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    assert_eq!(*format, chunked::FORMAT);
    let mut draw = Draw::of(bytes);
    for segment in SEGMENTS {
        for options in readings(format) {
            accounts(segment, bytes, &options, &mut draw);
            let scan = Scan::of(segment, &options);
            let index = IndexSource::Source(Arc::new(BytesSource::new(bytes.to_vec())));
            let options = options.index(index);
            finds_what_the_walk_gives(&scan, segment, &options, &mut draw);
        }
    }
}

/// The index's own ledger covers it, and each item is twenty of its bytes.
fn accounts(segment: &[u8], bytes: &[u8], options: &Options, draw: &mut Draw) {
    let read = |options: &Options| {
        chunked::Index::read(&*whole(segment), &*windowed(bytes), options).unwrap()
    };
    let index = read(options);
    let window_bytes = *draw.of_these(&[1, 19, 21, 100]);
    assert_eq!(read(&options.clone().window_bytes(window_bytes)), index);
    let mut at = 0;
    let mut items = index.items.iter();
    for span in &index.spans {
        assert!(span.start == at && span.end > at, "{:?}", index.spans);
        at = span.end;
        let damage = matches!(span.kind, Kind::Corrupt | Kind::TornTail);
        assert_eq!(span.is_damage(), damage, "{:?}", index.spans);
        if span.kind == Kind::Record {
            let start = usize::try_from(span.start).unwrap();
            let end = usize::try_from(span.end).unwrap();
            assert_eq!(items.next().unwrap().encode(), bytes[start..end]);
        }
    }
    assert_eq!((at, items.next()), (bytes.len() as u64, None));
    let ascend = |pair: &[chunked::Item]| {
        pair[0].offset < pair[1].offset && pair[0].file_offset < pair[1].file_offset
    };
    assert!(index.items.windows(2).all(ascend), "{:?}", index.items);
}
