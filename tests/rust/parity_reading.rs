//! Reading files by their parity sidecars: what is told of damage, which records are given, and which are not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::sample::Index;

use crate::common::format_of;
use crate::fault_samples;
use crate::parity::{protected, verified};
use crate::vectors;
use seglake::format::{
    Checked, FORMATS, Format, Options, RecordId, Scalar, Start, Step, create, lookup, open,
};
use seglake::ledger::{Cause, Kind, Span};
use seglake::parity::{self, FileKind, Outcome, Parameters, ProtectedSource, Refused, Set};
use seglake::source::{BytesSource, Source};
use seglake::verbs::{self, Ledger, Report};
use seglake::{Damage, Error, Reader};

/// A file, and how it is read.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) options: Options,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Files of all formats, with checksums and without, and the golden files, damaged ones among them.
static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let mut samples: Vec<_> = FORMATS
        .iter()
        .map(|format| written(format, "", 0))
        .collect();
    samples.push(written(by_name("sealed"), "trailer", 0));
    samples.push(written(by_name("tenant"), "version", 1));
    let golden = vectors::cases().into_iter();
    let golden = golden.filter(|case| case.bytes.len() > 100);
    samples.extend(golden.map(|case| Sample {
        name: case.name,
        bytes: case.bytes,
        options: case.options,
    }));
    samples
});

fn by_name(name: &str) -> &'static Format {
    seglake::format::by_name(name).unwrap()
}

/// A file of some records, written with an option of the format.
pub(crate) fn written(format: &'static Format, option: &'static str, value: u64) -> Sample {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut options = fault_samples::options(format);
    options = match option {
        "" => options,
        "trailer" => options.set(option, false),
        _ => options.set(option, value),
    };
    let mut writer = create(format, &path, &options).unwrap();
    for number in 0..60 {
        let value = format!("{number} ").repeat(usize::try_from(number % 13).unwrap());
        fault_samples::write_value(&mut *writer, format, number, value.as_bytes()).unwrap();
    }
    writer.close().unwrap();
    Sample {
        name: format!("{} {option}", format.name),
        bytes: fs::read(&path).unwrap(),
        options: Options::default().format(format).strict(false),
    }
}

fn sample(name: &str) -> &'static Sample {
    SAMPLES.iter().find(|own| own.name == name).unwrap()
}

/// Blocks of 64 bytes, bands of 768: any 2 damaged blocks of a band are repaired.
const PARITY_BLOCKS: usize = 2;

fn sidecar_of(bytes: &[u8]) -> Vec<u8> {
    sidecar_in_bands(bytes, 2)
}

pub(crate) fn sidecar_in_bands(bytes: &[u8], groups: u16) -> Vec<u8> {
    let parameters = Parameters::new(64, 6, 2, groups).unwrap();
    let set = Set {
        id: *b"some set",
        parameters,
    };
    protected(bytes, u64::try_from(bytes.len()).unwrap(), set)
}

/// The file and options, read by a sidecar.
pub(crate) fn read_by(
    bytes: &[u8],
    sidecar: &[u8],
    options: &Options,
) -> (Arc<dyn Source>, Options) {
    let source = Arc::new(BytesSource::new(bytes.to_vec()));
    let sidecar = Arc::new(BytesSource::new(sidecar.to_vec()));
    let source = ProtectedSource::open(source, sidecar).unwrap();
    (source, options.clone())
}

pub(crate) type Row = (u64, String);

pub(crate) fn rows_of(source: &Arc<dyn Source>, options: &Options) -> (Vec<Row>, Option<Error>) {
    let columns = options.format.unwrap().columns(options.dialect).len();
    let mut walk = match open(source.clone(), options, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut found = Vec::new();
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
        let rows = walk.rows();
        for row in 0..rows.len() {
            let mut fields = String::new();
            for column in 0..columns {
                write!(fields, "{:?} ", rows.field(row, column)).unwrap();
            }
            found.push((rows.position(row), fields));
        }
    }
}

fn plain_rows(sample: &Sample) -> Vec<Row> {
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(sample.bytes.clone()));
    let (rows, error) = rows_of(&source, &sample.options);
    assert!(error.is_none(), "{}: {error:?}", sample.name);
    rows
}

pub(crate) fn ledger(source: &Arc<dyn Source>, options: &Options) -> Vec<Span> {
    let ledger = Ledger::new(source.clone(), options).unwrap();
    ledger.collect::<seglake::Result<_>>().unwrap()
}

pub(crate) fn verify(source: &Arc<dyn Source>, options: &Options) -> Report {
    verbs::verify(source.clone(), options, |_| Ok(())).unwrap()
}

/// Ranges of bytes that differ, or that one of the two lacks.
fn differing(one: &[u8], other: &[u8]) -> Vec<Range<u64>> {
    let mut ranges = Vec::<Range<u64>>::new();
    for at in 0..one.len().max(other.len()) {
        if one.get(at) != other.get(at) {
            let at = u64::try_from(at).unwrap();
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => ranges.push(at..at + 1),
            }
        }
    }
    ranges
}

/// The blocks of a file, by band.
fn blocks(bytes: &[u8], sidecar: &[u8]) -> Vec<Vec<Range<usize>>> {
    let report = verified(bytes, sidecar, parity::Options::default());
    let mut start = 0;
    let bands = report.frames.iter().map(|frame| {
        let end = start + usize::try_from(frame.len).unwrap();
        let cut = |at: usize| at..(at + frame.block_bytes).min(end);
        let blocks = (start..end).step_by(frame.block_bytes).map(cut).collect();
        start = end;
        blocks
    });
    bands.collect()
}

/// A damaged copy, within what is repaired: in each band, bytes of at most two blocks. The end may be missing.
fn within_the_guarantee(
    bytes: &[u8],
    sidecar: &[u8],
    choices: &[(Index, Index, u8)],
    cut: bool,
) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    let bands = blocks(bytes, sidecar);
    let count: usize = bands.iter().map(Vec::len).sum();
    let mut touched = vec![Vec::new(); bands.len()];
    let mut touch = |band: usize, block: usize| {
        let all: usize = touched.iter().map(Vec::len).sum();
        let is_new = !touched[band].contains(&block);
        // One block stays, so that it is not another file.
        let fits = !is_new || (touched[band].len() < PARITY_BLOCKS && all + 1 < count);
        if fits && is_new {
            touched[band].push(block);
        }
        fits
    };
    let last = bands.len() - 1;
    let is_cut = cut && touch(last, bands[last].len() - 1);
    for (place, within, change) in choices {
        let band = place.index(bands.len());
        let block = within.index(bands[band].len());
        if touch(band, block) {
            let range = bands[band][block].clone();
            let from = range.start + usize::from(*change) % range.len();
            for byte in &mut damaged[from..range.end.min(from + 1 + usize::from(*change) / 8)] {
                *byte ^= *change | 1;
            }
        }
    }
    if is_cut {
        damaged.truncate(bands[last].last().unwrap().start + 1);
    }
    damaged
}

pub(crate) fn any_sample() -> impl Strategy<Value = &'static Sample> {
    any::<Index>().prop_map(|index| {
        // Half of the trials are with the files that were written here.
        let own = FORMATS.len() + 2;
        let index = index.index(2 * SAMPLES.len());
        &SAMPLES[if index < SAMPLES.len() {
            index
        } else {
            index % own
        }]
    })
}

pub(crate) fn choices(most: usize) -> impl Strategy<Value = Vec<(Index, Index, u8)>> {
    proptest::collection::vec((any::<Index>(), any::<Index>(), any::<u8>()), 1..most)
}

/// Where each record of the undamaged file begins and ends. Those of a chunk are as long as that.
fn extents(sample: &Sample) -> BTreeMap<u64, u64> {
    let source = Arc::new(BytesSource::new(sample.bytes.clone()));
    let mut walk = open(source, &sample.options, Start::Beginning).unwrap();
    let mut extents = BTreeMap::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        extents.extend((0..rows.len()).map(|row| (rows.position(row), rows.end(row))));
    }
    extents
}

/// Whether a record has bytes that differ.
fn is_hit(extents: &BTreeMap<u64, u64>, start: u64, differing: &[Range<u64>]) -> bool {
    let end = extents[&start];
    differing
        .iter()
        .any(|range| range.start < end && start < range.end)
}

/// Strict reading raises the first damage of the ledger, but for what is restored where that is no error. Where bytes are lost, or the
/// file was damaged when it was protected, it may raise what it meets first.
fn is_first_of(
    ledger: &[Span],
    error: Option<Error>,
    repairs: bool,
    is_all_restored: bool,
) -> Result<(), String> {
    let is_met = |span: &Span, damage: &Damage| (span.start..span.end).contains(&damage.offset);
    let is_no_error = |span: &Span| repairs && span.kind == Kind::Repaired;
    let mut damage = ledger.iter().filter(|span| span.is_damage());
    let is_right = match &error {
        None => damage.all(is_no_error),
        // What begins in restored bytes may be damaged all the same.
        Some(Error::Damage(met)) if is_all_restored => damage
            .find(|span| !is_no_error(span) || is_met(span, met))
            .is_some_and(|first| is_met(first, met)),
        Some(Error::Damage(met)) => damage.any(|span| is_met(span, met)),
        Some(_) => false,
    };
    match is_right {
        true => Ok(()),
        false => Err(format!("{error:?}: {ledger:?}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Within the guarantee every byte that differs is told and no other, and all records are given on request.
    #[test]
    fn all_differing_bytes_are_told_and_all_records_restored(
        sample in any_sample(),
        choices in choices(8),
        cut in proptest::bool::weighted(0.2),
        window in prop_oneof![Just(1usize << 20), 64usize..600],
    ) {
        let sidecar = sidecar_of(&sample.bytes);
        let damaged = within_the_guarantee(&sample.bytes, &sidecar, &choices, cut);
        let expected = differing(&sample.bytes, &damaged);
        let (all, whole) = (plain_rows(sample), Arc::new(BytesSource::new(sample.bytes.clone())));
        let whole = ledger(&(whole as Arc<dyn Source>), &sample.options);

        let options = sample.options.clone().window_bytes(window);
        let (source, options) = read_by(&damaged, &sidecar, &options);
        let spans = ledger(&source, &options);
        let mut at = 0;
        for span in &spans {
            prop_assert_eq!(span.start, at, "{}: {:?}", sample.name, spans);
            at = span.end;
        }
        prop_assert_eq!(at, sample.bytes.len() as u64);
        let restored: Vec<_> = spans.iter().filter(|span| span.kind == Kind::Repaired).collect();
        prop_assert!(restored.iter().all(|span| span.is_damage()));
        let mut told = Vec::<Range<u64>>::new();
        for span in &restored {
            match told.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => told.push(span.start..span.end),
            }
        }
        prop_assert_eq!(&told, &expected, "{}", sample.name);
        // Other damage is that of the file as it was protected.
        let mut others = spans.iter().filter(|span| span.is_damage() && span.kind != Kind::Repaired);
        prop_assert!(others.all(|span| whole.iter().any(|own| {
            own.start <= span.start && span.end <= own.end && own.cause == span.cause
        })), "{}: {:?} {:?}", sample.name, spans, whole);

        let report = verify(&source, &options);
        let extents = extents(sample);
        let hit = |row: &Row| is_hit(&extents, row.0, &expected);
        let left: Vec<_> = all.iter().filter(|row| !hit(row)).cloned().collect();
        prop_assert_eq!(report.summary.records, left.len() as u64);
        prop_assert_eq!(report.summary.repaired, (all.len() - left.len()) as u64);
        prop_assert_eq!(&report.summary.damage, &spans.iter().filter(|span| span.is_damage()).copied().collect::<Vec<_>>());
        let parity = report.parity.as_ref().unwrap();
        prop_assert_eq!(parity.outcome(), if expected.is_empty() { Outcome::Sound } else { Outcome::Repaired });
        prop_assert_eq!(report.summary.checked == Checked::Structure, false);

        let (rows, error) = rows_of(&source, &options);
        prop_assert!(error.is_none());
        prop_assert_eq!(&rows, &left, "{}", sample.name);
        let (rows, error) = rows_of(&source, &options.clone().repair(true));
        prop_assert!(error.is_none());
        prop_assert_eq!(&rows, &all, "{}", sample.name);

        let (rows, error) = rows_of(&source, &options.clone().strict(true));
        let is_all_restored = whole.iter().all(|span| !span.is_damage());
        is_first_of(&spans, error, false, is_all_restored).map_err(|why| TestCaseError::fail(format!("{}: {why}", sample.name)))?;
        let (_, error) = rows_of(&source, &options.clone().strict(true).repair(true));
        is_first_of(&spans, error, true, is_all_restored).map_err(|why| TestCaseError::fail(format!("{}: {why}", sample.name)))?;
        for row in rows {
            prop_assert!(!hit(&row) && all.contains(&row), "{}", sample.name);
        }
    }

    /// Beyond the guarantee, no record is given that is not as it was.
    #[test]
    fn no_wrong_record_is_given(sample in any_sample(), choices in choices(60), cut in any::<bool>()) {
        let sidecar = sidecar_of(&sample.bytes);
        let mut damaged = sample.bytes.clone();
        for (place, _, change) in &choices {
            let from = place.index(damaged.len());
            for byte in damaged.iter_mut().skip(from).take(1 + usize::from(*change) / 3) {
                *byte ^= *change | 1;
            }
        }
        if cut {
            damaged.truncate(1 + choices[0].1.index(damaged.len()));
        }
        let all = plain_rows(sample);
        let plain: Arc<dyn Source> = Arc::new(BytesSource::new(sample.bytes.clone()));
        // And a record within the value of another is found where that one is lost.
        let is_nested = sample.name == "active/nested";
        let is_sound = verify(&plain, &sample.options).is_sound() && !is_nested;
        let (source, options) = read_by(&damaged, &sidecar, &sample.options);
        for repairs in [false, true] {
            let (rows, error) = rows_of(&source, &options.clone().repair(repairs));
            prop_assert!(error.is_none());
            // Damage that was there before may hide records that the new damage does not.
            for row in rows.iter().filter(|_| is_sound) {
                prop_assert!(all.contains(row), "{}: {row:?} {:?}", sample.name, verify(&source, &options));
            }
            let (some, error) = rows_of(&source, &options.clone().repair(repairs).strict(true));
            if error.is_none() {
                prop_assert_eq!(some, rows);
            }
            let spans = ledger(&source, &options);
            is_first_of(&spans, error, repairs, false).map_err(|why| TestCaseError::fail(format!("{}: {why}", sample.name)))?;
        }
        let report = verify(&source, &options);
        if damaged != sample.bytes {
            prop_assert!(!report.is_sound(), "{}", sample.name);
        }
    }
}

fn damage_of(report: &Report) -> Vec<(u64, u64, Kind, Option<Cause>)> {
    let damage = report.summary.damage.iter();
    damage
        .map(|span| (span.start, span.end, span.kind, span.cause))
        .collect()
}

/// The positions of a sample's records.
fn positions(sample: &Sample) -> Vec<usize> {
    let rows = plain_rows(sample).into_iter();
    rows.map(|row| usize::try_from(row.0).unwrap()).collect()
}

/// Makes a file of which the last bands cannot be repaired.
fn strike(sample: &Sample, from: usize, with: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut damaged = sample.bytes.clone();
    for byte in &mut damaged[from..] {
        *byte = with(*byte);
    }
    damaged
}

#[test]
fn of_what_is_lost_records_stay_that_their_checksums_prove() {
    let sample = sample("active ");
    let sidecar = sidecar_of(&sample.bytes);
    let starts = positions(sample);
    // One byte in each block from here on.
    let mut damaged = sample.bytes.clone();
    for at in (1000..damaged.len()).step_by(64) {
        damaged[at] ^= 1;
    }
    let (source, options) = read_by(&damaged, &sidecar, &sample.options);
    let report = verify(&source, &options);
    let plain: Arc<dyn Source> = Arc::new(BytesSource::new(damaged.clone()));
    assert_eq!(
        report.summary.records,
        verify(&plain, &sample.options).summary.records
    );
    assert!(report.summary.records > 20 && report.summary.records < 60);
    assert_eq!(report.parity.as_ref().unwrap().outcome(), Outcome::Lost);
    // Zeros where records were are not unused space. All of the file is one band.
    let zeroed = strike(sample, starts[20], |_| 0);
    let sidecar = sidecar_in_bands(&sample.bytes, 20);
    let (source, options) = read_by(&zeroed, &sidecar, &sample.options);
    let report = verify(&source, &options);
    let last = report.summary.damage.last().unwrap();
    assert_eq!(
        (last.end, last.kind),
        (sample.bytes.len() as u64, Kind::Corrupt)
    );
    assert_eq!(report.summary.records, 20);
    let plain: Arc<dyn Source> = Arc::new(BytesSource::new(zeroed));
    assert!(verify(&plain, &sample.options).is_sound());
    let (_, error) = rows_of(&source, &options.strict(true));
    let Some(Error::Damage(damage)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(damage.cause, Cause::ChecksumMismatch);
    assert!(damage.to_string().contains("parity sidecar"), "{damage}");
}

#[test]
fn without_checksums_nothing_is_given_whose_meaning_is_lost() {
    // Each message may refer to those before it.
    let oplog = sample("oplog ");
    let damaged = strike(oplog, positions(oplog)[50] + 20, |byte| byte ^ 1);
    let (source, options) = read_by(&damaged, &sidecar_of(&oplog.bytes), &oplog.options);
    let (rows, _) = rows_of(&source, &options);
    assert!(rows.len() <= 50 && plain_rows(oplog).starts_with(&rows));
    assert!(rows.len() > 40);
    assert_eq!(verify(&source, &options).summary.checked, Checked::Parity);
    // The index says which record is which.
    let sealed = sample("sealed trailer");
    let mut damaged = sealed.bytes.clone();
    for at in (70..800).step_by(64) {
        damaged[at] ^= 1;
    }
    let (source, options) = read_by(&damaged, &sidecar_of(&sealed.bytes), &sealed.options);
    assert_eq!(rows_of(&source, &options).0, []);
    assert!(!verify(&source, &options).is_sound());
}

#[test]
fn a_sidecar_of_another_file_counts_only_where_there_are_no_checksums() {
    for (name, own_rules) in [("active ", true), ("oplog ", false)] {
        let sample = sample(name);
        let other: Vec<_> = sample.bytes.iter().map(|byte| byte ^ 0x10).collect();
        let (source, options) = read_by(&sample.bytes, &sidecar_of(&other), &sample.options);
        let report = verify(&source, &options);
        let parity = report.parity.as_ref().unwrap();
        assert_eq!(parity.report.refused, Some(Refused::AnotherFile));
        assert_eq!(report.is_sound(), own_rules, "{name}");
        assert_eq!(report.summary.records, if own_rules { 60 } else { 0 });
    }
}

/// A file of which the last record is another one, and as long.
fn newer(format: &'static Format) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let options = fault_samples::options(format);
    let mut writer = create(format, &path, &options).unwrap();
    for number in 0..60 {
        let value = format!("{number} ").repeat(usize::try_from(number % 13).unwrap());
        let value = if number == 59 {
            value.replace('5', "6")
        } else {
            value
        };
        fault_samples::write_value(&mut *writer, format, number, value.as_bytes()).unwrap();
    }
    writer.close().unwrap();
    fs::read(&path).unwrap()
}

/// Verifying asks the file's own checksums whether it was changed on purpose. Reading gives the file as it was protected.
#[test]
fn a_sidecar_of_an_earlier_state_is_refused() {
    for sample in [sample("active "), sample("chunked ")] {
        let newer = newer(format_of(&sample.options));
        let at = positions(sample)[59];
        assert!(newer != sample.bytes && newer[..at] == sample.bytes[..at]);
        assert_eq!(newer.len(), sample.bytes.len());
        let (source, options) = read_by(&newer, &sidecar_of(&sample.bytes), &sample.options);
        let report = verify(&source, &options);
        assert!(report.is_sound());
        assert_eq!((report.summary.records, report.summary.repaired), (60, 0));
        let parity = report.parity.as_ref().unwrap();
        assert_eq!(parity.outcome(), Outcome::Refused);
        assert!(parity.is_of_an_earlier_state);
        let (rows, error) = rows_of(&source, &options.clone().repair(true));
        assert!(error.is_none());
        assert_eq!(rows, plain_rows(sample));
        let (_, error) = rows_of(&source, &options.strict(true));
        let text = error.unwrap().to_string();
        assert!(text.contains("if the file is right as it is"), "{text}");
    }
}

/// A bit that decompressing ignores: the chunk proves its records, and not its bytes. So it does not speak against the sidecar, which
/// restores both chunks.
#[test]
fn a_chunk_with_other_bytes_of_the_same_records_refutes_nothing() {
    let sample = sample("chunked ");
    let sidecar = sidecar_of(&sample.bytes);
    let struck = positions(sample)[20] + 21;
    let mut damaged = sample.bytes.clone();
    // Of the frame's descriptor, after the chunk's header and the magic number: RFC 8878, 3.1.1.1.1.3.
    damaged[25] ^= 0x10;
    let plain: Arc<dyn Source> = Arc::new(BytesSource::new(damaged.clone()));
    assert!(verify(&plain, &sample.options).is_sound());
    damaged[struck] ^= 1;

    let (source, options) = read_by(&damaged, &sidecar, &sample.options);
    let report = verify(&source, &options);
    let parity = report.parity.as_ref().unwrap();
    assert!(!parity.is_of_an_earlier_state);
    assert_eq!(parity.outcome(), Outcome::Repaired);
    assert_eq!((report.summary.records, report.summary.repaired), (52, 8));
    let struck = u64::try_from(struck).unwrap();
    let damage = Ledger::new(source.clone(), &options).unwrap();
    let damage = damage.map(Result::unwrap).filter(Span::is_damage);
    let damage: Vec<_> = damage.map(|own| (own.start, own.end, own.kind)).collect();
    let repaired = |at| (at, at + 1, Kind::Repaired);
    assert_eq!(damage, [repaired(25), repaired(struck)]);

    let (rows, _) = rows_of(&source, &options.clone().repair(true));
    assert_eq!(rows, plain_rows(sample));
    let (rows, error) = rows_of(&source, &options.strict(true));
    assert_eq!(rows, []);
    assert!(matches!(error, Some(Error::Damage(own)) if own.offset == 25));
}

/// Samples of the formats that have checksums.
fn checked_samples() -> impl Iterator<Item = &'static Sample> {
    let names = ["active ", "sealed ", "tenant ", "chunked "];
    names.into_iter().map(sample)
}

/// Another file of this length, which has one block in common with this one: the third.
fn sibling(bytes: &[u8], len: usize) -> Vec<u8> {
    let mut other: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x55).collect();
    other[128..192].copy_from_slice(&bytes[128..192]);
    other.resize(len, 0x77);
    other
}

/// What it cannot restore is left to the checksums of the file. What it would restore, the file refutes.
#[test]
fn a_sidecar_of_a_sibling_with_a_block_in_common_takes_no_record() {
    for sample in checked_samples() {
        let len = sample.bytes.len();
        for covered in [len, len - 100] {
            let sidecar = sidecar_of(&sibling(&sample.bytes, covered));
            let (source, options) = read_by(&sample.bytes, &sidecar, &sample.options);
            let report = verify(&source, &options);
            let parity = report.parity.as_ref().unwrap();
            assert_eq!(parity.report.refused, None, "{sample:?}");
            assert_ne!(parity.outcome(), Outcome::Sound);
            assert_eq!(
                report.summary.records, 60,
                "{sample:?} {covered}: {report:?}"
            );
            let (rows, error) = rows_of(&source, &options.clone().strict(true).repair(true));
            assert_eq!(error.is_none(), parity.outcome() == Outcome::Lost);
            assert!(plain_rows(sample).starts_with(&rows));
        }
    }
}

/// What zeros made of records proves nothing, and neither does a file that ends early: both are lost.
#[test]
fn a_file_that_lost_its_end_does_not_refute_its_sidecar() {
    let sample = sample("active ");
    let len = sample.bytes.len();
    let at = positions(sample)[5];
    // A band is 768 bytes, so one at least is lost whole.
    assert!(len - at > 1600);
    let mut zeroed = sample.bytes.clone();
    zeroed[at..].fill(0);
    for damaged in [zeroed, sample.bytes[..at].to_vec()] {
        let options = sample.options.clone();
        let plain: Arc<dyn Source> = Arc::new(BytesSource::new(damaged.clone()));
        assert!(verify(&plain, &options).is_sound());
        let (source, options) = read_by(&damaged, &sidecar_of(&sample.bytes), &options);
        let report = verify(&source, &options);
        let parity = report.parity.as_ref().unwrap();
        assert_eq!(parity.outcome(), Outcome::Lost);
        assert!(!parity.is_of_an_earlier_state && !report.is_sound());
        let (_, error) = rows_of(&source, &options.strict(true));
        assert!(matches!(error, Some(Error::Damage(_))), "{error:?}");
    }
}

#[test]
fn what_was_appended_is_left_to_the_format() {
    let sample = sample("active ");
    let covered = positions(sample)[40];
    let sidecar = sidecar_of(&sample.bytes[..covered]);
    let mut damaged = sample.bytes.clone();
    damaged[covered + 30] ^= 1;
    let (source, options) = read_by(&damaged, &sidecar, &sample.options);
    let report = verify(&source, &options);
    assert_eq!((report.summary.records, report.summary.repaired), (59, 0));
    assert_eq!(report.summary.damage[0].kind, Kind::Corrupt);
    let parity = report.parity.as_ref().unwrap();
    let rest = (sample.bytes.len() - covered) as u64;
    assert_eq!(parity.bytes(FileKind::Uncovered), rest);
    assert_eq!(parity.outcome(), Outcome::Sound);
    // A frame that is lost leaves bytes that nothing verifies.
    let mut less = sidecar_of(&sample.bytes);
    let frames = verified(&sample.bytes, &less, parity::Options::default()).frames;
    let [second, third] = [1, 2].map(|at: usize| usize::try_from(frames[at].start).unwrap());
    less[second..third].fill(0x77);
    let (source, options) = read_by(&sample.bytes, &less, &sample.options);
    let report = verify(&source, &options);
    assert!(report.is_sound() && report.summary.records == 60);
    let parity = report.parity.as_ref().unwrap();
    assert_eq!(parity.bytes(FileKind::Unverified), frames[1].len);
    assert_eq!(parity.outcome(), Outcome::Lost);
}

#[test]
fn a_file_that_was_cut_between_records_is_restored() {
    let sample = sample("active ");
    let mut cut = sample.bytes.clone();
    let at = positions(sample)[59];
    cut.truncate(at);
    let sidecar = sidecar_of(&sample.bytes);
    let (source, options) = read_by(&cut, &sidecar, &sample.options);
    let report = verify(&source, &options);
    let (at, len) = (at as u64, sample.bytes.len() as u64);
    assert_eq!(
        damage_of(&report),
        [(at, len, Kind::Repaired, Some(Cause::ChecksumMismatch))]
    );
    assert_eq!(
        rows_of(&source, &options.repair(true)).0,
        plain_rows(sample)
    );
    // More than can be restored is missing.
    cut.truncate(100);
    let sidecar = sidecar_in_bands(&sample.bytes, 20);
    let (source, options) = read_by(&cut, &sidecar, &sample.options);
    let report = verify(&source, &options);
    assert_eq!(report.summary.totals.bytes(), len);
    let last = report.summary.damage.last().unwrap();
    assert_eq!(
        (last.end, last.cause),
        (len, Some(Cause::LengthOutOfBounds))
    );
}

/// The walk emits the ranges of an index last, after those of the messages that follow it.
#[test]
fn what_is_restored_of_an_index_and_of_messages_is_one_range() {
    let sample = sample("sealed trailer");
    let first = positions(sample)[0];
    let set = Set {
        id: *b"some set",
        parameters: Parameters::new(64, 6, 12, 20).unwrap(),
    };
    let len = sample.bytes.len() as u64;
    let sidecar = protected(&sample.bytes, len, set);
    let (source, options) = read_by(&sample.bytes[..first - 10], &sidecar, &sample.options);
    let report = verify(&source, &options);
    let cause = Some(Cause::ChecksumMismatch);
    let restored = Span::new(first as u64 - 10, len, Kind::Repaired, cause);
    assert_eq!(report.summary.damage, [restored]);
    assert!(
        report
            .summary
            .totals
            .rows()
            .iter()
            .all(|total| total.ranges == 1)
    );
    let ledger: Result<Vec<_>, _> = Ledger::new(source, &options).unwrap().collect();
    assert_eq!(ledger.unwrap().last(), Some(&restored));
}

#[test]
fn strict_reading_raises_the_first_damage_of_a_step() {
    for sample in &SAMPLES[..FORMATS.len() + 2] {
        let sidecar = sidecar_of(&sample.bytes);
        for at in [4, 12, 20, 70] {
            let mut damaged = sample.bytes.clone();
            damaged[at] ^= 1;
            damaged[at + 200] ^= 1;
            let (source, options) = read_by(&damaged, &sidecar, &sample.options);
            let (_, error) = rows_of(&source, &options.strict(true));
            let Some(Error::Damage(damage)) = error else {
                panic!("{}: {error:?}", sample.name);
            };
            assert_eq!(damage.offset, at as u64, "{}", sample.name);
        }
    }
}

#[test]
fn a_strict_look_up_that_misses_names_the_first_lost_byte() {
    let oplog = sample("oplog ");
    let at = positions(oplog)[10];
    let damaged = strike(oplog, at, |byte| byte ^ 1);
    let (source, options) = read_by(&damaged, &sidecar_of(&oplog.bytes), &oplog.options);
    // Reading it finds that blocks are lost.
    assert!(!verify(&source, &options).is_sound());
    let lookup = lookup(source, &options.strict(true)).unwrap();
    let id = RecordId::new(vec![Scalar::from(999_999_u32)]);
    let found = lookup.get(&[id]).map(|hits| hits.unproven);
    let Err(Error::Damage(damage)) = found else {
        panic!("{found:?}");
    };
    assert!(
        (at as u64 - 64..damaged.len() as u64).contains(&damage.offset),
        "{damage}"
    );
}

#[test]
fn look_ups_find_no_record_that_is_damaged_unless_it_is_restored() {
    for sample in &SAMPLES[..FORMATS.len() + 2] {
        let all = plain_rows(sample);
        let plain: Arc<dyn Source> = Arc::new(BytesSource::new(sample.bytes.clone()));
        let reader = Reader::new(plain, sample.options.clone()).unwrap();
        let id = |record: seglake::Result<seglake::Record>| {
            let record = record.unwrap();
            let names = sample.options.format.unwrap().identifier.iter();
            let value = |name: &&str| match *name {
                "position" => record.position().into(),
                name => Scalar::of(&record.field(name).unwrap()).unwrap(),
            };
            let values = names.map(value);
            RecordId::new(values.collect::<Vec<_>>())
        };
        let ids: Vec<_> = reader.records().map(id).collect();
        let mut damaged = sample.bytes.clone();
        let hit = 45;
        let at = usize::try_from(all[hit].0).unwrap() + 9;
        damaged[at] ^= 1;
        let range = differing(&sample.bytes, &damaged);
        let extents = extents(sample);
        let (source, options) = read_by(&damaged, &sidecar_of(&sample.bytes), &sample.options);
        for (id, row) in ids.iter().zip(&all) {
            let get = |options: &Options| {
                let lookup = lookup(source.clone(), options).unwrap();
                lookup.get(std::slice::from_ref(id))
            };
            let is_hit = is_hit(&extents, row.0, &range);
            let hits = get(&options).unwrap();
            assert_eq!(hits.places[0].is_none(), is_hit, "{}", sample.name);
            assert_eq!(hits.unproven.is_some(), is_hit);
            let strict = get(&options.clone().strict(true));
            assert_eq!(
                matches!(strict, Err(Error::Damage(_))),
                is_hit,
                "{}",
                sample.name
            );
            let hits = get(&options.clone().repair(true)).unwrap();
            assert!(hits.places[0].is_some());
        }
        assert!(is_hit(&extents, all[hit].0, &range), "{}", sample.name);
    }
}

#[test]
fn the_report_is_the_same_with_several_threads() {
    for sample in &SAMPLES[..FORMATS.len() + 2] {
        let mut damaged = sample.bytes.clone();
        for at in [10, 700, 2000] {
            if let Some(byte) = damaged.get_mut(at) {
                *byte ^= 0x20;
            }
        }
        let sidecar = sidecar_of(&sample.bytes);
        let (source, options) = read_by(&damaged, &sidecar, &sample.options);
        let whole = verify(&source, &options);
        let (source, options) = read_by(&damaged, &sidecar, &sample.options);
        let parts = verbs::verify_in_parts(source, &options, 3, 300, |_| Ok(())).unwrap();
        assert_eq!(damage_of(&parts), damage_of(&whole), "{}", sample.name);
        assert_eq!(
            parts.summary.totals, whole.summary.totals,
            "{}",
            sample.name
        );
        assert_eq!(
            (parts.summary.records, parts.summary.repaired),
            (whole.summary.records, whole.summary.repaired)
        );
    }
}
