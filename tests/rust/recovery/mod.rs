//! What the tests of recovering need: files of every format, ways to damage them, and a folder to recover them in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use seglake::checksum::Key;
use seglake::format::{
    Column, Dialect, FORMATS, IfExists, IndexSource, Options, Rows, Start, Step, by_name, open,
    oplog,
};
use seglake::ledger::Span;
use seglake::source::{BytesSource, FileSource, Source, open_regular};
use seglake::verbs::{self, Ledger, RecoverOptions, Recovered};
use tempfile::TempDir;

/// A file, and how it is read.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) options: Options,
}

impl Case {
    pub(crate) fn is_oplog(&self) -> bool {
        self.options.format == Some(&oplog::FORMAT)
    }
}

/// Everything that reading a file gives.
pub(crate) struct Read {
    /// Records as the text of their fields, by name.
    pub(crate) records: Vec<Vec<(&'static str, String)>>,
    pub(crate) ledger: Vec<Span>,
    pub(crate) checked: &'static str,
}

/// Records without their positions. Renumbered ones also without references to positions.
pub(crate) fn listed(
    records: &[Vec<(&'static str, String)>],
    is_renumbered: bool,
) -> Vec<Vec<(&'static str, String)>> {
    let numbers = ["seq", "checkpointer", "checkpoint", "digest"];
    let keep = |(name, _): &&(&str, String)| !(is_renumbered && numbers.contains(name));
    let records = records.iter().map(|fields| {
        let fields = fields.iter().filter(keep).cloned();
        fields
            .map(|(name, text)| match name {
                "clock" if is_renumbered => (name, without_numbers(&text)),
                _ => (name, text),
            })
            .collect()
    });
    records.collect()
}

/// The text of a clock without the last two fields of each entry of four: sequence number and offset.
fn without_numbers(clock: &str) -> String {
    let entries = clock.split("Struct([").map(|entry| {
        let fields: Vec<_> = entry.split("UInt64(").collect();
        fields.iter().take(2).copied().collect::<String>()
    });
    entries.collect::<Vec<_>>().join("|")
}

/// A new folder, in memory where the machine has such a place: hundreds of syncs of a disk take their time.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        return tempfile::tempdir_in(memory).unwrap();
    }
    tempfile::tempdir().unwrap()
}

/// A folder with one file to be recovered.
pub(crate) struct Bench {
    folder: TempDir,
    options: Options,
}

impl Bench {
    pub(crate) fn new(case: &Case) -> Self {
        let folder = folder();
        fs::write(folder.path().join("old"), &case.bytes).unwrap();
        Self {
            folder,
            options: case.options.clone(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        files(self.folder.path())
    }

    pub(crate) fn source(&self, name: &str) -> Arc<dyn Source> {
        let path = self.path(name);
        Arc::new(FileSource::new(open_regular(&path).unwrap(), &path).unwrap())
    }

    pub(crate) fn recover(
        &self,
        to: &str,
        recovery: &RecoverOptions,
    ) -> seglake::Result<Recovered> {
        verbs::recover(
            self.source("old"),
            &self.options,
            self.path(to),
            recovery,
            |_| Ok(()),
        )
    }

    pub(crate) fn undo(&self, recovered: &str, to: &str) -> seglake::Result<u64> {
        let source = self.source(recovered);
        verbs::undo_recover(
            &source,
            None,
            self.path(to),
            IfExists::Error,
            &Options::default(),
            |_, _| Ok(()),
        )
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Read {
        read(bytes, &self.options)
    }
}

/// The names of a folder's files, in order.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) fn read(bytes: &[u8], options: &Options) -> Read {
    let options = options.clone().strict(false);
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(bytes.to_vec()));
    let columns = options.format.unwrap().columns(options.dialect);
    let mut walk = open(source.clone(), &options, Start::Beginning).unwrap();
    let mut records = Vec::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        records.extend((0..rows.len()).map(|row| fields(&*rows, row, columns)));
    }
    let checked = walk.checked().as_str();
    let ledger = Ledger::new(source, &options).unwrap();
    Read {
        records,
        ledger: ledger.map(Result::unwrap).collect(),
        checked,
    }
}

fn fields(rows: &dyn Rows, row: usize, columns: &'static [Column]) -> Vec<(&'static str, String)> {
    let columns = columns.iter().enumerate();
    columns
        .map(|(place, column)| (column.name, format!("{:?}", rows.field(row, place))))
        .collect()
}

/// All golden vectors, read in every version of their format.
pub(crate) fn cases() -> Vec<Case> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut cases = Vec::new();
    for format in FORMATS {
        for file in files(&vectors.join(format.name)) {
            if let Some(name) = file.strip_suffix(".json") {
                cases.push(case(&vectors.join(format.name), format.name, name));
            }
        }
    }
    assert!(cases.len() >= 300, "golden vectors are missing");
    cases
}

fn case(folder: &Path, format: &str, name: &str) -> Case {
    let about = fs::read(folder.join(format!("{name}.json"))).unwrap();
    let about: serde_json::Value = serde_json::from_slice(&about).unwrap();
    let given = &about["options"];
    let mut options = Options::default()
        .format(by_name(format).unwrap())
        .index(IndexSource::None);
    if let Some(key) = given["key"].as_str() {
        options.keys = vec![Key::new(&hex::decode(key).unwrap().try_into().unwrap())];
    }
    if let Some(dialect) = given["dialect"].as_str() {
        options.dialect = dialect.parse::<Dialect>().unwrap();
    }
    Case {
        name: format!("{format}/{name}"),
        bytes: fs::read(folder.join(format!("{name}.bin"))).unwrap(),
        options,
    }
}

/// Sound files of every format, version and dialect.
pub(crate) fn samples() -> &'static [Case] {
    static SAMPLES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let names = [
            "active/typical",
            "active/preallocated",
            "sealed/typical",
            "sealed/typical_no_trailer",
            "tenant/typical",
            "tenant/typical_v1",
            "chunked/typical",
            "chunked/preallocated",
            "oplog/typical",
            "oplog/typical_11",
        ];
        let cases = cases();
        let mut samples: Vec<_> = names
            .iter()
            .map(|name| {
                cases
                    .iter()
                    .find(|case| case.name == *name)
                    .unwrap_or_else(|| panic!("{name}"))
                    .clone()
            })
            .collect();
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
        let options = Options::default()
            .format(&oplog::FORMAT)
            .dialect(Dialect::Autobase);
        let bytes = fs::read(vectors.join("autobase/real-plain-c.oplog")).unwrap();
        samples.push(Case {
            name: "autobase".to_owned(),
            bytes,
            options,
        });
        samples
    });
    &SAMPLES
}

/// One way to damage a file: places are in thousandths of its length.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip(usize, u8),
    Overwrite(usize, Vec<u8>),
    Zero(usize, usize),
    Cut(usize),
    Delete(usize, usize),
    Insert(usize, Vec<u8>),
    Duplicate(usize, usize),
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let place = 0..1000usize;
    let len = 1..200usize;
    let bytes = || proptest::collection::vec(any::<u8>(), 1..40);
    prop_oneof![
        3 => (place.clone(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => (place.clone(), bytes()).prop_map(|(at, bytes)| Damage::Overwrite(at, bytes)),
        1 => (place.clone(), len.clone()).prop_map(|(at, len)| Damage::Zero(at, len)),
        1 => place.clone().prop_map(Damage::Cut),
        1 => (place.clone(), len.clone()).prop_map(|(at, len)| Damage::Delete(at, len)),
        1 => (place.clone(), bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (place, len).prop_map(|(at, len)| Damage::Duplicate(at, len)),
    ]
}

impl Damage {
    pub(crate) fn apply(&self, file: &mut Vec<u8>) {
        let len = file.len();
        let at = |place: usize| (place * len / 1000).min(len);
        let run = |place: usize, count: usize| at(place)..(at(place) + count).min(len);
        match self {
            Self::Flip(place, bit) if len > 0 => file[at(*place).min(len - 1)] ^= 1 << bit,
            Self::Flip(..) => {}
            Self::Overwrite(place, bytes) => {
                file.splice(run(*place, bytes.len()), bytes.iter().copied());
            }
            Self::Zero(place, count) => file[run(*place, *count)].fill(0),
            Self::Cut(place) => file.truncate(at(*place)),
            Self::Delete(place, count) => {
                file.drain(run(*place, *count));
            }
            Self::Insert(place, bytes) => {
                file.splice(at(*place)..at(*place), bytes.iter().copied());
            }
            Self::Duplicate(place, count) => {
                let copy = file[run(*place, *count)].to_vec();
                file.splice(at(*place)..at(*place), copy);
            }
        }
    }
}
