//! Recovering loses no sound record and no byte. The new file is sound and has every sound record, and both files
//! together restore the damaged one. Recovering a recovered file changes nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use seglake::Error;
use seglake::format::{Format, IfExists, Options, oplog};
use seglake::source::{FileSource, Source, open_regular};
use seglake::verbs::{RecoverOptions, Recovered, recover, undo_recover, verify};

use super::readings;
use super::scan::{End, Plain, Record, Scan, whole};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    for options in readings(format) {
        let folder = super::folder();
        let path = folder.path().join("recovered");
        let recovery = RecoverOptions::default().force(true).renumber(true);
        let found = verify(whole(bytes), &options, |_| Ok(())).unwrap();
        let careful = recover(
            whole(bytes),
            &options,
            &path,
            &RecoverOptions::default(),
            |_| Ok(()),
        );
        let mut renumbered = false;
        let recovered = match careful {
            // No record was verified, or messages would be renumbered.
            Err(Error::Usage(_)) => {
                assert!(!found.is_sound());
                assert_eq!(names(folder.path()), [""; 0], "nothing is left");
                renumbered = true;
                recover(whole(bytes), &options, &path, &recovery, |_| Ok(()))
            }
            other => other,
        };
        match recovered {
            Ok(recovered) => is_complete(&recovered, &path, bytes, &options, renumbered),
            // References to lost messages cannot be rewritten.
            Err(Error::Usage(message)) if *format == oplog::FORMAT => {
                assert!(!found.is_sound(), "{message}");
                assert_eq!(names(folder.path()), [""; 0], "nothing is left");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The names of the files in a folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn is_complete(
    recovered: &Recovered,
    path: &Path,
    bytes: &[u8],
    options: &Options,
    renumbered: bool,
) {
    let written = fs::read(path).unwrap();
    let len = bytes.len() as u64;
    assert_eq!(recovered.carried + recovered.quarantined, len);
    assert_eq!(recovered.quarantine.is_none(), written == bytes);
    let sound = recovered.source.is_sound();
    assert!(
        !sound || written == bytes,
        "a sound file is copied as it is"
    );

    let (old, new) = (Scan::of(bytes, options), Scan::of(&written, options));
    if old.end == End::Done {
        assert_eq!(new.end, End::Done);
        assert_eq!(new.records.len(), old.records.len());
        for (new, old) in new.records.iter().zip(&old.records) {
            assert_eq!(
                kept(new, options, renumbered),
                kept(old, options, renumbered)
            );
        }
        let damage = new.spans.iter().filter(|span| span.is_damage()).count();
        let dangling = new
            .records
            .iter()
            .filter(|record| record.cause.is_some())
            .count();
        assert_eq!(damage, dangling, "{:?}", new.spans);
    }

    let folder = path.parent().unwrap();
    if recovered.quarantine.is_some() {
        let restored = folder.join("restored");
        let source: Arc<dyn Source> =
            Arc::new(FileSource::new(open_regular(path).unwrap(), path).unwrap());
        undo_recover(
            &source,
            None,
            &restored,
            IfExists::Error,
            options,
            |_, _| Ok(()),
        )
        .unwrap();
        assert!(
            fs::read(restored).unwrap() == bytes,
            "the damaged file is not made again"
        );
    }
    let again = folder.join("again");
    let recovery = RecoverOptions::default().force(true);
    let second = recover(whole(&written), options, &again, &recovery, |_| Ok(())).unwrap();
    assert!(second.quarantine.is_none());
    assert!(
        fs::read(again).unwrap() == written,
        "recovered again it is another file"
    );
}

/// The fields that are the same in the new file. If messages were renumbered, those that refer to others by number are
/// left out.
fn kept(record: &Record, options: &Options, renumbered: bool) -> Vec<Plain> {
    let columns = options.format.unwrap().columns(options.dialect);
    let counts_back = |name: &str| ["checkpointer", "checkpoint", "digest", "keys"].contains(&name);
    let fields = record.content(options).into_iter().zip(columns);
    fields
        .map(|(field, column)| {
            if renumbered && counts_back(column.name) {
                Plain::Null
            } else {
                field
            }
        })
        .collect()
}
