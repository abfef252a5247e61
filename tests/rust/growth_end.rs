//! Finding where a growth ends without reading all of it: that is where a walk of all of it ends. So a pass that later reads up to there
//! gives what one reading of the file gives.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Filter, Growth, Options, Position};
use seglake::ledger::Span;
use seglake::parity::{Parameters, ProtectedSource, Set};
use seglake::source::{BytesSource, CappedSource, Source};

use crate::common::counting::Counting;
use crate::common::{Windowed, chunked, lenient, segment};
use crate::growth::{AsRead, Row, at_a_time, compare, cuts, flips, read, sizes, stored, struck};
use crate::messages;
use crate::parity::protected;

/// What a chunked file has.
#[derive(Clone, Debug)]
enum Piece {
    Records(i64, usize, bool),
    NoRecords,
    /// The payload does not match the header.
    BadPayload(Index),
    /// It begins before where the one before it ended.
    Overlap,
    Flags,
    /// The header, whose checksum is right, has another length.
    Length(u32),
    Zeros(usize),
    Noise(u64),
    /// Other bytes than zeros are between two chunks.
    Dirty,
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        8 => (1_i64..5, 0_usize..200, any::<bool>())
            .prop_map(|(records, len, gap)| Piece::Records(records, len, gap)),
        1 => Just(Piece::NoRecords),
        2 => any::<Index>().prop_map(Piece::BadPayload),
        1 => Just(Piece::Overlap),
        1 => Just(Piece::Flags),
        1 => (0_u32..1500).prop_map(Piece::Length),
        1 => (1_usize..3).prop_map(Piece::Zeros),
        1 => any::<u64>().prop_map(Piece::Noise),
        1 => Just(Piece::Dirty),
    ];
    prop::collection::vec(piece, 0..12)
}

/// Two records that begin at a message offset.
fn two(start: i64) -> Vec<u8> {
    chunked::frame(&chunked::content(&[(start, [7; 40]), (start, [8; 40])]))
}

fn file(pieces: &[Piece]) -> Vec<u8> {
    let (mut bytes, mut end) = (Vec::new(), 0);
    for piece in pieces {
        let payload = two(end);
        match piece {
            Piece::Records(records, len, gap) => {
                end += i64::from(*gap);
                let own = (end..end + records).map(|own| (own, chunked::value(own, *len)));
                chunked::push_records(&mut bytes, end, &own.collect::<Vec<_>>());
                end += records;
            }
            Piece::NoRecords => chunked::push_chunk(&mut bytes, end, 0, &chunked::frame(b"")),
            Piece::BadPayload(at) => {
                let mut payload = payload;
                let at = at.index(payload.len());
                payload[at] ^= 0x55;
                // What follows may begin where it is said to end, or where the last good chunk ended.
                chunked::push_chunk(&mut bytes, end, 2, &payload);
                end += if at % 2 == 0 { 2 } else { 0 };
            }
            Piece::Overlap => chunked::push_chunk(&mut bytes, (end - 1).max(0), 2, &payload),
            Piece::Flags => {
                let at = bytes.len();
                chunked::push_chunk(&mut bytes, end, 2, &payload);
                let length = u32::try_from(payload.len()).unwrap();
                bytes[at..at + 21].copy_from_slice(&chunked::header(1, length, end, 2));
            }
            Piece::Length(length) => {
                let at = bytes.len();
                chunked::push_chunk(&mut bytes, end, 2, &payload);
                bytes[at..at + 21].copy_from_slice(&chunked::header(0, *length, end, 2));
            }
            Piece::Zeros(blocks) => bytes.resize(bytes.len() + 0x80 * blocks, 0),
            Piece::Noise(seed) => bytes.extend(chunked::noise(*seed, 0x80)),
            Piece::Dirty => {
                if let Some(last) = bytes.last_mut() {
                    *last = 1;
                }
            }
        }
    }
    bytes
}

fn found(rows: &[Row], spans: &[Span]) -> bool {
    !rows.is_empty() || spans.iter().any(Span::is_damage)
}

/// Plans each growth as a stream does: looks for its end, and has another reader read up to there. Compares both with a reader of all that
/// there is, and what was read in the end with one reading of the file.
fn check(
    bytes: &[u8],
    cuts: &[Index],
    preallocated: bool,
    options: &Options,
) -> Result<(), TestCaseError> {
    let end = at_a_time(bytes, bytes.len(), preallocated);
    let mut as_read = AsRead(end.clone());
    let cuts = sizes(bytes, cuts);
    let (mut rows, mut spans, mut position) = (Vec::new(), Vec::new(), None);
    for cut in cuts {
        let file = at_a_time(bytes, cut, preallocated);
        let now: Arc<dyn Source> = Arc::new(Windowed(file.clone()));
        let since = |source: &Arc<dyn Source>, before: Option<&Position>| {
            Growth::since(source.clone(), options, before).unwrap()
        };
        let planned = since(&now, position.as_ref()).only_end(true);
        let (own_rows, own_spans) = read(&planned).unwrap();
        let whole = since(&now, position.as_ref());
        let (all_rows, all_spans) = read(&whole).unwrap();
        prop_assert_eq!(planned.position(), whole.position());
        prop_assert_eq!(planned.pending_bytes(), whole.pending_bytes());
        prop_assert_eq!(found(&own_rows, &own_spans), found(&all_rows, &all_spans));
        let end = stored(&planned);
        let up_to: Arc<dyn Source> = Arc::new(CappedSource::new(now, end.offset()));
        let task = since(&up_to, position.as_ref());
        let (own_rows, own_spans) = read(&task).unwrap();
        prop_assert_eq!(task.position().unwrap().offset(), end.offset());
        rows.extend(own_rows);
        spans.extend(own_spans);
        as_read.read(
            &file,
            position.as_ref().map_or(0, Position::offset),
            end.offset(),
        );
        position = Some(end);
    }
    let rest = Growth::since(Arc::new(Windowed(end)), options, position.as_ref()).unwrap();
    let (own_rows, own_spans) = read(&rest.only_end(true).is_final(true)).unwrap();
    rows.extend(own_rows);
    spans.extend(own_spans);
    compare(&rows, &spans, as_read, options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_end_of_a_chunked_growth(
        pieces in pieces(),
        flips in flips(),
        cuts in cuts(),
        preallocated in any::<bool>(),
        window in prop_oneof![Just(1 << 20), Just(300_usize)],
    ) {
        let bytes = struck(file(&pieces), &flips);
        check(&bytes, &cuts, preallocated, &chunked::lenient().window_bytes(window))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_end_of_an_active_growth(count in 0_u8..12, flips in flips(), cuts in cuts(), preallocated in any::<bool>()) {
        let values: Vec<_> = (0..count).map(|own| (b"type", vec![own; 40])).collect();
        let bytes = struck(segment(&Key::DEFAULT, &values), &flips);
        check(&bytes, &cuts, preallocated, &lenient())?;
    }

    #[test]
    fn the_end_of_an_oplog_growth(
        dialect in messages::dialects(),
        messages in messages::messages(),
        flips in flips(),
        cuts in cuts(),
    ) {
        let bytes = struck(messages::file(dialect, &messages), &flips);
        check(&bytes, &cuts, false, &messages::lenient(dialect))?;
    }
}

const CHUNKS: u16 = 200;

/// Chunks that do not compress, of three records each, the 21st of which is damaged.
fn large() -> Vec<u8> {
    let mut bytes = chunked::segment(CHUNKS.into(), 3, 7000);
    let damaged = bytes.len() / usize::from(CHUNKS) * 20 + 100;
    bytes[damaged] ^= 0x55;
    bytes
}

/// Finds the end. Returns how many bytes are read for it, and the records on the way.
fn ended(bytes: Vec<u8>) -> (Growth, u64, Vec<Row>) {
    let counting = Counting::new(bytes);
    let options = chunked::lenient().window_bytes(0x1000);
    let growth = Growth::since(counting.clone(), &options, None)
        .unwrap()
        .only_end(true);
    counting.take();
    let (rows, _) = read(&growth).unwrap();
    (growth, counting.take().0, rows)
}

#[test]
fn the_chunks_before_the_last_one_are_not_read() {
    let bytes = large();
    let each = bytes.len() as u64 / u64::from(CHUNKS);
    let (growth, read_bytes, rows) = ended(bytes.clone());
    assert_eq!(rows.len(), 3, "those of the last chunk");
    assert_eq!(growth.pending_bytes(), Some(0));
    assert!(read_bytes < 5 * each, "{read_bytes}");
    // The last one is unfinished, in a preallocated file. The end of the data is looked for in pieces of 1 MiB.
    let mut unfinished = bytes;
    let end = unfinished.len();
    unfinished[end - 1000..].fill(0);
    let (growth, read_bytes, rows) = ended(unfinished);
    assert_eq!(rows.len(), 3, "those of the chunk before");
    assert!(growth.pending_bytes().unwrap() > each - 1500);
    assert!(read_bytes < 8 * each + (2 << 20), "{read_bytes} of {end}");
}

#[test]
fn all_is_read_where_something_may_be_missed() {
    let bytes = large();
    let growth = |options: &Options| {
        let source = Arc::new(BytesSource::new(bytes.clone()));
        Growth::since(source, options, None).unwrap().only_end(true)
    };
    let Err(Error::Damage(damage)) = read(&growth(&chunked::lenient().strict(true))) else {
        panic!("it is damaged")
    };
    assert!(damage.offset > 0);
    let chosen = chunked::lenient().filter(Filter::default().at_most("offset", 4_i64));
    assert_eq!(read(&growth(&chosen)).unwrap().0.len(), 5);
    // The sidecar restores the chunk that is damaged.
    let parameters = Parameters::new(4096, 6, 2, 2).unwrap();
    let set = Set {
        id: *b"some set",
        parameters,
    };
    let sound = chunked::segment(CHUNKS.into(), 3, 7000);
    let sidecar = Arc::new(BytesSource::new(protected(&sound, sound.len() as u64, set)));
    let options = chunked::lenient().repair(true);
    let file = Arc::new(BytesSource::new(bytes.clone()));
    let view = ProtectedSource::open(file, sidecar).unwrap();
    let growth = Growth::since(view, &options, None).unwrap().only_end(true);
    assert_eq!(read(&growth).unwrap().0.len(), usize::from(CHUNKS) * 3);
}
