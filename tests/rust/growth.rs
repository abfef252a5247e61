//! Reading what a file grew by: growth after growth gives what one reading of the whole gives.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{
    Dialect, Growth, Options, Position, Start, Step, Walk, active, identity, open,
};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::{CappedSource, Source};

use crate::common::counting::Counting;
use crate::common::format_of;
use crate::common::{Windowed, chunked, lenient, segment, uuid};
use crate::messages;

/// A record as text.
pub(crate) type Row = String;

pub(crate) fn rows_of(walk: &dyn Walk, columns: usize, into: &mut Vec<Row>) {
    let rows = walk.rows();
    for row in 0..rows.len() {
        let fields: Vec<_> = (0..columns).map(|column| rows.field(row, column)).collect();
        into.push(format!(
            "{} {fields:?} {:?}",
            rows.position(row),
            rows.value(row)
        ));
    }
}

/// The rest of a walk.
pub(crate) fn drain(
    mut walk: Box<dyn Walk>,
    columns: usize,
) -> seglake::Result<(Vec<Row>, Vec<Span>)> {
    let (mut rows, mut spans) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        rows_of(&*walk, columns, &mut rows);
        spans.extend_from_slice(walk.spans());
    }
    assert_eq!(walk.step()?, Step::Done, "an ended walk stays at its end");
    Ok((rows, spans))
}

pub(crate) fn read(growth: &Growth) -> seglake::Result<(Vec<Row>, Vec<Span>)> {
    let columns = growth.format().columns(growth.options().dialect).len();
    let start = Start::Growth(growth);
    drain(open(growth.source(), growth.options(), start)?, columns)
}

/// The position as it is after it was stored.
pub(crate) fn stored(growth: &Growth) -> Position {
    let position = growth.position().unwrap();
    let again = Position::from_json(&position.to_json()).unwrap();
    assert_eq!(again, position);
    if let Some(identity) = position.identity() {
        assert_eq!(
            identity
                .to_string()
                .parse::<seglake::format::Identity>()
                .unwrap(),
            *identity
        );
    }
    again
}

/// Touching ranges of the same kind and cause as one.
pub(crate) fn joined(spans: &[Span]) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last)
                if last.end == span.start
                    && (last.kind, last.cause) == (span.kind, span.cause)
                    && !matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block) =>
            {
                last.end = span.end;
            }
            _ => out.push(*span),
        }
    }
    out
}

/// A file of these bytes as it was when `cut` of them were written, with the zeros of a preallocated one after them.
pub(crate) fn at_a_time(bytes: &[u8], cut: usize, preallocated: bool) -> Vec<u8> {
    let mut now = bytes[..cut].to_vec();
    if preallocated {
        now.resize(bytes.len() + 100, 0);
    }
    now
}

/// The bytes as the growths read them, each once, which may have been zeros that were written to later.
pub(crate) struct AsRead(pub(crate) Vec<u8>);

impl AsRead {
    pub(crate) fn read(&mut self, file: &[u8], start: u64, end: u64) {
        let own = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
        self.0[own.clone()].copy_from_slice(&file[own]);
    }

    /// Such zeros can only be padding, which is never read again.
    fn check(&self, file: &[u8], spans: &[Span]) -> Result<(), TestCaseError> {
        let padding = |at: u64| {
            let mut spans = spans.iter().filter(|span| span.kind == Kind::Padding);
            spans.any(|span| (span.start..span.end).contains(&at))
        };
        let pairs = (0_u64..).zip(self.0.iter().zip(file));
        for (at, (read, now)) in pairs.filter(|(_, (read, now))| read != now) {
            prop_assert!(*read == 0 && padding(at), "{at}: {read} was read, {now}");
        }
        Ok(())
    }
}

/// The sizes that a file has as it grows, up to all of it.
pub(crate) fn sizes(bytes: &[u8], cuts: &[Index]) -> Vec<usize> {
    let mut sizes: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    sizes.sort_unstable();
    sizes.push(bytes.len());
    sizes
}

/// Compares growth after growth with one reading of all.
fn check(
    bytes: &[u8],
    cuts: &[Index],
    preallocated: bool,
    options: &Options,
) -> Result<(), TestCaseError> {
    let cuts = sizes(bytes, cuts);
    let (mut rows, mut spans) = (Vec::new(), Vec::new());
    let mut position = None;
    let end = at_a_time(bytes, bytes.len(), preallocated);
    let mut as_read = AsRead(end.clone());
    let last = cuts.len() - 1;
    for (number, cut) in cuts.into_iter().enumerate() {
        let file = at_a_time(bytes, cut, preallocated);
        let source = Arc::new(Windowed(file.clone()));
        let growth = Growth::since(source, options, position.as_ref()).unwrap();
        let growth = growth.is_final(number == last);
        prop_assert!(growth.position().is_none());
        let (own_rows, own_spans) = read(&growth).unwrap();
        rows.extend(own_rows);
        spans.extend(own_spans);
        let now = stored(&growth);
        let before = position.as_ref().map_or(0, Position::offset);
        prop_assert!(now.offset() >= before);
        as_read.read(&file, before, now.offset());
        let left = growth.pending_bytes().unwrap();
        if number < last {
            prop_assert_eq!(
                joined(&spans).last().map_or(0, |span| span.end),
                now.offset()
            );
            // Zeros at the end may be those of an unfinished record, and padding may be there before it is written.
            prop_assert!(preallocated || now.offset() + left <= cut as u64);
            let read = usize::try_from(now.offset()).unwrap();
            let rest = &bytes[cut.min(read)..cut];
            prop_assert_eq!(left == 0, rest.iter().all(|byte| *byte == 0));
        } else {
            prop_assert_eq!(left, 0);
        }
        position = Some(now);
    }
    as_read.check(&end, &spans)?;
    compare(&rows, &spans, as_read, options)?;
    let known = position.unwrap();
    let whole: Arc<dyn Source> = Arc::new(Windowed(end));
    let found = identity(&whole, options).unwrap();
    prop_assert_eq!(found.as_ref(), known.identity());
    Ok(())
}

/// Compares growths that were read with one reading of the same bytes.
pub(crate) fn compare(
    rows: &[Row],
    spans: &[Span],
    as_read: AsRead,
    options: &Options,
) -> Result<(), TestCaseError> {
    let format = format_of(options);
    let all = Arc::new(Windowed(as_read.0));
    let walk = open(all, options, Start::Beginning).unwrap();
    let (all_rows, all_spans) = drain(walk, format.columns(options.dialect).len()).unwrap();
    prop_assert_eq!(rows, all_rows);
    // The lengths of a damaged record may have led beyond the end at first.
    let blurred = |spans: &[Span]| {
        let blur = |span: &Span| {
            let lengths = [Cause::LengthOutOfBounds, Cause::TruncatedHeader];
            let cause = match span.cause {
                Some(cause) if lengths.contains(&cause) => Some(Cause::ChecksumMismatch),
                cause => cause,
            };
            Span::new(span.start, span.end, span.kind, cause)
        };
        joined(&spans.iter().map(blur).collect::<Vec<_>>())
    };
    prop_assert_eq!(blurred(spans), blurred(&all_spans));
    Ok(())
}

pub(crate) fn struck(mut bytes: Vec<u8>, flips: &[(Index, u8)]) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    for (place, bit) in flips {
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << (bit % 8);
    }
    bytes
}

pub(crate) fn flips() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<(Index, u8)>(), 1..4)
    ]
}

pub(crate) fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_active_segment_is_read_in_growths(
        sizes in prop::collection::vec((0_usize..20, 0_usize..300), 0..12),
        flips in flips(),
        cuts in cuts(),
        preallocated in any::<bool>(),
        window in prop_oneof![Just(1 << 20), Just(300_usize)],
    ) {
        let messages = sizes.iter().map(|(type_, value)| (vec![b't'; *type_], vec![b'v'; *value]));
        let messages: Vec<_> = messages.collect();
        let bytes = struck(segment(&Key::DEFAULT, &messages), &flips);
        check(&bytes, &cuts, preallocated, &lenient().window_bytes(window))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn a_chunked_segment_is_read_in_growths(
        chunks in prop::collection::vec((1_i64..5, 0_usize..200, any::<bool>()), 0..8),
        flips in flips(),
        cuts in cuts(),
        preallocated in any::<bool>(),
        window in prop_oneof![Just(1 << 20), Just(300_usize)],
    ) {
        let (mut bytes, mut start) = (Vec::new(), 0);
        for (records, len, gap) in chunks {
            start += i64::from(gap);
            let own: Vec<_> = (start..start + records)
                .map(|offset| (offset * 10, chunked::value(offset, len)))
                .collect();
            chunked::push_records(&mut bytes, start, &own);
            start += records;
        }
        let bytes = struck(bytes, &flips);
        check(&bytes, &cuts, preallocated, &chunked::lenient().window_bytes(window))?;
    }

    #[test]
    fn an_oplog_is_read_in_growths(
        dialect in messages::dialects(),
        messages in messages::messages(),
        flips in flips(),
        cuts in cuts(),
        window in prop_oneof![Just(1 << 20), Just(300_usize)],
    ) {
        let bytes = struck(messages::file(dialect, &messages), &flips);
        check(&bytes, &cuts, false, &messages::lenient(dialect).window_bytes(window))?;
    }
}

/// A segment, and the offset at which each record ends.
fn ten() -> (Vec<u8>, Vec<usize>) {
    let messages: Vec<_> = (0..10_u8).map(|own| (b"type", vec![own; 40])).collect();
    let bytes = segment(&Key::DEFAULT, &messages);
    let each = bytes.len() / 10;
    (bytes, (1..=10).map(|own| own * each).collect())
}

pub(crate) fn grown(bytes: &[u8], options: &Options, since: Option<&Position>) -> Growth {
    Growth::since(Arc::new(Windowed(bytes.to_vec())), options, since).unwrap()
}

/// The position after these bytes.
pub(crate) fn after(bytes: &[u8], options: &Options) -> Position {
    let growth = grown(bytes, options, None);
    read(&growth).unwrap();
    stored(&growth)
}

pub(crate) fn refusal(bytes: &[u8], options: &Options, since: &Position) -> Option<(u64, String)> {
    match Growth::since(Arc::new(Windowed(bytes.to_vec())), options, Some(since)) {
        Ok(_) => None,
        Err(error @ Error::Replaced { offset, .. }) => Some((offset, error.to_string())),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_file_is_read_up_to_the_length_that_was_listed() {
    let (bytes, ends) = ten();
    let whole: Arc<dyn Source> = Arc::new(Windowed(bytes.clone()));
    let listed = Arc::new(CappedSource::new(whole, ends[3] as u64 + 5));
    let growth = Growth::since(listed, &lenient(), None).unwrap();
    let (rows, spans) = read(&growth).unwrap();
    assert_eq!((rows.len(), spans.len()), (4, 4));
    assert_eq!(growth.position().unwrap().offset(), ends[3] as u64);
    assert_eq!(
        growth.pending_bytes(),
        Some(2),
        "without the zeros at the end of it"
    );
}

#[test]
fn the_identity_of_a_segment_is_its_first_record() {
    let (bytes, ends) = ten();
    let of = |bytes: &[u8]| {
        let source: Arc<dyn Source> = Arc::new(Windowed(bytes.to_vec()));
        identity(&source, &lenient())
            .unwrap()
            .map(|own| own.to_string())
    };
    let checksum = hex::encode(&bytes[ends[0] - 8..ends[0]]);
    let first = uuid::Uuid::from_bytes(uuid(1000));
    let expected = format!("segment:{first}:{checksum}");
    assert_eq!(of(&bytes), Some(expected.clone()));
    assert_eq!(of(&bytes[..ends[0]]), Some(expected));
    assert_eq!(of(&bytes[..ends[0] - 1]), None);
    assert_eq!(of(&[]), None);
    let other = segment(&Key::DEFAULT, &[("type", "another value")]);
    assert_ne!(of(&other), of(&bytes), "the same UUID alone is no identity");
    assert_eq!(&of(&other).unwrap()[..44], &of(&bytes).unwrap()[..44]);
}

#[test]
fn another_file_or_a_shorter_one_is_refused() {
    let (bytes, ends) = ten();
    let position = after(&bytes[..ends[5]], &lenient());
    assert_eq!(refusal(&bytes, &lenient(), &position), None);
    // Another file.
    let other = segment(&Key::DEFAULT, &vec![("other", "value"); 10]);
    let (offset, text) = refusal(&other, &lenient(), &position).unwrap();
    assert_eq!(offset, 0);
    assert!(
        text.contains("expected the active segment segment:"),
        "{text}"
    );
    // The first record is the same, and another one is where the last one was.
    let mut other: Vec<_> = (0..10_u8).map(|own| (b"type", vec![own; 40])).collect();
    other[5].1[0] ^= 1;
    let other = segment(&Key::DEFAULT, &other);
    let (offset, text) = refusal(&other, &lenient(), &position).unwrap();
    assert_eq!(offset, ends[5] as u64);
    assert!(text.contains("the end of what was read last"), "{text}");
    // Cut, also where the records that are left are the same, and where zeros are in their place.
    let (offset, text) = refusal(&bytes[..ends[4]], &lenient(), &position).unwrap();
    assert_eq!(offset, ends[4] as u64);
    assert!(
        text.contains(&format!("expected at least the {} bytes", ends[5])),
        "{text}"
    );
    let mut cut = bytes[..ends[4]].to_vec();
    cut.resize(bytes.len(), 0);
    assert_eq!(
        refusal(&cut, &lenient(), &position).unwrap().0,
        ends[5] as u64
    );
    assert!(refusal(&[], &lenient(), &position).is_some());
    // Another format.
    let other = chunked::segment(3, 5, 20);
    let text = refusal(&other, &Options::default(), &position).unwrap().1;
    assert!(text.contains("found a chunked file"), "{text}");
}

/// The first record may rot after it was read. The last one tells that it is the same file.
#[test]
fn a_file_whose_first_record_is_damaged_by_now_is_the_same_file() {
    let (mut bytes, ends) = ten();
    let position = after(&bytes[..ends[5]], &lenient());
    bytes[30] ^= 1;
    let growth = grown(&bytes, &lenient(), Some(&position));
    assert_eq!(read(&growth).unwrap().0.len(), 4);
    assert_eq!(growth.position().unwrap().identity(), position.identity());
    bytes[ends[5] - 1] ^= 1;
    assert!(refusal(&bytes, &lenient(), &position).is_some());
}

#[test]
fn damage_in_what_was_added_is_raised_where_reading_is_strict() {
    let (mut bytes, ends) = ten();
    let position = after(&bytes[..ends[3]], &lenient());
    bytes[ends[5] + 30] ^= 1;
    let strict = lenient().strict(true);
    let growth = grown(&bytes, &strict, Some(&position));
    let Err(Error::Damage(damage)) = read(&growth) else {
        panic!("damage was not raised")
    };
    assert_eq!(damage.offset, ends[5] as u64);
    assert!(growth.position().is_none(), "it was not read to its end");
}

/// What is damage for certain is told at once, and not when more comes.
#[test]
fn damage_is_told_by_the_growth_that_has_it() {
    let mut bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    let end = bytes.len();
    active::encode(&mut bytes, &Key::DEFAULT, &uuid(5), b"c", b"3").unwrap(); // out of order
    let growth = grown(&bytes, &lenient(), None);
    let (rows, spans) = read(&growth).unwrap();
    assert_eq!((rows.len(), spans.len()), (2, 3));
    assert_eq!(spans[2].cause, Some(Cause::OutOfOrder));
    assert_eq!(spans[2].start, end as u64);
    let position = stored(&growth);
    assert_eq!(
        (position.offset(), growth.pending_bytes()),
        (bytes.len() as u64, Some(0))
    );
    let nothing = read(&grown(&bytes, &lenient(), Some(&position))).unwrap();
    assert_eq!(nothing, (vec![], vec![]));
}

#[test]
fn an_unfinished_record_is_damage_in_a_final_file_and_is_read_if_it_is_finished_all_the_same() {
    let (bytes, ends) = ten();
    for (zeros, left) in [(0, 20), (100, 20)] {
        let mut now = bytes[..ends[2] + 20].to_vec();
        now.resize(now.len() + zeros, 0);
        let growth = grown(&now, &lenient(), None);
        assert_eq!(read(&growth).unwrap().1.len(), 3);
        assert_eq!(growth.pending_bytes(), Some(left));
        let growth = growth.is_final(true);
        let (_, spans) = read(&growth).unwrap();
        assert_eq!(spans[3].kind, Kind::TornTail);
        assert_eq!(spans.last().unwrap().end, now.len() as u64);
        assert_eq!(growth.pending_bytes(), Some(0));
        let position = stored(&growth);
        assert_eq!(position.offset(), ends[2] as u64);
        let (rows, _) = read(&grown(&bytes, &lenient(), Some(&position))).unwrap();
        assert_eq!(rows.len(), 7);
    }
}

/// A chunk in a preallocated file is followed by zeros: its padding, whatever becomes of it later.
#[test]
fn padding_of_a_preallocated_file_is_read_once() {
    let bytes = chunked::segment(1, 1, 0);
    let options = chunked::lenient();
    let file = |cut, flipped: bool| {
        let mut now = at_a_time(&bytes, cut, true);
        now[bytes.len() - 1] |= u8::from(flipped);
        now
    };
    let growth = grown(&file(50, false), &options, None);
    let kinds: Vec<_> = read(&growth)
        .unwrap()
        .1
        .iter()
        .map(|span| span.kind)
        .collect();
    assert_eq!(kinds, [Kind::Chunk, Kind::Padding]);
    let position = stored(&growth);
    assert_eq!(position.offset(), bytes.len() as u64);
    let now = file(bytes.len(), true);
    let rest = grown(&now, &options, Some(&position)).is_final(true);
    let (rows, spans) = read(&rest).unwrap();
    assert_eq!((rows.len(), spans.len()), (0, 1));
    assert_eq!(spans[0].kind, Kind::Unused);
    // A reading of the whole finds what changed.
    let (_, spans) = read(&grown(&now, &options, None).is_final(true)).unwrap();
    assert_eq!(spans[1].cause, Some(Cause::NonzeroPadding));
}

/// The messages after it are proven by the end of the file alone, so it is their growth that tells the identity.
#[test]
fn an_oplog_that_begins_with_damage_is_identified_once_it_is_final() {
    let dialect = Dialect::Autobase;
    let sound = messages::varied(dialect, 1500);
    let options = messages::lenient(dialect);
    let mut bytes = sound.clone();
    bytes[1] = 0xfc; // a version that no message has
    let source: Arc<dyn Source> = Arc::new(Windowed(bytes.clone()));
    let own = identity(&source, &options).unwrap();
    assert!(own.is_some());
    let growing = grown(&bytes, &options, None);
    assert!(read(&growing).unwrap().0.is_empty());
    assert_eq!(stored(&growing).identity(), None);
    let growth = grown(&bytes, &options, None).is_final(true);
    let (rows, _) = read(&growth).unwrap();
    assert!(!rows.is_empty());
    let position = stored(&growth);
    assert_eq!((position.offset(), position.identity()), (0, own.as_ref()));
    // It is known by that as long as the message is there, also if the damage is repaired.
    assert_eq!(
        read(&grown(&bytes, &options, Some(&position)).is_final(true))
            .unwrap()
            .0,
        rows
    );
    let restored = read(&grown(&sound, &options, Some(&position))).unwrap().0;
    assert_eq!(restored.len(), rows.len() + 1);
    let other = messages::file(dialect, &[messages::Plain::default()]);
    assert!(refusal(&other, &options, &position).is_some());
}

#[test]
fn a_wrong_key_is_raised_and_not_waited_for() {
    let (bytes, _) = ten();
    let options = lenient().keys(vec![Key::new(&[7; 32])]);
    let growth = grown(&bytes, &options, None);
    assert_eq!(read(&growth).unwrap(), (vec![], vec![]));
    assert_eq!(growth.pending_bytes(), Some(bytes.len() as u64));
    let growth = grown(&bytes, &options.strict(true), None);
    let Err(Error::Damage(damage)) = read(&growth) else {
        panic!("it was waited for")
    };
    assert!(damage.wrong_key);
}

/// The new bytes, a look at the first record and at the last one, and the end of the file where zeros follow.
#[test]
fn reading_on_reads_little_of_what_was_read() {
    let value = vec![b'v'; 1000];
    let messages = vec![("type", &value); 3000];
    let bytes = segment(&Key::DEFAULT, &messages);
    let cut = bytes.len() / 3000 * 2999;
    let position = after(&bytes[..cut], &lenient());
    let counting = Counting::new(bytes.clone());
    let growth = Growth::since(counting.clone(), &lenient(), Some(&position)).unwrap();
    assert_eq!(read(&growth).unwrap().0.len(), 1);
    let (read_bytes, reads) = counting.take();
    let new = (bytes.len() - cut) as u64;
    assert!(read_bytes <= new + 2 * 1024, "{read_bytes} bytes for {new}");
    assert!(reads <= 5, "{reads} reads");
    let position = stored(&growth);
    let growth = Growth::since(counting.clone(), &lenient(), Some(&position)).unwrap();
    assert_eq!(read(&growth).unwrap().0.len(), 0);
    assert!(counting.take().0 <= 2 * 1024, "nothing new");
}

#[test]
fn what_is_no_position_is_refused() {
    let (bytes, ends) = ten();
    let json = after(&bytes[..ends[5]], &lenient()).to_json();
    let offset = format!("\"offset\":{}", ends[5]);
    for (what, by) in [
        ("\"version\":1", "\"version\":2"),
        ("\"format\":\"active\"", "\"format\":\"sealed\""),
        ("\"format\":\"active\"", "\"format\":\"oplog\""),
        ("\"format\":\"active\"", "\"format\":\"none\""),
        ("\"identity\":\"segment", "\"identity\":\"oplog"),
        (&offset, "\"offset\":1"),
        (
            "\"pending\":null",
            "\"pending\":{\"start\":0,\"end\":9,\"kind\":\"corrupt\",\"cause\":null}",
        ),
        ("\"uuid\":\"1", "\"uuid\":\"2"),
        ("\"first\":[0,", "\"first\":[18446744073709551615,"),
        ("{\"version\"", "{\"other\":1,\"version\""),
    ] {
        assert!(json.contains(what), "{what} is not in {json}");
        let error = Position::from_json(&json.replacen(what, by, 1)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("this is not a position in a file"),
            "{error}"
        );
    }
    let long = json.replacen('{', &format!("{{{}", " ".repeat(1 << 20)), 1);
    assert!(
        Position::from_json(&long)
            .unwrap_err()
            .to_string()
            .contains("none has more than")
    );
    assert!(Position::from_json("").is_err());
}

#[test]
fn a_position_that_was_made_up_does_no_harm() {
    let (bytes, ends) = ten();
    let json = after(&bytes[..ends[5]], &lenient()).to_json();
    let number = regex_lite(&json);
    for (from, to) in number {
        for by in [
            "0",
            "1",
            "18446744073709551615",
            "9223372036854775808",
            "null",
            "-1",
        ] {
            let made = format!("{}{by}{}", &json[..from], &json[to..]);
            let Ok(position) = Position::from_json(&made) else {
                continue;
            };
            let source = Arc::new(Windowed(bytes.clone()));
            if let Ok(growth) = Growth::since(source, &lenient(), Some(&position)) {
                let _ = open(growth.source(), growth.options(), Start::Growth(&growth))
                    .and_then(|walk| drain(walk, 4));
            }
        }
    }
}

/// Where numbers are in a text.
fn regex_lite(text: &str) -> Vec<(usize, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        if at > start && matches!(bytes[start - 1], b':' | b',' | b'[') {
            found.push((start, at));
        }
        at += 1;
    }
    found
}
