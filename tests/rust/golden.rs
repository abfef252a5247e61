//! Every golden vector: records, ledger and strict error are what the reference encoder says, in windows of any size.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Plain, Windowed, lenient, scan, source, strict_error};
use seglake::checksum::Key;
use seglake::format::{Options, active, by_name};
use seglake::ledger::Span;
use seglake::uuid6::timestamp_micros;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

struct Case {
    name: String,
    bytes: Vec<u8>,
    expected: Value,
    options: Options,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/active");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    assert!(paths.len() >= 60, "the golden vectors are missing");
    let case = |path: PathBuf| {
        let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let key = hex::decode(expected["options"]["key"].as_str().unwrap()).unwrap();
        let format = by_name(expected["format"].as_str().unwrap()).unwrap();
        Case {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            bytes: fs::read(path.with_extension("bin")).unwrap(),
            options: Options {
                format: Some(format),
                keys: vec![Key::new(&key.try_into().unwrap())],
                ..lenient()
            },
            expected,
        }
    };
    paths.into_iter().map(case).collect()
}

fn shown(bytes: &[u8]) -> Value {
    if bytes.len() > 96 {
        return json!({"sha256": hex::encode(Sha256::digest(bytes)), "length": bytes.len()});
    }
    hex::encode(bytes).into()
}

fn record(record: &Plain) -> Value {
    json!({
        "position": record.position,
        "uuid": hex::encode(record.uuid),
        "timestamp": timestamp_micros(&record.uuid),
        "type": shown(&record.type_),
        "value": shown(&record.value),
    })
}

fn ledger(spans: &[Span]) -> Value {
    spans
        .iter()
        .map(|span| json!([span.start, span.end, span.kind, span.cause]))
        .collect()
}

#[test]
fn records_and_ledger() {
    for case in cases() {
        let (records, spans) = scan(source(&case.bytes), &case.options).unwrap();
        let records: Value = records.iter().map(record).collect();
        assert_eq!(records, case.expected["records"], "{}", case.name);
        assert_eq!(ledger(&spans), case.expected["ledger"], "{}", case.name);
    }
}

#[test]
fn strict_reading_raises_the_first_damage() {
    for case in cases() {
        let raised = strict_error(source(&case.bytes), &case.options);
        let raised = raised.map_or(
            Value::Null,
            |damage| json!({"offset": damage.offset, "cause": damage.cause}),
        );
        assert_eq!(raised, case.expected["strict_error"], "{}", case.name);
    }
}

#[test]
fn windows_of_every_size_give_the_same() {
    for case in cases() {
        let whole = scan(source(&case.bytes), &case.options).unwrap();
        let sizes = (1..64).chain([100, 256, 275, 276, 277, 300, 511, 1024, 4095]);
        for window_bytes in sizes {
            let options = Options {
                window_bytes,
                ..case.options.clone()
            };
            let windowed = scan(Arc::new(Windowed(case.bytes.clone())), &options).unwrap();
            assert_eq!(
                windowed, whole,
                "{} in windows of {window_bytes}",
                case.name
            );
        }
    }
}

#[test]
fn encoding_gives_the_same_bytes() {
    let mut encoded = 0;
    for case in cases() {
        let Some(size) = case.expected["encode"]["preallocate"].as_u64() else {
            continue;
        };
        let (records, _) = scan(source(&case.bytes), &case.options).unwrap();
        let mut bytes = Vec::new();
        for record in records {
            active::encode(
                &mut bytes,
                &case.options.keys[0],
                &record.uuid,
                &record.type_,
                &record.value,
            )
            .unwrap();
        }
        let size = usize::try_from(size).unwrap().max(bytes.len());
        bytes.resize(size, 0);
        assert!(bytes == case.bytes, "{}", case.name);
        encoded += 1;
    }
    assert!(encoded >= 8, "hardly any vector says how to encode it");
}

#[test]
fn a_wrong_key_is_suspected_only_where_nothing_checks() {
    for case in cases() {
        let suspected =
            strict_error(source(&case.bytes), &case.options).is_some_and(|damage| damage.wrong_key);
        assert_eq!(
            suspected,
            ["wrong_key", "flip_only_record"].contains(&case.name.as_str()),
            "{}",
            case.name
        );
    }
}
