//! Parity sidecars: the golden vectors, and what damage is promised to be repaired.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::corpus::properties::apply;
use seglake::Error;
use seglake::parity::{
    Change, Extended, Files, Options, Outcome, Parameters, Refused, Report, Set, extend, protect,
    repair, verify,
};
use seglake::source::{BytesSource, FileSource, Source};

pub(crate) fn protected(file: &[u8], end: u64, set: Set) -> Vec<u8> {
    let mut sidecar = Vec::new();
    protect(&BytesSource::new(file), end, set, &mut |bytes| {
        sidecar.extend_from_slice(bytes);
        Ok(())
    })
    .unwrap();
    sidecar
}

pub(crate) fn verified(file: &[u8], sidecar: &[u8], options: Options) -> Report {
    let (file, sidecar) = (BytesSource::new(file), BytesSource::new(sidecar));
    verify(Files::new(&file, &sidecar), options).unwrap()
}

/// The file and the sidecar as a repair leaves them.
pub(crate) fn repaired(
    file: &[u8],
    sidecar: &[u8],
    options: Options,
) -> (Report, Vec<u8>, Vec<u8>) {
    let (mut new_file, mut new_sidecar) = (file.to_vec(), Vec::new());
    let sources = (BytesSource::new(file), BytesSource::new(sidecar));
    let report = repair(Files::new(&sources.0, &sources.1), options, &mut |change| {
        apply(change, &mut new_file, sidecar, &mut new_sidecar);
        Ok(())
    })
    .unwrap();
    if report.refused.is_some() {
        assert!(new_sidecar.is_empty());
        new_sidecar = sidecar.to_vec();
    }
    (report, new_file, new_sidecar)
}

/// The sidecar extended to cover the first `end` bytes, repaired first if that is due. `None` if it is refused.
pub(crate) fn extended(file: &[u8], end: u64, sidecar: &[u8]) -> Option<Vec<u8>> {
    let mut old = sidecar.to_vec();
    for _ in 0..2 {
        let mut new = Vec::new();
        let sources = (BytesSource::new(file), BytesSource::new(old.clone()));
        let files = Files::new(&sources.0, &sources.1);
        let outcome = extend(files, end, &mut |change| {
            assert!(!matches!(change, Change::File { .. }));
            apply(change, &mut Vec::new(), &old, &mut new);
            Ok(())
        });
        let outcome = match outcome {
            Err(Error::Damage(refusal)) => {
                assert!(new.is_empty());
                let found = refusal.finding;
                assert!(!found.expected().is_empty() && !found.actual().is_empty());
                return None;
            }
            outcome => outcome.unwrap(),
        };
        match outcome {
            Extended::Done => return Some(new),
            Extended::NoFrame => {
                assert!(new.is_empty());
                return None;
            }
            Extended::RepairFirst => {
                let (_, same, healed) = repaired(
                    &file[..usize::try_from(end).unwrap()],
                    &old,
                    Options::default(),
                );
                assert!(file.starts_with(&same));
                old = healed;
            }
        }
    }
    panic!("a repaired sidecar was to be repaired again");
}

/// A set with one group of four blocks in a band.
pub(crate) fn one_group() -> Set {
    Set {
        id: [5; 8],
        parameters: Parameters::new(64, 4, 2, 1).unwrap(),
    }
}

/// A file, its sidecar of two frames of one band, and the length of the first, which covers 85 of the file's 112 bytes.
pub(crate) fn of_two_frames() -> (Vec<u8>, Vec<u8>, usize) {
    let file: Vec<u8> = (0..112u8).map(|at| at | 1).collect();
    let first = protected(&file, 85, one_group());
    let sidecar = extended(&file, 112, &first).unwrap();
    assert_eq!(sidecar.len(), 2 * first.len());
    (file, sidecar, first.len())
}

fn digest(bytes: &[u8]) -> Json {
    json!({"sha256": hex::encode(Sha256::digest(bytes)), "length": bytes.len()})
}

fn spans<T: serde::Serialize>(spans: &[T]) -> Json {
    let spans = spans.iter().map(|span| {
        let span = serde_json::to_value(span).unwrap();
        json!([span["start"], span["end"], span["kind"], span["cause"]])
    });
    spans.collect()
}

fn number<T: TryFrom<u64>>(value: &Json) -> T {
    T::try_from(value.as_u64().unwrap()).ok().unwrap()
}

struct Case {
    name: String,
    expected: Json,
    file: PathBuf,
    sidecar: PathBuf,
}

fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/parity");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    assert!(paths.len() >= 49);
    let case = |path: PathBuf| Case {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        expected: serde_json::from_slice(&fs::read(&path).unwrap()).unwrap(),
        file: path.with_extension("bin"),
        sidecar: path.with_extension("par"),
    };
    paths.into_iter().map(case).collect()
}

fn of_report(report: &Report) -> Json {
    let frames = report.frames.iter().map(|frame| {
        json!([
            frame.start,
            frame.end,
            frame.band,
            frame.len,
            frame.block_bytes,
            frame.groups
        ])
    });
    let damage = report.first_damage();
    json!({
        "outcome": report.outcome,
        "strict_error": damage.map(|span| json!({"offset": span.start, "cause": span.cause})),
        "ledger": spans(&report.file),
        "frames": frames.collect::<Json>(),
        "sidecar_ledger": spans(&report.sidecar),
    })
}

#[test]
fn golden_vectors() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (file, sidecar) = (
            fs::read(&case.file).unwrap(),
            fs::read(&case.sidecar).unwrap(),
        );
        let options = Options::default().force(case.expected["options"]["force"] == true);
        let report = verified(&file, &sidecar, options);
        let mut found = of_report(&report);
        let (again, new_file, new_sidecar) = repaired(&file, &sidecar, options);
        assert_eq!(of_report(&again), found);
        found["repaired"] = json!({"file": digest(&new_file), "sidecar": digest(&new_sidecar)});
        let end = u64::try_from(file.len()).unwrap();
        let can_extend = !report.frames.is_empty();
        let new = can_extend.then(|| extended(&file, end, &sidecar)).flatten();
        found["extended"] = new.map_or(Json::Null, |new| digest(&new));
        for (field, found) in found.as_object().unwrap() {
            if *found != case.expected[field] {
                wrong.push(format!(
                    "{}: {field}: expected {}, found {found}",
                    case.name, case.expected[field]
                ));
            }
        }
        // Files on disk, and after a repair nothing is left to repair.
        let (on_disk, beside) = (
            FileSource::new(fs::File::open(&case.file).unwrap(), &case.file).unwrap(),
            FileSource::new(fs::File::open(&case.sidecar).unwrap(), &case.sidecar).unwrap(),
        );
        let report = verify(Files::new(&on_disk, &beside), options).unwrap();
        assert_eq!(
            of_report(&report)["ledger"],
            found["ledger"],
            "{}",
            case.name
        );
        if report.outcome == Outcome::Repaired {
            let after = verified(&new_file, &new_sidecar, options);
            assert_eq!(after.outcome, Outcome::Sound, "{}", case.name);
            assert_eq!(after.worst, None);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn golden_vectors_are_encoded_alike() {
    for case in cases() {
        let encode = &case.expected["encode"];
        if encode.is_null() {
            continue;
        }
        let file = fs::read(&case.file).unwrap();
        let parameters = Parameters::new(
            number(&encode["B"]),
            number(&encode["k"]),
            number(&encode["m"]),
            number(&encode["G"]),
        )
        .unwrap();
        let id = hex::decode(encode["set_id"].as_str().unwrap())
            .unwrap()
            .try_into()
            .unwrap();
        let mut sidecar = Vec::new();
        for (index, end) in encode["ends"].as_array().unwrap().iter().enumerate() {
            let end = end.as_u64().unwrap();
            sidecar = if index == 0 {
                protected(&file, end, Set { id, parameters })
            } else {
                extended(&file, end, &sidecar).unwrap()
            };
        }
        assert!(sidecar == fs::read(&case.sidecar).unwrap(), "{}", case.name);
    }
}

#[test]
fn profiles_have_the_sizes_of_the_guide() {
    let sizes = |name: &str| {
        let (_, parameters) = Parameters::PROFILES
            .iter()
            .find(|(own, _)| *own == name)
            .unwrap();
        let size = |len: u64| {
            protected(
                &vec![7; usize::try_from(len).unwrap()],
                len,
                Set::random(*parameters),
            )
            .len()
        };
        [100, 10_000, 100_000, 1_000_000].map(size)
    };
    assert_eq!(sizes("128+8"), [784, 4_656, 10_000, 69_824]);
    assert_eq!(sizes("128+4")[0], 464);
    assert_eq!(sizes("128+16")[0], 1_424);
    for (_, parameters) in Parameters::PROFILES {
        assert_eq!(
            (parameters.data(), parameters.band_bytes() % (16 << 20)),
            (128, 0)
        );
    }
}

#[test]
fn parameters_have_limits() {
    for (block_bytes, data, parity, groups) in [
        (32, 1, 1, 1),
        (8192, 1, 1, 1),
        (96, 1, 1, 1),
        (64, 0, 1, 1),
        (64, 1, 0, 1),
        (64, 200, 57, 1),
        (64, 1, 1, 0),
        (64, 1, 1, 257),
    ] {
        let error = Parameters::new(block_bytes, data, parity, groups).unwrap_err();
        assert!(error.to_string().starts_with("expected blocks of 64, 128"));
    }
    Parameters::new(4096, 255, 1, 256).unwrap();
    Parameters::new(64, 1, 255, 1).unwrap();
    assert_ne!(
        Set::random(Parameters::DEFAULT).id,
        Set::random(Parameters::DEFAULT).id
    );
}

#[test]
fn more_than_the_file_has_is_not_protected() {
    let file = BytesSource::new(b"hello");
    let set = Set::random(Parameters::DEFAULT);
    let error = protect(&file, 6, set, &mut |_| Ok(())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a file of at least 6 bytes to protect, found 5"
    );
    let sidecar = BytesSource::new(protected(b"hello", 5, set));
    let files = Files::new(&file, &sidecar);
    assert!(extend(files, 6, &mut |_| Ok(())).is_err());
    assert!(format!("{files:?}").contains("file_bytes: 5"));
}

#[test]
fn another_file_is_refused_unless_forced() {
    let set = Set {
        id: [1; 8],
        parameters: Parameters::new(64, 2, 2, 1).unwrap(),
    };
    let sidecar = protected(&[3; 100], 100, set);
    let report = verified(&[4; 100], &sidecar, Options::default());
    assert_eq!(
        (report.outcome, report.refused),
        (Outcome::Refused, Some(Refused::AnotherFile))
    );
    let (report, file, _) = repaired(&[4; 100], &sidecar, Options::default().force(true));
    assert_eq!((report.outcome, file), (Outcome::Repaired, vec![3; 100]));
    let worst = report.worst.unwrap();
    assert_eq!(
        (worst.band, worst.group, worst.damaged, worst.parity),
        (0, 0, 2, 2)
    );
    let report = verified(&[4; 100], b"no sidecar", Options::default());
    assert_eq!(
        (report.outcome, report.refused),
        (Outcome::Refused, Some(Refused::NoFrame))
    );
}

#[test]
fn an_error_of_a_source_or_callback_is_passed_on() {
    struct Broken;
    impl Source for Broken {
        fn len(&self) -> u64 {
            100
        }
        fn path(&self) -> Option<&std::path::Path> {
            None
        }
        fn read_exact_at(&self, offset: u64, _: &mut [u8]) -> seglake::Result<()> {
            Err(seglake::Error::Usage(format!("broken at {offset}")))
        }
    }
    let set = Set::random(Parameters::DEFAULT);
    let sidecar = BytesSource::new(protected(&[1; 100], 100, set));
    let file = BytesSource::new([1; 100]);
    assert!(protect(&Broken, 100, set, &mut |_| Ok(())).is_err());
    assert!(verify(Files::new(&Broken, &sidecar), Options::default()).is_err());
    assert!(verify(Files::new(&file, &Broken), Options::default()).is_err());
    let stop = |_: Change<'_>| Err(seglake::Error::Interrupted);
    assert!(
        repair(
            Files::new(&file, &sidecar),
            Options::default(),
            &mut |change| stop(change)
        )
        .is_err()
    );
    assert!(extend(Files::new(&file, &sidecar), 100, &mut |change| stop(change)).is_err());
}

/// An object of a store that was replaced by another one while it was read.
#[test]
fn nothing_is_said_of_a_file_that_was_replaced() {
    struct Replaced(BytesSource<Vec<u8>>);
    impl Source for Replaced {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn path(&self) -> Option<&std::path::Path> {
            None
        }
        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
            self.0.read_exact_at(offset, buffer)
        }
        fn is_replaceable(&self) -> bool {
            true
        }
        fn confirm(&self) -> seglake::Result<()> {
            Err(seglake::Error::Usage("it was replaced".to_owned()))
        }
    }
    let set = Set::random(Parameters::DEFAULT);
    let sidecar = protected(&[1; 100], 100, set);
    let sound = (
        BytesSource::new(vec![1; 100]),
        BytesSource::new(sidecar.clone()),
    );
    let replaced = (
        Replaced(BytesSource::new(vec![1; 100])),
        Replaced(BytesSource::new(sidecar)),
    );
    for files in [
        Files::new(&replaced.0, &sound.1),
        Files::new(&sound.0, &replaced.1),
    ] {
        assert!(verify(files, Options::default()).is_err());
        assert!(repair(files, Options::default(), &mut |_| Ok(())).is_err());
        assert!(extend(files, 100, &mut |_| Ok(())).is_err());
    }
    assert!(protect(&replaced.0, 100, set, &mut |_| Ok(())).is_err());
}
