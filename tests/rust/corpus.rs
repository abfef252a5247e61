//! Checks every property of `fuzz/` on the inputs that fuzzing found and on the golden vectors. Needs no fuzzer,
//! so it runs on every machine.

#[path = "../../fuzz/src/properties/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the fuzz targets use all of it, from outside"
)]
pub(crate) mod properties;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use properties::PROPERTIES;

fn files(folder: &Path, extension: Option<&str>) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            extension.is_none() || path.extension().and_then(|own| own.to_str()) == extension
        })
        .collect();
    files.sort();
    files
}

/// Every property of each file of a format.
fn replay(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut failed = Vec::new();
    for property in PROPERTIES {
        let Some(format) = property.formats.iter().find(|format| format.name == name) else {
            continue;
        };
        let vectors = root.join("tests/vectors").join(name);
        let vectors = files(&vectors, Some(property.extension));
        let corpus = properties::corpus(property, format);
        let corpus = root.join("fuzz/corpus").join(corpus);
        let found = files(&corpus, None);
        assert!(
            vectors.len() > 10 && found.len() > 10,
            "{} has hardly any inputs",
            property.name
        );
        for path in vectors.iter().chain(&found) {
            let bytes = fs::read(path).unwrap();
            let held = catch_unwind(AssertUnwindSafe(|| (property.check)(format, &bytes)));
            if held.is_err() {
                failed.push(format!("{} of {}", property.name, path.display()));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "these do not hold, for the reasons above: {failed:#?}"
    );
}

/// The targets that `make fuzz` runs are all properties of all formats that are shipped.
#[test]
fn every_property_is_fuzzed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = fs::read_to_string(root.join("fuzz/targets.txt")).unwrap();
    let mut listed: Vec<_> = listed.lines().map(str::to_owned).collect();
    let all = PROPERTIES.iter().flat_map(|property| {
        let formats = property.formats.iter();
        formats.map(|format| format!("{}_{}", property.name, format.name))
    });
    let mut all: Vec<_> = all.collect();
    listed.sort();
    all.sort();
    assert_eq!(listed, all);
}

#[test]
fn active() {
    replay("active");
}

#[test]
fn sealed() {
    replay("sealed");
}

#[test]
fn tenant() {
    replay("tenant");
}

#[test]
fn chunked() {
    replay("chunked");
}

#[test]
fn oplog() {
    replay("oplog");
}

#[test]
fn tfrecord() {
    replay("tfrecord");
}
