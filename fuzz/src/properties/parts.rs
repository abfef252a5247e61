//! The parts of a file together give what the whole file gives. Pruned reading of a file or a part gives the same
//! records.

use std::sync::Arc;

use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::format::{Filter, Format, Options, Part, Start, Step, open, split};
use seglake::ledger::{Cause, Span};
use seglake::source::Source;
use seglake::verbs::Report;

use super::alike::{joined, told};
use super::filter::Drawn;
use super::lookup::names_its_blocks;
use super::scan::{End, Record, Scan, ended, whole, windowed};
use super::{Draw, format_of};

/// With the smallest, each entry or chunk is a part.
const TARGETS: [u64; 5] = [1, 30, 100, 300, 1000];

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for (options, scan) in ended(format, bytes) {
        let target = *draw.of_these(&TARGETS);
        let parts = split(whole(bytes), &options, target).unwrap();
        let options = options.window_bytes(*draw.of_these(&[1, 20, 64, 1 << 20]));
        let source = match draw.below(2) {
            0 => whole(bytes),
            _ => windowed(bytes),
        };
        are_the_whole(&source, &parts, &scan, &options, &mut draw);
        // No accident makes a false table of contents or header with a matching checksum, or overlapping messages with
        // matching checksums. Look-ups trust them.
        let lies = match format.name {
            "tenant" => !names_its_blocks(bytes, &options),
            "chunked" => {
                let is_bad = |span: &Span| span.cause == Some(Cause::PayloadInvalid);
                parts.len() < 2 && scan.spans.iter().any(is_bad)
            }
            "sealed" => options.keys.iter().any(|key| overlap(bytes, key)),
            _ => false,
        };
        if lies {
            continue;
        }
        for _ in 0..2 {
            let Some(drawn) = Drawn::of(&scan, &options, &mut draw) else {
                return;
            };
            are_chosen(&source, &parts, &scan, &options, drawn, &mut draw);
        }
    }
}

/// Whether a sealed segment has overlapping messages whose checksums in the trailer match.
pub(super) fn overlap(bytes: &[u8], key: &Key) -> bool {
    let number = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let Some(foot) = bytes.len().checked_sub(32) else {
        return false;
    };
    let count = number(foot + 8).and_then(|count| usize::try_from(count).ok());
    let checksums = count.and_then(|count| foot.checked_sub(count.checked_mul(8)?));
    let Some(checksums) = checksums else {
        return false;
    };
    let message = |(place, entry): (usize, &[u8; 24])| {
        let start = usize::try_from(number(24 * place + 16)?).ok()?;
        let rest = bytes.get(start..checksums)?;
        let lengths = 1 + usize::from(*rest.first()?);
        let value: &[u8; 4] = rest.get(lengths..)?.first_chunk()?;
        let len = lengths + 4 + usize::try_from(u32::from_be_bytes(*value)).ok()?;
        let hashed = [&entry[..16], rest.get(..len)?].concat();
        let checks = number(checksums + 8 * place)? == hash(key, &hashed);
        checks.then_some((start, start + len))
    };
    let entries = bytes.as_chunks().0.iter().enumerate();
    let mut messages: Vec<_> = entries
        .take((foot - checksums) / 8)
        .filter_map(message)
        .collect();
    messages.sort_unstable();
    messages.windows(2).any(|pair| pair[0].1 > pair[1].0)
}

/// The records, ranges and sums of all parts, and the first damage, are those of the whole file.
fn are_the_whole(
    source: &Arc<dyn Source>,
    parts: &[Part],
    expected: &Scan,
    options: &Options,
    draw: &mut Draw,
) {
    let strict = options.clone().strict(true);
    let mut sum = None::<Report>;
    let mut all = Scan::new();
    let mut first = None::<(u64, End)>;
    for part in parts {
        let again = Part::from_json(&part.to_json()).unwrap();
        assert_eq!(&again, part);
        let mut report = Report::of(format_of(options), &**source);
        let stop = draw.below(8);
        let Some(scan) = read(source, &again, options, Some(&mut report), stop) else {
            let is_damaged = expected.spans.iter().any(Span::is_damage);
            assert!(
                is_damaged,
                "a sound file that is refused in parts: {part:?}"
            );
            return;
        };
        assert_eq!(scan.end, End::Done);
        match &mut sum {
            Some(sum) => sum.merge(&report),
            None => sum = Some(report),
        }
        all.records.extend(scan.records);
        all.spans.extend(scan.spans);
        let Some(raised) = read(source, part, &strict, None, usize::MAX) else {
            return;
        };
        if let End::Damage { offset, .. } = raised.end
            && first.as_ref().is_none_or(|(first, _)| offset < *first)
        {
            first = Some((offset, raised.end));
        }
    }
    // Walks that resume search some places again. Near the end of the budget, that exhausts it.
    if parts.len() == 1 && all.is_limited() && !expected.is_limited() {
        return;
    }
    assert_eq!(all.records, expected.records, "{parts:?}");
    assert_eq!(joined(all.ledger()), joined(expected.ledger()), "{parts:?}");
    let raised = Scan::of_source(source, &strict);
    let first = first.map_or(End::Done, |(_, end)| end);
    assert_eq!(first, raised.end, "{parts:?}");
    let mut report = Report::of(format_of(options), &**source);
    let mut walk = open(source.clone(), options, Start::Beginning).unwrap();
    while walk.step().unwrap() == Step::More {
        report.add(&*walk);
    }
    assert_eq!(told(&sum.unwrap()), told(&report), "{parts:?}");
}

/// The matching records, of the whole file and of parts, read in full or pruned.
fn are_chosen(
    source: &Arc<dyn Source>,
    parts: &[Part],
    scan: &Scan,
    options: &Options,
    drawn: Drawn,
    draw: &mut Draw,
) {
    let expected: Vec<_> = scan
        .records
        .iter()
        .filter(|record| drawn.is_met(record))
        .cloned()
        .collect();
    let choosing = options.clone().filter(drawn.filter.clone());
    let pruning = choosing.clone().prune(true);
    let pruned = Scan::of_source(source, &pruning);
    assert_eq!(pruned.end, End::Done, "{:?}", pruning.filter);
    assert_eq!(pruned.records, expected, "pruned {:?}", pruning.filter);
    are_ranges_of(&pruned.spans, scan, &pruning.filter);
    let ended = Scan::of_source(source, &choosing);
    for (options, is_exact) in [(&choosing, true), (&pruning, false)] {
        let mut records = Vec::<Record>::new();
        let mut spans = Vec::new();
        for part in parts {
            let stop = draw.below(8);
            let Some(scan) = read(source, part, options, None, stop) else {
                return;
            };
            assert_eq!(scan.end, End::Done);
            records.extend(scan.records);
            spans.extend(scan.spans);
        }
        assert_eq!(records, expected, "{:?} in {parts:?}", options.filter);
        are_ranges_of(&spans, scan, &options.filter);
        spans.sort_by_key(|span| (span.start, span.end));
        assert!(
            spans.windows(2).all(|pair| pair[0].end <= pair[1].start),
            "{:?} in {parts:?}: {spans:?}",
            options.filter
        );
        if is_exact {
            let whole = joined(ended.ledger());
            assert_eq!(joined(spans), whole, "{:?} in {parts:?}", options.filter);
        }
    }
}

/// Checks that each of these ranges is within one of the whole file.
fn are_ranges_of(spans: &[Span], whole: &Scan, wanted: &Filter) {
    let whole = joined(whole.ledger());
    let is_one = |span: &Span| {
        whole.iter().any(|own| {
            (own.kind, own.cause) == (span.kind, span.cause)
                && own.start <= span.start
                && span.end <= own.end
        })
    };
    let other = spans.iter().find(|span| !is_one(span));
    assert!(other.is_none(), "{other:?} of {wanted:?}");
}

/// Reads a part, with a new walk after `steps` steps each. `None` if the part is refused because the file breaks a
/// promise of its index.
fn read(
    source: &Arc<dyn Source>,
    part: &Part,
    options: &Options,
    mut report: Option<&mut Report>,
    stop: usize,
) -> Option<Scan> {
    let mut scan = Scan::new();
    let mut walk = open(source.clone(), options, Start::Part(part)).unwrap();
    for number in 0.. {
        if let Some(carry) = walk.carry().filter(|_| number == stop) {
            walk = open(source.clone(), options, Start::Carry(&carry)).unwrap();
        }
        match walk.step() {
            Ok(Step::More) => {
                scan.add(&*walk, options);
                if let Some(report) = &mut report {
                    report.add(&*walk);
                }
            }
            Ok(Step::Done) => break,
            Ok(step) => panic!("nothing is growing: {step:?}"),
            Err(Error::Usage(why)) => {
                assert!(why.contains("cannot be read by itself"), "{why}");
                return None;
            }
            Err(error) => {
                scan.end = End::of(error);
                break;
            }
        }
    }
    Some(scan)
}
