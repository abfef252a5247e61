//! Strict and lenient reading agree: the error is the ledger's first damage, after the same records.

use seglake::format::Format;
use seglake::verbs::verify;

use super::readings;
use super::scan::{End, Scan, begin, whole, windowed};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    for options in readings(format) {
        let lenient = Scan::of(bytes, &options);
        if let End::Limit(_) = lenient.end {
            continue;
        }
        let is_wrong_key = verify(whole(bytes), &options, |_| Ok(()))
            .unwrap()
            .summary
            .wrong_key();
        let first = lenient.ledger().into_iter().find(|span| span.is_damage());
        let expected = first.map_or(End::Done, |span| End::Damage {
            offset: span.start,
            cause: span.cause.unwrap(),
            wrong_key: is_wrong_key,
        });
        let strict = options.strict(true);
        // In strict mode, the bytes after the damage are not searched for a record that would change its kind.
        let settled = |end: End| match end {
            End::Damage {
                offset,
                cause,
                wrong_key,
            } => End::Damage {
                offset,
                cause,
                wrong_key: wrong_key && is_wrong_key,
            },
            other => other,
        };
        for source in [whole(bytes), windowed(bytes)] {
            let (mut scan, mut walk) = (Scan::new(), begin(source, &strict));
            scan.finish(&mut *walk, &strict);
            scan.end = settled(scan.end);
            if lenient.is_limited() || scan.is_limited() {
                continue;
            }
            assert_eq!(
                scan.end,
                expected,
                "strictly, and in {:?}",
                lenient.ledger()
            );
            assert!(
                scan.spans.iter().all(|span| !span.is_damage()),
                "{:?}",
                scan.spans
            );
            let same = lenient.records.get(..scan.records.len());
            assert_eq!(Some(scan.records.as_slice()), same);
            if expected == End::Done {
                scan.assert_is(&lenient, "strictly");
            } else {
                let mut again = Scan::new();
                again.finish(&mut *walk, &strict);
                assert!(again.records.is_empty());
                let end = settled(again.end);
                assert!([&expected, &End::Done].contains(&&end), "{end:?}");
            }
        }
    }
}
