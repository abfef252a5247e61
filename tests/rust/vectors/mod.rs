//! The golden files of all formats.

use std::fs;
use std::path::{Path, PathBuf};

use seglake::checksum::Key;
use seglake::format::{Dialect, FORMATS, IndexSource, Options, by_name};
use serde_json::Value;

/// One of them, and how it is to be read.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Value,
    pub(crate) options: Options,
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut cases = Vec::new();
    for format in FORMATS {
        let mut paths: Vec<PathBuf> = fs::read_dir(vectors.join(format.name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
            })
            .collect();
        assert!(
            paths.len() >= 40,
            "golden vectors of {format:?} are missing"
        );
        paths.sort();
        cases.extend(paths.into_iter().map(case));
    }
    cases
}

fn case(path: PathBuf) -> Case {
    let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let given = &expected["options"];
    let mut options = Options::default()
        .format(by_name(expected["format"].as_str().unwrap()).unwrap())
        .strict(false)
        .index(IndexSource::None);
    if let Some(key) = given["key"].as_str() {
        options.keys = vec![Key::new(&hex::decode(key).unwrap().try_into().unwrap())];
    }
    if let Some(dialect) = given["dialect"].as_str() {
        options.dialect = dialect.parse::<Dialect>().unwrap();
    }
    let format = expected["format"].as_str().unwrap();
    Case {
        name: format!("{format}/{}", path.file_stem().unwrap().to_string_lossy()),
        bytes: fs::read(path.with_extension("bin")).unwrap(),
        options,
        expected,
    }
}
