//! What the npm package `autobase` wrote, and what its own decoder says of it, field by field.

use crate::messages;
use std::fs;
use std::path::{Path, PathBuf};

use crate::messages::{fields, lenient, named, scan, source};
use seglake::Error;
use seglake::format::oplog::{decode_message, encode_message};
use seglake::format::{Dialect, RecordSet, Start, Step, open};
use seglake::ledger::Cause;
use serde_json::{Value as Json, json};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/autobase")
}

fn parsed(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A checkpointer as the package's decoder returns it.
fn checkpointer(ours: &Json) -> Json {
    if ours.is_null() {
        return Json::Null;
    }
    let checkpoint = if ours["signature"].is_null() {
        assert!(ours["length"].is_null());
        Json::Null
    } else {
        json!({"signature": ours["signature"], "length": ours["length"]})
    };
    json!({"checkpointer": ours["checkpointer"], "checkpoint": checkpoint})
}

/// A message as the package's decoder returns it. Fields that its version lacks are null.
fn as_the_package_has_it(ours: &Json) -> Json {
    let checkpoint = &ours["checkpoint"];
    let checkpoint = if checkpoint.is_null() {
        Json::Null
    } else {
        let user = match checkpoint["user"].as_array() {
            Some(user) => user.iter().map(checkpointer).collect(),
            None => Json::Null,
        };
        json!({
            "system": checkpointer(&checkpoint["system"]),
            "encryption": checkpointer(&checkpoint["encryption"]),
            "user": user,
        })
    };
    for lacking in ["checkpointer", "abi", "keys"] {
        assert!(ours[lacking].is_null(), "{lacking}");
    }
    json!({
        "version": ours["version"],
        "maxSupportedVersion": ours["max_supported_version"],
        "node": {"heads": ours["clock"], "batch": ours["batch"], "value": ours["value"]},
        "checkpoint": checkpoint,
        "digest": ours["digest"],
        "optimistic": ours["optimistic"],
        "trace": ours["trace"],
    })
}

/// The package's output, with null for what it leaves out.
fn completed(theirs: &Json) -> Json {
    let mut theirs = theirs.clone();
    for lacking in ["maxSupportedVersion", "trace"] {
        if theirs.get(lacking).is_none() {
            theirs[lacking] = Json::Null;
        }
    }
    theirs
}

#[test]
fn every_field_of_what_the_package_wrote() {
    let (mut files, mut seen, mut rewritten) = (0, 0, 0);
    for entry in fs::read_dir(vectors()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("real-") || path.extension().is_none_or(|own| own != "oplog") {
            continue;
        }
        files += 1;
        let bytes = fs::read(&path).unwrap();
        let strict = lenient(Dialect::Autobase).strict(true);
        let (records, _) = scan(source(&bytes), &strict).unwrap();
        let expected = parsed(&path.with_extension("json"));
        let expected = expected.as_array().unwrap();
        assert_eq!(records.len(), expected.len(), "{name}");
        for (seq, (record, theirs)) in records.iter().zip(expected).enumerate() {
            let ours = &record[1];
            assert_eq!(
                as_the_package_has_it(ours),
                completed(theirs),
                "{name} {seq}"
            );
            assert_eq!((&ours["seq"], &ours["extra"]), (&json!(seq), &Json::Null));
            seen += 1;
        }
        // A message that was read is written back as the same bytes.
        let mut walk = open(source(&bytes), &strict, Start::Beginning).unwrap();
        let mut again = Vec::new();
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                let fields = fields(&*rows, row, Dialect::Autobase);
                match encode_message(&fields, Dialect::Autobase) {
                    Ok(message) => again.extend(messages::framed(&message)),
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.contains("only version 2 can"), "{message}");
                    }
                }
            }
        }
        if !again.is_empty() {
            assert!(again == bytes, "{name} is not written back as it was");
            rewritten += 1;
        }
    }
    assert!(
        (files, seen, rewritten) >= (4, 50, 2),
        "vectors are missing"
    );
}

#[test]
fn every_field_of_single_messages() {
    let vectors = parsed(&vectors().join("synthetic-messages.json"));
    let (mut seen, mut rewritten) = (0, 0);
    for vector in vectors.as_array().unwrap() {
        let bytes = hex::decode(vector["bytes"].as_str().unwrap()).unwrap();
        let single = decode_message(bytes.as_slice(), Dialect::Autobase, None).unwrap();
        let rows = single.rows();
        let ours = named(&*rows, 0, Dialect::Autobase);
        let name = &vector["name"];
        assert_eq!(
            as_the_package_has_it(&ours),
            completed(&vector["fields"]),
            "{name}"
        );
        assert!(ours["seq"].is_null() && ours["extra"].is_null());
        let again = encode_message(&fields(&*rows, 0, Dialect::Autobase), Dialect::Autobase);
        if vector["reencodes"] == json!(true) {
            assert_eq!(hex::encode(again.unwrap()), hex::encode(&bytes), "{name}");
            rewritten += 1;
        } else {
            assert!(matches!(again, Err(Error::Usage(_))), "{name}");
        }
        seen += 1;
    }
    assert!((seen, rewritten) >= (40, 30), "vectors are missing");
}

#[test]
fn a_reference_that_leads_nowhere_is_a_null_key() {
    let bytes = fs::read(vectors().join("dangling.oplog")).unwrap();
    let expected = parsed(&vectors().join("dangling.json"));
    let (records, ledger) = scan(source(&bytes), &lenient(Dialect::Draft11)).unwrap();
    let expected = expected["messages"].as_array().unwrap();
    assert_eq!(records.len(), expected.len());
    for (record, message) in records.iter().zip(expected) {
        let mut message = message.clone();
        assert_eq!(record[0], message["position"]);
        message.as_object_mut().unwrap().remove("position");
        if let Some(hash) = message.pointer("/checkpoint/treeHash").cloned() {
            let checkpoint = message["checkpoint"].as_object_mut().unwrap();
            checkpoint.remove("treeHash");
            checkpoint.insert("tree_hash".to_owned(), hash);
        }
        for (name, value) in message.as_object().unwrap() {
            assert_eq!(&record[1][name], value, "{name}");
        }
    }
    let causes: Vec<_> = records.iter().map(|record| record[2].as_str()).collect();
    assert_eq!(causes, [None, None, None, Some("dangling_reference"), None]);
    assert_eq!((ledger[3].start, ledger[3].end), (209, 225));
    assert_eq!(ledger[3].cause, Some(Cause::DanglingReference));
    let strict = lenient(Dialect::Draft11).strict(true);
    let Err(Error::Damage(damage)) = scan(source(&bytes), &strict) else {
        panic!("no damage")
    };
    assert_eq!(
        (damage.offset, damage.cause),
        (209, Cause::DanglingReference)
    );
    let message = damage.to_string();
    assert!(message.contains("clock entry 1"), "{message}");
    assert!(message.contains("key 7 of message 2"), "{message}");
}
