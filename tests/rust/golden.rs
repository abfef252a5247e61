//! Every golden vector of every format: records, ledger, strict error and what it encodes to are what the reference encoder
//! says, in windows of any size.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::format_of;
use crate::common::{Windowed, source};
use crate::vectors::{Case, cases};
use seglake::format::{
    self, Column, ColumnKind, FORMATS, Options, Rows, Start, Step, WriteOptions, open, tenant,
};
use seglake::ledger::Span;
use seglake::source::Source;
use seglake::verbs::Ledger;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

fn shown(bytes: &[u8]) -> Value {
    if bytes.len() > 96 {
        return json!({"sha256": hex::encode(Sha256::digest(bytes)), "length": bytes.len()});
    }
    hex::encode(bytes).into()
}

fn value(value: &format::Value<'_>, kind: ColumnKind) -> Value {
    match (value, kind) {
        (format::Value::Null, _) => Value::Null,
        (format::Value::Uuid(uuid), ColumnKind::Uuid) => hex::encode(uuid).into(),
        (format::Value::Timestamp(number), ColumnKind::Timestamp) => (*number).into(),
        (format::Value::Int64(number), ColumnKind::Int64) => (*number).into(),
        (format::Value::UInt64(number), ColumnKind::UInt64) => (*number).into(),
        (format::Value::Boolean(truth), ColumnKind::Boolean) => (*truth).into(),
        (format::Value::Text(bytes), ColumnKind::Text)
        | (format::Value::Binary(bytes), ColumnKind::Binary) => shown(bytes),
        (format::Value::List(items), ColumnKind::List(kind)) => {
            items.iter().map(|item| self::value(item, *kind)).collect()
        }
        (format::Value::Struct(values), ColumnKind::Struct(fields)) => {
            object(values, fields).into()
        }
        other => panic!("a value of another kind: {other:?}"),
    }
}

fn object(values: &[format::Value<'_>], columns: &[Column]) -> Map<String, Value> {
    assert_eq!(values.len(), columns.len());
    let named = values.iter().zip(columns);
    named
        .map(|(own, column)| (column.name.to_owned(), value(own, column.kind)))
        .collect()
}

fn fields(rows: &dyn Rows, row: usize, columns: usize) -> Vec<format::Value<'_>> {
    (0..columns).map(|column| rows.field(row, column)).collect()
}

/// Records and ranges as JSON, and how they were checked.
#[derive(Debug, PartialEq)]
struct Scan {
    records: Value,
    ledger: Value,
    checked: &'static str,
}

fn scan(source: Arc<dyn Source>, options: &Options) -> Scan {
    let columns = options.format.unwrap().columns(options.dialect);
    let mut walk = open(source.clone(), options, Start::Beginning).unwrap();
    let (mut records, mut spans) = (Vec::new(), Vec::new());
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            let mut record = object(&fields(&*rows, row, columns.len()), columns);
            record.insert("position".to_owned(), rows.position(row).into());
            records.push(record);
        }
        spans.extend_from_slice(walk.spans());
    }
    let ledger: Vec<Span> = Ledger::new(source, options)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    spans.sort_by_key(|span| (span.start, span.end));
    assert_eq!(spans, ledger, "the walk's ranges, sorted, are the ledger");
    Scan {
        records: records.into(),
        ledger: ledger
            .iter()
            .map(|span| json!([span.start, span.end, span.kind, span.cause]))
            .collect(),
        checked: walk.checked().as_str(),
    }
}

fn strict_error(case: &Case, source: Arc<dyn Source>) -> (Value, u64, bool) {
    let options = case.options.clone().strict(true);
    let mut walk = open(source, &options, Start::Beginning).unwrap();
    let mut records = 0;
    let raised = loop {
        match walk.step() {
            Ok(Step::More) => records += walk.rows().len() as u64,
            Ok(_) => return (Value::Null, records, false),
            Err(seglake::Error::Damage(damage)) => break damage,
            Err(other) => panic!("{}: not damage: {other}", case.name),
        }
    };
    assert!(!raised.finding.expected().is_empty() && !raised.finding.actual().is_empty());
    (
        json!({"offset": raised.offset, "cause": raised.cause}),
        records,
        raised.wrong_key,
    )
}

#[test]
fn records_and_ledger() {
    for case in cases() {
        let scan = scan(source(&case.bytes), &case.options);
        assert_eq!(scan.records, case.expected["records"], "{}", case.name);
        assert_eq!(scan.ledger, case.expected["ledger"], "{}", case.name);
        let checked = match case.options.format.unwrap().name {
            "sealed" => case.expected["checked"].as_str().unwrap(),
            "tenant" if case.bytes.get(5) == Some(&1) => "structure",
            "oplog" => "structure",
            _ => "checksum",
        };
        assert_eq!(scan.checked, checked, "{}", case.name);
    }
}

#[test]
fn strict_reading_raises_the_first_damage() {
    for case in cases() {
        for source in [source(&case.bytes), Arc::new(Windowed(case.bytes.clone()))] {
            let (raised, records, _) = strict_error(&case, source);
            assert_eq!(raised, case.expected["strict_error"], "{}", case.name);
            let expected = case.expected["records"].as_array().unwrap().len() as u64;
            assert!(records <= expected, "{}", case.name);
            assert!(!raised.is_null() || records == expected, "{}", case.name);
        }
    }
}

#[test]
fn windows_of_every_size_give_the_same() {
    for case in cases() {
        let whole = scan(source(&case.bytes), &case.options);
        let sizes = (1..64).chain([100, 256, 275, 276, 277, 300, 511, 1024, 4095]);
        for window_bytes in sizes.filter(|size| case.bytes.len() / size < 20_000) {
            let options = case.options.clone().window_bytes(window_bytes);
            let windowed = scan(Arc::new(Windowed(case.bytes.clone())), &options);
            assert!(
                windowed == whole,
                "{} in windows of {window_bytes}",
                case.name
            );
        }
    }
}

/// Writes the case's records with a writer of its format. Tenants without messages are added by name, since no
/// record has them.
fn writer(case: &Case, path: &Path, options: &WriteOptions) -> Box<dyn format::Writer> {
    let format = format_of(&case.options);
    if format != &tenant::FORMAT {
        return format::create(format, path, options).unwrap();
    }
    let mut writer = tenant::Writer::create(path, options).unwrap();
    for block in case.expected["blocks"].as_array().unwrap() {
        if block["messages"] == 0 {
            let partition = block["partition"].as_u64().unwrap().try_into().unwrap();
            let id = hex::decode(block["tenant"].as_str().unwrap()).unwrap();
            writer.add_tenant(partition, &id).unwrap();
        }
    }
    Box::new(writer)
}

#[test]
fn encoding_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut encoded = std::collections::BTreeMap::new();
    for case in cases() {
        let encode = &case.expected["encode"];
        if encode.is_null() {
            continue;
        }
        let format = format_of(&case.options);
        let path = folder
            .path()
            .join("encoded")
            .with_extension(format.extension);
        let options = WriteOptions::default()
            .key(case.options.keys[0])
            .dialect(case.options.dialect)
            .set(
                "preallocate",
                encode["preallocate"].as_u64().unwrap_or_default(),
            )
            .set("trailer", encode["trailer"].as_bool().unwrap_or(true))
            .set("version", encode["version"].as_u64().unwrap_or(2))
            .concerning(format);
        let mut writer = writer(&case, &path, &options);
        let mut walk = open(source(&case.bytes), &case.options, Start::Beginning).unwrap();
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                writer
                    .write(&fields(&*rows, row, writer.columns().len()))
                    .unwrap();
            }
        }
        writer.close().unwrap();
        assert!(fs::read(&path).unwrap() == case.bytes, "{}", case.name);
        fs::remove_file(&path).unwrap();
        *encoded.entry(format.name).or_insert(0) += 1;
    }
    for format in FORMATS.iter().filter(|format| format.name != "chunked") {
        assert!(
            encoded[format.name] >= 4,
            "hardly any vector says how to encode {format:?}"
        );
    }
}

#[test]
fn a_wrong_key_is_suspected_only_where_nothing_verifies() {
    for case in cases() {
        let (_, _, suspected) = strict_error(&case, source(&case.bytes));
        let active = ["active/wrong_key", "active/flip_only_record"];
        let expected = active.contains(&case.name.as_str())
            || case.name.starts_with("sealed/") && case.name.ends_with("wrong_key");
        assert_eq!(suspected, expected, "{}", case.name);
    }
}
