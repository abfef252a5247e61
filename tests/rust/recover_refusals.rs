//! What recovering and undoing refuse. Nothing is written then.

use crate::recovery;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::recovery::{Bench, Case, cases};
use seglake::Error;
use seglake::format::{IfExists, IndexSource, Options, chunked};
use seglake::source::{FileSource, Source, open_regular};
use seglake::verbs::{self, RecoverOptions};

fn damaged() -> Case {
    named("active/flip_message")
}

fn named(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

fn with_quarantine(path: PathBuf) -> RecoverOptions {
    RecoverOptions::default().quarantine(path)
}

#[test]
fn existing_files_are_errors_unless_they_are_to_be_replaced() {
    let bench = Bench::new(&damaged());
    for name in ["new", "new.quarantine", "new.quarantine.manifest.jsonl"] {
        fs::write(bench.path(name), b"here before").unwrap();
        let error = bench
            .recover("new", &RecoverOptions::default())
            .unwrap_err();
        let Error::Io { path, source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source.kind(), ErrorKind::AlreadyExists);
        assert_eq!(path, Some(bench.path(name)));
        assert_eq!(bench.files(), [name, "old"]);
        assert_eq!(fs::read(bench.path(name)).unwrap(), b"here before");
        let recovery = RecoverOptions::default().if_exists(IfExists::Overwrite);
        bench.recover("new", &recovery).unwrap();
        assert_eq!(bench.files().len(), 4);
        assert_ne!(fs::read(bench.path(name)).unwrap(), b"here before");
        for own in bench.files().iter().filter(|own| *own != "old") {
            fs::remove_file(bench.path(own)).unwrap();
        }
    }
}

/// Whether this error says that two files are the same.
fn is_same_file<T>(result: seglake::Result<T>) -> bool {
    matches!(result, Err(Error::Usage(why)) if why.contains("name another file"))
}

#[cfg(unix)]
#[test]
fn no_file_may_be_another_by_whatever_name() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new(&damaged());
    let before = fs::read(bench.path("old")).unwrap();
    symlink("old", bench.path("link")).unwrap();
    fs::hard_link(bench.path("old"), bench.path("hard")).unwrap();
    symlink(bench.path("."), bench.path("folder")).unwrap();
    symlink("new", bench.path("to-new")).unwrap();
    let files = bench.files();
    for overwrite in [false, true] {
        for name in ["old", "link", "hard", "folder/old", "./old"] {
            let over = RecoverOptions::default().if_exists(IfExists::overwrite_if(overwrite));
            assert!(is_same_file(bench.recover(name, &over)), "{name}");
            let over =
                with_quarantine(bench.path(name)).if_exists(IfExists::overwrite_if(overwrite));
            assert!(is_same_file(bench.recover("new", &over)), "{name}");
        }
        for quarantine in ["new", "folder/new"] {
            let over = with_quarantine(bench.path(quarantine))
                .if_exists(IfExists::overwrite_if(overwrite));
            assert!(is_same_file(bench.recover("new", &over)), "{quarantine}");
        }
        // The manifest of the quarantine would be the new file.
        let over = with_quarantine(bench.path("q")).if_exists(IfExists::overwrite_if(overwrite));
        assert!(is_same_file(bench.recover("q.manifest.jsonl", &over)));
    }
    assert_eq!(bench.files(), files);
    assert_eq!(fs::read(bench.path("old")).unwrap(), before);
    // A link in the way is replaced, not followed.
    let over = RecoverOptions::default().if_exists(IfExists::Overwrite);
    bench.recover("to-new", &over).unwrap();
    assert!(!bench.path("new").exists());
    assert!(
        !fs::symlink_metadata(bench.path("to-new"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn a_file_in_which_nothing_verifies_is_refused_unless_forced() {
    for (name, why) in [
        ("active/wrong_key", "a wrong key"),
        ("sealed/wrong_key", "a wrong key"),
        ("oplog/read_as_other_dialect", "dialect"),
        ("tenant/not_a_segment", "other content"),
        ("tenant/version_0_v1", "unknown"),
        ("chunked/torn_first_chunk", "unknown"),
        ("sealed/empty", "empty"),
    ] {
        let case = named(name);
        let bench = Bench::new(&case);
        let error = bench
            .recover("new", &RecoverOptions::default())
            .unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains(why) && text.contains("force"), "{text}");
        assert_eq!(bench.files(), ["old"]);
        let forced = RecoverOptions::default().force(true);
        let recovered = bench.recover("new", &forced).unwrap();
        assert_eq!(recovered.output.summary.records, 0);
        assert!(recovered.is_lossy());
        bench.undo("new", "undone").unwrap();
        assert_eq!(
            fs::read(bench.path("undone")).unwrap(),
            case.bytes,
            "{name}"
        );
    }
}

#[test]
fn a_named_quarantine_is_always_written() {
    let case = named("active/typical");
    let bench = Bench::new(&case);
    let named = with_quarantine(bench.path("q"));
    let recovered = bench.recover("new", &named).unwrap();
    assert_eq!((recovered.quarantined, recovered.is_lossy()), (0, false));
    assert_eq!(recovered.quarantine, Some(bench.path("q")));
    assert_eq!(bench.files(), ["new", "old", "q", "q.manifest.jsonl"]);
    let source = bench.source("new");
    let undone = bench.path("undone");
    let quarantine = bench.path("q");
    let length = verbs::undo_recover(
        &source,
        Some(&quarantine),
        &undone,
        IfExists::Error,
        &Options::default(),
        |_, _| Ok(()),
    );
    assert_eq!(length.unwrap(), case.bytes.len() as u64);
    assert_eq!(fs::read(undone).unwrap(), case.bytes);
}

#[test]
fn progress_ascends_to_the_end_and_can_end_the_work() {
    for name in [
        "active/flip_message",
        "sealed/flip_message",
        "tenant/flip_block_message",
        "chunked/flip_payload",
    ] {
        let case = named(name);
        let bench = Bench::new(&case);
        let recover = |progress: &mut dyn FnMut(u64) -> seglake::Result<()>| {
            let (source, to) = (bench.source("old"), bench.path("new"));
            verbs::recover(
                source,
                &case.options,
                &to,
                &RecoverOptions::default(),
                progress,
            )
        };
        let mut told = Vec::new();
        for stop in 0.. {
            let mut count = 0;
            let stopped = recover(&mut |_| {
                count += 1;
                if count > stop {
                    Err(Error::Interrupted)
                } else {
                    Ok(())
                }
            });
            if stopped.is_ok() {
                break;
            }
            assert_eq!(bench.files(), ["old"], "{name}, {stop}");
        }
        for own in bench.files().iter().filter(|own| *own != "old") {
            fs::remove_file(bench.path(own)).unwrap();
        }
        recover(&mut |done| {
            told.push(done);
            Ok(())
        })
        .unwrap();
        assert!(told.is_sorted(), "{name}: {told:?}");
        assert_eq!(told.last(), Some(&(case.bytes.len() as u64)));
    }
}

/// A change to a file before its recovery is undone, and the error for it.
type Tampering = (&'static str, fn(&mut Vec<u8>), &'static str);

#[test]
fn undoing_refuses_what_was_changed_since() {
    let tamperings: [Tampering; 9] = [
        ("new", |bytes| bytes[100] ^= 1, "the recovered file"),
        ("new", |bytes| bytes.push(0), "the recovered file"),
        ("new.quarantine", |bytes| bytes[50] ^= 1, "its quarantine"),
        ("new.quarantine", Vec::clear, "its quarantine"),
        (
            "new.quarantine.manifest.jsonl",
            Vec::clear,
            "not a manifest",
        ),
        (
            "new.quarantine.manifest.jsonl",
            |bytes| bytes.truncate(bytes.len() - 2),
            "cut off",
        ),
        (
            "new.quarantine.manifest.jsonl",
            |bytes| replace(bytes, "\"version\":1", "\"version\":2"),
            "version 2",
        ),
        (
            "new.quarantine.manifest.jsonl",
            |bytes| replace(bytes, "\"start\":308", "\"start\":309"),
            "does not continue",
        ),
        (
            "new.quarantine.manifest.jsonl",
            |bytes| replace(bytes, "\"at\":308", "\"at\":309"),
            "not within its file",
        ),
    ];
    for (name, tamper, why) in tamperings {
        let bench = Bench::new(&damaged());
        bench.recover("new", &RecoverOptions::default()).unwrap();
        let mut bytes = fs::read(bench.path(name)).unwrap();
        tamper(&mut bytes);
        fs::write(bench.path(name), bytes).unwrap();
        let error = bench.undo("new", "undone").unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(why) && text.contains(name), "{text}");
        assert_eq!(bench.files().len(), 4, "{name}: {why}");
    }
}

fn replace(bytes: &mut Vec<u8>, old: &str, new: &str) {
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains(old));
    *bytes = text.replacen(old, new, 1).into_bytes();
}

#[test]
fn undoing_refuses_a_manifest_that_leads_to_other_bytes() {
    let bench = Bench::new(&damaged());
    bench.recover("new", &RecoverOptions::default()).unwrap();
    let path = bench.path("new.quarantine.manifest.jsonl");
    // The third piece from one byte earlier on: it fits, and the bytes are others.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"at\":308", "\"at\":307", 1)).unwrap();
    let error = bench.undo("new", "undone").unwrap_err();
    assert!(
        error.to_string().contains("are not the 873 of the file"),
        "{error}"
    );
    assert!(!bench.path("undone").exists());
}

#[test]
fn undoing_without_a_manifest_says_what_is_missing() {
    let bench = Bench::new(&damaged());
    bench.recover("new", &RecoverOptions::default()).unwrap();
    fs::remove_file(bench.path("new.quarantine.manifest.jsonl")).unwrap();
    let error = bench.undo("new", "again").unwrap_err().to_string();
    for part in [
        "new.quarantine.manifest.jsonl",
        "the manifest",
        "--quarantine",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(bench.files(), ["new", "new.quarantine", "old"]);
}

#[test]
fn undoing_does_not_write_over_what_it_reads() {
    let bench = Bench::new(&damaged());
    bench.recover("new", &RecoverOptions::default()).unwrap();
    for name in ["new", "new.quarantine", "new.quarantine.manifest.jsonl"] {
        let (source, to) = (bench.source("new"), bench.path(name));
        let undone = verbs::undo_recover(
            &source,
            None,
            &to,
            IfExists::Overwrite,
            &Options::default(),
            |_, _| Ok(()),
        );
        assert!(is_same_file(undone), "{name}");
    }
    let existing = bench.undo("new", "old").unwrap_err();
    assert!(matches!(existing, Error::Io { .. }), "{existing}");
    bench.recover("copy", &RecoverOptions::default()).unwrap();
    fs::remove_file(bench.path("copy.quarantine")).unwrap();
    let missing = bench.undo("copy", "undone").unwrap_err();
    assert!(missing.to_string().contains("copy.quarantine"), "{missing}");
}

fn opened(path: &Path) -> Arc<dyn Source> {
    Arc::new(FileSource::new(open_regular(path).unwrap(), path).unwrap())
}

/// A log with an index gets a new one. Its own is left alone and does not conflict.
#[test]
fn the_index_of_a_log_is_made_anew() {
    let folder = recovery::folder();
    let path = |name: &str| folder.path().join(name);
    let case = named("chunked/flip_payload");
    fs::write(path("log.chunks"), &case.bytes).unwrap();
    let options = case.options.index(IndexSource::Beside);
    let recover = |to: &str, overwrite| {
        let recovery = RecoverOptions::default().if_exists(IfExists::overwrite_if(overwrite));
        verbs::recover(
            opened(&path("log.chunks")),
            &options,
            path(to),
            &recovery,
            |_| Ok(()),
        )
    };
    assert_eq!(recover("without.chunks", false).unwrap().index, None);
    assert!(!path("without.index").exists());
    fs::write(path("log.index"), b"stale").unwrap();
    let recovered = recover("new.chunks", false).unwrap();
    assert_eq!(recovered.index, Some(path("new.index")));
    let (log, index) = (opened(&path("new.chunks")), opened(&path("new.index")));
    let index = chunked::Index::read(&*log, &*index, &options).unwrap();
    assert!(index.items.len() > 2 && index.spans.iter().all(|span| !span.is_damage()));
    for overwrite in [false, true] {
        assert!(is_same_file(recover("log.other", overwrite)));
        assert!(matches!(
            recover("other.index", overwrite),
            Err(Error::Usage(_))
        ));
    }
    assert_eq!(fs::read(path("log.index")).unwrap(), b"stale");
    assert!(!path("log.other").exists());
}
