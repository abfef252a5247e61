//! Which format a file is of, where its content and its extension both have a say.

use std::fs;
use std::sync::Arc;

use crate::common::sealed::segment;
use crate::common::uuid;
use seglake::checksum::Key;
use seglake::format::{Options, detect};
use seglake::source::{FileSource, open_regular};

#[test]
fn an_extension_decides_only_between_what_the_content_allows() {
    let folder = tempfile::tempdir().unwrap();
    let record = (uuid(1), b"type".to_vec(), b"value".to_vec());
    // Under another key one message without a trailer is also an active record and unused space.
    let either = segment(&Key::new(&[7; 32]), std::slice::from_ref(&record), false);
    let certain = segment(&Key::DEFAULT, &[record], true);
    let neither = b"neither".to_vec();
    let compressed = b"\x1f\x8b\x08 by gzip".to_vec();
    for (content, name, format, is_certain, reason) in [
        (&certain, "a.tenant", Some("sealed"), true, "trailer"),
        (&certain, "a", Some("sealed"), true, "trailer"),
        (
            &neither,
            "a.tenant",
            Some("tenant"),
            false,
            "the extension is .tenant",
        ),
        (&neither, "a.txt", None, false, "like none of the formats"),
        (&compressed, "a.active.gz", None, false, "of gzip"),
        (&Vec::new(), "a.txt", None, false, "the file is empty"),
        (&neither, "tenant", None, false, "like none of the formats"),
        (
            &either,
            "a.sealed",
            Some("sealed"),
            false,
            "the extension is .sealed",
        ),
        (
            &either,
            "a.active",
            Some("active"),
            false,
            "the extension is .active",
        ),
        (
            &either,
            "a.tenant",
            None,
            false,
            "could be active or sealed",
        ),
        (&either, "a", None, false, "could be active or sealed"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let source = FileSource::new(open_regular(&path).unwrap(), &path).unwrap();
        let found = detect(&source, &Options::default()).unwrap();
        let name = found.format.map(|format| format.name);
        assert_eq!((name, found.certain), (format, is_certain), "{found:?}");
        assert!(found.reason.contains(reason), "{found:?}");
        if found.reason.contains("of gzip") {
            let error = seglake::verbs::verify(Arc::new(source), &Options::default(), |_| Ok(()));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("decompress it first"), "{error}");
        }
    }
}
