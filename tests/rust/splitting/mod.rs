//! Reading files whole and in parts, and comparing.

use std::sync::Arc;

use seglake::Error;
use seglake::format::{Options, Part, Start, Step, open, resolve, split};
use seglake::ledger::Span;
use seglake::source::Source;
use seglake::verbs::Report;

#[path = "../../../fuzz/src/properties/alike.rs"]
#[allow(clippy::duplicate_mod, reason = "private to the properties, too")]
mod alike;

pub(crate) use alike::joined;
use alike::told;

use crate::common::{Windowed, source};

/// What a walk came to.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) records: Vec<String>,
    pub(crate) spans: Vec<Span>,
    pub(crate) error: Option<String>,
    pub(crate) report: Option<Report>,
}

pub(crate) fn read(source: &Arc<dyn Source>, options: &Options, start: Start<'_>) -> Seen {
    let format = resolve(&**source, options).unwrap();
    let columns = format.columns(options.dialect).len();
    let mut seen = Seen::default();
    let mut report = Report::of(format, &**source);
    let mut walk = open(source.clone(), options, start).unwrap();
    loop {
        match walk.step() {
            Ok(Step::More) => {
                let rows = walk.rows();
                for row in 0..rows.len() {
                    let fields: Vec<_> =
                        (0..columns).map(|column| rows.field(row, column)).collect();
                    let record = format!("{} {fields:?} {:?}", rows.position(row), rows.cause(row));
                    seen.records.push(record);
                }
                seen.spans.extend_from_slice(walk.spans());
                report.add(&*walk);
            }
            Ok(Step::Done) => break,
            Ok(step) => panic!("nothing is growing: {step:?}"),
            Err(Error::Damage(damage)) => {
                seen.error = Some(format!("{} {}", damage.offset, damage.cause));
                break;
            }
            Err(other) => panic!("not damage: {other}"),
        }
    }
    seen.report = Some(report);
    seen
}

fn first_damage(spans: &[Span]) -> Option<String> {
    joined(spans.to_vec())
        .iter()
        .find_map(|span| span.cause.map(|cause| format!("{} {cause}", span.start)))
}

/// Reads a file whole, and in parts of about each number of bytes in `targets`, and compares. Returns the most
/// parts.
pub(crate) fn compare(source: &Arc<dyn Source>, options: &Options, targets: &[u64]) -> usize {
    let lenient = options.clone().strict(false);
    let strict = options.clone().strict(true);
    let whole = read(source, &lenient, Start::Beginning);
    let first = first_damage(&whole.spans);
    assert_eq!(read(source, &strict, Start::Beginning).error, first);
    let mut compared = Vec::<Vec<Part>>::new();
    for target in targets {
        let parts = split(source.clone(), &lenient, *target).unwrap();
        // The same parts were compared already.
        if !compared.contains(&parts) {
            compare_parts(source, [&lenient, &strict], &parts, &whole);
            compared.push(parts);
        }
    }
    compared.iter().map(Vec::len).max().unwrap()
}

fn compare_parts(
    source: &Arc<dyn Source>,
    [lenient, strict]: [&Options; 2],
    parts: &[Part],
    whole: &Seen,
) {
    let (mut records, mut spans) = (Vec::new(), Vec::new());
    let mut report = None::<Report>;
    let mut errors = Vec::new();
    for part in parts {
        let again = Part::from_json(&part.to_json()).unwrap();
        assert_eq!(&again, part);
        let seen = read(source, lenient, Start::Part(&again));
        let own = first_damage(&seen.spans);
        let raised = read(source, strict, Start::Part(part));
        assert_eq!(raised.error, own, "strict reading of {part:?}");
        if own.is_none() {
            assert_eq!(raised.records, seen.records);
            assert_eq!(raised.spans, seen.spans);
        } else {
            assert!(seen.records.starts_with(&raised.records));
        }
        errors.extend(own);
        records.extend(seen.records);
        spans.extend(seen.spans);
        match &mut report {
            Some(report) => report.merge(&seen.report.unwrap()),
            None => report = seen.report,
        }
    }
    assert_eq!(records, whole.records, "{parts:?}");
    assert_eq!(joined(spans), joined(whole.spans.clone()), "{parts:?}");
    let report = report.as_ref().unwrap();
    assert_eq!(told(report), told(whole.report.as_ref().unwrap()));
    let offset = |error: &String| error.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(
        errors.iter().min_by_key(|error| offset(error)),
        first_damage(&whole.spans).as_ref()
    );
}

/// Compares for several targets. Returns the most parts.
pub(crate) fn compare_all(bytes: &[u8], options: &Options) -> usize {
    let len = bytes.len() as u64;
    let targets = [1, 40, 300, 1000, len / 5, len / 3, len / 2, len];
    // Where nothing is chosen, pruning leaves nothing out.
    let prune = options.filter.is_empty();
    let small = options.clone().window_bytes(200).prune(prune);
    let windowed: Arc<dyn Source> = Arc::new(Windowed(bytes.to_vec()));
    compare(&windowed, &small, &targets);
    compare(&source(bytes), options, &targets)
}
